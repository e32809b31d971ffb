"""Which program a file belongs to, and which files a folder holds."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from keepcause.lint.files import Tree, program_root


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
    assert Tree().python_files(tree) == [".hidden/h.py", "a/c.py", "b.py", "gone.py"]


def test_a_folder_that_can_not_be_listed_is_told_each_time(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tree, "a.py", "sub/b.py", "sub/inner/c.py")
    scandir = os.scandir

    def refusing(folder: str) -> object:
        if folder.endswith("sub"):
            raise PermissionError(13, "Permission denied", folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refusing)
    monkeypatch.chdir(tree)
    both = Tree()
    for folder, name in ((tree, str(tree / "sub")), (Path(), "./sub")):
        failures: list[OSError] = []
        assert both.python_files(folder, failures.append) == ["a.py"]
        assert [failure.filename for failure in failures] == [name]
        assert both.python_files(folder, left_out="sub".__eq__) == ["a.py"]


def test_folders_are_listed_once(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tree, "pyproject.toml", "a.py", "sub/b.py", "out/c.py", "sub/test_d.py")
    listed: list[str] = []
    scandir = os.scandir

    def counting(folder: str) -> object:
        listed.append(folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", counting)
    both = Tree()
    names = list(both.expand([tree, tree / "sub"], lambda path, top: path == f"{tree}/out"))
    assert names == [f"{tree}/{name}" for name in ("a.py", "sub/b.py", "sub/test_d.py")]
    assert both.root(f"{tree}/sub") == tree
    assert both.program_files(str(tree)) == ["a.py", "out/c.py", "sub/b.py"]
    assert sorted(listed) == [str(tree), f"{tree}/out", f"{tree}/sub"]


def test_a_folder_inside_of_git(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tree, "b.py", "deleted.py", "a/c.py", "a/d.txt", "ignored/i.py", "new\nline.py", "ß.py", "inner.py/i.py")
    (tree / ".gitignore").write_text("ignored\n")
    subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
    subprocess.run(["git", "add", "b.py", "deleted.py"], cwd=tree, check=True)
    (tree / "deleted.py").unlink()
    subprocess.run(["git", "init", "-q", "module.py"], cwd=tree, check=True)
    assert Tree().python_files(tree) == ["a/c.py", "b.py", "inner.py/i.py", "new\nline.py", "ß.py"]
    assert Tree().python_files(tree / "a") == ["c.py"]
    assert Tree().python_files(tree / "ignored") == ["i.py"]
    monkeypatch.chdir(tree / "a")
    assert Tree().python_files(Path()) == ["c.py"]
    monkeypatch.setenv("GIT_DIR", str(tree / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", os.devnull)
    assert Tree().python_files(Path()) == ["c.py"]


def git(tree: Path, *arguments: str) -> str:
    """What git answers; whatever it calls is as harmless as the test."""
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "core.fsmonitor=false", *arguments]
    return subprocess.run(command, cwd=tree, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def trap(tree: Path) -> Path:
    """A command that leaves `was-run` in the tree's folder, which is a repository."""
    git(tree, "init", "-q")
    hook = tree / "trap"
    hook.write_text(f"#!/bin/sh\ntouch '{tree}/was-run'\n")
    hook.chmod(0o755)
    return hook


def test_no_command_of_the_repository_is_run(tree: Path, trap: Path) -> None:
    make(tree, "a.py")
    git(tree, "config", "core.fsmonitor", str(trap))
    assert Tree().python_files(tree) == ["a.py"]
    assert not (tree / "was-run").exists()
    subprocess.run(["git", "status"], cwd=tree, check=True, capture_output=True)
    assert (tree / "was-run").exists()


def test_no_other_command_of_the_repository_is_run(tree: Path, trap: Path) -> None:
    make(tree, "a.py", "hooks/a.txt")
    (tree / ".gitattributes").write_text("*.py filter=trap diff=trap\n")
    for hook in ("post-index-change", "reference-transaction", "fsmonitor-watchman", "query-watchman"):
        (tree / "hooks" / hook).symlink_to(trap)
    for key in ("filter.trap.clean", "filter.trap.smudge", "filter.trap.process", "diff.trap.textconv"):
        git(tree, "config", key, str(trap))
    for key in ("core.pager", "core.editor", "core.sshCommand", "core.gitProxy", "credential.helper", "gpg.program"):
        git(tree, "config", key, str(trap))
    for key in ("alias.ls-files", "alias.check-ignore"):
        git(tree, "config", key, f"!{trap}")
    git(tree, "config", "core.hooksPath", str(tree / "hooks"))
    git(tree, "config", "pager.ls-files", str(trap))
    assert Tree().python_files(tree) == ["a.py"]
    assert not (tree / "was-run").exists()
    subprocess.run(["git", "add", "a.py"], cwd=tree, check=False, capture_output=True)
    assert (tree / "was-run").exists()


@pytest.mark.parametrize("address", ["{tree}", "ext::{trap}", "git@localhost:nowhere", "git://localhost/nowhere"])
def test_nothing_is_fetched(tree: Path, trap: Path, address: str) -> None:
    """A partial clone whose ignore file is not there, beside a file that it could ignore."""
    make(tree, "a.py", "sub/.gitignore", "sub/b.py")
    (tree / "sub" / ".gitignore").write_text("none\n")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "all")
    blob = git(tree, "rev-parse", "HEAD:sub/.gitignore")
    git(tree, "update-index", "--skip-worktree", "sub/.gitignore")
    (tree / "sub" / ".gitignore").unlink()
    (tree / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    make(tree, "sub/new.py")
    for key, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": address.format(tree=tree, trap=trap),
        "remote.origin.uploadpack": str(trap),
        "core.sshCommand": str(trap),
        "core.gitProxy": str(trap),
        "protocol.allow": "always",
        "protocol.ext.allow": "always",
    }.items():
        git(tree, "config", key, value)
    assert Tree().python_files(tree) == ["a.py", "sub/b.py", "sub/new.py"]
    assert not (tree / "was-run").exists()
    subprocess.run(["git", "cat-file", "-e", blob], cwd=tree, check=False, capture_output=True)
    assert (tree / "was-run").exists()


def test_a_repository_of_someone_else(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git itself refuses it; its files are found all the same, by a walk."""
    make(tree, "a.py", "ignored.py")
    (tree / ".gitignore").write_text("ignored.py\n")
    git(tree, "init", "-q")
    assert Tree().python_files(tree) == ["a.py"]
    if os.geteuid() != 0:
        pytest.skip("only a superuser may give folders away")
    monkeypatch.setenv("HOME", str(tree))
    monkeypatch.delenv("SUDO_UID", raising=False)
    for path in (tree, tree / ".git"):
        os.chown(path, 1234, -1)
    try:
        assert Tree().python_files(tree) == ["a.py", "ignored.py"]
    finally:
        for path in (tree, tree / ".git"):
            os.chown(path, os.geteuid(), -1)


def test_git_is_not_waited_for_without_end(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tree, "a.py", "sub/b.py")
    git(tree, "init", "-q")
    os.mkfifo(tree / "sub" / ".gitignore")
    monkeypatch.setattr("keepcause.lint.files._GIT_SECONDS", 0.5)
    failures: list[OSError] = []
    assert Tree().python_files(tree, failures.append) == ["a.py", "sub/b.py"]
    assert [str(failure.strerror) for failure in failures] == ["git has not listed it within 0.5 s, so it is walked"]
