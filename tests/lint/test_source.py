"""Bytes -> text, lines and character columns, as Python reads them."""

from __future__ import annotations

import ast
import gc
import weakref

import pytest

from keepcause.lint.engine import Settings, lint_single_file
from keepcause.lint.finding import Span
from keepcause.lint.source import Source, SourceError, decode, follow

CODE = "x = 1\nif x:\n    y = 'ß机'; raise X(\n        '😀') from None  # ü\n"


def raise_in(source: Source) -> ast.Raise:
    """The one raise of the source."""
    (node,) = (node for node in ast.walk(source.tree) if isinstance(node, ast.Raise))
    return node


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030"])
def test_places_count_characters(newline: str, encoding: str) -> None:
    cookie = f"# coding: {encoding}\n" if encoding == "gb18030" else "# ä\n"
    text = (cookie + CODE).replace("\n", newline)
    source = Source(text.encode(encoding))
    node = raise_in(source)
    assert source.text == text
    assert source.span(node) == Span(4, 14, 5, 22)
    assert source.text[source.slice(source.span(node))] == f"raise X({newline}        '😀') from None"


@pytest.mark.parametrize("encoding", ["latin-1", "shift_jis", "cp1252", "euc_kr", "koi8-r"])
def test_encodings(encoding: str) -> None:
    word = {"latin-1": "é", "shift_jis": "機ｱ", "cp1252": "€", "euc_kr": "한", "koi8-r": "ж"}[encoding]
    source = Source(f"# vim: set fileencoding={encoding} :\n'{word}'; raise X\n".encode(encoding))
    assert source.span(raise_in(source)) == Span(2, len(word) + 4, 2, len(word) + 11)


def test_what_only_looks_like_a_line_end() -> None:
    source = Source("# \x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\n\x0craise X\n".encode())
    assert source.span(raise_in(source)) == Span(2, 1, 2, 8)


def test_a_long_first_line_is_no_trouble() -> None:
    """Not even where a block of any size would end within a character."""
    for bom in ("", "\ufeff"):
        for shift in range(3):
            assert Source(f"{bom}x = '{'a' * shift}{'机' * 5000}'\nraise X\n".encode()).lines[1] == "raise X"


@pytest.mark.parametrize(
    ("data", "line", "reason"),
    [
        (b"\xff", 1, "not valid utf-8: invalid start byte at byte 0"),
        (b"a\rb\r\n\xff", 3, "not valid utf-8: "),
        (b"a\n\n\n\0", 4, "holds a NUL character"),
        (b"# coding: nope", 1, "unknown encoding: nope"),
        (b"a\nb c\n", 2, "invalid syntax"),
    ],
)
def test_what_can_not_be_read(data: bytes, line: int, reason: str) -> None:
    with pytest.raises(SourceError) as raised:
        Source(data)
    assert raised.value.line == line
    assert raised.value.reason.startswith(reason)


def test_decode_keeps_everything_but_the_mark() -> None:
    assert decode("\ufeffa\r\nb\rc".encode()) == ("a\r\nb\rc", "utf-8-sig")
    assert decode(b"") == ("", "utf-8")


def test_paths_lead_back() -> None:
    source = Source(b"raise X(f'{a}{b!r:{c}}', *[d for d in e]) from None\n")
    statement = source.tree.body[0]
    for node in ast.walk(statement):
        if not isinstance(node, ast.expr_context) and node is not statement:
            assert follow(statement, source.path_to(node, statement)) is node


def test_what_is_kept_of_a_source_goes_with_it() -> None:
    """A tree that outlived its file would be gone through by each garbage collection."""
    code = b"""
class LostError(Exception):
    def __init__(self, rank, path):
        super().__init__(f"{rank}: {path}")

class Loader:
    def check(self, wanted):
        self.missing = (name for name in wanted)
        names = map (str, wanted)
        raise LostError(0, f"{self.missing} {names}")
"""
    source = Source(code)
    settings = Settings(frozenset({"KC201", "KC309"}), single_file=True)
    assert {finding.code for finding in lint_single_file(source, settings)} == settings.codes
    gone = weakref.ref(source)
    del source
    gc.collect()
    assert gone() is None
