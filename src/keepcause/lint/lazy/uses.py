"""What the place that reads a name does with the iterator that the name holds; standard library only."""

from __future__ import annotations

import ast
import enum
from typing import TYPE_CHECKING

from keepcause.lint.lazy.occasions import exception_class, logged
from keepcause.lint.lazy.texts import SHOWING
from keepcause.lint.lazy.values import BUILTINS, ITERTOOLS

if TYPE_CHECKING:
    from keepcause.lint.source import Source

RUNS_THROUGH = frozenset(
    f"builtins.{name}" for name in ("list", "tuple", "set", "frozenset", "dict", "sorted", "sum", "min", "max")
)
MAY_STOP = frozenset(("builtins.any", "builtins.all"))
_STEPS = frozenset(("builtins.next", "builtins.anext"))
_STEP_METHODS = ("send", "throw", "close", "__next__", "asend", "athrow", "aclose", "__anext__", "gi_frame")


class Use(enum.Enum):
    """What is done with an iterator at one place."""

    NOTHING = enum.auto()
    """It is compared with None."""
    SHOWN = enum.auto()
    """It is shown as it is."""
    WHOLE = enum.auto()
    """It is run through to its end."""
    SOME = enum.auto()
    """It is run through, perhaps not to its end."""
    STEP = enum.auto()
    """One item is taken from it, which a list does not allow."""
    TRUTH = enum.auto()
    """It is tested for truth, which an empty list answers differently."""
    MEASURED = enum.auto()
    """It is indexed or measured, which only a container allows."""
    OTHER = enum.auto()
    """It is handed on: what happens to it is not known."""


CONSUMING = (Use.WHOLE, Use.SOME, Use.STEP)
QUIET = (Use.NOTHING, Use.SHOWN)


def use_of(node: ast.expr, source: Source) -> Use:
    """What the expression around `node` does with the iterator that `node` holds."""
    up = source.parents[node]
    match up:
        case ast.FormattedValue():
            return Use.SHOWN
        case ast.Expr():
            return Use.NOTHING
        case ast.For(body=body) | ast.AsyncFor(body=body):
            return Use.SOME if any(_leaves(part) for part in body) else Use.WHOLE
        case ast.comprehension(iter=iterated):
            return _of_comprehension(up, source) if iterated is node else Use.TRUTH
        case ast.Call():
            return _of_call(node, up, source)
        case ast.keyword():
            return Use.OTHER
        case ast.Starred() | ast.YieldFrom():
            return Use.WHOLE
        case ast.Compare(left=left, ops=operators, comparators=others):
            return _of_comparison([left, *others], operators, node)
        case ast.Subscript(value=value):
            return Use.MEASURED if value is node else Use.OTHER
        case ast.Attribute(attr=attribute):
            return Use.STEP if attribute in _STEP_METHODS else Use.OTHER
        case ast.Assert(test=test):
            return Use.TRUTH if test is node else Use.SHOWN
        case ast.If() | ast.While() | ast.UnaryOp(op=ast.Not()):
            return Use.TRUTH
        case ast.IfExp(test=test):
            return Use.TRUTH if test is node else use_of(up, source)
        case ast.BoolOp():
            return Use.TRUTH
        case ast.Assign(targets=[ast.Tuple() | ast.List()]):
            return Use.WHOLE
        case ast.BinOp(op=ast.Mod(), right=right):
            return Use.SHOWN if right is node else Use.OTHER
        case ast.Tuple() if isinstance(source.parents[up], ast.BinOp):
            return use_of(up, source)
    return Use.OTHER


def _leaves(statement: ast.stmt) -> bool:
    """Whether a loop with this statement in its body may be left early."""
    return any(isinstance(part, ast.Break | ast.Return | ast.Raise) for part in ast.walk(statement))


def _of_comprehension(clause: ast.comprehension, source: Source) -> Use:
    whole = source.parents[clause]
    assert isinstance(whole, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp)
    if clause is not whole.generators[0]:
        return Use.OTHER  # run through again and again
    return use_of(whole, source) if isinstance(whole, ast.GeneratorExp) else Use.WHOLE


def _of_call(node: ast.expr, call: ast.Call, source: Source) -> Use:
    if call.func is node:
        return Use.OTHER
    reference = source.scopes.qualified(call.func)
    if reference in RUNS_THROUGH:
        return Use.WHOLE
    if reference in MAY_STOP:
        return Use.SOME
    if reference in _STEPS:
        return Use.STEP
    if reference in SHOWING:
        return Use.SHOWN
    if reference == "builtins.len":
        return Use.MEASURED
    if reference == "builtins.bool":
        return Use.TRUTH
    if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Constant | ast.JoinedStr):
        return {"join": Use.WHOLE, "format": Use.SHOWN}.get(call.func.attr, Use.OTHER)
    if node in logged(call, source) or exception_class(call.func, source) is not None:
        return Use.SHOWN
    if reference in BUILTINS | ITERTOOLS and sum(argument is not node for argument in call.args) == len(call.args) - 1:
        inner = use_of(call, source)
        # What ends with its shortest argument may leave items of the others.
        return Use.SOME if inner is Use.WHOLE and len(call.args) > 1 else inner if inner in CONSUMING else Use.OTHER
    return Use.OTHER


def _of_comparison(parts: list[ast.expr], operators: list[ast.cmpop], node: ast.expr) -> Use:
    index = next(i for i, part in enumerate(parts) if part is node)
    if index > 1:
        return Use.OTHER  # it may be left out
    if index == 1 and isinstance(operators[index - 1], ast.In | ast.NotIn):
        return Use.SOME
    against_none = len(parts) == 2 and any(isinstance(part, ast.Constant) and part.value is None for part in parts)
    identity = isinstance(operators[0], ast.Is | ast.IsNot)
    return Use.NOTHING if against_none and identity else Use.OTHER
