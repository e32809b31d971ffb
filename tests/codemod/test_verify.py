"""The proof of a result: it takes the one that the edits mean, and none of those that are wrong."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from keepcause.codemod.verify import RefusedError, check_findings, check_text, same
from keepcause.lint.finding import Edit, EditKind, Finding
from keepcause.lint.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CODE = """\
try:
    f(x)
except A as a:
    raise X(x) from other
except B:
    raise Y(x, x) from None
except C as c:
    raise c from None
"""
RIGHT = (
    CODE.replace("B:", "B as b:")
    .replace("Y(x, x) from None", "Y(list(x), x) from b")
    .replace("raise c from None", "raise")
)


@pytest.fixture
def asked(edits: Callable[..., Sequence[Edit]]) -> tuple[Source, list[Edit]]:
    source = Source(CODE.encode())
    some = edits(source, (EditKind.BIND_CAUGHT, 1, "b"), (EditKind.SET_CAUSE, 1, "b"), (EditKind.RERAISE, 2))
    raised = some[1].statement
    return source, [*some, Edit(EditKind.LIST_CALL, raised, ("exc", "args", 0))]


def test_the_right_result(asked: tuple[Source, list[Edit]]) -> None:
    assert check_text(*asked, RIGHT.encode()).text == RIGHT


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("raise Y(list(x), x) from b", "raise Y(list(x), x) from a"),
        ("raise Y(list(x), x) from b", "raise Y(list(x), x) from None"),
        ("raise Y(list(x), x) from b", "raise Y(list(x), x)"),
        ("except B as b:", "except B:"),
        ("except B as b:", "except B as c:"),
        ("except B as b:", "except Exception as b:"),
        ("Y(list(x), x)", "Y(x, list(x))"),
        ("Y(list(x), x)", "Y(list(x), list(x))"),
        ("Y(list(x), x)", "Y([*x], x)"),
        ("Y(list(x), x)", "Y(tuple(x), x)"),
        ("raise X(x) from other", "raise X(x)"),
        ("raise X(x) from other", "raise X(x) from a"),
        ("raise X(x) from other", "raise X(list(x)) from other"),
        ("raise X(x) from other", "raise"),
        ("    raise\n", "    raise c\n"),
        ("    raise\n", "    pass\n"),
        ("f(x)", "f(list(x))"),
        ("f(x)", "f(x); g()"),
        ("f(x)", "f(x"),
    ],
)
def test_wrong_results(asked: tuple[Source, list[Edit]], right: str, wrong: str) -> None:
    assert RIGHT.count(right) == 1
    with pytest.raises(RefusedError):
        check_text(*asked, RIGHT.replace(right, wrong).encode())


@pytest.mark.parametrize(
    ("code", "ask", "wrong"),
    [
        ("try: f()\nexcept A:\n    raise X from None\n", (EditKind.SET_CAUSE, 0, "e"), "raise X from e"),
        ("e = 1\ndef f():\n    raise X from None\n", (EditKind.SET_CAUSE, 0, "e"), "raise X from e"),
        (
            "try: f()\nexcept A as a:\n    try: g()\n    except B as b:\n        raise X from None\n",
            (EditKind.SET_CAUSE, 0, "a"),
            "raise X from a",
        ),
        (
            "try: f()\nexcept A as a:\n    class C:\n        raise X from None\n",
            (EditKind.SET_CAUSE, 0, "a"),
            "raise X from a",
        ),
        (
            "try: f()\nexcept A as a:\n    try: g()\n    except B:\n        raise a from None\n",
            (EditKind.RERAISE, 0),
            "raise",
        ),
        ("try: f()\nexcept* A as a:\n    raise a from None\n", (EditKind.RERAISE, 0), "raise"),
        ("try: f()\nexcept A as a:\n    raise b from None\n", (EditKind.RERAISE, 0), "raise"),
    ],
)
def test_edits_that_should_not_have_been_asked_for(
    edits: Callable[..., Sequence[Edit]], code: str, ask: tuple[EditKind, int, str], wrong: str
) -> None:
    source = Source(code.encode())
    head, _, tail = code.rpartition("raise ")
    result = head + wrong + tail[tail.index("\n") :]
    with pytest.raises(RefusedError, match=r"handler|not of|whole group"):
        check_text(source, edits(source, ask), result.encode())


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("x", "y"),
        ("f(a)", "f(a, b)"),
        ("1", "1.0"),
        ("1", "True"),
        ("'a'", "b'a'"),
        ("f'{x!r}'", "f'{x!s}'"),
        ("try: f()\nexcept A: pass", "try: f()\nexcept* A: pass"),
        ("def f(a): pass", "async def f(a): pass"),
        ("x: int", "x: int = 1"),
    ],
)
def test_what_is_not_the_same(left: str, right: str) -> None:
    assert not same(ast.parse(left), ast.parse(right))


def test_what_is_the_same() -> None:
    assert same(ast.parse("f( 'a' 'b',\n (x) ) # c"), ast.parse('f("ab", x)'))
    # Longer than Python would print.
    assert same(ast.parse("0x" + "f" * 9000), ast.parse("0x" + "F" * 9000))


def test_findings_are_known_by_their_statement(asked: tuple[Source, list[Edit]]) -> None:
    source, some = asked
    repaired = Source(RIGHT.encode())
    first, second, third = (
        Finding("KC101", "", edit.statement, edit.statement) for edit in (some[0], some[1], some[2])
    )
    check_findings(source, [first, second, third], [first, third], repaired, [second])
    check_findings(source, [first, second, third], [first, second], repaired, [])
    with pytest.raises(RefusedError, match="KC101"):
        check_findings(source, [first, second], [first, second], repaired, [second])
    with pytest.raises(RefusedError, match="KC101"):
        check_findings(source, [first, second], [first], repaired, [third])
