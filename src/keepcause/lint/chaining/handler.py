"""What an exception handler shows by itself, without the file around it; standard library only."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
"""What is in one of these does not run when the code around it does."""


def inside(handler: ast.ExceptHandler, *but: type[ast.AST]) -> Iterator[ast.AST]:
    """What `handler` itself runs, leaving out what nodes of the types `but` hold."""
    pending: list[ast.AST] = list(handler.body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (*SCOPES, *but)):
            pending += ast.iter_child_nodes(node)


def caught_names(handler: ast.ExceptHandler) -> list[str]:
    """The last names of the types that `handler` catches; one empty name for a bare `except`."""
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return [last_name(kind) if kind is not None else "" for kind in caught]


def last_name(node: ast.expr) -> str:
    """`c` of `c` or `a.b.c`; empty for anything else."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def maker(raised: ast.expr) -> ast.expr:
    """The class or function that `raised` calls; `raised` itself where it is no call, as it may be a class."""
    return raised.func if isinstance(raised, ast.Call) else raised
