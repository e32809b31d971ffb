"""Which expressions hold a lazy iterator, by form, last bindings and this file's functions; standard library only."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from keepcause.lint.binding import ComprehensionNode, Kind
from keepcause.lint.lazy import sources
from keepcause.lint.lazy.flow import Flow
from keepcause.lint.source import asked_once
from keepcause.lint.syntax import Function, last_name, own_nodes, yields
from keepcause.lint.unparsed.logical import normalized

if TYPE_CHECKING:
    from collections.abc import Iterable

    from keepcause.lint.binding import Binding, Scope
    from keepcause.lint.lazy.events import Event
    from keepcause.lint.source import Source

BUILTINS = frozenset(f"builtins.{name}" for name in sources.BUILTINS)
ITERTOOLS = frozenset(f"itertools.{name}" for name in sources.ITERTOOLS)
_OTHERS = frozenset(sources.OTHERS)
_PLAIN_DECORATORS = frozenset(("builtins.staticmethod", "builtins.classmethod"))
_GENERATOR = "<generator object ...>"
_ASYNC_GENERATOR = "<async_generator object ...>"
_SOME_ITERATOR = "<... iterator object ...>"


@dataclass(frozen=True, eq=False)
class Lazy:
    """A lazy iterator: what it is in words, what it prints as, and the expressions that make it, one for each path."""

    what: str
    prints: str
    origins: tuple[ast.expr, ...]
    is_async: bool = False


def lazy(node: ast.expr, source: Source, seen: frozenset[ast.AST] = frozenset()) -> Lazy | None:
    """The lazy iterator that `node` certainly holds, whatever path leads here; None where that is not certain."""
    if node in seen:
        return None
    seen |= {node}
    match node:
        case ast.GeneratorExp():
            if _is_async(node):
                return Lazy("an asynchronous generator expression", _ASYNC_GENERATOR, (node,), is_async=True)
            return Lazy("a generator expression", _GENERATOR, (node,))
        case ast.Call():
            return _made_by_call(node, source, seen)
        case ast.Name(ctx=ast.Load()):
            bindings = source.scopes.lookup(node.id, source.scopes.of[node])
            if any(lazy(value, source, seen) for value in map(given, bindings) if value is not None):
                return _agreed(values(node, source), source, seen)
        case ast.Attribute(ctx=ast.Load()):
            return _agreed(attribute_values(node, source), source, seen)
        case ast.IfExp(body=body, orelse=orelse):
            return _agreed((body, orelse), source, seen)
        case ast.NamedExpr(value=value):
            return lazy(value, source, seen)
    return None


def _agreed(values: Iterable[ast.expr | None], source: Source, seen: frozenset[ast.AST]) -> Lazy | None:
    """All of `values` as one lazy iterator, if there are any and all are lazy."""
    all_of_them = []
    for value in values:
        found = lazy(value, source, seen) if value is not None else None
        if found is None:
            return None
        all_of_them.append(found)
    if not all_of_them:
        return None
    origins = tuple(dict.fromkeys(origin for each in all_of_them for origin in each.origins))
    return replace(all_of_them[0], origins=origins, is_async=any(each.is_async for each in all_of_them))


def _is_async(node: ast.GeneratorExp) -> bool:
    first, *others = node.generators
    inside: list[ast.AST] = [node.elt, *first.ifs, *others]
    return any(clause.is_async for clause in node.generators) or any(
        isinstance(part, ast.Await) for top in inside for part in ast.walk(top)
    )


def _made_by_call(node: ast.Call, source: Source, seen: frozenset[ast.AST]) -> Lazy | None:
    reference = source.scopes.qualified(node.func)
    if reference is None or not _means_that_alone(node.func, reference, source):
        return None
    if reference in BUILTINS | ITERTOOLS | _OTHERS and not is_called_by_name(node.func, reference):
        return None
    if reference in BUILTINS:
        name = reference.removeprefix("builtins.")
        article = "an" if name[0] in "aei" else "a"
        own = name not in ("iter", "reversed")  # what these two give has a type that depends on their argument
        return Lazy(f"{article} `{name}`", f"<{name} object ...>" if own else _SOME_ITERATOR, (node,))
    if reference in ITERTOOLS:
        name = reference.removeprefix("itertools.")
        return Lazy(f"an `itertools.{name}`", f"<itertools.{name.partition('.')[0]} object ...>", (node,))
    if reference in _OTHERS:
        return Lazy(f"the iterator of `{reference}`", _SOME_ITERATOR, (node,))
    functions = called_functions(reference, source)
    if not functions and not reference.startswith(":"):
        return _made_elsewhere(node, reference, source)
    kinds = [_result(function, source, seen) for function in functions]
    if not kinds or any(kind is None for kind in kinds):
        return None
    assert kinds[0] is not None
    return replace(kinds[0], origins=(node,))


def _made_elsewhere(node: ast.Call, reference: str, source: Source) -> Lazy | None:
    """What the imported function `reference` gives, where that is a lazy iterator."""
    kind = source.elsewhere(reference)
    if not kind:
        return None
    is_async = kind == "asynchronous generator"
    prints = _ASYNC_GENERATOR if is_async else _GENERATOR
    what = kind if is_async else "generator function"
    return Lazy(f"what the {what} `{reference.rpartition('.')[2]}` gives", prints, (node,), is_async)


def is_called_by_name(function: ast.expr, reference: str) -> bool:
    """Whether `function`, which means `reference`, is written with its own name: others are not looked for."""
    return last_name(function) == reference.rpartition(".")[2]


def _means_that_alone(function: ast.expr, reference: str, source: Source) -> bool:
    """Whether a name that means one thing is called: only imports and definitions bind it.

    Not looked for are a name that an assignment gives to a function, the result of a call, and a name that stands apart
    from its parenthesis anywhere in the file.
    """
    if not isinstance(function, ast.Name | ast.Attribute) or _stands_apart(last_name(function), source):
        return False
    root: ast.expr = function
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name) or (root is not function and reference.startswith(":")):
        return True
    bindings = source.scopes.lookup(root.id, source.scopes.of[root])
    return all(binding.kind in (Kind.IMPORT, Kind.DEFINITION) for binding in bindings)


def _stands_apart(name: str, source: Source) -> bool:
    """Whether more than a blank stands between `name` and a parenthesis behind it."""
    plain = _plain(source)
    word = re.escape(name.encode())
    # The word itself comes first: a search for a literal is quick.
    apart = rb"%s(?<![\w\x80-\xff]%s)(?! ?\()(?:[\s\\)]|#[^\r\n]*+)++\(" % (word, word)
    return plain is not None and re.search(apart, plain) is not None


@asked_once
def _plain(source: Source) -> bytes | None:
    return normalized(source.data)


# Functions of this file


def called_functions(reference: str, source: Source) -> list[Function]:
    """The functions of this file that a call of `reference` may run; empty where one of them is unknown."""
    known = source.scopes.definitions
    found = known.get(reference.replace("().", "."), [])
    if found and "()." in reference:  # a subclass may have a method of its own
        method = "." + reference.rpartition(".")[2]
        found = [each for means, several in known.items() if means.endswith(method) for each in several]
    functions = [each for each in found if isinstance(each, Function)]
    return functions if len(functions) == len(found) else []


def _result(function: Function, source: Source, seen: frozenset[ast.AST]) -> Lazy | None:
    """What calling `function` gives, where that is a lazy iterator; a constructor, which has to give None, is none."""
    if function.name == "__init__":
        return None
    if any(source.scopes.qualified(decorator) not in _PLAIN_DECORATORS for decorator in function.decorator_list):
        return None
    if yields(function):
        if isinstance(function, ast.AsyncFunctionDef):
            return Lazy(f"what the asynchronous generator `{function.name}` gives", _ASYNC_GENERATOR, (), is_async=True)
        return Lazy(f"what the generator function `{function.name}` gives", _GENERATOR, ())
    returns = [node.value for node in reversed(list(own_nodes(function))) if isinstance(node, ast.Return)]
    if isinstance(function, ast.AsyncFunctionDef) or not returns or function in seen:
        return None
    if not all(value is not None and _may_be_lazy(value) for value in returns):
        return None
    found = _agreed(returns, source, seen | {function})
    if found is None or _flow(source, source.scopes.inside[function]).falls_through:
        return None
    return replace(found, what=f"{found.what} that `{function.name}` returns")


def _may_be_lazy(value: ast.expr) -> bool:
    return isinstance(value, ast.GeneratorExp | ast.Call | ast.Name | ast.Attribute | ast.IfExp)


# Names and attributes


def home(name: ast.Name, source: Source) -> Scope | None:
    """The scope whose variable `name` is; None for builtins and unknown names."""
    bindings = source.scopes.lookup(name.id, source.scopes.of[name])
    scope: Scope | None = source.scopes.of[name]
    while bindings and scope is not None:
        if scope.bindings.get(name.id) is bindings:
            return scope
        scope = scope.parent
    return source.scopes.module if bindings else None


def events_of(name: ast.Name, source: Source) -> tuple[Flow, list[Event]]:
    """The events in which `name` is read by the very body that binds it; none where it is read by a nested function."""
    scope = home(name, source)
    inner = source.scopes.of[name]
    while inner is not scope and inner.parent is not None and isinstance(inner.node, ComprehensionNode):
        inner = inner.parent
    flow = _flow(source, inner)
    return flow, flow.events.get(name, []) if inner is scope else []


@asked_once
def _flow(source: Source, scope: Scope) -> Flow:
    """The flow of a module's, class's or function's own body."""
    return Flow(scope, source.scopes)


def is_read_once(name: ast.Name, source: Source) -> bool:
    """Whether the very body that binds `name` reads it here, neither an inner function nor a comprehension's turns."""
    return source.scopes.of[name] is home(name, source)


def values(name: ast.Name, source: Source) -> list[ast.expr | None]:
    """What `name` may have been given last, None for what is not known; empty where nothing is known at all."""
    return [given(binding) for binding in last_bindings(name, source)]


def given(binding: Binding) -> ast.expr | None:
    """What an assignment gives its name as a whole; None for other bindings."""
    return binding.value if binding.kind is Kind.ASSIGNMENT else None


def last_bindings(name: ast.Name, source: Source) -> list[Binding]:
    """The bindings that `name` may have got its value from; deletions are left out, since reading after one raises."""
    bindings = source.scopes.lookup(name.id, source.scopes.of[name])
    if not bindings or all(given(binding) is None for binding in bindings):
        return bindings
    flow, events = events_of(name, source)
    own = all(
        binding.kind is Kind.PARAMETER or source.scopes.of.get(binding.node) is flow.scope for binding in bindings
    )
    if events and own:
        reached = {each.node for event in events for each in flow.reaching(event, name.id)}
        bindings = [binding for binding in bindings if binding.node in reached]
    return [binding for binding in bindings if binding.kind is not Kind.DELETION]


def attribute_values(node: ast.Attribute, source: Source) -> list[ast.expr | None]:
    """What `self.x` may hold: all that this file gives it; None for what is not known."""
    owner = source.scopes.qualified(node.value) if isinstance(node.value, ast.Name) else None
    if owner is None or not owner.startswith(":") or not owner.endswith("()"):
        return []
    found: list[ast.expr | None] = []
    for store in _attribute_stores(source).get(node.attr, []):
        same = source.scopes.qualified(store.value) == owner
        found.append(_assigned(store, source) if same else None)
    for definition in source.scopes.definitions.get(owner.removesuffix("()"), []):
        for binding in source.scopes.inside[definition].bindings.get(node.attr, []):
            up = source.parents.get(binding.node)
            if isinstance(up, ast.AnnAssign):  # a default, where a decorator or a base makes fields of annotations
                found += [None] if up.value is not None else []
            else:
                found.append(given(binding))
    return found


@asked_once
def _attribute_stores(source: Source) -> dict[str, list[ast.Attribute]]:
    """Every place of the file that sets or deletes an attribute, by its name."""
    found: dict[str, list[ast.Attribute]] = {}
    for node in source.scopes.of:
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            found.setdefault(node.attr, []).append(node)
    return found


def _assigned(target: ast.Attribute, source: Source) -> ast.expr | None:
    match source.parents[target]:
        case ast.Assign(targets=targets, value=value) if target in targets:
            return value
        case ast.AnnAssign(value=value):
            return value
    return None
