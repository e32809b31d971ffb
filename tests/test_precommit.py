"""The hooks, installed and run by the real pre-commit in a repository of somebody else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HOOK_FILES = (".pre-commit-hooks.yaml", "LICENSE", "README.md", "pyproject.toml")
IDENTITY = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")

BAD = """\
def init_device(index):
    try:
        return int(index)
    except ValueError:
        raise RuntimeError("no such device") from None
"""
REPAIRED = """\
def init_device(index):
    try:
        return int(index)
    except ValueError as e:
        raise RuntimeError("no such device") from e
"""
CONFIG = """\
repos:
  - repo: {hooks}
    rev: {revision}
    hooks:
      - id: keepcause
      - id: keepcause-fix
"""


class Repository:
    """A git repository in `path`, with nothing of the user's settings."""

    def __init__(self, path: Path, home: Path) -> None:
        path.mkdir(exist_ok=True)
        self.path = path
        # pre-commit finds Python, and git's hook finds pre-commit, by what stands first on the PATH.
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PYTHON"))},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PRE_COMMIT_HOME": str(home),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            **dict.fromkeys(IDENTITY, "nobody@localhost"),
        }
        self.run("git", "init", "--quiet")

    def run(self, *command: str, expect: int = 0) -> str:
        """What `command` prints; it must end with the exit code `expect`."""
        done = subprocess.run(
            command,
            cwd=self.path,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=180,
        )
        assert done.returncode == expect, done.stdout
        return done.stdout

    def commit(self, expect: int = 0) -> str:
        """What committing everything prints."""
        self.run("git", "add", "--all")
        return self.run("git", "commit", "--quiet", "--message", "Change", expect=expect)


@pytest.fixture
def hooks(tmp_path: Path) -> Repository:
    """The working tree as a repository that offers hooks."""
    folder = tmp_path / "hooks"
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in HOOK_FILES:
        shutil.copy(ROOT / name, folder)
    repository = Repository(folder, tmp_path / "home")
    repository.commit()
    return repository


def test_hooks_fail_repair_and_pass(hooks: Repository, tmp_path: Path) -> None:
    user = Repository(tmp_path / "user", tmp_path / "home")
    revision = hooks.run("git", "rev-parse", "HEAD").strip()
    (user.path / ".pre-commit-config.yaml").write_text(
        CONFIG.format(hooks=hooks.path, revision=revision), encoding="utf-8"
    )
    user.run(sys.executable, "-m", "pre_commit", "install")
    worker = user.path / "worker.py"
    worker.write_text(BAD, encoding="utf-8")

    refused = user.commit(expect=1)
    assert "worker.py:5:9: KC101" in refused
    assert "files were modified by this hook" in refused
    assert worker.read_text(encoding="utf-8") == REPAIRED
    assert user.run("git", "rev-list", "--all", "--count").strip() == "0"

    user.commit()
    assert user.run("git", "show", "HEAD:worker.py") == REPAIRED
