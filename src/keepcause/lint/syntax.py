"""What single nodes of a syntax tree are and hold, without the file around them; standard library only."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef
Node = TypeVar("Node", bound=ast.AST)

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
"""What is in one of these does not run when the code around it does."""
LOOPS = (ast.For, ast.AsyncFor, ast.While)
EXITS = frozenset({"sys.exit", "os._exit", "builtins.exit", "builtins.quit"})
"""What ends a process when it is called."""


def last_name(node: ast.expr) -> str:
    """`c` of `c` or `a.b.c`; empty for anything else."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def maker(raised: ast.expr) -> ast.expr:
    """The class or function that `raised` calls; `raised` itself where it is no call, as it may be a class."""
    return raised.func if isinstance(raised, ast.Call) else raised


def block(around: ast.AST, statement: Node) -> list[Node]:
    """The statements of `around` that `statement` is one of, else `statement` alone."""
    blocks: list[list[Node]] = [getattr(around, field, []) for field in ("body", "orelse", "finalbody")]
    return next((each for each in blocks if statement in each), [statement])


def own_nodes(holder: ast.ExceptHandler | Function, *but: type[ast.AST]) -> Iterator[ast.AST]:
    """What a handler or function itself runs, leaving out what nodes of the types `but` hold."""
    return run_nodes(holder.body, *but)


def run_nodes(statements: Iterable[ast.stmt], *but: type[ast.AST]) -> Iterator[ast.AST]:
    """What the statements themselves run, leaving out what nodes of the types `but` hold."""
    closed = (*SCOPES, *but)
    pending: list[ast.AST] = list(statements)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, closed):
            pending += ast.iter_child_nodes(node)


def yields(function: Function) -> bool:
    """Whether the function makes a generator, if nothing decorates it."""
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in own_nodes(function))


def caught_names(handler: ast.ExceptHandler) -> list[str]:
    """The last names of the types that `handler` catches; one empty name for a bare `except`."""
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return [last_name(kind) if kind is not None else "" for kind in caught]


def is_caught(node: ast.AST, handler: ast.ExceptHandler) -> bool:
    """Whether `node` is the name that `handler` gives what it catches."""
    return isinstance(node, ast.Name) and node.id == handler.name


def short(node: ast.AST) -> str:
    """The expression's source text on one line, cut where it is long."""
    written = " ".join(ast.unparse(node).split())
    return written if len(written) <= 60 else f"{written[:57]}..."
