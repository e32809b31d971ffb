"""Measure a chain of three exceptions with keepcause, tblib and traceback.format_exception; imports all of them.

Run it by hand where tblib is installed: `python benchmarks/chain.py`. Each time is the best of several rounds, in which
the three take turns. Prints a table, and ends with 1 where keepcause is over its limits or slower than another.
"""

from __future__ import annotations

import pickle
import sys
import tempfile
import timeit
import traceback
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tblib import pickling_support

from keepcause import WorkerInitError
from keepcause.runtime import chain

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 25
MOST_BYTES = 3_000
MOST_MILLISECONDS = 1.0
FUNCTIONS = 50

Way = tuple["Callable[[Any], bytes]", "Callable[[bytes], Any] | None"]


def descend(depth: int) -> None:
    """Raise ValueError below that many frames of one function."""
    if depth:
        descend(depth - 1)
    else:
        raise ValueError("shard 3 is short")


def many_functions(folder: str) -> Callable[[int], None]:
    """Return a function that raises ValueError below frames of FUNCTIONS functions, whose source is in that folder."""
    file = Path(folder, "layers.py")
    body = (
        "def layer_{0}(depth):\n"
        "    if depth:\n"
        "        return layer_{1}(depth - 1)\n"
        "    raise ValueError('shard 3 is short')\n"
    )
    file.write_text("\n\n".join(body.format(number, (number + 1) % FUNCTIONS) for number in range(FUNCTIONS)))
    names: dict[str, Any] = {}
    exec(compile(file.read_text(), file, "exec"), names)
    function: Callable[[int], None] = names["layer_0"]
    return function


def raised(function: Callable[[], None], outer: type[Exception]) -> Exception:
    """Return a raised chain of what the function raises, KeyError, and `outer`."""
    try:
        try:
            try:
                function()
            except ValueError as exc:
                raise KeyError("shard") from exc
        except KeyError as exc:
            raise outer("could not load the weights") from exc
    except outer as exc:
        return exc
    raise AssertionError


def format_text(exc: BaseException) -> bytes:
    """Return what a traceback prints."""
    return "".join(traceback.format_exception(exc)).encode()


def milliseconds(functions: list[Callable[[], Any]]) -> list[float]:
    """Return the best time of one call of each function; they take turns."""
    timers = [timeit.Timer(function) for function in functions]
    counts = [max(1, timer.autorange()[0] // 20) for timer in timers]
    best = [float("inf")] * len(functions)
    for _ in range(ROUNDS):
        for place, (timer, count) in enumerate(zip(timers, counts, strict=True)):
            best[place] = min(best[place], timer.timeit(count) / count * 1_000)
    return best


def measure(label: str, function: Callable[[], None]) -> bool:
    """Print the rows of one chain; returns whether keepcause is within its limits and faster than the others."""
    plain = raised(function, RuntimeError)
    pickling_support.install(plain)
    cases: dict[str, tuple[Exception, Way]] = {
        "keepcause": (plain, (chain.dump, chain.load)),
        "keepcause, WorkerInitError": (raised(function, WorkerInitError), (pickle.dumps, pickle.loads)),
        "tblib": (plain, (pickle.dumps, pickle.loads)),
        "traceback": (plain, (format_text, None)),
    }
    print(label)
    for name in [name for name, (exc, (dump, _)) in cases.items() if too_deep(dump, exc)]:
        print(f"  {name:28} RecursionError")
        del cases[name]
    sizes = [len(dump(exc)) for exc, (dump, _) in cases.values()]
    dumps = milliseconds([partial(dump, exc) for exc, (dump, _) in cases.values()])
    loads = milliseconds([partial(load, dump(exc)) for exc, (dump, load) in cases.values() if load is not None])
    for place, name in enumerate(cases):
        load_time = f"{loads[place]:10.3f}" if place < len(loads) else ""
        print(f"  {name:28}{sizes[place]:8}{dumps[place]:10.3f}{load_time}")
    within = max(sizes[:2]) <= MOST_BYTES and max(dumps[:2] + loads[:2]) <= MOST_MILLISECONDS
    return within and dumps[0] < min(dumps[2:]) and loads[0] < min(loads[2:], default=float("inf"))


def too_deep(dump: Callable[[Any], bytes], exc: BaseException) -> bool:
    """Return whether this way can't dump so many frames."""
    try:
        dump(exc)
    except RecursionError:
        return True
    return False


def main() -> int:
    """Measure all chains."""
    sys.setrecursionlimit(20_000)
    print(f"Python {sys.version.split()[0]}\n{'':30}{'bytes':>8}{'dump ms':>10}{'load ms':>10}")
    with tempfile.TemporaryDirectory() as folder:
        good = [
            measure("shallow", partial(descend, 0)),
            measure("1,000 frames of one function", partial(descend, 1_000)),
            measure(f"1,000 frames of {FUNCTIONS} functions", partial(many_functions(folder), 1_000)),
        ]
    print(f"At most {MOST_BYTES:,} bytes and {MOST_MILLISECONDS:.0f} ms, and faster than both: {good}")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
