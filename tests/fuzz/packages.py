"""Check whole packages with every rule, then repair them: `make sweep-packages TREES="wheels/*"`.

For each tree it prints how many files there are, how many findings, and which file took longest; what is wrong is a
file that can't be checked for a reason of ours, one that takes longer than 2 s, and a finding that the screens drop.
Then the tree is swept as `make sweep` does. The standard library comes first. Ends with exit code 1 if anything is
wrong.
"""

from __future__ import annotations

import argparse
import gc
import sys
import sysconfig
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from sweep import CODES, sweep
from unscreened import unscreened

from keepcause.lint.checked import FileReport, Trouble
from keepcause.lint.engine import Engine, Settings
from keepcause.lint.files import Tree

LONGEST = 2.0
"""Seconds that one file may take, its program aside."""
SETTINGS = Settings(codes=frozenset(CODES))


@dataclass
class Total:
    """What was found in one tree, or in all of them."""

    files: int = 0
    findings: int = 0
    refused: int = 0
    slowest: tuple[float, str] = (0.0, "")
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Total) -> None:
        """Count what is in `other` as well."""
        self.files += other.files
        self.findings += other.findings
        self.refused += other.refused
        self.slowest = max(self.slowest, other.slowest)
        self.wrong += other.wrong

    def __str__(self) -> str:
        slowest = f"{self.slowest[0]:.2f} s for {self.slowest[1]}"
        return f"{self.files} files, {self.findings} findings, {self.refused} refused, at most {slowest}"


def main() -> int:
    """Go through the trees that the command line names; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("trees", nargs="*", type=Path, metavar="TREE")
    parser.add_argument("--check-only", action="store_true", help="repair nothing")
    options = parser.parse_args()
    gc.disable()  # as the command does
    total = Total()
    trees = [Path(sysconfig.get_path("stdlib")), *options.trees]
    for tree in trees:
        this = checked(tree)
        if not options.check_only:
            with tempfile.TemporaryDirectory(prefix="sweep-") as folder:
                this.wrong += sweep(tree, Path(folder))
        print(f"{tree}: {this}", *(f"WRONG {complaint}" for complaint in this.wrong), sep="\n", flush=True)
        total.add(this)
        gc.collect()
    print(f"{len(trees)} trees: {total}\n{len(total.wrong)} wrong")
    return 1 if total.wrong else 0


def checked(tree: Path) -> Total:
    """Check every file of `tree` with and without the screens."""
    total = Total()
    names = [name for name in Tree().python_files(tree) if "site-packages" not in name]
    engine = Engine(SETTINGS)
    reports = []
    for number, name in enumerate(names):
        start = time.process_time()
        reports.append(engine.check(tree / name))
        if number:  # the first one reads the program
            total.slowest = max(total.slowest, (time.process_time() - start, str(tree / name)))
    if total.slowest[0] > LONGEST:
        total.wrong.append(f"{total.slowest[1]}: takes {total.slowest[0]:.1f} s")
    with unscreened():
        whole = Engine(SETTINGS)
        for name, report in zip(names, reports, strict=True):
            total.wrong += _differences(tree / name, report, whole.check(tree / name))
    total.files = len(names)
    total.refused = sum(isinstance(report, Trouble) for report in reports)
    total.findings = sum(len(report.findings) for report in reports if isinstance(report, FileReport))
    return total


def _differences(path: Path, report: FileReport | Trouble, whole: FileReport | Trouble) -> list[str]:
    """What is wrong with a report, seen beside the one that no screen had a part in."""
    if isinstance(report, Trouble) and "internal error" in report.reason:
        return [str(report)]
    if isinstance(whole, Trouble):
        return [] if isinstance(report, Trouble) or not report.findings else [f"{path}: found in what can't be parsed"]
    found = report.findings if isinstance(report, FileReport) else ()
    return [] if found == whole.findings else [f"{path}: {len(found)} of {len(whole.findings)} findings"]


if __name__ == "__main__":
    sys.exit(main())
