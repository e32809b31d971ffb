"""Run every transport with every cause and compare what arrives with what has to; imports transports.

Letters: O, the real root object is reached by `.root` and passes isinstance (o: a stand-in that passes it for the
nearest built-in base); M, the root's message is in the printed traceback; F, so are the frames of the far side; R,
`.rank` is on what was caught (r: rank, phase, type and message of the root are in one line of its text).
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import platform
import queue
import signal
import subprocess
import sys
import threading
import time
import traceback
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from faults import CAUSES, MESSAGE, RANK

from keepcause import StandIn
from transports import CHECKPOINT, TRANSPORTS

if TYPE_CHECKING:
    from collections.abc import Iterator

TIME_LIMIT = 90
"""Seconds that one case may take before it counts as a hang."""
UNKNOWN = "class unknown to the parent"
LIBRARIES = ("torch", "ray", "distributed", "loky", "joblib")
INTRODUCTION = """# What arrives of an error, transport by transport

In each case a worker's start fails under `keepcause.guard`, and the error goes the transport's own way to the parent.
Written by `make matrix` from a real run on {date}: Python {python} on {system}, {versions}.

- **O**: the real root object is reached by `.root` and passes `isinstance`; **o**: its class is unknown on this side,
  and a stand-in with the same name passes `isinstance` for the nearest built-in base.
- **M**: the root's message is in what a traceback prints. **F**: so are the frames of the far side.
- **R**: `.rank` is on what was caught; **r**: rank, phase and the root's type and message are in one line of the text.

torch's spawn, record and DataLoader, and ray's actors, hand on a text and no object: there M, F and r are all that
can be reached. A class that this side doesn't know can't be more than its stand-in anywhere.

"""


def _class_of(cause: str) -> type[BaseException]:
    """Return the class by which this side can tell that cause."""
    if cause != CHECKPOINT:
        return CAUSES[cause][0]
    from torch.distributed.checkpoint.api import CheckpointException

    found: type[BaseException] = CheckpointException
    return found


def letters(exc: BaseException, cause: str) -> str:
    """Return what arrived of that cause."""
    text = "".join(traceback.format_exception(exc))
    root = getattr(exc, "root", None)
    cls = _class_of(cause)
    found = "" if not isinstance(root, cls) or root is exc else "o" if isinstance(root, StandIn) else "O"
    found += "M" if MESSAGE in text else ""
    found += "F" if "in explode" in text else ""
    name = "LocalError" if cause == UNKNOWN else cls.__name__
    if getattr(exc, "rank", None) == RANK:
        return found + "R"
    start = f"rank {RANK}, load weights: "
    lines = [line.partition(start)[2] for line in text.splitlines() if start in line]
    return found + ("r" if any(name in line and MESSAGE in line for line in lines) else "")


def child(transport: int, causes: list[str]) -> None:
    """Run cases of one transport, and print a line of JSON for each as it is done."""
    for cause in causes:
        _class_of(cause)  # imports its module, so that this side knows the class
        begin = time.monotonic()
        try:
            TRANSPORTS[transport][1](cause)
            found, detail = "nothing was raised", ""
        except BaseException as exc:
            found = letters(exc, cause)
            detail = "".join(traceback.format_exception(exc))
        row = {"cause": cause, "found": found, "seconds": time.monotonic() - begin, "detail": detail}
        print("\n" + json.dumps(row), flush=True)


def run(transport: int, causes: list[str]) -> Iterator[dict[str, str]]:
    """Yield a row for each cause, from a process that is started anew after a hang or a crash."""
    left = list(causes)
    while left:
        command = [sys.executable, __file__, "--child", str(transport), *left]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
        )
        lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=_forward, args=(process, lines), daemon=True).start()
        try:
            while left:
                line = lines.get(timeout=TIME_LIMIT)
                if line is None:
                    yield {"cause": left.pop(0), "found": "crashed", "detail": ""}
                    break
                yield json.loads(line)
                left.pop(0)
        except queue.Empty:
            yield {"cause": left.pop(0), "found": "hangs", "detail": ""}
        _end(process)


def _forward(process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith('{"cause"'):
            lines.put(line)
    lines.put(None)


def _end(process: subprocess.Popen[str]) -> None:
    """Give the process time to end what it started, then end its session."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=20)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def reaches(found: str, goal: str, cause: str) -> bool:
    """Tell whether the letters are enough; a class that is unknown here can't be reached but by its built-in base."""
    if cause == UNKNOWN:
        goal = goal.replace("O", "o")
    return set(goal) <= set(found) | {better.lower() for better in "OR" if better in found}


def table(rows: list[tuple[str, str, dict[str, str]]]) -> str:
    """Return the document."""
    text = INTRODUCTION.format(
        date=datetime.datetime.now(datetime.UTC).date(),
        python=platform.python_version(),
        system=platform.system(),
        versions=", ".join(f"{name} {version(name)}" for name in LIBRARIES),
    )
    lines = [["transport", *CAUSES, "to reach"], ["---"] * (len(CAUSES) + 2)]
    lines += [[name, *(found[cause] for cause in CAUSES), goal] for name, goal, found in rows]
    return text + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def main() -> int:
    """Run the matrix, or those transports whose names contain the words given."""
    parser = argparse.ArgumentParser(description="What arrives of an error, transport by transport.")
    parser.add_argument("words", nargs="*", help="run only transports whose names contain one of these")
    parser.add_argument("--write", type=Path, help="write the table to this file")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        child(options.child, options.words)
        return 0
    passed = failed = 0
    rows = []
    for number, (name, _, goal) in enumerate(TRANSPORTS):
        if options.words and not any(word in name for word in options.words):
            continue
        found = {}
        for row in run(number, list(CAUSES)):
            found[row["cause"]] = row["found"]
            good = reaches(row["found"], goal, row["cause"])
            passed, failed = passed + good, failed + (not good)
            if not good:
                print(
                    f"FAILED {name}, {row['cause']}: {row['found']!r} instead of {goal!r}\n{row['detail']}", flush=True
                )
        print(f"{name}: {', '.join(found.values())} (to reach: {goal})", flush=True)
        rows.append((name, goal, found))
    if options.write is not None:
        options.write.write_text(table(rows), encoding="utf-8")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
