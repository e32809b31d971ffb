"""A workflow command for each finding, which GitHub Actions shows at its line; imports the linter's data only."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from keepcause.report.location import text
from keepcause.report.text import place, printable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from keepcause.lint.checked import FileReport
    from keepcause.lint.finding import Finding

_IN_TEXT = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTY = _IN_TEXT | str.maketrans({":": "%3A", ",": "%2C"})


def render(reports: Sequence[FileReport]) -> str:
    """`::error file=...,line=...,col=...,title=...::path:row:column: CODE message`, a line each.

    The file's name is absolute: GitHub knows where its workspace is, but not in which folder of it this runs.
    """
    return "".join(_command(report.path, finding) for report in reports for finding in report.findings)


def _command(path: Path, finding: Finding) -> str:
    span = finding.span
    properties = {
        "file": text(os.fsencode(os.path.abspath(path))),
        "line": span.line,
        "col": span.column + 1,
        "endLine": span.end_line,
        "endColumn": span.end_column + 1,
        "title": f"keepcause {finding.code}",
    }
    listed = ",".join(f"{key}={printable(str(value).translate(_IN_PROPERTY))}" for key, value in properties.items())
    message = f"{place(path, finding)}: {finding.code} {printable(finding.message)}"
    return f"::error {listed}::{message.translate(_IN_TEXT)}\n"
