"""Measure `keepcause fix` against a LibCST command that changes nothing, over the same files of the same tree.

`python benchmarks/codemod.py TREE FOLDER` copies TREE, a program's root such as a folder that holds vllm, and has
FOLDER below it (`vllm/v1`) repaired with the default rules; LibCST runs in one process, as keepcause does. The two take
turns, the best of the rounds counts. Ends with 1 where keepcause takes more than a tenth of LibCST's time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from libcst.codemod import VisitorBasedCodemodCommand

if TYPE_CHECKING:
    import libcst as cst

ROUNDS = 3
MOST = 0.1


class Nothing(VisitorBasedCodemodCommand):
    """Looks at every `raise` and leaves it as it is."""

    DESCRIPTION = "Change nothing."

    def leave_Raise(self, original_node: cst.Raise, updated_node: cst.Raise) -> cst.Raise:  # noqa: N802 - LibCST's own spelling
        """Return the statement as it was."""
        return updated_node


KEEPCAUSE = ("keepcause", "fix", "--isolated", "--quiet")
LIBCST = ("libcst.tool", "codemod", "--no-format", "-j1", "--hide-progress", "-x", "codemod.Nothing")


def main() -> int:
    """Print both times and their ratio; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tree", type=Path)
    parser.add_argument("folder", type=Path, help="the folder to repair, below the tree")
    options = parser.parse_args()
    times: dict[tuple[str, ...], list[float]] = {KEEPCAUSE: [], LIBCST: []}
    for _ in range(ROUNDS):
        for command, spent in times.items():
            with tempfile.TemporaryDirectory() as folder:
                copy = Path(folder, "tree")
                shutil.copytree(options.tree, copy)
                spent.append(_seconds(command, copy, options.folder))
    files = len(list((options.tree / options.folder).rglob("*.py")))
    ours, theirs = (min(spent) for spent in times.values())
    print(f"{files} files: keepcause fix {ours:.2f} s, LibCST doing nothing {theirs:.2f} s: {ours / theirs:.3f}")
    return 0 if ours <= MOST * theirs else 1


def _seconds(command: tuple[str, ...], tree: Path, folder: Path) -> float:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path[1:]])}
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", *command, folder], cwd=tree, env=environment, capture_output=True, check=False
    )
    spent = time.perf_counter() - start
    # What is left after the repair makes `fix` end with 1.
    if done.returncode not in (0, 1):
        sys.exit(done.stderr.decode())
    return spent


if __name__ == "__main__":
    sys.exit(main())
