"""Every safe repair of the fixtures, run before and after: only the text differs, and it holds every item."""

from __future__ import annotations

import io
import logging
import unittest
import warnings
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from keepcause.lint.engine import Settings, lint_single_file
from keepcause.lint.finding import Safety
from keepcause.lint.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

FIXTURES = Path(__file__).parents[2] / "fixtures"
CODES = ("KC201", "KC202", "KC203", "KC204")


@dataclass(frozen=True)
class Call:
    """How a function of a fixture is called, and what its text holds after the repair."""

    arguments: Callable[[], tuple[Any, ...]]
    holds: str


def both() -> tuple[Any, ...]:
    return (["b", "x"],)


def one() -> tuple[Any, ...]:
    return (["x"],)


def none() -> tuple[Any, ...]:
    return ()


CALLS = {
    "KC201": {
        "field": [Call(both, "<class 'str'>, <class 'str'>")],
        "conversion": [Call(both, "['x']"), Call(one, "['x']")],
        "label": [Call(both, "KNOWN)=['x']")],
        "nested": [Call(both, "['b', 'x']")],
        "implicit_concatenation": [Call(both, "['b', 'x']")],
        "sole_argument": [Call(both, "['x']")],
        "percent": [
            Call(lambda: (["b", "x", "y"],), "['b', 'x', 'y'] of 3"),
            Call(both, "['b', 'x']"),
            Call(one, "[(0, 'x')]"),
        ],
        "format_method": [Call(both, "['x', 'b']"), Call(one, "[('x', 'a')]")],
        "format_function": [Call(both, "['b', 'x']")],
        "joined_characters": [Call(both, "b, x")],
        "argument": [Call(both, "['no b', 'no x']")],
        "second_argument": [Call(both, "['b', 'x']")],
        "in_a_display": [Call(both, "[2, ['b', 'x']]")],
        "one_arm": [Call(both, "[('b', 'a'), ('x', 'b')]"), Call(one, "['x']")],
        "built_before": [Call(both, "['b', 'x']")],
        "text_before": [Call(both, "['b', 'x']")],
        "returned": [Call(both, "")],
        "noted": [Call(lambda: (RuntimeError("failed"), ["x"]), "['x']")],
        "ended": [Call(both, "['b', 'x']")],
        "UnknownKindError": [Call(none, "")],
        "Aliases.__repr__": [],
        "Case.test": [],
        "bound": [Call(both, "['x']")],
        "branches_agree": [Call(lambda: (["b", "x"], True), "['x']"), Call(lambda: (["b", "x"], False), "['b', 'x']")],
        "unpacked": [Call(both, "2: ['b', 'x']")],
        "annotated": [Call(both, "['b', 'x']")],
        "caught": [Call(both, "['b', 'x']")],
        "matched": [Call(both, "[('a',), ('b',)]"), Call(one, "['a', 'b']")],
        "measured": [Call(both, "['b', 'x']"), Call(one, "[('x', 'a')]"), Call(lambda: (iter("bx"),), "")],
        "indexed": [Call(both, "['b', 'x']"), Call(lambda: (iter("bx"),), "")],
        "run_through_before": [Call(both, "['b', 'x']"), Call(lambda: (iter("bx"),), "[]")],
        "variadic": [Call(lambda: ("b", "x"), "['b', 'x']")],
        "own_list": [Call(lambda: ("b", 0), "['a', 'b']"), Call(lambda: ("", 0), "['a', 'b'], 0")],
        "unpacks_what_fits": [Call(lambda: ("ab", "cd"), "['a', 'b']"), Call(lambda: ("", "cd"), "['c', 'd']")],
        "consumed_before": [Call(both, "['x']"), Call(lambda: (iter("bx"),), "['x']"), Call(lambda: ([],), "")],
        "used_after": [Call(both, ""), Call(lambda: (iter("bx"),), "")],
    },
    "KC202": {
        "display": [Call(lambda: ("c",), "['a', 'b']")],
        "called": [Call(lambda: ("c",), "[1]"), Call(lambda: ("",), "[('a', 1)]")],
        "label": [Call(none, "options.keys()=[]")],
        "tested": [Call(lambda: ({"a": 1},), "['a']"), Call(one, "")],
        "named": [Call(lambda: ({"a": 1},), "['a']"), Call(one, "no dict")],
        "own_list": [Call(lambda: ("c",), "['a', 'b']")],
        "Options.__str__": [],
    },
    "KC203": {
        "Worker.start": [],
        "warned": [Call(none, "['a', 'b']")],
        "by_key": [Call(none, "['a', 'b']")],
        "braces": [Call(lambda: (Braces(),), "['a', 'b']")],
        "used_after": [Call(lambda: ("ab", "cd"), "[('a', 'c'), ('b', 'd')]")],
        "in_a_loop": [Call(none, "a of ['a', 'b']")],
        "through_a_name": [Call(none, "['a', 'b']")],
    },
    "KC204": {},
}


class Braces:
    """A logger whose templates have braces."""

    def info(self, template: str, *values: object) -> None:
        logging.getLogger("fixture").info("%s", template.format(*values))


def functions_with_safe_fixes(code: str) -> set[str]:
    """The qualified names of the functions of a fixture in which something is repaired safely."""
    source = Source((FIXTURES / code / "bad.py").read_bytes(), "bad.py")
    names = {}
    for node, scope in source.scopes.inside.items():
        names[getattr(node, "lineno", 0)] = scope.qualname
    findings = lint_single_file(source, Settings(codes=frozenset({code})))
    return {
        names[finding.function].removesuffix(".__init__")
        for finding in findings
        if finding.fix is not None and finding.fix.safety is Safety.SAFE
    }


@pytest.mark.parametrize("code", CODES)
def test_every_function_with_a_safe_fix_is_run(code: str) -> None:
    assert functions_with_safe_fixes(code) == set(CALLS[code])


def load(path: Path) -> ModuleType:
    module = ModuleType("fixture")
    exec(compile(path.read_bytes(), str(path), "exec"), vars(module))
    return module


@dataclass(frozen=True)
class Outcome:
    """What a call did; `text` is what it raised, logged and warned of."""

    result: tuple[object, ...]
    text: str


def outcome(path: Path, name: str, call: Call) -> Outcome:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger = logging.getLogger("fixture")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    arguments = call.arguments()
    returned, raised, said = None, "", ""
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            module = load(path)
            vars(module)["__name__"] = "fixture"
            returned = getattr(module, name)(*arguments)
    except (Exception, SystemExit) as error:
        raised = type(error).__name__
        said = "\n".join([str(error), *getattr(error, "__notes__", ())])
    finally:
        logger.removeHandler(handler)
    left = [list(argument) if hasattr(argument, "__iter__") else type(argument).__name__ for argument in arguments]
    told = [said, stream.getvalue(), *(str(warning.message) for warning in warned)]
    shown = type(returned).__name__ if isinstance(returned, Exception) else returned
    return Outcome((shown, raised, left, len(warned)), "\n".join(told))


@pytest.mark.parametrize(
    ("code", "name", "call"),
    [(code, name, call) for code, named in CALLS.items() for name, calls in named.items() for call in calls],
)
def test_a_safe_fix_changes_the_text_alone(code: str, name: str, call: Call) -> None:
    before = outcome(FIXTURES / code / "bad.py", name, call)
    after = outcome(FIXTURES / code / "bad.fixed.py", name, call)
    assert after.result == before.result
    assert call.holds in after.text
    assert " object at 0x" not in after.text


def test_methods_show_their_items_after_a_safe_fix() -> None:
    module = load(FIXTURES / "KC201" / "bad.fixed.py")
    assert "['a', 'b']" in repr(module.Aliases([]))
    assert str(module.UnknownKindError()) == "allowed: ['Kind.A', 'Kind.B']"
    assert str(module.returned("xb")) == "unknown: ['b', 'x']"
    assert str(load(FIXTURES / "KC202" / "bad.fixed.py").Options()) == "options []"

    class Case(module.Case, unittest.TestCase):  # type: ignore[misc, name-defined]
        pass

    with pytest.raises(AssertionError, match="1 != 2 : left: \\['a', 'b'\\]"):
        Case("test").test()


def test_a_worker_logs_its_items_after_a_safe_fix(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    module = load(FIXTURES / "KC203" / "bad.fixed.py")
    worker = module.Worker()
    worker.logger = worker._log = module.logger
    worker.start()
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "starting on ['a', 'b']",
        "starting on ['a', 'b']",
        "starting on ['a', 'b'] of 2",
        "failed: ['a', 'b']",
        "['b', 'a']",
    ]
