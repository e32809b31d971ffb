"""The flake8 plugin `KC`: the single-file checker behind flake8's interface; imports linter and configuration."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import keepcause.config as configuration
from keepcause.lint.engine import lint_single_file
from keepcause.lint.files import program_root
from keepcause.lint.rule import all_rules
from keepcause.lint.source import Source

if TYPE_CHECKING:
    import argparse
    import ast
    from collections.abc import Iterator

    from keepcause.lint.engine import Settings


class Plugin:
    """Reports what one file alone proves; `keepcause check` links the whole program."""

    name = "keepcause"
    version = version("keepcause")
    _named: ClassVar[frozenset[str]] = frozenset()
    """The codes that flake8's own options name in full: only these turn on rules that are off by default."""
    _noqa: ClassVar[bool] = True

    def __init__(self, tree: ast.Module, filename: str, lines: list[str]) -> None:
        self._tree = tree
        self._filename = filename
        self._lines = lines

    @classmethod
    def parse_options(cls, options: argparse.Namespace) -> None:
        """Take over what flake8 was told."""
        named = [*(options.select or ()), *(options.extend_select or ()), *(options.enable_extensions or ())]
        cls._named = frozenset(rule.code for rule in all_rules() if rule.code in named)
        cls._noqa = not options.disable_noqa

    def run(self) -> Iterator[tuple[int, int, str, type[Plugin]]]:
        """Line (from 1), column (from 0), text and this class, for each finding."""
        text = "".join(self._lines)
        data = text.encode("utf-8", "surrogatepass")
        path = Path(os.path.abspath(self._filename))
        settings = self._settings(path)
        if not any(rule.possible(data) for rule in settings.rules):
            return
        name = path.relative_to(program_root(path)).as_posix()
        for finding in lint_single_file(Source.decoded(text, self._tree, name), settings):
            yield finding.span.line, finding.span.column, f"{finding.code} {finding.message}", type(self)

    def _settings(self, path: Path) -> Settings:
        try:
            found = configuration.nearest(path.parent)
        except configuration.ConfigError as error:
            from flake8.exceptions import ExecutionError  # type: ignore[import-untyped]

            raise ExecutionError(f"keepcause: {error}") from error  # flake8 ends with its message and no traceback
        settings = configuration.settings(found)
        return replace(settings, codes=settings.codes | self._named, single_file=True, noqa=self._noqa)
