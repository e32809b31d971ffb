"""Measure the linter beside ruff, flake8, flake8-bugbear and `ast.parse` over one tree; standard library only.

`python benchmarks/lint.py TREE` has all commands take turns for some rounds and prints, as a table, the medians of the
rounds' ratios, a round being the mean of two runs. Processor time is that of a command and its children, memory that of
its largest process. The commands run in environments of their own, which are made once below `build/bench`. Ends with 1
where an aim is missed.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = {
    "keepcause": (f"{ROOT}[all]",),
    "plain": ("flake8", "ruff"),
    "bugbear": ("flake8", "flake8-bugbear"),
}
"""Each environment's folder below `build/bench`, and what is installed in it."""
PIP = ("-m", "pip", "install", "-qq", "--disable-pip-version-check")

ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
"""Of the commands: one that keeps Python from writing bytecode would have all modules compiled each time."""

COPIES = (1, 2, 4, 8)
MOST_MEGABYTES = 300
PARSE = "import ast, pathlib, sys\nfor path in pathlib.Path(sys.argv[1]).rglob('*.py'): ast.parse(path.read_bytes())"

ALONE, FULL, COLD, WARM, EDITED = (
    f"keepcause check{how}"
    for how in (" --single-file --no-cache", " --no-cache", ", empty cache", ", full cache", ", one file changed")
)
RUFF, RUFF_COLD, RUFF_WARM = (f"ruff B904{how}" for how in (" --no-cache", ", empty cache", ", full cache"))
VERSION, START, PARSED = "keepcause --version", "python -c pass", "ast.parse of all files"
FLAKE8, WITH_KEEPCAUSE, WITH_BUGBEAR = "flake8", "flake8 with keepcause", "flake8 with bugbear"
GROWTH = {number: f"keepcause check --no-cache, copies: {number}" for number in COPIES}

PAIRS = (
    (ALONE, RUFF, "CPU", 1.0),
    (FULL, RUFF, "wall", 3.0),
    (COLD, RUFF_COLD, "", 0),
    (WARM, RUFF_WARM, "", 0),
    (WARM, START, "more", 0.2),
    (EDITED, FULL, "", 0),
    (VERSION, START, "", 0),
    (ALONE, PARSED, "", 0),
    (WITH_KEEPCAUSE, FLAKE8, "CPU", 1.02),
    (WITH_BUGBEAR, FLAKE8, "", 0),
    *((GROWTH[number], GROWTH[1], "wall" if number == COPIES[-1] else "", number + 0.5) for number in COPIES[1:]),
)
"""What is set beside what, and what is aimed at: a ratio of processor or wall time, or seconds more, at most."""


@dataclass(frozen=True)
class Command:
    """A command, and what happens before it runs: a cache's folder is removed, the next of some files gets a line."""

    arguments: Sequence[object]
    emptied: Path | None = None
    edited: Iterator[Path] | None = None


@dataclass(frozen=True)
class Cost:
    """Seconds, and megabytes of the largest process."""

    wall: float
    cpu: float
    memory: float

    def mean(self, other: Cost) -> Cost:
        """The mean of both, but the larger memory."""
        wall, cpu = (self.wall + other.wall) / 2, (self.cpu + other.cpu) / 2
        return Cost(wall, cpu, max(self.memory, other.memory))


@dataclass(frozen=True)
class Pair:
    """Two commands' costs in the same rounds."""

    ours: Sequence[Cost]
    peer: Sequence[Cost]

    def value(self, kind: str) -> float:
        """The median of the rounds' ratios of `CPU` or `wall` time, or of the seconds `more`."""
        rounds = zip(self.ours, self.peer, strict=True)
        if kind == "more":
            return median(ours.wall - peer.wall for ours, peer in rounds)
        return median(ours.cpu / peer.cpu if kind == "CPU" else ours.wall / peer.wall for ours, peer in rounds)


@functools.cache
def environments() -> dict[str, Path]:
    """Each environment's folder of programs; those that are not there are made, and keepcause is installed anew."""
    found = {}
    for name, packages in ENVIRONMENTS.items():
        folder = ROOT / "build" / "bench" / name
        found[name] = folder / "bin"
        if not (folder / "made").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
            subprocess.run([str(found[name] / "python"), *PIP, *packages], check=True)
            (folder / "made").touch()
    # Not as editable: while it is measured, the source may change.
    again = ("--no-deps", "--force-reinstall", str(ROOT))
    subprocess.run([str(found["keepcause"] / "python"), *PIP, *again], check=True)
    return found


def run(command: Command) -> Cost:
    """Run the command to its end; ends all where it fails. That it finds something is no failure."""
    if command.emptied:
        shutil.rmtree(command.emptied, ignore_errors=True)
    if command.edited:
        with next(command.edited).open("ab") as file:
            file.write(b"\n# one more line\n")
    arguments = [str(argument) for argument in command.arguments]
    with tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=errors, env=ENVIRONMENT)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1):
            errors.seek(0)
            sys.exit(
                f"{' '.join(arguments)}\nended with {process.returncode}: {errors.read().decode(errors='replace')}"
            )
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3)


def commands(tree: Path, files: Sequence[Path], folder: Path) -> dict[str, Command]:
    """What is measured: the linters over `tree`, flake8 over `files`; copies and caches go to `folder`."""
    places = environments()
    python, keepcause = places["keepcause"] / "python", places["keepcause"] / "keepcause"
    check = (keepcause, "check", "--isolated")
    ruff = (places["plain"] / "ruff", "check", "--isolated", "--select", "B904")
    flake8 = ("-m", "flake8", "--isolated", "-j1", *files)
    caches = [("--cache-dir", folder / name) for name in ("cold", "warm", "ruff-cold", "ruff-warm", "edited")]
    copies = [folder / "copies" / str(number) for number in range(max(COPIES))]
    for copy in copies:
        shutil.copytree(tree, copy / tree.name, ignore=shutil.ignore_patterns("__pycache__"))
    edited = sorted(copies[-1].rglob("*.py"))
    return {
        START: Command((python, "-c", "pass")),
        VERSION: Command((keepcause, "--version")),
        FULL: Command((*check, "--no-cache", tree)),
        RUFF: Command((*ruff, "--no-cache", tree)),
        ALONE: Command((*check, "--single-file", "--no-cache", tree)),
        COLD: Command((*check, *caches[0], tree), emptied=folder / "cold"),
        RUFF_COLD: Command((*ruff, *caches[2], tree), emptied=folder / "ruff-cold"),
        WARM: Command((*check, *caches[1], tree)),
        RUFF_WARM: Command((*ruff, *caches[3], tree)),
        EDITED: Command((*check, *caches[4], copies[-1]), edited=itertools.cycle(edited[:: len(edited) // 10])),
        PARSED: Command((python, "-W", "ignore", "-c", PARSE, tree)),
        FLAKE8: Command((places["plain"] / "python", *flake8)),
        WITH_KEEPCAUSE: Command((python, *flake8)),
        WITH_BUGBEAR: Command((places["bugbear"] / "python", *flake8)),
        **{GROWTH[number]: Command((*check, "--no-cache", *copies[:number])) for number in COPIES},
    }


def take_turns(measured: Mapping[str, Command], rounds: int) -> dict[str, list[Cost]]:
    """The costs of each command in each round; every round begins with another one.

    A round goes there and back, so that a machine that becomes slower or quicker meanwhile does so for all.
    """
    for name in (FULL, WARM, RUFF_WARM, EDITED):  # so that files and caches are where they will be
        run(measured[name])
    costs: dict[str, list[Cost]] = {name: [] for name in measured}
    order = list(measured)
    for number in range(rounds):
        there = {name: run(measured[name]) for name in order}
        back = {name: run(measured[name]) for name in reversed(order)}
        for name in order:
            costs[name].append(there[name].mean(back[name]))
        order = order[len(order) // 3 :] + order[: len(order) // 3]
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return costs


def table(costs: Mapping[str, Sequence[Cost]]) -> tuple[list[str], bool]:
    """The lines of the table, and whether all aims are met."""
    lines = ["| what | beside | CPU | wall | seconds | aim |", "|---|---|---|---|---|---|"]
    met = True
    for ours, peer, kind, most in PAIRS:
        pair = Pair(costs[ours], costs[peer])
        seconds = [median(cost.wall for cost in each) for each in (pair.ours, pair.peer)]
        aim = ""
        if kind:
            met &= pair.value(kind) <= most
            aim = f"{pair.value('more'):.2f} s more, at most {most}" if kind == "more" else f"{kind} at most {most}"
        ratios = " | ".join(f"{pair.value(each):.3f}" for each in ("CPU", "wall"))
        lines.append(f"| {ours} | {peer} | {ratios} | {seconds[0]:.3f}, {seconds[1]:.3f} | {aim} |")
    peak = max(cost.memory for cost in costs[FULL])
    lines.append(f"| {FULL} | memory: {peak:.0f} MB | | | | at most {MOST_MEGABYTES} MB |")
    return lines, met and peak <= MOST_MEGABYTES


def heading(tree: Path, rounds: int, subset: int) -> str:
    """When, where and over what it was measured, in one sentence."""
    sizes = [path.stat().st_size for path in tree.rglob("*.py")]
    ruff = subprocess.run([str(environments()["plain"] / "ruff"), "--version"], stdout=subprocess.PIPE, check=True)
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, {ruff.stdout.decode().strip()}"
    measured = f"`{tree.name}`, {len(sizes):,} files, {sum(sizes) / 1e6:.0f} MB; flake8 over {subset} of them"
    return f"{date.today():%Y-%m-%d}, {machine}: {measured}; {rounds} rounds."


def codemod(tree: Path, folder: str) -> tuple[str, bool]:
    """What benchmarks/codemod.py prints of repairing `folder` below `tree`, and whether it is content."""
    script = [environments()["keepcause"] / "python", ROOT / "benchmarks" / "codemod.py", tree, folder]
    done = subprocess.run([str(part) for part in script], stdout=subprocess.PIPE, text=True, check=False)
    return f"`{folder}`, {done.stdout.strip()}", done.returncode == 0


def main() -> int:
    """Measure, print and perhaps write; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tree", type=Path, help="a folder, such as a package of a wheel that was unpacked")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--flake8-files", type=int, default=1100, help="how many files, spread evenly, flake8 gets")
    parser.add_argument("--fix", metavar="FOLDER", help="have codemod.py repair this folder below the tree as well")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the results between the page's marks")
    options = parser.parse_args()
    tree = options.tree.resolve()
    everything = sorted(tree.rglob("*.py"))
    files = everything[:: -(-len(everything) // options.flake8_files)]
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        costs = take_turns(commands(tree, files, Path(folder)), options.rounds)
    lines, met = table(costs)
    lines = [heading(tree, options.rounds, len(files)), "", *lines]
    if options.fix:
        text, content = codemod(tree, options.fix)
        lines, met = [*lines, "", text], met and content
    results = "\n".join(lines)
    print(results)
    if options.write:
        before, mark, rest = options.write.read_text(encoding="utf-8").partition("<!-- results -->\n")
        after = rest[rest.index("<!-- /results -->") :]
        options.write.write_text(f"{before}{mark}{results}\n{after}", encoding="utf-8")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
