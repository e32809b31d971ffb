"""What the classes and functions of a file that make an exception do with causes; standard library only."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from keepcause.lint.binding import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.source import Source


def sets_cause(made_by: ast.expr, source: Source) -> bool:
    """Whether the class or function of this file that `made_by` names does something with `__cause__`."""
    return any(
        isinstance(node, ast.Attribute) and node.attr == "__cause__"
        for definition in _definitions(made_by, source)
        for node in ast.walk(definition)
    )


def hands_back(call: ast.Call, name: str | None, source: Source) -> bool:
    """Whether a function of this file, to which `call` gives what `name` holds, may return what it was given."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return any(isinstance(argument, ast.Name) and argument.id == name for argument in given) and any(
        isinstance(node, ast.Return) and _is_parameter(node.value, source)
        for definition in _definitions(call.func, source)
        if not isinstance(definition, ast.ClassDef)
        for node in ast.walk(definition)
    )


def _is_parameter(value: ast.expr | None, source: Source) -> bool:
    return isinstance(value, ast.Name) and any(
        binding.kind is Kind.PARAMETER for binding in source.scopes.lookup(value.id, source.scopes.of[value])
    )


def _definitions(made_by: ast.expr, source: Source) -> Iterator[ast.AST]:
    """The classes and functions of this file that `made_by` may name; `:Worker().fail` is a method."""
    return (
        definition
        for reference in source.scopes.references(made_by)
        for definition in source.scopes.definitions.get(reference.replace("().", "."), ())
    )
