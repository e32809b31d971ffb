"""One check of many files by several processes, with the results in the order of the files; standard library only."""

from __future__ import annotations

import contextlib
import mmap
import os
import pickle
import signal
import sys
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

File = TypeVar("File")
Result = TypeVar("Result")

_LEAST = 250
"""How many files a process must get to save more time than starting it takes."""


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

    `count` processes share the work. `died` makes the result of a file whose process ended while checking it, of which
    it is told the way; the rest goes on.
    """
    if count < 2:
        yield from map(check, files)
        return
    shares = [_Share(check, files[first::count], died) for first in range(count)]
    try:
        for share in shares:
            share.start(0)
        found = [share.results() for share in shares]
        for number in range(len(files)):
            yield found[number % count].get(number // count)
    finally:
        for share in shares:
            share.stop()


class _Share(Generic[File, Result]):
    """The files that one process checks, one after the other."""

    def __init__(
        self, check: Callable[[File], Result | None], files: Sequence[File], died: Callable[[File, str], Result]
    ) -> None:
        self._check = check
        self._files = files
        self._died = died
        self._place = mmap.mmap(-1, 8)
        """The number of the file that is being checked, for the parent to see."""
        self._pid = 0

    def results(self) -> dict[int, Result]:
        """The results that say something, by the number of the file."""
        found: dict[int, Result] = {}
        while True:
            with os.fdopen(self._pipe, "rb") as pipe, contextlib.suppress(EOFError, pickle.UnpicklingError):
                while (said := pickle.load(pipe)) is not None:
                    found[said[0]] = said[1]
                self._wait()
                return found
            number = int.from_bytes(self._place[:8], "little")
            found[number] = self._died(self._files[number], _way(self._wait()))
            self.start(number + 1)

    def stop(self) -> None:
        """End the process if it still runs."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            self._wait()

    def _wait(self) -> int:
        pid, self._pid = self._pid, 0
        return os.waitpid(pid, 0)[1]

    def start(self, first: int) -> None:
        """Let a process check the files from number `first` on."""
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        self._pipe, theirs = os.pipe()
        # An interrupt waits until each process knows which one it is.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        self._pid = os.fork()
        if self._pid:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            os.close(theirs)
            return
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            with os.fdopen(theirs, "wb") as pipe:
                for number in range(first, len(self._files)):
                    if os.getppid() != parent:
                        break  # nobody waits for more
                    self._place[:8] = number.to_bytes(8, "little")
                    result = self._check(self._files[number])
                    if result is not None:
                        pickle.dump((number, result), pipe)
                        pipe.flush()
                pickle.dump(None, pipe)
            os._exit(0)
        finally:
            os._exit(1)


def _way(status: int) -> str:
    """How a process ended, by the status that waiting for it gave."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"
