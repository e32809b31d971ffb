"""The flake8 plugin `KC`: the single-file checker behind flake8's interface; imports linter and configuration."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from keepcause.config import KEYS, Config, ConfigError
from keepcause.config.layers import Layers
from keepcause.lint.engine import lint_single_file, looking
from keepcause.lint.files import program_root
from keepcause.lint.rule import all_rules
from keepcause.lint.source import Source

if TYPE_CHECKING:
    import argparse
    import ast
    from collections.abc import Iterator

    from keepcause.lint.engine import Settings

_KEYS = tuple(key for key in KEYS if key.flake8)


class Plugin:
    """Reports what one file alone proves; `keepcause check` links the whole program."""

    _layers: ClassVar[Layers]
    _noqa: ClassVar[bool]

    def __init__(self, tree: ast.Module, filename: str, lines: list[str]) -> None:
        self._tree = tree
        self._filename = filename
        self._lines = lines

    @classmethod
    def add_options(cls, manager: Any) -> None:
        """Add `--keepcause-*` options, which flake8 reads from its own configuration too."""
        for key in _KEYS:
            manager.add_option(f"--keepcause-{key.name}", parse_from_config=True, help=key.help)

    @classmethod
    def parse_options(cls, options: argparse.Namespace) -> None:
        """Take over what flake8 was told: it wins over `[tool.keepcause]`.

        Only codes that flake8's own options name in full turn on rules that are off by default.
        """
        named = [*(options.select or ()), *(options.extend_select or ()), *(options.enable_extensions or ())]
        # The rules are loaded here, once: flake8's processes, which it forks later, would each load them.
        codes = tuple(rule.code for rule in all_rules() if rule.code in named)
        cls._layers = Layers({"extend-select": codes, "single-file": True, **_given(options)})
        cls._noqa = not options.disable_noqa

    def run(self) -> Iterator[tuple[int, int, str, type[Plugin]]]:
        """Line (from 1), column (from 0), text and this class, for each finding."""
        text = "".join(self._lines)
        settings = self._settings()
        rules = looking(text.encode("utf-8", "surrogatepass"), settings)
        if not rules:
            return
        path = Path(os.path.abspath(self._filename))
        if self._layers.leaves_out(path):
            return
        name = path.relative_to(program_root(path)).as_posix()
        for finding in lint_single_file(Source.decoded(text, self._tree, name), settings, rules):
            yield finding.span.line, finding.span.column, f"{finding.code} {finding.message}", type(self)

    def _settings(self) -> Settings:
        try:
            settings = self._layers.settings(self._filename)
        except ConfigError as error:
            raise _stop(str(error)) from error
        return settings if self._noqa else replace(settings, noqa=False)


def _given(options: argparse.Namespace) -> Config:
    given = {}
    for key in _KEYS:
        option = f"keepcause-{key.name}"
        text = getattr(options, option.replace("-", "_"))
        if text is not None:
            try:
                given[key.name] = key.kind.read(key.kind.parse(text.strip()), Path.cwd())
            except ValueError as error:
                raise _stop(f"{option}: {error}") from error
    return given


def _stop(reason: str) -> Exception:
    """What makes flake8 end with this message and no traceback."""
    from flake8.exceptions import ExecutionError  # type: ignore[import-untyped]

    error: Exception = ExecutionError(f"keepcause: {reason}")
    return error
