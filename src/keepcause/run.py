"""A run over files: which there are, and what is found in each; imports linter, config, cache, parallel."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from keepcause.config import ConfigError, spelled
from keepcause.lint.checked import FileReport, Trouble
from keepcause.lint.files import Tree, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from keepcause.cache import Record, Result, Results
    from keepcause.config import Config
    from keepcause.config.layers import Layers
    from keepcause.lint.engine import Engine, Graphs, Settings
    from keepcause.lint.evidence.program import Program
    from keepcause.lint.finding import Finding


class Run:
    """Checks files, each as what counts in its folder says; `given` texts count in place of what is on disk."""

    def __init__(self, layers: Layers, given: Mapping[Path, bytes] | None = None) -> None:
        self._layers = layers
        self._given = given
        self._graphs: Graphs = {}
        self._engines: dict[Settings, Engine] = {}
        self._tree = Tree()
        self._absolute_folder = functools.cache(os.path.abspath)

    def files(
        self, paths: Iterable[Path], tell: Callable[[Path | str], object] = lambda path: None
    ) -> Iterator[str | Trouble]:
        """The Python files that `paths` name, but those that are excluded, of which it will `tell`.

        A given text is a file of its name. Raises ConfigError for the working directory.
        """

        def left_out(path: Path | str, is_excluded: bool) -> bool:
            if is_excluded:
                tell(path)
            return is_excluded

        asked = [path for path in paths if not left_out(path, self._layers.force_excluded(path))]
        if self._given is not None:
            yield from map(str, asked)
        else:
            yield from self._tree.expand(asked, lambda path, top: left_out(path, self._layers.excluded(path, top)))

    def engine(self, path: Path | str) -> Engine:
        """The engine for the file at `path`; raises ConfigError."""
        from keepcause.lint.engine import Engine  # here, as below: what is known already needs no linter

        settings = self._layers.settings(path)
        if settings not in self._engines:
            self._engines[settings] = Engine(settings, self._graphs, self._given, self._tree)
        return self._engines[settings]

    def check(self, path: Path | str) -> FileReport | Trouble:
        """What is found in the file, or why it could not be checked."""
        from keepcause.lint.attempt import TookTooLong, attempt

        path = Path(path)
        try:
            engine = self.engine(path)
        except ConfigError as error:
            return Trouble(str(error.path), error.reason)
        found = attempt(path, lambda: engine.check(path), "checked")
        if isinstance(found, TookTooLong):
            self._graphs.clear()
        return found

    def check_all(
        self, files: Sequence[str], cache: Path | None = None, warn: Callable[[str], object] = lambda text: None
    ) -> Iterator[FileReport | Trouble]:
        """What `check` says of those of `files` with findings or trouble, in their order, by several processes where
        that is quicker.

        `cache` is the folder that knows what was found before; `warn` is told of a damaged record there.
        """
        if self._given is not None:  # not what is on disk, of which processes and cache speak
            for report in map(self.check, files):
                if isinstance(report, Trouble) or report.findings:
                    yield report
            return
        record = self._record(files, cache) if cache else None
        known = _load(record, warn) if record else None
        if known is None:
            states = record.states() if record else {}
            results = zip(map(self._absolute, files), self._results(files), strict=True)
            known = {path: result for path, result in results if result is not None}
            if record and not any(trouble and trouble.passing for _, trouble in known.values()):
                record.store(states, known)
        for path in files if known else ():
            found = known.get(self._absolute(path))
            if found is not None:
                findings, trouble = found
                if trouble and record:  # of this file, but it may be known by what it is called from elsewhere
                    trouble = replace(trouble, path=path)
                yield trouble or _report(Path(path), findings)

    def _results(self, files: Sequence[str]) -> Iterator[Result | None]:
        from keepcause import parallel

        count = parallel.processes(len(files))
        if count > 1:
            with contextlib.suppress(Exception):  # whoever checks a file tells what is wrong
                for program in dict.fromkeys(self._programs(files)):
                    program.index()

        def check(path: str) -> Result | None:
            result = self.check(path)
            if isinstance(result, Trouble):
                return (), result
            return (result.findings, None) if result.findings else None

        def died(path: str, way: str) -> Result:
            return (), Trouble(path, f"can't be checked: the process that did so ended ({way})", passing=True)

        return parallel.check_all(check, files, died, count)

    def _programs(self, files: Iterable[str]) -> Iterator[Program]:
        """What `files` are checked in; raises ConfigError."""
        for _, inside in itertools.groupby(files, os.path.dirname):
            path = next(inside)
            program = self.engine(path).program(Path(path))
            if program:
                yield program

    def _absolute(self, path: str) -> str:
        folder, slash, name = path.rpartition("/")
        return f"{self._absolute_folder(folder or slash)}/{name}"

    def _record(self, files: Sequence[str], cache: Path) -> Record | None:
        """The record of checking `files`, which needs their programs, too; None where not all can be checked."""
        from keepcause.cache import Record

        asked: dict[tuple[int, str], list[str]] = {}
        configs: dict[int, Config] = {}
        try:
            for folder, inside in itertools.groupby(map(self._absolute, files), os.path.dirname):
                config = self._layers.at(folder)
                configs[id(config)] = config
                asked.setdefault((id(config), str(self._tree.root(folder))), []).extend(inside)
        except ConfigError:
            return None
        needed = {*itertools.chain(*asked.values())}
        for root in {root for number, root in asked if not configs[number]["single-file"]}:
            below = os.path.join(root, "")
            needed.update([below + name for name in self._tree.program_files(root)])
        said = sorted((spelled(configs[number]), root, names) for (number, root), names in asked.items())
        return Record(cache, said, needed)


def _load(record: Record, warn: Callable[[str], object]) -> Results | None:
    from keepcause.cache import CacheError

    try:
        return record.load()
    except CacheError as error:
        warn(str(error))
        return None


def _report(path: Path, findings: tuple[Finding, ...]) -> FileReport | Trouble:
    """What was found in a file, whose bytes were not kept; Trouble where they are others now that can't hold it."""
    from keepcause.lint.source import SourceError

    try:
        report = FileReport(path, read(path), findings)
        if max(finding.span.end_line for finding in findings) <= len(report.lines):
            return report
    except (OSError, SourceError):
        pass
    return Trouble(str(path), "was changed while it was checked")
