"""Trees that are made to break a tool, and disks that take no more: everything else is checked and repaired as ever."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from keepcause.config import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Run = Callable[..., subprocess.CompletedProcess[str]]

HOSTILE_NAMES = [
    b"new\nline.py",
    b"\x1b[2Jclear.py",
    b"\xc2\x9bcsi.py",
    b"%0A::error::x.py",
    b"raw\xff.py",
    b"]]>&<.py",
]


def test_a_long_line(project: Path, keepcause: Run, worker: str) -> None:
    (project / "long.py").write_text(f"{worker}x = '{'a' * 10_000_000}'\n")
    done = keepcause("check", "--output-format=concise", "-q", "long.py")
    assert done.stdout.startswith("long.py:6:13: KC101")
    assert keepcause("fix", "-q", "long.py").returncode == 0
    assert (
        (project / "long.py").read_text().startswith(worker.replace("OSError:", "OSError as e:").replace("None", "e"))
    )


def test_a_huge_file_is_named(project: Path, keepcause: Run, worker: str) -> None:
    (project / "huge.py").write_text(worker + "x = 1\n" * 4_000_000)
    done = keepcause("check", "--output-format=concise", "-q", ".")
    assert done.stderr == (
        "keepcause: huge.py: too big to be parsed: 24000153 bytes, and the limit is 20000000\n"
    ).replace("24000153", str((project / "huge.py").stat().st_size))
    assert done.stdout.startswith("worker.py:6:13: KC101")
    assert done.returncode == 2


@pytest.mark.parametrize("output_format", FORMATS)
def test_no_name_steers_the_output(project: Path, keepcause: Run, worker: str, output_format: str) -> None:
    for name in HOSTILE_NAMES:
        (project / os.fsdecode(name)).write_text(worker)
    done = keepcause("check", f"--output-format={output_format}", "-q", ".")
    assert done.returncode == 1
    assert not set(done.stdout) & {"\x1b", "\x9b", "\udcff"}
    if output_format in ("json", "sarif", "gitlab"):
        assert json.dumps(json.loads(done.stdout)).count("KC101") >= 7
    elif output_format in ("github", "concise"):
        assert len(done.stdout.splitlines()) == 7
        assert sum(line.startswith("::error") for line in done.stdout.splitlines()) in (0, 7)


@pytest.mark.parametrize("command", ["check", "fix --diff", "fix --show-fixes", "trace"])
def test_no_source_steers_the_terminal(
    project: Path, worker: str, command: str, on_a_terminal: Callable[..., bytes]
) -> None:
    steering = worker.replace("no device", "\x1b]0;title\x07 \x1b[2J \x9b1A \u202e").encode() + b"# \xff\x1b[2J\n"
    name = "\x1b[2Jworker.py"
    (project / name).write_bytes(b"# coding: latin-1\n" + steering)
    printed = on_a_terminal(*command.split(), name)
    assert b"worker.py" in printed
    ours = re.sub(rb"\x1b\[[0-9;]*[mK]", b"", printed)
    assert not re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2\x9b|\xe2\x80\xae", ours), ours


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "keepcause-test", place], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("only a superuser may mount a disk")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def test_a_full_disk(disk: Path, keepcause: Run, worker: str) -> None:
    (disk / "pyproject.toml").touch()
    (disk / "worker.py").write_text(worker + "#" * 20_000)
    subprocess.run(["dd", "if=/dev/zero", "of=filler", "bs=4096"], cwd=disk, check=False, capture_output=True)
    done = keepcause("fix", cwd=disk)
    assert done.returncode == 2
    assert done.stderr == "keepcause: worker.py: not repaired: No space left on device\n"
    assert (disk / "worker.py").read_text() == worker + "#" * 20_000
    assert sorted(path.name for path in disk.iterdir()) == ["filler", "pyproject.toml", "worker.py"]
    assert keepcause("check", "-q", cwd=disk).returncode == 1
    (disk / "filler").unlink()
    assert keepcause("fix", cwd=disk).returncode == 0


def test_a_read_only_disk(disk: Path, keepcause: Run, worker: str) -> None:
    (disk / "pyproject.toml").touch()
    (disk / "worker.py").write_text(worker)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    done = keepcause("fix", cwd=disk)
    assert done.returncode == 2
    assert done.stderr.startswith("keepcause: worker.py: not repaired: ")
    assert "read-only" in done.stderr.lower()
    assert (disk / "worker.py").read_text() == worker
    assert keepcause("check", "-q", cwd=disk).returncode == 1


def test_eight_repairs_at_once(project: Path, worker: str) -> None:
    names = [f"worker_{number}.py" for number in range(20)]
    for name in names:
        (project / name).write_text(worker)
    runs = [
        subprocess.Popen(
            [sys.executable, "-m", "keepcause", "fix", "-q"],
            cwd=project,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(8)
    ]
    said = [run.communicate(timeout=120) for run in runs]
    assert all(run.returncode in (0, 2) for run in runs), said
    assert not any(b"Traceback" in error for _, error in said)
    repaired = worker.replace("except OSError:", "except OSError as e:").replace("from None", "from e")
    assert {(project / name).read_text() for name in [*names, "worker.py"]} == {repaired}
    assert [path for path in project.iterdir() if path.suffix == ".tmp"] == []


def test_files_that_change_all_the_time(project: Path, keepcause: Run, worker: str) -> None:
    """Another process writes them, moves them away and makes links and pipes of them while they are checked."""
    busy = f"""
import itertools, os
from pathlib import Path
worker = {worker!r}
for number in itertools.count():
    path = Path(f"busy_{{number % 5}}.py")
    path.unlink(missing_ok=True)
    match number % 4:
        case 0: path.write_text(worker)
        case 1: path.symlink_to("busy_0.py")
        case 2: os.mkfifo(path)
        case 3: path.write_text(worker[:number % len(worker)])
"""
    other = subprocess.Popen([sys.executable, "-c", busy], cwd=project)
    try:
        for command in ("check", "fix", "check"):
            for _ in range(3):
                done = keepcause(command, "-q", ".")
                assert done.returncode in (0, 1, 2)
        assert "from e" in (project / "worker.py").read_text()
    finally:
        other.kill()
        other.wait(60)
