"""What a user may say of structured errors, plain frozen data; imports the standard library only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Structured:
    """Where the structured errors come from, as `module:Name`, and what a worker's rank is called."""

    worker_init_error: str = "keepcause:WorkerInitError"
    checkpoint_error: str = "keepcause:DCPLoadError"
    rank_names: tuple[str, ...] = ("rank", "local_rank", "self.rank", "global_rank", "tp_rank")
