"""Repair copies of whole source trees with every rule and judge what came out: `make sweep TREES="vllm ray"`.

Without trees it takes the standard library and the packages of the virtual environment. For each tree it prints what
was repaired and left, and every result that the judge refuses; a second run over what was changed has to change
nothing. Ends with exit code 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from judge import WrongError, judge

from keepcause.lint.checked import FileReport
from keepcause.lint.engine import Engine, Settings
from keepcause.lint.rule import all_rules

if TYPE_CHECKING:
    from keepcause.lint.finding import Span

CODES = [rule.code for rule in all_rules()]
SKIPPED = (".git", "__pycache__", "site-packages")
"""Folders inside of a tree that are none of its own."""
MARKS = ("pyproject.toml", "setup.py", "setup.cfg")


def main() -> int:
    """Sweep the trees that the command line names; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("trees", nargs="*", type=Path, metavar="TREE")
    wrong = 0
    for tree in parser.parse_args().trees or map(Path, map(sysconfig.get_path, ("stdlib", "purelib"))):
        with tempfile.TemporaryDirectory(prefix="sweep-") as folder:
            complaints = sweep(tree, Path(folder))
        print(*(f"WRONG {complaint}" for complaint in complaints), sep="\n", flush=True)
        wrong += len(complaints)
    print(f"{wrong} wrong")
    return 1 if wrong else 0


def sweep(tree: Path, folder: Path) -> list[str]:
    """What is wrong with the repairs of `tree`, made in a copy below `folder`."""
    start = time.monotonic()
    old, new = (_copied(tree, folder / name / tree.name) for name in ("old", "new"))
    complaints, said = _fix([new])
    changed = [
        path for path in sorted(new.rglob("*.py")) if path.read_bytes() != (old / path.relative_to(new)).read_bytes()
    ]
    engine = Engine(Settings(codes=frozenset(CODES)))
    for path in changed:
        name = path.relative_to(new)
        try:
            judge((old / name).read_bytes(), path.read_bytes(), _places(engine, old / name))
        except WrongError as error:
            complaints.append(f"{tree / name}: {error}")
    after = {path: path.read_bytes() for path in changed}
    if changed:
        again, _ = _fix(changed)
        complaints += again
    complaints += [f"{path}: a second run changes it" for path in changed if path.read_bytes() != after[path]]
    complaints += [str(path) for path in new.rglob(".keepcause*")]
    print(f"{tree}: {len(changed)} files changed, {time.monotonic() - start:.0f} s\n{said}", end="")
    return complaints


def _copied(tree: Path, to: Path) -> Path:
    """A copy of the tree's Python files and what marks its programs' roots."""

    def others(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if not _is_kept(Path(folder, name))]

    shutil.copytree(tree, to, ignore=others)
    for path in to.rglob("*"):
        path.chmod(path.stat().st_mode | 0o200)
    return to


def _is_kept(path: Path) -> bool:
    if path.is_symlink() or path.name in SKIPPED:
        return False
    return path.is_dir() or path.suffix == ".py" or path.name in MARKS


def _fix(paths: list[Path]) -> tuple[list[str], str]:
    """Run `keepcause fix`; returns what is wrong with the run itself, and what it says at its end."""
    command = [
        sys.executable,
        "-m",
        "keepcause",
        "fix",
        "--isolated",
        "--unsafe-fixes",
        "--structured",
        "--output-format",
        "json",
    ]
    done = subprocess.run([*command, "--select", ",".join(CODES), *paths], capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if not line.startswith("keepcause: ")]
    if done.returncode not in (0, 1, 2) or "Traceback" in done.stderr:
        return [f"exit code {done.returncode}: {done.stderr[-2000:]}"], ""
    failed = [line for line in said if " failed: " in line]
    return failed, "".join(f"{line}\n" for line in said)


def _places(engine: Engine, path: Path) -> set[Span]:
    report = engine.check(path)
    assert isinstance(report, FileReport)
    return {edit.statement for finding in report.findings if finding.fix for edit in finding.fix.edits}


if __name__ == "__main__":
    sys.exit(main())
