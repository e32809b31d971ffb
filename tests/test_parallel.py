"""Several processes at once: the same results in the same order, whoever dies on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from keepcause.config.layers import Layers
from keepcause.lint.checked import FileReport
from keepcause.parallel import check_all, processes
from keepcause.run import Run

BAD = """
def init_worker():
    try:
        f()
    except OSError:
        raise ValueError() from None
"""


def interruptible() -> None:
    """A shell starts what runs in its background deaf to interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def died(file: int, way: str) -> str:
    return f"{file}: {way}"


@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_results_stand_in_the_order_of_the_files(count: int) -> None:
    found = list(check_all(lambda number: str(number) if number % 3 else None, range(100), died, count))
    assert found == [str(number) if number % 3 else None for number in range(100)]


def test_more_results_than_a_pipe_holds() -> None:
    found = list(check_all(lambda number: "x" * 100_000, range(20), died, 3))
    assert [len(text or "") for text in found] == [100_000] * 20


def test_a_process_that_dies_is_told_of_and_the_rest_goes_on() -> None:
    def check(number: int) -> str:
        if number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        if number in (4, 9):
            os._exit(7)
        return str(number)

    found = list(check_all(check, range(12), died, 2))
    assert found == [{3: "3: SIGKILL", 4: "4: exit code 7", 9: "9: exit code 7"}.get(n, str(n)) for n in range(12)]


@pytest.mark.parametrize("number", [signal.SIGCHLD, signal.SIGINT])
def test_signals_may_be_ignored(number: signal.Signals) -> None:
    """Supervisors leave the one to the system, and a shell starts what runs in its background deaf to the other."""

    def check(file: int) -> str:
        if file == 3:
            os.kill(os.getpid(), number)
        return str(file)

    before = signal.signal(number, signal.SIG_IGN)
    try:
        assert list(check_all(check, range(12), died, 2)) == [str(file) for file in range(12)]
    finally:
        signal.signal(number, before)


def test_the_way_of_an_end_is_not_known_where_sigchld_is_ignored() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        found = list(check_all(lambda file: os._exit(7) if file == 1 else str(file), range(3), died, 2))
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert found == ["0", "1: in a way that is not known", "2"]


ORPHANS = """
import os, time
from keepcause.parallel import check_all

def check(number):
    os.write(1, b".")
    if number in {slow}:
        time.sleep(1)
    return "x" * 1_000_000

for found in check_all(check, range(24), lambda *how: "died", 3):
    pass
"""


@pytest.mark.parametrize(
    ("slow", "begun"), [([0], 17), ([0, 8, 16], 3)], ids=["two wait for files", "all have results that nobody takes"]
)
def test_processes_end_with_their_parent(slow: list[int], begun: int) -> None:
    command = [sys.executable, "-c", ORPHANS.format(slow=slow)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.read(begun) == b"." * begun
        process.kill()
        try:
            process.communicate(timeout=10)  # until nobody is left who could write
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def test_few_files_are_checked_by_one_process() -> None:
    assert processes(0) == processes(100) == 1


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for number in range(1100):
        (tmp_path / f"module_{number:04}.py").write_text(BAD if number % 100 == 7 else "x = 1\n")
    return tmp_path


def test_a_tree_is_reported_as_one_process_would(tree: Path) -> None:
    run = Run(Layers(isolated=True))
    files = [path for path in run.files([tree]) if isinstance(path, str)]
    assert len(files) == 1100
    alone = [report for report in map(run.check, files) if isinstance(report, FileReport) and report.findings]
    together = list(Run(Layers(isolated=True)).check_all(files))
    assert together == alone
    assert len(together) == 11


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="shows when the processes have started")
@pytest.mark.skipif(processes(10_000) == 1, reason="needs two cores")
def test_an_interrupt_ends_all_at_once_without_a_traceback(tree: Path) -> None:
    for number in range(1100):
        (tree / f"module_{number:04}.py").write_text(BAD * 40)
    command = [sys.executable, "-m", "keepcause", "check", "--no-cache", "."]
    with subprocess.Popen(
        command,
        cwd=tree,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=interruptible,
    ) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        deadline = time.monotonic() + 20
        while not children.read_text() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=10)
    assert process.returncode == 130
    assert b"Traceback" not in said
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
