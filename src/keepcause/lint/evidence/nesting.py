"""Which of a file's functions are around a line; standard library only."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from keepcause.lint.evidence.summary import Function


class Nesting:
    """A file's functions as they lie in one another; no two begin in one line, and the module is around all others."""

    def __init__(self) -> None:
        self._known: dict[int, Function] = {}
        self._starts: list[int] = []
        self._sorted: list[Function] = []
        self._outer: list[int] = []
        """Of each function in `_sorted` the place of the one right around it; -1 of the module."""

    def add(self, function: Function) -> bool:
        """Take one over; whether none begins in its line yet."""
        return self._known.setdefault(function.line, function) is function

    def around(self, lines: Iterable[int]) -> list[Function]:
        """The module, and the functions around one of `lines`, by line."""
        if len(self._sorted) < len(self._known):
            self._sort()
        found = {0}
        for line in lines:
            at = bisect.bisect_right(self._starts, line) - 1
            while at > 0 and self._sorted[at].end_line < line:
                at = self._outer[at]
            while at not in found:
                found.add(at)
                at = self._outer[at]
        return [self._sorted[at] for at in sorted(found)]

    def _sort(self) -> None:
        self._starts = sorted(self._known)
        self._sorted = [self._known[line] for line in self._starts]
        self._outer = []
        open_ones = [-1]
        for at, function in enumerate(self._sorted):
            while open_ones[-1] > 0 and self._sorted[open_ones[-1]].end_line < function.line:
                open_ones.pop()
            self._outer.append(open_ones[-1])
            open_ones.append(at)
