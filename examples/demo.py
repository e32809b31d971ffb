"""Find both faults in a copy of the example service, repair them, and check what the launchers' output gained by it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parents[1]
SERVICE = Path("examples", "service")

FACTS = {
    "the root cause, with its type": "ValueError: invalid literal for int() with base 10: 'O'",
    "the worker's frame that raised it": "in device_index",
    "the first missing key": "layers.0.mlp.weight",
    "the second missing key": "layers.1.mlp.weight",
}
NOISE = "<generator object"
FAILURES = {
    "how many failed": "3 of 4 workers failed to start (1 ready)",
    "what rank 1 raised": f"rank 1 raised {FACTS['the root cause, with its type']}, in phase 'bind device'",
    "what killed rank 2": "rank 2 was killed by SIGKILL (often the out-of-memory killer), in phase 'load weights'",
    "where rank 3 hangs": "rank 3 gave no report, in phase 'load weights'",
}
"""What pipes.py says after the repair, where the parent's error is all that it prints."""


def broken_claims(before: str, after: str) -> list[str]:
    """What does not hold of the launcher's output before and after the repair; empty where all is as the demo says."""
    broken = [f"before the repair the output already shows {fact}" for fact, text in FACTS.items() if text in before]
    broken += [f"after the repair the output lacks {fact}" for fact, text in FACTS.items() if text not in after]
    if NOISE not in before:
        broken.append(f"before the repair the output does not show {NOISE!r}")
    if NOISE in after:
        broken.append(f"after the repair the output still shows {NOISE!r}")
    return broken


def run(
    *command: str | Path, expect: int, shows: Iterable[str] = (), cwd: Path = ROOT, errors: int = subprocess.STDOUT
) -> str:
    """Show `python command` and what it prints, and return that; the demo ends where it is not as expected."""
    print("$", "python", *command, *(["2>/dev/null"] if errors == subprocess.DEVNULL else []), flush=True)
    done = subprocess.run(
        [sys.executable, *command], cwd=cwd, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=120
    )
    print(done.stdout, flush=True)
    if done.returncode != expect:
        sys.exit(f"demo: the last command ended with {done.returncode} instead of {expect}")
    if missing := unsaid(shows, done.stdout):
        sys.exit(f"demo: the last command did not print {missing}")
    return done.stdout


def unsaid(texts: Iterable[str], output: str) -> list[str]:
    """Those of `texts` that `output` does not hold."""
    return [text for text in texts if text not in output]


def step(title: str) -> None:
    """Print a heading."""
    print(f"\n=== {title}\n", flush=True)


def main() -> None:
    """Tell the story; exits with a message if a claim does not hold."""
    step("What keepcause finds in the example service")
    run("-m", "keepcause", "check", SERVICE, expect=1, shows=("KC101", "KC201"))
    step("What it would change")
    run("-m", "keepcause", "fix", "--diff", SERVICE, expect=1, shows=(" from e", "{list(missing)}"))
    with tempfile.TemporaryDirectory(prefix="keepcause-demo-") as folder:
        copy = Path(folder, "service")
        shutil.copytree(ROOT / SERVICE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        step("A copy of the service, before the repair: two of three workers fail, and nobody can tell why")
        before = run("launcher.py", expect=1, cwd=copy)
        step("The repair of the copy")
        run("-m", "keepcause", "fix", ".", expect=0, cwd=copy)
        step("The same service after the repair")
        after = run("launcher.py", expect=1, cwd=copy)
        step("With a pipe for each worker: one raises, one is killed, one hangs, and the parent names all three")
        run("pipes.py", expect=1, shows=FAILURES.values(), cwd=copy, errors=subprocess.DEVNULL)
    step("What the output of launcher.py shows")
    for fact, text in FACTS.items():
        print(f"{fact:36} before: {'yes' if text in before else 'no':5} after: {'yes' if text in after else 'no'}")
    if broken := broken_claims(before, after):
        sys.exit("demo: " + "; ".join(broken))


if __name__ == "__main__":
    main()
