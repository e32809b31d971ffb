"""Find both faults in a copy of the example service, repair them, and check what the launcher's output gained by it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SERVICE = Path("examples", "service")

FACTS = {
    "the root cause, with its type": "ValueError: invalid literal for int() with base 10: 'O'",
    "the worker's frame that raised it": "in device_index",
    "the first missing key": "layers.0.mlp.weight",
    "the second missing key": "layers.1.mlp.weight",
}
NOISE = "<generator object"


def broken_claims(before: str, after: str) -> list[str]:
    """What does not hold of the launcher's output before and after the repair; empty where all is as the demo says."""
    broken = [f"before the repair the output already shows {fact}" for fact, text in FACTS.items() if text in before]
    broken += [f"after the repair the output lacks {fact}" for fact, text in FACTS.items() if text not in after]
    if NOISE not in before:
        broken.append(f"before the repair the output does not show {NOISE!r}")
    if NOISE in after:
        broken.append(f"after the repair the output still shows {NOISE!r}")
    return broken


def run(*command: str | Path, expect: int, shows: tuple[str, ...] = (), cwd: Path = ROOT) -> str:
    """Show `python command` and what it prints, and return that; the demo ends where it is not as expected."""
    print("$", "python", *command, flush=True)
    done = subprocess.run(
        [sys.executable, *command], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120
    )
    print(done.stdout, flush=True)
    if done.returncode != expect:
        sys.exit(f"demo: the last command ended with {done.returncode} instead of {expect}")
    if missing := [text for text in shows if text not in done.stdout]:
        sys.exit(f"demo: the last command did not print {missing}")
    return done.stdout


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
    step("What the launcher's output shows")
    for fact, text in FACTS.items():
        print(f"{fact:36} before: {'yes' if text in before else 'no':5} after: {'yes' if text in after else 'no'}")
    if broken := broken_claims(before, after):
        sys.exit("demo: " + "; ".join(broken))


if __name__ == "__main__":
    main()
