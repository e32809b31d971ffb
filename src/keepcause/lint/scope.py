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
import enum
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
ComprehensionNode = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
ScopeNode = ast.Module | ast.ClassDef | FunctionNode | ComprehensionNode

_BUILTINS = frozenset(dir(builtins))
_MOST_REFERENCES = 8
_MOST_TRIED = 64
_MOST_NAMES = 5
_MOST_BINDINGS = 4


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
    children: list[Scope] = field(default_factory=list)
    star_import: bool = False

    def names(self) -> Iterator[str]:
        """Every name that this scope or one inside it binds, uses or declares."""
        yield from self.bindings
        yield from self.uses
        yield from self.elsewhere
        for child in self.children:
            yield from child.names()

    @property
    def function(self) -> Scope:
        """The innermost function around, this scope included; the module where there is none."""
        scope = self
        while scope.parent is not None and not isinstance(scope.node, FunctionNode):
            scope = scope.parent
        return scope


class Scopes:
    """All scopes of one module."""

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope(tree, None, "")
        self.of: dict[ast.AST, Scope] = {}
        """The scope that each node is evaluated in; a scope's own node maps to the scope around it."""
        self.inside: dict[ast.AST, Scope] = {tree: self.module}
        """The scope that each scope node opens."""
        self._known: dict[ast.AST, tuple[str, ...]] = {}
        self._values: dict[ast.AST, tuple[Kind, ast.expr | None]] = {}
        self._pending: list[tuple[ast.AST, Scope]] = []
        self._build(tree)

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
                yield from self._name(name, self.of[node], names, node)
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

    def _name(self, name: str, scope: Scope, names: int, node: ast.AST) -> Iterator[str]:
        bindings = self.lookup(name, scope)
        if not bindings and self.is_builtin(name, node):
            yield f"builtins.{name}"
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
        function = self.of[parameter]
        owner = function.parent
        definition = function.node
        if (
            owner is not None
            and isinstance(owner.node, ast.ClassDef)
            and isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef)
        ):
            first = next(iter([*definition.args.posonlyargs, *definition.args.args]), None)
            decorators = {d.id for d in definition.decorator_list if isinstance(d, ast.Name)}
            if parameter is first and "staticmethod" not in decorators:
                is_class = "classmethod" in decorators or definition.name in ("__new__", "__init_subclass__")
                yield f":{owner.qualname}" + ("" if is_class else "()")
                return
        if parameter.annotation is not None:
            for annotation in annotated_classes(parameter.annotation):
                for reference in self._annotation(annotation, function, names):
                    yield f"{reference}()"

    def _annotation(self, annotation: ast.expr, function: Scope, names: int) -> Iterator[str]:
        match annotation:
            case ast.Constant(value=str(text)):
                head, *rest = text.split(".")
                if all(part.isidentifier() for part in (head, *rest)):
                    for base in self._name(head, function.parent or self.module, names, annotation):
                        yield ".".join((base, *rest))
            case _:
                yield from self._references(annotation, names)

    def owner(self, scope: Scope) -> Scope | None:
        """The class whose method `scope` is in, however deeply nested; None outside of classes."""
        current: Scope | None = scope
        while current is not None and not isinstance(current.node, ast.ClassDef):
            current = current.parent
        return current

    # Building: one iterative walk, so that deep nesting is no problem.

    def _build(self, tree: ast.Module) -> None:
        self._pending = [(child, self.module) for child in reversed(tree.body)]
        while self._pending:
            node, scope = self._pending.pop()
            self.of[node] = scope
            self._visit(node, scope)

    def _push(self, nodes: list[ast.AST] | list[ast.expr] | list[ast.stmt], scope: Scope) -> None:
        self._pending.extend((node, scope) for node in reversed(nodes))

    def _bind(self, name: str, scope: Scope, binding: Binding) -> None:
        home = scope.elsewhere.get(name, scope)
        home.bindings.setdefault(name, []).append(binding)

    def _open(self, node: ScopeNode, scope: Scope, name: str) -> Scope:
        inner = Scope(node, scope, f"{scope.qualname}.{name}" if scope.qualname else name)
        scope.children.append(inner)
        self.inside[node] = inner
        return inner

    def _visit(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._bind(node.name, scope, Binding(Kind.DEFINITION, node))
                inner = self._open(node, scope, node.name)
                outside = [*node.decorator_list, *([node.returns] if node.returns else [])]
                self._parameters(node.args, scope, inner)
                self._declarations(node, inner)
                self._push(node.body, inner)
                self._push(outside, scope)
            case ast.Lambda(args=args, body=body):
                inner = self._open(node, scope, "<lambda>")
                self._parameters(args, scope, inner)
                self._push([body], inner)
            case ast.ClassDef():
                self._bind(node.name, scope, Binding(Kind.DEFINITION, node))
                inner = self._open(node, scope, node.name)
                self._declarations(node, inner)
                self._push(node.body, inner)
                self._push([*node.decorator_list, *node.bases, *(k.value for k in node.keywords)], scope)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self._comprehension(node, scope)
            case ast.Import() | ast.ImportFrom():
                self._import(node, scope)
            case ast.Name(id=name):
                self._name_node(node, name, scope)
            case ast.ExceptHandler(name=str(name)):
                self._bind(name, scope, Binding(Kind.HANDLER, node))
                self._children(node, scope)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                self._bind(name, scope, Binding(Kind.PART, node))
                self._children(node, scope)
            case _:
                self._note_values(node)
                self._children(node, scope)

    def _children(self, node: ast.AST, scope: Scope) -> None:
        self._push(list(ast.iter_child_nodes(node)), scope)

    def _note_values(self, node: ast.AST) -> None:
        """Remember, for the names that `node` binds as a whole, what they are given."""
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._values[target] = (Kind.ASSIGNMENT, value)
                    if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
                        self._pair_up(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                self._values[target] = (Kind.ASSIGNMENT, value)

    def _pair_up(self, target: ast.Tuple | ast.List, value: ast.Tuple | ast.List) -> None:
        starred = any(isinstance(part, ast.Starred) for part in (*target.elts, *value.elts))
        if not starred and len(target.elts) == len(value.elts):
            for part, given in zip(target.elts, value.elts, strict=True):
                self._values[part] = (Kind.ASSIGNMENT, given)

    def _name_node(self, node: ast.Name, name: str, scope: Scope) -> None:
        if isinstance(node.ctx, ast.Load):
            scope.uses.add(name)
            return
        if isinstance(node.ctx, ast.Del):
            self._bind(name, scope, Binding(Kind.DELETION, node))
            return
        kind, value = self._values.get(node, (Kind.PART, None))
        home = scope
        while isinstance(home.node, ComprehensionNode) and kind is Kind.ASSIGNMENT and home.parent is not None:
            home = home.parent  # a walrus inside a comprehension binds outside of it
        self._bind(name, home, Binding(kind, node, value))

    def _import(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                target = alias.name if alias.asname else name
                self._bind(name, scope, Binding(Kind.IMPORT, node, target=target))
            return
        base = "." * node.level + (node.module or "")
        for alias in node.names:
            if alias.name == "*":
                self.module.star_import = True
            else:
                target = f"{base}{alias.name}" if base.endswith(".") else f"{base}.{alias.name}"
                self._bind(alias.asname or alias.name, scope, Binding(Kind.IMPORT, node, target=target))

    def _parameters(self, arguments: ast.arguments, outer: Scope, inner: Scope) -> None:
        variadic = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
        positional = [*arguments.posonlyargs, *arguments.args]
        defaults: dict[ast.arg, ast.expr | None] = dict(
            zip(reversed(positional), reversed(arguments.defaults), strict=False)
        )
        defaults.update(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))
        for parameter in [*positional, *arguments.kwonlyargs, *variadic]:
            self._bind(parameter.arg, inner, Binding(Kind.PARAMETER, parameter, defaults.get(parameter)))
            self.of[parameter] = inner
            if parameter.annotation is not None:
                self._push([parameter.annotation], outer)
        self._push([*arguments.defaults, *(d for d in arguments.kw_defaults if d is not None)], outer)

    def _declarations(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, scope: Scope) -> None:
        """Take in `global` and `nonlocal` before the body, since they count for all of it."""
        pending: list[ast.AST] = list(node.body)
        while pending:
            match pending.pop():
                case ast.Global(names=names):
                    scope.elsewhere.update(dict.fromkeys(names, self.module))
                case ast.Nonlocal(names=names):
                    for name in names:
                        scope.elsewhere[name] = self._enclosing(name, scope)
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.expr():
                    pass
                case other:
                    pending.extend(ast.iter_child_nodes(other))

    def _enclosing(self, name: str, scope: Scope) -> Scope:
        current = scope.parent
        while current is not None and current.parent is not None:
            if isinstance(current.node, FunctionNode):
                # The body around may bind the name further down, so the innermost function is taken on trust.
                return current.elsewhere.get(name, current)
            current = current.parent
        return self.module

    def _comprehension(self, node: ComprehensionNode, scope: Scope) -> None:
        inner = self._open(node, scope, "<comprehension>")
        first, *others = node.generators
        self.of[first] = scope
        results: list[ast.AST] = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._push([first.target, *first.ifs, *others, *results], inner)
        self._push([first.iter], scope)


def annotated_classes(annotation: ast.expr) -> Iterator[ast.expr]:
    """The classes that an annotation names: `X`, `"X"`, `X | None`, `Optional[X]`; nothing for containers of them."""
    match annotation:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from annotated_classes(left)
            yield from annotated_classes(right)
        case ast.Subscript(value=ast.Name(id="Optional") | ast.Attribute(attr="Optional"), slice=inner):
            yield from annotated_classes(inner)
        case ast.Name() | ast.Attribute() | ast.Constant(value=str()):
            yield annotation
