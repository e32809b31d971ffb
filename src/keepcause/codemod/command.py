"""The repairs as a command of LibCST's own runner, `libcst.tool codemod`; imports linter, config and this room."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import libcst as cst
from libcst.codemod import CodemodCommand, CodemodContext, SkipFile

from keepcause.codemod.apply import allowed_fixes, repair_file
from keepcause.config.layers import Layers
from keepcause.lint.checked import Trouble
from keepcause.lint.engine import Engine, Settings
from keepcause.lint.rule import structured_codes

if TYPE_CHECKING:
    import argparse


class KeepCause(CodemodCommand):
    """Makes the edits of `keepcause fix` in the files that the runner hands over."""

    DESCRIPTION = "Keep the root cause of a failure visible: the safe repairs of `keepcause fix`."

    def __init__(self, context: CodemodContext, *, unsafe_fixes: bool = False, structured: bool = False) -> None:
        super().__init__(context)
        self._unsafe_fixes = unsafe_fixes
        self._more = structured_codes() if structured else ()

    @staticmethod
    def add_args(arg_parser: argparse.ArgumentParser) -> None:
        """Add the options for fixes that may change more than what an error shows."""
        arg_parser.add_argument("--unsafe-fixes", action="store_true", help="make unsafe repairs as well")
        arg_parser.add_argument("--structured", action="store_true", help="raise structured errors")

    def transform_module_impl(self, tree: cst.Module) -> cst.Module:
        """The repaired file; raises SkipFile where it can't be checked."""
        assert self.context.filename is not None
        path = Path(self.context.filename)
        layers = _layers(self._more)
        engine = _engine(layers.settings(path))
        report = engine.check(path)
        if isinstance(report, Trouble):
            raise SkipFile(str(report))
        unsafe = self._unsafe_fixes or layers.at(path.parent)["unsafe-fixes"]
        result = repair_file(report, engine, allowed_fixes(unsafe=unsafe, codes=self._more))
        for left in result.remaining:
            self.warn(f"{path}:{left.span.line}: {left.code} is left: {left.no_fix}")
        return _Exact(tree, result.data)


@functools.cache
def _layers(more: tuple[str, ...]) -> Layers:
    return Layers(more=more)


@functools.cache
def _engine(settings: Settings) -> Engine:
    """One for all files of this process: the runner makes a command for each file, and a program is linked but once."""
    return Engine(settings)


class _Exact(cst.Module):
    """A file's bytes for the runner to write; LibCST itself does not write every file as it read it."""

    def __init__(self, tree: cst.Module, data: bytes) -> None:
        super().__init__(tree.body, encoding=tree.encoding)
        # LibCST's nodes are frozen.
        vars(self)["_data"] = data

    @property
    def bytes(self) -> Any:
        return vars(self)["_data"]
