"""Cheap tests on a file's bytes: can a rule find anything in it at all? Imports logical lines only.

A test must be sound: a file that it turns down has no finding of its rule, in any legal spelling.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from keepcause.lint.logical import normalized

if TYPE_CHECKING:
    from collections.abc import Iterator

_FROM_NONE = re.compile(rb"from(?:[\s\\(]++|#[^\r\n]*+)*+None")
_EXCEPT = re.compile(rb"except\b")
_TEXT = re.compile(rb"\"[^\"\\\n]*\"|'[^'\\\n]*'|#[^\n]*")


def may_raise_from_none(data: bytes) -> bool:
    """Whether the file with these bytes may hold `from None`, with whatever is legal between the two words."""
    plain = normalized(data)
    return plain is None or _FROM_NONE.search(plain) is not None


def may_name(data: bytes, *names: str) -> bool:
    """Whether the file with these bytes may use one of `names`, or a name that holds one."""
    plain = normalized(data)
    return plain is None or any(name.encode() in plain for name in names)


def handlers(data: bytes) -> Iterator[bytes]:
    """The text of each exception handler, from `except` on; where its end is not certain, all that follows."""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    for match in _EXCEPT.finditer(data):
        start = data.rfind(b"\n", 0, match.start()) + 1
        before = data[start : match.start()]
        if before.strip(b" \t\f"):
            continue
        end = _behind(len(before)).search(data, match.end())
        text = data[match.start() : end.start() if end else len(data)]
        continued = data[max(0, start - 2) : start] == b"\\\n"
        yield data[match.start() :] if b"\f" in data or continued or not _is_whole(text) else text


@functools.cache
def _behind(indent: int) -> re.Pattern[bytes]:
    """The end of a line before one with code that is indented by at most `indent`."""
    return re.compile(rb"\n(?=[ \t]{0,%d}[^ \t\n#])" % indent)


def _is_whole(text: bytes) -> bool:
    """Whether no text, bracket or continuation is open at the end; false where that takes more than a glance."""
    code = _TEXT.sub(b"", text)
    return (
        not text.endswith(b"\\")
        and b'"' not in code
        and b"'" not in code
        and all(code.count(left) == code.count(right) for left, right in ((b"(", b")"), (b"[", b"]"), (b"{", b"}")))
    )
