"""A run over files: which there are, and what is found in each as its configuration asks; imports linter and config."""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING

from keepcause.cache import CacheError, Record
from keepcause.config import ConfigError
from keepcause.lint.bound import TookTooLong, attempt
from keepcause.lint.engine import Engine, FileReport, Settings, Trouble, expand
from keepcause.lint.files import read
from keepcause.lint.source import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from keepcause.cache import Result, Results
    from keepcause.config.layers import Layers
    from keepcause.lint.engine import Graphs
    from keepcause.lint.finding import Finding
    from keepcause.lint.program import Program


class Run:
    """Checks files, each as what counts in its folder says; `given` texts count in place of what is on disk."""

    def __init__(self, layers: Layers, given: Mapping[Path, bytes] | None = None) -> None:
        self._layers = layers
        self._given = given
        self._graphs: Graphs = {}
        self._engines: dict[Settings, Engine] = {}
        self._folders: dict[str, str] = {}

    def files(
        self, paths: Iterable[Path], tell: Callable[[Path | str], object] = lambda path: None
    ) -> Iterator[Path | Trouble]:
        """The Python files that `paths` name, but those that are excluded, of which it will `tell`.

        A given text is a file of its name.
        """

        def left_out(path: Path | str, is_excluded: bool) -> bool:
            if is_excluded:
                tell(path)
            return is_excluded

        asked = [path for path in paths if not left_out(path, self._layers.force_excluded(path))]
        if self._given is not None:
            yield from asked
        else:
            yield from expand(asked, lambda path, top: left_out(path, self._layers.excluded(path, top)))

    def engine(self, path: Path) -> Engine:
        """The engine for the file at `path`; raises ConfigError."""
        settings = self._layers.settings(path)
        if settings not in self._engines:
            self._engines[settings] = Engine(settings, self._graphs, self._given)
        return self._engines[settings]

    def check(self, path: Path) -> FileReport | Trouble:
        """What is found in the file, or why it could not be checked."""
        try:
            engine = self.engine(path)
        except ConfigError as error:
            return Trouble(str(error.path), error.reason)
        found = attempt(path, lambda: engine.check(path), "checked")
        if isinstance(found, TookTooLong):
            self._graphs.clear()
        return found

    def check_all(
        self, files: Sequence[Path], cache: Path | None = None, warn: Callable[[str], object] = lambda text: None
    ) -> Iterator[FileReport | Trouble]:
        """What `check` says of each of `files`, in their order, by several processes where that is quicker.

        `cache` is the folder that knows what was found before; `warn` is told of a damaged record there.
        """
        if self._given is not None:  # not what is on disk, of which processes and cache speak
            yield from map(self.check, files)
            return
        record = self._record(files, cache) if cache else None
        known = _load(record, warn) if record else None
        if known is None:
            states = record.states() if record else {}
            results = zip(map(self._absolute, files), self._results(files), strict=True)
            known = {path: result for path, result in results if result is not None}
            if record and not any(trouble and trouble.passing for _, trouble in known.values()):
                record.store(states, known)
        for path in files:
            findings, trouble = known.get(self._absolute(path), ((), None))
            yield trouble or _report(path, findings)

    def _results(self, files: Sequence[Path]) -> Iterator[Result | None]:
        from keepcause import parallel  # only here: what is known already needs no processes

        count = parallel.processes(len(files))
        if count > 1:
            with contextlib.suppress(Exception):  # whoever checks a file tells what is wrong
                for program in dict.fromkeys(program for _, program in self._engines_of(files) if program):
                    program.index()

        def check(path: Path) -> Result | None:
            result = self.check(path)
            if isinstance(result, Trouble):
                return (), result
            return (result.findings, None) if result.findings else None

        def died(path: Path, way: str) -> Result:
            return (), Trouble(str(path), f"can't be checked: the process that did so ended ({way})", passing=True)

        return parallel.check_all(check, files, died, count)

    def _engines_of(self, files: Iterable[Path]) -> Iterator[tuple[Engine, Program | None]]:
        """The engine for each of `files`, with the program that it checks it in; raises ConfigError."""
        for folder, inside in itertools.groupby(files, lambda path: os.path.split(path)[0]):
            engines = [self.engine(path) for path in inside]
            programs = {engine: engine.program(Path(folder, "_")) for engine in engines}
            yield from ((engine, programs[engine]) for engine in engines)

    def _absolute(self, path: Path) -> str:
        folder, name = os.path.split(path)
        if folder not in self._folders:
            self._folders[folder] = os.path.abspath(folder)
        return f"{self._folders[folder]}/{name}"

    def _record(self, files: Sequence[Path], cache: Path) -> Record | None:
        """The record of checking `files`, which needs their programs, too; None where not all can be checked."""
        asked: dict[Engine, list[str]] = {}
        programs: dict[Program, None] = {}
        try:
            for path, (engine, program) in zip(files, self._engines_of(files), strict=True):
                asked.setdefault(engine, []).append(self._absolute(path))
                if program:
                    programs[program] = None
        except ConfigError:
            return None
        needed = {*itertools.chain(*asked.values())}
        needed.update(f"{program.root}/{name}" for program in programs for name in program.paths)
        return Record(cache, sorted((engine.settings.spelled, names) for engine, names in asked.items()), needed)


def _load(record: Record, warn: Callable[[str], object]) -> Results | None:
    try:
        return record.load()
    except CacheError as error:
        warn(str(error))
        return None


def _report(path: Path, findings: tuple[Finding, ...]) -> FileReport | Trouble:
    """What was found in a file, whose bytes were not kept; Trouble where they are others now that can't hold it."""
    if not findings:
        return FileReport(path, b"", ())
    try:
        report = FileReport(path, read(path), findings)
        if max(finding.span.end_line for finding in findings) <= len(report.lines):
            return report
    except (OSError, SourceError):
        pass
    return Trouble(str(path), "was changed while it was checked")
