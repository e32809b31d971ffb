"""What stands around a place in a file's bytes, told without parsing; imports logical lines only."""

from __future__ import annotations

import bisect
import functools
import re
import sys
from typing import TYPE_CHECKING

from keepcause.lint.unparsed.logical import BETWEEN, WORD, width

if TYPE_CHECKING:
    from collections.abc import Iterator

BLANK = b" \t\r\n\f\\"
"""What may stand between two tokens, but for comments."""
FARTHEST = 200
"""How many bytes before a place are looked at."""
_BRACKETS = ((b"(", b")"), (b"[", b"]"), (b"{", b"}"))
_LONGEST = 5000
"""How many bytes of a function are read to tell what is around a place in it."""
_LINE_ENDS = (b"\n", b"\r", b"\0")
_CONTINUED = (b"\\\n", b"\\\r\n", b"\\\r")
_COMMENT = re.compile(rb"[^\"'#]*+#(?:[^{\"']++|\"(?!\"\")|'(?!''))*+")
"""A line up to what is no code: it is in a comment, or in a text that does not end there, and not in its fields."""
_LONG_TEXTS = (
    rb"%s(?:[^%s#\\]++|\\.|%s(?!%s%s)|#(?![^\r\n]*%s))*+%s" % (q * 3, q, q, q, q, q * 3, q * 3) for q in (b'"', b"'")
)
_TEXT = re.compile(
    rb"%s|%s|\"[^\"\\\r\n]*+\"|'[^'\\\r\n]*+'|#(?:(?!\"\"\"|''')[^\r\n])*+(?=[\r\n]|\Z)" % (*_LONG_TEXTS,), re.DOTALL
)
"""Strings and comments, but those that may hold the end of a string which began before."""
_DEFINITION = re.compile(rb"(def|class)(?=[\s\\])%s(%s++)" % (BETWEEN, WORD))


def line_start(code: bytes, at: int) -> int:
    """Where the line around `at` begins."""
    return max(code.rfind(b"\n", 0, at), code.rfind(b"\r", 0, at)) + 1


def line_around(code: bytes, at: int) -> bytes:
    """The line of the file around `at`, whether it is a whole logical line or not."""
    ends = [end for end in (code.find(b"\n", at), code.find(b"\r", at)) if end >= 0]
    return code[line_start(code, at) : min(ends, default=len(code))]


def _may_follow_comment(code: bytes, end: int, at: int) -> bool:
    """Whether a comment may stand right before `at`; only blanks stand between `end` and there."""
    if end == at or not any(sign in code[end:at] for sign in _LINE_ENDS):
        return False
    before = code[max(0, at - FARTHEST) : end]
    start = max(map(before.rfind, _LINE_ENDS)) + 1
    return (not start and at > FARTHEST) or b"#" in before[start:]


def told_before(code: bytes, at: int) -> tuple[bytes, int]:
    """What stands before the blanks before `at`, and where it ends; empty where a comment may stand there."""
    first = max(0, at - FARTHEST)
    before = code[first:at].rstrip(BLANK)
    end = first + len(before)
    return b"" if _may_follow_comment(code, end, at) else before, end


def is_in_comment(code: bytes, at: int) -> bool:
    """Whether what stands at `at` certainly is no code, for a `#` before it in its line."""
    before = code[max(0, at - FARTHEST) : at]
    start = max(map(before.rfind, _LINE_ENDS)) + 1
    if b"#" not in before[start:] or (not start and at > FARTHEST):
        return False
    return _COMMENT.fullmatch(before, start) is not None and not before[:start].endswith(_CONTINUED)


def places(code: bytes, word: bytes) -> Iterator[int]:
    """Where `word` stands, be it part of another one."""
    at = code.find(word)
    while at >= 0:
        yield at
        at = code.find(word, at + len(word))


class Definitions:
    """Where functions and classes may be defined in a file's bytes."""

    def __init__(self, code: bytes) -> None:
        self._code = code

    @functools.cached_property
    def _starts(self) -> list[int]:
        """The offsets of all definitions, in their order."""
        return sorted([*places(self._code, b"def"), *places(self._code, b"class")])

    @functools.cached_property
    def _quotes(self) -> tuple[list[int], ...]:
        """The offsets of triple quotes, by their kind."""
        return tuple(list(places(self._code, quotes)) for quotes in (b'"""', b"'''"))

    def functions_around(self, at: int) -> Iterator[tuple[int, bytes]]:
        """Start and name of the function around `at`; where it takes more than a glance to tell, of all that may be it.

        Inner ones come first.
        """
        code = self._code
        least = sys.maxsize
        for index in range(bisect.bisect(self._starts, at) - 1, -1, -1):
            start = self._starts[index]
            definition = _DEFINITION.match(code, start)
            if definition is None:
                continue
            first = line_start(code, start)
            before = code[first:start]
            if before.strip() not in (b"", b"async"):
                continue
            indentation = before.partition(b"async")[0]
            column = width(indentation)
            is_continued = code[max(0, first - 3) : first].endswith(_CONTINUED)  # behind `async`, at any column
            if column < least or is_continued:
                is_code = not is_continued and not self._may_be_text(start, at)
                if definition[1] == b"def":
                    yield start, definition[2]
                    if is_code and _is_in_block(code, start, at, len(indentation)):
                        return
                if is_code:
                    least = column
            if least == 0:
                return

    def _may_be_text(self, start: int, end: int) -> bool:
        """Whether what stands at `start` may be in a string that ends before `end`."""
        counts = ((bisect.bisect(known, start), bisect.bisect(known, end)) for known in self._quotes)
        return any(before % 2 or (until - before) % 2 for before, until in counts)


def is_whole(text: bytes) -> bool:
    """Whether no string, bracket or continuation is open at the end; false where that takes more than a glance."""
    code = _TEXT.sub(b"", text)
    return (
        not text.endswith(b"\\")
        and b'"' not in code
        and b"'" not in code
        and all(code.count(left) == code.count(right) for left, right in _BRACKETS)
    )


def _is_in_block(code: bytes, start: int, at: int, indent: int) -> bool:
    """Whether `at` certainly is in the block whose header, indented by `indent`, begins at `start`."""
    if at - start > _LONGEST or behind_block(indent).search(code, start, at + 1):
        return False
    text = code[start:at]
    lines, end, _ = text.rpartition(b"\n")
    return b"\r" not in text and b"\f" not in text and is_whole(lines if end else text)


@functools.cache
def behind_block(indent: int, inside: bytes = b"") -> re.Pattern[bytes]:
    """The end of a line before one with code that is indented by at most `indent`, and does not begin with `inside`."""
    return re.compile(rb"\n(?=[ \t]{0,%d}[^ \t\n#%s])" % (indent, re.escape(inside)))
