"""What the formats for people share; imports the linter's data only."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from keepcause.lint.finding import Finding

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """`text` without characters that steer a terminal, and bytes of a file's name that are none: shown as escapes."""
    return _CONTROL.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return match[0].encode("unicode_escape").decode("ascii")


def shown_path(path: str | Path) -> str:
    """`path` relative to the working directory where it lies below it."""
    name = os.fspath(path)
    relative = os.path.relpath(name)
    above = relative == os.pardir or relative.startswith(os.pardir + os.sep)
    return printable(name if above else relative)


def place(path: str | Path, finding: Finding) -> str:
    """`path:row:column` of a finding, counting columns from 1."""
    return f"{shown_path(path)}:{finding.span.line}:{finding.span.column + 1}"
