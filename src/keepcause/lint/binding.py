"""One module's scopes and what each of them binds, read off the tree in one walk; standard library only.

Where few functions matter, the bodies of functions are left out until somebody enters them.
"""

from __future__ import annotations

import ast
import enum
import itertools
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
ComprehensionNode = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
ScopeNode = ast.Module | ast.ClassDef | FunctionNode | ComprehensionNode

# The fields that hold other nodes, for each type of node; nothing is ever said of contexts, operators and aliases.
_PLAIN = frozenset(
    {"ctx", "op", "ops", "id", "attr", "arg", "name", "names", "rest", "kind", "type_comment", "conversion"}
)
_FIELDS = {
    kind: () if kind is ast.Constant else tuple(name for name in kind._fields if name not in _PLAIN)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_FIELDS_OUTSIDE = _FIELDS | {kind: tuple(name for name in _FIELDS[kind] if name != "body") for kind in _DEFINITIONS}


class Kind(enum.Enum):
    """How a name comes to be bound."""

    IMPORT = enum.auto()
    DEFINITION = enum.auto()
    PARAMETER = enum.auto()
    ASSIGNMENT = enum.auto()
    """The name is given the whole of `Binding.value`."""
    PART = enum.auto()
    """The name is given a part of something: unpacking, a loop, `with`, a pattern, an augmented assignment."""
    HANDLER = enum.auto()
    DELETION = enum.auto()


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """One place that binds a name. `target` is what an import names; `value` is what an assignment assigns, or a
    parameter's default."""

    kind: Kind
    node: ast.AST
    value: ast.expr | None = None
    target: str = ""


@dataclass(slots=True, eq=False)
class Scope:
    """A module, class, function, lambda or comprehension, with what it binds and which names it uses."""

    node: ScopeNode
    parent: Scope | None
    qualname: str
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    uses: set[str] = field(default_factory=set)
    elsewhere: dict[str, Scope] = field(default_factory=dict)
    """Names declared `global` or `nonlocal`, with the scope that holds them."""
    star_import: bool = False

    @property
    def function(self) -> Scope:
        """The innermost function around, this scope included; the module where there is none."""
        scope = self
        while scope.parent is not None and not isinstance(scope.node, FunctionNode):
            scope = scope.parent
        return scope


class ScopeTree:
    """The scopes of one module. An iterative walk builds them, so that deep nesting is no problem.

    Scopes know the scope around them but not those inside: without cycles a tree is freed as soon as it is dropped.
    """

    def __init__(self, tree: ast.Module, *, on_demand: bool = False) -> None:
        """`on_demand` leaves out the bodies of functions until `enter`; none may declare a name global or nonlocal."""
        self.module = Scope(tree, None, "")
        self.of: dict[ast.AST, Scope] = {}
        """The scope that each node is evaluated in; a scope's own node maps to the scope around it."""
        self.inside: dict[ast.AST, Scope] = {tree: self.module}
        """The scope that each scope node opens."""
        self.parents: dict[ast.AST, ast.AST] = {}
        """Every node but the module -> the node that holds it."""
        self.nodes: defaultdict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        """The nodes of each type, outer ones before inner ones."""
        self._within: dict[Scope, list[Scope]] = {}
        """Each scope -> those right inside it."""
        self._values: dict[ast.AST, ast.expr] = {}
        self._pending: list[tuple[ast.AST, Scope]] = [(tree, self.module)]
        self._fields = _FIELDS_OUTSIDE if on_demand else _FIELDS
        self._walk()

    def is_left_out(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        """Whether the body of `function` has not been walked."""
        return function.body[0] not in self.parents

    def enter(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.AST]:
        """Walk the body of `function`, which was left out; its nodes, without inner functions' bodies."""
        inner, known = self.inside[function], len(self.of)
        self.parents.update(dict.fromkeys(function.body, function))
        self._pending += [(statement, inner) for statement in reversed(function.body)]
        self._walk()
        return list(itertools.islice(reversed(self.of), len(self.of) - known))[::-1]

    def _walk(self) -> None:
        pending, parents, of, nodes, fields = self._pending, self.parents, self.of, self.nodes, self._fields
        visitors: dict[type[ast.AST], Callable[[ScopeTree, ast.AST, Scope], None]] = _VISITORS
        while pending:
            node, scope = pending.pop()
            kind = type(node)
            of[node] = scope
            nodes[kind].append(node)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                scope.uses.add(node.id)
                continue
            start = len(pending)
            for name in fields[kind]:
                value = getattr(node, name)
                if isinstance(value, list):
                    for item in value:
                        if isinstance(item, ast.AST):
                            parents[item] = node
                            pending.append((item, scope))
                elif isinstance(value, ast.AST):
                    parents[value] = node
                    pending.append((value, scope))
            if kind in visitors:
                visitors[kind](self, node, scope)
            if len(pending) > start + 1:
                pending[start:] = pending[: start - 1 : -1] if start else pending[::-1]

    def _move(self, nodes: Iterable[ast.AST], inner: Scope) -> None:
        """Evaluate `nodes`, which wait to be visited, in `inner`."""
        moved = set(nodes)
        for index in range(len(self._pending) - 1, -1, -1):
            node, _ = self._pending[index]
            if node in moved:
                self._pending[index] = (node, inner)
                moved.discard(node)
                if not moved:
                    return

    def names_in(self, scope: Scope) -> Iterator[str]:
        """Every name that `scope` or one inside it binds, uses or declares."""
        pending = [scope]
        while pending:
            inner = pending.pop()
            pending += self._within.get(inner, ())
            yield from inner.bindings
            yield from inner.uses
            yield from inner.elsewhere

    def _bind(self, name: str, scope: Scope, binding: Binding) -> None:
        home = scope.elsewhere.get(name, scope)
        home.bindings.setdefault(name, []).append(binding)

    def _open(self, node: ScopeNode, scope: Scope, name: str) -> Scope:
        inner = Scope(node, scope, f"{scope.qualname}.{name}" if scope.qualname else name)
        self.inside[node] = inner
        self._within.setdefault(scope, []).append(inner)
        return inner

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        self._bind(node.name, scope, Binding(Kind.DEFINITION, node))
        inner = self._open(node, scope, node.name)
        self._parameters(node.args, inner)
        if self._fields is _FIELDS:
            self._move(node.body, inner)

    def _lambda(self, node: ast.Lambda, scope: Scope) -> None:
        inner = self._open(node, scope, "<lambda>")
        self._parameters(node.args, inner)
        self._move([node.body], inner)

    def _parameters(self, arguments: ast.arguments, inner: Scope) -> None:
        variadic = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
        positional = [*arguments.posonlyargs, *arguments.args]
        with_default = positional[len(positional) - len(arguments.defaults) :]
        defaults: dict[ast.arg, ast.expr | None] = dict(zip(with_default, arguments.defaults, strict=True))
        defaults.update(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))
        for parameter in [*positional, *arguments.kwonlyargs, *variadic]:
            self._bind(parameter.arg, inner, Binding(Kind.PARAMETER, parameter, defaults.get(parameter)))

    def _class(self, node: ast.ClassDef, scope: Scope) -> None:
        self._bind(node.name, scope, Binding(Kind.DEFINITION, node))
        self._move(node.body, self._open(node, scope, node.name))

    def _comprehension(self, node: ComprehensionNode, scope: Scope) -> None:
        inner = self._open(node, scope, "<comprehension>")
        results: list[ast.AST] = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._move([*results, *node.generators], inner)

    def _generator(self, node: ast.comprehension, scope: Scope) -> None:
        """The first iterable of a comprehension is evaluated outside of it."""
        comprehension = scope.node
        if isinstance(comprehension, ComprehensionNode) and comprehension.generators[0] is node and scope.parent:
            self._move([node.iter], scope.parent)

    def _import(self, node: ast.Import, scope: Scope) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            target = alias.name if alias.asname else name
            self._bind(name, scope, Binding(Kind.IMPORT, node, target=target))

    def _import_from(self, node: ast.ImportFrom, scope: Scope) -> None:
        base = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self.module.star_import = True
            else:
                target = f"{base}{alias.name}" if base.endswith(".") else f"{base}.{alias.name}"
                self._bind(alias.asname or alias.name, scope, Binding(Kind.IMPORT, node, target=target))

    def _global(self, node: ast.Global, scope: Scope) -> None:
        scope.elsewhere.update(dict.fromkeys(node.names, self.module))

    def _nonlocal(self, node: ast.Nonlocal, scope: Scope) -> None:
        for name in node.names:
            scope.elsewhere[name] = self._enclosing(name, scope)

    def _enclosing(self, name: str, scope: Scope) -> Scope:
        current = scope.parent
        while current is not None and current.parent is not None:
            if isinstance(current.node, FunctionNode):
                # The body around may bind the name further down, so the innermost function is taken on trust.
                return current.elsewhere.get(name, current)
            current = current.parent
        return self.module

    def _assign(self, node: ast.Assign, scope: Scope) -> None:
        for target in node.targets:
            self._values[target] = node.value
            if isinstance(target, ast.Tuple | ast.List) and isinstance(node.value, ast.Tuple | ast.List):
                self._pair_up(target, node.value)

    def _pair_up(self, target: ast.Tuple | ast.List, value: ast.Tuple | ast.List) -> None:
        starred = any(isinstance(part, ast.Starred) for part in (*target.elts, *value.elts))
        if not starred and len(target.elts) == len(value.elts):
            self._values.update(zip(target.elts, value.elts, strict=True))

    def _assign_one(self, node: ast.AnnAssign | ast.NamedExpr, scope: Scope) -> None:
        if node.value is not None:
            self._values[node.target] = node.value

    def _name(self, node: ast.Name, scope: Scope) -> None:
        if isinstance(node.ctx, ast.Del):
            self._bind(node.id, scope, Binding(Kind.DELETION, node))
        else:
            value = self._values.get(node)
            if isinstance(self.parents[node], ast.NamedExpr):
                while isinstance(scope.node, ComprehensionNode) and scope.parent is not None:
                    scope = scope.parent  # a walrus inside a comprehension binds outside of it
            self._bind(node.id, scope, Binding(Kind.PART if value is None else Kind.ASSIGNMENT, node, value))

    def _handler(self, node: ast.ExceptHandler, scope: Scope) -> None:
        if node.name is not None:
            self._bind(node.name, scope, Binding(Kind.HANDLER, node))

    def _pattern(self, node: ast.MatchAs | ast.MatchStar | ast.MatchMapping, scope: Scope) -> None:
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name is not None:
            self._bind(name, scope, Binding(Kind.PART, node))


_VISITORS: dict[type[ast.AST], Callable[..., None]] = {
    ast.FunctionDef: ScopeTree._function,
    ast.AsyncFunctionDef: ScopeTree._function,
    ast.Lambda: ScopeTree._lambda,
    ast.ClassDef: ScopeTree._class,
    ast.ListComp: ScopeTree._comprehension,
    ast.SetComp: ScopeTree._comprehension,
    ast.DictComp: ScopeTree._comprehension,
    ast.GeneratorExp: ScopeTree._comprehension,
    ast.comprehension: ScopeTree._generator,
    ast.Import: ScopeTree._import,
    ast.ImportFrom: ScopeTree._import_from,
    ast.Global: ScopeTree._global,
    ast.Nonlocal: ScopeTree._nonlocal,
    ast.Assign: ScopeTree._assign,
    ast.AnnAssign: ScopeTree._assign_one,
    ast.NamedExpr: ScopeTree._assign_one,
    ast.Name: ScopeTree._name,
    ast.ExceptHandler: ScopeTree._handler,
    ast.MatchAs: ScopeTree._pattern,
    ast.MatchStar: ScopeTree._pattern,
    ast.MatchMapping: ScopeTree._pattern,
}
