"""A line on the terminal that counts the files of a long run; standard library only."""

from __future__ import annotations

import sys
import time

_PATIENCE = 1.0
"""Seconds that a run lasts before it counts."""
_PAUSE = 0.1
"""Seconds between two numbers."""


class Progress:
    """Says on the error stream how far a long run is, where that is a terminal; else nothing."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._shown = False
        self._next = time.monotonic() + _PATIENCE if sys.stderr.isatty() else float("inf")

    def advance(self) -> None:
        """Count one more file."""
        self._done += 1
        if time.monotonic() >= self._next:
            print(f"\r{self._done:,} of {self._total:,} files", end="", file=sys.stderr, flush=True)
            self._shown = True
            self._next = time.monotonic() + _PAUSE

    def clear(self) -> None:
        """Take the line away, so that something else can be printed."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._shown = False
