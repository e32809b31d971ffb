"""A clone of keepcause, and a reader in a project beside it."""

from __future__ import annotations

import itertools
import shutil
from typing import TYPE_CHECKING

import pytest

from walk import ROOT, Reader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

OFFERED = (".pre-commit-hooks.yaml", "LICENSE", "README.md", "action.yml", "pyproject.toml")


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working tree as a reader clones it, `keepcause`, on the branch `main`."""
    folder = tmp_path_factory.mktemp("beside") / "keepcause"
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name in OFFERED:
        shutil.copy(ROOT / name, folder)
    maintainer = Reader(folder, folder)
    maintainer.run("git init --quiet --initial-branch main && git add --all && git commit --quiet --message All")
    return folder


@pytest.fixture(scope="session")
def project(clone: Path) -> Callable[[], Reader]:
    """Makes a reader in a new folder beside the clone; they share what pre-commit has installed."""
    numbers = itertools.count(1)

    def make() -> Reader:
        folder = clone.parent / f"project{next(numbers)}"
        folder.mkdir()
        return Reader(folder, clone.parent / "pre-commit")

    return make


@pytest.fixture
def reader(project: Callable[[], Reader]) -> Reader:
    """A reader in a new git repository beside the clone."""
    made = project()
    made.run("git init --quiet --initial-branch main")
    return made
