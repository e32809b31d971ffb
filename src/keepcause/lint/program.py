"""The files of one program, by module name, read and summarised on demand; standard library only."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from keepcause.lint.files import python_files
from keepcause.lint.source import Source, SourceError
from keepcause.lint.startup import is_test_path
from keepcause.lint.summary import Summary, summarize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_SOURCE_FOLDERS = ("src", "lib", "python")


class Program:
    """A program's files by their path below `root`, with forward slashes."""

    def __init__(self, root: Path, paths: Iterable[str], given: Mapping[str, Source] | None = None) -> None:
        """`given` holds files that are parsed already, or that do not stand on disk as they are meant."""
        self.root = root
        self.paths = tuple(sorted(paths))
        self._data: dict[str, bytes] = {path: source.data for path, source in (given or {}).items()}
        self._sources = dict(given or {})
        self._summaries: dict[str, Summary | None] = {}

    @classmethod
    def at(cls, root: Path) -> Program:
        """The program below `root`: every Python file of it but tests."""
        return cls(root, (path for path in python_files(root) if not is_test_path(path)))

    @classmethod
    def of_one_file(cls, source: Source) -> Program:
        """A program that is one file, named `source.path`."""
        return cls(Path(), [source.path], {source.path: source})

    def data(self, path: str) -> bytes:
        """The file's bytes; empty where it can't be read, so that other files are still linked."""
        if path not in self._data:
            try:
                self._data[path] = (self.root / path).read_bytes()
            except OSError:
                self._data[path] = b""
        return self._data[path]

    def summary(self, path: str) -> Summary | None:
        """The file's summary; None where it can't be parsed."""
        if path not in self._summaries:
            try:
                source = self._sources.pop(path, None) or Source(self.data(path), path)
                self._summaries[path] = summarize(source)
            except (SourceError, RecursionError):
                self._summaries[path] = None
        return self._summaries[path]

    @property
    def parsed(self) -> int:
        """How many files have been parsed and summarised so far."""
        return len(self._summaries)

    def using(self, name: str, others: Iterable[str], class_name: bool) -> Iterator[str]:
        """The files that may call or launch what is called `name`, and have one of the words `others` in them."""
        needle = name.encode()
        word = re.escape(needle)
        call = rb"\b" + word + rb"(?:\s*\(|\s+as\b|\s*\.\s*(?:remote|options)\b)"
        # A class is handed to ray.remote; a function to anything, also by way of an attribute or a default.
        handed = rb"|remote\s*(?:\(.*\))?\(\s*" if class_name else rb"|(?:[=(,]|\bor\b|\belse\b)\s*"
        use = re.compile(call + handed + rb"(?:[\w.]+\.)?" + word + rb"\b")
        also = [other.encode() for other in others]
        for path in self.paths:
            data = self.data(path)
            if needle in data and any(other in data for other in also) and use.search(data):
                yield path

    @cached_property
    def modules(self) -> dict[str, str]:
        """Dotted module name -> path. Of two files with one name, the one whose path sorts first counts."""
        modules: dict[str, str] = {}
        for path in self.paths:
            modules.setdefault(self.module_name(path), path)
        return modules

    def module_name(self, path: str) -> str:
        """The dotted name that the file is imported by: below its topmost package, or below `src` and the like."""
        parts = path.removesuffix(".py").split("/")
        start = next((i for i in range(len(parts) - 1) if self._is_package("/".join(parts[: i + 1]))), 0)
        if start == 0 and len(parts) > 1 and parts[0] in _SOURCE_FOLDERS and not self._is_package(parts[0]):
            start = 1
        parts = parts[start:]
        if parts[-1] == "__init__":
            parts.pop()
        return ".".join(parts)

    def absolute(self, path: str, reference: str) -> str:
        """`reference`, which may have leading dots, as seen from the module at `path`, without them."""
        level = len(reference) - len(reference.lstrip("."))
        if not level:
            return reference
        package = self.module_name(path).split(".")
        if not path.endswith("__init__.py"):
            package = package[:-1]
        kept = package[: len(package) - (level - 1)] if level > 1 else package
        return ".".join([*kept, reference[level:]])

    @cached_property
    def _packages(self) -> frozenset[str]:
        return frozenset(path.removesuffix("/__init__.py") for path in self.paths if path.endswith("/__init__.py"))

    def _is_package(self, folder: str) -> bool:
        return folder in self._packages
