"""Each finding with its source line, its worker-init path and its fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepcause.lint.source import NEWLINE, decode
from keepcause.report.text import place, printable, shown_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from keepcause.lint.engine import FileReport
    from keepcause.lint.finding import Finding, WorkerInit


def render(reports: Sequence[FileReport]) -> str:
    """A block a finding, with an empty line after it."""
    lines: list[str] = []
    for report in reports:
        if report.findings:
            source = NEWLINE.split(decode(report.data)[0])
            for finding in report.findings:
                lines += [f"{place(report.path, finding)}: {finding.code} {printable(finding.message)}"]
                lines += [*_excerpt(finding, source), *_path(finding.worker_init), *_fix(finding), ""]
    return "".join(f"{line}\n" for line in lines)


def _excerpt(finding: Finding, source: Sequence[str]) -> Iterator[str]:
    span = finding.span
    line = source[span.line - 1]
    end = span.end_column if span.end_line == span.line else len(line.rstrip())
    before = "".join("\t" if character == "\t" else " " for character in line[: span.column])
    number = str(span.line)
    margin = " " * len(number)
    yield f"{margin} |"
    yield f"{number} | {printable(line)}".rstrip()
    yield f"{margin} | {before}{'^' * max(end - span.column, 1)}"
    if finding.span.end_line > span.line:
        yield f"{margin} | ... to line {span.end_line}"


def _path(evidence: WorkerInit | None) -> Iterator[str]:
    if evidence is not None:
        yield f"  = worker-init path ({evidence.grade}):"
        for step in evidence.path:
            where = f"{shown_path(step.file)}:{step.line}"
            yield f"      {printable(step.function)}  {where}  {printable(step.why)}"


def _fix(finding: Finding) -> Iterator[str]:
    if finding.fix is not None:
        yield f"  = fix ({finding.fix.safety}): {finding.fix.title}"
    if finding.no_fix:
        yield f"  = {'not repaired' if finding.fix else 'no fix'}: {finding.no_fix}"
