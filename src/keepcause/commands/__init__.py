"""The commands, each a module with `add_options` and `run`, and what all of them share; imports report.text."""

from __future__ import annotations

import sys

from keepcause.report.text import printable

CLEAN, FOUND, TROUBLE = 0, 1, 2
"""Exit codes."""


class CommandError(Exception):
    """A command can't go on; the message says why, and what to do."""


def complain(text: str) -> None:
    """Say on the error stream what is wrong."""
    sys.stdout.flush()
    print(f"keepcause: {printable(text)}", file=sys.stderr)
