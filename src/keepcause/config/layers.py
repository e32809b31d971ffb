"""What counts for which file: what is given, over the nearest file, over the defaults; imports the table of keys."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING

from keepcause.config import Config, ConfigError, defaults, load, overridden, settings
from keepcause.config.globs import matches

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        self._only = defaults() if isolated else None
        if file is not None:
            # As in ruff, globs of a file that is named count from where it is used.
            self._only = load(file, Path.cwd())
            if self._only is None:
                raise ConfigError(file, "has no [tool.keepcause]")
        self._folders: dict[str, Config] = {}
        self._settings: dict[str, Settings] = {}
        """By folder, where that is all that counts."""
        self._nearest = functools.cache(self._found)
        self._left_out = functools.cache(self._is_left_out)

    def at(self, folder: Path) -> Config:
        """What counts for the files of `folder`; raises ConfigError."""
        absolute = os.path.abspath(folder)
        if absolute not in self._folders:
            found = self._only or self._nearest(Path(absolute))
            config = overridden(found, self._given)
            more = (code for code in self._more if not code.startswith(config["ignore"]))
            config["extend-select"] = (*config["extend-select"], *more)
            self._folders[absolute] = config
        return self._folders[absolute]

    def _found(self, folder: Path) -> Config:
        here = folder / "pyproject.toml"
        if os.path.isfile(here) and (config := load(here)) is not None:
            return config
        return self._nearest(folder.parent) if folder != folder.parent else defaults()

    def settings(self, path: Path) -> Settings:
        """What is looked for in the file at `path`; raises ConfigError."""
        folder = os.path.split(path)[0]
        if folder not in self._settings:
            config = self.at(Path(folder))
            if config["per-file-ignores"]:
                return settings(config, os.path.abspath(path))
            self._settings[folder] = settings(config, folder)
        return self._settings[folder]

    def excluded(self, path: str, top: str) -> bool:
        """Whether `path` or a folder between it and `top`, both absolute, is excluded; `top` itself is not asked."""
        return self._left_out(path, top)

    def _is_left_out(self, path: str, top: str) -> bool:
        folder = os.path.split(path)[0]
        if path in (top, folder):
            return False
        if folder != top and self._left_out(folder, top):
            return True
        try:
            config = self._folders.get(folder) or self.at(Path(folder))
        except ConfigError:
            return False  # whoever checks the file tells of it
        return matches(config["exclude"] + config["extend-exclude"], path)

    def leaves_out(self, path: Path) -> bool:
        """Whether `path`, or a folder between it and the working directory, is excluded."""
        here = Path.cwd()
        absolute = Path(os.path.abspath(path))
        return self.excluded(str(absolute), str(here if here in absolute.parents else absolute.parent))

    def force_excluded(self, path: Path) -> bool:
        """Whether a path that is named is left out: `force-exclude` is on, and it is excluded."""
        return bool(self.at(Path())["force-exclude"]) and self.leaves_out(path)
