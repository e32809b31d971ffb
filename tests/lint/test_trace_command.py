"""`keepcause trace`, and declared functions in every command that reads them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from keepcause import cli, commands

if TYPE_CHECKING:
    from pathlib import Path

HIDES = """\
    try:
        open("shard")
    except OSError:
        raise RuntimeError("no shard") from None
"""
PROGRAM = f"""\
from multiprocessing import Process


def start():
    Process(target=enter)


def enter():
    first()


def first():
    second()


def second():
{HIDES}

def other():
{HIDES}"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: a program of one file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    return tmp_path


def declare(project: Path, *lines: str) -> None:
    """Write these lines into `[tool.keepcause]`."""
    (project / "pyproject.toml").write_text("\n".join(["[tool.keepcause]", *lines, ""]), encoding="utf-8")


def test_every_function_of_a_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["trace", "program.py"]) == commands.CLEAN
    assert (
        capsys.readouterr().out
        == """\
program.py:4: start
  worker-init (sure):
    start  program.py:4  starts workers: Process(target=enter) at line 5

program.py:8: enter
  worker-init (sure):
    Process(target=enter)  program.py:5  launch site
    enter  program.py:8  launch target

program.py:12: first
  worker-init (sure):
    Process(target=enter)  program.py:5  launch site
    enter  program.py:8  launch target
    first  program.py:12  called at line 9 of program.py

program.py:16: second
  worker-init (likely):
    Process(target=enter)  program.py:5  launch site
    enter  program.py:8  launch target
    first  program.py:12  called at line 9 of program.py
    second  program.py:16  called at line 13 of program.py

program.py:23: other
  not worker-init: nothing in the program is seen to call it

"""
    )


@pytest.mark.parametrize(
    ("line", "name"), [(1, "<module>"), (8, "enter"), (9, "enter"), (16, "second"), (20, "second")]
)
def test_the_function_around_a_line(project: Path, line: int, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["trace", f"program.py:{line}"]) == commands.CLEAN
    out = capsys.readouterr().out
    assert re.findall(r"^program\.py:[1-9]\d*: (\S+)$", out, re.MULTILINE) == [name]
    assert cli.main(["trace", f"program.py:{line}:9"]) == commands.CLEAN
    assert capsys.readouterr().out == out, "the place of a finding has a column too"


def test_several_places_and_a_name_with_a_colon(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "odd:3").write_text("def odd(): ...\n", encoding="utf-8")
    assert cli.main(["trace", "program.py:9", str(project / "program.py:24"), "odd:3", "odd:3:1"]) == commands.CLEAN
    assert re.findall(r": (\S+)\n", capsys.readouterr().out) == ["enter", "other", "odd", "odd"]


@pytest.mark.parametrize(
    ("name", "data", "complaint"),
    [
        ("nothing.py", None, "nothing.py: does not exist"),
        ("nothing.py:3", None, "nothing.py: does not exist"),
        ("nothing.py:3:9", None, "nothing.py: does not exist"),
        ("notebook.ipynb:1", b"{}", "notebook.ipynb: is a notebook; "),
        (".", None, ".: is a folder; name a file, or list the launch sites in it by --roots"),
        ("program.py:0", None, "program.py: has no line 0: its lines are 1 to 27"),
        ("program.py:28", None, "program.py: has no line 28: its lines are 1 to 27"),
        ("broken.py", b"def f(:\n", "broken.py:1: invalid syntax"),
        ("broken.py:1", b"def f(:\n", "broken.py:1: invalid syntax"),
        ("bytes.py", b"x = '\xff'\n", "bytes.py:1: not valid utf-8: invalid start byte at byte 5"),
        ("deep.py", b"x" + b".x()" * 5000, "deep.py: nested too deeply to be"),
        ("empty.py:1", b"", "empty.py: has no line 1: it is empty"),
        (os.devnull, None, f"{os.devnull}: can't be read: not a regular file"),
    ],
)
def test_what_can_not_be_traced(
    project: Path, name: str, data: bytes | None, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if data is not None:
        (project / name.partition(":")[0]).write_bytes(data)
    assert cli.main(["trace", name, "program.py:9"]) == commands.TROUBLE
    out, err = capsys.readouterr()
    assert err.startswith(f"keepcause: {complaint}")
    assert err.count("\n") == 1
    assert out.startswith("program.py:8: enter\n")


def test_nothing_to_tell_of(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "plain.py").write_text("x = 1\n", encoding="utf-8")
    for arguments, told in (["plain.py"], "functions"), (["--roots", "plain.py"], "launch sites"):
        assert cli.main(["trace", *arguments]) == commands.CLEAN
        assert capsys.readouterr().out == f"No {told} found.\n"


def test_launch_sites_of_a_folder(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inner = project / "inner"
    inner.mkdir()
    (inner / "pyproject.toml").touch()
    (inner / "program.py").write_text(PROGRAM.replace("target=enter", "target=unknown"), encoding="utf-8")
    (inner / "broken.py").write_text("Process(target=", encoding="utf-8")
    assert cli.main(["trace", "--roots", "."]) == commands.TROUBLE
    out, err = capsys.readouterr()
    assert (
        out
        == """\
inner/program.py:5: Process(target=unknown) -> unknown
program.py:5: Process(target=enter) -> enter (program.py:8)
"""
    )
    assert err == "keepcause: inner/broken.py:1: '(' was never closed\n"
    assert cli.main(["trace", "--roots", "inner/program.py", "nowhere"]) == commands.TROUBLE
    out, err = capsys.readouterr()
    assert out == "inner/program.py:5: Process(target=unknown) -> unknown\n"
    assert err == "keepcause: nowhere: does not exist\n"


def test_declared_functions_in_trace(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    declare(project, 'worker-init = ["program:other"]', 'not-worker-init = ["program.first"]')
    assert cli.main(["trace", "program.py:12", "program.py:16", "program.py:23"]) == commands.CLEAN
    assert (
        capsys.readouterr().out
        == """\
program.py:12: first
  not worker-init: declared `not-worker-init`

program.py:16: second
  not worker-init: its one caller is not on a worker-init path
  its callers:
    first  program.py:13  not worker-init: declared `not-worker-init`

program.py:23: other
  worker-init (sure):
    other  program.py:23  declared `worker-init`

"""
    )
    assert cli.main(["trace", "--isolated", "program.py:12"]) == commands.CLEAN
    assert "worker-init (sure)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("mark", "lines", "found"),
    [
        ("", [], [20]),
        ("", ['worker-init = ["program.*"]'], [20, 27]),
        ("", ['worker-init = ["program:other"]', 'not-worker-init = ["*:second"]'], [27]),
        ("  # keepcause: worker-init", ['not-worker-init = ["*"]'], [27]),
        ("  # noqa: D103  # keepcause: worker-init", [], [20, 27]),
        ("  # keepcause: not-worker-init", ['worker-init = ["*"]'], [20]),
    ],
)
def test_declared_functions_in_check_fix_and_flake8(
    project: Path, mark: str, lines: list[str], found: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    path = project / "program.py"
    text = PROGRAM.replace("def other():", f"def other():{mark}")
    path.write_text(text, encoding="utf-8")
    declare(project, 'select = ["KC101"]', *lines)
    cli.main(["check", "--output-format=concise", "-q"])
    assert reported(capsys.readouterr().out) == found
    done = subprocess.run(
        [sys.executable, "-m", "flake8", "--jobs=1", "--select=KC101", "."], capture_output=True, text=True, timeout=60
    )
    assert reported(done.stdout) == found, done.stderr
    assert cli.main(["fix", "-q"]) == commands.CLEAN
    repaired = path.read_text(encoding="utf-8").splitlines()
    assert [n for n, line in enumerate(repaired, 1) if "from None" not in line and "raise" in line] == found


def reported(output: str) -> list[int]:
    """The lines of program.py with a finding."""
    return [int(line) for line in re.findall(r"program\.py:(\d+):", output)]
