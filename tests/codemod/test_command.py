"""LibCST's own runner makes the same edits, byte for byte."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

WORKER = b"""\
# a worker
class Worker:
    def init_device(self):
        try:
            self.device = open_device(self.rank)
        except OSError:
            raise RuntimeError(f"rank {self.rank}: {(n for n in (1, 2))}")  from None  # why
"""
REPAIRED = (
    WORKER.replace(b"OSError:", b"OSError as e:")
    .replace(b"from None", b"from e")
    .replace(b"{(n for n in (1, 2))}", b"{[n for n in (1, 2)]}")
)


def run(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "libcst.tool", "codemod", "--no-format", "-x"]
    command += ["keepcause.codemod.command.KeepCause", "--jobs", "1", *options, str(path)]
    return subprocess.run(command, cwd=path.parent, capture_output=True, text=True, timeout=60, check=False)


def test_edits(tmp_path: Path) -> None:
    expected = {"plain": b"\x0c\r# mixed\r\nx = 1\n"}
    (tmp_path / "plain.py").write_bytes(expected["plain"])
    for name, end in (("lf", b"\n"), ("crlf", b"\r\n"), ("cr", b"\r")):
        (tmp_path / f"{name}.py").write_bytes((b"\x0c\n" + WORKER).replace(b"\n", end))
        expected[name] = (b"\x0c\n" + REPAIRED).replace(b"\n", end)
    result = run(tmp_path)
    assert result.returncode == 0, result.stderr
    assert {path.stem: path.read_bytes() for path in tmp_path.glob("*.py")} == expected


def test_a_file_without_findings_need_not_be_python(tmp_path: Path) -> None:
    (tmp_path / "worker.py").write_bytes(WORKER)
    (tmp_path / "odd.py").write_bytes(b"x = '\\x1'\n")  # LibCST does not read what an escape means
    (tmp_path / "bad.py").write_bytes(b"x = '\\x1'\n" + WORKER)
    result = run(tmp_path)
    assert result.returncode == 0, result.stderr
    assert " - Skipped 1 files.\n" in result.stdout + result.stderr, "bad.py, which is no Python"
    assert (tmp_path / "worker.py").read_bytes() == REPAIRED


def test_unsafe_fixes_are_named_and_made_on_demand(tmp_path: Path) -> None:
    path = tmp_path / "worker.py"
    path.write_text("def check(rows):\n    raise ValueError(f'{(row for row in rows)}')\n")
    result = run(path)
    assert "KC201 is left: its fix needs --unsafe-fixes" in result.stderr
    assert "(row for" in path.read_text()
    assert run(path, "--unsafe-fixes").returncode == 0
    assert "{[row for row in rows]}" in path.read_text()


def test_structured_errors_are_raised_on_demand(tmp_path: Path) -> None:
    path = tmp_path / "worker.py"
    path.write_text("def init_worker(rank):\n    raise RuntimeError('no device')\n")
    assert run(path, "--structured").returncode == 0
    raised = "def init_worker(rank):\n    raise WorkerInitError('no device', rank=rank)\n"
    assert path.read_text() == f"from keepcause import WorkerInitError\n\n\n{raised}"
