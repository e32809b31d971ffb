"""A run over files: which there are, and what is found in each as its configuration asks; imports linter and config."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepcause.config import ConfigError
from keepcause.lint.engine import Engine, FileReport, Settings, Trouble, expand

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from keepcause.config.layers import Layers
    from keepcause.lint.engine import Graphs


class Run:
    """Checks files, each as what counts in its folder says; `given` texts count in place of what is on disk."""

    def __init__(self, layers: Layers, given: Mapping[Path, bytes] | None = None) -> None:
        self._layers = layers
        self._given = given
        self._graphs: Graphs = {}
        self._engines: dict[Settings, Engine] = {}

    def files(self, paths: Iterable[Path]) -> Iterator[Path | Trouble]:
        """The Python files that `paths` name, but those that are excluded; a given text is a file of its name."""
        asked = [path for path in paths if not self._layers.force_excluded(path)]
        if self._given is not None:
            yield from asked
        else:
            yield from expand(asked, self._layers.excluded)

    def engine(self, path: Path) -> Engine:
        """The engine for the file at `path`; raises ConfigError."""
        settings = self._layers.settings(path)
        if settings not in self._engines:
            self._engines[settings] = Engine(settings, self._graphs, self._given)
        return self._engines[settings]

    def check(self, path: Path) -> tuple[Engine, FileReport] | Trouble:
        """What is found in the file, with the engine that found it, or why it could not be checked."""
        try:
            engine = self.engine(path)
        except ConfigError as error:
            return Trouble(str(error.path), error.reason)
        report = engine.check(path)
        return report if isinstance(report, Trouble) else (engine, report)
