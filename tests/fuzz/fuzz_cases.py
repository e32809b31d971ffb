"""What fuzzing starts from: real files, and what a random generator makes of them."""

from __future__ import annotations

import ast
import sysconfig
import textwrap
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

T = TypeVar("T")

FIXTURES = Path(__file__).parents[1] / "fixtures"
_BIGGEST = 16_000
"""Bytes of a file to start from; bigger ones make few cases a minute."""
PIECES = [
    *(b"", b"\r", b"\n", b"\r\n", b"\\\n", b"\f", b"\t", b"    ", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80"),
    *(b"(", b")", b"[", b"{", b'"""', b"'", b"f'{", b"#", b":", b";", b",", b"=", b":=", b"*", b"@", b"lambda: "),
    *(b" from None", b" from e", b"raise ", b"raise X(x) from None\n", b"except:", b"except* X:", b"finally:"),
    *(b"try:\n", b"yield ", b"await ", b"async ", b"else:", b"match x:\n case _:", b"global x\n", b"del e\n"),
    *(b"__cause__", b"super().__init__()", b"dict.keys()", b"(x for x in y)", b"map(f, x)", b"os._exit(1)"),
    *(b"# noqa", b"# noqa: KC101", b"# keepcause: worker-init", b"# keepcause: noqa", b"# coding: latin-1\n"),
    *(
        "\N{NO-BREAK SPACE}".encode(),
        "\N{LINE SEPARATOR}".encode(),
        "ﬁ".encode(),
        "\N{MATHEMATICAL BOLD SMALL R}ank".encode(),
    ),
]
ENCODINGS = ["utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-32", "utf-7", "shift_jis", "iso2022_jp"]
COOKIES = [*ENCODINGS, "ascii", "hex", "rot13", "idna", "punycode", "unicode_escape", "none", "\x1b[31m", "utf8"]


@dataclass
class Case:
    """One run of one target: its own random generator, the files to start from, and what the target was given."""

    random: random.Random
    files: Sequence[Path]
    given: bytes = b""

    def choice(self, items: Sequence[T]) -> T:
        """One of `items`."""
        return self.random.choice(items)

    def file(self) -> bytes:
        """The bytes of a file."""
        return self.choice(self.files).read_bytes()


def corpus(*folders: Path) -> list[Path]:
    """The files to start from: the fixtures, the standard library's, and those in `folders`."""
    library = [path for path in Path(sysconfig.get_path("stdlib")).rglob("*.py") if "site-packages" not in path.parts]
    given = [path for folder in folders for path in folder.rglob("*.py")]
    fixtures = [path for path in FIXTURES.rglob("*.py") for _ in range(20)]
    return sorted(path for path in (*library, *given, *fixtures) if path.stat().st_size < _BIGGEST)


def mutated(case: Case) -> bytes:
    """A file with a few changes that need not leave it Python."""
    data = case.file()
    for _ in range(case.random.randrange(1, 5)):
        change: Callable[[Case, bytes], bytes] = case.choice(CHANGES)
        data = change(case, data)
    return data


def _piece(case: Case, data: bytes) -> bytes:
    start = case.random.randint(0, len(data))
    return data[:start] + case.choice(PIECES) + data[start + case.random.randrange(4) :]


def _byte(case: Case, data: bytes) -> bytes:
    start = case.random.randint(0, len(data))
    return data[:start] + bytes([case.random.randrange(256)]) + data[start + 1 :]


def _cut(case: Case, data: bytes) -> bytes:
    return data[: case.random.randint(0, len(data))]


def _lines(case: Case, data: bytes) -> bytes:
    """A few lines are left out, doubled, indented, or come from another file."""
    lines = data.splitlines(keepends=True)
    start = case.random.randint(0, len(lines))
    stop = start + case.random.randrange(1, 9)
    other = case.file().splitlines(keepends=True)
    at = case.random.randint(0, len(other))
    by = case.choice([b" ", b"\t", b"    "])
    new = case.choice([[], lines[start:stop] * 2, [by + line for line in lines[start:stop]], other[at : at + 9]])
    return b"".join([*lines[:start], *new, *lines[stop:]])


def _ends(case: Case, data: bytes) -> bytes:
    lines = data.splitlines()
    ends = case.choice([[b"\n"], [b"\r\n"], [b"\r"], [b"\n", b"\r\n", b"\r"], [b"\n", b"\f\n"]])
    return b"".join(line + case.choice(ends) for line in lines)


def _encoded(case: Case, data: bytes) -> bytes:
    cookie = f"# -*- coding: {case.choice(COOKIES)} -*-\n" if case.random.random() < 0.7 else ""
    text = cookie + data.decode("utf-8", "replace")
    return text.encode(case.choice(ENCODINGS), "replace")


def _nested(case: Case, data: bytes) -> bytes:
    start = case.random.randint(0, len(data))
    depth = case.choice([10, 90, 150, 1000, 10_000])
    left, right = case.choice([(b"(", b")"), (b"-", b"1"), (b"x.", b"x"), (b"[", b""), (b"lambda: ", b"0")])
    return data[:start] + left * depth + (right * depth if right == b")" else right) + data[start:]


CHANGES = [_piece, _piece, _piece, _byte, _byte, _cut, _lines, _lines, _lines, _ends, _encoded, _nested]


def program(case: Case) -> bytes:
    """A file into which code that rules look for was written, in some spelling; most of them are Python."""
    text = case.file().decode("utf-8", "replace")
    for _ in range(case.random.randrange(1, 4)):
        text = _grafted(case, text)
    for _ in range(case.random.randrange(3)):
        text = _spelled(case, text)
    data = text.encode("utf-8", "surrogatepass")
    if case.random.random() < 0.2:
        return _ends(case, data)
    return _piece(case, data) if case.random.random() < 0.2 else data


def _grafted(case: Case, text: str) -> str:
    """`text` with a statement of a fixture before one of its own."""
    lines = text.split("\n")
    places = _statements(text)
    at = case.choice(places) if places else 0
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    graft = textwrap.indent(case.choice(_grafts()), indent)
    return "\n".join([*lines[:at], graft, *lines[at:]])


def _statements(text: str) -> list[int]:
    """The indexes of the lines where statements begin."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    last = len(text.split("\n"))
    return sorted({node.lineno - 1 for node in ast.walk(tree) if isinstance(node, ast.stmt) and node.lineno <= last})


@cache
def _grafts() -> list[str]:
    """The statements of the fixtures, as texts without indentation."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(FIXTURES.glob("KC*/*.py"))]
    found = set()
    for text in texts:
        lines = text.split("\n")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.stmt):
                found.add(textwrap.dedent("\n".join(lines[node.lineno - 1 : node.end_lineno])))
    return sorted(code for code in found if len(code) < 3000)


SPELLINGS = [
    (" from None", [" from(None)", " from \\\n None", "\tfrom  None", " from ((None))", " from None  # noqa: KC101"]),
    ("raise ", ["raise\\\n ", "raise  ", "if 1: raise ", "pass; raise ", "raise(  # why\n"]),
    ("except ", ["except\\\n ", "except  ", "except* "]),
    ("(", ["( ", "(\n", "(  # why\n", "[T]("]),
    ("{", ['{"" + ', "{'' + ", '{f"{0}" + ', "{\n"]),
    (":\n", [":  # why\n", " :\n", ": pass\n", ":\n\f\n"]),
    ("def ", ["async def ", "@decorated\ndef ", "def worker_"]),
    ("rank", ["rañk", "self.rank", "\N{MATHEMATICAL BOLD SMALL R}ank", "Rank"]),
    ("Exception", ["(Exception)", "BaseException", "builtins.Exception", "Exception, OSError"]),
    ("e", ["e", "E", "None"]),
    (" ", ["  ", "\t", " \\\n"]),
]


def _spelled(case: Case, text: str) -> str:
    """`text` with something spelled in another way at one place."""
    old, spellings = case.choice(SPELLINGS)
    places = text.count(old)
    if not places:
        return text
    at = -1
    for _ in range(case.random.randrange(places) + 1):
        at = text.find(old, at + 1)
        if at < 0:
            return text
    return text[:at] + case.choice(spellings) + text[at + len(old) :]
