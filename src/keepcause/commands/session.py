"""What `check`, `fix` and `trace` share: options, and a run that tells of trouble; imports linter, config, report."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from keepcause.commands import CLEAN, FOUND, TROUBLE, CommandError, complain, inputs
from keepcause.config import FOR_PEOPLE, ConfigError, selecting_nothing
from keepcause.config import options as config_options
from keepcause.config.layers import Layers
from keepcause.lint.checked import Trouble
from keepcause.lint.rule import structured_codes
from keepcause.report.progress import Progress
from keepcause.report.text import plain, takes_styles
from keepcause.run import Run

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TextIO

    from keepcause.lint.checked import FileReport
    from keepcause.lint.engine import Engine


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `check` and `fix` have in common."""
    parser.usage = "%(prog)s [OPTIONS] [PATH ...]"  # every option, as argparse has it, is a screenful before each error
    inputs.add_options(parser)
    config_options.add_options(parser)
    config_options.add_file_options(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="print findings only")


class Session:
    """The files that one command looks at, and the trouble that it met on the way."""

    def __init__(self, options: argparse.Namespace, given: Mapping[Path, bytes] | None = None) -> None:
        """Raise CommandError where the configuration of the working directory can't be used."""
        self._complaints: set[str] = set()
        self._progress = Progress(0)
        more = structured_codes() if getattr(options, "structured", False) else ()
        said = config_options.given(vars(options))
        if given is not None and Path(inputs.STDIN) in given:
            said["single-file"] = True  # a text without a name belongs to no program
        try:
            layers = Layers(said, file=options.config, isolated=options.isolated, more=more)
            self.here = layers.at(Path())
        except ConfigError as error:
            raise CommandError(str(error)) from error
        for name in selecting_nothing(self.here):
            complain(f"warning: `{name}` selects no rule: what begins so is off until it is selected by its full code")
        self.run = Run(layers, given)

    @property
    def output_format(self) -> str:
        """How findings are printed."""
        return str(self.here["output-format"])

    @property
    def for_people(self) -> bool:
        """Whether the output format is one that people read."""
        return self.output_format in FOR_PEOPLE

    def print(self, reports: Sequence[FileReport], stream: TextIO) -> None:
        """Print findings as the output format says."""
        text: str = importlib.import_module(f"keepcause.report.{self.output_format}").render(reports)
        stream.write(text if takes_styles(stream) else plain(text))

    def files(self, paths: Iterable[Path], tell: Callable[[Path | str], object] = lambda path: None) -> Iterator[str]:
        """The Python files that `paths` name; excluded files go to `tell`."""
        for found in self.run.files(paths, tell):
            if isinstance(found, Trouble):
                self.complain(found)
            else:
                yield found

    def reports(self, paths: Iterable[Path], *, cache: Path | None = None) -> Iterator[FileReport]:
        """The files with findings; `cache` is the folder that knows what was found before."""
        for found in self.run.check_all(list(self.files(paths)), cache, lambda text: complain(f"warning: {text}")):
            if isinstance(found, Trouble):
                self.complain(found)
            else:
                yield found

    def reports_one_by_one(
        self, paths: Iterable[Path], tell: Callable[[Path | str], object] = lambda path: None
    ) -> Iterator[tuple[Engine, FileReport]]:
        """Every file that could be checked, when it is asked for, with its engine; excluded files go to `tell`."""
        files = list(self.files(paths, tell))
        self._progress = Progress(len(files))
        for found in map(self.run.check, files):
            self._progress.advance()
            if isinstance(found, Trouble):
                self.complain(found)
                continue
            if found.findings:
                self._progress.clear()
            yield self.run.engine(found.path), found
        self._progress.clear()

    @property
    def troubled(self) -> bool:
        """Whether something could not be checked or repaired."""
        return bool(self._complaints)

    def nothing_found(self) -> str:
        """What there is to say where there are no findings."""
        return "Nothing found in what could be checked." if self.troubled else "Nothing found."

    def complain(self, trouble: Trouble) -> None:
        """Say what is wrong with a path, on the error stream and once."""
        text = str(trouble)
        if text not in self._complaints:
            self._complaints.add(text)
            self._progress.clear()
            complain(text)

    def exit_code(self, found: bool) -> int:
        """The command's exit code; `found` says whether anything is left to do."""
        return TROUBLE if self.troubled else FOUND if found else CLEAN
