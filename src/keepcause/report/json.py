"""A JSON list of objects, with ruff's keys and `worker_init`."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from keepcause.lint.noqa import Suppressions

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from keepcause.lint.checked import FileReport
    from keepcause.lint.finding import Finding, WorkerInit


def render(reports: Sequence[FileReport]) -> str:
    """Rows and columns count from 1; file names are absolute; `noqa_row` is where `--add-noqa` puts a comment."""
    found = []
    for report in reports:
        if report.findings:
            place = Suppressions(report.text).place
            found += [_finding(report.path, finding, place(finding)) for finding in report.findings]
    return json.dumps(found, indent=2) + "\n"


def _finding(path: Path, finding: Finding, noqa_row: int) -> dict[str, object]:
    span, fix = finding.span, finding.fix
    return {
        "code": finding.code,
        "message": finding.message,
        "filename": os.path.abspath(path),
        "location": {"row": span.line, "column": span.column + 1},
        "end_location": {"row": span.end_line, "column": span.end_column + 1},
        "noqa_row": noqa_row or None,
        "fix": {"applicability": fix.safety.value, "message": fix.title} if fix else None,
        "url": None,
        "worker_init": _worker_init(finding.worker_init) if finding.worker_init else None,
    }


def _worker_init(evidence: WorkerInit) -> dict[str, object]:
    return {
        "grade": evidence.grade.value,
        "path": [
            {"function": step.function, "file": step.file, "line": step.line, "why": step.why} for step in evidence.path
        ],
    }
