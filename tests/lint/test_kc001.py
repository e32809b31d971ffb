"""KC001: when a code of a comment is called unused, and what its fix leaves."""

from __future__ import annotations

import ast
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keepcause.codemod.apply import repair_file
from keepcause.lint.checked import FileReport
from keepcause.lint.engine import Engine, Settings
from keepcause.lint.finding import Grade, Safety
from keepcause.lint.rule import all_rules

if TYPE_CHECKING:
    from pathlib import Path

ALL = frozenset(rule.code for rule in all_rules())
ON = frozenset(rule.code for rule in all_rules() if rule.on_by_default)
START = b"def init_worker():\n    try: f()\n    except X:\n        raise OSError("
SHARED = """\
class Worker:
    def init_device(self):
        opened()


def serve_request():
    opened()


def handle_request():
    opened()


def opened():
    try:
        f()
    except OSError:
        raise X from None{}
"""


def check(folder: Path, text: str, **chosen: object) -> list[str]:
    """The messages of KC001."""
    (folder / "pyproject.toml").touch()
    path = folder / "checked.py"
    path.write_bytes(text.encode())
    report = Engine(Settings(**{"codes": ALL, **chosen})).check(path)  # type: ignore[arg-type]
    assert isinstance(report, FileReport)
    return [finding.message for finding in report.findings if finding.code == "KC001"]


def test_unused_only_where_the_rules_were_on(tmp_path: Path) -> None:
    text = "x = 1  # noqa: {}\n"
    assert check(tmp_path, text.format("KC101"))
    assert not check(tmp_path, text.format("KC101"), codes=ALL - {"KC001"})
    assert not check(tmp_path, text.format("KC101"), codes=ALL - {"KC101"})
    assert not check(tmp_path, text.format("KC1"), codes=ON | {"KC001"})
    assert check(tmp_path, text.format("KC1"), codes=ON | {"KC001", "KC109"})
    assert not check(tmp_path, text.format("KC401,KC109"), codes=ON | {"KC001"})


def test_unused_only_with_all_evidence(tmp_path: Path) -> None:
    text = "x = 1  # noqa: KC101, KC999\n"
    assert not check(tmp_path, text, single_file=True)
    assert not check(tmp_path, text, noqa=False)
    found = {}
    for grade in Grade:
        path = tmp_path / "checked.py"
        check(tmp_path, SHARED.format(""))
        report = Engine(Settings(codes=ON, evidence=grade)).check(path)
        assert isinstance(report, FileReport)
        found[grade] = [finding.code for finding in report.findings]
        assert check(tmp_path, SHARED.format("  # noqa: KC101"), codes=ON | {"KC001"}, evidence=grade) == []
    assert found == {Grade.SURE: [], Grade.LIKELY: [], Grade.POSSIBLE: ["KC101"]}, "the comment was needed by one only"


def test_a_rule_that_another_makes_superfluous_uses_its_comment(tmp_path: Path) -> None:
    text = SHARED.replace("def opened", "def init_worker").format("  # noqa: {}")
    assert check(tmp_path, text.format("KC109")) == []
    assert check(tmp_path, text.format("KC101, KC109")) == []


def test_flake8_never_says_it(tmp_path: Path) -> None:
    (tmp_path / "checked.py").write_text("x = 1  # noqa: KC101, KC999\n")
    command = [sys.executable, "-m", "flake8", "--jobs=1", "--extend-select=KC001", "checked.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def repaired(folder: Path, data: bytes) -> bytes:
    (folder / "pyproject.toml").touch()
    path = folder / "checked.py"
    path.write_bytes(data)
    engine = Engine(Settings(codes=ALL))
    report = engine.check(path)
    assert isinstance(report, FileReport), report
    return repair_file(report, engine, frozenset({Safety.SAFE})).data


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"\xef\xbb\xbf# noqa: KC101\nx = 1\n", b"\xef\xbb\xbfx = 1\n"),
        (b"x = 1\t# noqa: KC101\r\ny = 1\r\n", b"x = 1\r\ny = 1\r\n"),
        (b"x = (1,\r    # noqa: KC101\r  2)", b"x = (1,\r  2)"),
        (b"x = 1  # noqa: KC101", b"x = 1"),
        (b"# coding: latin-1\nx = '\xe4' # \xe4 # noqa: KC101\n", b"# coding: latin-1\nx = '\xe4' # \xe4\n"),
        (b"x = 1  # noqa:KC101,\tW1 KC102,E5  \n", b"x = 1  # noqa:W1 E5  \n"),
        (
            START + b"  # noqa: KC201\n            1) from None\n",
            START.replace(b"X:", b"X as e:") + b"\n            1) from e\n",
        ),
    ],
)
def test_what_a_repair_leaves(before: bytes, after: bytes, tmp_path: Path) -> None:
    assert repaired(tmp_path, before) == after


PARTS = [
    "# noqa",
    "# noqa: KC101",
    ", KC201",
    "KC999",
    ",E501",
    " why",
    "#",
    " ",
    "\t",
    "\\",
    "\n",
    "'",
    "'''",
    "(",
    ")",
    "x",
]


@given(st.lists(st.sampled_from(PARTS), max_size=12).map("".join))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_only_comments_change(tmp_path: Path, text: str) -> None:
    data = f"x = 1  # noqa: KC101\n{text}\n".encode()
    try:
        tree = ast.parse(data)
    except SyntaxError:
        return
    new = repaired(tmp_path, data)
    assert ast.dump(ast.parse(new)) == ast.dump(tree)
    assert repaired(tmp_path, new) == new
    assert new.count(b"E501") == data.count(b"E501")
    assert new.count(b"why") == data.count(b"why")
