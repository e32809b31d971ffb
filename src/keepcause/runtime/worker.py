"""The worker's side: WorkerInitError, its guard, deferred pool initializers; imports chain, describe, plain."""

from __future__ import annotations

import functools
import inspect
import json
import multiprocessing
import operator
import os
import socket
import sys
import time
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from .chain import Carried, dump, to_json
from .describe import text_of, type_name
from .plain import as_plain, cut, is_a

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Self

P = ParamSpec("P")
R = TypeVar("R")

PROTOCOL: Final = "keepcause/1"
"""First item of every message on a connection: (PROTOCOL, kind, rank, seconds since the epoch, data).

Kinds and their data: "phase", its name; "ready", the payload; "failed", `chain.dump` of the WorkerInitError, in JSON
`chain.to_json`.
"""
MESSAGE: Final = 20_000
"""Characters kept of a message."""
LINE: Final = 1_500
"""Characters kept of the root's text in the first line of an error's text."""


class WorkerInitError(Carried, RuntimeError):
    """A worker, actor or rank failed while it was starting; its fields, chain and frames' text cross process borders.

    `WorkerInitError("message", rank=3, phase="load weights", cause=exc)` or `WorkerInitError(3, "message", cause=exc)`.
    One or two texts alone are accepted too, since some transports rebuild errors so; the text then holds both.

    Attributes:
        message: what was being done, in the caller's words.
        rank, local_rank: numbers of the worker, or None.
        phase: name of the step of the start-up, or None.
        device: name of the device, or None.
        context: more facts as plain data; always holds `rank`.
    """

    def __init__(
        self,
        first: object = "",
        second: object = None,
        /,
        *,
        rank: int | None = None,
        local_rank: int | None = None,
        phase: object = None,
        device: object = None,
        context: Mapping[str, Any] | None = None,
        cause: BaseException | None = None,
    ) -> None:
        if first is None or hasattr(first, "__index__"):
            rank, message = (rank if first is None else operator.index(first)), second
        else:
            message = first if second is None else f"{first}\n{second}"
        self.message = "" if message is None else cut(str(message), MESSAGE)
        super().__init__(self.message)
        self.rank = as_plain(rank)
        self.local_rank = as_plain(local_rank)
        self.phase = None if phase is None else str(phase)
        self.device = None if device is None else str(device)
        self.context: dict[str, Any] = {**as_plain(context or {}), "rank": self.rank}
        if cause is not None:
            self.__cause__ = cause

    def _keepcause_restore(self, fields: dict[str, Any]) -> None:
        absent = dict.fromkeys(("rank", "local_rank", "phase", "device"))
        context = {"context": {"rank": fields.get("rank")}}
        super()._keepcause_restore({"message": "", **absent, **context, **fields})

    def __str__(self) -> str:
        line, _, rest = (self.message or "the worker failed to start").partition("\n")
        where = [f"rank {self.rank}" if self.rank is not None else "", self.phase or "", self.device or ""]
        if any(where):
            line = f"{', '.join(filter(None, where))}: {line}"
        root = self.root
        if root is not self:
            line += f" (root cause: {one_line(root)})"
        return cut(f"{line}\n{rest}" if rest else line, 8_000)


def one_line(exc: BaseException) -> str:
    """Return an exception's type and text as one bounded line."""
    return cut(f"{type_name(exc)}: {' / '.join(text_of(exc).splitlines())}", LINE)


class guard:  # noqa: N801 - used like contextlib's own managers
    """Turn what fails inside into a WorkerInitError, raise it, and send it over `conn` where one is given.

    A context manager, and a decorator that guards each call, and each run of a coroutine; no generator, which knows
    alone where its start-up is over. SystemExit, GeneratorExit, KeyboardInterrupt and asyncio's CancelledError are
    reported and pass through; a WorkerInitError is completed, not wrapped. After `ready` the start-up is over: errors
    pass through unreported.

    Args:
        rank: number of this worker.
        conn: a multiprocessing Connection or queue; or a stream or socket, which gets lines of JSON.
        local_rank, device, context: see WorkerInitError.
        phase: name of the first step.
    """

    def __init__(
        self,
        rank: int | None,
        *,
        conn: Any = None,
        local_rank: int | None = None,
        device: object = None,
        phase: object = None,
        context: Mapping[str, Any] | None = None,
    ) -> None:
        self.rank, self.conn, self.local_rank = rank, conn, local_rank
        self.phase = None if phase is None else str(phase)
        self.device = None if device is None else str(device)
        self.context = dict(context or {})
        self._over = False

    def __enter__(self) -> Self:
        self._over = False
        if self.phase is not None:
            self.step(self.phase)
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        if self._over:
            return
        if exc is None:
            self.ready()
            return
        self._over = True
        error = self._error(exc)
        if self.conn is not None:
            try:
                send(self.conn, "failed", self.rank, error)
            except Exception as problem:
                error.add_note(f"This error could not be sent to the parent: {type(problem).__name__}: {problem}")
        if error is not exc and not _ends(exc):
            raise error from exc

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Return the function, each call of it under a guard like this one; raises TypeError for a generator's."""
        if _is_generator(function):
            raise TypeError(
                f"{_named(function)} is a generator function, which does not run when it is called: "
                "use `with guard(...) as start:` in it, and call start.ready() where the start-up is over"
            )
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(*args: P.args, **kwargs: P.kwargs) -> Any:
                with self._again():
                    return await function(*args, **kwargs)

            return awaited  # type: ignore[return-value]

        @functools.wraps(function)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            with self._again():
                return function(*args, **kwargs)

        return guarded

    def _again(self) -> guard:
        return guard(
            self.rank,
            conn=self.conn,
            local_rank=self.local_rank,
            device=self.device,
            phase=self.phase,
            context=self.context,
        )

    def step(self, phase: object) -> None:
        """Name the step that begins now; sent over `conn`, it lets the parent say where a silent worker is."""
        self.phase = str(phase)
        if self.conn is not None and not self._over:
            send(self.conn, "phase", self.rank, self.phase)

    def ready(self, payload: object = None) -> None:
        """Say that the worker is ready, and hand `payload` to the parent; a second call does nothing."""
        if self._over:
            return
        if self.conn is not None:
            send(self.conn, "ready", self.rank, payload)
        self._over = True

    def _error(self, exc: Any) -> WorkerInitError:
        here = {"host": socket.gethostname(), "pid": os.getpid()}
        if is_a(exc, WorkerInitError):
            for name in ("rank", "local_rank", "phase", "device"):
                if getattr(exc, name) is None:
                    setattr(exc, name, getattr(self, name))
            exc.context = {**here, **as_plain(self.context), **exc.context, "rank": exc.rank}
            return exc  # type: ignore[no-any-return]
        return WorkerInitError(
            "the worker failed to start",
            rank=self.rank,
            local_rank=self.local_rank,
            phase=self.phase,
            device=self.device,
            context={**here, **self.context},
            cause=exc,
        )


def _is_generator(function: Callable[..., object]) -> bool:
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


def _named(function: Callable[..., object]) -> str:
    return getattr(function, "__qualname__", None) or repr(function)


def _ends(exc: BaseException) -> bool:
    """Tell whether an exception ends a process, a generator or a task, which another in its place would not do."""
    tasks = sys.modules.get("asyncio.exceptions")  # importing it would take longer than all the rest
    cancelled = tasks is not None and is_a(exc, tasks.CancelledError)
    return cancelled or is_a(exc, SystemExit | KeyboardInterrupt | GeneratorExit)


def send(conn: Any, kind: str, rank: int | None, data: Any) -> None:
    """Send one message of the protocol: an object to a queue or Connection, a line of JSON to a socket or stream."""
    if hasattr(conn, "put") or hasattr(conn, "send_bytes"):
        message = (PROTOCOL, kind, rank, time.time(), dump(data) if kind == "failed" else data)
        conn.put(message) if hasattr(conn, "put") else conn.send(message)
        return
    line = json.dumps([PROTOCOL, kind, rank, time.time(), to_json(data) if kind == "failed" else as_plain(data)]) + "\n"
    if hasattr(conn, "sendall"):
        conn.sendall(line.encode())
        return
    try:
        conn.write(line)
    except TypeError:  # a binary stream
        conn.write(line.encode())
    conn.flush()


def init_worker_guarded(rank: int, fn: Callable[..., R], /, *args: Any, conn: Any = None) -> R:
    """Call `fn(*args)` under a guard and return its result, after telling a parent on `conn` that the worker is ready.

    What a coroutine function returns is to be awaited; the guard is around its run.

    Raises:
        WorkerInitError: `fn` raised, which the error has with its whole chain; or it is a generator function.
    """
    around = guard(rank, conn=conn)
    try:
        guarded = around(fn)
    except TypeError:
        with around:  # the parent is to be told, too
            raise
    return guarded(*args)


_failure: WorkerInitError | None = None


class _DeferredInitializer:
    """Calls an initializer and keeps its failure for the first task, since pools hide an initializer's error."""

    def __init__(self, fn: Callable[..., object], rank: int | None) -> None:
        self.fn, self.rank = fn, rank

    def __call__(self, *args: Any) -> None:
        global _failure
        name = multiprocessing.current_process().name
        number = name.rpartition("-")[2]
        rank = int(number) if self.rank is None and number.isdecimal() else self.rank
        about: dict[str, Any] = {"rank": rank, "phase": "pool initializer", "context": {"process": name}}
        try:
            with guard(**about):
                self.fn(*args)
            _failure = None
        except WorkerInitError as error:
            _failure = error
        except KeyboardInterrupt:
            raise
        except BaseException as exc:
            _failure = WorkerInitError("the initializer left", cause=exc, **about)


class _CheckedTask:
    """Raises the initializer's failure in place of a task."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise_if_init_failed()
        return self.fn(*args, **kwargs)


def deferred_initializer(fn: Callable[..., object], *, rank: int | None = None) -> Callable[..., None]:
    """Return a pool initializer that keeps its failure for the first task.

    For multiprocessing.Pool, ProcessPoolExecutor and loky, which otherwise start workers again for ever or say no more
    than that the pool is broken. `rank` defaults to the number in the process's name (`ForkPoolWorker-3`: 3). Pair it
    with `checked_task`, or call `raise_if_init_failed` at the start of each task.

    Raises:
        TypeError: `fn` is a coroutine or generator function, of which a pool's call would run nothing.
    """
    if _is_generator(fn) or inspect.iscoroutinefunction(fn):
        raise TypeError(f"{_named(fn)} would not run: a pool only calls its initializer, and this is no plain function")
    return _DeferredInitializer(fn, rank)


def checked_task(fn: Callable[..., R]) -> Callable[..., R]:
    """Return a task that raises this process's deferred failure, else calls `fn`; picklable where `fn` is."""
    return _CheckedTask(fn)


def raise_if_init_failed() -> None:
    """Raise the WorkerInitError that this process's deferred initializer ended with, if it did."""
    if _failure is not None:
        raise _failure.with_traceback(None)
