"""Repaired files on disk: replaced whole or not at all, whoever else is there; and their diff."""

from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from keepcause.codemod.write import WriteError, diff, write

if TYPE_CHECKING:
    from collections.abc import Iterator

OLD, NEW = b"old\r\n" * 1000, b"new\n" * 1001


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "code"
    folder.mkdir()
    path = folder / "worker.py"
    path.write_bytes(OLD)
    yield path
    assert [other.name for other in folder.iterdir() if other.name.startswith(".")] == []


def test_content_and_mode(file: Path) -> None:
    file.chmod(0o2751)
    write(file, OLD, NEW)
    assert file.read_bytes() == NEW
    assert stat.S_IMODE(file.stat().st_mode) == 0o2751


@pytest.mark.skipif(os.geteuid() != 0, reason="only a superuser may give files away")
def test_owner(file: Path) -> None:
    os.chown(file, 1234, 4321)
    write(file, OLD, NEW)
    assert (file.stat().st_uid, file.stat().st_gid) == (1234, 4321)


def test_a_link_keeps_pointing(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.py"
    link.symlink_to(file)
    write(link, OLD, NEW)
    assert link.is_symlink()
    assert file.read_bytes() == NEW


def refusal(path: Path) -> str:
    with pytest.raises(WriteError) as caught:
        write(path, OLD, NEW)
    return str(caught.value)


def test_changed_by_someone_else(file: Path) -> None:
    file.write_bytes(b"theirs")
    assert refusal(file) == "changed by someone else meanwhile"
    assert file.read_bytes() == b"theirs"


def test_already_repaired_by_another_run(file: Path) -> None:
    file.write_bytes(NEW)
    before = file.stat()
    write(file, OLD, NEW)
    assert file.stat().st_ino == before.st_ino


def test_read_only_file(file: Path) -> None:
    file.chmod(0o444)
    assert refusal(file) == "the file is read-only"
    assert file.read_bytes() == OLD


def test_read_only_folder(file: Path) -> None:
    file.parent.chmod(0o555)
    try:
        assert refusal(file) == "its directory is read-only"
    finally:
        file.parent.chmod(0o755)
    assert file.read_bytes() == OLD


def test_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere.py")
    (tmp_path / "round.py").symlink_to(tmp_path / "round.py")
    os.mkfifo(tmp_path / "pipe.py")
    assert refusal(tmp_path / "gone.py") == "No such file or directory"
    assert "circle" in refusal(tmp_path / "round.py") or "Too many levels" in refusal(tmp_path / "round.py")
    assert refusal(tmp_path / "pipe.py") == "not a regular file"
    assert refusal(tmp_path) == "not a regular file"


@pytest.mark.parametrize("step", ["fsync", "fchmod"])
def test_nothing_stays_behind_after_an_interrupt(file: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, step, interrupt)
    with pytest.raises(KeyboardInterrupt):
        write(file, OLD, NEW)
    assert file.read_bytes() == OLD


def test_a_full_disk(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert refusal(file) == "No space left on device"
    assert file.read_bytes() == OLD


WRITER = """
import sys
from itertools import cycle
from pathlib import Path
from keepcause.codemod.write import WriteError, write
old, new = b"old\\r\\n" * 1000, b"new\\n" * 1001
print("ready", flush=True)
for before, after in cycle([(old, new), (new, old)]):
    for path in map(Path, sys.argv[1:]):
        try:
            write(path, before, after)
        except WriteError as error:
            assert "changed by someone else" in str(error), error
"""


def start(paths: list[Path]) -> subprocess.Popen[bytes]:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, *paths], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"ready\n"
    return writer


def test_killed_at_any_moment(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.py" for number in range(3)]
    for path in paths:
        path.write_bytes(OLD)
    for _ in range(5):
        writer = start(paths)
        time.sleep(random.uniform(0, 0.05))
        writer.send_signal(signal.SIGKILL)
        assert writer.wait(30) == -signal.SIGKILL
        writer.communicate()
        assert all(path.read_bytes() in (OLD, NEW) for path in paths)
    assert sorted(tmp_path.glob("*.py")) == paths
    assert all(path.suffix == ".tmp" for path in tmp_path.iterdir() if path not in paths)


def test_two_at_once(tmp_path: Path) -> None:
    path = tmp_path / "worker.py"
    path.write_bytes(OLD)
    writers = [start([path]), start([path])]
    deadline = time.monotonic() + 0.5
    while time.monotonic() < deadline:
        assert path.read_bytes() in (OLD, NEW)
    for writer in writers:
        assert writer.poll() is None
        writer.send_signal(signal.SIGKILL)
        writer.communicate(timeout=30)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"a\nb\nc\n", b"a\nB\nc\n"),
        (b"a\r\nb\r\nc\r\n", b"a\r\nB\r\nc\r\n"),
        (b"a\rb\rc\r", b"a\rB\rc\r"),
        (b"a\r\nb\rc\n\x0cd\x1ce\x85", b"a\r\nB\rc\n\x0cd\x1cE\x85"),
        (b"a\nb", b"a\nB"),
        (b"\xef\xbb\xbfa\nb", b"\xef\xbb\xbfA\nb"),
        (b"# \xe9\na\n", b"# \xe9\nA\n"),
    ],
)
@pytest.mark.parametrize("name", ["worker.py", "pkg/my worker.py", 'q"\\\t.py', "é.py", "-.py"])
def test_git_takes_the_diff(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: bytes, new: bytes, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(old)
    patch = diff(path, old, new)
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "-c", "core.autocrlf=false", "apply", "-"], input=patch, check=True)
    assert path.read_bytes() == new


def test_diff_is_named_from_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    expected = b"--- a/pkg/worker.py\n+++ b/pkg/worker.py\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n"
    assert diff(tmp_path / "pkg" / "worker.py", b"a\n", b"b") == expected


def test_diff_of_a_file_elsewhere_is_named_from_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    path = tmp_path / "there.py"
    path.write_bytes(b"a\n")
    patch = diff(Path("../there.py"), b"a\n", b"b\n")
    assert patch.startswith(f"--- a{path}\n+++ b{path}\n".encode())
    subprocess.run(["git", "apply", "-"], cwd="/", input=patch, check=True)
    assert path.read_bytes() == b"b\n"


def test_no_diff() -> None:
    assert diff(Path("x.py"), OLD, OLD) == b""
