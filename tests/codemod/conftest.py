"""Means to ask for edits by hand and to have them made as `keepcause fix` makes them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeAlias

import pytest

from keepcause.codemod.apply import Repair, repair
from keepcause.lint.chaining import cause
from keepcause.lint.finding import Edit, EditKind, Finding, Fix, Safety
from keepcause.lint.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

Ask: TypeAlias = tuple[EditKind, int | str, str] | tuple[EditKind, int | str]
"""What to do, where (the n-th raise or handler of the file, or the text of an expression), and the edit's text."""


@pytest.fixture
def edits() -> Callable[..., tuple[Edit, ...]]:
    """Edits of a source, as a rule would ask for them."""
    return _edits


@pytest.fixture
def edited() -> Callable[..., str]:
    """The text after all edits that are asked for; they have to succeed."""

    def edited(code: str, *asks: Ask) -> str:
        result = _repaired(code, asks)
        assert len(result.applied) == 1, (*result.left, *result.failed)
        return result.data.decode()

    return edited


@pytest.fixture
def refused() -> Callable[..., str]:
    """The reason why the edits that are asked for were not made; they have to leave every byte alone."""

    def refused(code: str, *asks: Ask) -> str:
        result = _repaired(code, asks)
        assert result.data == code.encode()
        (left,) = (*result.left, *result.failed)
        return left.reason

    return refused


@pytest.fixture
def lint() -> Callable[[bytes], list[Finding]]:
    """A small linter with real fixes: each `from None` in a handler, each `lazy...` in a raise."""

    def lint(data: bytes) -> list[Finding]:
        source = Source(data)
        raises = [node for node in ast.walk(source.tree) if isinstance(node, ast.Raise)]
        return [finding for node in raises for finding in (*_hidden_causes(source, node), *_lazy_names(source, node))]

    return lint


def _repaired(code: str, asks: tuple[Ask, ...]) -> Repair:
    source = Source(code.encode())
    edits = _edits(source, *asks)
    fix = Fix(Safety.SAFE, "As the test asks", edits)
    finding = Finding("KC000", "", edits[0].statement, edits[0].statement, fix=fix)
    return repair(source, [finding], allowed=frozenset(Safety), relint=lambda data: [])


def _edits(source: Source, *asks: Ask) -> tuple[Edit, ...]:
    return tuple(_edit(source, *ask) for ask in asks)


def _edit(source: Source, kind: EditKind, where: int | str, text: str = "") -> Edit:
    if isinstance(where, int):
        kinds = (ast.ExceptHandler,) if kind is EditKind.BIND_CAUGHT else (ast.Raise,)
        found = [node for node in ast.walk(source.tree) if isinstance(node, kinds)]
        return Edit(kind, sorted(map(source.span, found))[where], (), text)
    if kind is EditKind.LIST_FIELD:
        fields = (node for node in ast.walk(source.tree) if isinstance(node, ast.FormattedValue))
        node: ast.expr = next(node for node in fields if ast.unparse(node.value) == where)
    else:
        values = (node for node in ast.walk(source.tree) if isinstance(node, ast.expr))
        node = next(node for node in values if ast.unparse(node) == where)
    statement = source.statement(node)
    return Edit(kind, source.span(statement), source.path_to(node, statement), text)


def _hidden_causes(source: Source, node: ast.Raise) -> list[Finding]:
    caught = cause.caught_at(node, source)
    if node.exc is None or node.cause is None or ast.unparse(node.cause) != "None" or caught is None:
        return []
    fix = cause.chain(node, caught, source)
    place = source.span(node)
    if isinstance(fix, str):
        return [Finding("KC101", "", place, place, no_fix=fix)]
    return [Finding("KC101", "", place, place, fix=fix)]


def _lazy_names(source: Source, node: ast.Raise) -> list[Finding]:
    place = source.span(node)
    shown = [
        inner
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name)
        and inner.id.startswith("lazy")
        and not (isinstance(up := source.parents[inner], ast.Call) and ast.unparse(up.func) == "list")
    ]
    edits = [Edit(EditKind.LIST_CALL, place, source.path_to(inner, node)) for inner in shown]
    return [Finding("KC201", "", place, place, fix=Fix(Safety.UNSAFE, "List it", (edit,))) for edit in edits]
