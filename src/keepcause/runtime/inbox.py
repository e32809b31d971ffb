"""What arrives from one worker, read without blocking; imports chain, plain, worker's protocol."""

from __future__ import annotations

import json
import os
import pickle
import struct
import threading
import time
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Final

from .chain import from_json, load
from .plain import shown
from .worker import PROTOCOL, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_NEVER: Final = 1e12
"""Seconds since the epoch that no clock shows."""
PATIENCE: Final = 0.1
"""Seconds that a message may take to arrive once it has begun, before the other workers get their turn."""
AT_ONCE: Final = 4_096
"""Bytes of a line that are read before it is asked again whether more are there."""

Message = tuple[str, float, Any]
"""Kind, seconds since the epoch, data: a phase's name, a payload, or the exception that was sent."""


class Objects:
    """Reads pickled objects from a multiprocessing Connection, or what has its `fileno`, `poll` and `recv_bytes`.

    A message whose sender stops in its middle keeps a daemon thread waiting, not the caller.
    """

    def __init__(self, conn: Any) -> None:
        self._conn = conn
        self._thread: threading.Thread | None = None
        self._arrived: Any = None
        self._error: BaseException | None = None

    def handle(self) -> Any:
        """Return what can be waited for, None while a message is under way."""
        return self._conn if self._thread is None else None

    def has_more(self) -> bool:
        """Tell whether something has arrived, or is under way, that `take` has not returned yet."""
        return self._thread is not None or _has_data(self._conn)

    def take(self) -> Message | None:
        """Return the next message, None if there is no whole one yet.

        Raises:
            EOFError: the other side has closed the connection.
            Exception: what unpickling the message raised.
        """
        if self._thread is None:
            if not _has_data(self._conn):
                return None
            self._thread = threading.Thread(target=self._receive, daemon=True)
            self._thread.start()
            self._thread.join(PATIENCE)
        if self._thread.is_alive():
            return None
        self._thread = None
        if self._error is not None:
            raise self._error
        arrived = self._arrived
        if isinstance(arrived, tuple) and len(arrived) == 5 and type(arrived[0]) is str and arrived[0] == PROTOCOL:
            return _message(arrived, load)
        return "ready", time.time(), arrived

    def _receive(self) -> None:
        try:
            data = self._conn.recv_bytes()
        except (OSError, EOFError) as error:
            self._error = EOFError(str(error))
            return
        try:
            self._arrived = pickle.loads(data)
        except BaseException as error:
            # What an object raises that is rebuilt must neither end this thread nor pass for the connection's end.
            usual = isinstance(error, Exception) and not isinstance(error, EOFError)
            self._error = error if usual else pickle.UnpicklingError(f"rebuilding it raised {one_line(error)}")


class Lines:
    """Reads lines of JSON from a socket, a pipe or its file descriptor, and no byte beyond the last line it returns.

    Args:
        source: a file descriptor, or an object with `fileno`; what such an object has already buffered is not seen.
    """

    def __init__(self, source: Any) -> None:
        if not isinstance(source, int) and not hasattr(source, "fileno"):
            raise TypeError(f"expected a Connection, a socket, a pipe or a descriptor, not {type(source).__name__}")
        self._source = source
        self._file = source if isinstance(source, int) else source.fileno()
        self._line = bytearray()

    def handle(self) -> Any:
        """Return what can be waited for."""
        return self._source

    def has_more(self) -> bool:
        """Tell whether something has arrived that `take` has not returned yet."""
        return bool(wait([self._file], 0))

    def take(self) -> Message | None:
        """Return the next message, None if there is no whole line yet; raises EOFError at the end of the stream."""
        limit = time.monotonic() + PATIENCE
        while not self._line.endswith(b"\n"):
            if time.monotonic() > limit or not self.has_more():
                return None
            self._read(_arrived(self._file))
        line = self._line.decode(errors="replace")
        self._line.clear()
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, list) or len(message) != 5 or message[0] != PROTOCOL:
            return "ready", time.time(), line.rstrip("\n")
        return _message(message, from_json)

    def _read(self, count: int) -> None:
        """Read up to so many bytes that are there, and none behind the end of a line."""
        for _ in range(count):
            byte = _read_byte(self._file)
            if not byte:  # half a line of a killed worker is no message
                raise EOFError
            self._line += byte
            if byte == b"\n":
                break


def _message(parts: Sequence[Any], load_error: Callable[[Any], BaseException]) -> Message:
    """Return a message of the protocol, whatever made it; raises ValueError where it has not the protocol's form."""
    _, kind, _, when, data = parts
    if type(kind) is not str or type(when) not in (int, float) or not abs(when) < _NEVER:
        raise ValueError(f"not a message of {PROTOCOL}: {shown(parts)}")
    match kind:
        case "failed":
            data = load_error(data)
        case "phase" if type(data) is not str:
            data = shown(data)
    return kind, when, data


def _has_data(conn: Any) -> bool:
    try:
        return bool(conn.poll(0))
    except OSError as error:
        raise EOFError(str(error)) from error


def _arrived(file: int) -> int:
    """Return how many bytes can be read without waiting, 1 where that is not known."""
    try:
        import fcntl  # not on Windows
        import termios

        count: int = struct.unpack("i", fcntl.ioctl(file, termios.FIONREAD, bytes(4)))[0]
    except (ImportError, OSError):
        return 1
    return max(1, min(count, AT_ONCE))


def _read_byte(file: int) -> bytes:
    try:
        return os.read(file, 1)
    except OSError:  # a reset connection is a closed one
        return b""
