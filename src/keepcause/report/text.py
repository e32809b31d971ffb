"""What all that is printed shares: styles, paths, and text that steers no terminal; imports the linter's data only."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path
    from typing import TextIO

    from keepcause.lint.finding import Finding

BOLD, CODE, MARK, FRAME, HINT = "1", "1;31", "31", "34", "36"
"""Styles of a terminal."""
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def styled(text: str, style: str) -> str:
    """`text` in one of the styles; there is no other escape sequence in what is reported."""
    return f"\x1b[{style}m{text}\x1b[0m"


def plain(text: str) -> str:
    """`text` without styles."""
    return _STYLE.sub("", text)


def takes_styles(stream: TextIO) -> bool:
    """Whether styles are wanted there: on a terminal, unless NO_COLOR is set; FORCE_COLOR wants them in pipes too."""
    if os.environ.get("NO_COLOR") or stream not in (sys.stdout, sys.stderr):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def printable(text: str) -> str:
    """`text` without characters that steer a terminal, and bytes of a file's name that are none: shown as escapes."""
    return _CONTROL.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return match[0].encode("unicode_escape").decode("ascii")


def counted(number: int, noun: str) -> str:
    """`1 file` or `2 files`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def shown_path(path: str | Path) -> str:
    """`path` relative to the working directory where it lies below it."""
    name = os.fspath(path)
    relative = os.path.relpath(name)
    above = relative == os.pardir or relative.startswith(os.pardir + os.sep)
    shown = printable(name if above else relative)
    # A line that begins with two colons is a command to GitHub's runner.
    return f"./{shown}" if shown.startswith("::") else shown


def headline(path: str | Path, finding: Finding, mark: str = "") -> str:
    """`path:row:column: CODE message`, styled, with `mark` behind the code."""
    where, code = styled(place(path, finding), BOLD), styled(finding.code, CODE)
    return f"{where}: {code} {f'{styled(mark, HINT)} ' if mark else ''}{printable(finding.message)}"


def place(path: str | Path, finding: Finding) -> str:
    """`path:row:column` of a finding, counting columns from 1."""
    return f"{shown_path(path)}:{finding.span.line}:{finding.span.column + 1}"
