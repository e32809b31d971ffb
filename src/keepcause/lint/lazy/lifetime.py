"""What happens to an iterator while a name holds it, and what would change if it were a list; standard library only."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepcause.lint.lazy.containers import is_container
from keepcause.lint.lazy.events import What, backward, binds, forward, reads
from keepcause.lint.lazy.occasions import exception_class, logged
from keepcause.lint.lazy.texts import is_text
from keepcause.lint.lazy.uses import CONSUMING, MAY_STOP, RUNS_THROUGH, Use, use_of
from keepcause.lint.lazy.values import events_of, given, is_read_once
from keepcause.lint.syntax import short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from keepcause.lint.lazy.events import Event
    from keepcause.lint.lazy.values import Lazy
    from keepcause.lint.source import Source

_QUIET_CALLS = frozenset(
    f"builtins.{name}"
    for name in ("len", "str", "repr", "isinstance", "type", "bool", "range", "enumerate", "zip", "map")
)


@dataclass(frozen=True)
class Life:
    """What happens to a variable's iterator from its bindings to their ends."""

    starts: tuple[Event, ...]
    uses: tuple[Event, ...]
    steps: frozenset[Event]
    """All events between a binding and the next."""


def use_at(event: Event, source: Source) -> Use:
    """What is done at `event`, which reads a variable; unknown where an inner function or comprehension does."""
    assert isinstance(event.node, ast.Name)
    return use_of(event.node, source) if is_read_once(event.node, source) else Use.OTHER


def is_shared(start: Event, name: ast.Name, source: Source) -> bool:
    """Whether what is bound here goes elsewhere too, or comes from elsewhere."""
    bindings = source.scopes.lookup(name.id, source.scopes.of[name])
    value = next((given(binding) for binding in bindings if binding.node is start.node), None)
    if value is None or _is_borrowed(value):
        return True
    up = source.parents[start.node]
    if isinstance(up, ast.Tuple | ast.List):
        up = source.parents[up]
    return not (isinstance(up, ast.AnnAssign) or (isinstance(up, ast.Assign) and len(up.targets) == 1))


def _is_borrowed(value: ast.expr) -> bool:
    if isinstance(value, ast.IfExp):
        return _is_borrowed(value.body) or _is_borrowed(value.orelse)
    return isinstance(value, ast.Name | ast.Attribute | ast.NamedExpr)


def as_list(life: Life, name: ast.Name, value: Lazy, source: Source) -> tuple[str, str]:
    """Why `name` must not hold a list instead, and why the program might notice if it did."""
    doubts = []
    consuming = []
    for event in sorted(life.uses, key=_place):
        use = use_at(event, source)
        line = _line(event)
        assert isinstance(event.node, ast.Name)
        if refusal := _refused(event.node, use):
            return refusal, ""
        if use in CONSUMING:
            consuming.append(event)
        elif use is Use.SHOWN and not _is_in_a_text(event.node, source):
            doubts.append(f"`{name.id}` is shown on line {line} too")
        elif use is Use.OTHER and event.node is not name:
            doubts.append(f"`{name.id}` is handed on (line {line})")
    if any(_comes_again(event, consuming, name.id) for event in consuming):
        doubts.append(f"`{name.id}` is run through more than once")
    if any(is_shared(start, name, source) for start in life.starts):
        doubts.append(f"`{name.id}` is not the only one to hold it")
    return "", next(iter(doubts), "") or _too_early(life, value, name.id, source)


def refused_among(nodes: Sequence[ast.expr], source: Source) -> str:
    """Why what is done at `nodes` does not allow a list; empty where it does."""
    return next((refusal for node in nodes if (refusal := _refused(node, use_of(node, source)))), "")


def _refused(node: ast.expr, use: Use) -> str:
    """Why what is done at `node` does not allow a list."""
    if use is Use.STEP:
        return f"single items are taken from `{short(node)}` (line {node.lineno}), and a list does not allow that"
    if use is Use.TRUTH:
        return f"`{short(node)}` is tested for truth (line {node.lineno}), and an empty list is false"
    return ""


def _is_in_a_text(node: ast.AST, source: Source) -> bool:
    """Whether what is shown here is a part of an error or log text written in place."""
    for up in source.ancestors(node):
        if isinstance(up, ast.Raise | ast.Assert):
            return True
        if isinstance(up, ast.Call) and (exception_class(up.func, source) is not None or logged(up, source)):
            return True
        if isinstance(up, ast.stmt):
            break
    return False


def _comes_again(event: Event, consuming: list[Event], name: str) -> bool:
    return any(later in consuming for later in forward(event, lambda seen: binds(seen, name)))


def _line(event: Event) -> int:
    return getattr(event.node, "lineno", 0)


def _place(event: Event) -> tuple[int, int, int]:
    """What sorts events as they stand in the text, those of one node by their kind."""
    return _line(event), getattr(event.node, "col_offset", 0), event.what.value


def _too_early(life: Life, value: Lazy, name: str, source: Source) -> str:
    """Why items computed at the binding might differ from items computed later."""
    read = {part.id for origin in value.origins for part in ast.walk(origin) if isinstance(part, ast.Name)}
    last = [*life.uses, *(event for event in life.steps if event.what is What.TURN and _runs_through(event, name))]
    leading = {event for end in last for event in backward(end, lambda seen: binds(seen, name))}
    for event in sorted(life.steps & (leading | set(last)), key=_place):
        if event.what is What.BIND and any(binds(event, each) for each in read):
            return f"line {_line(event)} binds anew what it reads"
        if _may_change(event, name, source):
            return f"its items would be computed before line {_line(event)} has run"
    return ""


def _runs_through(event: Event, name: str) -> bool:
    iterated = _iterated(event.node)
    return iterated is not None and _mentions(iterated, name)


def _mentions(node: ast.expr, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))


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
        return not (_mentions(iterated, name) or is_container(iterated, source))
    match event.node:
        case ast.Call(func=func, args=arguments, keywords=keywords) as call:
            reference = source.scopes.qualified(func)
            if reference in RUNS_THROUGH | MAY_STOP:
                return bool(keywords) or not all(
                    _mentions(each, name) or is_container(each, source) for each in arguments
                )
            known = reference in _QUIET_CALLS or exception_class(func, source) is not None
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
        use = use_at(event, source)
        return use in counting and not (use is Use.STEP and _result_name(event.node, source) in shown)

    def ends(event: Event) -> bool:
        return binds(event, name.id) or takes(event)

    reached = [each for event in events for each in backward(event, ends) if ends(each)]
    if not reached or not all(map(takes, reached)):
        return None
    first = min(reached, key=_place).node
    assert isinstance(first, ast.Name)
    return first


def _result_name(node: ast.AST, source: Source) -> str:
    """The name that the item taken by the call around `node` is bound to."""
    match source.parents[source.parents[node]]:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.NamedExpr(target=ast.Name(id=name)):
            return name
    return ""
