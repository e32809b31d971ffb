"""One check of many files by several processes, with the results in the order of the files; standard library only."""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import select
import signal
import sys
from typing import IO, TYPE_CHECKING, Generic, NoReturn, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

File = TypeVar("File")
Result = TypeVar("Result")

_LEAST = 250
"""How many files a process must get to save more time than starting it takes."""
_AT_ONCE = 8
"""How many files a process is given at a time: neighbours, as what proves one of them often proves the next."""


def processes(files: int) -> int:
    """How many processes pay off for a number of files; one where processes can't be forked."""
    if not hasattr(os, "fork"):
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, files // _LEAST))


def check_all(
    check: Callable[[File], Result | None], files: Sequence[File], died: Callable[[File, str], Result], count: int
) -> Iterator[Result | None]:
    """What `check` says of each of `files`, in their order; None where it has nothing to say.

    `count` processes share the work: each is given the next few files when it is done with the last. `died` makes the
    result of a file whose process ended while checking it, of which it is told the way; the rest goes on.
    """
    if count < 2:
        yield from map(check, files)
        return
    numbers = range(len(files))
    runs = iter([numbers[first : first + _AT_ONCE] for first in numbers[::_AT_ONCE]])
    found: dict[int, Result] = {}
    workers: list[_Worker[File, Result]] = []
    workers.extend(_Worker(check, files, workers) for _ in range(count))
    try:
        for worker in workers:
            worker.give(next(runs, ()))
        while busy := [worker for worker in workers if worker.run]:
            for worker in select.select(busy, [], [])[0]:
                left: Sequence[int] = ()
                try:
                    found.update(worker.results())
                except (EOFError, pickle.UnpicklingError):
                    number, way = worker.end()
                    found[number] = died(files[number], way)
                    left = [other for other in worker.run if other != number]
                worker.give(left or next(runs, ()))
        yield from map(found.get, numbers)
    finally:
        for worker in workers:
            worker.stop()


class _Worker(Generic[File, Result]):
    """A process that checks the files that it is given, a run of them at a time."""

    def __init__(
        self, check: Callable[[File], Result | None], files: Sequence[File], crew: Sequence[_Worker[File, Result]]
    ) -> None:
        self.run: Sequence[int] = ()
        """The numbers of the files that are being checked."""
        self._check = check
        self._files = files
        self._crew = crew
        """All that share the work, this one too."""
        self._ends: list[IO[bytes]] = []
        """The parent's ends of two pipes: what the process is given, and what it says."""
        self._place = mmap.mmap(-1, 8)
        """The number of the file at which the process is, for the parent to see."""
        self._pid = 0

    def fileno(self) -> int:
        """What can be read as soon as there are results, or the process has ended."""
        return self._ends[1].fileno()

    def give(self, run: Sequence[int]) -> None:
        """Let the process check the files with these numbers, if there are any."""
        self.run = run
        if run:
            if not self._pid:
                self._start()
            with contextlib.suppress(BrokenPipeError):  # it has ended, as its results will tell
                self._ends[0].write(pickle.dumps(run))

    def results(self) -> dict[int, Result]:
        """The results of the run that say something; raises EOFError or UnpicklingError where the process has ended."""
        results: dict[int, Result] = pickle.load(self._ends[1])
        return results

    def end(self) -> tuple[int, str]:
        """The number of the file at which the process ended, and the way."""
        number, way = int.from_bytes(self._place[:8], "little"), self._wait()
        return (number if number in self.run else self.run[0]), way

    def stop(self) -> None:
        """End the process if it still runs."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            self._wait()

    def _wait(self) -> str:
        """Wait for the process to end; returns the way."""
        self._close()
        pid, self._pid = self._pid, 0
        try:
            return _way(os.waitpid(pid, 0)[1])
        except ChildProcessError:  # whoever started us ignores SIGCHLD, so that the system has taken note of the end
            return "in a way that is not known"

    def _close(self) -> None:
        for end in self._ends:
            end.close()

    def _start(self) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        runs, ours = os.pipe()
        results, theirs = os.pipe()
        self._ends = [os.fdopen(ours, "wb", buffering=0), os.fdopen(results, "rb")]
        # An interrupt waits until each process knows which one it is.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        self._pid = os.fork()
        if not self._pid:
            self._serve(runs, theirs)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        os.close(runs)
        os.close(theirs)

    def _serve(self, runs: int, theirs: int) -> NoReturn:
        """Check what is given until the parent ends, in whatever way: no other process may hold its ends then."""
        try:
            if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
                signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            for worker in self._crew:
                worker._close()
            with os.fdopen(runs, "rb") as given, os.fdopen(theirs, "wb") as said:
                while True:
                    pickle.dump(dict(self._checked(pickle.load(given))), said)
                    said.flush()
        finally:
            os._exit(1)

    def _checked(self, run: Sequence[int]) -> Iterator[tuple[int, Result]]:
        for number in run:
            self._place[:8] = number.to_bytes(8, "little")
            result = self._check(self._files[number])
            if result is not None:
                yield number, result


def _way(status: int) -> str:
    """How a process ended, by the status that waiting for it gave."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"
