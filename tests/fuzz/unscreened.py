"""Rules without their screens, to see whether these drop anything."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING
from unittest import mock

from keepcause.lint import engine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.engine import Settings
    from keepcause.lint.rule import Rule


@contextlib.contextmanager
def unscreened() -> Iterator[None]:
    """Within it every rule looks at every file, whatever the bytes say."""

    def looking(data: bytes, settings: Settings, generators: frozenset[str] = frozenset()) -> tuple[Rule, ...]:
        return settings.rules

    with mock.patch.object(engine, "looking", looking):
        yield
