"""A run over files: which there are, and what is found in each; imports linter, config, cache, parallel."""

from __future__ import annotations

import contextlib
import itertools
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from keepcause.config import ConfigError, spelled
from keepcause.lint.checked import FileReport, Trouble
from keepcause.lint.files import Tree, notebook, read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from keepcause.cache import Result
    from keepcause.config import Config
    from keepcause.config.layers import Layers
    from keepcause.history import History
    from keepcause.lint.engine import Engine, Programs, Settings
    from keepcause.lint.evidence.program import Program
    from keepcause.lint.evidence.use import Used
    from keepcause.lint.finding import Finding

    Checked = tuple[Result | None, Used | None]

_STALE = 20
"""How many files one takes as long as that depends on others: most are turned down by their bytes."""


class Run:
    """Checks files, each as what counts in its folder says; `given` texts count in place of what is on disk."""

    def __init__(self, layers: Layers, given: Mapping[Path, bytes] | None = None) -> None:
        self._layers = layers
        self._given = given
        self._programs: Programs = {}
        self._engines: dict[Settings, Engine] = {}
        self._tree = Tree()

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
            yield from (notebook(path) or path for path in map(str, asked))
        else:
            yield from self._tree.expand(asked, lambda path, top: left_out(path, self._layers.excluded(path, top)))

    def engine(self, path: Path | str) -> Engine:
        """The engine for the file at `path`; raises ConfigError."""
        from keepcause.lint.engine import Engine  # here, as below: what is known already needs no linter

        settings = self._layers.settings(path)
        engine = self._engines.get(settings)
        if engine is None:
            engine = self._engines[settings] = Engine(settings, self._programs, self._given, self._tree)
        return engine

    def configured_by(self, path: Path | str) -> Path | None:
        """The file that says what is looked for in the one at `path`; None where the defaults count."""
        return self._layers.file(os.path.dirname(path))

    def check(self, path: Path | str) -> FileReport | Trouble:
        """What is found in the file, or why it could not be checked."""
        from keepcause.lint.attempt import attempt

        try:
            engine = self.engine(path)
        except ConfigError as error:
            return Trouble(str(error.path), error.reason)
        return attempt(path, lambda: engine.check(path), "checked")

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
        histories = self._histories(files, cache, warn) if cache else []
        known = {path: result for history in histories for path, result in history.results().items()}
        unknown = [path for path in files if path not in known]
        stale = sum(len(history.stale) for history in histories)
        history_of = {path: history for history in histories for path in history.files}
        for path, (result, used) in zip(unknown, self._results(unknown, stale, noting=bool(histories)), strict=True):
            known[path] = result
            if path in history_of:
                history_of[path].add(path, result, used)
        for history in histories:
            history.store()
        for path in files:
            found = known[path]
            if found is not None:
                findings, trouble = found
                if trouble and histories:  # of this file, but it may be known by what it is called from elsewhere
                    trouble = replace(trouble, path=path)
                yield trouble or _report(Path(path), findings)

    def _results(self, files: Sequence[str], stale: int, *, noting: bool) -> Iterator[Checked]:
        """What is found in each of `files`, so many of them `stale`, and where `noting` what its check has used."""
        from keepcause import parallel

        count = parallel.processes(len(files) + _STALE * stale)
        if count > 1:
            with contextlib.suppress(Exception):  # whoever checks a file tells what is wrong
                for program in dict.fromkeys(self._programs_of(files)):
                    _ = program.index  # once, before there are more processes

        def check(path: str) -> Checked | None:
            result = self.check(path)
            used = self._used(path) if noting else None
            if isinstance(result, Trouble):
                return ((), result), used
            found = (result.findings, None) if result.findings else None
            return (found, used) if found or used else None

        def died(path: str, way: str) -> Checked:
            return ((), Trouble(path, f"can't be checked: the process that did so ended ({way})", passing=True)), None

        for found in parallel.check_all(check, files, died, count):
            yield found or (None, None)

    def _programs_of(self, files: Iterable[str]) -> Iterator[Program]:
        """What `files` are checked in; raises ConfigError."""
        for _, inside in itertools.groupby(files, os.path.dirname):
            path = next(inside)
            program = self._program(path)
            if program:
                yield program

    def _histories(self, files: Sequence[str], cache: Path, warn: Callable[[str], object]) -> list[History]:
        """What is known of `files`, by program and configuration; nothing where not all can be checked."""
        from keepcause.cache import Record
        from keepcause.history import History

        asked: dict[tuple[int, Path], dict[str, str]] = {}
        configs: dict[int, Config] = {}
        try:
            for folder, inside in itertools.groupby(filter(_is_plain, files), os.path.dirname):
                config = self._layers.at(folder)
                configs[id(config)] = config
                for path in inside:
                    root, name = self._tree.place(path)
                    asked.setdefault((id(config), root), {})[path] = name
        except ConfigError:
            return []
        histories = []
        for (number, root), names in asked.items():
            config = configs[number]
            listed = [] if config["single-file"] else self._tree.program_files(str(root))
            record = Record(cache, spelled(config), str(root), listed)
            record.load(names.values(), warn)
            histories.append(History(record, names, partial(self._program, next(iter(names)))))
        return histories

    def _program(self, path: str) -> Program | None:
        """The program that the file is checked in; None where it is checked alone."""
        return self.engine(path).program(Path(path))

    def _used(self, path: str) -> Used | None:
        """What the check of the file has asked of its program."""
        try:
            program = self._program(path)
        except ConfigError:
            return None
        used = program.used() if program else None
        return used if used and any(used) else None


def _is_plain(path: str) -> bool:
    """Whether the path is of the file that its text says: `..` behind a link leads elsewhere."""
    return ".." not in itertools.dropwhile("..".__eq__, path.split("/"))


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
