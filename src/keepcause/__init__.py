"""Keep the root cause of a failure visible in distributed Python: the names of the runtime and of the API."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .api import ConfigError as ConfigError
    from .api import Finding as Finding
    from .api import FixResult as FixResult
    from .api import LintResult as LintResult
    from .api import Options as Options
    from .api import SourceError as SourceError
    from .api import Trouble as Trouble
    from .api import fix_source as fix_source
    from .api import lint_paths as lint_paths
    from .api import lint_source as lint_source
    from .runtime import *  # noqa: F403

__all__ = [  # noqa: F405, RUF100 - of the runtime, as in a copy of it
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
_API = (
    "ConfigError",
    "Finding",
    "FixResult",
    "LintResult",
    "Options",
    "SourceError",
    "Trouble",
    "fix_source",
    "lint_paths",
    "lint_source",
)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """A name of the runtime or the API, each of which is loaded when it is first asked for."""
        if name in __all__ or name in _API:
            home = importlib.import_module(".runtime" if name in __all__ else ".api", __name__)
            return getattr(home, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_API})
