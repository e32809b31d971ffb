"""Globs mean what they mean in ruff and flake8."""

from __future__ import annotations

from pathlib import Path

import pytest

from keepcause.config.globs import anchored, matcher
from keepcause.config.kinds import GLOBS

HERE = Path("/a[b]/{proj,x}*")


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("build", "build", True),
        ("build", "x/build", True),
        ("build", "rebuild", False),
        ("build", "build/x.py", False),
        ("build/", "x/build", True),
        ("*.py", "x/y.py", True),
        ("*_pb2.py", "x/y_pb2.py", True),
        ("*_pb2.py", "x_pb2.py/y.py", False),
        ("tests/*", "tests/a.py", True),
        ("tests/*", "tests/deep/a.py", True),
        ("tests/*", "x/tests/a.py", False),
        ("./tests/*", "tests/a.py", True),
        ("tests/**", "tests/deep/a.py", True),
        ("tests/**/a.py", "tests/a.py", True),
        ("tests/**/a.py", "tests/x/y/a.py", True),
        ("**/tests/*", "tests/a.py", True),
        ("**/tests/*", "x/tests/a.py", True),
        ("**/tests/*", "mytests/a.py", False),
        ("**/{tests,docs}/*", "x/docs/a.py", True),
        ("{a,b}.py", "b.py", True),
        ("{a,b}.py", "c.py", False),
        ("{a,{b,c}}.py", "c.py", True),
        ("[ab].py", "b.py", True),
        ("[!ab].py", "b.py", False),
        ("?.py", "x.py", True),
        ("[]].py", "].py", True),
        ("[!]].py", "a.py", True),
        ("x+(1).py", "x+(1).py", True),
        ("src//a.py", "src/a.py", True),
        ("src/../a.py", "a.py", True),
    ],
)
def test_a_glob(pattern: str, path: str, expected: bool) -> None:
    assert matcher((anchored(pattern, HERE),))(f"{HERE}/{path}") is expected


def test_where_a_glob_counts_from() -> None:
    assert matcher((anchored("../other/*", Path("/a/b")),))("/a/other/x.py")
    assert matcher((anchored("/x/*.py", Path("/a/b")),))("/x/y.py")
    assert matcher((anchored("x/*.py", Path("/")),))("/x/y.py")
    assert not matcher((anchored("a.py", HERE),))("/a.pyx")
    assert not matcher(())("/a.py")


@pytest.mark.parametrize("pattern", ["", "/", "a\\b", "{a,b", "a}", "x[ab", "[]", "{a,{b}"])
def test_no_glob(pattern: str) -> None:
    with pytest.raises(ValueError, match="expected globs"):
        anchored(pattern, HERE)


def test_names_may_hold_blanks() -> None:
    assert GLOBS.parse("my folder, tests/*,\n  build\n") == ["my folder", "tests/*", "build"]
