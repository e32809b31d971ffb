"""What an exception handler shows by itself, without the file around it; standard library only."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from keepcause.lint.syntax import SCOPES, last_name

if TYPE_CHECKING:
    from collections.abc import Iterator


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
