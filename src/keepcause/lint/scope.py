"""One module's names: which scope binds what, and what expressions stand for; standard library only.

A *reference* is a dotted string that says what an expression means without running anything:

- `multiprocessing.Process`: an imported name, absolute; `..pkg.name`: relative, with its leading dots;
- `builtins.map`: a builtin that nothing shadows;
- `:WorkerProc.run`: a definition of this module, by its qualified name;
- `X()`: what calling `X` returns, so `:WorkerProc().run` is a method of an instance;
- `super(:WorkerProc).run`: a method looked up behind that class.

`functools.partial(f, ...)` stands for `f`.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import itertools
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

from keepcause.lint.binding import Binding, Kind, Scope, ScopeTree
from keepcause.lint.syntax import Function

if TYPE_CHECKING:
    from collections.abc import Iterator

Definition = Function | ast.ClassDef
_BUILTINS = frozenset(dir(builtins))
_TYPING_CHOICES = ("Optional", "Union", "Annotated", "Final", "ClassVar")
_MOST_REFERENCES = 8
_MOST_TRIED = 64
_MOST_NAMES = 5
_MOST_BINDINGS = 4


class Scopes(ScopeTree):
    """All scopes of one module, and what its expressions stand for."""

    def __init__(self, tree: ast.Module, *, on_demand: bool = False) -> None:
        super().__init__(tree, on_demand=on_demand)
        self._known: dict[ast.AST, tuple[str, ...]] = {}

    @cached_property
    def handler_names(self) -> Counter[str]:
        """How many exception handlers give which name to what they catch; all of the module has been walked."""
        handlers = self.nodes.get(ast.ExceptHandler, ())
        return Counter(node.name for node in handlers if isinstance(node, ast.ExceptHandler) and node.name)

    @cached_property
    def stars(self) -> tuple[str, ...]:
        """The modules of which all names are imported, with leading dots where they are relative."""
        return tuple(
            "." * node.level + (node.module or "")
            for node in self.nodes.get(ast.ImportFrom, ())
            if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)
        )

    @cached_property
    def definitions(self) -> dict[str, list[Definition]]:
        """The functions and classes by the reference that means them; all of the module has been walked."""
        found: dict[str, list[Definition]] = {}
        for node, scope in self.inside.items():
            if isinstance(node, Definition):
                found.setdefault(f":{scope.qualname}", []).append(node)
        return found

    def lookup(self, name: str, scope: Scope) -> list[Binding]:
        """The bindings that `name` may refer to when it is read in `scope`; empty for builtins and unknown names."""
        current: Scope | None = scope
        while current is not None:
            if name in current.elsewhere:
                current = current.elsewhere[name]
                return current.bindings.get(name, [])
            visible = current is scope or not isinstance(current.node, ast.ClassDef)
            if visible and name in current.bindings:
                return current.bindings[name]
            current = current.parent
        return []

    def is_builtin(self, name: str, node: ast.AST) -> bool:
        """Whether `name`, read at `node`, is the builtin: nothing in sight binds it, and no star import might."""
        return name in _BUILTINS and not self.module.star_import and not self.lookup(name, self.of[node])

    def qualified(self, node: ast.expr) -> str | None:
        """The one reference that `node` stands for; None where there is none, or more than one."""
        found = self.references(node)
        return found[0] if len(found) == 1 else None

    def references(self, node: ast.AST) -> tuple[str, ...]:
        """Every reference that `node` may stand for, in source order, at most eight; empty where nothing is known."""
        if node not in self._known:
            found = itertools.islice(self._references(node, _MOST_NAMES), _MOST_TRIED)
            self._known[node] = tuple(dict.fromkeys(found))[:_MOST_REFERENCES]
        return self._known[node]

    def _references(self, node: ast.AST, names: int) -> Iterator[str]:
        """`names` is how many more assignments may be followed."""
        match node:
            case ast.Name(id=name):
                yield from self._named(name, self.of[node], names, node)
            case ast.Attribute(value=value, attr=attr):
                for base in self._references(value, names):
                    yield f"{base}.{attr}"
            case ast.Call(func=ast.Name(id="super"), args=[]) if self.is_builtin("super", node):
                if (owner := self.owner(self.of[node])) is not None:
                    yield f"super(:{owner.qualname})"
            case ast.Call(func=func, args=args):
                for base in self._references(func, names):
                    if base == "functools.partial" and args:
                        yield from self._references(args[0], names)
                    else:
                        yield f"{base}()"
            case ast.BoolOp(values=values):
                for value in values:
                    yield from self._references(value, names)
            case ast.IfExp(body=body, orelse=orelse):
                yield from self._references(body, names)
                yield from self._references(orelse, names)
            case ast.NamedExpr(value=value) | ast.Await(value=value):
                yield from self._references(value, names)

    def _named(self, name: str, scope: Scope, names: int, node: ast.AST) -> Iterator[str]:
        bindings = self.lookup(name, scope)
        if not bindings and self.is_builtin(name, node):
            yield f"builtins.{name}"
        elif not bindings and name not in _BUILTINS:
            yield from (f"{module}{name}" if module.endswith(".") else f"{module}.{name}" for module in self.stars)
        if not names or len(bindings) > _MOST_BINDINGS:
            return
        for binding in bindings:
            match binding:
                case Binding(kind=Kind.IMPORT, target=target):
                    yield target
                case Binding(kind=Kind.DEFINITION, node=definition):
                    yield f":{self.inside[definition].qualname}"
                case Binding(kind=Kind.ASSIGNMENT, value=ast.expr() as value):
                    yield from self._references(value, names - 1)
                case Binding(kind=Kind.PARAMETER, node=ast.arg() as parameter, value=default):
                    yield from self._parameter(parameter, names)
                    if isinstance(default, ast.Name | ast.Attribute):
                        yield from self._references(default, names)

    def _parameter(self, parameter: ast.arg, names: int) -> Iterator[str]:
        """`self` and `cls` by their place, another parameter by its annotation."""
        function = self.inside[self.parents[self.parents[parameter]]]
        owner = function.parent
        definition = function.node
        if owner is not None and isinstance(owner.node, ast.ClassDef) and isinstance(definition, Function):
            first = next(iter([*definition.args.posonlyargs, *definition.args.args]), None)
            decorators = {d.id for d in definition.decorator_list if isinstance(d, ast.Name)}
            if parameter is first and "staticmethod" not in decorators:
                is_class = "classmethod" in decorators or definition.name in ("__new__", "__init_subclass__")
                yield f":{owner.qualname}" + ("" if is_class else "()")
                return
        if parameter.annotation is not None:
            yield from self._annotated(parameter.annotation, names)

    def annotated(self, annotation: ast.expr) -> tuple[str, ...]:
        """References to what may be an instance of what `annotation` names."""
        return tuple(self._annotated(annotation, _MOST_NAMES))

    def _annotated(self, annotation: ast.expr, names: int) -> Iterator[str]:
        for dotted in _annotated_classes(annotation):
            head, dot, rest = dotted.partition(".")
            for base in self._named(head, self.of[annotation], names, annotation):
                yield f"{base}{dot}{rest}()"

    def owner(self, scope: Scope) -> Scope | None:
        """The class whose method `scope` is in, however deeply nested; None outside of classes."""
        current: Scope | None = scope
        while current is not None and not isinstance(current.node, ast.ClassDef):
            current = current.parent
        return current


def _annotated_classes(annotation: ast.expr) -> Iterator[str]:
    """The classes that an annotation names: `X`, `"X"`, `X | None`, `Optional[X]`; not what containers hold."""
    match annotation:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from _annotated_classes(left)
            yield from _annotated_classes(right)
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inner) if name in _TYPING_CHOICES:
            for choice in inner.elts if isinstance(inner, ast.Tuple) else [inner]:
                yield from _annotated_classes(choice)
        case ast.Constant(value=str(text)):
            with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                yield from _annotated_classes(ast.parse(text.strip(), mode="eval").body)
        case ast.Name(id=name):
            yield name
        case ast.Attribute(value=value, attr=attr):
            for base in _annotated_classes(value):
                yield f"{base}.{attr}"
