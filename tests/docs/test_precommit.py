"""The hooks, installed and run by the real pre-commit in a repository of somebody else, as the README says."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest
import yaml

from walk import ROOT, File, Reader, page

if TYPE_CHECKING:
    from collections.abc import Callable

(CONFIG,) = (step for step in page("README.md") if isinstance(step, File) and step.name == ".pre-commit-config.yaml")
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}

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
COMMIT = "git add --all && git commit --quiet --message Change"


@pytest.fixture
def hooked(project: Callable[[], Reader]) -> Callable[[str], Reader]:
    """Makes a reader in a repository with the README's configuration, but with this hook instead."""

    def make(hook: str) -> Reader:
        reader = project()
        reader.run("git init --quiet --initial-branch main")
        reader.write(File(CONFIG.name, CONFIG.text.replace("- id: keepcause-fix", f"- id: {hook}")))
        reader.run("pre-commit autoupdate --bleeding-edge && pre-commit install")
        return reader

    return make


def test_a_bad_commit_is_refused_repaired_and_passes(hooked: Callable[[str], Reader]) -> None:
    reader = hooked("keepcause-fix")
    worker = reader.folder / "worker.py"
    worker.write_text(BAD, encoding="utf-8")

    refused = reader.run(COMMIT, expect=1)
    assert "KC101: 1 repaired, 0 left" in refused
    assert "files were modified by this hook" in refused
    assert worker.read_text(encoding="utf-8") == REPAIRED
    assert reader.run("git rev-list --all --count").strip() == "0"

    reader.run(COMMIT)
    assert reader.run("git show HEAD:worker.py") == REPAIRED


def test_the_checking_hook_changes_nothing(hooked: Callable[[str], Reader]) -> None:
    reader = hooked("keepcause")
    worker = reader.folder / "worker.py"
    worker.write_text(BAD, encoding="utf-8")

    refused = reader.run(COMMIT, expect=1)
    assert "worker.py:5:9: KC101" in refused
    assert "files were modified" not in refused
    assert worker.read_text(encoding="utf-8") == BAD

    worker.write_text(REPAIRED, encoding="utf-8")
    reader.run(COMMIT)


def test_evidence_comes_from_files_that_the_commit_leaves_alone(hooked: Callable[[str], Reader]) -> None:
    reader = hooked("keepcause")
    (reader.folder / "start.py").write_text(
        "from multiprocessing import Process\n\nfrom shards import opened\n\nProcess(target=opened).start()\n",
        encoding="utf-8",
    )
    shards = reader.folder / "shards.py"
    shards.write_text(REPAIRED.replace("init_device", "opened"), encoding="utf-8")
    reader.run(COMMIT)

    shards.write_text(BAD.replace("init_device", "opened"), encoding="utf-8")
    refused = reader.run(COMMIT, expect=1)
    assert "shards.py:5:9: KC101" in refused
    assert "Process(target=opened)  start.py:5  launch site" in refused


def test_the_fixing_hook_installs_what_the_extra_does() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert HOOKS["keepcause-fix"]["additional_dependencies"] == extras["fix"]
    assert "additional_dependencies" not in HOOKS["keepcause"]


def test_every_hook_is_documented() -> None:
    for path in ("README.md", "docs/pre-commit.md", "CHANGELOG.md"):
        text = (ROOT / path).read_text(encoding="utf-8")
        assert all(f"`{hook}`" in text for hook in HOOKS), path
