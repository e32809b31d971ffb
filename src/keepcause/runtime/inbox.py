"""What arrives from one worker, read without blocking; imports the standard library, chain and worker's protocol."""

from __future__ import annotations

import json
import os
import threading
import time
from multiprocessing.connection import wait
from typing import Any, Final

from .chain import from_json, load
from .worker import PROTOCOL

PATIENCE: Final = 0.1
"""Seconds that a message may take to arrive once it has begun, before the other workers get their turn."""

Message = tuple[str, float, Any]
"""Kind, seconds since the epoch, data: a phase's name, a payload, or the exception that was sent."""


class Objects:
    """Reads pickled objects from a multiprocessing Connection, or anything that has `poll` and `recv` as it does.

    A message whose sender stops in its middle keeps a daemon thread waiting, not the caller.
    """

    def __init__(self, conn: Any) -> None:
        self._conn = conn
        self._thread: threading.Thread | None = None
        self._arrived: Any = None
        self._error: Exception | None = None

    def handle(self) -> Any:
        """Return what can be waited for, None while a message is under way."""
        return self._conn if self._thread is None else None

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
            _, kind, _, when, data = arrived
            return kind, when, load(data) if kind == "failed" else data
        return "ready", time.time(), arrived

    def _receive(self) -> None:
        try:
            self._arrived = self._conn.recv()
        except OSError as error:
            self._error = EOFError(str(error))
        except Exception as error:
            self._error = error


class Lines:
    """Reads lines of JSON from a socket, a pipe or its file descriptor, and no byte beyond the last line it returns.

    Args:
        source: a file descriptor, or an object with `fileno`; what such an object has already buffered is not seen.
    """

    def __init__(self, source: Any) -> None:
        self._source = source
        self._file = source if isinstance(source, int) else source.fileno()
        self._line = bytearray()

    def handle(self) -> Any:
        """Return what can be waited for."""
        return self._source

    def take(self) -> Message | None:
        """Return the next message, None if there is no whole line yet; raises EOFError at the end of the stream."""
        while not self._line.endswith(b"\n"):
            if not wait([self._file], 0):
                return None
            byte = _read_byte(self._file)
            if not byte:  # half a line of a killed worker is no message
                raise EOFError
            self._line += byte
        line = self._line.decode(errors="replace")
        self._line.clear()
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, list) or len(message) != 5 or message[0] != PROTOCOL:
            return "ready", time.time(), line.rstrip("\n")
        _, kind, _, when, data = message
        return kind, when, from_json(data) if kind == "failed" else data


def _has_data(conn: Any) -> bool:
    try:
        return bool(conn.poll(0))
    except OSError as error:
        raise EOFError(str(error)) from error


def _read_byte(file: int) -> bytes:
    try:
        return os.read(file, 1)
    except OSError:  # a reset connection is a closed one
        return b""
