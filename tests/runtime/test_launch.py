"""What the parent knows of workers that start, or fail to, in every way."""

from __future__ import annotations

import copy
import os
import pickle
import re
import socket
import subprocess
import sys
import threading
import time
import traceback
from multiprocessing import get_context
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import launched
import pytest
from faults import MESSAGE

import keepcause
from keepcause import WorkerFailure, WorkersFailed, from_json, to_json, wait_for_workers
from keepcause.runtime import describe

if TYPE_CHECKING:
    from collections.abc import Iterator

TIMEOUT = 20.0
GRACE = 0.4


class Crew:
    """Workers that are ended, and their connections closed, when the test is over."""

    def __init__(self) -> None:
        self.workers: list[tuple[int, Any, Any]] = []

    def start(self, *ways: str, method: str = "fork") -> list[tuple[int, Any, Any]]:
        context: Any = get_context(method)
        for way in ways:
            here, there = context.Pipe(duplex=False)
            process = context.Process(target=launched.work, args=(len(self.workers), there, way))
            process.start()
            there.close()
            self.workers.append((len(self.workers), here, process))
        return self.workers

    def start_program(self, way: str, kind: str) -> None:
        """Start `python launched.py` with a pipe or a socket that gets lines of JSON."""
        here: Any
        if kind == "socket":
            here, other = socket.socketpair()
            there = other.detach()
        else:
            here, there = os.pipe()
        environment = os.environ | {"PYTHONPATH": str(Path(keepcause.__file__).parents[1])}
        command = [sys.executable, launched.__file__, str(len(self.workers)), way, str(there)]
        process = subprocess.Popen(command, pass_fds=[there], env=environment)
        os.close(there)
        self.workers.append((len(self.workers), here, process))

    def end(self) -> None:
        for _, conn, process in self.workers:
            if (process.poll() if hasattr(process, "poll") else process.exitcode) is None:
                process.kill()
            process.join() if hasattr(process, "join") else process.wait()
            os.close(conn) if isinstance(conn, int) else conn.close()


@pytest.fixture
def crew() -> Iterator[Crew]:
    crew = Crew()
    yield crew
    crew.end()


def failure_of(workers: list[tuple[int, Any, Any]], **options: Any) -> WorkersFailed:
    """Return the error, which has to come in time."""
    begin = time.monotonic()
    with pytest.raises(WorkersFailed) as caught:
        wait_for_workers(workers, **{"timeout": TIMEOUT, "grace": GRACE} | options)
    assert time.monotonic() - begin < options.get("timeout", TIMEOUT) + options.get("grace", GRACE) + 2
    return caught.value


WAYS = {
    "raise": ("raised", f"raised ValueError: {MESSAGE}"),
    "unpicklable": ("raised", f"raised faults.LockError: {MESSAGE}"),
    "sys.exit": ("raised", "raised SystemExit: no device"),
    "SIGKILL": ("killed", "was killed by SIGKILL (often the out-of-memory killer)"),
    "SIGSEGV": ("killed", "was killed by SIGSEGV"),
    "exit 7": ("exited", "exited with code 7 without a report"),
    "closed pipe": ("closed", "closed its connection without a report, but still runs"),
    "half a message": ("silent", "gave no report"),
    "hang": ("silent", "gave no report"),
}


def test_one_error_names_every_way_to_fail(crew: Crew) -> None:
    error = failure_of(crew.start(*WAYS, "well"), grace=1.5)
    assert {each.rank: (each.kind, each.what) for each in error.failures} == dict(enumerate(WAYS.values()))
    assert (error.ready, error.total) == (1, len(WAYS) + 1)
    assert {each.phase for each in error.failures} == {"load weights"}
    assert [each.time for each in error.failures] == sorted(each.time for each in error.failures)
    assert error.rank == error.failures[0].rank
    by_rank = {each.rank: each for each in error.failures}
    assert [by_rank[rank].exitcode for rank in (3, 4, 5)] == [-9, -11, 7]
    assert by_rank[1].error is not None
    assert type(by_rank[1].error.root).__name__ == "LockError"  # type: ignore[attr-defined]
    text = str(error)
    assert all(what in text for _, what in WAYS.values())
    assert "in explode" in text
    assert text.startswith(f"{len(WAYS)} of {len(WAYS) + 1} workers failed to start (1 ready): rank ")
    assert f"rank {len(WAYS)}" not in text


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_ways_to_start_processes(crew: Crew, method: str) -> None:
    ways = ["raise", "SIGKILL", "exit 7", "well"]
    error = failure_of(crew.start(*ways, method=method), grace=10.0)
    assert {each.rank: (each.kind, each.what) for each in error.failures} == {
        rank: WAYS[way] for rank, way in enumerate(ways[:3])
    }
    assert error.ready == 1


def test_all_ready(crew: Crew) -> None:
    crew.start("well", "well", "well")
    assert wait_for_workers(crew.workers, timeout=TIMEOUT) == {rank: {"port": 5_000 + rank} for rank in range(3)}


def test_what_is_no_crew() -> None:
    queue = get_context("spawn").Queue()
    with pytest.raises(TypeError, match="expected a Connection, a socket, a pipe or a descriptor, not Queue"):
        wait_for_workers([(0, queue, None)], timeout=1)
    ours, theirs = get_context("spawn").Pipe()
    with ours, theirs, pytest.raises(ValueError, match="each worker needs a rank of its own: 0, 1, 0"):
        wait_for_workers([(0, ours, None), (1, ours, None), (0, ours, None)], timeout=1)
    with pytest.raises(TypeError, match="'str' object cannot be interpreted as an integer"):
        wait_for_workers([("actor", ours, None)], timeout=1)  # type: ignore[list-item]


def test_no_worker_is_waited_for_in_turn(crew: Crew) -> None:
    begin = time.monotonic()
    error = failure_of(crew.start("hang", "hang", "raise"), grace=0.2)
    assert time.monotonic() - begin < 3
    assert error.rank == 2


def test_a_failure_of_one_in_64(crew: Crew) -> None:
    workers = crew.start(*["well"] * 40, "raise", *["well"] * 23)
    begin = time.monotonic()
    error = failure_of(workers, grace=30.0)
    assert time.monotonic() - begin < 30, "waited out the time that only those get who give no word"
    assert [each.rank for each in error.failures] == [40]
    assert (error.ready, error.total) == (63, 64)
    assert str(error).startswith("1 of 64 workers failed to start (63 ready): rank 40 raised ValueError")


def test_the_same_cause_of_many_ranks_is_told_once(crew: Crew) -> None:
    error = failure_of(crew.start("raise", "raise", "well", "raise", "exit 7", "raise"), grace=10.0)
    assert str(error).count(MESSAGE) == 1
    assert "ranks 0-1, 3, 5 (4) raised" in str(error)
    assert len(error.failures) == 5


def test_a_parent_may_join_before_it_reads(crew: Crew) -> None:
    crew.start("big", "unpicklable")
    for _, _, process in crew.workers:
        process.join(timeout=10)
        assert process.exitcode == 1
    error = failure_of(crew.workers)
    assert [each.kind for each in error.failures] == ["raised", "raised"]
    assert "ValueError: ('start xxx" in str(error)
    assert len(pickle.dumps(error)) < 3 * describe.REPORT


def test_timeout_names_the_last_phase_and_its_age(crew: Crew) -> None:
    error = failure_of(crew.start("hang", "well"), timeout=1.5)
    (failure,) = error.failures
    assert (failure.kind, failure.phase, error.ready) == ("silent", "load weights", 1)
    assert failure.phase_age is not None
    assert 0.5 < failure.phase_age < 2.5
    assert re.search(r"rank 0 gave no report, in phase 'load weights' for \d\.\d s", str(error))
    assert error.root is error


def test_foreign_objects_are_payloads_and_the_last_that_is_read(crew: Crew) -> None:
    crew.start("foreign")
    assert wait_for_workers(crew.workers, timeout=TIMEOUT) == {0: {"status": "READY", "rank": 0}}
    assert crew.workers[0][1].recv() == "nothing that the launcher may read"


class UnreadableError(Exception):
    """Fails in the process that reads it."""

    def __init__(self, rank: int, message: str) -> None:
        super().__init__(message)


class Rebuilt:
    """Is made by a call in the process that reads it."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.call = function, args

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize(
    ("payload", "what"),
    [
        (UnreadableError(0, "x"), "sent what can't be read here: TypeError: "),
        (Rebuilt(os.stat, "gone"), "sent what can't be read here: FileNotFoundError: [Errno 2] No such file"),
        (Rebuilt(pickle.loads, b""), "sent what can't be read here: _pickle.UnpicklingError: rebuilding it raised EOF"),
    ],
)
def test_what_cannot_be_unpickled_is_named(payload: Any, what: str) -> None:
    here, there = get_context("spawn").Pipe(duplex=False)
    there.send(payload)
    error = failure_of([(0, here, None)])
    assert error.failures[0].kind == "unreadable"
    assert error.failures[0].what.startswith(what)
    here.close()
    there.close()


def test_what_ends_the_reader_is_no_payload(crew: Crew) -> None:
    error = failure_of(crew.start("leaving payload", "well"), grace=10.0)
    assert [(each.rank, each.kind) for each in error.failures] == [(0, "unreadable")]
    assert "rebuilding it raised SystemExit: not here" in str(error)


@pytest.mark.parametrize(
    "line",
    [
        '["keepcause/1", "phase", 0, "now", "load"]',
        f'["keepcause/1", "phase", 0, {10**400}, "load"]',
        '["keepcause/1", "phase", 0, NaN, "load"]',
        '["keepcause/1", [], 0, 1.0, {}]',
    ],
)
def test_a_message_out_of_form_is_named(line: str) -> None:
    here, there = os.pipe()
    os.write(there, f"{line}\n".encode())
    error = failure_of([(0, here, None)])
    assert error.failures[0].kind == "unreadable"
    os.close(here)
    os.close(there)


def test_a_phase_of_another_sender_may_be_any_object() -> None:
    here, there = os.pipe()
    os.write(there, b'["keepcause/1", "phase", 0, 1.0, ["load"]]\n')
    error = failure_of([(0, here, None)], timeout=0.2)
    assert error.phase == "['load']"
    os.close(here)
    os.close(there)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_process_that_has_ended_is_heard_to_its_last_word(crew: Crew, method: str) -> None:
    ways = ["many phases", "slow payload", "many phases, then raise"]
    error = failure_of(crew.start(*ways, method=method), timeout=60.0, grace=60.0)
    assert [(each.rank, each.kind, each.phase) for each in error.failures] == [(2, "raised", "load shard 299")]
    assert error.ready == 2


def test_a_process_that_died_in_a_message_is_not_waited_for_where_others_hold_its_connection() -> None:
    here, there = os.pipe()
    command = [sys.executable, "-c", f"import os; os.write({there}, b'[\"keepcause/1\", '); os.kill(os.getpid(), 9)"]
    process = subprocess.Popen(command, pass_fds=[there])
    begin = time.monotonic()
    error = failure_of([(0, here, process)])
    assert error.failures[0].kind == "killed"
    assert time.monotonic() - begin < 15
    os.close(here)
    os.close(there)


def test_a_line_without_an_end_does_not_outlast_the_timeout() -> None:
    here, there = os.pipe()
    with subprocess.Popen([sys.executable, "-c", "while True: print('x' * 4096, end='')"], stdout=there) as process:
        os.close(there)
        begin = time.monotonic()
        error = failure_of([(0, here, process)], timeout=1.0, terminate=True)
        assert time.monotonic() - begin < 6
    assert error.failures[0].kind == "silent"
    os.close(here)


def test_a_worker_without_a_process_can_close_its_connection() -> None:
    here, there = get_context("spawn").Pipe(duplex=False)
    there.close()
    begin = time.monotonic()
    error = failure_of([(0, here, None)])
    assert time.monotonic() - begin < GRACE
    assert error.failures[0].what == "closed its connection without a report"
    here.close()


def test_terminate_ends_the_others_and_does_not_report_its_own_kills(crew: Crew) -> None:
    error = failure_of(crew.start("raise", "hang", "closed pipe", "foreign"), terminate=True)
    assert [each.kind for each in sorted(error.failures, key=lambda each: each.rank)] == ["raised", "silent", "closed"]
    assert all(process.exitcode is not None for _, _, process in crew.workers)
    assert "SIGTERM" not in str(error)


def test_a_ready_worker_that_dies_while_others_start_is_named(crew: Crew) -> None:
    error = failure_of(crew.start("ready, then SIGKILL", "well", "hang"))
    assert [(each.rank, each.kind) for each in error.failures] == [(0, "killed"), (2, "silent")]
    assert "rank 0 was killed by SIGKILL (often the out-of-memory killer) after it was ready" in str(error)
    assert error.ready == 1


def test_without_terminate_the_others_live_on(crew: Crew) -> None:
    failure_of(crew.start("raise", "hang"))
    assert crew.workers[1][2].is_alive()


class OfForkServer:
    """A process as a fork server has it: gone, while the word of its exit code is still on its way."""

    def __init__(self) -> None:
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait(TIMEOUT)
        self.pid = ended.pid
        self.sentinel, self._told = os.pipe()
        self._telling = threading.Timer(0.3, os.write, (self._told, b"7"))
        self._telling.start()

    @property
    def exitcode(self) -> int | None:
        return 7 if wait([self.sentinel], 0) else None

    def kill(self) -> None:
        """Let it be: it is gone."""

    def join(self) -> None:
        self._telling.join(TIMEOUT)
        os.close(self.sentinel)
        os.close(self._told)


def test_a_process_that_is_gone_before_its_exit_code_is_told(crew: Crew) -> None:
    here, there = get_context("spawn").Pipe(duplex=False)
    there.close()
    crew.workers.append((0, here, OfForkServer()))
    error = failure_of(crew.workers)
    assert [(each.kind, each.exitcode) for each in error.failures] == [("exited", 7)]


def test_a_process_that_somebody_else_waited_for(crew: Crew) -> None:
    crew.start("exit 7")
    os.waitpid(crew.workers[0][2].pid, 0)
    error = failure_of(crew.workers)
    assert error.failures[0].what == "exited with an unknown code without a report"


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_programs_with_lines_of_json(crew: Crew, kind: str) -> None:
    ways = ["unpicklable", "SIGKILL", "exit 7", "hang", "well", "own protocol"]
    for way in ways:
        crew.start_program(way, kind)
    error = failure_of(crew.workers, grace=3.0, terminate=True)
    assert {ways[each.rank]: (each.kind, each.what) for each in error.failures} == {way: WAYS[way] for way in ways[:4]}
    assert error.ready == 2
    first = min(error.failures, key=lambda each: each.rank)
    assert first.error is not None
    assert type(first.error.root).__name__ == "LockError"  # type: ignore[attr-defined]


def test_a_line_of_another_protocol_is_a_payload() -> None:
    here, there = os.pipe()
    os.write(there, b"READY 127.0.0.1:5000\nmore\n")
    assert wait_for_workers([(0, here, None)], timeout=TIMEOUT) == {0: "READY 127.0.0.1:5000"}
    assert os.read(here, 100) == b"more\n"
    os.close(here)
    os.close(there)


def test_a_cause_crosses_two_processes(crew: Crew) -> None:
    here, there = get_context("fork").Pipe(duplex=False)
    process = get_context("fork").Process(target=launched.execute, args=(0, there, ["well", "unpicklable", "SIGKILL"]))
    process.start()
    there.close()
    crew.workers.append((0, here, process))
    error = failure_of(crew.workers)
    assert [type(each).__name__ for each in describe.line_of(error)] == [
        "WorkersFailed",
        "WorkerInitError",
        "WorkersFailed",
        "WorkerInitError",
        "LockError",
    ]
    inner = describe.line_of(error)[2]
    assert isinstance(inner, WorkersFailed)
    assert [(each.rank, each.kind) for each in sorted(inner.failures, key=lambda each: each.rank)] == [
        (1, "raised"),
        (2, "killed"),
    ]
    text = "".join(traceback.format_exception(error))
    assert "in explode" in text
    assert "rank 2 was killed by SIGKILL" in text
    assert f"raised faults.LockError: {MESSAGE}" in str(error)


def test_half_a_line_is_no_message() -> None:
    here, there = os.pipe()
    os.write(there, b'["keepcause/1", "fai')
    os.close(there)
    error = failure_of([(0, here, None)])
    assert error.failures[0].kind == "closed"
    os.close(here)


def test_a_process_that_ignores_sigterm_is_killed(crew: Crew) -> None:
    failure_of(crew.start("raise", "deaf"), terminate=True)
    assert crew.workers[1][2].exitcode == -9


def make_error() -> WorkersFailed:
    """Return an error as `wait_for_workers` makes them, without workers."""
    cause = keepcause.WorkerInitError(1, "x", phase="load", cause=ValueError(threading.Lock()))
    failures = [
        WorkerFailure(0, "killed", "was killed by SIGKILL", 11.0, None, None, -9),
        WorkerFailure(1, "raised", "raised ValueError: x", 10.0, "load", 0.5, 1, cause),
    ]
    return WorkersFailed(failures, 2, 4)


@pytest.mark.parametrize(
    "way", [lambda exc: pickle.loads(pickle.dumps(exc)), copy.copy, copy.deepcopy, lambda exc: from_json(to_json(exc))]
)
def test_the_error_travels_on(way: Any) -> None:
    error = way(make_error())
    assert str(error) == str(make_error())
    assert (error.rank, error.phase, error.ready, error.total) == (1, "load", 2, 4)
    assert [(each.rank, each.kind, each.exitcode) for each in error.failures] == [(1, "raised", 1), (0, "killed", -9)]
    assert type(error.root) is ValueError
    assert type(error.__cause__) is keepcause.WorkerInitError


def test_it_is_rebuilt_from_texts() -> None:
    assert str(WorkersFailed("one text")) == "one text"
    assert str(WorkersFailed("Long error message", "two")) == "Long error message\ntwo"
    assert isinstance(WorkersFailed(), RuntimeError)


def test_its_text_is_bounded() -> None:
    failures = [
        WorkerFailure(rank, "raised", f"raised ValueError: {rank}" + "x" * 500, float(rank)) for rank in range(500)
    ]
    assert len(str(WorkersFailed(failures, 0, 500))) < 9_500
