"""The command `check`: print findings and sum them up; imports linter and session."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from keepcause.commands import session
from keepcause.commands.inputs import inputs
from keepcause.lint.finding import Safety

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from keepcause.lint.finding import Finding


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options to its parser."""
    session.add_options(parser)


def run(options: argparse.Namespace) -> int:
    """Print what is found; returns 1 where something is, 2 where there was trouble."""
    asked = inputs(options)
    this = session.Session(options, asked.given)
    reports = [report for _, report in this.reports(asked.paths) if report.findings]
    this.print(reports)
    findings = [finding for report in reports for finding in report.findings]
    if this.output_format != "json" and not options.quiet:
        print(_summary(findings, this.troubled, this.here["unsafe-fixes"]))
    return this.exit_code(bool(findings))


def _summary(findings: Sequence[Finding], troubled: bool, unsafe_too: bool) -> str:
    if not findings:
        return "Nothing found in what could be checked." if troubled else "Nothing found."
    safety = Counter(finding.fix.safety for finding in findings if finding.fix is not None)
    safe, unsafe = safety[Safety.SAFE], safety[Safety.UNSAFE]
    if unsafe_too:
        safe, unsafe = safe + unsafe, 0
    text = f"Found {len(findings)} finding{'s' if len(findings) > 1 else ''}."
    if safe:
        text += f" `keepcause fix` repairs {safe}."
    if unsafe:
        text += f" `keepcause fix --unsafe-fixes` repairs {unsafe}{' more' if safe else ''}."
    return text
