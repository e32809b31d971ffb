"""What SECURITY.md promises of checked code: nothing of it is run, whatever the command and however it is called."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from samples import WORKER

CODE = f'open("was-run", "w")\n{WORKER}'
SHADOWS = ["tokenize", "pathlib", "argparse", "json", "libcst", "keepcause", "sitecustomize", "conftest", "setup"]
BIN = Path(sys.executable).parent


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Code that leaves `was-run` when it is run, under names that someone may import."""
    for name in ("worker", *SHADOWS):
        (tmp_path / f"{name}.py").write_text(CODE)
    (tmp_path / "pyproject.toml").write_text(
        '[tool.keepcause]\nworker-init-error = "worker:Worker"\nworker-init = ["worker:*"]\n'
    )
    return tmp_path


@pytest.mark.parametrize("arguments", ["check .", "check --output-format=sarif .", "trace worker.py", "fix ."])
@pytest.mark.parametrize(
    "command", [[str(BIN / "keepcause")], [sys.executable, "-m", "keepcause"]], ids=["script", "m"]
)
def test_nothing_that_is_checked_is_run(tree: Path, command: list[str], arguments: str) -> None:
    if "-m" in command:
        (tree / "keepcause.py").unlink()  # of this name Python itself takes what is nearest
    done = subprocess.run([*command, *arguments.split()], cwd=tree, capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    assert not (tree / "was-run").exists()
    if arguments == "fix .":
        assert "from e" in (tree / "worker.py").read_text()


def test_flake8_runs_nothing_either(tree: Path) -> None:
    command = [str(BIN / "flake8"), "--select=KC", "worker.py"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=60)
    assert "KC101" in done.stdout
    assert not (tree / "was-run").exists()


def test_what_is_checked_would_run(tree: Path) -> None:
    subprocess.run([sys.executable, "worker.py"], cwd=tree, capture_output=True, timeout=60)
    assert (tree / "was-run").exists()
