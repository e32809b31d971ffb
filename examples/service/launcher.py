"""Start the service: one worker process a rank, each of which says when it is ready or why it could not start."""

from __future__ import annotations

import multiprocessing
import sys
import traceback

from keepcause import WorkerInitError, init_worker_guarded
from worker import init_worker

DEVICES = ("cpu:0", "cpu:O", "cpu:2")


def main() -> int:
    """Start all workers; returns 1 if any of them failed, else 0."""
    failed = 0
    with multiprocessing.get_context("spawn").Pool(len(DEVICES), maxtasksperchild=1) as pool:
        starts = [
            pool.apply_async(init_worker_guarded, (rank, init_worker, rank, device))
            for rank, device in enumerate(DEVICES)
        ]
        for rank, start in enumerate(starts):
            try:
                print(f"rank {rank} is ready: {start.get(timeout=60)}", flush=True)
            except WorkerInitError:
                failed += 1
                print(f"rank {rank} failed:", flush=True)
                traceback.print_exc(file=sys.stdout)
    print(f"{failed} of {len(DEVICES)} workers failed to start")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
