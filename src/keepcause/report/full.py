"""Each finding with its source line, its worker-init path and its fix."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from keepcause.report.text import FRAME, HINT, MARK, headline, printable, shown_path, styled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from keepcause.lint.checked import FileReport
    from keepcause.lint.finding import Finding, WorkerInit


def render(reports: Sequence[FileReport]) -> str:
    """A block a finding, with an empty line after it."""
    lines: list[str] = []
    for report in reports:
        if report.findings:
            source = report.lines
            for finding in report.findings:
                lines += [headline(report.path, finding)]
                lines += [*_excerpt(finding, source), *_path(finding.worker_init)]
                lines += [_hint("note", finding.note)] if finding.note else []
                lines += [*_fix(finding), ""]
    return "".join(f"{line}\n" for line in lines)


def _excerpt(finding: Finding, source: Sequence[str]) -> Iterator[str]:
    """The first and the last line of the span, underlined."""
    span = finding.span
    width = len(str(span.end_line))
    yield styled(f"{'':{width}} |", FRAME)
    for number in dict.fromkeys((span.line, span.end_line)):
        line = source[number - 1]
        start = span.column if number == span.line else len(line) - len(line.lstrip())
        end = span.end_column if number == span.end_line else len(line.rstrip())
        if number > span.line + 1:
            yield "..."
        yield f"{styled(f'{number:{width}} |', FRAME)} {_shown(line)}".rstrip()
        underline = "^" * max(_columns(line[start:end]), 1)
        yield f"{styled(f'{chr(32):{width}} |', FRAME)} {' ' * _columns(line[:start])}{styled(underline, MARK)}"


def _shown(text: str) -> str:
    return printable(text.replace("\t", "    "))


def _columns(text: str) -> int:
    """How many columns of a terminal `text` takes."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(_shown(text)) + wide - sum(unicodedata.combining(character) > 0 for character in text)


def _path(evidence: WorkerInit | None) -> Iterator[str]:
    if evidence is not None:
        yield _hint(f"worker-init path ({evidence.grade})", "").rstrip()
        for step in evidence.path:
            where = f"{shown_path(step.file)}:{step.line}"
            yield f"      {printable(step.function)}  {where}  {printable(step.why)}"


def _fix(finding: Finding) -> Iterator[str]:
    if finding.fix is not None:
        yield _hint(f"fix ({finding.fix.safety})", finding.fix.title)
    if finding.no_fix:
        yield _hint("not repaired" if finding.fix else "no fix", finding.no_fix)


def _hint(what: str, text: str) -> str:
    return f"  {styled(f'= {what}:', HINT)} {printable(text)}"
