"""The files of one program, by module name, read and summarised on demand; standard library only."""

from __future__ import annotations

import functools
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from keepcause.lint.evidence.index import Entry, Index
from keepcause.lint.evidence.mentions import Mentions, Question
from keepcause.lint.evidence.summary import Summary
from keepcause.lint.evidence.use import Used
from keepcause.lint.files import read
from keepcause.lint.source import Source, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from keepcause.lint.evidence.mentions import Verb
    from keepcause.lint.evidence.summary import Function

_SOURCE_FOLDERS = ("src", "lib", "python")
_MOST_TREES = 96


class Program:
    """A program's files by their path below `root`, with forward slashes; notes what it is asked."""

    def __init__(self, root: Path, paths: Iterable[str], given: Mapping[str, Source] | None = None) -> None:
        """`given` holds files that are parsed already, or that do not stand on disk as they are meant."""
        self.root = root
        self.paths = tuple(sorted(paths))
        self._listed = frozenset(self.paths)
        self._known: Mapping[str, Entry] = {}
        self._files: dict[str, Mentions] = {path: Mentions(source.data) for path, source in (given or {}).items()}
        self._sources = dict(given or {})
        self._summaries: dict[str, Summary | None] = {}
        self._with_tree: list[str] = []
        self._answers: dict[Question, list[str]] = {}
        # What was asked since `used` was called.
        self._questions: set[Question] = set()
        self._read: set[str] = set()
        self._bases: set[str] = set()

    @classmethod
    def of_one_file(cls, source: Source) -> Program:
        """A program that is one file, named `source.path`."""
        return cls(Path(), [source.path], {source.path: source})

    def know(self, entries: Mapping[str, Entry]) -> None:
        """Take over the entries of the index of files that have not changed since these were made."""
        self._known = entries

    def hold(self, path: str, data: bytes) -> None:
        """Take over the bytes of a file that has been read, so that it need not be read again."""
        if path in self._listed and path not in self._files:
            self._files[path] = Mentions(data)

    def offer(self, source: Source) -> None:
        """Take over a parsed file, so that it need not be parsed again, if it is what stands on disk."""
        if source.path not in self._summaries and source.data == self.data(source.path):
            self._sources[source.path] = source

    def data(self, path: str) -> bytes:
        """The file's bytes; empty where it can't be read, so that other files are still linked."""
        return self._file(path).data

    def _file(self, path: str) -> Mentions:
        if path not in self._files:
            try:
                self._files[path] = Mentions(read(f"{self.root}/{path}"))
            except OSError:
                self._files[path] = Mentions(b"")
        return self._files[path]

    def summary(self, path: str) -> Summary | None:
        """The file's summary; None where it can't be parsed."""
        self._read.add(path)
        if path not in self._summaries:
            try:
                self._summaries[path] = Summary(functools.partial(self._parsed, path))
            except (SourceError, RecursionError):
                self._summaries[path] = None
        return self._summaries[path]

    def _parsed(self, path: str) -> Source:
        """The parsed file; the trees of a few are kept, as more would fill the memory."""
        if len(self._with_tree) >= _MOST_TREES and (oldest := self._summaries.get(self._with_tree.pop(0))):
            oldest.release()
        source = self._sources.pop(path, None) or Source(self.data(path), path)
        self._with_tree.append(path)
        return source

    def functions_with(self, path: str, names: Iterable[str]) -> list[Function]:
        """The module and those functions of the file that may call or raise what is called by one of `names`.

        They hold the name; all may, where the file gives it another one.
        """
        summary = self.summary(path)
        if summary is None:
            return []
        lines = self._file(path).lines_with(tuple(names))
        return summary.functions() if lines is None else summary.around(lines)

    def functions_that_launch(self, path: str) -> list[Function]:
        """The module and those functions of the file that may hold a launch site."""
        summary = self.summary(path)
        return summary.around(self._file(path).lines_that_launch) if summary else []

    def may_launch(self, path: str) -> bool:
        """Whether the file may hold a launch site."""
        return bool(self._file(path).lines_that_launch)

    def files_that(self, verb: Verb, names: Iterable[str], words: Iterable[str] = (), path: str = "") -> list[str]:
        """The files, by path, that may do that to what is called by one of `names`; see `Question`."""
        question = Question(verb, tuple(names), tuple(words), path)
        if question not in self._answers:
            self._answers[question] = [
                file for file in sorted(self._concerned(question)) if question.is_answered_by(self._file(file))
            ]
        self._questions.add(question)
        self._read.update(self._answers[question])
        return self._answers[question]

    def has_answer(self, question: Question, files: Iterable[str]) -> bool:
        """Whether one of `files`, by path, is among those that it asks for."""
        return any(question.is_answered_by(self._file(path)) for path in self._concerned(question).intersection(files))

    def _concerned(self, question: Question) -> set[str]:
        if question.verb == "may_call_actor":
            return set(self.index.with_actors)
        return {question.path, *self.index.holding(question.words)}

    def used(self) -> Used:
        """What has been asked since the last time."""
        used = Used(frozenset(self._read), frozenset(self._questions), frozenset(self._bases))
        for asked in (self._read, self._questions, self._bases):
            asked.clear()
        return used

    def derived(self, name: str) -> dict[str, list[str]]:
        """The classes that inherit from one called `name` -> the files that define them; see `Index.derived`."""
        self._bases.add(name)
        return self.index.derived(name)

    @property
    def generators(self) -> frozenset[str]:
        """The names of all functions that may be generators."""
        return self.index.generators

    @cached_property
    def index(self) -> Index:
        """What all files hold, by name; each file is read, but those whose entry is known."""
        return Index({path: self._known.get(path) or Entry.of(self.data(path)) for path in self.paths})

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
            return self._beside(path, reference)
        package = self.module_name(path).split(".")
        if not path.endswith("__init__.py"):
            package = package[:-1]
        kept = package[: len(package) - (level - 1)] if level > 1 else package
        return ".".join([*kept, reference[level:]])

    def _beside(self, path: str, reference: str) -> str:
        """`reference`; where its module is a file beside the script at `path`, by its name in the program."""
        folder, head = path.rpartition("/")[0], reference.partition(".")[0]
        package = self.module_name(path).rpartition(".")[0]
        if head in self._heads or self._is_package(folder) or f"{package}.{head}" not in self.modules:
            return reference
        return f"{package}.{reference}"

    @cached_property
    def _heads(self) -> frozenset[str]:
        """The first names of all modules."""
        return frozenset(name.partition(".")[0] for name in self.modules)

    @cached_property
    def _packages(self) -> frozenset[str]:
        return frozenset(path.removesuffix("/__init__.py") for path in self.paths if path.endswith("/__init__.py"))

    def _is_package(self, folder: str) -> bool:
        return folder in self._packages
