"""What counts for which file: what is given, over the nearest file, over the defaults; imports the table of keys."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING

from keepcause.config import Config, ConfigError, defaults, load, overridden, settings, without
from keepcause.config.globs import matcher

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from keepcause.lint.engine import Settings


class Layers:
    """The configuration of each folder, with what is given on top; relative paths count from the working directory."""

    def __init__(
        self,
        given: Mapping[str, object] | None = None,
        *,
        file: Path | None = None,
        isolated: bool = False,
        more: tuple[str, ...] = (),
    ) -> None:
        """`file` stands for the nearest one; `more` codes are on unless ignored. Raises ConfigError for `file`."""
        self._given = dict(given or {})
        self._more = more
        self._files: dict[int, Path] = {}
        """By the configuration, which is kept: where it is from."""
        self._only = self._completed(defaults()) if isolated else None
        if file is not None:
            # As in ruff, globs of a file that is named count from where it is used.
            config = load(file, Path.cwd())
            if config is None:
                raise ConfigError(file, "has no [tool.keepcause]")
            self._only = self._completed(config, file)
        self._nearest = functools.cache(self._found)
        self._settings = functools.cache(self._of_folder)
        self._shared: dict[int, Settings] = {}
        """By the configuration, which is kept."""
        self._matcher = functools.cache(self._excluding)
        self._left_out = functools.cache(self._is_left_out)

    def at(self, folder: Path | str) -> Config:
        """What counts for the files of `folder`, the same object where one file configures all; raises ConfigError."""
        return self._only or self._nearest(os.path.abspath(folder))

    def file(self, folder: Path | str) -> Path | None:
        """The file that configures those of `folder`; None where the defaults count. Raises ConfigError."""
        return self._files.get(id(self.at(folder)))

    def _found(self, folder: str) -> Config:
        here = Path(folder, "pyproject.toml")
        if os.path.isfile(here) and (config := load(here)) is not None:
            return self._completed(config, here)
        above = os.path.dirname(folder)
        return self._nearest(above) if folder != above else self._completed(defaults())

    def _completed(self, config: Config, file: Path | None = None) -> Config:
        config = overridden(config, self._given)
        config["extend-select"] = (*config["extend-select"], *without(self._more, config["ignore"]))
        if file is not None:
            self._files[id(config)] = file
        return config

    def settings(self, path: Path | str) -> Settings:
        """What is looked for in the file at `path`; raises ConfigError."""
        folder = os.path.dirname(path)
        return self._settings(folder) or settings(self.at(folder), os.path.abspath(path))

    def _of_folder(self, folder: str) -> Settings | None:
        """What is looked for in the files of `folder`; None where each file's name counts as well."""
        config = self.at(folder)
        if config["per-file-ignores"]:
            return None
        if id(config) not in self._shared:
            self._shared[id(config)] = settings(config, folder)
        return self._shared[id(config)]

    def excluded(self, path: str, top: str) -> bool:
        """Whether `path` or a folder between it and `top`, both absolute, is excluded; `top` itself is not asked."""
        folder = os.path.dirname(path)
        if path in (top, folder):
            return False
        return self._left_out(folder, top) or self._matcher(folder)(path)

    def _is_left_out(self, folder: str, top: str) -> bool:
        return folder != top and self.excluded(folder, top)

    def _excluding(self, folder: str) -> Callable[[str], bool]:
        try:
            config = self.at(folder)
        except ConfigError:
            return lambda path: False  # whoever checks the file tells of it
        return matcher(config["exclude"] + config["extend-exclude"])

    def leaves_out(self, path: Path) -> bool:
        """Whether `path`, or a folder between it and the working directory, is excluded."""
        here = Path.cwd()
        absolute = Path(os.path.abspath(path))
        return self.excluded(str(absolute), str(here if here in absolute.parents else absolute.parent))

    def force_excluded(self, path: Path) -> bool:
        """Whether a path that is named is left out: `force-exclude` is on and it is excluded; raises ConfigError."""
        return bool(self.at(Path())["force-exclude"]) and self.leaves_out(path)
