"""Errors that keep their cause across process borders; standard library only, a package of its own when copied."""

from __future__ import annotations

from .chain import StandIn, from_json, to_json
from .checkpoint import DCPErrorAggregator, DCPLoadError, precheck_rank
from .describe import root_of
from .findings import Findings, ShapeConflict, TypeConflict
from .launch import WorkerFailure, WorkersFailed, wait_for_workers
from .preflight import PreflightSummary, collective, load, preflight
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
    "Findings",
    "PreflightSummary",
    "ShapeConflict",
    "StandIn",
    "TypeConflict",
    "WorkerFailure",
    "WorkerInitError",
    "WorkersFailed",
    "checked_task",
    "collective",
    "deferred_initializer",
    "from_json",
    "guard",
    "init_worker_guarded",
    "load",
    "precheck_rank",
    "preflight",
    "raise_if_init_failed",
    "root_of",
    "to_json",
    "wait_for_workers",
]
