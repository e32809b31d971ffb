"""What is looked at: standard input, lists of files, excluded files, stubs and scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., subprocess.CompletedProcess[str]]

START = "from multiprocessing import Process\nfrom shards import opened\n\nProcess(target=opened).start()\n"
OPENED = """\
def opened(path):
    try:
        return open(path)
    except OSError:
        raise KeyError(path) from None
"""


def files(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The files with findings, in the order of concise output."""
    return [line.split(":")[0] for line in done.stdout.splitlines() if ": KC" in line]


@pytest.fixture
def check(project: Path, keepcause: Run) -> Run:
    """Runs `keepcause check` with concise output."""
    return lambda *arguments, **options: keepcause("check", "-q", "--output-format=concise", *arguments, **options)


def table(folder: Path, text: str) -> None:
    """Write the folder's `[tool.keepcause]`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(f"[tool.keepcause]\n{text}\n")


def test_stdin(check: Run, worker: str) -> None:
    done = check("-", input=worker)
    assert (done.returncode, files(done), done.stderr) == (1, ["-"], "")
    assert files(check("--stdin-filename", "pkg/new.py", "-", input=worker)) == ["pkg/new.py"]
    assert files(check("--stdin-filename", "pkg/new.py", input=worker)) == ["pkg/new.py"]
    assert check("-", input="").returncode == 0
    done = check("-", input=worker + "def (")
    assert (done.returncode, done.stderr) == (2, "keepcause: -:7: invalid syntax\n")
    for text in ("\ufeff" + worker, worker.replace("\n", "\r\n")):
        assert files(check("-", input=text)) == ["-"]
    assert check("-", input="# \udcff\n" + worker).returncode == 2


def test_a_notebook_on_stdin(project: Path, keepcause: Run) -> None:
    """Its JSON may be Python by chance, in which nothing is found."""
    for command, output in (("check", "Nothing found in what could be checked.\n"), ("fix", "{}")):
        done = keepcause(command, "--stdin-filename=a/b.ipynb", "-", input="{}")
        assert (done.returncode, done.stdout) == (2, output)
        assert done.stderr.startswith("keepcause: a/b.ipynb: is a notebook; check what `jupyter nbconvert")


def test_stdin_is_a_file_of_its_program(project: Path, check: Run) -> None:
    (project / "start.py").write_text(START)
    assert files(check("-", input=OPENED)) == []
    assert files(check("--stdin-filename=shards.py", "-", input=OPENED)) == ["shards.py"]
    (project / "shards.py").write_text("def other(): ...\n" * 3 + OPENED)
    assert files(check("--stdin-filename=shards.py", "-", input="import os\n\n\n" + OPENED)) == ["shards.py"]
    assert files(check("--stdin-filename=shards.py", "-", input=OPENED.replace("opened", "closed"))) == []


def test_stdin_has_its_files_configuration(project: Path, check: Run, worker: str) -> None:
    table(project / "a", "ignore = ['KC101']")
    assert files(check("--stdin-filename=a/x.py", "-", input=worker)) == []
    table(project, "per-file-ignores = { 'b/*' = ['KC1'] }\nextend-exclude = ['c']")
    assert files(check("--stdin-filename=b/x.py", "-", input=worker)) == []
    assert files(check("--stdin-filename=c/x.py", "-", input=worker)) == ["c/x.py"]
    assert files(check("--stdin-filename=c/x.py", "-", "--force-exclude", input=worker)) == []


def test_fix_of_stdin_prints_what_it_became(project: Path, keepcause: Run, worker: str) -> None:
    fixed = worker.replace("OSError:", "OSError as e:").replace("None", "e")
    done = keepcause("fix", "-", input=worker)
    assert (done.returncode, done.stdout, done.stderr) == (0, fixed, "KC101: 1 repaired, 0 left\n")
    done = keepcause("fix", "--stdin-filename=worker.py", "-", "-q", input=worker)
    assert (done.returncode, done.stdout, done.stderr) == (0, fixed, "")
    assert (project / "worker.py").read_text() == worker
    lines = "\ufeff" + worker.replace("\n", "\r\n")
    command = [sys.executable, "-m", "keepcause", "fix", "-q", "-"]
    output = subprocess.run(command, input=lines.encode(), capture_output=True, timeout=60).stdout
    assert output.decode() == "\ufeff" + fixed.replace("\n", "\r\n")
    done = keepcause("fix", "-", "--diff", input=worker)
    assert done.returncode == 1
    assert "+        except OSError as e:\n" in done.stdout


@pytest.mark.parametrize("text", ["x = 1\n", "", "try: f()\nexcept E: raise X from None\ndef (\n"])
def test_fix_of_stdin_loses_nothing(project: Path, keepcause: Run, text: str) -> None:
    assert keepcause("fix", "-", input=text).stdout == text
    table(project, "exclude = ['x.py']\nforce-exclude = true")
    assert keepcause("fix", "--stdin-filename=x.py", "-", input=text).stdout == text


def test_fix_of_stdin_says_what_is_left(project: Path, keepcause: Run) -> None:
    unsafe = "def f(rows):\n    raise ValueError(f'{rows()} {(row for row in rows())}')\n"
    done = keepcause("fix", "-", input=unsafe)
    assert (done.returncode, done.stdout) == (1, unsafe)
    assert done.stderr.startswith("-:2:5: KC201 ")
    assert keepcause("fix", "-", "--unsafe-fixes", input=unsafe).returncode == 0
    table(project, "unsafe-fixes = true")
    assert keepcause("fix", "-", input=unsafe).returncode == 0
    assert "`keepcause fix` repairs 1." in keepcause("check", "-", input=unsafe).stdout
    assert keepcause("fix", "-", "--no-unsafe-fixes", input=unsafe).returncode == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-", "worker.py"], "`-` is one file's text: no other path can be named beside it; a file `-` is `./-`"),
        (["-", "-"], "`-` is one file's text"),
        (["-", "--files-from", "-"], "`-` is one file's text"),
        (["--stdin-filename=", "-"], "--stdin-filename: . is a folder; name a file in it"),
        (["--stdin-filename=a.py", "worker.py"], "--stdin-filename says which file the text of `-` is"),
        (["--stdin-filename=a.py", "--files-from=x"], "--stdin-filename says which file the text of `-` is"),
        ([""], "a path is empty; the working directory is `.`"),
        (["--files-from=nowhere"], "nowhere: can't be read: No such file or directory"),
        (["--files-from=."], ".: can't be read: Is a directory"),
        (["--config=nowhere.toml"], "nowhere.toml: can't be read: No such file or directory"),
        (["--config=pyproject.toml"], "pyproject.toml: has no [tool.keepcause]"),
    ],
)
def test_wrong_inputs(check: Run, arguments: list[str], says: str) -> None:
    done = check(*arguments, input="")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"keepcause: {says}")


def test_no_stdin(project: Path) -> None:
    command = f"'{sys.executable}' -m keepcause check - <&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_files_from(project: Path, check: Run, worker: str) -> None:
    for name in ("a.py", "b c.py", "new\nline.py"):
        (project / name).write_text(worker)
    (project / "README.md").write_text("raise X from None (\n")
    (project / "list").write_text("a.py\r\n\r\nREADME.md\nb c.py\n")
    assert files(check("--files-from=list")) == ["a.py", "b c.py"]
    assert files(check("--files-from=-", input="a.py")) == ["a.py"]
    assert files(check("--files-from=list", "worker.py", "a.py")) == ["worker.py", "a.py", "b c.py"]
    assert files(check("--files-from=-", input="new\nline.py\0a.py\0")) == [r"new\nline.py", "a.py"]
    for empty in ("", "\n\n", "README.md\n"):
        done = check("--files-from=-", input=empty)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = check("--files-from=-", input="gone.py\n.\n")
    assert (done.returncode, done.stderr) == (2, "keepcause: gone.py: does not exist\n")
    assert "worker.py" in files(done)
    long = "n" * 300
    done = check("--files-from=-", input=f"{long}\nworker.py\n")
    assert (files(done), done.stderr) == (["worker.py"], f"keepcause: {long}: does not exist\n")


def test_stubs_and_scripts(project: Path, check: Run, worker: str) -> None:
    (project / "worker.pyi").write_text(worker)
    for name, first in (
        ("env", "#!/usr/bin/env python3.11 -u"),
        ("plain", "#!/usr/bin/python"),
        ("shell", "#!/bin/sh"),
    ):
        (project / name).write_text(f"{first}\n{worker}")
    os.mkfifo(project / "pipe")
    assert files(check()) == ["worker.py"]
    assert files(check("env", "plain", "worker.pyi")) == ["env", "plain", "worker.pyi"]
    done = check("--files-from=-", input="env\nplain\nshell\nworker.pyi\npipe\n")
    assert (files(done), done.stderr) == (
        ["env", "plain", "worker.pyi"],
        "keepcause: pipe: can't be read: not a regular file\n",
    )


def test_exclude(project: Path, check: Run, worker: str) -> None:
    names = [
        "a/x.py",
        "a/build/x.py",
        "build/deep/x.py",
        "gen/a_pb2.py",
        "sub/gen/b.py",
        "sub/build/b.py",
        "node_modules/x.py",
    ]
    for name in names:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(worker)
    kept = ["a/x.py", "gen/a_pb2.py", "sub/gen/b.py", "worker.py"]
    for git in (False, True):
        if git:
            subprocess.run(["git", "init", "-q"], cwd=project, check=True)
        table(project, "extend-exclude = ['build']")
        assert files(check()) == kept
        assert files(check("--extend-exclude=*_pb2.py,sub/gen")) == ["a/x.py", "worker.py"]
        assert files(check("build", "sub/build/b.py")) == ["build/deep/x.py", "sub/build/b.py"]
        assert files(check("build", "sub/build/b.py", "worker.py", "--force-exclude")) == ["worker.py"]
        assert files(check(cwd=project / "sub")) == ["gen/b.py"]
        table(project / "sub", "exclude = ['/nowhere', 'gen/*']")
        assert files(check()) == ["a/x.py", "gen/a_pb2.py", "sub/build/b.py", "worker.py"]
        table(project, "extend-exclude = ['sub', 'build']")
        assert files(check()) == ["a/x.py", "gen/a_pb2.py", "worker.py"]
        table(project, "exclude = ['*']")
        done = check()
        assert (done.returncode, done.stderr) == (2, "keepcause: .: holds no Python files that are not excluded\n")
        (project / "sub" / "pyproject.toml").unlink()


def test_excluded_files_are_still_evidence(project: Path, check: Run) -> None:
    (project / "start.py").write_text(START)
    (project / "shards.py").write_text(OPENED)
    assert files(check("--exclude=start.py")) == ["shards.py", "worker.py"]


def test_per_file_ignores(project: Path, check: Run, worker: str) -> None:
    for name in ("tests/a.py", "src/a.py"):
        (project / name).parent.mkdir()
        (project / name).write_text(worker)
    table(project, "per-file-ignores = { 'worker.py' = ['KC'] }")
    assert files(check()) == ["src/a.py"]
    assert files(check("--per-file-ignores=src/*:KC2,KC101")) == ["worker.py"]
    table(project, "per-file-ignores = { '!src/**.py' = ['KC101'] }")
    assert files(check()) == ["src/a.py"]


def test_a_named_file_of_configuration(project: Path, check: Run, worker: str) -> None:
    table(project / "sub", "select = []")
    (project / "sub" / "x.py").write_text(worker)
    (project / "ci").mkdir()
    (project / "ci" / "any.toml").write_text(
        "[tool.keepcause]\nper-file-ignores = { 'worker.py' = ['KC1'], 'x/*' = [] }"
    )
    assert files(check("--config=ci/any.toml")) == ["sub/x.py"]
    (project / "ci" / "any.toml").write_text("[tool.keepcause]\nexclude = ['./sub/*']")
    assert files(check("--config=ci/any.toml")) == ["worker.py"]


def test_a_byte_order_mark_in_pyproject(project: Path, check: Run) -> None:
    (project / "pyproject.toml").write_bytes(b"\xef\xbb\xbf[tool.keepcause]\r\nselect = []\r\n")
    assert check().returncode == 0


def test_the_longer_code_counts(check: Run) -> None:
    assert files(check("--ignore=KC1")) == []
    assert files(check("--ignore=KC1", "--extend-select=KC101")) == ["worker.py"]
    assert files(check("--ignore=KC101", "--extend-select=KC101")) == []
    assert json.loads(check("--ignore=KC1", "--output-format=json").stdout) == []
