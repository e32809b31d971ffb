"""Each target of the fuzzer over a few cases, so that it is ready when it is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fuzz_cases import FIXTURES
from targets import TARGETS

from fuzz import State, case, run

if TYPE_CHECKING:
    from pathlib import Path

CHEAP = ("configuration", "metadata", "noqa", "reports", "source")
FILES = sorted(FIXTURES.rglob("*.py"))


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("target", TARGETS)
def test_a_target(target: str) -> None:
    outcomes = {TARGETS[target](case(target, "test", number, FILES)) for number in range(50 if target in CHEAP else 12)}
    assert outcomes - {"refused", "no Python"}


def test_a_run_goes_on_where_the_last_one_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "reports-0.json"
    State(next=7, running=True).write(path)
    assert run("reports", "0", tmp_path, 0.5, FILES)
    state = State.read(path)
    assert state.next > 7
    assert not state.running
    assert "FAILED reports --seed 0 --case 6\n" in capsys.readouterr().out
