"""Run cases on several local ranks that talk by gloo, and compare what each rank says; imports torch."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepcause import DCPLoadError

if TYPE_CHECKING:
    from collections.abc import Callable

GROUP_TIMEOUT = 60
"""Seconds after which a group gives up; a case that waits so long has failed."""
WAIT = 5.0
"""Seconds that a rank may take beyond the slowest rank's own work."""
PATIENCE = 300
"""Seconds that all cases of one world may take between two results."""


@dataclass
class Rank:
    """One process of a case."""

    rank: int
    world: int
    folder: Path
    """Is empty when a case begins, and the same for all ranks."""
    work: float = 0.0
    """Seconds of this rank's own work, as far as the case counts it."""

    def saved(self, state: dict[str, Any], name: str = "step-7", **options: Any) -> Path:
        """Save a state on all ranks together; returns the path."""
        import torch.distributed.checkpoint as dcp

        path = self.folder / name
        dcp.save(state, checkpoint_id=path, **options)
        return path

    def only(self, rank: int, do: Callable[[], object]) -> None:
        """Do something on one rank while the others wait for it."""
        import torch.distributed as dist

        if self.rank == rank:
            do()
        dist.barrier()


def error_of(function: Callable[..., object], *args: Any, **options: Any) -> BaseException | None:
    """Return what a call raises, or None."""
    try:
        function(*args, **options)
    except BaseException as exc:
        return exc
    return None


def torch_error(state: dict[str, Any], path: Path, **options: Any) -> BaseException | None:
    """Return what torch raises when it really loads."""
    import torch.distributed.checkpoint as dcp

    return error_of(dcp.load, state, checkpoint_id=path, **options)


def expect_error(exc: BaseException | None) -> DCPLoadError:
    """Return the error, if it is ours."""
    if not isinstance(exc, DCPLoadError):
        raise AssertionError(f"instead of a DCPLoadError came {exc!r}") from exc
    return exc


def child(cases: dict[str, Callable[[Rank], object]], names: list[str], rank: int, world: int, folder: Path) -> None:
    """Be one rank: run the cases one after the other, and print a line of JSON for each."""
    import logging

    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    for name in names:
        store = dist.FileStore(str(folder / f"{name}.store"), world)
        dist.init_process_group(
            "gloo", store=store, rank=rank, world_size=world, timeout=timedelta(seconds=GROUP_TIMEOUT)
        )
        place = folder / name
        place.mkdir(exist_ok=True)
        dist.barrier()
        me = Rank(rank, world, place)
        begin = time.monotonic()
        text, trouble = None, ""
        try:
            text = cases[name](me)
        except BaseException as exc:
            trouble = "".join(traceback.format_exception(exc))
        seconds = time.monotonic() - begin
        row = {"case": name, "rank": rank, "text": None if text is None else str(text), "trouble": trouble}
        print("\n" + json.dumps({**row, "seconds": seconds, "work": me.work}), flush=True)
        dist.destroy_process_group()


def run(script: str, names: list[str], world: int) -> list[dict[str, Any]]:
    """Run cases on `world` processes of the script; returns their rows, and one for each that did not end."""
    folder = Path(tempfile.mkdtemp(prefix="checkpoints-"))
    processes = [
        subprocess.Popen(
            [sys.executable, script, "--child", str(rank), str(world), str(folder), *names],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for rank in range(world)
    ]
    rows: list[dict[str, Any]] = []
    try:
        for rank, process in enumerate(processes):
            try:
                out, err = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                out, err = process.communicate()
            found = [json.loads(line) for line in out.splitlines() if line.startswith('{"case"')]
            rows += found
            for name in names[len(found) :]:
                rows.append({"case": name, "rank": rank, "trouble": f"did not end: {err[-2000:]}", "text": None})
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)
    return rows


def judged(rows: list[dict[str, Any]], name: str) -> list[str]:
    """Return what is wrong with a case: trouble, different texts, a rank that waited too long."""
    mine = [row for row in rows if row["case"] == name]
    wrong = [f"rank {row['rank']}: {row['trouble']}" for row in mine if row["trouble"]]
    texts = {row["text"] for row in mine}
    if not wrong and len(texts) != 1:
        wrong.append("ranks say different things:\n" + "\n---\n".join(map(str, texts)))
    return wrong
