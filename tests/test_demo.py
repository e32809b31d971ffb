"""The demo of the example service, run for real."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

DEMO = Path(__file__).parents[1] / "examples" / "demo.py"


@pytest.fixture
def demo() -> ModuleType:
    """The demo script as a module."""
    spec = importlib.util.spec_from_file_location("demo", DEMO)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_demo_holds_and_leaves_the_example_as_it_is() -> None:
    files = [path for path in DEMO.parent.rglob("*") if path.suffix in (".py", ".json")]
    before = {path: path.read_bytes() for path in files}
    done = subprocess.run([sys.executable, DEMO], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path: path.read_bytes() for path in files} == before


def test_demo_notices_a_repair_that_changes_nothing(demo: ModuleType) -> None:
    silent = demo.NOISE
    telling = "\n".join(demo.FACTS.values())
    assert demo.broken_claims(silent, telling) == []
    assert len(demo.broken_claims(silent, silent)) == len(demo.FACTS) + 1
    assert len(demo.broken_claims(telling, telling)) == len(demo.FACTS) + 1


@pytest.mark.parametrize("number", range(4))
def test_demo_notices_one_missing_fact(demo: ModuleType, number: int) -> None:
    facts = list(demo.FACTS.values())
    del facts[number]
    assert len(demo.broken_claims(demo.NOISE, "\n".join(facts))) == 1


def test_demo_notices_a_failure_that_is_not_named(demo: ModuleType) -> None:
    failures = list(demo.FAILURES.values())
    output = "\n".join(failures)
    assert demo.unsaid(failures, output) == []
    for failure in failures:
        assert demo.unsaid(failures, output.replace(failure, "")) == [failure]
