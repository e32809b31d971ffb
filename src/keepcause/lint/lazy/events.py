"""The steps of a scope's evaluation, and searches along its paths; standard library only."""

from __future__ import annotations

import ast
import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class What(enum.Enum):
    """What happens at an event."""

    BIND = enum.auto()
    """`node` binds or deletes a variable of the scope."""
    USE = enum.auto()
    """`node`, a name, reads a variable of the scope."""
    TURN = enum.auto()
    """`node`, a loop or comprehension, takes its next item."""
    ACT = enum.auto()
    """`node` does something else that may raise."""


@dataclass(eq=False, slots=True)
class Event:
    """One step of a scope's evaluation, with the events that may come next and before."""

    what: What
    node: ast.AST
    after: list[Event] = field(default_factory=list)
    before: list[Event] = field(default_factory=list)


def backward(start: Event, stop: Callable[[Event], bool]) -> Iterator[Event]:
    """The events that may come before `start`, back to and with those where `stop` is true."""
    return _search(start, stop, lambda event: event.before)


def forward(start: Event, stop: Callable[[Event], bool]) -> Iterator[Event]:
    """The events that may come after `start`, up to and with those where `stop` is true."""
    return _search(start, stop, lambda event: event.after)


def _search(start: Event, stop: Callable[[Event], bool], step: Callable[[Event], list[Event]]) -> Iterator[Event]:
    seen = set()
    pending = list(step(start))
    while pending:
        event = pending.pop()
        if event in seen:
            continue
        seen.add(event)
        yield event
        if not stop(event):
            pending += step(event)


def bound_name(node: ast.AST) -> str:
    """The name that a binding's node binds."""
    match node:
        case ast.Name(id=name) | ast.arg(arg=name) | ast.MatchMapping(rest=str(name)):
            return name
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.ExceptHandler(name=str()):
            return str(node.name)
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return name
    return ""


def binds(event: Event, name: str) -> bool:
    """Whether `event` binds or deletes the variable `name`."""
    if event.what is not What.BIND:
        return False
    if isinstance(event.node, ast.Import | ast.ImportFrom):
        return any((alias.asname or alias.name.partition(".")[0]) == name for alias in event.node.names)
    return bound_name(event.node) == name


def reads(event: Event, name: str) -> bool:
    """Whether `event` reads the variable `name`."""
    return event.what is What.USE and isinstance(event.node, ast.Name) and event.node.id == name
