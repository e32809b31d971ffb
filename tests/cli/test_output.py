"""Where `keepcause check` prints what: files, counts, colours, and what became of each file."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., subprocess.CompletedProcess[str]]

LAZY = "raise X(f'{(n for n in range(3))}')\n"


def test_an_output_file(project: Path, keepcause: Run) -> None:
    shown = keepcause("check", "--output-format", "sarif").stdout
    done = keepcause("check", "--output-format", "sarif", "--output-file", "reports/keepcause.sarif")
    assert (done.returncode, done.stdout) == (1, "Found 1 finding. `keepcause fix` repairs 1.\n")
    assert (project / "reports" / "keepcause.sarif").read_text() == shown
    done = keepcause("check", "-q", "-o", "full.txt", env={**os.environ, "FORCE_COLOR": "1"})
    assert done.stdout == ""
    assert (project / "full.txt").read_text().startswith("worker.py:6:13: KC101 ")
    done = keepcause("check", "--output-file", "worker.py/x")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("keepcause: worker.py/x: can't be written: ")


@pytest.mark.parametrize("instead", ["--show-files", "--add-noqa"])
def test_no_output_file_where_nothing_would_go_into_it(
    project: Path, keepcause: Run, worker: str, instead: str
) -> None:
    done = keepcause("check", instead, "--output-file", "report.txt")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "keepcause: --output-file takes findings, and --show-files and --add-noqa print none\n"
    assert (project / "worker.py").read_text() == worker


def test_statistics(project: Path, keepcause: Run, worker: str) -> None:
    (project / "lazy.py").write_text(LAZY * 9 + "raise X(f'{(n for n in f())}')\n")
    done = keepcause("check", "--statistics")
    assert done.returncode == 1
    assert done.stdout.splitlines()[:2] == ["10  KC201  [-] lazy-iterator-in-error", " 1  KC101  [*] raise-from-none"]
    assert done.stdout.splitlines()[2].startswith("Found 11 findings. ")
    listed = json.loads(keepcause("check", "--statistics", "--output-format", "json").stdout)
    assert listed[1] == {"code": "KC101", "name": "raise-from-none", "count": 1, "fixable": True, "fixable_count": 1}
    assert [(each["count"], each["fixable_count"]) for each in listed] == [(10, 9), (1, 1)]
    done = keepcause("check", "--statistics", "--output-format", "sarif")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there are full, concise, json" in done.stderr
    (project / "lazy.py").unlink()
    (project / "worker.py").write_text("")
    assert keepcause("check", "--statistics").stdout == "Nothing found.\n"


def test_exit_zero(project: Path, keepcause: Run) -> None:
    assert keepcause("check", "--exit-zero").returncode == 0
    assert keepcause("check", "--exit-zero", "absent.py").returncode == 2


def test_show_files(project: Path, keepcause: Run, worker: str) -> None:
    (project / "a\nb.py").write_text("")
    (project / "pyproject.toml").write_text("[tool.keepcause]\nextend-exclude = ['old']\n")
    (project / "old").mkdir()
    (project / "old" / "worker.py").write_text(worker)
    done = keepcause("check", "--show-files")
    assert (done.returncode, done.stdout, done.stderr) == (0, "a\\nb.py\nworker.py\n", "")
    verbose = keepcause("check", "--show-files", "--verbose")
    assert (verbose.returncode, verbose.stdout) == (0, done.stdout)
    assert re.fullmatch(r"old(/worker\.py)?: excluded by the configuration\n", verbose.stderr)


def test_verbose(project: Path, keepcause: Run, worker: str) -> None:
    (project / "plain.py").write_text("x = 1\n")
    (project / "quiet.py").write_text(f"# keepcause: noqa\n{worker}")
    (project / "pyproject.toml").write_text("[tool.keepcause]\nextend-exclude = ['old']\n")
    (project / "old").mkdir()
    (project / "old" / "worker.py").write_text(worker)
    done = keepcause("check", "--verbose", "-q", "--output-format", "concise")
    assert done.stdout.startswith("worker.py:6:13: KC101 ")
    told = done.stderr.splitlines()
    assert re.fullmatch(r"old(/worker\.py)?: excluded by the configuration", told[0])
    assert told[1:] == [
        "plain.py: not parsed, as nothing in it can be a finding",
        "quiet.py: left out by a comment for the whole file",
        "1 checked",
        "3 configured by pyproject.toml",
        "1 excluded by the configuration",
        "1 left out by a comment for the whole file",
        "1 not parsed, as nothing in it can be a finding",
    ]


def test_verbose_says_which_file_configures(project: Path, keepcause: Run, worker: str) -> None:
    def told(*options: str | Path, **more: object) -> list[str]:
        lines = keepcause("check", "-v", *options, **more).stderr.splitlines()
        return [line for line in lines if " configured by " in line]

    inner = project / "inner"
    (inner / "below").mkdir(parents=True)
    for folder in (project, inner, inner / "below"):
        (folder / "worker.py").write_text(worker)
    (inner / "below" / "pyproject.toml").write_text("[project]\nname = 'configures-nothing'\n")
    assert told() == ["3 configured by no file"]
    (inner / "pyproject.toml").write_text("[tool.keepcause]\n")
    assert told() == ["2 configured by inner/pyproject.toml", "1 configured by no file"]
    assert told(".", cwd=inner / "below") == [f"1 configured by {inner / 'pyproject.toml'}"]
    assert told("--isolated") == ["3 configured by no file"]
    assert told("--config", "inner/pyproject.toml") == ["3 configured by inner/pyproject.toml"]
    assert told("-", cwd=inner, input=worker) == ["1 configured by pyproject.toml"]
    (inner / "pyproject.toml").write_text("[tool.keepcause]\nper-file-ignores = { 'x.py' = ['KC1'] }\n")
    assert told("--select", "KC1") == ["2 configured by inner/pyproject.toml", "1 configured by no file"]


@pytest.mark.parametrize("output_format", ["full", "concise"])
@pytest.mark.parametrize(
    ("variables", "on_terminal", "elsewhere"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"NO_COLOR": ""}, True, False),
        ({"FORCE_COLOR": "1"}, True, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
        ({"TERM": "dumb"}, False, False),
    ],
)
def test_colours(
    project: Path,
    output_format: str,
    variables: dict[str, str],
    on_terminal: bool,
    elsewhere: bool,
) -> None:
    plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    environment = {**plain, "TERM": "xterm", **variables}
    command = [sys.executable, "-m", "keepcause", "check", "--output-format", output_format]
    piped = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=60).stdout
    ours, theirs = pty.openpty()
    try:
        subprocess.run(command, env=environment, stdout=theirs, timeout=60)
        shown = os.read(ours, 100_000).decode().replace("\r\n", "\n")
    finally:
        os.close(ours)
        os.close(theirs)
    assert ("\x1b[1;31mKC101\x1b[0m" in shown) == ("\x1b" in shown) == on_terminal
    assert ("\x1b[1;31mKC101\x1b[0m" in piped) == ("\x1b" in piped) == elsewhere
    assert re.sub(r"\x1b\[[\d;]*m", "", shown) == re.sub(r"\x1b\[[\d;]*m", "", piped)
