"""The ways in which an error is hard to carry, and functions that fail by them, importable in child processes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from keepcause import guard

if TYPE_CHECKING:
    from collections.abc import Callable

MESSAGE = "shard 3 is short"
RANK = 3
PHASE = "load weights"


class NaiveError(ValueError):
    """Pickles, but fails in loads: hands less to its base than it takes."""

    def __init__(self, rank: int, message: str) -> None:
        super().__init__(message)
        self.rank_there = rank


class BrokenInitError(ValueError):
    """Its text is made of two arguments that its base never sees."""

    def __init__(self, code: int, detail: str) -> None:
        super().__init__(f"{detail} ({code})")
        self.code, self.detail = code, detail


class LockError(OSError):
    """Holds what can't be pickled."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.lock = threading.Lock()
        self.size = 7


class AbortError(BaseException):
    """Missed by `except Exception`."""


def _local_class() -> BaseException:
    class LocalError(LookupError):
        pass

    return LocalError(MESSAGE)


CAUSES: dict[str, tuple[type[BaseException], Callable[[], BaseException]]] = {
    "plain exception": (ValueError, lambda: ValueError(MESSAGE)),
    "naive class": (NaiveError, lambda: NaiveError(RANK, MESSAGE)),
    "holds a lock": (LockError, lambda: LockError(MESSAGE)),
    "lambda in args": (ValueError, lambda: ValueError(MESSAGE, lambda: None)),
    "class unknown to the parent": (LookupError, _local_class),
    "broken __init__": (BrokenInitError, lambda: BrokenInitError(5, MESSAGE)),
    "BaseException": (AbortError, lambda: AbortError(MESSAGE)),
}
"""Cause -> the class that the parent can tell it by, and how it is made."""


def explode(cause: str) -> None:
    """Raise that cause; the name of this function has to be in what the parent prints."""
    raise CAUSES[cause][1]()


def start(cause: str) -> None:
    """Fail as a worker would: the cause, and an error about it."""
    try:
        explode(cause)
    except BaseException as exc:
        raise KeyError("no weights") from exc


def guarded_start(cause: str, conn: Any = None) -> None:
    """Fail under a guard, with a connection to the parent if there is one."""
    with guard(RANK, conn=conn) as g:
        g.step(PHASE)
        start(cause)


def broken_initializer(cause: str) -> None:
    """Fail as a pool's initializer."""
    start(cause)


def double(value: int) -> int:
    """Be a task."""
    return 2 * value
