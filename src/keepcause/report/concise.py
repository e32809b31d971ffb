"""One line a finding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepcause.lint.finding import Safety
from keepcause.report.text import headline

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from keepcause.lint.checked import FileReport
    from keepcause.lint.finding import Finding


def render(reports: Sequence[FileReport]) -> str:
    """`path:row:column: CODE [*] message`, where `[*]` marks a safe fix."""
    return "".join(_line(report.path, finding) for report in reports for finding in report.findings)


def _line(path: Path, finding: Finding) -> str:
    safe = finding.fix is not None and finding.fix.safety is Safety.SAFE
    return f"{headline(path, finding, '[*]' if safe else '')}\n"
