"""`check --verbose`: why a file was not looked into, and what configures how many; imports linter, report, session."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

from keepcause.lint.engine import looking
from keepcause.lint.noqa import Suppressions
from keepcause.report.text import shown_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from keepcause.commands.session import Session
    from keepcause.lint.checked import FileReport
    from keepcause.lint.engine import Engine

_EXCLUDED = "excluded by the configuration"
_LEFT_OUT = "left out by a comment for the whole file"
_NOTHING = "not parsed, as nothing in it can be a finding"
_CHECKED = "checked"


def told(this: Session, paths: Iterable[Path]) -> Iterator[FileReport]:
    """Every file that could be checked; the error stream is told what became of each other one, and the counts."""
    counts: Counter[str] = Counter()

    def tell(path: Path | str, what: str) -> None:
        counts[what] += 1
        if what != _CHECKED:
            _say(path, what)

    for engine, report in this.reports_one_by_one(paths, lambda path: tell(path, _EXCLUDED)):
        tell(report.path, _fate(engine, report))
        file = this.run.configured_by(report.path)
        counts[f"configured by {shown_path(file) if file else 'no file'}"] += 1
        yield report
    for what, count in sorted(counts.items()):
        print(f"{count} {what}", file=sys.stderr)


def listed(this: Session, paths: Iterable[Path]) -> Iterator[str]:
    """Every file that would be checked; the error stream is told of each that is excluded."""
    return this.files(paths, lambda path: _say(path, _EXCLUDED))


def _say(path: Path | str, what: str) -> None:
    print(f"{shown_path(path)}: {what}", file=sys.stderr)


def _fate(engine: Engine, report: FileReport) -> str:
    program = engine.program(report.path)
    if not looking(report.data, engine.settings, program.generators if program else frozenset()):
        return _NOTHING
    return _LEFT_OUT if Suppressions(report.text).whole_file else _CHECKED
