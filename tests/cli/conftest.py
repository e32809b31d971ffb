"""The real command in a subprocess, and a small project to run it on."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from samples import WORKER

if TYPE_CHECKING:
    from collections.abc import Callable

COMMAND = Path(sys.executable).with_name("keepcause")


@pytest.fixture
def worker() -> str:
    """A file with one KC101 finding, at line 6 and column 13, that has a safe fix."""
    return WORKER


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: a project that holds `worker.py`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "worker.py").write_text(WORKER, encoding="utf-8")
    return tmp_path


@pytest.fixture
def keepcause(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `keepcause` in the working directory; no run may end with a traceback."""

    def keepcause(*arguments: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(  # type: ignore[call-overload]
            [COMMAND, *arguments],
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=60,
            **{"cwd": tmp_path, "env": {**os.environ, "COLUMNS": "200"}, **options},
        )
        assert "Traceback" not in done.stderr, done.stderr
        result: subprocess.CompletedProcess[str] = done
        return result

    return keepcause


@pytest.fixture
def on_a_terminal() -> Callable[..., bytes]:
    """What a command prints on a terminal: on its error stream, and on its output but where that goes elsewhere."""

    def on_a_terminal(*command: str, stdout: int | None = None) -> bytes:
        ours, theirs = pty.openpty()
        output = theirs if stdout is None else stdout
        process = subprocess.Popen([sys.executable, "-m", "keepcause", *command], stdout=output, stderr=theirs)
        os.close(theirs)
        printed = b""
        with contextlib.suppress(OSError):  # at its end, a terminal gives an error or nothing
            while piece := os.read(ours, 65536):
                printed += piece
        os.close(ours)
        process.wait(60)
        return printed

    return on_a_terminal
