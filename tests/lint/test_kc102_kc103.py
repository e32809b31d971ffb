"""The repairs of stripped and unchained exceptions, run: the caught exception is the cause, all else is the same."""

from __future__ import annotations

import ast
import asyncio
import inspect
import runpy
from pathlib import Path
from typing import Any

import pytest

from keepcause.lint.engine import Settings, lint_single_file
from keepcause.lint.source import Source

FIXTURES = Path(__file__).parents[1] / "fixtures"
REFUSALS = "# What can't be repaired."


def methods(code: str) -> list[tuple[str, str]]:
    """Each rule with each `init_` method of its bad fixture that is repaired."""
    text = (FIXTURES / code / "bad.py").read_text(encoding="utf-8").partition(REFUSALS)[0]
    names = [
        node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return [(code, name) for name in names if name.startswith("init_")]


EXPECTED = (OSError, ValueError, ImportError, TimeoutError)


class Device:
    """What the fixtures' workers call; opening fails as each method expects it."""

    quiet = True
    failure: type[BaseException]
    resets = True

    def open(self, *_: object) -> None:
        raise self.failure("no such device")

    def reset(self, *_: object) -> None:
        if not self.resets:
            raise ValueError("no reset")

    def as_start_error(self, error: BaseException) -> RuntimeError:
        return RuntimeError(str(error))


def raised(code: str, file: str, method: str) -> BaseException:
    """What the method raises in its handler."""
    module: dict[str, Any] = runpy.run_path(str(FIXTURES / code / file))
    for failure in EXPECTED:
        worker = type(
            "Worker", (module["Worker"], Device), {"failure": failure, "resets": "inner_handler" not in method}
        )()
        run = getattr(worker, method)
        with pytest.raises(BaseException) as caught:  # noqa: PT011, PT012 - each raises something else
            result = run(*[False] * len(inspect.signature(run).parameters))
            if inspect.iscoroutine(result):
                asyncio.run(result)
        error: BaseException = caught.value
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        if error.__context__ is not None or "caught" in method:
            return error
    raise AssertionError(f"{method} raised nothing of its own")


@pytest.mark.parametrize(("code", "method"), [*methods("KC102"), *methods("KC103")])
def test_the_caught_exception_becomes_the_cause(code: str, method: str) -> None:
    unsafe = FIXTURES / code / "bad.unsafe.py"
    before = raised(code, "bad.py", method)
    after = raised(code, unsafe.name if unsafe.exists() else "bad.fixed.py", method)
    assert type(after).__name__ == type(before).__name__
    assert str(after).partition("Traceback")[0] == str(before).partition("Traceback")[0]
    assert before.__cause__ is None
    if "caught" not in method:
        assert after.__cause__ is after.__context__ is not None
        assert type(after.__cause__).__name__ in (
            "OSError",
            "ValueError",
            "ImportError",
            "TimeoutError",
            "ExceptionGroup",
        )
    if code == "KC102" and "caught_by_name" in method:
        assert before.__suppress_context__
        assert not after.__suppress_context__


def codes_at(code: str, *selected: str) -> list[tuple[int, str]]:
    found = lint_single_file(Source(code.encode(), "worker.py"), Settings(codes=frozenset(selected)))
    return [(finding.span.line, finding.code) for finding in found]


HIDDEN = """\
def init_worker():
    try:
        start()
    except OSError:
        raise RuntimeError("failed") from None


def port(text):
    try:
        return int(text)
    except ValueError:
        raise ValueError(text) from None
"""


def test_a_raise_is_reported_once_as_the_sharper_rule() -> None:
    assert codes_at(HIDDEN, "KC109") == [(5, "KC109"), (12, "KC109")]
    assert codes_at(HIDDEN, "KC101", "KC109") == [(5, "KC101"), (12, "KC109")]


def test_what_is_excused_as_one_is_not_reported_as_the_other() -> None:
    excused = HIDDEN.replace('("failed") from None', '("failed") from None  # noqa: KC101')
    assert codes_at(excused, "KC101", "KC109") == [(12, "KC109")]


@pytest.mark.parametrize(("path", "kept"), [("tests/test_port.py", True), ("port.py", False)])
def test_a_test_keeps_its_from_none(path: str, kept: bool) -> None:
    found = lint_single_file(Source(HIDDEN.encode(), path), Settings(codes=frozenset({"KC109"})))
    assert [(finding.fix is None, finding.no_fix) for finding in found] == [
        (kept, "a test may mean what it says" if kept else "")
    ] * 2
