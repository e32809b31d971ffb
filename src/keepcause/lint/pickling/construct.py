"""What an exception class's constructor takes, and how many values it leaves in `args`; standard library only."""

from __future__ import annotations

import ast
import builtins
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepcause.lint.binding import Kind
from keepcause.lint.syntax import Function

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.source import Source

WITHOUT_CONSTRUCTOR = frozenset({"typing.Generic", "typing.Protocol", "abc.ABC", "builtins.object"})
PLAIN = frozenset({"queue.Empty", "queue.Full", "asyncio.TimeoutError", "concurrent.futures.TimeoutError"})
"""Exceptions of the standard library that take any arguments, as Exception does."""
BUILTIN_EXCEPTIONS = frozenset(
    name for name, what in vars(builtins).items() if isinstance(what, type) and issubclass(what, BaseException)
)
_OTHERWISE_BUILT = (BaseExceptionGroup, UnicodeError, SyntaxError)
"""Builtins whose constructors want arguments of their own."""
_DATACLASS = frozenset({"dataclasses.dataclass", "dataclasses.dataclass()"})


@dataclass(frozen=True)
class Lineage:
    """An exception class of the file: itself and the classes of the file behind it, in the order of look-up."""

    classes: tuple[ast.ClassDef, ...]
    builtin: type[BaseException]

    def method(self, *names: str) -> Function | None:
        """The first method of one of these names; of several in one class the last."""
        for owner in self.classes:
            found = [node for node in owner.body if isinstance(node, Function) and node.name in names]
            if found:
                return found[-1]
        return None


@dataclass(frozen=True)
class Signature:
    """How many positional arguments a constructor needs and takes at most, and whether it needs keyword-only ones."""

    needs: int
    takes: float
    keywords: tuple[str, ...] = ()

    def fits(self, count: Count) -> bool:
        """Whether that many positional arguments, and nothing else, may be enough."""
        return not self.keywords and count.most >= self.needs and count.least <= self.takes


@dataclass(frozen=True)
class Count:
    """How many values `args` holds. `given`: as many as the constructor was called with by position.

    `call` is the call that set `args`, where there is one.
    """

    least: int
    most: float
    given: bool = False
    call: ast.Call | None = None


_UNKNOWN = Count(0, math.inf)


def lineage(node: ast.ClassDef, source: Source) -> Lineage | None:
    """The class with all that it inherits from; None where it is no exception, or not all of it is known."""
    classes: list[ast.ClassDef] = []
    builtin: list[type[BaseException]] = []
    if not _collect(node, classes, builtin, source) or not builtin:
        return None
    base = builtin[0]
    return None if issubclass(base, _OTHERWISE_BUILT) else Lineage(tuple(dict.fromkeys(classes)), base)


def _collect(
    node: ast.ClassDef, classes: list[ast.ClassDef], builtin: list[type[BaseException]], source: Source
) -> bool:
    if node in classes or node.keywords or any(_is_attrs(decorator, source) for decorator in node.decorator_list):
        return False
    classes.append(node)
    for base in node.bases:
        plain = base.value if isinstance(base, ast.Subscript) else base
        reference = source.scopes.qualified(plain) or ""
        if reference in WITHOUT_CONSTRUCTOR:
            continue
        if reference in PLAIN and ast.unparse(plain).endswith(reference.rpartition(".")[2]):
            builtin.append(Exception)
        elif reference.startswith("builtins.") and isinstance(plain, ast.Name):
            found = getattr(builtins, plain.id, None)
            if not (isinstance(found, type) and issubclass(found, BaseException)):
                return False
            builtin.append(found)
        elif (own := defined(reference, source)) is None or not _collect(own, classes, builtin, source):
            return False
    return True


def defined(reference: str, source: Source) -> ast.ClassDef | None:
    """The class of this file that a reference names, if there is just one of that name."""
    found = [node for node in source.scopes.definitions.get(reference, ()) if isinstance(node, ast.ClassDef)]
    return found[0] if len(found) == 1 else None


def _is_attrs(decorator: ast.expr, source: Source) -> bool:
    return any(reference.partition(".")[0] in ("attr", "attrs") for reference in source.scopes.references(decorator))


# What the constructor takes


def signatures(family: Lineage, source: Source) -> list[Signature] | None:
    """What is asked of the arguments on each way through the constructor; None where that is not known."""
    found = []
    if new := family.method("__new__"):
        found.append(_of_function(new))
    init = initializer(family, source)
    if isinstance(init, ast.ClassDef):
        found.append(_of_fields(family, source))
    elif init is not None:
        found.append(_of_function(init))
    known = [signature for signature in found if signature is not None]
    return known if len(known) == len(found) else None


def initializer(family: Lineage, source: Source) -> Function | ast.ClassDef | None:
    """The `__init__` that runs, or the dataclass that has one made; None for the builtin one."""
    for owner in family.classes:
        own = Lineage((owner,), family.builtin).method("__init__")
        if own is not None:
            return own
        options = dataclass_options(owner, source)
        if options is not None and options.get("init", True):
            return owner
    return None


def _of_function(function: Function) -> Signature | None:
    if function.decorator_list and function.name == "__init__":
        return None
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args][1:]
    needs = max(0, len(positional) - len(arguments.defaults))
    keywords = tuple(
        argument.arg
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    )
    return Signature(needs, math.inf if arguments.vararg else len(positional), keywords)


def dataclass_options(node: ast.ClassDef, source: Source) -> dict[str, bool] | None:
    """The options of a dataclass that are given as True or False; None for another class."""
    for decorator in node.decorator_list:
        if not _DATACLASS.isdisjoint(source.scopes.references(decorator)):
            keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
            return {k.arg: k.value.value is True for k in keywords if k.arg and isinstance(k.value, ast.Constant)}
    return None


def fields(family: Lineage, source: Source) -> Iterator[tuple[ast.AnnAssign, bool]]:
    """The fields of all dataclasses of the family, those of bases first, and whether each is keyword-only."""
    for owner in reversed(family.classes):
        options = dataclass_options(owner, source)
        keyword_only = bool(options and options.get("kw_only"))
        for node in owner.body if options is not None else ():
            match node:
                case ast.AnnAssign(target=ast.Name(), annotation=annotation):
                    names = {name for part in ast.walk(annotation) for name in source.scopes.references(part)}
                    if "dataclasses.KW_ONLY" in names:
                        keyword_only = True
                    elif "typing.ClassVar" not in names:
                        yield node, bool(field_option(node, "kw_only", keyword_only))


def field_option(node: ast.AnnAssign, name: str, default: object) -> object:
    """An option of `field(...)` that is written as a constant."""
    for keyword in node.value.keywords if isinstance(node.value, ast.Call) else ():
        if keyword.arg == name and isinstance(keyword.value, ast.Constant):
            return keyword.value.value
    return default


def _of_fields(family: Lineage, source: Source) -> Signature:
    positional, needs = 0, 0
    keywords: list[str] = []
    for node, keyword_only in fields(family, source):
        assert isinstance(node.target, ast.Name)
        if field_option(node, "init", True) is False:
            continue
        optional = node.value is not None and not _is_field_without_default(node.value, source)
        if not keyword_only:
            positional += 1
            needs += not optional
        elif not optional:
            keywords.append(node.target.id)
    return Signature(needs, positional, tuple(keywords))


def _is_field_without_default(value: ast.expr, source: Source) -> bool:
    return (
        isinstance(value, ast.Call)
        and "dataclasses.field" in source.scopes.references(value.func)
        and not {"default", "default_factory"} & {keyword.arg for keyword in value.keywords}
    )


# What `args` holds afterwards


def counts(family: Lineage, source: Source) -> list[Count]:
    """What `args` may hold when an instance is made, one entry per way through the constructor."""
    init = initializer(family, source)
    start = Count(0, math.inf, given=True)
    if isinstance(init, Function) and issubclass(family.builtin, OSError) and family.method("__new__") is None:
        start = Count(0, 0)  # OSError leaves args to an `__init__` of one's own
    if isinstance(init, ast.ClassDef):
        init = family.method("__post_init__")
    return _After(family, source, init).run(init.body, [start]) if init is not None else [start]


@dataclass(frozen=True)
class _After:
    """What `args` may hold after statements of a constructor."""

    family: Lineage
    source: Source
    function: Function
    depth: int = 8

    def run(self, block: list[ast.stmt], state: list[Count]) -> list[Count]:
        """What it may hold after `block`, where it held one of `state`."""
        for statement in block:
            match statement:
                case ast.If(body=body, orelse=orelse):
                    state = [*self.run(body, state), *self.run(orelse, state)]
                case ast.For(body=body, orelse=orelse) | ast.While(body=body, orelse=orelse):
                    state = [*state, *self.run(body, state)]
                    state = [*state, *self.run(orelse, state)]
                case ast.With(body=body):
                    state = self.run(body, state)
                case (
                    ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final)
                    | ast.TryStar(body=body, handlers=handlers, orelse=orelse, finalbody=final)
                ):
                    tried = self.run(body, state)
                    caught = [count for h in handlers for count in self.run(h.body, [*state, *tried])]
                    state = self.run(final, [*self.run(orelse, tried), *caught])
                case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=this), attr="args")], value=value):
                    state = [_assigned(value)] if this == instance(self.function) else state
                case ast.Expr(value=ast.Call(func=ast.Attribute(attr="__init__", value=behind)) as call):
                    state = self.called(call, behind, state)
                case _ if _may_set_arguments(statement):
                    state = [_UNKNOWN]
        return list(dict.fromkeys(state))

    def called(self, event: ast.Call, behind: ast.expr, state: list[Count]) -> list[Count]:
        """What it may hold after a call of a base's constructor."""
        owner = self.source.parents[self.function]
        classes = self.family.classes
        following = classes[classes.index(owner) + 1 :] if owner in classes else ()
        arguments = event.args
        match behind:
            case ast.Call(func=ast.Name(id="super")):
                pass
            case ast.Name():
                arguments = arguments[1:]
                reference = self.source.scopes.qualified(behind) or ""
                named = defined(reference, self.source)
                if named is None and not reference.startswith("builtins."):
                    return [_UNKNOWN]
                following = classes[classes.index(named) :] if named in classes else ()
            case _:
                return [_UNKNOWN]
        init = initializer(Lineage(following, self.family.builtin), self.source)
        if init is None:
            return [_counted(arguments, ast.copy_location(ast.Call(event.func, arguments, event.keywords), event))]
        if self.depth == 0 or isinstance(init, ast.ClassDef):
            return [_UNKNOWN]
        return _After(self.family, self.source, init, self.depth - 1).run(init.body, state)


def _may_set_arguments(statement: ast.stmt) -> bool:
    """Whether a statement of another form may set the `args` of some exception."""
    for node in ast.walk(statement):
        match node:
            case ast.Attribute(attr="args", ctx=ast.Store()) | ast.Attribute(attr="__init__") | ast.Constant("args"):
                return True
    return False


def _assigned(value: ast.expr) -> Count:
    return _counted(value.elts, None) if isinstance(value, ast.Tuple | ast.List) else _UNKNOWN


def _counted(values: list[ast.expr], call: ast.Call | None) -> Count:
    starred = sum(isinstance(value, ast.Starred) for value in values)
    return Count(len(values) - starred, math.inf if starred else len(values), call=call)


def keyword_constructions(family: Lineage, needs: int, source: Source) -> Iterator[ast.Call]:
    """The calls in this file that make an instance and give fewer than `needs` arguments by position."""
    name = f":{source.scopes.inside[family.classes[0]].qualname}"
    for call in source.scopes.nodes.get(ast.Call, ()):
        assert isinstance(call, ast.Call)
        starred = any(isinstance(argument, ast.Starred) for argument in call.args)
        starred = starred or not all(keyword.arg for keyword in call.keywords)
        if len(call.args) < needs and not starred and name in source.scopes.references(call.func):
            yield call


def is_local(node: ast.ClassDef, source: Source) -> bool:
    """Whether the class is made anew in each call of a function."""
    scope = source.scopes.of[node]
    return scope.function is not source.scopes.module and node.name not in scope.elsewhere


def instance(function: Function) -> str:
    """What the constructor calls the instance."""
    first = next(iter([*function.args.posonlyargs, *function.args.args]), None)
    return first.arg if first else ""


def parameters(function: Function) -> list[str]:
    """The names of the positional parameters behind `self`."""
    return [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)][1:]


def bound_once(name: str, function: Function, source: Source) -> bool:
    """Whether the parameter `name` keeps the value that it was called with."""
    return [binding.kind for binding in source.scopes.inside[function].bindings.get(name, [])] == [Kind.PARAMETER]
