"""`keepcause rule`, `--version` and wrong usage."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest

from keepcause.lint.rule import all_rules

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., subprocess.CompletedProcess[str]]


def test_version(keepcause: Run) -> None:
    assert keepcause("--version").stdout == f"keepcause {version('keepcause')}\n"
    done = subprocess.run([sys.executable, "-m", "keepcause", "--version"], capture_output=True, text=True, timeout=60)
    assert done.stdout == f"keepcause {version('keepcause')}\n"


@pytest.mark.parametrize("option", ["--version", "-h"])
def test_a_reader_that_has_left_is_no_traceback(tmp_path: Path, option: str) -> None:
    here, there = os.pipe()
    os.close(here)
    command = [sys.executable, "-m", "keepcause", option]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(command, stdout=there, stderr=subprocess.PIPE, cwd=tmp_path, env=buffered, check=False)
    os.close(there)
    assert (done.returncode, done.stderr) == (2, b"")


def test_rule(keepcause: Run) -> None:
    done = keepcause("rule", "KC101")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("# raise-from-none (KC101)\n\n`raise ... from None` hides why")
    assert "\n## Why it is bad\n" in done.stdout
    assert keepcause("rule", "kc101").stdout == done.stdout


def test_rules(keepcause: Run) -> None:
    listed = keepcause("rule").stdout.splitlines()
    assert [line.split()[0] for line in listed] == [rule.code for rule in all_rules()]
    every = keepcause("rule", "--all").stdout
    assert every.count("\n## What it does\n") == len(listed)


def test_unknown_rule(keepcause: Run) -> None:
    done = keepcause("rule", "KC1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("keepcause: no rule has the code 'KC1'; there are KC001, ")


def test_wrong_usage(keepcause: Run) -> None:
    for arguments in ([], ["chek"], ["--vers"], ["check", "--no-such-option"], ["rule", "KC101", "KC201"]):
        done = keepcause(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("usage: keepcause")


def test_the_command_comes_first(keepcause: Run) -> None:
    assert keepcause("-q", "check", ".").stderr.endswith("keepcause: error: the command has to come first\n")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["check", "--slect", "KC101"], "--slect; did you mean --select?"),
        (["check", "--fix", "src"], "--fix; there is a command `keepcause fix`"),
        (["check", "--diff"], "--diff; `keepcause fix` has it"),
        (["fix", "--statistics"], "--statistics; `keepcause check` has it"),
        (["check", "--evidnce=sure"], "--evidnce=sure; did you mean --evidence?"),
        (["check", "--stat"], "--stat; did you mean --statistics?"),
        (["trace", "--rots", "."], "--rots; did you mean --roots?"),
        (["check", "--roots"], "--roots; `keepcause trace` has it"),
        (["fix", "--exit-zero"], "--exit-zero; `keepcause check` has it"),
        (["rule", "KC101", "KC201"], "KC201"),
    ],
)
def test_an_unknown_option_is_told_by_its_command(keepcause: Run, arguments: list[str], told: str) -> None:
    usage, *_, error = keepcause(*arguments).stderr.splitlines()
    command = f"keepcause {arguments[0]}"
    assert usage.startswith(f"usage: {command} ")
    assert error == f"{command}: error: unrecognized arguments: {told}"


def test_paths_stand_anywhere(keepcause: Run, tmp_path: Path) -> None:
    for name in ("a.py", "b.py", "-c.py"):
        (tmp_path / name).touch()
    assert keepcause("check", "a.py", "--show-files", "b.py", cwd=tmp_path).stdout == "a.py\nb.py\n"
    assert keepcause("check", "--show-files", "--", "-c.py", "a.py", cwd=tmp_path).stdout == "-c.py\na.py\n"
    assert keepcause("check", "b.py", "--show-files", "--", "-c.py", cwd=tmp_path).stdout == "b.py\n-c.py\n"
    assert keepcause("check", "--show-files", "--", "--", cwd=tmp_path).stderr == "keepcause: --: does not exist\n"
    assert "--files-from: expected one" in keepcause("check", "--files-from", "--", "b.py", cwd=tmp_path).stderr


def test_wrong_choices_are_told_the_right_ones(keepcause: Run) -> None:
    told = keepcause("check", "--evidence", "maybe").stderr
    assert "(choose from sure, likely, possible)" in told.replace("'", "")  # later versions of argparse do not quote


def test_help(keepcause: Run) -> None:
    assert "repair what `check` finds" in keepcause("--help").stdout
    assert "--unsafe-fixes" in keepcause("fix", "--help").stdout
