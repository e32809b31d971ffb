"""The parent's side: wait for workers, and one error that names all that failed; imports the rooms beside it."""

from __future__ import annotations

import dataclasses
import itertools
import operator
import os
import signal
import time
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Final

from .chain import ELSEWHERE, Carried, dump, load
from .describe import root_of
from .inbox import Lines, Objects
from .plain import cut, ranks_text
from .worker import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

TICK: Final = 0.05
"""Seconds between two looks at processes whose end can't be waited for."""
LAST_LINES: Final = 8
"""Lines of the innermost frames that the text of WorkersFailed shows of one cause."""
MESSAGES: Final = 100
"""Messages taken from one worker before the others get their turn."""
LAST_WORDS: Final = 2.0
"""Seconds without a message after which a process that has ended is heard no longer; others may hold its connection."""
ENDING: Final = 2.0
"""Seconds that a process gets to end after SIGTERM, before SIGKILL."""


@dataclasses.dataclass(frozen=True)
class WorkerFailure:
    """How one worker failed.

    Attributes:
        kind: "raised", "killed", "exited", "closed" (its connection ended, but not its process), "unreadable" (what it
            sent can't be unpickled) or "silent".
        what: the same in words, with the root cause of what it raised.
        time: seconds since the epoch.
        phase, phase_age: its last known step, and the seconds from that step's beginning to `time`.
        exitcode: of a process that ended without a report, negative for a signal.
        error: what it raised.
    """

    rank: int
    kind: str
    what: str
    time: float
    phase: str | None = None
    phase_age: float | None = None
    exitcode: int | None = None
    error: BaseException | None = None


class WorkersFailed(Carried, RuntimeError):  # noqa: N818 - the name says which ones
    """Workers did not start: names every one that failed, the earliest first; healthy ones are counted.

    Attributes:
        failures: a WorkerFailure for each that failed, the earliest first.
        ready, total: how many workers were ready, and how many there are.
        rank, phase: of the earliest failure.
    """

    def __init__(self, failures: Iterable[WorkerFailure] | str = (), ready: int | str = 0, total: int = 0) -> None:
        texts = [each for each in (failures, ready) if isinstance(each, str)]
        found = () if isinstance(failures, str) else failures
        self.failures = sorted(found, key=lambda each: (each.time, each.rank))
        self.ready = ready if isinstance(ready, int) else 0
        self.total = total
        self.rank = self.failures[0].rank if self.failures else None
        self.phase = self.failures[0].phase if self.failures else None
        super().__init__("\n".join(texts) or self._report())
        self.__cause__ = next((each.error for each in self.failures if each.error is not None), None)

    def _report(self) -> str:
        groups: dict[tuple[str, str, str | None], list[WorkerFailure]] = {}
        for each in self.failures:
            groups.setdefault((each.kind, each.what, each.phase), []).append(each)
        parts = [_described(group, self.failures[0].time) for group in groups.values()]
        head = f"{len(self.failures)} of {self.total} workers failed to start ({self.ready} ready)"
        return cut("\n  ".join([f"{head}: {parts[0]}", *parts[1:]]) if parts else head, 9_000)

    def _keepcause_fields(self) -> dict[str, Any]:
        rows = [{**vars(each), "error": None} for each in self.failures]
        errors = [None if each.error is None else dump(each.error) for each in self.failures]
        return {**super()._keepcause_fields(), "failures": rows, "errors": errors}

    def _keepcause_restore(self, fields: dict[str, Any]) -> None:
        sent = fields.pop("errors", None)
        errors = [load(each) if isinstance(each, bytes) else None for each in (sent if isinstance(sent, list) else ())]
        rows = fields.pop("failures", ())
        pairs = itertools.zip_longest(rows, errors[: len(rows)])
        failures = [WorkerFailure(**{**row, "error": error}) for row, error in pairs]
        absent = {"ready": 0, "total": 0, "rank": None, "phase": None}
        super()._keepcause_restore({**absent, **fields, "failures": failures})


def wait_for_workers(
    workers: Iterable[tuple[int, Any, Any]], *, timeout: float, grace: float = 2.0, terminate: bool = False
) -> dict[int, Any]:
    """Wait until all workers are ready; returns the payload of each by rank.

    One error names all that failed, in whatever order they do.

    Args:
        workers: (rank, connection, process) of each. The connection is a multiprocessing Connection, or a socket, pipe
            or descriptor that brings lines of JSON; a `guard` has its other end. The process is a
            multiprocessing.Process, a subprocess.Popen or None. An object or line that isn't the guard's counts as
            ready.
        timeout: seconds until workers that are not ready count as failed.
        grace: seconds that the others get after the first failure.
        terminate: end the processes that still run before raising, after the report is complete.

    Raises:
        WorkersFailed: at least one worker failed or stayed silent.
        TypeError: a connection is none, such as a queue, or a rank is no integer.
        ValueError: two workers have the same rank.
    """
    crew = [_Worker(rank, connection, process) for rank, connection, process in workers]
    if len({worker.rank for worker in crew}) < len(crew):
        raise ValueError(f"each worker needs a rank of its own: {', '.join(str(worker.rank) for worker in crew)}")
    limit = time.monotonic() + timeout
    graceful = False
    while True:
        for worker in crew:
            worker.look()
        if not graceful and any(worker.failure for worker in crew):
            graceful, limit = True, time.monotonic() + grace
        left = limit - time.monotonic()
        if left <= 0 or all(worker.settled for worker in crew):
            break
        wait([handle for worker in crew for handle in worker.handles()], min(TICK, left))
    for worker in crew:
        worker.give_up()
    failures = [worker.failure for worker in crew if worker.failure is not None]
    if not failures:
        return {worker.rank: worker.payload for worker in crew}
    if terminate:
        _end([worker.process for worker in crew if worker.process is not None])
    raise WorkersFailed(failures, len(crew) - len(failures), len(crew))


class _Worker:
    """What the parent knows of one worker so far; `settled` once there is no more to learn."""

    def __init__(self, rank: int, conn: Any, process: Any) -> None:
        self.rank, self.process = operator.index(rank), process
        self.inbox = Objects(conn) if hasattr(conn, "recv_bytes") else Lines(conn)
        self.closed = self.settled = False
        self.payload: Any = None
        self.failure: WorkerFailure | None = None
        self.phase: str | None = None
        self.phase_time = 0.0
        self.quiet_since: float | None = None
        """Since when a process that has ended has said no more; None while it runs."""

    def handles(self) -> list[Any]:
        """Return what to wait for to learn more."""
        if self.settled:
            return []
        conn = None if self.closed else self.inbox.handle()
        end = getattr(self.process, "sentinel", None) if self.quiet_since is None else None
        return [each for each in (conn, end) if each is not None]

    def look(self) -> None:
        """Take in what has arrived and whether the process has ended."""
        if self.settled:
            self._look_after()
            return
        # The process first: what it has written before its end is then all there to be read.
        exited, code = _exit_of(self.process)
        self._read()
        if self.settled or (exited and self._says_more()):
            return
        if exited:
            self._fail_by_end(code)
        elif self.closed and self.failure is None:
            self._fail("closed", f"closed its connection without a report{', but still runs' if self.process else ''}")
            self.settled = self.process is None

    def _says_more(self) -> bool:
        """Tell whether a process that has ended may have written more than is read."""
        if self.quiet_since is None:
            self.quiet_since = time.monotonic()
        try:
            more = not self.closed and self.inbox.has_more()
        except EOFError:
            more = False
        return more and time.monotonic() < self.quiet_since + LAST_WORDS

    def _look_after(self) -> None:
        """Notice a worker that was ready and failed while others still start."""
        exited, code = _exit_of(self.process) if self.failure is None else (False, None)
        if exited and code:
            kind, what = _words_of(code)
            self._fail(kind, f"{what} after it was ready", exitcode=code)

    def _read(self) -> None:
        """Take in the messages that have arrived, until one of them settles it."""
        for _ in range(MESSAGES):
            if self.closed or self.settled:
                break
            try:
                message = self.inbox.take()
            except EOFError:
                self.closed = True
                break
            except Exception as error:
                self._fail("unreadable", f"sent what can't be read here: {one_line(error)}")
                break
            if message is None:
                break
            self.quiet_since = None
            self._take(*message)

    def _take(self, kind: str, when: float, data: Any) -> None:
        if kind == "phase":
            self.phase, self.phase_time = data, when
        elif kind == "ready":
            self.payload, self.settled = data, True
        elif kind == "failed":
            self.phase = getattr(data, "phase", None) or self.phase
            self._fail("raised", f"raised {one_line(root_of(data))}", when, error=data)

    def _fail(self, kind: str, what: str, when: float | None = None, **more: Any) -> None:
        when = time.time() if when is None else when
        age = when - self.phase_time if self.phase_time else None
        self.failure = WorkerFailure(self.rank, kind, what, when, self.phase, age, **more)
        self.settled = True

    def _fail_by_end(self, code: int | None) -> None:
        noticed = time.time() if self.failure is None else self.failure.time
        kind, what = _words_of(code)
        self._fail(kind, f"{what} without a report" if kind == "exited" else what, noticed, exitcode=code)

    def give_up(self) -> None:
        """Count as failed what is not settled."""
        if self.settled or self.failure is not None:
            return
        exited, code = _exit_of(self.process)
        if exited:
            self._fail_by_end(code)
        else:
            self._fail("silent", "gave no report" if self.phase else "never said anything")


def _exit_of(process: Any) -> tuple[bool, int | None]:
    """Tell whether a process has ended, and its exit code where that is known."""
    if process is None:
        return False, None
    code = process.poll() if hasattr(process, "poll") else process.exitcode
    if code is None and process.pid is not None:
        try:
            os.kill(process.pid, 0)
        except ProcessLookupError:
            # A fork server has waited for it, and is about to say how it ended, or somebody else has.
            end = getattr(process, "sentinel", None)
            return True, process.exitcode if end is not None and wait([end], LAST_WORDS) else None
        except PermissionError:
            pass
    return code is not None, code


def _words_of(exitcode: int | None) -> tuple[str, str]:
    """Return the kind of a process's end, and its words."""
    if exitcode is None or exitcode >= 0:
        return "exited", f"exited with {'an unknown code' if exitcode is None else f'code {exitcode}'}"
    try:
        name = signal.Signals(-exitcode).name
    except ValueError:
        name = f"signal {-exitcode}"
    return "killed", f"was killed by {name}{' (often the out-of-memory killer)' if name == 'SIGKILL' else ''}"


def _described(group: Sequence[WorkerFailure], first: float) -> str:
    """Return the text of workers that failed alike: who, how, in which phase, how much later than the first, where."""
    failure = group[0]
    text = f"{ranks_text(each.rank for each in group)} {failure.what}"
    if failure.phase is not None:
        text += f", in phase {failure.phase!r}"
        if failure.phase_age is not None and failure.kind != "raised":
            text += f" for {failure.phase_age:.1f} s"
    if failure.time > first and failure.kind != "silent":
        text += f" ({failure.time - first:.2f} s later)"
    return "\n".join([text, *(f"    {line}" for line in _last_frames(failure.error))])


def _last_frames(error: BaseException | None) -> list[str]:
    """Return the innermost frames of an error's root, as its note has them."""
    notes = [] if error is None else getattr(root_of(error), "__notes__", [])
    frames = next((note for note in reversed(notes) if note.startswith(ELSEWHERE)), "")
    return frames.splitlines()[1:][-LAST_LINES:]


def _end(processes: Sequence[Any]) -> None:
    """End processes: SIGTERM, and SIGKILL for those that still run after ENDING seconds."""
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + ENDING
    while time.monotonic() < deadline and not all(_exit_of(process)[0] for process in processes):
        time.sleep(TICK)
    for process in processes:
        if not _exit_of(process)[0]:
            process.kill()
        process.join() if hasattr(process, "join") else process.wait()
