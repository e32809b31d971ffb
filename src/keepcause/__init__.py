"""Keep the root cause of a failure visible in distributed Python: the runtime's public names."""

from __future__ import annotations

from .runtime import *  # noqa: F403 - the runtime's __all__ is the one list of public names
from .runtime import __all__ as __all__
