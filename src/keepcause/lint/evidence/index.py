"""What the files of a program hold, by name: imported words, classes, generator functions; standard library only."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from keepcause.lint.lazy.screen import generators

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_IMPORT = re.compile(rb"import[ \t(*](?:[^\n(\\]|\\\r?\n)*(?:\([^)]*\))?")
_WORD = re.compile(rb"\w+")
_CLASS = re.compile(rb"class[ \t]+(\w+)[ \t]*(?:\(([^)]*)\))?[ \t]*:")
_MOST_DERIVED = 32


class Entry(NamedTuple):
    """What one file adds to the index, in what JSON has, too."""

    imports: list[str]
    """The words of its import statements."""
    classes: dict[str, list[str]]
    """The name of each of its classes -> the words of its bases."""
    generators: list[str]
    """The names of its functions that may be generators; constructors, which most files call, are none."""
    has_actors: bool
    """Whether it may call an actor."""

    @classmethod
    def of(cls, data: bytes) -> Entry:
        """The entry of a file with these bytes, which need not be Python."""
        words: set[bytes] = set()
        for match in _IMPORT.finditer(data):
            start = data.rfind(b"\n", 0, match.start()) + 1
            words.update(_WORD.findall(data, start, match.end()))
        classes: dict[str, list[str]] = {}
        for match in _CLASS.finditer(data):
            classes.setdefault(match[1].decode(), []).extend(map(bytes.decode, _WORD.findall(match[2] or b"")))
        return cls([*map(bytes.decode, words)], classes, [*generators(data)], b".remote" in data)


class Index:
    """The entries of all files of a program, by what they hold."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        """`entries` are by path, in the order of the paths."""
        self.entries = entries

    def holding(self, words: Iterable[str]) -> set[str]:
        """The files that import or define one of `words`."""
        found: set[str] = set()
        for word in words:
            found.update(self._importing.get(word, ()), self._defining.get(word, ()))
        return found

    def derived(self, name: str) -> dict[str, list[str]]:
        """The classes that inherit from one called `name`, by what their headers say -> the files that define them.

        Empty for a base of very many: only what they call one by one could tell them from those of other bases.
        """
        found: dict[str, list[str]] = {}
        pending = [name]
        while pending:
            for derived in sorted(self._deriving.get(pending.pop(), ())):
                if derived not in found:
                    found[derived] = self._defining[derived]
                    pending.append(derived)
            if len(found) > _MOST_DERIVED:
                return {}
        return found

    @cached_property
    def generators(self) -> frozenset[str]:
        """The names of all functions that may be generators."""
        return frozenset().union(*(entry.generators for entry in self.entries.values()))

    @cached_property
    def with_actors(self) -> list[str]:
        """The files that may call an actor."""
        return [path for path, entry in self.entries.items() if entry.has_actors]

    @cached_property
    def _importing(self) -> dict[str, list[str]]:
        """Each word that stands in an import statement -> the files that have it there."""
        return self._files_by(lambda entry: entry.imports)

    @cached_property
    def _defining(self) -> dict[str, list[str]]:
        """The name of each class -> the files that define one."""
        return self._files_by(lambda entry: entry.classes)

    def _files_by(self, words: Callable[[Entry], Iterable[str]]) -> dict[str, list[str]]:
        files: dict[str, list[str]] = {}
        for path, entry in self.entries.items():
            for word in words(entry):
                files.setdefault(word, []).append(path)
        return files

    @cached_property
    def _deriving(self) -> dict[str, set[str]]:
        """Each word that stands for a base -> the names of the classes that inherit from it."""
        deriving: dict[str, set[str]] = {}
        for entry in self.entries.values():
            for name, bases in entry.classes.items():
                for base in bases:
                    deriving.setdefault(base, set()).add(name)
        return deriving
