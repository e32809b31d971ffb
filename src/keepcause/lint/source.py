"""One file's bytes -> encoding, text, syntax tree, parents, character positions; standard library only."""

from __future__ import annotations

import ast
import functools
import re
import tokenize
import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

from keepcause.lint.finding import Span
from keepcause.lint.options import Structured
from keepcause.lint.scope import Scopes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Ts = TypeVarTuple("Ts")
T = TypeVar("T")

NEWLINE = re.compile(r"\r\n|\r|\n")
NEWLINE_BYTES = re.compile(rb"\r\n|\r|\n")
_DECLARES = re.compile(r"(?:^|[:;])[ \t\f]*(?:global|nonlocal)[ \t\\]", re.MULTILINE)

_BIGGEST = 20_000_000
"""How many bytes a file may hold to be parsed: its tree takes some hundred times as many."""


class SourceError(Exception):
    """A file can't be read as Python; `line` is 0 where no line is known."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason, line)
        self.reason = reason
        self.line = line


def detect_encoding(data: bytes) -> str:
    """The encoding that Python would read `data` with, also where line ends are a lone carriage return.

    Raises SourceError for an unknown encoding, or one that contradicts the byte order mark.
    """
    head = NEWLINE_BYTES.split(data, maxsplit=2)[:2]
    lines = iter([line + b"\n" for line in head])
    try:
        return tokenize.detect_encoding(lambda: next(lines, b""))[0]
    except SyntaxError as error:
        if isinstance(error.__context__, UnicodeDecodeError):
            return "utf-8"  # decoding will tell what is wrong, and where
        raise SourceError(str(error.msg), 1) from error


def decode(data: bytes) -> tuple[str, str]:
    """The text of a Python file, line ends kept and byte order mark dropped, and its encoding.

    Raises SourceError where the bytes are not valid in the declared encoding, or hold what no Python file may.
    """
    encoding = detect_encoding(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = len(NEWLINE_BYTES.findall(data[: error.start])) + 1
        raise SourceError(f"not valid {encoding}: {error.reason} at byte {error.start}", line) from error
    except (LookupError, UnicodeError) as error:
        raise SourceError(f"can't be decoded as {encoding}: {error}", 1) from error
    if "\0" in text:
        raise SourceError("holds a NUL character", len(NEWLINE.findall(text, 0, text.index("\0"))) + 1)
    return text, encoding


def _nothing(reference: str) -> str:
    return ""


class Source:
    """A parsed Python file. `text` holds every character as it stands in the file but a byte order mark.

    `elsewhere` says what a call of another module's function gives: `generator`, `asynchronous generator`, or nothing.
    """

    def __init__(self, data: bytes, path: str = "<string>") -> None:
        """Raise SourceError where `data` can't be decoded or parsed."""
        if len(data) > _BIGGEST:
            raise SourceError(f"too big to be parsed: {len(data)} bytes, and the limit is {_BIGGEST}")
        self.path = path
        self.data = data
        self.text, self.encoding = decode(data)
        self.tree = parse(self.text)
        self.elsewhere: Callable[[str], str] = _nothing
        self.structured = Structured()

    @classmethod
    def decoded(cls, text: str, tree: ast.Module, path: str) -> Source:
        """The source of a file that has been decoded to `text` and parsed to `tree` already."""
        source = cls.__new__(cls)
        source.path = path
        source.data = text.encode("utf-8", "surrogatepass")
        source.text, source.encoding = text, "utf-8"
        source.tree = tree
        source.elsewhere = _nothing
        source.structured = Structured()
        return source

    @cached_property
    def lines(self) -> list[str]:
        """The physical lines as Python counts them, without their ends."""
        return NEWLINE.split(self.text)

    @cached_property
    def line_starts(self) -> list[int]:
        """Offset in `text` of each line's first character; the first line's is at index 0."""
        return [0, *(match.end() for match in NEWLINE.finditer(self.text))]

    @cached_property
    def kept(self) -> dict[object, Any]:
        """What functions that are `asked_once` have said of it."""
        return {}

    @property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """Every node but the module -> the node that holds it."""
        return self.scopes.parents

    @cached_property
    def scopes(self) -> Scopes:
        """What each name of the file means where."""
        return Scopes(self.tree)

    def outline(self) -> None:
        """Leave functions' bodies out of `scopes` until they are entered, unless the scopes are there or need them."""
        if "scopes" not in self.__dict__ and not _DECLARES.search(self.text):
            self.scopes = Scopes(self.tree, on_demand=True)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around `node`, innermost first."""
        parents = self.parents
        while (up := parents.get(node)) is not None:
            yield up
            node = up

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that `node` is or lies in."""
        return next(up for up in (node, *self.ancestors(node)) if isinstance(up, ast.stmt))

    def function(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The innermost `def` around `node`; None at module or class level."""
        return next((up for up in self.ancestors(node) if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef)), None)

    def span(self, node: ast.stmt | ast.expr | ast.excepthandler) -> Span:
        """Where `node` stands; inside f-strings only Python 3.12 and later know."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return Span(
            node.lineno,
            self._column(node.lineno, node.col_offset),
            node.end_lineno,
            self._column(node.end_lineno, node.end_col_offset),
        )

    def slice(self, span: Span) -> slice:
        """`span` as offsets into `text`."""
        starts = self.line_starts
        return slice(starts[span.line - 1] + span.column, starts[span.end_line - 1] + span.end_column)

    def path_to(self, node: ast.AST, top: ast.AST) -> tuple[str | int, ...]:
        """Field names and list indexes that lead from `top` to `node`; see `follow`."""
        path: list[str | int] = []
        while node is not top:
            up = self.parents[node]
            for name, value in ast.iter_fields(up):
                if value is node:
                    path.append(name)
                    break
                if isinstance(value, list) and any(item is node for item in value):
                    path += [next(i for i, item in enumerate(value) if item is node), name]
                    break
            node = up
        return tuple(reversed(path))

    def _column(self, line: int, byte_column: int) -> int:
        text = self.lines[line - 1]
        if text.isascii():
            return byte_column
        return len(text.encode("utf-8", "surrogatepass")[:byte_column].decode("utf-8", "surrogatepass"))


def asked_once(function: Callable[[Source, *Ts], T]) -> Callable[[Source, *Ts], T]:
    """`function`, which is asked but once of each source: its answer is kept with the source, and goes with it."""

    @functools.wraps(function)
    def asked(source: Source, *arguments: *Ts) -> T:
        key = function, *arguments
        if key not in source.kept:
            source.kept[key] = function(source, *arguments)
        answer: T = source.kept[key]
        return answer

    return asked


def follow(top: ast.AST, path: tuple[str | int, ...]) -> ast.AST:
    """The node that `path`, made by `Source.path_to`, leads to from `top`."""
    node: object = top
    for part in path:
        node = node[part] if isinstance(part, int) else getattr(node, part)  # type: ignore[index]
    assert isinstance(node, ast.AST)
    return node


def parse(text: str) -> ast.Module:
    """The syntax tree of `text`; raises SourceError where there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        raise SourceError(error.msg, error.lineno or 0) from error
    except ValueError as error:
        raise SourceError(str(error)) from error
    except (RecursionError, MemoryError) as error:
        raise SourceError("nested too deeply to be parsed") from error
