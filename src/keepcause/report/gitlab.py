"""GitLab's code quality report, a JSON list; imports the linter's data only."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from keepcause.report.location import fingerprinted, named, repository, text
from keepcause.report.text import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from keepcause.lint.checked import FileReport


def render(reports: Sequence[FileReport]) -> str:
    """File names are relative to the repository, as GitLab asks."""
    root = repository()
    found = [
        {
            "description": f"{finding.code}: {printable(finding.message)}",
            "check_name": finding.code,
            "fingerprint": fingerprint,
            "severity": "major",
            "location": {
                "path": text(named(root, report.path)),
                "lines": {"begin": finding.span.line, "end": finding.span.end_line},
            },
        }
        for report, finding, fingerprint in fingerprinted(root, reports)
    ]
    return json.dumps(found, indent=2) + "\n"
