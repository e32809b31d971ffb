"""A statement that goes: with its line where it has one of its own, else for a `pass`."""

from __future__ import annotations

import ast

import pytest

from keepcause.codemod.apply import Repair, repair
from keepcause.lint.finding import Edit, EditKind, Finding, Fix, Safety
from keepcause.lint.source import Source


def dropped(code: str) -> Repair:
    """The code after its assignments are dropped, each by a fix of its own."""

    def findings(data: bytes) -> list[Finding]:
        source = Source(data)
        places = [source.span(node) for node in ast.walk(source.tree) if isinstance(node, ast.Assign)]
        fixes = [Fix(Safety.SAFE, "Drop it", (Edit(EditKind.DROP_STATEMENT, place),)) for place in places]
        return [Finding("KC000", "", fix.edits[0].statement, fix.edits[0].statement, fix=fix) for fix in fixes]

    source = Source(code.encode())
    return repair(source, findings(source.data), allowed=frozenset(Safety), relint=findings)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a.b = 1\nc()\n", "c()\n"),
        ("c()\na.b = 1\n", "c()\n"),
        ("c()\na.b = 1", "c()\n"),
        ("c()\r\na.b = 1\r\nd()\r\n", "c()\r\nd()\r\n"),
        ("c()\ra.b = 1\rd()\r", "c()\rd()\r"),
        ("if c:\n    d()\n    a.b = 1   \n", "if c:\n    d()\n"),
        ("if c:\n    a.b = 1\n    a.d = 2\n    d()\n", "if c:\n    d()\n"),
        ("if c:\n    d()\n    a.b = \\\n        1\n", "if c:\n    d()\n"),
        ("if c:\n    d()\n    a.b = (\n        1\n    )\ne()\n", "if c:\n    d()\ne()\n"),
        ("try:\n    c()\nexcept E:\n    d()\n    a.b = 1\n", "try:\n    c()\nexcept E:\n    d()\n"),
        ("try:\n    c()\nfinally:\n    a.b = 1\n    d()\n", "try:\n    c()\nfinally:\n    d()\n"),
        ("match c:\n    case 1:\n        a.b = 1\n        d()\n", "match c:\n    case 1:\n        d()\n"),
        ("s = 'ä'; c()\n# ä\na.b = 1\n", "pass; c()\n# ä\n"),
        ("a.b = 1\nc(lambda: d, e if f else g)\n", "c(lambda: d, e if f else g)\n"),
        # Only one in its block, or not alone on its line.
        ("if c:\n    a.b = 1\nd()\n", "if c:\n    pass\nd()\n"),
        ("if c: a.b = 1\n", "if c: pass\n"),
        ("if c: a.b = 1; d()\n", "if c: pass; d()\n"),
        ("d(); a.b = 1\n", "d(); pass\n"),
        ("d(); a.b = 1; e()\n", "d(); pass; e()\n"),
        ("a.b = 1;\nc()\n", "pass;\nc()\n"),
        ("d(); \\\na.b = 1\n", "d(); \\\npass\n"),
        ("if c:\n    d()\nelse:\n    a.b = 1\n", "if c:\n    d()\nelse:\n    pass\n"),
    ],
)
def test_a_statement_is_dropped(before: str, after: str) -> None:
    result = dropped(before)
    assert result.failed == ()
    assert result.left == ()
    assert result.data.decode() == after


def test_a_block_is_never_left_empty() -> None:
    result = dropped("if c:\n    a.b = 1\n    a.d = 2\n")
    assert (result.data, len(result.applied)) == (b"if c:\n    pass\n", 2)


@pytest.mark.parametrize("code", ["a.b = 1  # why\nc()\n", "c(); a.b = 1  # why\n", "a.b = (\n    1,  # one\n)\nc()\n"])
def test_a_comment_keeps_its_statement(code: str) -> None:
    result = dropped(code)
    assert result.data.decode() == code
    assert [left.reason for left in (*result.left, *result.failed)] == ["a comment would be lost"]


def test_other_statements_do_not_go() -> None:
    source = Source(b"for x in y:\n    z()\n")
    place = source.span(source.tree.body[0])
    fix = Fix(Safety.SAFE, "Drop it", (Edit(EditKind.DROP_STATEMENT, place),))
    result = repair(
        source, [Finding("KC000", "", place, place, fix=fix)], allowed=frozenset(Safety), relint=lambda data: []
    )
    assert result.data == source.data
    assert result.applied == ()
