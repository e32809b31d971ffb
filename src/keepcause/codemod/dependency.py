"""Does a project declare that it depends on keepcause? Imports the linter's files only."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

from keepcause.lint.files import read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "keepcause"
_REQUIREMENT = re.compile(rf"\s*{NAME}\s*(?:[\[<>=!~;@#,]|\Z)", re.IGNORECASE)
_QUOTED = re.compile(r"""["']([^"'\n]*)["']""")


def is_declared(root: Path) -> bool:
    """Whether the pyproject.toml, setup.py, setup.cfg or requirements files in the folder `root` name keepcause."""
    return any(_REQUIREMENT.match(requirement) for requirement in _requirements(root))


def _requirements(root: Path) -> Iterator[str]:
    """Everything in the project's files that may be a requirement."""
    named = (root / name for name in ("pyproject.toml", "setup.py", "setup.cfg"))
    for path in (*named, *root.glob("*requirements*.txt"), *root.glob("*requirements*/*.txt")):
        yield from _in_file(path)


def _in_file(path: Path) -> Iterator[str]:
    try:
        text = read(path).decode("utf-8", "replace")
    except OSError:
        return
    if path.suffix == ".toml":
        yield from _in_toml(text)
    elif path.suffix == ".py":
        yield from _QUOTED.findall(text)
    else:
        yield from text.splitlines()


def _in_toml(text: str) -> Iterator[str]:
    """The texts and the names of all tables but keepcause's own."""
    try:
        pending: list[object] = [tomllib.loads(text)]
    except (tomllib.TOMLDecodeError, RecursionError):
        return
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending += [item for key, item in value.items() if key != "tool"]
            tools = value.get("tool")
            if isinstance(tools, dict):
                pending += [tool for name, tool in tools.items() if name != NAME]
            yield from value
        elif isinstance(value, list):
            pending += value
        elif isinstance(value, str):
            yield value
