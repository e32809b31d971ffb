"""WorkerInitError, the guard, and pool initializers whose failure is kept for the first task."""

from __future__ import annotations

import asyncio
import enum
import functools
import io
import json
import pickle
import socket
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import pytest
from faults import MESSAGE, AbortError, broken_initializer, double, explode

from keepcause import (
    WorkerInitError,
    checked_task,
    deferred_initializer,
    from_json,
    guard,
    init_worker_guarded,
    raise_if_init_failed,
    root_of,
    to_json,
)
from keepcause.runtime import worker
from keepcause.runtime.worker import PROTOCOL, one_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator


class Queue:
    """What the guard needs of a queue."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def put(self, message: Any) -> None:
        self.messages.append(message)


def test_both_call_forms() -> None:
    cause = ValueError("x")
    long = WorkerInitError(
        "no weights", rank=3, local_rank=1, phase="load", device="cuda:1", context={"path": "/ckpt"}, cause=cause
    )
    assert (long.message, long.rank, long.local_rank, long.phase, long.device) == ("no weights", 3, 1, "load", "cuda:1")
    assert long.context == {"path": "/ckpt", "rank": 3}
    assert long.root is cause is long.__cause__
    assert str(long) == "rank 3, load, cuda:1: no weights (root cause: ValueError: x)"
    short = WorkerInitError(3, "no weights", cause=cause)
    assert (short.rank, short.message, short.context, short.root) == (3, "no weights", {"rank": 3}, cause)
    assert isinstance(short, RuntimeError)
    assert WorkerInitError(None, "no weights").rank is None


def test_texts_alone_are_kept() -> None:
    assert str(WorkerInitError("the whole text\nof a traceback")) == "the whole text\nof a traceback"
    both = str(WorkerInitError("Long error message", "rank 3: no weights"))
    assert "Long error message" in both
    assert "rank 3: no weights" in both
    assert str(WorkerInitError()) == "the worker failed to start"


def test_it_is_its_own_root_without_a_cause() -> None:
    error = WorkerInitError("no weights", rank=1)
    assert root_of(error) is error is error.root
    assert str(error) == "rank 1: no weights"
    try:
        try:
            explode("plain exception")
        except ValueError:
            raise error
    except WorkerInitError:
        assert type(root_of(error)) is ValueError


def test_context_becomes_plain_data() -> None:
    context: dict[Any, Any] = {"lock": threading.Lock(), "shape": (1, 2), 5: {"a"}, "rank": 9}
    error = WorkerInitError("x", rank=1, context=context)
    assert error.context["rank"] == 1
    assert error.context["shape"] == [1, 2]
    assert error.context["5"] == "{'a'}"
    assert "lock" in error.context["lock"]
    assert pickle.loads(pickle.dumps(error)).context == error.context


class Rank(int):
    """A number of another library."""


def test_numbers_of_other_libraries_are_numbers() -> None:
    error = WorkerInitError("x", rank=Rank(3), context={"size": Rank(4), "huge": 10**5_000})
    assert type(error.rank) is int
    assert type(error.context["size"]) is int
    assert type(error.context["huge"]) is str
    assert from_json(to_json(error)).context == error.context  # type: ignore[attr-defined]


def test_equal_errors_stay_two_errors() -> None:
    one, two = WorkerInitError(1, "x"), WorkerInitError(1, "x")
    assert one != two
    assert len({one, two}) == 2
    assert not hasattr(WorkerInitError, "message")  # a transport would rebuild it by keyword


def test_text_is_bounded_and_its_first_line_says_all() -> None:
    error = WorkerInitError(
        "line one\nline two" + "x" * 100_000, rank=3, cause=ValueError("first\nsecond" + "y" * 100_000)
    )
    assert len(str(error)) < 9_500
    assert str(error).splitlines()[0].startswith("rank 3: line one (root cause: ValueError: first / second")


def test_guard_raises_and_sends_the_failure() -> None:
    queue = Queue()
    with pytest.raises(WorkerInitError) as caught, guard(3, conn=queue, device="cuda:3", phase="begin") as g:  # noqa: PT012
        g.step("load weights")
        explode("plain exception")
    error = caught.value
    assert (error.rank, error.phase, error.device, type(error.root)) == (3, "load weights", "cuda:3", ValueError)
    assert error.context.keys() == {"rank", "host", "pid"}
    assert [message[:3] for message in queue.messages] == [
        (PROTOCOL, "phase", 3),
        (PROTOCOL, "phase", 3),
        (PROTOCOL, "failed", 3),
    ]


def test_guard_says_ready_once_and_then_keeps_out() -> None:
    queue = Queue()
    with guard(0, conn=queue):
        pass
    assert [message[1] for message in queue.messages] == ["ready"]
    queue = Queue()
    with pytest.raises(ValueError, match=MESSAGE), guard(0, conn=queue) as g:  # noqa: PT012
        g.ready({"port": 1})
        g.ready("again")
        explode("plain exception")
    assert [(message[1], message[4]) for message in queue.messages] == [("ready", {"port": 1})]


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_what_ends_a_process_passes_through_and_is_reported(kind: type[BaseException]) -> None:
    queue = Queue()
    with pytest.raises(kind), guard(0, conn=queue):
        raise kind
    assert [message[1] for message in queue.messages] == ["failed"]


def test_a_cancelled_task_stays_cancelled_and_is_reported() -> None:
    queue = Queue()

    async def start() -> None:
        async with asyncio.timeout(0.01):
            with guard(0, conn=queue):
                await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        asyncio.run(start())
    assert [message[1] for message in queue.messages] == ["failed"]


def test_other_base_exceptions_become_exceptions() -> None:
    with pytest.raises(WorkerInitError) as caught, guard(0):
        explode("BaseException")
    assert type(caught.value.root) is AbortError


def test_guard_completes_a_worker_init_error_of_its_own() -> None:
    with pytest.raises(WorkerInitError) as caught, guard(3, phase="load", device=0):
        raise WorkerInitError("no weights", context={"shard": 4})
    error = caught.value
    assert (error.message, error.rank, error.phase, error.device) == ("no weights", 3, "load", "0")
    assert error.context["rank"] == 3
    assert error.context["shard"] == 4
    assert error.__cause__ is None


def test_guard_decorates_each_call() -> None:
    queue = Queue()

    @guard(2, conn=queue)
    def init(value: int) -> int:
        """Do it."""
        return 1 // value

    assert init(1) == 1
    with pytest.raises(WorkerInitError, match=r"rank 2.*ZeroDivisionError"):
        init(0)
    assert init(1) == 1
    assert init.__doc__ == "Do it."
    assert [message[1] for message in queue.messages] == ["ready", "failed", "ready"]


def test_guard_decorates_each_run_of_a_coroutine() -> None:
    queue = Queue()

    async def init(value: int) -> int:
        await asyncio.sleep(0)
        return 1 // value

    for guarded in (guard(2, conn=queue)(init), lambda value: init_worker_guarded(2, init, value, conn=queue)):
        queue.messages.clear()
        assert asyncio.run(guarded(1)) == 1
        coroutine = guarded(0)
        assert [message[1] for message in queue.messages] == ["ready"], "it has not begun"
        with pytest.raises(WorkerInitError, match=r"rank 2.*ZeroDivisionError"):
            asyncio.run(coroutine)
        assert [message[1] for message in queue.messages] == ["ready", "failed"]


def generator() -> Iterator[int]:
    explode("plain exception")
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


async def coroutine() -> None:
    explode("plain exception")


@pytest.mark.parametrize("function", [generator, async_generator, functools.partial(generator)])
def test_a_guard_decorates_no_generator(function: Callable[[], object]) -> None:
    """None of it has run when the call returns, and nobody but itself knows which of its steps ends the start-up."""
    queue = Queue()
    with pytest.raises(TypeError, match=r"generator\b.* is a generator function.*with guard\(\.\.\.\) as"):
        guard(2, conn=queue)(function)
    assert not queue.messages
    with pytest.raises(WorkerInitError, match=r"rank 2.*is a generator function") as caught:
        init_worker_guarded(2, function, conn=queue)
    assert type(caught.value.root) is TypeError
    assert [message[1] for message in queue.messages] == ["failed"]


@pytest.mark.parametrize("function", [generator, async_generator, coroutine])
def test_no_initializer_that_a_pool_only_begins(function: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match=f"{function.__name__} would not run: .*no plain function"):
        deferred_initializer(function)


def test_a_guard_can_be_entered_again() -> None:
    queue = Queue()
    again = guard(2, conn=queue)
    for _ in range(2):
        with pytest.raises(WorkerInitError), again:
            explode("plain exception")
    assert [message[1] for message in queue.messages] == ["failed", "failed"]


def test_a_failure_that_cannot_be_sent_is_raised_all_the_same() -> None:
    here, there = get_context("spawn").Pipe(duplex=False)
    here.close()
    there.close()
    with pytest.raises(WorkerInitError) as caught, guard(0, conn=there):
        explode("plain exception")
    assert "could not be sent to the parent: OSError" in caught.value.__notes__[0]


def test_a_ready_message_that_cannot_be_pickled_is_a_failure() -> None:
    here, there = get_context("spawn").Pipe(duplex=False)
    with pytest.raises(WorkerInitError), guard(0, conn=there) as g:
        g.ready(threading.Lock())
    assert here.recv()[1] == "failed"
    here.close()
    there.close()


class Phase(enum.Enum):
    """Steps that have numbers."""

    LOAD = 1


@pytest.mark.parametrize(("phase", "text"), [(Phase.LOAD, "Phase.LOAD"), (["load"], "['load']")])
def test_a_phase_may_be_any_object(phase: object, text: str) -> None:
    queue = Queue()
    with pytest.raises(WorkerInitError) as caught, guard(0, conn=queue, phase=phase):
        explode("plain exception")
    assert str(caught.value).startswith(f"rank 0, {text}: ")
    assert queue.messages[0][4] == text
    assert str(WorkerInitError("x", phase=phase)) == f"{text}: x"


def test_init_worker_guarded() -> None:
    queue = Queue()
    assert init_worker_guarded(1, divmod, 7, 2, conn=queue) == (3, 1)
    with pytest.raises(WorkerInitError) as caught:
        init_worker_guarded(1, divmod, 7, 0)
    assert caught.value.rank == 1
    assert type(caught.value.root) is ZeroDivisionError


def test_streams_and_sockets_get_lines_of_json() -> None:
    text, binary = io.StringIO(), io.BytesIO()
    one, two = socket.socketpair()
    for stream in (text, binary, one):
        with pytest.raises(WorkerInitError), guard(3, conn=stream) as g:  # noqa: PT012
            g.step("load")
            explode("holds a lock")
    received = two.recv(100_000)
    one.close()
    two.close()
    for line in (text.getvalue(), binary.getvalue().decode(), received.decode()):
        phase, failed = map(json.loads, line.splitlines())
        assert [phase[0], phase[1], phase[2], phase[4]] == [PROTOCOL, "phase", 3, "load"]
        assert from_json(failed[4]).rank == 3  # type: ignore[attr-defined]


def test_one_line_holds_every_line() -> None:
    assert one_line(ValueError("a\nb")) == "ValueError: a / b"


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, asyncio.CancelledError])
def test_an_initializer_that_leaves_has_failed(kind: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_failure", None)

    def leave() -> None:
        raise kind

    deferred_initializer(leave, rank=5)()
    with pytest.raises(WorkerInitError, match="rank 5, pool initializer: the initializer left") as caught:
        raise_if_init_failed()
    assert type(caught.value.root) is kind
    deferred_initializer(double)(1)
    raise_if_init_failed()


def test_an_interrupt_stops_an_initializer() -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        deferred_initializer(stop)()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_pool_raises_its_initializers_failure_from_the_first_task(method: str) -> None:
    initializer = deferred_initializer(broken_initializer)
    with get_context(method).Pool(2, initializer=initializer, initargs=("broken __init__",)) as pool:
        with pytest.raises(WorkerInitError) as caught:
            pool.apply_async(checked_task(double), (2,)).get(timeout=30)
        assert isinstance(caught.value.rank, int)
        assert caught.value.phase == "pool initializer"
        assert type(caught.value.root).__name__ == "BrokenInitError"
        assert "PoolWorker-" in caught.value.context["process"]
        with pytest.raises(WorkerInitError):
            pool.map_async(checked_task(double), [1, 2, 3]).get(timeout=30)


def test_an_executor_raises_its_initializers_failure_from_the_first_task() -> None:
    context = get_context("spawn")
    initializer = deferred_initializer(broken_initializer, rank=5)
    with ProcessPoolExecutor(1, context, initializer=initializer, initargs=("BaseException",)) as pool:
        with pytest.raises(WorkerInitError) as caught:
            pool.submit(raise_if_init_failed).result(timeout=30)
        assert caught.value.rank == 5
        assert type(caught.value.root) is AbortError
    bare = ProcessPoolExecutor(1, context, initializer=broken_initializer, initargs=("plain exception",))
    with bare as pool, pytest.raises(BrokenProcessPool):  # what happens without it
        pool.submit(double, 1).result(timeout=30)
    with ProcessPoolExecutor(1, context, initializer=deferred_initializer(double), initargs=(1,)) as pool:
        assert pool.submit(checked_task(double), 2).result(timeout=30) == 4
