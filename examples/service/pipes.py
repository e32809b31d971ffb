"""Start the service with a pipe for each worker: one raises, one is killed, one hangs, and one error names all three."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from typing import TYPE_CHECKING

from checkpoint_loader import load_shard
from keepcause import WorkersFailed, guard, wait_for_workers
from worker import SHARDS, init_device

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnContext, SpawnProcess
    from multiprocessing.synchronize import Barrier

DEVICES = ("cpu:0", "cpu:O", "cpu:2", "cpu:3")


def read_weights(rank: int) -> dict[str, list[float]]:
    """The tensors of `rank`, which two of the ranks never get to see."""
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)  # as the out-of-memory killer does it
    if rank == 3:
        time.sleep(3600)  # as a file server does that has gone
    return load_shard(SHARDS / f"rank-{rank}.json")


def worker_main(rank: int, conn: Connection, everyone: Barrier) -> None:
    """Become ready step by step, and tell the parent of each step."""
    with guard(rank, conn=conn, device=DEVICES[rank]) as start:
        start.step("meet the others")
        everyone.wait(timeout=60)
        start.step("bind device")
        index = init_device(DEVICES[rank])
        start.step("load weights")
        start.ready(f"{len(read_weights(rank))} tensors on device {index}")


def start_worker(context: SpawnContext, rank: int, everyone: Barrier) -> tuple[int, Connection, SpawnProcess]:
    """What wait_for_workers needs of one new worker."""
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=worker_main, args=(rank, there, everyone))
    process.start()
    there.close()  # else the end of the worker would not end the pipe
    return rank, here, process


def main() -> int:
    """Start all workers; returns 1 if any of them failed, else 0."""
    context = multiprocessing.get_context("spawn")
    everyone = context.Barrier(len(DEVICES))
    workers = [start_worker(context, rank, everyone) for rank in range(len(DEVICES))]
    try:
        print(wait_for_workers(workers, timeout=60, terminate=True))
    except WorkersFailed as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
