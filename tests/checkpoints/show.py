"""Run three cases and put what torch and keepcause say of them into docs/checkpoints.md and README.md; imports harness.

The texts stand between `<!-- said NAME -->` and `<!-- /said -->`. Lines that are tracebacks of torch are counted, not
shown.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from harness import Rank, child, error_of, expect_error, judged, run

from keepcause import collective, load

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = (ROOT / "README.md", ROOT / "docs" / "checkpoints.md")
TIMEOUT = 8
"""Seconds of the group in the case where one rank never comes; torch's default is 1,800."""


def model(layers: int, width: int = 4) -> dict[str, Any]:
    """Return a small state dict."""
    return {f"net.l{layer}.{part}": torch.ones(width) for layer in range(layers) for part in ("w", "b")}


def shortened(exc: BaseException | None) -> str:
    """Return what torch says without the tracebacks between its first and its last line."""
    first, *rest = f"{type(exc).__name__}: {exc}".strip().splitlines()
    if isinstance(exc, dcp.CheckpointException):
        first = str(exc).splitlines()[0]
    if not rest:
        return first
    left_out = f"  [{len(rest) - 1} more lines: a traceback for each rank]"
    return "\n".join([first, *([left_out] if rest[:-1] else []), rest[-1]])


def said(me: Rank, torchs: BaseException | None, ours: BaseException | None, seconds: float, our_seconds: float) -> str:
    """Return both texts as rank 0 saw them, as JSON; the other ranks say the same."""
    texts = [shortened(torchs), str(expect_error(ours)), f"{seconds:.0f}", f"{our_seconds:.0f}"]
    shared: list[Any] = [texts]
    dist.broadcast_object_list(shared, 0)
    assert shared[0][1] == texts[1], "ranks say different things"
    return json.dumps(shared[0])


def missing(me: Rank) -> object:
    """Six keys that the checkpoint does not have."""
    me.saved(model(3), "step-7")
    os.chdir(me.folder)
    theirs = error_of(dcp.load, model(6), checkpoint_id="step-7")
    return said(me, theirs, error_of(load, model(6), "step-7"), 0, 0)


def cut(me: Rank) -> object:
    """A shard file that was not copied whole."""
    me.saved(model(6), "step-7")
    os.chdir(me.folder)
    me.only(0, lambda: os.truncate("step-7/__0_0.distcp", 2_000))
    theirs = error_of(dcp.load, model(6), checkpoint_id="step-7")
    return said(me, theirs, error_of(load, model(6), "step-7"), 0, 0)


def failed(me: Rank) -> object:
    """A rank that fails before the load, and stays alive."""
    me.saved(model(3), "step-7")
    os.chdir(me.folder)
    group = dist.new_group(timeout=timedelta(seconds=TIMEOUT))

    def build() -> dict[str, Any]:
        if me.rank == 1:
            raise OSError(28, "No space left on device")
        return model(3)

    def by_torch() -> None:
        dcp.load(build(), checkpoint_id="step-7", process_group=group)

    def by_us() -> None:
        with collective("step-7") as together:
            together.load(build())

    begin = time.monotonic()
    theirs = error_of(by_torch)
    seconds = time.monotonic() - begin
    time.sleep(TIMEOUT + 4 if me.rank == 1 else 2)
    dist.barrier()
    begin = time.monotonic()
    ours = error_of(by_us)
    return said(me, theirs, ours, seconds, time.monotonic() - begin)


CASES: dict[str, Callable[[Rank], object]] = {"missing": missing, "cut": cut, "failed": failed}


def block(name: str, texts: list[str]) -> str:
    """Return the two texts as they stand in the documents."""
    torchs, ours, seconds, our_seconds = texts
    after = f", after {seconds} s, the group's timeout (30 minutes by default)" if int(seconds) else ""
    at_once = f", after {our_seconds} s" if int(seconds) else ""
    # Where this machine keeps its packages and its sources is nobody's business.
    torchs, ours = (re.sub(r"/[\w./-]+/(?=[\w-]+\.(?:py|cpp|cc)\b)", ".../", text) for text in (torchs, ours))
    return f"torch{after}:\n\n```text\n{torchs}\n```\n\nkeepcause{at_once}:\n\n```text\n{ours}\n```\n"


def main() -> int:
    """Run the cases and write the documents."""
    rows = run(__file__, list(CASES), 2)
    for name in CASES:
        wrong = judged(rows, name)
        if wrong:
            print(name, *wrong, sep="\n")
            return 1
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for name in CASES:
            row = next(row for row in rows if row["case"] == name)
            start, end = f"<!-- said {name} -->\n", "<!-- /said -->"
            before, found, rest = text.partition(start)
            if found:
                text = before + found + block(name, json.loads(row["text"])) + end + rest.partition(end)[2]
        document.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(CASES, sys.argv[5:], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
    else:
        sys.exit(main())
