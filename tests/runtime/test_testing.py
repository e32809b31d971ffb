"""The assertions for projects' own test suites."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from faults import BrokenInitError, NaiveError, guarded_start

from keepcause import WorkerInitError
from keepcause.testing import assert_keeps_cause, assert_survives_pickle, check_no_raise_from_none

if TYPE_CHECKING:
    from pathlib import Path


def chained(way: str) -> None:
    try:
        int("x")
    except ValueError as exc:
        if way == "from":
            raise RuntimeError("no device") from exc
        if way == "none":
            raise RuntimeError("no device") from None
        raise RuntimeError("no device")


def test_causes_and_contexts_pass() -> None:
    assert type(assert_keeps_cause(chained, "from")) is RuntimeError
    assert_keeps_cause(chained, "implicit", cause=ValueError)
    assert_keeps_cause(lambda way: chained(way), way="from")
    assert_keeps_cause(guarded_start, "plain exception", cause=ValueError)


def test_what_hides_a_cause_fails() -> None:
    with pytest.raises(AssertionError, match=r"RuntimeError: no device hides ValueError: invalid.*test_testing.py:\d+"):
        assert_keeps_cause(chained, "none")

    def outer() -> None:
        try:
            chained("none")
        except RuntimeError as exc:
            raise KeyError from exc

    with pytest.raises(AssertionError, match="hides ValueError"):
        assert_keeps_cause(outer)


def test_no_error_no_cause_and_the_wrong_cause_fail() -> None:
    with pytest.raises(AssertionError, match="raised nothing"):
        assert_keeps_cause(int, "3")
    with pytest.raises(AssertionError, match=r"ValueError: invalid literal.* has no cause"):
        assert_keeps_cause(int, "x")
    with pytest.raises(AssertionError, match=r"root cause is ValueError: .*, not a OSError"):
        assert_keeps_cause(chained, "from", cause=OSError)


def test_pickle() -> None:
    assert_survives_pickle(ValueError("x"))
    error = WorkerInitError(3, "x", cause=BrokenInitError(1, "y"))
    assert assert_survives_pickle(error).rank == 3
    with pytest.raises(AssertionError, match=r"faults.NaiveError: x can't cross a process border: TypeError"):
        assert_survives_pickle(NaiveError(1, "x"))
    plain = RuntimeError("y")
    plain.__cause__ = ValueError("x")
    with pytest.raises(AssertionError, match=r"without its cause: \['ValueError: x'\] became \[\]"):
        assert_survives_pickle(plain)


class ForgetfulError(Exception):
    """Loses an attribute, its text or its class on the way."""

    def __init__(self, way: str) -> None:
        super().__init__(way)
        self.way = way

    def __reduce__(self) -> tuple[object, ...]:
        if self.way == "class":
            return ValueError, ("class",)
        return Exception.__new__, (ForgetfulError, "other" if self.way == "text" else self.way)


@pytest.mark.parametrize(
    ("way", "message"),
    [("attribute", "without its way"), ("text", "with the text 'other'"), ("class", "as a ValueError")],
)
def test_what_pickle_loses_is_named(way: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert_survives_pickle(ForgetfulError(way))


WORKER = """\
def init_worker(rank):
    try:
        load(rank)
    except OSError:
        raise RuntimeError("no weights") from None
"""


def test_the_linter_as_an_assertion(tmp_path: Path) -> None:
    (tmp_path / "worker.py").write_text(WORKER)
    (tmp_path / "other.py").write_text(WORKER.replace("init_worker", "describe"))
    with pytest.raises(AssertionError, match=r"worker.py:5:9: KC101"):
        check_no_raise_from_none(tmp_path)
    check_no_raise_from_none(tmp_path / "other.py")
    (tmp_path / "worker.py").write_text(WORKER.replace("from None", "from None  # noqa: KC101"))
    check_no_raise_from_none(tmp_path)
    with pytest.raises(AssertionError, match="does not exist"):
        check_no_raise_from_none(tmp_path / "nowhere.py")
    with pytest.raises(AssertionError, match="--quiet: does not exist"):
        check_no_raise_from_none("--quiet")


def test_the_linter_everywhere(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text(WORKER.replace("init_worker", "describe"))
    with pytest.raises(AssertionError, match=r"other.py:5:9: KC109"):
        check_no_raise_from_none(tmp_path, everywhere=True)
    (tmp_path / "other.py").write_text(WORKER.replace("from None", "from exc").replace("OSError", "OSError as exc"))
    check_no_raise_from_none(tmp_path, everywhere=True)
