"""The judge of the sweep lets through what repairs are for, and nothing else."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest
from judge import WrongError, judge

from keepcause.codemod.apply import repair
from keepcause.lint.finding import Safety
from keepcause.lint.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from keepcause.lint.finding import Finding, Span

OLD = """\
\ufeff# every fault  \r
def load(e, rows):
    try:
        f()
    except X:  # why
        raise Y(rows, f"{map(str, rows)=}", rows.keys()) from None
    except Z as z:
        raise Y from None ; x = 1
    except A as a:
        raise a from None
    except B as b:
        raise b from None
    except C as c:
        raise Y(c, rows)
    except D as d:
        d.__cause__ = None
        g(str(row for row in rows))
        raise Y(d) from d.cause
    except E:
        raise Y("e")
    finally:
        g(rows)

try:
    f()
except* G as g:
    raise g from None
try:
    f()
except F as f:
    try:
        f()
    finally:
        raise f from None
"""
NEW = {
    "except X:": "except X as exc:",
    'Y(rows, f"{map(str, rows)=}", rows.keys()) from None': (
        'Y([*rows], f"map(str, rows)={list(map(str, rows))!r}", list(rows)) from exc'
    ),
    "raise Y from None ; x": "raise Y from z ; x",
    "raise a from None": "raise",
    "raise b from None": "raise b",
    "raise Y(c, rows)": "raise Y(c, ', '.join(map(str, rows))) from c",
    "        d.__cause__ = None\n": "",
    "g(str(row for row in rows))": "g(row for row in rows)",
    'except E:\n        raise Y("e")': 'except E as exc:\n        raise Y("e") from exc',
    "raise g from None": "raise g",
    "raise f from None": "raise f",
}
UNINTENDED = ("x = 1", "f()", "g(rows)")


def changed(text: str, changes: dict[str, str]) -> bytes:
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text.encode()


def places(data: bytes) -> set[Span]:
    """Each simple statement but the few that no fix is meant for, and each handler."""
    source = Source(data)
    kinds = (ast.Raise, ast.Expr, ast.Assign, ast.ExceptHandler)
    nodes = [node for node in ast.walk(source.tree) if isinstance(node, kinds)]
    texts = {source.span(node): ast.get_source_segment(source.text, node) for node in nodes}
    return {span for span, text in texts.items() if text not in UNINTENDED}


def verdict(new: bytes, old: bytes = OLD.encode()) -> str:
    try:
        judge(old, new, places(old))
    except WrongError as error:
        return str(error)
    return ""


def test_right_edits() -> None:
    assert verdict(OLD.encode()) == ""
    assert verdict(changed(OLD, NEW)) == ""


@pytest.mark.parametrize(("old", "new"), NEW.items(), ids=NEW)
def test_each_right_edit_alone(old: str, new: str) -> None:
    if old.startswith(("except", "Y(rows")):
        pytest.skip("a handler's name and the raise from it belong together")
    assert verdict(changed(OLD, {old: new})) == ""


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        pytest.param("raise Y from None", "raise Y from exc", "not what the innermost handler caught", id="unbound"),
        pytest.param("raise Y from None", "raise Y from e", "not what the innermost handler caught", id="a parameter"),
        pytest.param("raise a from None", "raise a from a", "its own cause", id="its own cause"),
        pytest.param("raise a from None", "raise Y from a", "became 'Y'", id="another exception"),
        pytest.param('raise Y("e")', 'raise Y("e") from exc', "not what the innermost", id="a name of no handler"),
        pytest.param('raise Y("e")', 'raise Y("f")', "", id="another text"),
        pytest.param("g(rows)", "g(list(rows))", "the text between the fixes differs", id="list elsewhere"),
        pytest.param("x = 1", "x = [*[1]]", "", id="list behind a semicolon"),
        pytest.param("f()\n    except X", "list(f())\n    except X", "the text around", id="list in the body"),
        pytest.param("raise Y(d) from d.cause", "raise Y(d) from d", "the cause differs", id="another real cause"),
        pytest.param("raise Y(d) from d.cause", "raise Y(d)", "the cause differs", id="a dropped real cause"),
        pytest.param("raise Y from None", "raise", "a bare raise of something else", id="a bare raise for a new one"),
        pytest.param("raise Y(c, rows)", "raise", "a bare raise of something else", id="a bare raise without from"),
        pytest.param("raise g from None", "raise", "raises something else", id="a bare raise in a group's handler"),
        pytest.param("raise f from None", "raise", "raises something else", id="a bare raise in a finally"),
        pytest.param("d.__cause__ = None", "d.__cause__ = d", "", id="another assignment"),
        pytest.param("        g(rows)\n", "        pass\n", "", id="a dropped call"),
        pytest.param("        raise Y(d) from d.cause\n", "", "", id="a dropped raise"),
        pytest.param("except X:", "except X as exc:", "nothing is raised from exc", id="a name for nothing"),
        pytest.param("except Z as z", "except Z as exc", "", id="another name"),
        pytest.param("except X:", "except Exception:", "what it catches differs", id="another type"),
        pytest.param("  # why", "", "comments", id="a lost comment"),
        pytest.param("# every fault  \r", "# every fault\r", "", id="trailing whitespace"),
        pytest.param("fault  \r\n", "fault  \n", "", id="a line end"),
        pytest.param("finally:\n        g", "finally:\n         g", "", id="indentation"),
        pytest.param("\ufeff", "", "encoding", id="a byte order mark"),
        pytest.param("def load(e, rows):", "def load(e, rows)", "can't be parsed", id="broken"),
        pytest.param("rows.keys()", "list(e)", "", id="the list of another"),
        pytest.param("str(row for row in rows)", "str([row for row in e])", "", id="a list of others"),
    ],
)
def test_wrong_edits(old: str, new: str, why: str) -> None:
    found = verdict(changed(OLD, {old: new}))
    assert found
    assert why in found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("except X:", "except X as e:", id="the name of a parameter"),
        pytest.param("except X:", "except X as f:", id="the name of a function"),
        pytest.param("except X:", "except X as z:", id="the name of another handler"),
    ],
)
def test_a_name_that_is_taken(old: str, new: str) -> None:
    name = new.removesuffix(":").rpartition(" ")[2]
    wrong = changed(OLD, {old: new, "rows.keys()) from None": f"rows.keys()) from {name}"})
    assert "is used in its function already" in verdict(wrong)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("try: f()\nexcept X as e:\n    del e\n    raise Y from None\n", "from e"),
        ("try: f()\nexcept X as e:\n    e = 1\n    raise Y from None\n", "from e"),
        ("try: f()\nexcept X as e:\n    def g():\n        raise Y from None\n", "from e"),
        ("try: f()\nexcept X as e:\n    try: f()\n    except Z: raise Y from None\n", "from e"),
        ("try: f()\nexcept X as e: pass\nraise Y from None\n", "from e"),
    ],
)
def test_a_cause_that_is_not_bound(old: str, new: str) -> None:
    assert verdict(old.replace("from None", new).encode(), old.encode())


def test_a_name_that_a_function_inside_has_too() -> None:
    old = "try:\n    f()\nexcept A as a:\n    def g():\n        a = 1\n    raise Y\n"
    new = old.replace("raise Y", "raise Y from a")
    assert verdict(new.encode(), old.encode()) == ""
    shared = "        global a\n        a = 1"
    new = new.replace("        a = 1", shared)
    assert "may not be what was caught" in verdict(new.encode(), old.replace("        a = 1", shared).encode())


def test_names_inside_one_another() -> None:
    old = "try: f()\nexcept X:\n    try: f()\n    except Y: raise Z from None\n    raise Z from None\n"
    new = old.replace("X:", "X as e:").replace("Y:", "Y as {}:").replace("Z from None\n", "Z from {}\n", 1)
    new = new.replace("from None", "from e")
    assert verdict(new.format("exc", "exc").encode(), old.encode()) == ""
    assert "the name of a handler around" in verdict(new.format("e", "e").encode(), old.encode())


def test_list_that_is_not_the_builtin() -> None:
    old = "def list(x): pass\nraise Y(rows)\n"
    assert "not the builtin" in verdict(old.replace("rows", "list(rows)").encode(), old.encode())
    assert verdict(old.replace("rows", "[*rows]").encode(), old.encode()) == ""


START = "import os\n\n\ndef start(rank, path, missing, other):\n"
PLAIN = f'{START}    if x:\n        raise RuntimeError("a")\n    raise Exception(f"b {{missing}}")\n'
STRUCTURED = PLAIN.replace("import os\n", "import os\n\nfrom keepcause import DCPLoadError, WorkerInitError\n")
STRUCTURED = STRUCTURED.replace('RuntimeError("a")', 'WorkerInitError("a", rank=rank)')
STRUCTURED = STRUCTURED.replace('Exception(f"b {missing}")', "DCPLoadError(path=path, missing=list(missing))")


def test_structured_errors() -> None:
    assert verdict(STRUCTURED.encode(), PLAIN.encode()) == ""
    for old, new in [
        ('"a", rank=rank', "rank=rank"),
        ('"a", rank=rank', '"a", rank=path'),
        ('"a", rank=rank', '"a", rank=rank, missing=other'),
        ("list(missing)", "list(other)"),
        ("path=path, missing=list(missing)", "path=path"),
        ("import os\n\n", "import os\n\n\n\n\n"),
    ]:
        assert verdict(changed(STRUCTURED, {old: new}), PLAIN.encode()), new
    elsewhere = PLAIN.replace("RuntimeError", "ValueError")
    assert verdict(STRUCTURED.encode(), elsewhere.encode())


def test_names_that_join_an_import() -> None:
    had = PLAIN.replace("import os\n", "import os\n\nfrom keepcause import WorkerInitError\n")
    assert verdict(STRUCTURED.encode(), had.encode()) == ""
    for more in ("DCPLoadError, lint_paths", "lint_paths"):
        had = PLAIN.replace("import os\n", f"import os\n\nfrom keepcause import {more}\n")
        assert verdict(STRUCTURED.encode(), had.encode()), more


def test_what_the_codemod_makes(lint: Callable[[bytes], list[Finding]]) -> None:
    old = changed(OLD, {"raise Y(c, rows)": "raise Y(c, lazy) from None"})
    source = Source(old)
    result = repair(source, lint(old), allowed=frozenset(Safety), relint=lint)
    assert result.applied
    assert verdict(result.data, old) == ""
