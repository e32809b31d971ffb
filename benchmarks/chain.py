"""Measure a chain of three exceptions with keepcause, tblib and traceback.format_exception; imports all of them.

Run it by hand where tblib is installed: `python benchmarks/chain.py`. Each time is the best of several rounds.
"""

from __future__ import annotations

import pickle
import sys
import timeit
import traceback
from functools import partial
from typing import TYPE_CHECKING, Any

from tblib import pickling_support

from keepcause import WorkerInitError

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 7
DEPTHS = {"shallow": 0, "1,000 frames": 1_000}
LIMITS = {"bytes": 3_000, "ms": 1.0}


def descend(depth: int) -> None:
    """Raise ValueError below that many frames."""
    if depth:
        descend(depth - 1)
    else:
        raise ValueError("shard 3 is short")


def chain(depth: int, outer: type[Exception]) -> Exception:
    """Return a raised chain ValueError -> KeyError -> outer, the first one below that many frames."""
    try:
        try:
            try:
                descend(depth)
            except ValueError as exc:
                raise KeyError("shard") from exc
        except KeyError as exc:
            raise outer("could not load the weights") from exc
    except outer as exc:
        return exc
    raise AssertionError


def format_text(exc: BaseException) -> bytes:
    """Return what a traceback prints, as bytes."""
    return "".join(traceback.format_exception(exc)).encode()


def milliseconds(function: Callable[[], Any]) -> float:
    """Return the best time of one call."""
    timer = timeit.Timer(function)
    number = max(1, timer.autorange()[0] // 4)
    return min(timer.repeat(ROUNDS, number)) / number * 1_000


def measure(name: str, exc: BaseException, dump: Callable[[Any], bytes], load: Callable[[bytes], Any]) -> list[float]:
    """Print one row and return its numbers: bytes, milliseconds to dump and, where it can be loaded, to load."""
    data = dump(exc)
    row = [len(data), milliseconds(partial(dump, exc))]
    if load is not bytes:
        row.append(milliseconds(partial(load, data)))
    print(f"{name:24}{row[0]:8.0f}" + "".join(f"{each:10.3f}" for each in row[1:]))
    return row


def main() -> int:
    """Print the table; returns 1 where keepcause is over its limits or slower than another."""
    sys.setrecursionlimit(20_000)
    print(f"Python {sys.version.split()[0]}\n{'':24}{'bytes':>8}{'dump ms':>10}{'load ms':>10}")
    ours = {
        label: measure(f"keepcause, {label}", chain(depth, WorkerInitError), pickle.dumps, pickle.loads)
        for label, depth in DEPTHS.items()
    }
    others = [
        (label, measure(f"traceback, {label}", chain(depth, RuntimeError), format_text, bytes))
        for label, depth in DEPTHS.items()
    ]
    pickling_support.install()  # after ours: from here on it pickles exceptions of every class
    others += [
        (label, measure(f"tblib, {label}", chain(depth, RuntimeError), pickle.dumps, pickle.loads))
        for label, depth in DEPTHS.items()
    ]
    within = all(size <= LIMITS["bytes"] and max(times) <= LIMITS["ms"] for size, *times in ours.values())
    faster = all(mine < theirs for label, row in others for mine, theirs in zip(ours[label][1:], row[1:], strict=False))
    print(f"At most {LIMITS['bytes']:,} bytes and {LIMITS['ms']:.0f} ms: {within}. Faster than both: {faster}.")
    return 0 if within and faster else 1


if __name__ == "__main__":
    sys.exit(main())
