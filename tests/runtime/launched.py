"""Workers that start well or fail in every way, importable in child processes."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import resource
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from faults import explode

from keepcause import guard, wait_for_workers

if TYPE_CHECKING:
    from collections.abc import Callable

FOREVER = 120


class Slow:
    """Takes a second to be rebuilt."""

    def __reduce__(self) -> Any:
        return time.sleep, (1.0,)


class Leaving:
    """Ends whoever rebuilds it."""

    def __reduce__(self) -> Any:
        return sys.exit, ("not here",)


def _hang() -> None:
    time.sleep(FOREVER)


def _be_deaf() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _hang()


def _raise() -> None:
    explode("plain exception")


def _raise_unpicklable() -> None:
    explode("holds a lock")


def _raise_big() -> None:
    raise ValueError("start " + "x" * 10_000_000, threading.Lock(), b"y" * 10_000_000)


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _segfault() -> None:
    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.kill(os.getpid(), signal.SIGSEGV)


def _exit_at_once() -> None:
    os._exit(7)


WAYS: dict[str, Callable[[], None]] = {
    "well": lambda: None,
    "raise": _raise,
    "unpicklable": _raise_unpicklable,
    "big": _raise_big,
    "SIGKILL": _kill,
    "SIGSEGV": _segfault,
    "exit 7": _exit_at_once,
    "sys.exit": lambda: sys.exit("no device"),
    "hang": _hang,
    "deaf": _be_deaf,
}


PAYLOADS = {"many phases": None, "slow payload": Slow(), "leaving payload": Leaving()}


def work(rank: int, conn: Any, way: str) -> None:
    """Start in that way."""
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 - it lives as long as the process
    with guard(rank, conn=conn) as g:
        g.step("load weights")
        if way == "closed pipe":
            conn.close()
            _hang()
        if way == "ready, then SIGKILL":
            g.ready()
            _kill()
        if way == "foreign":
            conn.send({"status": "READY", "rank": rank})
            conn.send("nothing that the launcher may read")
            _hang()
        if way in ("many phases", "many phases, then raise"):
            for number in range(300):  # they fit into a pipe, so its end comes first
                g.step(f"load shard {number}")
        if way == "many phases, then raise":
            _raise()
        if way in PAYLOADS:
            g.ready(PAYLOADS[way])
            os._exit(0)
        if way == "half a message":
            os.write(conn.fileno(), b"\x00\x00\x10\x00half of it")
            _hang()
        WAYS[way]()
        g.ready({"port": 5_000 + rank})
        if way == "well":
            conn.close()


def execute(rank: int, conn: Any, ways: list[str]) -> None:
    """Be an executor: start workers of its own and tell the engine above what became of them."""
    sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115
    context = multiprocessing.get_context("fork")
    with guard(rank, conn=conn, phase="start workers"):
        workers = []
        for number, way in enumerate(ways):
            here, there = context.Pipe(duplex=False)
            process = context.Process(target=work, args=(number, there, way))
            process.start()
            there.close()
            workers.append((number, here, process))
        wait_for_workers(workers, timeout=20, grace=5)


def main() -> None:
    """Start as a process of its own: rank, way, file descriptor of the connection."""
    rank, way, file = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    with open(file, "w") as stream:
        if way == "own protocol":
            stream.write("READY 127.0.0.1:5000\nmore\n")
            stream.flush()
            _hang()
        work(rank, stream, way)


if __name__ == "__main__":
    main()
