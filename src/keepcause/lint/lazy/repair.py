"""How a text that shows a lazy iterator is repaired, where it is shown or where it is bound; standard library only."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from keepcause.lint.binding import FunctionNode
from keepcause.lint.finding import Edit, EditKind, Fix, Safety
from keepcause.lint.lazy.events import backward, binds, forward, reads
from keepcause.lint.lazy.lifetime import Life, as_list, is_shared, refused_among, use_at
from keepcause.lint.lazy.listing import listing
from keepcause.lint.lazy.texts import Via
from keepcause.lint.lazy.uses import QUIET
from keepcause.lint.lazy.values import attribute_values, events_of, lazy, values
from keepcause.lint.syntax import short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from keepcause.lint.lazy.events import Event
    from keepcause.lint.lazy.texts import Shown
    from keepcause.lint.lazy.values import Lazy
    from keepcause.lint.source import Source

_JOINED = (Via.CHARACTERS, Via.CONCATENATED)
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.Raise, ast.Assert)


def repair(shown: Shown, value: Lazy, source: Source) -> Fix | str:
    """The fix for a text that shows `value`, or the reason why there is none."""
    if shown.fails:
        return shown.fails
    if shown.kept:
        return f"`{shown.kept}` keeps its arguments"
    effect = listing(value, source)
    if effect.never:
        return effect.never
    if value.is_async and (refusal := _no_async(shown, value, source)):
        return refusal
    match shown.node:
        case ast.Name() as name:
            return _of_name(shown, name, value, effect.doubt, source)
        case ast.Attribute() as attribute:
            return _and_joined(shown, _of_attribute(attribute, value, effect.doubt, source), value, source)
    bound = isinstance(source.parents[shown.node], ast.NamedExpr)
    return _at_site(shown, value, "it gets a name as well" if bound else effect.doubt, source)


def _innermost(node: ast.AST, source: Source) -> ast.AST | None:
    return next((up for up in source.ancestors(node) if isinstance(up, FunctionNode)), None)


def _no_async(shown: Shown, value: Lazy, source: Source) -> str:
    """Why an asynchronous iterator can't be listed here."""
    if not isinstance(_innermost(shown.node, source), ast.AsyncFunctionDef):
        return "only an `async def` can list it"
    if shown.via in _JOINED:
        return "an asynchronous iterator can't be joined"
    kinds = {found.is_async for origin in value.origins if (found := lazy(origin, source))}
    return "it is asynchronous on some paths alone" if len(kinds) > 1 else ""


def _and_joined(shown: Shown, at_binding: Fix | str, value: Lazy, source: Source) -> Fix | str:
    """A fix at the binding, with what the text needs besides where a list would do no better in it."""
    if isinstance(at_binding, str) or shown.via not in _JOINED:
        return at_binding
    at_site = _at_site(shown, value, "", source)
    if isinstance(at_site, str):
        return at_site
    worse = at_site if at_binding.safety is Safety.SAFE else at_binding
    return Fix(worse.safety, at_binding.title, (*at_binding.edits, *at_site.edits))


# Where it is shown


def _at_site(shown: Shown, value: Lazy, doubt: str, source: Source) -> Fix | str:
    way = _way(shown.node, value, source)
    if value.is_async:
        doubt = doubt or "it awaits"
    return list_at_site(shown, way, doubt, source, strings=_gives_strings(value, source))


def _way(node: ast.expr, value: Lazy, source: Source) -> str:
    """How a list is made of `node`, as an Edit names it: a generator expression becomes a list comprehension."""
    if isinstance(node, ast.GeneratorExp):
        return "display"
    if value.is_async:
        return "async"
    return "call" if source.scopes.is_builtin("list", node) else "display"


def list_at_site(shown: Shown, way: str, doubt: str, source: Source, *, strings: bool) -> Fix | str:
    """The fix that lists what is shown in its place; `way` is how, `strings` whether its items are known to be some."""
    statement = source.statement(shown.node)
    if not isinstance(statement, _SIMPLE):
        return "it stands in the header of a compound statement"
    span = source.span(statement)
    if shown.via is Via.CHARACTERS:
        edit = Edit(EditKind.DROP_CALL, span, source.path_to(shown.holder, statement))
        return _fix((edit,), "Join its items", doubt or ("" if strings else "its items may be no strings"))
    if shown.via is Via.CONCATENATED:
        if not (source.scopes.is_builtin("str", shown.node) and source.scopes.is_builtin("map", shown.node)):
            return "`str` or `map` is not the builtin here"
        edit = Edit(EditKind.JOIN, span, source.path_to(shown.node, statement))
        return _fix((edit,), "Join its items", doubt or "the text raised TypeError before")
    if shown.via is Via.FIELD:
        text = "" if way == "call" else way
        edit = Edit(EditKind.LIST_FIELD, span, source.path_to(shown.holder, statement), text)
    else:
        edit = _list(shown.node, statement, way, source)
    return _fix((edit,), "List it where it is shown", doubt)


def _gives_strings(value: Lazy, source: Source) -> bool:
    def is_string(origin: ast.expr) -> bool:
        match origin:
            case ast.GeneratorExp(elt=ast.JoinedStr()):
                return True
            case ast.GeneratorExp(elt=ast.Call(func=func)) | ast.Call(func=ast.Name(id="map"), args=[func, *_]):
                return source.scopes.qualified(func) in ("builtins.str", "builtins.repr")
        return False

    return all(map(is_string, value.origins))


def _list(node: ast.expr, statement: ast.stmt, way: str, source: Source) -> Edit:
    return Edit(EditKind(f"list-{way}"), source.span(statement), source.path_to(node, statement))


def _fix(edits: Sequence[Edit], title: str, doubt: str) -> Fix:
    if doubt:
        return Fix(Safety.UNSAFE, f"{title} (unsafe: {doubt})", tuple(edits))
    return Fix(Safety.SAFE, title, tuple(edits))


# Where it is bound


def _of_name(shown: Shown, name: ast.Name, value: Lazy, doubt: str, source: Source) -> Fix | str:
    flow, events = events_of(name, source)
    if not events:
        return _and_joined(shown, _of_shared_name(name, value, doubt, source), value, source)
    starts = [each for event in events for each in flow.reaching(event, name.id)]
    others = [
        event
        for start in events
        for step in (backward, forward)
        for event in step(start, lambda seen: binds(seen, name.id))
        if reads(event, name.id) and (event in events or use_at(event, source) not in QUIET)
    ]
    if not others and not any(is_shared(each, name, source) for each in starts):
        return _at_site(shown, value, doubt, source)
    return _and_joined(shown, _where_bound(name, value, doubt, starts, source), value, source)


def _of_shared_name(name: ast.Name, value: Lazy, doubt: str, source: Source) -> Fix | str:
    """A variable of a scope around: in which order it is read is not known."""
    bindings = source.scopes.lookup(name.id, source.scopes.of[name])
    reads = [
        other
        for other in source.scopes.of
        if isinstance(other, ast.Name) and other.id == name.id and isinstance(other.ctx, ast.Load)
        if source.scopes.lookup(name.id, source.scopes.of[other]) is bindings
    ]
    return refused_among(reads, source) or _at_bindings(
        name, value, doubt or f"`{name.id}` is shared with other functions", source
    )


def _where_bound(name: ast.Name, value: Lazy, doubt: str, starts: list[Event], source: Source) -> Fix | str:
    between = {event for start in starts for event in forward(start, lambda seen: binds(seen, name.id))}
    uses = [event for event in between if reads(event, name.id)]
    life = Life(tuple(starts), tuple(uses), frozenset(between))
    refusal, more = as_list(life, name, value, source)
    return refusal or _at_bindings(name, value, doubt or more, source)


def _at_bindings(name: ast.Name, value: Lazy, doubt: str, source: Source) -> Fix | str:
    return _list_all([each for each in values(name, source) if each is not None], value, doubt, source)


def _list_all(made: Sequence[ast.expr], value: Lazy, doubt: str, source: Source) -> Fix | str:
    edits = []
    for each in made:
        statement = source.statement(each)
        direct = lazy(each, source)
        if direct is None or isinstance(each, ast.Name | ast.Attribute):
            return f"it comes from `{short(each)}` (line {each.lineno})"
        if not isinstance(statement, _SIMPLE):
            return f"it is bound in the header of a compound statement (line {each.lineno})"
        if value.is_async and not isinstance(_innermost(each, source), ast.AsyncFunctionDef):
            return "only an `async def` can list it"
        edits.append(_list(each, statement, _way(each, value, source), source))
    lines = ", ".join(sorted({str(each.lineno) for each in made}))
    return _fix(edits, f"List it where it is bound, line {lines}", doubt or ("it awaits" if value.is_async else ""))


def _of_attribute(attribute: ast.Attribute, value: Lazy, doubt: str, source: Source) -> Fix | str:
    """An attribute lives on after the error, so its iterator is listed where it is made."""
    reads = [
        other
        for other in source.scopes.of
        if isinstance(other, ast.Attribute) and other.attr == attribute.attr and isinstance(other.ctx, ast.Load)
    ]
    held = [each for each in attribute_values(attribute, source) if each is not None]
    doubt = doubt or f"other code may use `{short(attribute)}`"
    return refused_among(reads, source) or _list_all(held, value, doubt, source)


# What has been consumed


def repair_consumed(node: ast.expr, value: Lazy, source: Source) -> Fix | str:
    """The fix for a text that lists what is left of `node`'s iterator, or the reason why there is none."""
    effect = listing(value, source)
    if effect.never:
        return effect.never
    if isinstance(node, ast.Name):
        flow, events = events_of(node, source)
        starts = [each for event in events for each in flow.reaching(event, node.id)]
        return _where_bound(node, value, effect.doubt, starts, source)
    assert isinstance(node, ast.Attribute)
    return _of_attribute(node, value, effect.doubt, source)


def is_made_here(attribute: ast.Attribute, source: Source) -> bool:
    """Whether the function around `attribute` gives it its value."""
    function = source.function(attribute)
    held = (each for each in attribute_values(attribute, source) if each is not None)
    return any(source.function(each) is function for each in held)
