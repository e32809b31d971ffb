"""What a user may say of functions and of structured errors, frozen data; imports the standard library only."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass


@dataclass(frozen=True)
class Structured:
    """Where the structured errors come from, as `module:Name`, and what a worker's rank is called."""

    worker_init_error: str = "keepcause:WorkerInitError"
    checkpoint_error: str = "keepcause:DCPLoadError"
    rank_names: tuple[str, ...] = ("rank", "local_rank", "self.rank", "global_rank", "tp_rank")


@dataclass(frozen=True)
class Declared:
    """What the user says of functions, by patterns such as `pkg.mod:Class.method` or `pkg.workers.*`."""

    worker_init: tuple[str, ...] = ()
    not_worker_init: tuple[str, ...] = ()

    def mark(self, module: str, qualname: str) -> str:
        """`worker-init` or `not-worker-init`, if a pattern says so of a function; the second wins."""
        name = f"{module}.{qualname}"
        for mark, patterns in (("not-worker-init", self.not_worker_init), ("worker-init", self.worker_init)):
            if any(fnmatch.fnmatchcase(name, pattern.replace(":", ".")) for pattern in patterns):
                return mark
        return ""
