"""Blocks of lines, such as functions, and which of them are around a line; standard library only."""

from __future__ import annotations

import bisect
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable


class Block(Protocol):
    """What begins and ends in a line."""

    @property
    def line(self) -> int:
        """Its first line."""

    @property
    def end_line(self) -> int:
        """Its last line."""


B = TypeVar("B", bound=Block)


class Nesting(Generic[B]):
    """Blocks of one file as they lie in one another; no two begin in one line, and the first is around all others."""

    def __init__(self) -> None:
        self._known: dict[int, B] = {}
        self._starts: list[int] = []
        self._sorted: list[B] = []
        self._outer: list[int] = []
        """Of each block in `_sorted` the place of the one right around it; -1 of the first."""

    def add(self, block: B) -> bool:
        """Take one over; whether none begins in its line yet."""
        return self._known.setdefault(block.line, block) is block

    def around(self, lines: Iterable[int]) -> list[B]:
        """The first, and the blocks around one of `lines`, by line."""
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
        for at, block in enumerate(self._sorted):
            while open_ones[-1] > 0 and self._sorted[open_ones[-1]].end_line < block.line:
                open_ones.pop()
            self._outer.append(open_ones[-1])
            open_ones.append(at)
