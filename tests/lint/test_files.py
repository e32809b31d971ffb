"""Which program a file belongs to, and which files a folder holds."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from keepcause.lint.files import program_root, python_files


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The folder of the test; what lies above it must not decide."""
    above = (tmp_path, *tmp_path.parents)
    assert not any((up / mark).exists() for up in above for mark in (".git", "pyproject.toml", "setup.cfg", "setup.py"))
    return tmp_path


def make(folder: Path, *names: str) -> None:
    """Make these files, and the folders that they lie in."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


@pytest.mark.parametrize(
    ("files", "asked", "root"),
    [
        (["a.py"], "a.py", "."),
        (["sub/a.py"], "sub/a.py", "sub"),
        (["pkg/__init__.py", "pkg/sub/deep/a.py"], "pkg/sub/deep/a.py", "."),
        (["src/pkg/__init__.py", "src/pkg/sub/__init__.py"], "src/pkg/sub/a.py", "src"),
        (["pyproject.toml", "src/pkg/__init__.py"], "src/pkg/a.py", "."),
        (["setup.py", "pkg/__init__.py"], "pkg/a.py", "."),
        (["setup.cfg", "pkg/__init__.py"], "pkg/a.py", "."),
        (["pkg/__init__.py", "pkg/setup.py"], "pkg/sub/a.py", "."),
        (["pkg/__init__.py", "pkg/sub/setup.cfg"], "pkg/sub/a.py", "."),
        (["pkg/__init__.py", "pkg/sub/pyproject.toml"], "pkg/sub/a.py", "pkg/sub"),
        (["pyproject.toml", "inner/pyproject.toml"], "inner/a.py", "inner"),
        (["a/.git", "a/b/c.py"], "a/b/c.py", "a"),
    ],
)
def test_program_root(tree: Path, files: list[str], asked: str, root: str) -> None:
    make(tree, *files, asked)
    assert program_root(tree / asked) == tree / root


def test_a_folder_outside_of_git(tree: Path) -> None:
    make(tree, "b.py", "a/c.py", "a/x.txt", ".venv/v.py", "a/node_modules/n.py", "a/__pycache__/p.py", ".hidden/h.py")
    (tree / "round").symlink_to(tree)
    (tree / "gone.py").symlink_to("nowhere.py")
    assert python_files(tree) == [".hidden/h.py", "a/c.py", "b.py", "gone.py"]


def test_a_folder_inside_of_git(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tree, "b.py", "deleted.py", "a/c.py", "a/d.txt", "ignored/i.py", "new\nline.py", "ß.py", "inner.py/i.py")
    (tree / ".gitignore").write_text("ignored\n")
    subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
    subprocess.run(["git", "add", "b.py", "deleted.py"], cwd=tree, check=True)
    (tree / "deleted.py").unlink()
    subprocess.run(["git", "init", "-q", "module.py"], cwd=tree, check=True)
    assert python_files(tree) == ["a/c.py", "b.py", "inner.py/i.py", "new\nline.py", "ß.py"]
    assert python_files(tree / "a") == ["c.py"]
    assert python_files(tree / "ignored") == ["i.py"]
    monkeypatch.chdir(tree / "a")
    assert python_files(Path()) == ["c.py"]
    monkeypatch.setenv("GIT_DIR", str(tree / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", os.devnull)
    assert python_files(Path()) == ["c.py"]


def test_no_command_of_the_repository_is_run(tree: Path) -> None:
    make(tree, "a.py")
    subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
    hook = tree / "hook"
    hook.write_text(f"#!/bin/sh\ntouch '{tree}/was-run'\n")
    hook.chmod(0o755)
    subprocess.run(["git", "config", "core.fsmonitor", str(hook)], cwd=tree, check=True)
    assert python_files(tree) == ["a.py"]
    assert not (tree / "was-run").exists()
    subprocess.run(["git", "status"], cwd=tree, check=True, capture_output=True)
    assert (tree / "was-run").exists()
