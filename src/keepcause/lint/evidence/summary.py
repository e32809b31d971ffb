"""Source -> definitions, calls, imports and launch sites, each read off when it is asked for; standard library only."""

from __future__ import annotations

import ast
import bisect
import contextlib
import itertools
import re
import tokenize
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from keepcause.lint import syntax
from keepcause.lint.binding import Kind
from keepcause.lint.evidence import launch
from keepcause.lint.evidence.nesting import Nesting
from keepcause.lint.evidence.serving import served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from keepcause.lint.binding import Scope
    from keepcause.lint.evidence.launch import Launch
    from keepcause.lint.source import Source

    Assigned = Callable[[str, str], tuple[str, ...]]
    """The qualified name of a class and the name of an attribute -> what its methods assign to that."""

Key = TypeVar("Key")
Value = TypeVar("Value")

_MARK = re.compile(r"#\s*keepcause:\s*(?P<mark>(?:not-)?worker-init)\b")
_ACTOR_CALL = re.compile(r"(?:\.options\(\))?\.remote(?=\(\)|$)")
MODULE = 0
"""The line that stands for a module's own code."""
_MOST_VALUES = 12
"""Of an attribute that is given more things than these nobody says what it holds."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call, or a raise, of `reference` (see `keepcause.lint.scope`) at `line`."""

    reference: str
    line: int


@dataclass(frozen=True, slots=True)
class Body:
    """What a function's own code does.

    Lambdas and comprehensions belong to the function around them; nested functions stand for themselves. `raises` names
    exception classes. `gives` is `generator` or `asynchronous generator` where that is what a call gives, else empty.
    `loops` are the first and last lines of those in which it serves, once it has started, and of what comes behind.
    """

    calls: tuple[Call, ...] = ()
    launches: tuple[Launch, ...] = ()
    raises: tuple[Call, ...] = ()
    gives: str = ""
    loops: tuple[tuple[int, int], ...] = ()

    def serves_at(self, line: int) -> bool:
        """Whether `line` is in a loop that serves and starts no workers."""
        return any(
            first <= line <= last and not any(first <= site.line <= last for site in self.launches)
            for first, last in self.loops
        )


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function, a method, or (line 0) a module's own code.

    `mark` is what a `# keepcause: worker-init` comment on the `def` line says. `tail` is where the last statement
    begins, inside of `with` and `try`.
    """

    summary: Summary = field(repr=False)
    qualname: str
    line: int
    end_line: int
    owner: str
    decorators: tuple[str, ...]
    returns: tuple[str, ...]
    mark: str
    tail: int

    @property
    def name(self) -> str:
        """The last part of the qualified name."""
        return self.qualname.rpartition(".")[2]

    @property
    def body(self) -> Body:
        """What it does."""
        return self.summary.body(self.line)


@dataclass(frozen=True, slots=True, eq=False)
class Class:
    """A class and what it inherits from."""

    summary: Summary = field(repr=False)
    qualname: str
    line: int
    bases: tuple[str, ...]
    decorators: tuple[str, ...]

    def attribute(self, name: str) -> tuple[str, ...]:
        """What its attribute `name` may hold, by all that its file says."""
        return self.summary.assigned(self.qualname, name) or self.summary.declared(self.line, name)


class Summary:
    """What other modules, and the graph, need to know of one file.

    Only the functions that are asked about are walked; what is defined inside of a function is known from then on.
    """

    def __init__(self, read: Callable[[], Source]) -> None:
        """`read` parses the file, once more after each `release`; raises what it raises."""
        self._read = read
        self._nesting = Nesting()
        self._functions_called: dict[str, list[Function]] = {}
        self._classes: set[int] = set()
        self._classes_called: dict[str, list[Class]] = {}
        self._walked: set[int] = set()
        self._bodies: dict[int, Body] = {}
        self._assigned: dict[tuple[str, str], tuple[str, ...]] = {}
        self._declared: dict[tuple[int, str], tuple[str, ...]] = {}
        self._meanings: dict[str, tuple[str, ...]] = {}
        self._reader: _Reader | None = None
        self.star_imports = self._tree().scopes.stars
        """The modules of which all names are imported."""

    def release(self) -> None:
        """Drop the tree; it is made again if something is asked that is not known yet."""
        self._reader = None

    def around(self, lines: Iterable[int]) -> list[Function]:
        """The module, and the functions around one of `lines`, by line."""
        lines = list(lines)
        found = self._nesting.around(lines)
        if any(function.line not in self._walked for function in found):
            self._tree(lines)
            found = self._nesting.around(lines)
        return found

    def functions(self) -> list[Function]:
        """The module and all functions, by line."""
        return self.around(range(1, len(self._tree().source.lines) + 1))

    def functions_called(self, qualname: str) -> list[Function]:
        """The functions with this qualified name, as far as they are known, by line."""
        return sorted(self._functions_called.get(qualname, ()), key=lambda function: function.line)

    def classes_called(self, qualname: str) -> list[Class]:
        """The classes with this qualified name, as far as they are known, by line."""
        return sorted(self._classes_called.get(qualname, ()), key=lambda one: one.line)

    def body(self, line: int) -> Body:
        """What the function whose `def` is at `line` does."""
        return _once(self._bodies, line, Body(), lambda: self._tree([line]).body(line, self.assigned))

    def assigned(self, qualname: str, name: str) -> tuple[str, ...]:
        """What the class `qualname` and its methods assign to the attribute `name` of an instance."""

        def find() -> tuple[str, ...]:
            values = _distinct(self._tree(self._tree().lines_with(name)).assigned(qualname, name))
            return values if len(values) <= _MOST_VALUES else ()

        return _once(self._assigned, (qualname, name), (), find)

    def declared(self, line: int, name: str) -> tuple[str, ...]:
        """What `name` stands for in the body of the class at `line`."""
        return _once(
            self._declared, (line, name), (), lambda: _distinct(self._tree([line]).declared(line, name, self.assigned))
        )

    def meaning(self, name: str) -> tuple[str, ...]:
        """What the module-level name `name` stands for; empty where the file does not say."""
        return _once(self._meanings, name, (), lambda: _distinct(self._tree().meaning(name, self.assigned)))

    def _tree(self, lines: Sequence[int] = ()) -> _Reader:
        """The file's tree, in which every function around one of `lines` has been walked."""
        reader = self._reader
        if reader is None:
            reader = self._reader = _Reader(self._read())
            self._note(reader)
        while entered := [f for f in self._nesting.around(lines) if reader.enter(f.line)]:
            self._walked.update(function.line for function in entered)
            self._note(reader)
        return reader

    def _note(self, reader: _Reader) -> None:
        """Take over the definitions that have come to light."""
        for found in reader.definitions(self):
            if isinstance(found, Class):
                if found.line not in self._classes:
                    self._classes.add(found.line)
                    self._classes_called.setdefault(found.qualname, []).append(found)
            elif self._nesting.add(found) and found.line != MODULE:
                self._functions_called.setdefault(found.qualname, []).append(found)


def _distinct(references: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(references))


def _once(known: dict[Key, Value], key: Key, nothing: Value, find: Callable[[], Value]) -> Value:
    """What `find` gives, asked once; `nothing` in what is made of itself or nested too deeply to be followed."""
    if key not in known:
        known[key] = nothing
        with contextlib.suppress(RecursionError):
            known[key] = find()
    return known[key]


class _Reader:
    """A file's tree, and the scopes of what has been walked in it."""

    def __init__(self, source: Source) -> None:
        source.outline()
        self.source = source
        self.scopes = source.scopes
        self._may_launch = launch.may_launch(source.data)
        self._marks = _marks(source) if _MARK.search(source.text) else {}
        self._inside: dict[int, Scope] = {}
        """The scopes of the module and of the definitions that have been found, by line."""
        self._seen = 0
        self._entered: set[int] = set()
        self._own: dict[Scope, list[ast.AST]] = {}
        self._targets: dict[str, list[tuple[ast.Attribute, ast.Assign | ast.AnnAssign]]] = {}
        self._sort(self.scopes.of)

    def enter(self, line: int) -> bool:
        """Walk the function whose `def` is at `line`; whether that was still to be done."""
        scope = self._inside.get(line)
        if scope is None or line in self._entered:
            return False
        self._entered.add(line)
        node = scope.node
        if isinstance(node, syntax.Function) and self.scopes.is_left_out(node):
            self._sort(self.scopes.enter(node))
        return True

    def _sort(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            match node:
                case ast.Call() | ast.Raise() | ast.Yield() | ast.YieldFrom() | ast.While():
                    self._own.setdefault(_home(self.scopes.of[node]), []).append(node)
                case ast.Assign(targets=targets):
                    for target in targets:
                        if isinstance(target, ast.Attribute):
                            self._targets.setdefault(target.attr, []).append((target, node))
                case ast.AnnAssign(target=ast.Attribute() as target):
                    self._targets.setdefault(target.attr, []).append((target, node))

    # Definitions

    def definitions(self, summary: Summary) -> Iterator[Function | Class]:
        """The module, functions and classes that were found since the last time."""
        found = list(itertools.islice(self.scopes.inside.items(), self._seen, None))
        self._seen += len(found)
        for node, scope in found:
            match node:
                case ast.Module():
                    self._inside[MODULE] = scope
                    yield Function(summary, "<module>", MODULE, MODULE, "", (), (), "", 0)
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self._inside[node.lineno] = scope
                    yield self._function(node, scope, summary)
                case ast.ClassDef():
                    self._inside[node.lineno] = scope
                    bases = tuple(r for base in node.bases for r in self._references(base, summary.assigned))
                    yield Class(summary, scope.qualname, node.lineno, bases, self._decorators(node))

    def _function(self, node: syntax.Function, scope: Scope, summary: Summary) -> Function:
        parent = scope.parent
        return Function(
            summary,
            scope.qualname,
            node.lineno,
            node.end_lineno or node.lineno,
            parent.qualname if parent is not None and isinstance(parent.node, ast.ClassDef) else "",
            self._decorators(node),
            self.scopes.annotated(node.returns) if node.returns else (),
            self._marks.get(node.lineno, ""),
            _tail(node.body).lineno,
        )

    def _decorators(self, node: ast.ClassDef | syntax.Function) -> tuple[str, ...]:
        return tuple(r for decorator in node.decorator_list for r in self.scopes.references(decorator))

    # What they do

    def body(self, line: int, assigned: Assigned) -> Body:
        """What the function whose `def` is at `line` does; it has been walked."""
        scope = self._inside[line]
        own = self._own.get(scope, [])
        calls: list[Call] = []
        launches: list[Launch] = []
        for call in own:
            if isinstance(call, ast.Call):
                found = self._references(call.func, assigned)
                calls += [Call(reference, call.lineno) for reference in found if not reference.startswith("builtins.")]
                if self._may_launch:
                    launches += launch.recognise(call, lambda node: self._followed(node, assigned), self.source)
        raises = self._raises(own, assigned) if line != MODULE else ()
        parents = self.source.parents
        loops = [served(each, parents[each]) for each in own if isinstance(each, ast.While)]
        gives = self._gives(scope, own)
        return Body(tuple(dict.fromkeys(calls)), tuple(launches), tuple(raises), gives, tuple(filter(None, loops)))

    def _gives(self, scope: Scope, own: Iterable[ast.AST]) -> str:
        node = scope.node
        if not isinstance(node, syntax.Function) or node.decorator_list:
            return ""
        yields = [each for each in own if isinstance(each, ast.Yield | ast.YieldFrom)]
        if all(self.scopes.of[each].function is not scope for each in yields):
            return ""  # a lambda that yields makes a generator of itself
        return "asynchronous generator" if isinstance(node, ast.AsyncFunctionDef) else "generator"

    def _raises(self, own: Iterable[ast.AST], assigned: Assigned) -> Iterator[Call]:
        """The classes that are raised, be it an instance or the class itself."""
        for raised in own:
            if isinstance(raised, ast.Raise) and raised.exc is not None:
                for reference in self._references(raised.exc, assigned):
                    yield Call(reference.removesuffix("()"), raised.lineno)

    def _references(self, node: ast.AST, assigned: Assigned) -> tuple[str, ...]:
        """What `node` stands for; a call of a ray actor or of its method counts as the plain call."""
        found = self._followed(node, assigned)
        return tuple(_ACTOR_CALL.sub("", r) if ".remote" in r else r for r in found)

    def _followed(self, node: ast.AST, assigned: Assigned) -> tuple[str, ...]:
        """What `node` stands for; this module's own attributes (`self.context.Process`) are followed where known."""
        found = self.scopes.references(node)
        if not any(reference.startswith(":") for reference in found):
            return found
        return tuple(followed for reference in found for followed in _follow(reference, assigned, 3))

    # What attributes and names stand for

    def lines_with(self, name: str) -> list[int]:
        """The lines that hold the text `name`."""
        text, starts = self.source.text, self.source.line_starts
        found: list[int] = []
        at = text.find(name)
        while at >= 0:
            found.append(bisect.bisect_right(starts, at))
            at = text.find(name, starts[found[-1]]) if found[-1] < len(starts) else -1
        return found

    def assigned(self, qualname: str, name: str) -> Iterator[str]:
        """What is assigned to the attribute `name` of instances of the class `qualname`, in what has been walked."""
        places = sorted(self._targets.get(name, ()), key=lambda place: (place[0].lineno, place[0].col_offset))
        for target, node in places:
            if f":{qualname}()" in self.scopes.references(target.value):
                yield from self.scopes.references(node.value) if node.value else ()
                if isinstance(node, ast.AnnAssign):
                    yield from self.scopes.annotated(node.annotation)

    def declared(self, line: int, name: str, assigned: Assigned) -> Iterator[str]:
        """What `name` stands for in the body of the class at `line`."""
        bindings = self._inside[line].bindings.get(name, ())
        for binding in bindings:
            yield from self._references(binding.value, assigned) if binding.value is not None else ()
        for binding in bindings:
            up = self.scopes.parents[binding.node]
            if isinstance(binding.node, ast.Name) and isinstance(up, ast.AnnAssign):
                yield from self.scopes.annotated(up.annotation)

    def meaning(self, name: str, assigned: Assigned) -> Iterator[str]:
        """What the module-level name `name` stands for."""
        for binding in self.scopes.module.bindings.get(name, ()):
            if binding.kind is Kind.IMPORT:
                yield binding.target
            elif binding.kind is Kind.DEFINITION:
                yield f":{name}"
            elif binding.value is not None:
                yield from self._references(binding.value, assigned)


def _home(scope: Scope) -> Scope:
    """The function, or the module, that runs what stands in `scope`."""
    while scope.parent is not None and not isinstance(scope.node, syntax.Function):
        scope = scope.parent
    return scope


def _follow(reference: str, assigned: Assigned, depth: int) -> Iterator[str]:
    owner, call, rest = reference.partition("().")
    name, dot, tail = rest.partition(".")
    known = assigned(owner[1:], name) if depth and call and reference.startswith(":") else ()
    for value in known:
        yield from _follow(f"{value}{dot}{tail}", assigned, depth - 1)
    if not known:
        yield reference


def _tail(block: list[ast.stmt]) -> ast.stmt:
    last = block[-1]
    return _tail(last.body) if isinstance(last, ast.With | ast.AsyncWith | ast.Try) else last


def _marks(source: Source) -> dict[int, str]:
    """The first line of each logical line with a comment that declares something -> what it says."""
    marks: dict[int, str] = {}
    start, mark = 0, ""
    lines = iter([f"{line}\n" for line in source.lines])
    with contextlib.suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(lambda: next(lines, "")):
            if token.type == tokenize.NEWLINE:
                if mark:
                    marks[start] = mark
                start, mark = 0, ""
            elif token.type == tokenize.COMMENT:
                if start and (match := _MARK.search(token.string)):
                    mark = match["mark"]
            elif token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
                start = start or token.start[0]
    return marks
