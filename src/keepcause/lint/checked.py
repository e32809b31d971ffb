"""What becomes of a file: its findings, or why it could not be checked; imports what reads source when it is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from keepcause.lint.finding import Finding


@dataclass(frozen=True)
class Trouble:
    """A path that could not be checked, and why; `line` is 0 where no line is known.

    `passing` tells more of us than of the file: another try may go well.
    """

    path: str
    reason: str
    line: int = 0
    passing: bool = False

    def __str__(self) -> str:
        """One line for the error stream."""
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.reason}"


@dataclass(frozen=True)
class FileReport:
    """What one file holds: its bytes as they were read, and its findings by position."""

    path: Path
    data: bytes
    findings: tuple[Finding, ...]

    @property
    def text(self) -> str:
        """What the bytes say; raises SourceError."""
        from keepcause.lint.source import decode

        return decode(self.data)[0]

    @property
    def lines(self) -> list[str]:
        """The physical lines as Python counts them, without their ends; raises SourceError."""
        from keepcause.lint.source import NEWLINE

        return NEWLINE.split(self.text)


def unreadable(path: str | Path, error: OSError) -> Trouble:
    """What there is to say of a file or folder that can't be read."""
    return Trouble(str(path), f"can't be read: {error.strerror or error}", passing=True)
