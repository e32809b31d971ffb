"""The files of one program, by module name, read and summarised on demand; standard library only."""

from __future__ import annotations

import functools
import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from keepcause.lint.evidence import launch
from keepcause.lint.evidence.summary import Summary
from keepcause.lint.files import read
from keepcause.lint.lazy.screen import generators
from keepcause.lint.source import NEWLINE_BYTES, Source, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from keepcause.lint.evidence.summary import Function

_SOURCE_FOLDERS = ("src", "lib", "python")
_CALL = re.compile(rb"\s*\(")
_CALLED = re.compile(rb"\s*\(|\s+as\b|\s*\.\s*(?:remote|options)\b")
"""What follows a name that is called, renamed by an import, or started as an actor."""
_STARTED = re.compile(rb"\s+as\b|\s*\.\s*(?:remote|options)\b")
_RENAMED = re.compile(rb"\s+as\b")
_DOTTED = b".0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BOUND = (b"=", b"or", b"else", b"partial(", b")", b"]")
"""What stands before a name that is assigned, handed on by keyword, or bound by partial."""
_HANDED = (b"=", b"or", b"else", b"(", b",", b")", b"]")
"""What stands before a name that is assigned or handed on in any way."""
_LAUNCHED_INSIDE = tuple(
    re.compile(sign)
    for sign in (
        rb"fork\(",
        rb"target\s*=\s*lambda\b",
        rb"initializer\s*=\s*lambda\b",
        rb"worker_init_fn\s*=\s*lambda\b",
    )
)
"""Launches that name what runs by a call."""
_IMPORT = re.compile(rb"import[ \t(*](?:[^\n(\\]|\\\r?\n)*(?:\([^)]*\))?")
_WORD = re.compile(rb"\w+")
_CLASS = re.compile(rb"class[ \t]+(\w+)[ \t]*(?:\(([^)]*)\))?[ \t]*:")
_MOST_DERIVED = 32
_MOST_TREES = 96


@functools.lru_cache(maxsize=256)
def _identifiers(names: tuple[bytes, ...]) -> re.Pattern[bytes]:
    return re.compile(rb"(?:%b)(?!\w)" % b"|".join(map(re.escape, names)))


def _lines(data: bytes, offsets: Iterable[int]) -> Iterator[int]:
    """The numbers of the lines at `offsets`, in their order."""
    only_newlines = b"\r" not in data
    line, seen = 1, 0
    for offset in sorted(offsets):
        line += data.count(b"\n", seen, offset) if only_newlines else len(NEWLINE_BYTES.findall(data, seen, offset))
        seen = offset
        yield line


def _may_call(data: bytes, start: int, end: int) -> bool:
    """Whether the name there is called, or given to what may call it."""
    return _CALLED.match(data, end) is not None or _stands_behind(_BOUND, data, start)


def _is_handed_on(data: bytes, start: int, end: int) -> bool:
    """Whether the name there is started as an actor, or handed to what may start it."""
    handed = _stands_behind(_HANDED, data, start) and not _CALL.match(data, end)
    return handed or _STARTED.match(data, end) is not None


def _is_renamed(data: bytes, start: int, end: int) -> bool:
    """Whether the name at `start` is not called, but given to another name."""
    return _RENAMED.match(data, end) is not None or (_stands_behind(_BOUND, data, start) and not _CALL.match(data, end))


def _stands_behind(signs: tuple[bytes, ...], data: bytes, start: int) -> bool:
    """Whether one of `signs` stands before the name at `start` and what it is an attribute of."""
    return data[max(0, start - 80) : start].rstrip(_DOTTED).rstrip().endswith(signs)


class Program:
    """A program's files by their path below `root`, with forward slashes."""

    def __init__(self, root: Path, paths: Iterable[str], given: Mapping[str, Source] | None = None) -> None:
        """`given` holds files that are parsed already, or that do not stand on disk as they are meant."""
        self.root = root
        self.paths = tuple(sorted(paths))
        self._listed = frozenset(self.paths)
        self._data: dict[str, bytes] = {path: source.data for path, source in (given or {}).items()}
        self._sources = dict(given or {})
        self._summaries: dict[str, Summary | None] = {}
        self._with_tree: list[str] = []
        self._launch_inside: dict[str, bool] = {}
        self._launch_lines: dict[str, list[int]] = {}
        self._known_places: dict[tuple[tuple[bytes, ...], tuple[str, ...]], dict[str, list[tuple[int, int]]]] = {}

    @classmethod
    def of_one_file(cls, source: Source) -> Program:
        """A program that is one file, named `source.path`."""
        return cls(Path(), [source.path], {source.path: source})

    def hold(self, path: str, data: bytes) -> None:
        """Take over the bytes of a file that has been read, so that it need not be read again."""
        if path in self._listed:
            self._data.setdefault(path, data)

    def offer(self, source: Source) -> None:
        """Take over a parsed file, so that it need not be parsed again, if it is what stands on disk."""
        if source.path not in self._summaries and source.data == self.data(source.path):
            self._sources[source.path] = source

    def data(self, path: str) -> bytes:
        """The file's bytes; empty where it can't be read, so that other files are still linked."""
        if path not in self._data:
            try:
                self._data[path] = read(f"{self.root}/{path}")
            except OSError:
                self._data[path] = b""
        return self._data[path]

    def summary(self, path: str) -> Summary | None:
        """The file's summary; None where it can't be parsed."""
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
        data = self.data(path)
        spans = [match.span() for match in _identifiers(tuple(map(str.encode, names))).finditer(data)]
        if any(_is_renamed(data, *span) for span in spans):
            return summary.functions()
        return summary.around(_lines(data, (start for start, _ in spans)))

    def functions_that_launch(self, path: str) -> list[Function]:
        """The module and those functions of the file that may hold a launch site."""
        summary = self.summary(path)
        return summary.around(self._lines_that_launch(path)) if summary else []

    def mentioning(self, names: Iterable[str], words: Iterable[str], path: str) -> list[str]:
        """The files with one of the identifiers `names`: `path`, and those that import or define one of `words`."""
        return list(self._places(names, words, path))

    def calling(self, names: Iterable[str], words: Iterable[str], path: str) -> list[str]:
        """As `mentioning`, but only files that may call or hand on what is called so."""
        places = self._places(names, words, path)
        return [file for file, spans in places.items() if any(_may_call(self.data(file), *span) for span in spans)]

    def launching(self, names: Iterable[str], words: Iterable[str], path: str) -> list[str]:
        """As `mentioning`, but only files that may launch what is called so."""
        needles = tuple(map(str.encode, names))
        return [
            file
            for file in sorted(filter(self.may_launch, self._concerned(words, path)))
            if (spans := self._spans(needles, file))
            and (self._launches_inside(file) or any(_is_handed_on(self.data(file), *span) for span in spans))
        ]

    def calling_actors(self, method: str) -> list[str]:
        """The files that call a `method` of an actor."""
        return [path for path in self._with_actors if f".{method}.remote".encode() in self.data(path)]

    def may_launch(self, path: str) -> bool:
        """Whether the file may hold a launch site."""
        return bool(self._lines_that_launch(path))

    def _lines_that_launch(self, path: str) -> list[int]:
        """The lines of the file that hold what every launch site does."""
        if path not in self._launch_lines:
            data = self.data(path)
            self._launch_lines[path] = list(dict.fromkeys(_lines(data, launch.signs(data))))
        return self._launch_lines[path]

    def _launches_inside(self, path: str) -> bool:
        if path not in self._launch_inside:
            data = self.data(path)
            self._launch_inside[path] = any(pattern.search(data) for pattern in _LAUNCHED_INSIDE)
        return self._launch_inside[path]

    def _places(self, names: Iterable[str], words: Iterable[str], path: str) -> dict[str, list[tuple[int, int]]]:
        needles = tuple(map(str.encode, names))
        files = sorted(self._concerned(words, path))
        key = (needles, tuple(files))
        if key not in self._known_places:
            places = {file: self._spans(needles, file) for file in files}
            self._known_places[key] = {file: spans for file, spans in places.items() if spans}
        return self._known_places[key]

    def _concerned(self, words: Iterable[str], path: str) -> set[str]:
        """The file itself, and those that import or define one of `words`."""
        found = {path}
        for word in (word.encode("utf-8", "surrogateescape") for word in words):
            found.update(self._importing.get(word, ()), self._defining.get(word, ()))
        return found

    def _spans(self, needles: tuple[bytes, ...], path: str) -> list[tuple[int, int]]:
        """Where the identifiers `needles` stand in the file."""
        data = self.data(path)
        if not any(needle in data for needle in needles):
            return []
        return [match.span() for match in _identifiers(needles).finditer(data)]

    def derived(self, name: str) -> dict[str, list[str]]:
        """The classes that inherit from one called `name`, by what their headers say -> the files that define them.

        Empty for a base of very many: only what they call one by one could tell them from those of other bases.
        """
        found: dict[bytes, list[str]] = {}
        pending = [name.encode()]
        while pending:
            for derived in sorted(self._deriving.get(pending.pop(), ())):
                if derived not in found:
                    found[derived] = self._defining[derived]
                    pending.append(derived)
            if len(found) > _MOST_DERIVED:
                return {}
        return {derived.decode(): files for derived, files in found.items()}

    @cached_property
    def _headers(self) -> list[tuple[str, bytes, set[bytes]]]:
        """The file, the name and the words of the bases of each class."""
        return [
            (path, match[1], set(_WORD.findall(match[2] or b"")))
            for path in self.paths
            for match in _CLASS.finditer(self.data(path))
        ]

    @cached_property
    def _defining(self) -> dict[bytes, list[str]]:
        """The name of each class -> the files that define one."""
        defining: dict[bytes, list[str]] = {}
        for path, name, _ in self._headers:
            defining.setdefault(name, []).append(path)
        return defining

    @cached_property
    def _deriving(self) -> dict[bytes, set[bytes]]:
        """Each word that stands for a base -> the names of the classes that inherit from it."""
        deriving: dict[bytes, set[bytes]] = {}
        for _, name, bases in self._headers:
            for base in bases:
                deriving.setdefault(base, set()).add(name)
        return deriving

    @cached_property
    def _with_actors(self) -> list[str]:
        return [path for path in self.paths if b".remote" in self.data(path)]

    @cached_property
    def _importing(self) -> dict[bytes, list[str]]:
        """Each word that stands in an import statement -> the files that have it there."""
        importing: dict[bytes, list[str]] = {}
        for path in self.paths:
            data = self.data(path)
            words: set[bytes] = set()
            for match in _IMPORT.finditer(data):
                start = data.rfind(b"\n", 0, match.start()) + 1
                words.update(_WORD.findall(data, start, match.end()))
            for word in words:
                importing.setdefault(word, []).append(path)
        return importing

    @cached_property
    def generators(self) -> frozenset[str]:
        """The names of all functions that may be generators; constructors, which most files call, are none."""
        return frozenset(name for path in self.paths for name in generators(self.data(path)))

    def index(self) -> None:
        """Read every file and make all that is kept of all of them: processes that are started then need not."""
        _ = self.generators, self._importing, self._defining, self._deriving, self.modules

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
