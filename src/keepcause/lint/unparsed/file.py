"""One file's bytes as screens look at them, before anything is parsed; imports logical lines and surroundings."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepcause.lint.unparsed.logical import LETTERS, LogicalLines, normalized
from keepcause.lint.unparsed.surroundings import behind_block, is_whole, places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True, eq=False)
class Unparsed:
    """A file in UTF-8, identifiers as Python compares them.

    `generators` are the names of other modules' functions that may give iterators.
    """

    code: bytes
    generators: frozenset[str] = frozenset()

    @classmethod
    def of(cls, data: bytes, generators: frozenset[str] = frozenset()) -> Unparsed | None:
        """The file with these bytes; None where only the parser can tell what they say."""
        code = normalized(data)
        return None if code is None else cls(code, generators)

    @functools.cached_property
    def lines(self) -> LogicalLines:
        """The logical lines; raises ValueError where they can't be told apart without parsing."""
        return LogicalLines(self.code)

    @functools.cached_property
    def may_handle(self) -> bool:
        """Whether it may hold an exception handler."""
        return b"except" in self.code

    @functools.cached_property
    def handlers(self) -> list[tuple[bytes, bytes]]:
        """The indentation and text of each handler, from `except` to where its block ends by the looks of it.

        Where indentation is not what it looks like, the text is all that follows.
        """
        code = self.code
        if not self.may_handle:
            return []
        if b"\r" in code:
            code = code.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        looks_right = b"\f" not in code
        found = []
        for at in places(code, b"except"):
            start, behind = code.rfind(b"\n", 0, at) + 1, at + len(b"except")
            indentation = code[start:at]
            if indentation.strip(b" \t\f") or code[behind : behind + 1] in LETTERS:
                continue
            continued = code[max(0, start - 2) : start] == b"\\\n"
            # A line that begins with a continuation may be indented by what follows it.
            end = behind_block(len(indentation), b"\\").search(code, at) if looks_right and not continued else None
            found.append((indentation, code[at : end.start() if end else len(code)]))
        return found

    def handling(self, test: Callable[[bytes], object]) -> Iterator[tuple[bytes, bytes]]:
        """The handlers whose text passes `test`, or may be longer than it looks."""
        return (handler for handler in self.handlers if test(handler[1]) or not is_whole(handler[1]))
