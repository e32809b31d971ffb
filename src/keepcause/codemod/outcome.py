"""What became of the findings of many files, and how that is told; imports the linter and this room."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from keepcause.codemod.apply import repair_file
from keepcause.codemod.dependency import NAME, is_declared
from keepcause.lint.checked import FileReport
from keepcause.lint.files import program_root
from keepcause.lint.finding import EditKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.codemod.apply import Allowed
    from keepcause.lint.engine import Engine


class Outcome:
    """Counts what is repaired, left and failed; `left` holds what check would now report."""

    def __init__(self, allowed: Allowed) -> None:
        self.left: list[FileReport] = []
        self.repaired: dict[Path, Counter[str]] = {}
        """Each file with something repaired: code -> how many of its findings."""
        self._importing: set[Path] = set()
        self._allowed = allowed
        self._left: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._failed: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def add(self, engine: Engine, report: FileReport) -> bytes:
        """Repair one file's findings in memory; returns its new bytes."""
        result = repair_file(report, engine, self._allowed)
        if result.applied:
            self.repaired[report.path] = Counter(finding.code for finding in result.applied)
        edits = [edit for finding in result.applied if finding.fix for edit in finding.fix.edits]
        if any(edit.kind is EditKind.ADD_IMPORT and edit.text.startswith(f"{NAME}:") for edit in edits):
            self._importing.add(report.path)
        for counts, items in ((self._left, result.left), (self._failed, result.failed)):
            for item in items:
                counts[item.finding.code][item.reason] += 1
        if result.remaining:
            self.left.append(FileReport(report.path, result.data, result.remaining))
        return result.data

    def take_back(self, path: Path, reason: str) -> None:
        """Count what was repaired in a file as failed, as the file could not be written."""
        self._importing.discard(path)
        for code, count in self.repaired.pop(path, Counter()).items():
            self._failed[code][reason] += count

    def undeclared(self) -> Iterator[Path]:
        """The roots of the programs that now import keepcause without declaring that they depend on it."""
        for root in sorted({program_root(Path(os.path.abspath(path))) for path in self._importing}):
            if not is_declared(root):
                yield root

    def summary(self, repaired: str) -> str:
        """Counts per rule, a line each, with the reasons for what is not repaired below it; empty if there is none."""
        total = sum(self.repaired.values(), Counter[str]())
        lines = []
        for code in sorted({*total, *self._left, *self._failed}):
            left, failed = self._left[code], self._failed[code]
            parts = [f"{total[code]} {repaired}", f"{left.total()} left"]
            if failed:
                parts.append(f"{failed.total()} failed")
            lines.append(f"{code}: {', '.join(parts)}")
            lines += [f"  {count} left: {reason}" for reason, count in left.most_common()]
            lines += [f"  {count} failed: {reason}" for reason, count in failed.most_common()]
        return "\n".join(lines)
