"""What takes too long for a test: a file of 100 MB, and `fix` killed at 100 random moments: `make torture`."""

from __future__ import annotations

import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from samples import REPAIRED, WORKER

COMMAND = [sys.executable, "-m", "keepcause"]


def main() -> None:
    """Run both; an AssertionError tells what is wrong."""
    for trial in (a_huge_file, killed):
        with tempfile.TemporaryDirectory() as name:
            Path(name, "pyproject.toml").touch()
            start = time.monotonic()
            trial(Path(name))
            print(f"{trial.__name__}: sound, {time.monotonic() - start:.0f} s", flush=True)


def a_huge_file(folder: Path) -> None:
    """It is named, within a minute and a gigabyte, and the file beside it is checked."""
    (folder / "huge.py").write_text(WORKER + "x = 1\n" * 17_000_000)
    (folder / "worker.py").write_text(WORKER)
    done = subprocess.run(
        [*COMMAND, "check", "-q", "--output-format=concise", "."],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2, done
    assert done.stderr.startswith("keepcause: huge.py: too big to be parsed"), done.stderr
    assert done.stdout.startswith("worker.py:6:13: KC101"), done.stdout
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert peak < 1_000_000, f"{peak} KB"


def killed(folder: Path, times: int = 100) -> None:
    """Every file is the old or the new one, whenever the repair ends, and nothing left behind is taken for source."""
    paths = [folder / f"worker_{number}.py" for number in range(60)]
    for path in paths:
        path.write_text(WORKER)
    start = time.monotonic()
    subprocess.run([*COMMAND, "fix", "-q", "."], cwd=folder, check=True, timeout=60)
    whole = time.monotonic() - start
    chance = random.Random(1)
    states = [0, 0]
    for _ in range(times):
        for path in paths:
            path.write_text(WORKER)
        with subprocess.Popen([*COMMAND, "fix", "-q", "."], cwd=folder, stdout=subprocess.DEVNULL) as run:
            try:
                run.wait(chance.uniform(0.3, 1.1) * whole)
            except subprocess.TimeoutExpired:
                run.send_signal(signal.SIGKILL)
        texts = [path.read_text() for path in paths]
        assert set(texts) <= {WORKER, REPAIRED}, set(texts)
        states[0] += texts.count(WORKER)
        states[1] += texts.count(REPAIRED)
    assert all(states), f"no run was killed in the middle: {states}"
    assert sorted(folder.glob("*.py")) == sorted(paths)
    print(
        f"{times} kills: {states[0]} files old, {states[1]} new, {len(list(folder.glob('.keepcause-*')))} left behind"
    )


if __name__ == "__main__":
    main()
