"""A file's bytes -> its logical lines, each of which can be parsed alone; imports encodings and the parser."""

from __future__ import annotations

import bisect
import functools
import itertools
import keyword
import re
import unicodedata
from typing import TYPE_CHECKING

from keepcause.lint.source import SourceError, detect_encoding, parse

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

_DEEPEST = 8
_BOM = b"\xef\xbb\xbf"
_END = rb"(?:\r\n?|\n)"
_COMMENT = rb"#[^\r\n]*+"
_CONTINUATION = rb"\\" + _END
_ASCII = bytes(range(128))

BETWEEN = rb"(?:[\s\\]|%s)*+" % _COMMENT
"""Matches whatever may stand between two tokens of a line, and more."""
WORD = rb"[\w\x80-\xff]"
"""Matches a character of a word."""
NO_WORD = rb"(?!%s)" % WORD
"""Matches where no word goes on."""
NEXT_NAME = rb"[ \t]++(?!\d|(?:%s)%s)%s++" % (b"|".join(map(str.encode, keyword.kwlist)), NO_WORD, WORD)
"""Matches a name behind another word: prose, unless that word is a keyword."""
LETTERS = bytes(byte for byte in range(256) if byte >= 0x80 or chr(byte).isalnum() or byte == ord("_"))
"""What words are made of."""


def _strings() -> bytes:
    """Any string literal but its prefix, as Python 3.11 reads it.

    The braces of an f-string must match. Where a later Python allows its own quotes inside a field, they don't.
    """
    plain, formatted = [], []
    for quote in (b'"', b"'"):
        long = quote * 3
        lone = rb"%s(?!%s%s)" % (quote, quote, quote)
        plain.append(rb"%s(?:[^%s\\]++|\\.|%s)*+%s" % (long, quote, lone, long))
        plain.append(rb"%s(?:[^%s\\\r\n]++|\\(?:\r\n|.))*+%s" % (quote, quote, quote))
        formatted.append(_formatted(long, rb"[^{}%s\\]++|%s" % (quote, lone)))
        formatted.append(_formatted(quote, rb"[^{}%s\\\r\n]++" % quote))
    is_formatted = rb"(?:(?<=[fFtT])|(?<=[fFtT][rR]))"
    return rb"(?!%s)(?:%s)|%s(?:%s)" % (is_formatted, b"|".join(plain), is_formatted, b"|".join(formatted))


def _formatted(end: bytes, characters: bytes) -> bytes:
    text = characters + rb"|\\(?:\r\n|.)"
    field = rb"\{(?:" + text + rb")*+\}"
    for _ in range(2):
        field = rb"\{(?:" + text + rb"|" + field + rb")*+\}"
    return rb"%s(?:%s|\{\{|\}\}|%s)*+%s" % (end, text, field, end)


def _brackets(depth: int) -> bytes:
    inner = rb"|" + _brackets(depth - 1) if depth else b""
    other = rb"|".join((STRING, _COMMENT, _CONTINUATION))
    return rb"[(\[{](?:[^\"'#()\[\]{}\\]++" + inner + rb"|" + other + rb")*+[)\]}]"


STRING = _strings()
TOKENS = rb"|".join((_brackets(_DEEPEST), STRING, _COMMENT, _CONTINUATION))
"""Matches what begins with a bracket, to its end; a string; a comment; a backslash at the end of a line."""
_NOTHING = rb"(?:[ \t\f]*+(?:(?:[rRbBuU]{0,2}(?=[\"'])(?:%s)[ \t\f]*+)?+(?:%s)?+)[\r\n]++)*+" % (STRING, _COMMENT)


@functools.cache
def _line() -> re.Pattern[bytes]:
    """A logical line, without what comes before it, or what is unmatched; all behind that is passed over.

    It takes long to compile, and few files need it.
    """
    code = rb"((?:[^\"'#()\[\]{}\\\r\n]++|" + TOKENS + rb")*+(?=[\r\n]|\Z)|[\"'()\[\]{}\\])"
    before_unmatched = rb"[^\"'()\[\]{}\\\r\n]++"
    return re.compile(_NOTHING + rb"(?:%s(?:(?=[\r\n]|\Z)|.*+)|%s)" % (code, before_unmatched), re.DOTALL)


_FOREIGN_WORD = re.compile(r"(?<!\w)(?<![^\0-\x7f])\w*+(?:[^\0-\x7f]++\w*+)++", re.ASCII)
_UNMATCHED = frozenset(b"%c" % character for character in b"\"'()[]{}\\")
_INDENTED = re.compile(rb"\0([ \t\f]*+)")
_CONTINUED = re.compile(rb"\0[ \t\f]*+\\")
_DEFINITION = re.compile(rb"\0([ \t\f]*+)(?:async%s)?(def|class)%s(%s++)(%s[(\[])?" % (BETWEEN, BETWEEN, WORD, BETWEEN))


def normalized(data: bytes) -> bytes | None:
    """`data` in UTF-8, identifiers as Python compares them; None where it is not UTF-8, or no Python file."""
    data = data.removeprefix(_BOM)
    if b"\0" in data or (b"coding" in data[: _second_line_end(data)] and not _is_utf8(data)):
        return None
    if data.isascii():
        return data
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    foreign = set(data.translate(None, _ASCII).decode())
    if not any(f"a{character}".isidentifier() for character in foreign):
        return data
    return data if unicodedata.is_normalized("NFKC", text) else _FOREIGN_WORD.sub(_as_compared, text).encode()


def _second_line_end(data: bytes) -> int:
    """Where the second line ends, or a later one."""
    return data.find(b"\n", data.find(b"\n") + 1) % (len(data) + 1)


def _is_utf8(data: bytes) -> bool:
    try:
        return detect_encoding(data) in ("utf-8", "utf-8-sig")
    except SourceError:
        return False


def _as_compared(word: re.Match[str]) -> str:
    return unicodedata.normalize("NFKC", word[0]) if word[0].isidentifier() else word[0]


class LogicalLines:
    """The logical lines of a file that hold more than a comment or a lone string, told apart without parsing."""

    def __init__(self, data: bytes) -> None:
        """`data` is normalized. Raise ValueError where its lines can't be told apart without parsing."""
        lines = _line().findall(data)
        if not _UNMATCHED.isdisjoint(lines):
            raise ValueError("holds strings or brackets that only a parser understands")
        self.code = b"\0%s\0" % b"\0".join(lines)
        """The lines, indented, each between NUL bytes."""
        if _CONTINUED.search(self.code):
            raise ValueError("a line begins with a continuation")

    def start(self, offset: int) -> int:
        """Where the line around `offset` in `code` begins: at its NUL byte."""
        return self.code.rindex(b"\0", 0, offset)

    def holding(self, word: bytes) -> Iterator[int]:
        """Where the lines that hold `word`, an identifier or keyword, begin."""
        code = self.code
        at = code.find(word)
        while at >= 0:
            end = at + len(word)
            if code[at - 1] not in LETTERS and code[end] not in LETTERS:
                yield self.start(at)
                end = code.index(b"\0", end)
            at = code.find(word, end)

    def line(self, start: int) -> bytes:
        """The line that begins at `start`."""
        return self.code[start + 1 : self.code.index(b"\0", start + 1)]

    @functools.cached_property
    def _definitions(self) -> list[tuple[int, int, bytes, str]]:
        """Start, column, kind and name of each function and class; the last first."""
        found = _DEFINITION.finditer(self.code)
        return [(match.start(), width(match[1]), match[2], match[3].decode()) for match in found][::-1]

    @functools.cached_property
    def derived(self) -> frozenset[str]:
        """The names of the classes that may inherit from others."""
        found = _DEFINITION.finditer(self.code)
        return frozenset(match[3].decode() for match in found if match[2] == b"class" and match[4])

    def around(self, start: int) -> Iterator[str]:
        """The names of the functions that the line at `start` begins or may lie in, inner ones first."""
        indented = _INDENTED.match(self.code, start)
        column = width(indented[1]) if indented else 0
        first = bisect.bisect_left(self._definitions, -start, key=lambda definition: -definition[0])
        for defined, outer, kind, name in itertools.islice(self._definitions, first, None):
            if defined == start or outer < column:
                column = min(column, outer)
                if kind == b"def":
                    yield name
            if not column:
                return

    def function(self, start: int) -> bytes:
        """The innermost function around the line at `start`, from its header on; empty where there is none."""
        indented = _INDENTED.match(self.code, start)
        column = width(indented[1]) if indented else 0
        for defined, outer, kind, _ in self._definitions:
            if kind == b"def" and defined < start and outer < column:
                block = self.block(defined)
                if defined + len(block) > start:
                    return block[1:].replace(b"\0", b"\n")
        return b""

    def block(self, start: int) -> bytes:
        """The line that begins at `start` and those that are indented deeper behind it, each after its NUL byte."""
        columns = ((line.start(), width(line[1])) for line in _INDENTED.finditer(self.code, start))
        _, column = next(columns)
        return self.code[start : next(end for end, inner in columns if inner <= column)]


def width(indentation: bytes) -> int:
    """How many columns `indentation` takes."""
    return len(indentation.rpartition(b"\f")[2].expandtabs())


_FORMS = {
    "elif": ("if 1: pass\n%s", "if 1: pass\n%s\n pass"),
    "else": ("if 1: pass\n%s", "if 1: pass\n%s\n pass"),
    "except": ("try: pass\n%s", "try: pass\n%s\n pass"),
    "finally": ("try: pass\n%s", "try: pass\n%s\n pass"),
    "try": ("%s\nfinally: pass", "%s\n pass\nfinally: pass"),
    "match": ("%s", "%s\n case _: pass"),
    "case": ("%s", "match 1:\n %s", "match 1:\n %s\n  pass"),
    "": ("%s", "%s\ndef _(): pass"),
}
"""The first word of a line -> what makes a whole of it: with a body, and with what stands before and after."""
_FIRST_WORD = re.compile(r"\w*")


def statements(line: bytes) -> list[ast.stmt]:
    """The statements of a logical line, with a body where it is a header without one.

    Raises ValueError where it can't be parsed alone.
    """
    text = line.decode().lstrip(" \t\f")
    word = _FIRST_WORD.match(text)
    forms = _FORMS.get(word[0] if word else "", ("%s", "%s\n pass"))
    for form in forms[::-1] if text.endswith(":") else forms:
        try:
            return parse(form.replace("%s", text)).body
        except SourceError:
            continue
    raise ValueError(f"can't be parsed alone: {text}")
