"""What may go wrong with one file and must not keep the others from being looked at; standard library only."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, TypeVar

from keepcause.lint.checked import Trouble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import FrameType

T = TypeVar("T")

SECONDS = 60.0
"""How long a file may be worked on, in seconds of computing, so that neither a busy machine nor a halt counts."""


class TooLongError(BaseException):
    """A file takes too long; nothing that waits for exceptions in between may catch it."""


def attempt(path: Path | str, work: Callable[[], T], done: str) -> T | Trouble:
    """What `work` gives, or why the file at `path` can't be `done`, such as `checked`."""
    try:
        with _bounded():
            return work()
    except RecursionError:
        return Trouble(str(path), f"nested too deeply to be {done}")
    except TooLongError:
        return Trouble(str(path), f"can't be {done}: it takes longer than {SECONDS:g} s", passing=True)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        reason = f"can't be {done} because of a fault in keepcause, please report it: {what}"
        return Trouble(str(path), reason, passing=True)


@contextlib.contextmanager
def _bounded() -> Iterator[None]:
    """Raise TooLongError after `SECONDS`, and each second from then on; does nothing where there is no such timer."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGPROF, _end)
    try:
        signal.setitimer(signal.ITIMER_PROF, SECONDS, 1)
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _end(number: int, frame: FrameType | None) -> None:
    raise TooLongError
