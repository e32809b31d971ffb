"""Globs as ruff and flake8 have them, made absolute and matched against absolute paths; standard library only."""

from __future__ import annotations

import fnmatch
import functools
import glob
import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_BRACES = re.compile(r"(?<!\[)\{([^{}]*)\}(?!\])")
_NAME = re.compile(r"\*\*/([^][*?{}/]+)")
_UNCLOSED = re.compile(r"[{}]|\[(?!!?.[^]]*\])")


def anchored(pattern: str, folder: Path) -> str:
    """A glob for absolute paths: one with a slash counts from `folder`, any other names a file or folder anywhere.

    Raises ValueError where it can match nothing.
    """
    if not pattern.strip("/"):
        raise ValueError(f"expected globs such as 'build' or 'tests/*', not {pattern!r}")
    if "\\" in pattern:
        raise ValueError(f"expected globs with forward slashes, not {pattern!r}")
    if any(_UNCLOSED.search(plain) for plain in _without_braces(pattern)):
        raise ValueError(f"expected globs with closed brackets and braces, not {pattern!r}")
    if "/" not in pattern.rstrip("/"):
        return f"**/{pattern.rstrip('/')}"
    start = re.sub("[{}]", r"[\g<0>]", glob.escape(str(folder))).rstrip("/")
    return os.path.normpath(pattern if pattern.startswith("/") else f"{start}/{pattern}")


@functools.cache
def matcher(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """What tells of an absolute path whether one of these globs, made by `anchored`, matches it."""
    # Most are names, which are quicker compared.
    named = {pattern: name[1] for pattern in patterns if (name := _NAME.fullmatch(pattern))}
    names = frozenset(named.values())
    others = (pattern.replace("**/", "{,*/}") for pattern in patterns if pattern not in named)
    plain = (each for pattern in others for each in _without_braces(pattern))
    compiled = re.compile("|".join(map(fnmatch.translate, plain)))

    def matches(path: str) -> bool:
        return path.rpartition("/")[2] in names or compiled.fullmatch(path) is not None

    return matches


def _without_braces(pattern: str) -> Iterator[str]:
    """The globs that `{a,b}` stands for; as in fnmatch, `*` matches slashes too."""
    braces = _BRACES.search(pattern)
    if braces is None:
        yield pattern
        return
    for choice in braces[1].split(","):
        yield from _without_braces(pattern[: braces.start()] + choice + pattern[braces.end() :])
