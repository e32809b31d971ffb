"""What single nodes of a syntax tree are and hold, without the file around them; standard library only."""

from __future__ import annotations

import ast
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
"""What is in one of these does not run when the code around it does."""


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


def short(node: ast.AST) -> str:
    """The expression's source text on one line, cut where it is long."""
    written = " ".join(ast.unparse(node).split())
    return written if len(written) <= 60 else f"{written[:57]}..."
