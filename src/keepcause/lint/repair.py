"""How a text that shows a lazy iterator is repaired, where it is shown or where it is bound; standard library only."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepcause.lint.events import What, backward, binds, forward, reads
from keepcause.lint.finding import Edit, EditKind, Fix, Safety
from keepcause.lint.lazy import attribute_values, events_of, is_read_once, lazy, short, values
from keepcause.lint.listing import is_container, listing
from keepcause.lint.occasions import exception_class, logged
from keepcause.lint.texts import Via, is_text
from keepcause.lint.uses import CONSUMING, Use, use_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from keepcause.lint.events import Event
    from keepcause.lint.lazy import Lazy
    from keepcause.lint.source import Source
    from keepcause.lint.texts import Shown

_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return, ast.Raise, ast.Assert, ast.Delete)
_QUIET_CALLS = frozenset(
    "builtins." + name
    for name in (
        *(
            "any",
            "all",
            "len",
            "str",
            "repr",
            "list",
            "tuple",
            "set",
            "frozenset",
            "dict",
            "sorted",
            "sum",
            "isinstance",
        ),
        *("type", "bool", "min", "max", "range", "enumerate", "zip", "map", "filter", "reversed", "iter", "next"),
    )
)


def repair(shown: Shown, value: Lazy, source: Source) -> Fix | str:
    """The fix for a text that shows `value`, or the reason why there is none."""
    if shown.fails:
        return shown.fails
    if shown.kept:
        return f"`{shown.kept}` keeps its arguments"
    effect = listing(value, source)
    if effect.never:
        return effect.never
    if value.is_async and not isinstance(_innermost(shown.node, source), ast.AsyncFunctionDef):
        return "only an `async def` can list it"
    match shown.node:
        case ast.Name() as name:
            return _of_name(shown, name, value, effect.doubt, source)
        case ast.Attribute() as attribute:
            return _of_attribute(attribute, value, effect.doubt, source)
    bound = isinstance(source.parents[shown.node], ast.NamedExpr)
    return _at_site(shown, value, "it gets a name as well" if bound else effect.doubt, source)


def _innermost(node: ast.AST, source: Source) -> ast.AST | None:
    functions = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    return next((up for up in source.ancestors(node) if isinstance(up, functions)), None)


# Where it is shown


def _at_site(shown: Shown, value: Lazy, doubt: str, source: Source) -> Fix | str:
    way = _way(shown.node, value, source)
    if value.is_async:
        doubt = doubt or "it awaits"
    return list_at_site(shown, way, doubt, source, strings=_gives_strings(value, source))


def _way(node: ast.expr, value: Lazy, source: Source) -> str:
    """How a list is made of `node`, as an Edit names it."""
    if value.is_async:
        return "display" if isinstance(node, ast.GeneratorExp) else "async"
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


@dataclass(frozen=True)
class _Life:
    """What happens to a variable's iterator from its bindings to their ends."""

    starts: tuple[Event, ...]
    uses: tuple[Event, ...]
    steps: frozenset[Event]
    """All events between a binding and the next."""


def _of_name(shown: Shown, name: ast.Name, value: Lazy, doubt: str, source: Source) -> Fix | str:
    flow, events = events_of(name, source)
    if not events:
        return _at_bindings(name, value, doubt or f"`{name.id}` is shared with other functions", source)
    starts = [each for event in events for each in flow.reaching(event, name.id)]
    others = [
        event
        for start in events
        for step in (backward, forward)
        for event in step(start, lambda seen: binds(seen, name.id))
        if reads(event, name.id) and (event in events or _use(event, source) is not Use.NOTHING)
    ]
    if not others and not any(_is_shared(each.node, source) for each in starts):
        return _at_site(shown, value, doubt, source)
    return _where_bound(name, value, doubt, starts, source)


def _where_bound(name: ast.Name, value: Lazy, doubt: str, starts: list[Event], source: Source) -> Fix | str:
    between = {event for start in starts for event in forward(start, lambda seen: binds(seen, name.id))}
    uses = [event for event in between if reads(event, name.id)]
    life = _Life(tuple(starts), tuple(uses), frozenset(between))
    refusal, more = _as_list(life, name, value, source)
    return refusal or _at_bindings(name, value, doubt or more, source)


def _use(event: Event, source: Source) -> Use:
    assert isinstance(event.node, ast.Name)
    return use_of(event.node, source) if is_read_once(event.node, source) else Use.OTHER


def _is_shared(node: ast.AST, source: Source) -> bool:
    """Whether what is bound here goes elsewhere too, or comes from elsewhere."""
    match source.parents.get(node):
        case ast.Assign(targets=[_], value=value) | ast.AnnAssign(value=ast.expr() as value):
            return isinstance(value, ast.Name | ast.Attribute | ast.NamedExpr)
        case ast.Tuple() | ast.List() as pack:
            up = source.parents[pack]
            return not (isinstance(up, ast.Assign) and len(up.targets) == 1)
    return True


def _as_list(life: _Life, name: ast.Name, value: Lazy, source: Source) -> tuple[str, str]:
    """Why `name` must not hold a list instead, and why the program might notice if it did."""
    doubts = []
    consuming = []
    for event in sorted(life.uses, key=_line):
        use = _use(event, source)
        line = _line(event)
        if use is Use.STEP:
            return f"single items are taken from `{name.id}` (line {line}), and a list does not allow that", ""
        if use is Use.TRUTH:
            return f"`{name.id}` is tested for truth (line {line}), and an empty list is false", ""
        if use in CONSUMING:
            consuming.append(event)
        elif use is not Use.NOTHING and event.node is not name:
            doubts.append(f"`{name.id}` is handed on (line {line})")
    if any(_comes_again(event, consuming, name.id) for event in consuming):
        doubts.append(f"`{name.id}` is run through more than once")
    if any(_is_shared(start.node, source) for start in life.starts):
        doubts.append(f"`{name.id}` is not the only one to hold it")
    return "", next(iter(doubts), "") or _too_early(life, value, name.id, source)


def _line(event: Event) -> int:
    return getattr(event.node, "lineno", 0)


def _comes_again(event: Event, consuming: list[Event], name: str) -> bool:
    return any(later in consuming for later in forward(event, lambda seen: binds(seen, name)))


def _too_early(life: _Life, value: Lazy, name: str, source: Source) -> str:
    """Why items computed at the binding might differ from items computed later."""
    read = {part.id for origin in value.origins for part in ast.walk(origin) if isinstance(part, ast.Name)}
    last = [*life.uses, *(event for event in life.steps if event.what is What.TURN and _runs_through(event, name))]
    leading = {event for end in last for event in backward(end, lambda seen: binds(seen, name))}
    for event in sorted(life.steps & (leading | set(last)), key=_line):
        if event.what is What.BIND and any(binds(event, each) for each in read):
            return f"line {_line(event)} binds anew what it reads"
        if _may_change(event, name, source):
            return f"its items would be computed before line {_line(event)} has run"
    return ""


def _runs_through(event: Event, name: str) -> bool:
    iterated = _iterated(event.node)
    return iterated is not None and any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(iterated))


def _iterated(node: ast.AST) -> ast.expr | None:
    """What a loop or comprehension runs through."""
    match node:
        case ast.For(iter=iterated) | ast.AsyncFor(iter=iterated):
            return iterated
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return node.generators[0].iter
    return None


def _may_change(event: Event, name: str, source: Source) -> bool:
    """Whether this event may run other code or change a container."""
    iterated = _iterated(event.node)
    if iterated is not None:
        return not _runs_through(event, name) and not is_container(iterated, source)
    match event.node:
        case ast.Call(func=func) as call:
            known = source.scopes.qualified(func) in _QUIET_CALLS or exception_class(func, source) is not None
            return not (known or logged(call, source) or is_text(call, source))
        case ast.BinOp():
            return not is_text(event.node, source)
        case ast.Attribute(ctx=context) | ast.Subscript(ctx=context):
            return not isinstance(context, ast.Load)
        case (
            ast.AsyncFor()
            | ast.Await()
            | ast.Yield()
            | ast.YieldFrom()
            | ast.withitem()
            | ast.Import()
            | ast.ImportFrom()
        ):
            return True
    return False


def _at_bindings(name: ast.Name, value: Lazy, doubt: str, source: Source) -> Fix | str:
    return _list_all([each for each in values(name, source) if each is not None], value, doubt, source)


def _list_all(given: Sequence[ast.expr], value: Lazy, doubt: str, source: Source) -> Fix | str:
    edits = []
    for each in given:
        statement = source.statement(each)
        direct = lazy(each, source)
        if direct is None or isinstance(each, ast.Name | ast.Attribute):
            return f"it comes from `{short(each)}` (line {each.lineno})"
        if not isinstance(statement, _SIMPLE):
            return f"it is bound in the header of a compound statement (line {each.lineno})"
        if value.is_async and not isinstance(_innermost(each, source), ast.AsyncFunctionDef):
            return "only an `async def` can list it"
        edits.append(_list(each, statement, _way(each, value, source), source))
    lines = ", ".join(sorted({str(each.lineno) for each in given}))
    return _fix(edits, f"List it where it is bound, line {lines}", doubt or ("it awaits" if value.is_async else ""))


def _of_attribute(attribute: ast.Attribute, value: Lazy, doubt: str, source: Source) -> Fix | str:
    """An attribute lives on after the error, so its iterator is listed where it is made."""
    for other in source.scopes.of:
        if isinstance(other, ast.Attribute) and other.attr == attribute.attr and isinstance(other.ctx, ast.Load):
            use = use_of(other, source)
            if use in (Use.STEP, Use.TRUTH):
                return f"`{short(other)}` is used in a way that a list does not allow (line {other.lineno})"
    given = [each for each in attribute_values(attribute, source) if each is not None]
    return _list_all(given, value, doubt or f"other code may use `{short(attribute)}`", source)


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
    given = (each for each in attribute_values(attribute, source) if each is not None)
    return any(source.function(each) is function for each in given)


def taker_before(name: ast.Name, value: Lazy, source: Source) -> ast.Name | None:
    """The first place that certainly took items from `name`'s iterator before this; None where none is certain.

    Where the program made the iterator with `iter`, taking items one by one is what it is for: only a run to its end
    counts. An item that the statement around `name` shows beside the rest is not lost.
    """
    _, events = events_of(name, source)
    by_hand = any(
        isinstance(origin, ast.Call) and source.scopes.qualified(origin.func) == "builtins.iter"
        for origin in value.origins
    )
    counting = (Use.WHOLE,) if by_hand else CONSUMING

    shown = {part.id for part in ast.walk(source.statement(name)) if isinstance(part, ast.Name)}

    def takes(event: Event) -> bool:
        if not reads(event, name.id) or event.node is name:
            return False
        use = _use(event, source)
        return use in counting and not (use is Use.STEP and _result_name(event.node, source) in shown)

    def ends(event: Event) -> bool:
        return binds(event, name.id) or takes(event)

    reached = [each for event in events for each in backward(event, ends) if ends(each)]
    if not reached or not all(map(takes, reached)):
        return None
    first = min(reached, key=_line).node
    assert isinstance(first, ast.Name)
    return first


def _result_name(node: ast.AST, source: Source) -> str:
    """The name that the item taken by the call around `node` is bound to."""
    match source.parents[source.parents[node]]:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.NamedExpr(target=ast.Name(id=name)):
            return name
    return ""
