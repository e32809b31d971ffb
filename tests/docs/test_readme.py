"""The README's scripts and terminal sessions, run as written."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from walk import ROOT, File, Reader, Session, page

if TYPE_CHECKING:
    from pathlib import Path

STEPS = page("README.md")
SESSIONS = [step for step in STEPS if isinstance(step, Session)]
SCRIPTS = [step for step in STEPS if isinstance(step, File) and step.name.endswith(".py")]


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    """A reader in a program with the example service and the README's scripts."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    made = Reader(tmp_path, tmp_path)
    for script in SCRIPTS:
        made.write(script)
    return made


def test_there_are_sessions() -> None:
    assert {session.command.split()[0] for session in SESSIONS} == {"keepcause", "flake8", "python"}


@pytest.mark.parametrize("session", SESSIONS, ids=[session.command for session in SESSIONS])
def test_session_prints_what_the_readme_says(reader: Reader, session: Session) -> None:
    reader.see(session)


def test_tests_for_other_projects_pass_there(tmp_path: Path) -> None:
    (script,) = (script for script in SCRIPTS if script.name == "test_startup.py")
    (tmp_path / script.name).write_text(script.text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
