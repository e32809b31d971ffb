"""A run over files: which there are, and what is found in each as its configuration asks; imports linter and config."""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING

from keepcause.cache import Record
from keepcause.config import ConfigError
from keepcause.lint.bound import TookTooLong, attempt
from keepcause.lint.engine import Engine, FileReport, Settings, Trouble, expand
from keepcause.lint.files import read
from keepcause.lint.source import NEWLINE, SourceError, decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from keepcause.cache import Result
    from keepcause.config.layers import Layers
    from keepcause.lint.engine import Graphs
    from keepcause.lint.finding import Finding


FAULT = "can't be checked"
"""How the reasons begin that tell more of us than of a file, see `attempt`."""


class Run:
    """Checks files, each as what counts in its folder says; `given` texts count in place of what is on disk."""

    def __init__(self, layers: Layers, given: Mapping[Path, bytes] | None = None) -> None:
        self._layers = layers
        self._given = given
        self._graphs: Graphs = {}
        self._engines: dict[Settings, Engine] = {}
        self._last: Engine | None = None
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
        if self._last is None or self._last.settings is not settings:
            if settings not in self._engines:
                self._engines[settings] = Engine(settings, self._graphs, self._given)
            self._last = self._engines[settings]
        return self._last

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
        self, files: Sequence[Path], cache: Path | None = None, *, renew: bool = False
    ) -> Iterator[FileReport | Trouble]:
        """What `check` says of each of `files`, in their order, by several processes where that is quicker.

        `cache` is the folder that knows what was found before; `renew` does not ask it. Raises CacheError for a damaged
        record.
        """
        if self._given is not None:  # not what is on disk, of which processes and cache speak
            yield from map(self.check, files)
            return
        record = self._record(files, cache) if cache else None
        known = record.load() if record and not renew else None
        if known is None:
            states = record.states() if record else {}
            known = {}
            for path, result in zip(files, self._results(files), strict=True):
                if result is not None:
                    known[self._absolute(path)] = result
            faults = any(trouble and trouble[1].startswith(FAULT) for _, trouble in known.values())
            if record and not faults:  # another try may go well
                record.store(states, known)
        for path in files:
            findings, trouble = known.get(self._absolute(path), ((), None))
            yield Trouble(*trouble) if trouble else _report(path, findings)

    def _results(self, files: Sequence[Path]) -> Iterator[Result | None]:
        from keepcause import parallel  # only here: what is known already needs no processes

        count = parallel.processes(len(files))
        if count > 1:
            for path in files:
                with contextlib.suppress(Exception):  # whoever checks the file tells what is wrong
                    self.engine(path).link(path)

        def check(path: Path) -> Result | None:
            result = self.check(path)
            if isinstance(result, Trouble):
                return (), (result.path, result.reason, result.line)
            return (result.findings, None) if result.findings else None

        def died(path: Path, way: str) -> Result:
            return (), (str(path), f"{FAULT}: the process that did so ended ({way})", 0)

        return parallel.check_all(check, files, died, count)

    def _absolute(self, path: Path) -> str:
        folder, name = os.path.split(path)
        if folder not in self._folders:
            self._folders[folder] = os.path.abspath(folder)
        return f"{self._folders[folder]}/{name}"

    def _record(self, files: Sequence[Path], cache: Path) -> Record | None:
        """The record of checking `files`, which needs their programs, too; None where not all can be checked."""
        asked: dict[Engine, list[str]] = {}
        programs: dict[Path, tuple[str, ...]] = {}
        for folder, inside in itertools.groupby(files, lambda path: os.path.split(path)[0]):
            for path in inside:
                try:
                    engine = self.engine(path)
                except ConfigError:
                    return None
                asked.setdefault(engine, []).append(self._absolute(path))
            if (program := engine.program(Path(folder, "_"))) is not None:
                programs[program.root] = program.paths
        needed = {*itertools.chain(*asked.values())}
        needed.update(f"{root}/{name}" for root, names in programs.items() for name in names)
        return Record(cache, sorted((engine.settings.spelled, names) for engine, names in asked.items()), needed)


def _report(path: Path, findings: tuple[Finding, ...]) -> FileReport | Trouble:
    """What was found in a file, whose bytes were not kept; Trouble where they are others now that can't hold it."""
    if not findings:
        return FileReport(path, b"", ())
    try:
        data = read(path)
        if max(finding.span.end_line for finding in findings) <= len(NEWLINE.split(decode(data)[0])):
            return FileReport(path, data, findings)
    except (OSError, SourceError):
        pass
    return Trouble(str(path), "was changed while it was checked")
