"""`check --add-noqa`: a comment to every finding, so that only new ones fail; imports linter, codemod and session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepcause.codemod.annotate import annotate
from keepcause.codemod.write import WriteError, write
from keepcause.lint.checked import Trouble
from keepcause.lint.source import Source
from keepcause.report.text import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from keepcause.commands.session import Session
    from keepcause.lint.checked import FileReport


def add_noqa(this: Session, reports: Sequence[FileReport], *, quiet: bool) -> int:
    """Change the files and say how many findings that concerns; returns 0, or 2 where there was trouble."""
    findings = files = 0
    for report in reports:
        try:
            data, left = annotate(Source(report.data, str(report.path)), report.findings)
            if data != report.data:
                write(report.path, report.data, data)
                findings += len(report.findings) - len(left)
                files += 1
        except WriteError as error:
            this.complain(Trouble(str(report.path), f"not changed: {error}"))
            continue
        for finding in left:
            this.complain(Trouble(str(report.path), f"no comment can keep {finding.code} quiet", finding.span.line))
    if not quiet:
        print(f"Added `# noqa` comments for {counted(findings, 'finding')} in {counted(files, 'file')}.")
    return this.exit_code(False)
