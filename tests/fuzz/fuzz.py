"""Fuzz parts of keepcause with changed real files: `make fuzz TARGETS="linter codemod" MINUTES=30`.

Each target runs for the given minutes; a case is made of the target's name, the seed and a number, and of the files to
start from, so that the same number gives the same case. How far a target has come stays in the folder, and the next run
with this seed goes on there. Prints how many cases there were, what became of them, and each new kind of failure with
what reproduces it. Ends with exit code 1 if anything failed.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import random
import resource
import sys
import time
import traceback
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fuzz_cases import Case, corpus
from targets import TARGETS

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST = 60
"""Seconds that one case may take; a longer one is a failure."""
MEMORY = 4 << 30
STDERR = 2


@dataclass
class State:
    """How far a target has come; the case before `next` may be running."""

    next: int = 0
    running: bool = False
    outcomes: dict[str, int] = field(default_factory=dict)
    failures: dict[str, list[int]] = field(default_factory=dict)
    """Each kind of failure, and the numbers of its cases."""

    @classmethod
    def read(cls, path: Path) -> State:
        """The state that an earlier run has left, or a new one."""
        return cls(**json.loads(path.read_text())) if path.exists() else cls()

    def write(self, path: Path) -> None:
        """Keep it for whoever goes on."""
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(asdict(self)))
        temporary.replace(path)

    def failed(self, kind: str) -> bool:
        """Count the last case as a failure; returns whether its kind is new."""
        self.failures.setdefault(kind, []).append(self.next - 1)
        return len(self.failures[kind]) == 1


def main() -> int:
    """Run the targets that the command line names, or one case of a target."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("targets", nargs="*", choices=[[], *TARGETS], metavar="TARGET")
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--folder", type=Path, default=Path("build/fuzz"), help="where the state and failures are kept")
    parser.add_argument("--corpus", type=Path, action="append", default=[], help="a folder of more files to start from")
    parser.add_argument("--case", type=int, help="run only the case of this number")
    options = parser.parse_args()
    files = corpus(*options.corpus)
    targets = options.targets or list(TARGETS)
    if options.case is not None:
        for target in targets:
            print(TARGETS[target](case(target, options.seed, options.case, files)))
        return 0
    options.folder.mkdir(parents=True, exist_ok=True)
    failed = [run(target, options.seed, options.folder, 60 * options.minutes, files) for target in targets]
    return 1 if any(failed) else 0


def case(target: str, seed: str, number: int, files: Sequence[Path]) -> Case:
    """The case of this number, the same each time."""
    return Case(random.Random(f"{target}/{seed}/{number}"), files)


def run(target: str, seed: str, folder: Path, seconds: float, files: Sequence[Path]) -> bool:
    """Run one target, in processes that may die; returns whether anything failed."""
    path = folder / f"{target}-{seed}.json"
    deadline = time.monotonic() + seconds
    settle(target, seed, path, "was ended with its run")
    first = State.read(path).next
    while time.monotonic() < deadline:
        process = os.fork()
        if not process:
            work(target, seed, path, deadline, files)
            os._exit(0)
        _, status = os.waitpid(process, 0)
        settle(target, seed, path, f"ended its process with {os.waitstatus_to_exitcode(status)}")
    state = State.read(path)
    failures = sum(map(len, state.failures.values()))
    outcomes = ", ".join(f"{count} {name}" for name, count in Counter(state.outcomes).most_common())
    print(f"{target}: {state.next} cases ({state.next - first} in this run): {outcomes}; {failures} failed", flush=True)
    return bool(failures)


def settle(target: str, seed: str, path: Path, how: str) -> None:
    """Count a case that is running still as a failure."""
    state = State.read(path)
    if state.running:
        if state.failed(how):
            tell(target, seed, state.next - 1, how)
        state.running = False
        state.write(path)


def work(target: str, seed: str, path: Path, deadline: float, files: Sequence[Path]) -> None:
    """Run cases until the deadline."""
    faulthandler.enable(STDERR)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    state = State.read(path)
    while time.monotonic() < deadline:
        this = case(target, seed, state.next, files)
        state.next += 1
        state.running = True
        state.write(path)
        faulthandler.dump_traceback_later(LONGEST, exit=True, file=STDERR)
        try:
            outcome = TARGETS[target](this)
            state.outcomes[outcome] = state.outcomes.get(outcome, 0) + 1
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            if state.failed(f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}"):
                tell(target, seed, state.next - 1, "".join(traceback.format_exception(error)[-6:]))
                (path.parent / f"{target}-{seed}-{state.next - 1}.input").write_bytes(this.given)
        finally:
            faulthandler.cancel_dump_traceback_later()
        state.running = False
    state.write(path)


def tell(target: str, seed: str, number: int, what: str) -> None:
    """Print a failure and what reproduces it."""
    print(f"FAILED {target} --seed {seed} --case {number}\n{what}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
