"""The repair of a hidden cause, run: the caught exception is shown again, and nothing else has changed."""

from __future__ import annotations

import ast
import runpy
import time
from pathlib import Path
from typing import Any

import pytest

from keepcause.lint.chaining import cause
from keepcause.lint.finding import EditKind, Fix, Safety
from keepcause.lint.source import Source

FIXTURES = Path(__file__).parents[1] / "fixtures" / "KC101"
REFUSALS = "# What can't be repaired."
METHODS = [
    node.name
    for node in ast.walk(ast.parse((FIXTURES / "bad.py").read_text(encoding="utf-8")))
    if isinstance(node, ast.FunctionDef) and node.name.startswith("init_")
]


@pytest.fixture(scope="module", params=["bad.fixed.py", "bad.unsafe.py"])
def repaired(request: pytest.FixtureRequest) -> dict[str, Any]:
    """A repaired fixture's names."""
    return runpy.run_path(str(FIXTURES / request.param))


@pytest.fixture(scope="module")
def bad() -> dict[str, Any]:
    """The fixture's names."""
    return runpy.run_path(str(FIXTURES / "bad.py"))


def raised(module: dict[str, Any], method: str) -> BaseException:
    """What the method raises, out of the groups that `except*` makes."""
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - each method raises something else
        getattr(module["Worker"](), method)()
    error: BaseException = caught.value
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def shown(error: BaseException | None) -> list[BaseException]:
    """The exceptions that a traceback shows, the raised one first."""
    found: list[BaseException] = []
    pending = [error]
    while pending:
        one = pending.pop()
        if one is not None and all(one is not seen for seen in found):
            found.append(one)
            pending.append(one.__cause__ if one.__suppress_context__ else one.__context__)
            pending += one.exceptions if isinstance(one, BaseExceptionGroup) else ()
    return found


def loops(error: BaseException) -> bool:
    """Whether the causes of `error` come back to it."""
    seen: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and all(one is not other for other in seen):
        seen.append(one)
        one = one.__cause__
    return one is not None


def names(errors: list[BaseException]) -> list[str]:
    return [type(error).__name__ for error in errors]


@pytest.mark.parametrize("method", METHODS)
def test_the_same_error_is_raised(bad: dict[str, Any], repaired: dict[str, Any], method: str) -> None:
    before, after = raised(bad, method), raised(repaired, method)
    assert type(before).__name__ == type(after).__name__
    assert str(before).partition("Traceback")[0] == str(after).partition("Traceback")[0]
    assert not loops(after)


@pytest.mark.parametrize("method", METHODS)
def test_the_cause_is_shown_again(bad: dict[str, Any], method: str) -> None:
    before = raised(bad, method)
    after = raised(runpy.run_path(str(FIXTURES / "bad.unsafe.py")), method)
    text = (FIXTURES / "bad.py").read_text(encoding="utf-8")
    if text.index(f"def {method}(") > text.index(REFUSALS):
        assert names(shown(after)) == names(shown(before))
    else:
        assert "Refused" not in names(shown(before)[1:])
        assert "Refused" in names(shown(after))


def test_a_stored_error_keeps_its_own_cause() -> None:
    stored, root = RuntimeError("stored"), KeyError("root")
    stored.__cause__ = root
    worker = runpy.run_path(str(FIXTURES / "bad.unsafe.py"))["Worker"]()
    with pytest.raises(RuntimeError, match="stored"):
        worker.init_unknown(stored)
    assert stored.__cause__ is root


def fix(code: str) -> Fix | str:
    """What is offered for the last raise of `code` that has a cause."""
    source = Source(code.encode())
    raises = [node for node in ast.walk(source.tree) if isinstance(node, ast.Raise) and node.cause is not None]
    node = max(raises, key=lambda node: node.lineno)
    caught = cause.caught_at(node, source)
    assert caught is not None
    return cause.chain(node, caught, source)


def bound_name(code: str) -> str:
    """The name that the handler gets."""
    found = fix(code)
    assert isinstance(found, Fix)
    (name,) = (edit.text for edit in found.edits if edit.kind is EditKind.BIND_CAUGHT)
    return name


HANDLER = """
try:
    f()
except OSError:
    raise X() from None
"""


@pytest.mark.parametrize(
    ("before", "name"),
    [
        ("", "e"),
        ("e = 1", "exc"),
        ("import e, x.exc", "exc"),
        ("def e(exc): pass", "err"),
        ("class err:\n    e, exc = 1, 2", "error"),
        ("def g(): return e", "exc"),
        ("def g():\n    global e", "exc"),
        ("[e for exc in x]", "err"),
        ("(e := 1)", "exc"),
        ("for e, (exc, *err) in x: pass", "error"),
        ("with x as e: pass", "exc"),
        ("match x:\n    case [e, *exc]: pass\n    case {**err}: pass", "error"),
        ("lambda e: 1", "exc"),
        ("del e", "exc"),
        ("e: int", "exc"),
        ("try: f()\nexcept X as e: pass", "exc"),
        ("f(e=1).exc", "e"),
        ("e, exc, err, error, exc1 = f()", "exc2"),
        ("from m import *", "_e"),
        ("from m import *\nprint(_e)", "_exc"),
    ],
)
def test_fresh_name_at_module_level(before: str, name: str) -> None:
    assert bound_name(before + HANDLER) == name


@pytest.mark.parametrize(
    ("names", "before", "name"),
    [
        (["exc"], "", "exc"),
        (["err", "exc", "err"], "", "err"),
        (["error", "exc"], "", "exc"),
        (["ex", "ex"], "", "e"),
        (["error"], "error = 1", "e"),
        (["error", "error", "exc"], "error = 1", "exc"),
    ],
)
def test_fresh_name_follows_the_habit_of_the_file(names: list[str], before: str, name: str) -> None:
    used = "".join(f"def f{i}():\n    try: x\n    except X as {name}: y\n" for i, name in enumerate(names))
    indented = HANDLER.replace("\n", "\n    ")
    assert bound_name(f"{used}def g():\n    {before}{indented}") == name


def test_fresh_name_in_a_function() -> None:
    indented = HANDLER.replace("\n", "\n    ")
    assert bound_name(f"e = 1\ndef g():{indented}") == "e"
    assert bound_name(f"from m import *\ndef g():{indented}") == "e"
    assert bound_name(f"def g(e):{indented}") == "exc"
    assert bound_name(f"def g():{indented}\n    return lambda: e") == "exc"
    assert bound_name(f"def g():{indented}\n    class C:\n        e = 1") == "exc"
    in_method = HANDLER.replace("\n", "\n        ")
    assert bound_name(f"class C:\n    e = 1\n    def g(self):{in_method}") == "e"


def handled(body: str, header: str = "except OSError as e") -> str:
    """A handler with `body` in a function."""
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return f"def g(x):\n    try:\n        f()\n    {header}:\n{lines}"


@pytest.mark.parametrize(
    "body",
    [
        "e = 1",
        "e += 1",
        "e, x = 1, 2",
        "del e",
        "import e",
        "from x import y as e",
        "def e(): pass",
        "class e: pass",
        "for e in x: pass",
        "with x as e: pass",
        "f(e := 1)",
        "[e := y for y in x]",
        "if x: e = 1",
        "if x:\n    if x: e = 1\n    else: return",
        "try: f()\nexcept X as e: pass",
        "try:\n    e = 1\n    raise X\nexcept X: pass",
        "for y in x:\n    e = 1\n    break",
        "with x:\n    e = 1\n    raise X",
        "match x:\n    case e: pass",
        "def h():\n    nonlocal e\n    e = 1",
    ],
)
def test_a_rebound_name_has_no_fix(body: str) -> None:
    reason = "`e` is bound anew or deleted before the raise"
    assert fix(handled(f"{body}\nraise X() from None")) == reason
    assert fix(handled(f"{body}\nraise e from None")) == reason


@pytest.mark.parametrize(
    "body",
    [
        "[e for e in x]\nRAISE",
        "lambda e: 1\nRAISE",
        "def h(e): e = 1\nRAISE",
        "class C: e = 1\nRAISE",
        "e.x = 1\ne[0] = 1\nRAISE",
        "RAISE\ne = 1",
        "if x: RAISE\ne = 1",
        "if x: e = 1\nelse: RAISE",
        "if x: RAISE\nelse: e = 1",
        "if x:\n    e = 1\nelif y:\n    RAISE",
        "if x:\n    e = 1\n    return e\nRAISE",
        "if x:\n    if y:\n        e = 1\n    raise e\nRAISE",
        "try: RAISE\nexcept X as e: pass",
    ],
)
def test_a_name_bound_elsewhere_does_not_matter(body: str) -> None:
    assert isinstance(fix(handled(body.replace("RAISE", "raise X() from None"))), Fix)


@pytest.mark.parametrize(
    ("raised", "doubt"),
    [
        ("Error()", ""),
        ("x.y.Error('a')", ""),
        ("_Private()", ""),
        ("ValueError", ""),
        ("type(e)('a')", ""),
        ("e.__class__('a')", ""),
        ("Error() if x else OtherError()", ""),
        ("x or Error()", "which erases a cause that it may have"),
        ("make()", "this call may return the caught exception itself"),
        ("MAKE()", "this call may return the caught exception itself"),
        ("x", "which erases a cause that it may have"),
        ("x.error", "which erases a cause that it may have"),
        ("await x", "it may be the caught exception itself"),
        ("Error(traceback.format_exc())", "its text has the traceback already"),
        ("Error(f'{text}')", "its text has the traceback already"),
        ("Error(long_text)", "its text has the traceback already"),
    ],
)
def test_safety(raised: str, doubt: str) -> None:
    before = "import traceback\nfrom traceback import format_tb as tb\n"
    body = f"text = tb(e.__traceback__)\nlong_text = ''\nlong_text += text\nraise {raised} from None"
    found = fix(before + handled(body).replace("def", "async def"))
    assert isinstance(found, Fix)
    assert found.safety is (Safety.UNSAFE if doubt else Safety.SAFE)
    assert f"({doubt}" in found.title if doubt else "(" not in found.title


MANAGER = """
from contextlib import contextmanager

class StartError(RuntimeError):
    pass

@contextmanager
def phase():
    try:
        yield
    except Exception as e:
        raise StartError("phase failed") from None
"""


@pytest.mark.parametrize(
    ("old", "new", "safety"),
    [
        ("", "", Safety.UNSAFE),
        ("@contextmanager", "@contextlib.asynccontextmanager", Safety.UNSAFE),
        ("Exception as e", "(OSError, StopIteration)", Safety.UNSAFE),
        ("        yield", "        with lock:\n            yield", Safety.UNSAFE),
        ("raise StartError(", "raise NotImplementedError(", Safety.UNSAFE),
        ("raise StartError(", "raise ValueError(", Safety.SAFE),
        ("StartError(", "ValueError(", Safety.UNSAFE),
        ("Exception as e", "OSError", Safety.SAFE),
        ("yield", "pass", Safety.SAFE),
        ("@contextmanager", "", Safety.SAFE),
        ("except Exception", "except* Exception", Safety.SAFE),
    ],
)
def test_safety_in_a_context_manager(old: str, new: str, safety: Safety) -> None:
    found = fix(MANAGER.replace(old, new))
    assert isinstance(found, Fix)
    assert found.safety is safety
    assert ("StopIteration" in found.title) is (safety is Safety.UNSAFE)


@pytest.mark.parametrize(("chained", "out"), [("None", "StartError"), ("e", "StopIteration")])
def test_contextlib_drops_what_a_stop_iteration_caused(chained: str, out: str) -> None:
    names: dict[str, Any] = {}
    exec(MANAGER.replace("from None", f"from {chained}"), names)
    with pytest.raises((RuntimeError, StopIteration)) as caught, names["phase"]():
        next(iter(()))
    assert type(caught.value).__name__ == out


@pytest.mark.parametrize(
    "raised",
    [
        "StopIteration",
        "StopIteration(1)",
        "StopAsyncIteration",
        "GeneratorExit()",
        "asyncio.CancelledError",
        "gen.Return(False)",
        "Halt",
        "stop",
    ],
)
@pytest.mark.parametrize("before", ["", "from m import *\n"])
def test_control_flow(raised: str, before: str) -> None:
    before += "import asyncio\nfrom concurrent.futures import CancelledError as Halt\nstop = StopIteration(1)\n"
    source = Source(f"{before}raise {raised} from None".encode())
    (node,) = (node for node in ast.walk(source.tree) if isinstance(node, ast.Raise))
    may_be_anything = raised == "stop" and before.startswith("from m")
    assert cause.is_control_flow(node, source) != may_be_anything


def test_what_ends_a_handler() -> None:
    code = (
        "try:\n    f()\nexcept X:\n    def g():\n        raise Y from None\n    class C:\n        raise Y from None\n"
    )
    source = Source(code.encode())
    for node in ast.walk(source.tree):
        assert not isinstance(node, ast.Raise) or cause.caught_at(node, source) is None


def test_many_handlers_take_no_time_each() -> None:
    """Their names are counted once: once for each handler would take half a minute."""
    code = "def f():\n    try: g()\n    except X: raise Y from None\n" * 10_000
    source = Source(code.encode())
    started = time.process_time()
    names = {
        cause.fresh_name(node, source)
        for node in source.scopes.nodes[ast.ExceptHandler]
        if isinstance(node, ast.ExceptHandler)
    }
    assert names == {"e"}
    assert time.process_time() - started < 10
