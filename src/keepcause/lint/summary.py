"""Source -> definitions, calls, imports and launch sites as plain data that can be cached; standard library only."""

from __future__ import annotations

import ast
import contextlib
import re
import tokenize
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepcause.lint import launch
from keepcause.lint.binding import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.binding import Scope
    from keepcause.lint.launch import Launch
    from keepcause.lint.source import Source

_MARK = re.compile(r"#\s*keepcause:\s*(?P<mark>(?:not-)?worker-init)\b")
_ACTOR_CALL = re.compile(r"(?:\.options\(\))?\.remote(?=\(\)|$)")


@dataclass(frozen=True, slots=True)
class Call:
    """A call, or a raise, of `reference` (see `keepcause.lint.scope`) at `line`."""

    reference: str
    line: int


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function, a method, or (line 0) a module's own code, with what it calls and launches.

    Lambdas and comprehensions belong to the function around them; nested functions stand for themselves. `mark` is
    what a `# keepcause: worker-init` comment on the `def` line says. `raises` names exception classes. `gives` is
    `generator` or `asynchronous generator` where that is what a call gives, else empty. `tail` is where the last
    statement begins, inside of `with` and `try`.
    """

    qualname: str
    line: int
    end_line: int
    owner: str
    decorators: tuple[str, ...]
    returns: tuple[str, ...]
    calls: tuple[Call, ...]
    launches: tuple[Launch, ...]
    mark: str
    raises: tuple[Call, ...]
    gives: str
    tail: int

    @property
    def name(self) -> str:
        """The last part of the qualified name."""
        return self.qualname.rpartition(".")[2]


@dataclass(frozen=True, slots=True, eq=False)
class Class:
    """A class: what it inherits from, and what its attributes may hold."""

    qualname: str
    line: int
    bases: tuple[str, ...]
    decorators: tuple[str, ...]
    attributes: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Summary:
    """What other modules, and the graph, need to know of one file."""

    functions: tuple[Function, ...]
    classes: tuple[Class, ...]
    names: dict[str, tuple[str, ...]]
    """What each module-level name stands for."""
    star_imports: tuple[str, ...]


def summarize(source: Source) -> Summary:
    """The summary of one file."""
    return _Summarizer(source).summary()


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


class _Summarizer:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.scopes = source.scopes
        self.may_launch = launch.may_launch(source.data)
        self.attributes: dict[str, dict[str, tuple[str, ...]]] = {}
        self.called: dict[Scope, list[ast.Call]] = {}
        self.raised: dict[Scope, list[ast.Raise]] = {}
        self.marks = _marks(source) if _MARK.search(source.text) else {}
        yields = (*source.scopes.nodes.get(ast.Yield, ()), *source.scopes.nodes.get(ast.YieldFrom, ()))
        self.yielding = {self._home(source.scopes.of[node]) for node in yields}

    def summary(self) -> Summary:
        nodes = self.scopes.nodes
        for node in (*nodes.get(ast.Assign, ()), *nodes.get(ast.AnnAssign, ())):
            self._note_attributes(node)
        for call in nodes.get(ast.Call, ()):
            assert isinstance(call, ast.Call)
            self.called.setdefault(self._home(self.scopes.of[call]), []).append(call)
        for raised in nodes.get(ast.Raise, ()):
            assert isinstance(raised, ast.Raise)
            self.raised.setdefault(self._home(self.scopes.of[raised]), []).append(raised)
        definitions = list(self.scopes.inside.items())
        classes = [self._class(node, scope) for node, scope in definitions if isinstance(node, ast.ClassDef)]
        functions = [
            self._function(node, scope)
            for node, scope in definitions
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module)
        ]
        return Summary(tuple(functions), tuple(classes), self._names(), self.scopes.stars)

    def _home(self, scope: Scope) -> Scope:
        """The function, or the module, that runs what stands in `scope`."""
        while scope.parent is not None and not isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef):
            scope = scope.parent
        return scope

    def _note_attributes(self, node: ast.AST) -> None:
        """Remember what is assigned to `self.x`."""
        targets: list[ast.expr]
        match node:
            case ast.Assign(targets=targets, value=value):
                annotation = None
            case ast.AnnAssign(target=one, annotation=annotation, value=value):
                targets = [one]
            case _:
                return
        for target in targets:
            if not isinstance(target, ast.Attribute):
                continue
            owners = [r for r in self.scopes.references(target.value) if r.startswith(":") and r.endswith("()")]
            if not owners:
                continue
            values = self.scopes.references(value) if value else ()
            if annotation is not None:
                values += self.scopes.annotated(annotation)
            for owner in owners if values else ():
                known = self.attributes.setdefault(owner[1:-2], {})
                known[target.attr] = tuple(dict.fromkeys(known.get(target.attr, ()) + values))

    def references(self, node: ast.AST) -> tuple[str, ...]:
        """What `node` stands for; a call of a ray actor or of its method counts as the plain call."""
        found = self._resolved(node)
        return tuple(_ACTOR_CALL.sub("", r) if ".remote" in r else r for r in found)

    def _resolved(self, node: ast.AST) -> tuple[str, ...]:
        """As `references`, with this module's own attributes (`self.context.Process`) followed where they are known."""
        found = self.scopes.references(node)
        if not any(reference.startswith(":") for reference in found):
            return found
        return tuple(followed for reference in found for followed in self._follow(reference, 3))

    def _follow(self, reference: str, depth: int) -> Iterator[str]:
        owner, call, rest = reference.partition("().")
        name, dot, tail = rest.partition(".")
        known = self.attributes.get(owner[1:], {}).get(name) if call and reference.startswith(":") else None
        if known is None or depth == 0:
            yield reference
            return
        for value in known:
            yield from self._follow(f"{value}{dot}{tail}", depth - 1)

    def _class(self, node: ast.ClassDef, scope: Scope) -> Class:
        attributes = dict(self.attributes.get(scope.qualname, {}))
        for name, bindings in scope.bindings.items():
            values = tuple(r for b in bindings if b.value is not None for r in self.references(b.value))
            annotations = tuple(
                reference
                for b in bindings
                if isinstance(b.node, ast.Name) and isinstance(up := self.source.parents[b.node], ast.AnnAssign)
                for reference in self.scopes.annotated(up.annotation)
            )
            if values or annotations:
                attributes.setdefault(name, tuple(dict.fromkeys(values + annotations)))
        bases = tuple(r for base in node.bases for r in self.references(base))
        return Class(scope.qualname, node.lineno, bases, self._decorators(node), attributes)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Module, scope: Scope) -> Function:
        calls: list[Call] = []
        launches: list[Launch] = []
        for call in self.called.get(scope, []):
            found = self.references(call.func)
            calls += [Call(reference, call.lineno) for reference in found if not reference.startswith("builtins.")]
            if self.may_launch:
                launches += launch.recognise(call, self._resolved, self.source)
        if isinstance(node, ast.Module):
            return Function("<module>", 0, 0, "", (), (), tuple(calls), tuple(launches), "", (), "", 0)
        returns = self.scopes.annotated(node.returns) if node.returns else ()
        parent = scope.parent
        owner = parent.qualname if parent is not None and isinstance(parent.node, ast.ClassDef) else ""
        return Function(
            scope.qualname,
            node.lineno,
            node.end_lineno or node.lineno,
            owner,
            self._decorators(node),
            returns,
            tuple(dict.fromkeys(calls)),
            tuple(launches),
            self.marks.get(node.lineno, ""),
            tuple(self._raises(scope)),
            self._gives(node, scope),
            _tail(node.body).lineno,
        )

    def _gives(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> str:
        if node.decorator_list or scope not in self.yielding:
            return ""
        return "asynchronous generator" if isinstance(node, ast.AsyncFunctionDef) else "generator"

    def _raises(self, scope: Scope) -> Iterator[Call]:
        """The classes that are raised, be it an instance or the class itself."""
        for raised in self.raised.get(scope, []):
            for reference in self.references(raised.exc) if raised.exc else ():
                yield Call(reference.removesuffix("()"), raised.lineno)

    def _decorators(self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[str, ...]:
        return tuple(r for decorator in node.decorator_list for r in self.scopes.references(decorator))

    def _names(self) -> dict[str, tuple[str, ...]]:
        names: dict[str, tuple[str, ...]] = {}
        for name, bindings in self.scopes.module.bindings.items():
            found: list[str] = []
            for binding in bindings:
                if binding.kind is Kind.IMPORT:
                    found.append(binding.target)
                elif binding.kind is Kind.DEFINITION:
                    found.append(f":{name}")
                elif binding.value is not None:
                    found += self.references(binding.value)
            if found:
                names[name] = tuple(dict.fromkeys(found))
        return names


def _tail(block: list[ast.stmt]) -> ast.stmt:
    last = block[-1]
    return _tail(last.body) if isinstance(last, ast.With | ast.AsyncWith | ast.Try) else last
