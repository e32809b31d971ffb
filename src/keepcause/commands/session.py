"""What `check`, `fix` and `trace` share: options, and a run that tells of trouble; imports linter, config, report."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from keepcause import config
from keepcause.commands import CLEAN, FOUND, TROUBLE, CommandError, complain
from keepcause.lint.engine import Engine, FileReport, Settings, Trouble, expand
from keepcause.lint.finding import Grade
from keepcause.lint.rule import structured_codes
from keepcause.report.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `check` and `fix` have in common."""
    keys = {key.name: key.help for key in config.KEYS}
    parser.add_argument("paths", nargs="*", type=Path, default=[Path()], metavar="PATH", help="files and folders")
    parser.add_argument("--select", type=_codes, metavar="CODES", help=keys["select"])
    parser.add_argument("--ignore", type=_codes, metavar="CODES", help=keys["ignore"])
    parser.add_argument("--evidence", choices=[grade.value for grade in Grade], help=keys["evidence"])
    parser.add_argument("--single-file", action="store_true", default=None, help=keys["single-file"])
    parser.add_argument("--isolated", action="store_true", help="read no configuration file")
    parser.add_argument("--output-format", choices=config.FORMATS, help=keys["output-format"])
    parser.add_argument("-q", "--quiet", action="store_true", help="print findings only")


def _codes(text: str) -> tuple[str, ...]:
    try:
        return config.codes([code for code in text.replace(",", " ").split() if code])
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


class Session:
    """The files that one command looks at, and the trouble that it met on the way."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Raise CommandError where the configuration of the working directory can't be used."""
        self.options = options
        self._complaints: set[str] = set()
        self._engines: dict[Settings, Engine] = {}
        self._progress = Progress(0)
        try:
            self._here = self._configured(Path())
        except config.ConfigError as error:
            raise CommandError(str(error)) from error

    @property
    def output_format(self) -> str:
        """How findings are printed."""
        return str(self._here["output-format"])

    def print(self, reports: Sequence[FileReport]) -> None:
        """Print findings as the output format says."""
        render = importlib.import_module(f"keepcause.report.{self.output_format}").render
        sys.stdout.write(render(reports))

    def reports(self) -> Iterator[tuple[Engine, FileReport]]:
        """Every file that could be checked, with the engine that did it."""
        paths = list(expand(self.options.paths))
        self._progress = Progress(len(paths))
        for path in paths:
            self._progress.advance()
            if isinstance(path, Trouble):
                self.complain(path)
                continue
            try:
                engine = self.engine(path.parent)
            except config.ConfigError as error:
                self.complain(error)
                continue
            report = engine.check(path)
            if isinstance(report, Trouble):
                self.complain(report)
            else:
                if report.findings:
                    self._progress.clear()
                yield engine, report
        self._progress.clear()

    @property
    def troubled(self) -> bool:
        """Whether something could not be checked or repaired."""
        return bool(self._complaints)

    def complain(self, trouble: Trouble | config.ConfigError) -> None:
        """Say what is wrong with a path, on the error stream and once."""
        text = str(trouble)
        if text not in self._complaints:
            self._complaints.add(text)
            self._progress.clear()
            complain(text)

    def exit_code(self, found: bool) -> int:
        """The command's exit code; `found` says whether anything is left to do."""
        return TROUBLE if self.troubled else FOUND if found else CLEAN

    def _configured(self, folder: Path) -> config.Config:
        found = config.defaults() if self.options.isolated else config.nearest(Path(os.path.abspath(folder)))
        given = {key: getattr(self.options, key.replace("-", "_"), None) for key in found}
        configured = config.overridden(found, {key: value for key, value in given.items() if value is not None})
        if getattr(self.options, "structured", False):
            configured["select"] = (*configured["select"], *structured_codes())
        return configured

    def engine(self, folder: Path) -> Engine:
        """The engine for the files of `folder`; raises ConfigError."""
        settings = config.settings(self._configured(folder))
        return self._engines.setdefault(settings, Engine(settings))
