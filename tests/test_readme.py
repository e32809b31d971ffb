"""The README's scripts and terminal sessions, run as written."""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
SESSION = re.compile(r"^\$ (?P<command>.*)\n(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE)

BLOCKS = [(match["kind"], match["text"]) for match in BLOCK.finditer((ROOT / "README.md").read_text(encoding="utf-8"))]
SESSIONS = [
    match.group("command", "output") for kind, text in BLOCKS if kind == "console" for match in SESSION.finditer(text)
]


SCRIPTS = {name[1]: text for kind, text in BLOCKS if kind == "python" and (name := re.match(r"# (\w+\.py)\n", text))}
"""The scripts by the file name that their first line gives."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A program with the example service and the scripts."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name, text in SCRIPTS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_there_are_sessions() -> None:
    assert {command.split()[0] for command, _ in SESSIONS} == {"keepcause", "flake8", "python"}


@pytest.mark.parametrize(("command", "output"), SESSIONS, ids=[command for command, _ in SESSIONS])
def test_session_prints_what_the_readme_says(folder: Path, command: str, output: str) -> None:
    search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env={**os.environ, "PATH": search, "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    assert doctest.OutputChecker().check_output(output, done.stdout, doctest.ELLIPSIS), done.stdout


def test_tests_for_other_projects_pass_there(tmp_path: Path) -> None:
    (tmp_path / "test_startup.py").write_text(SCRIPTS["test_startup.py"], encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
