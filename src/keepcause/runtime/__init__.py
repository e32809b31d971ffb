"""Errors that keep their cause across process borders; standard library only, a package of its own when copied."""

from __future__ import annotations

from .chain import StandIn, from_json, to_json
from .checkpoint import DCPErrorAggregator, DCPLoadError, ShapeConflict, precheck_rank
from .describe import root_of
from .launch import WorkerFailure, WorkersFailed, wait_for_workers
from .worker import (
    WorkerInitError,
    checked_task,
    deferred_initializer,
    guard,
    init_worker_guarded,
    raise_if_init_failed,
)

__all__ = [
    "DCPErrorAggregator",
    "DCPLoadError",
    "ShapeConflict",
    "StandIn",
    "WorkerFailure",
    "WorkerInitError",
    "WorkersFailed",
    "checked_task",
    "deferred_initializer",
    "from_json",
    "guard",
    "init_worker_guarded",
    "precheck_rank",
    "raise_if_init_failed",
    "root_of",
    "to_json",
    "wait_for_workers",
]
