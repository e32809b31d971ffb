"""The loops in which a process serves once it has started; standard library only."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from keepcause.lint.syntax import LOOPS, SCOPES, block

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_UNTIL = re.compile(r"(?i)stop|shut_?down|exit|quit|terminat|kill")
_WHILE = re.compile(r"(?i)running")
_STARTED = re.compile(r"(?i)(?<![a-z])(?:ready|start|launch|init|load|connect|regist|alive|healthy|available)")


def served(loop: ast.While, around: ast.AST) -> tuple[int, int] | None:
    """First and last line of where a process serves, in `loop`, or ends: what comes behind one without a `break`.

    None for another loop, such as one that ends with what it tried for. `around` is what the loop stands in.
    """
    ways_out = list(_ways_out(loop.body))
    if isinstance(loop.test, ast.Constant) and loop.test.value:
        serves = not ways_out
    else:
        conditions = loop.test.values if isinstance(loop.test, ast.BoolOp) else [loop.test]
        serves = any(map(_asks_to_go_on, conditions)) and not (
            any(map(_waits_for_start, conditions))
            or any(isinstance(way, ast.Return) and way.value is not None for way in ways_out)
            or any(way in ways_out for way in _always_run(loop.body))
        )
    last = loop if ways_out else block(around, loop)[-1]
    return (loop.lineno, last.end_lineno or 0) if serves else None


def _asks_to_go_on(condition: ast.expr) -> bool:
    return _is_without(_UNTIL, condition) or _WHILE.search(_asked(condition)) is not None


def _waits_for_start(condition: ast.expr) -> bool:
    return _is_without(_STARTED, condition) and not _is_without(_UNTIL, condition)


def _is_without(awaited: re.Pattern[str], condition: ast.expr) -> bool:
    match condition:
        case ast.UnaryOp(op=ast.Not(), operand=asked):
            return awaited.search(_asked(asked)) is not None
    return False


def _asked(node: ast.expr) -> str:
    """The dotted name that is asked, or called without arguments; empty for anything else."""
    if isinstance(node, ast.Call) and not node.args and not node.keywords:
        node = node.func
    root = node
    while isinstance(root, ast.Attribute):
        root = root.value
    return ast.unparse(node) if isinstance(root, ast.Name) else ""


def _ways_out(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Every `break` of the loop with this body, and every `return` in it."""
    pending: list[tuple[ast.AST, bool]] = [(statement, True) for statement in body]
    while pending:
        node, may_break = pending.pop()
        if isinstance(node, ast.Return) or (isinstance(node, ast.Break) and may_break):
            yield node
        if not isinstance(node, SCOPES):
            may_break = may_break and not isinstance(node, LOOPS)
            pending += [(child, may_break) for child in ast.iter_child_nodes(node)]


def _always_run(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run under no other condition than that nothing fails before."""
    for statement in body:
        match statement:
            case ast.Try(body=inner, orelse=last):
                yield from _always_run([*inner, *last])
            case ast.With(body=inner) | ast.AsyncWith(body=inner):
                yield from _always_run(inner)
            case _:
                yield statement
