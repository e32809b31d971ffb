"""What can't be checked: one line on the error stream, exit code 2, and everything else is checked as ever."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from keepcause import cli
from keepcause.config import FORMATS
from keepcause.lint.checked import FileReport, Trouble
from keepcause.lint.engine import Engine, Settings
from keepcause.lint.files import Tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Run = Callable[..., subprocess.CompletedProcess[str]]

HIDDEN = "def init_worker():\n try: f()\n except X: raise Y from None\n"
"""What may be found in a file, as far as a look at its bytes tells."""


def troubles(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The lines on the error stream; the sound file beside the bad one must have been reported."""
    assert done.returncode == 2
    assert done.stdout.startswith("worker.py:6:13: KC101 [*]")
    assert all(line.startswith("keepcause: ") for line in done.stderr.splitlines())
    return [line.removeprefix("keepcause: ") for line in done.stderr.splitlines()]


@pytest.mark.parametrize(
    ("data", "trouble"),
    [
        (b"def f(:\n" + HIDDEN.encode(), "1: invalid syntax"),
        (b"x = 1\n  y = 2\n" + HIDDEN.encode(), "2: unexpected indent"),
        (b"x = '\n" + HIDDEN.encode(), "1: unterminated string literal (detected at line 1)"),
        (b"x = 1\ny = '\xff'\n" + HIDDEN.encode(), "2: not valid utf-8: invalid start byte at byte 11"),
        (b"x = 1\n#\ny = '\xff'\n" + HIDDEN.encode(), "3: not valid utf-8: invalid start byte at byte 13"),
        (
            b"# coding: ascii\ny = '\xc3\xa9'\n" + HIDDEN.encode(),
            "2: not valid ascii: ordinal not in range(128) at byte 21",
        ),
        (b"# coding: klingon\n" + HIDDEN.encode(), "1: unknown encoding: klingon"),
        (b"# coding: hex\n" + HIDDEN.encode(), "1: can't be decoded as hex: "),
        (b"\xef\xbb\xbf# coding: latin-1\n" + HIDDEN.encode(), "1: encoding problem: utf-8"),
        (HIDDEN.encode() + b"# \0\n", "4: holds a NUL character"),
        (b"x = '\xed\xa0\x80'\n" + HIDDEN.encode(), "1: not valid utf-8: invalid continuation byte at byte 5"),
        (("\ufeff" + HIDDEN).encode("utf-16-le"), "1: "),
        (b"x = " + b"(" * 300 + b")" * 300 + b"\n" + HIDDEN.encode(), "1: too many nested parentheses"),
        (b"x = " + b"[" * 10_000 + b"\n" + HIDDEN.encode(), "1: too many nested parentheses"),
        (b"x = " + b"-" * 100_000 + b"1\n" + HIDDEN.encode(), " nested too deeply to be parsed"),
        (b"x = f" + b"()" * 20_000 + b"\n" + HIDDEN.encode(), " nested too deeply to be "),
        (b"x = " + b"a if b else " * 20_000 + b"1\n" + HIDDEN.encode(), " nested too deeply to be "),
        (b"if x:\n" + b"".join(b" " * i + b"if x:\n" for i in range(1, 200)) + HIDDEN.encode(), "1"),
    ],
)
@pytest.mark.parametrize("command", ["check", "fix"])
def test_what_can_not_be_parsed(
    project: Path, capsys: pytest.CaptureFixture[str], data: bytes, trouble: str, command: str, worker: str
) -> None:
    (project / "bad.py").write_bytes(data)
    assert cli.main([command, "-q", "--single-file", "--output-format=concise", "."]) == 2
    out, err = capsys.readouterr()
    assert err.startswith(f"keepcause: bad.py:{trouble}")
    assert err.count("\n") == 1
    assert (project / "bad.py").read_bytes() == data
    if command == "check":
        assert out.startswith("worker.py:6:13: KC101")
    else:
        assert (project / "worker.py").read_text() != worker


@pytest.mark.parametrize("depth", [300, 600, 1500, 3000])
@pytest.mark.parametrize("text", ["f{}", "{}1", "{}2", "{}3", "1{}", "x{}"])
def test_depth_is_found_or_named(project: Path, capsys: pytest.CaptureFixture[str], text: str, depth: int) -> None:
    """Whatever Python can parse is checked and repaired, or named."""
    part = {"f{}": "()", "{}1": "-", "{}2": "lambda: ", "{}3": "a if b else ", "1{}": "+1", "x{}": ".x"}[text]
    deep = text.format(part * depth)
    for place in ("x = DEEP\n{}", "{}", "Process(target=lambda: DEEP)\n{}"):
        code = place.format((project / "worker.py").read_text())
        code = code.replace("DEEP", deep) if "DEEP" in code else code.replace('"no device"', deep)
        (project / "deep.py").write_text(code)
        for command in ("check", "fix"):
            exit_code = cli.main([command, "-q", "--single-file", "--output-format=concise", "deep.py"])
            out, err = capsys.readouterr()
            if exit_code == 2:
                assert err.startswith("keepcause: deep.py: nested too deeply to be ")
                assert (project / "deep.py").read_text() == code
            elif command == "check":
                assert out.startswith("deep.py:")
            else:
                assert "from e" in (project / "deep.py").read_text() or "KC101" in out


def test_a_file_that_need_not_be_parsed(project: Path, keepcause: Run) -> None:
    (project / "worker.py").write_text("def f(:\n")
    assert keepcause("check", "--select=KC101").returncode == 0


def test_paths_that_are_no_file(project: Path, keepcause: Run, worker: str) -> None:
    (project / "empty").mkdir()
    (project / "empty" / "notebook.ipynb").write_text("{}")
    (project / "broken.py").symlink_to("nowhere.py")
    (project / "round.py").symlink_to("round.py")
    (project / "device.py").symlink_to("/dev/zero")
    os.mkfifo(project / "pipe.py")
    (project / "linked_pipe.py").symlink_to("pipe.py")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind("socket.py")
    (project / "up").symlink_to("..")
    mistaken = ("empty/notebook.ipynb", "no.ipynb", "nowhere.py", "n" * 300)
    named = troubles(keepcause("check", "--output-format=concise", "empty", *mistaken, "."))
    assert named == [
        "empty: holds no Python files",
        "empty/notebook.ipynb: is a notebook; check what `jupyter nbconvert --to script` makes of it",
        "no.ipynb: does not exist",
        "nowhere.py: does not exist",
        f"{'n' * 300}: does not exist",
        "broken.py: can't be read: it is a link to nothing",
        "device.py: can't be read: not a regular file",
        "linked_pipe.py: can't be read: not a regular file",
        "pipe.py: can't be read: not a regular file",
        "round.py: can't be read: Too many levels of symbolic links",
        "socket.py: can't be read: not a regular file",
    ]
    paths = ["broken.py", "device.py", "linked_pipe.py", "pipe.py", "round.py", "socket.py", "worker.py"]
    assert len(troubles(keepcause("check", "--output-format=concise", *paths))) == 6
    assert keepcause("fix", *paths).stdout == "KC101: 1 repaired, 0 left\n"


def test_strange_names(project: Path, keepcause: Run, worker: str) -> None:
    for name in (b"new\nline.py", b"esc\x1b[31m.py", b"raw\xff.py", b"-q.py", "ß机.py".encode(), b"a b.py"):
        (project / os.fsdecode(name)).write_text(worker)
    for output_format in ("concise", "full"):
        lines = keepcause("check", f"--output-format={output_format}", ".").stdout.splitlines()
        names = [line.split(":6:13: ")[0] for line in lines if "KC101" in line]
        assert names == ["-q.py", "a b.py", r"esc\x1b[31m.py", r"new\nline.py", r"raw\xff.py", "worker.py", "ß机.py"]
    assert keepcause("check", "--output-format=json", ".").returncode == 1
    for path in project.glob("*.py"):
        path.write_text("def f(:\n" + HIDDEN)
    lines = keepcause("check", ".").stderr.splitlines()
    assert [line.split(":1: ")[0] for line in lines] == [f"keepcause: {name}" for name in names]


def test_fix_of_strange_names(project: Path, keepcause: Run, worker: str) -> None:
    names = [b"new\nline.py", b"raw\xff.py", b"-q.py"]
    for name in names:
        (project / os.fsdecode(name)).write_text(worker)
    assert keepcause("fix", ".").stdout == "KC101: 4 repaired, 0 left\n"
    assert all("from e" in (project / os.fsdecode(name)).read_text() for name in names)


def test_a_file_that_vanishes(project: Path) -> None:
    (name,) = Tree().expand([Path()])
    path = Path(str(name))
    assert isinstance(Engine(Settings()).check(path), FileReport)
    (project / "worker.py").unlink()
    assert Engine(Settings()).check(path) == Trouble(
        "worker.py", "can't be read: No such file or directory", passing=True
    )


@pytest.fixture
def unprivileged(worker: str) -> Iterator[Path]:
    """A working directory that everyone may enter, and nobody's rights."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        (Path(name) / "worker.py").write_text(worker)
        (Path(name) / "pyproject.toml").touch()
        os.chdir(name)
        user = os.geteuid()
        try:
            yield Path(name)
        finally:
            os.seteuid(user)
            os.chdir(before)


@pytest.mark.parametrize("with_git", [False, True])
def test_what_may_not_be_read(unprivileged: Path, capsys: pytest.CaptureFixture[str], with_git: bool) -> None:
    cli.main(["check", "--output-format=concise"])  # so that all is imported that the run below needs
    nobody = 65534 if os.geteuid() == 0 else os.geteuid()
    (unprivileged / "secret.py").write_text(HIDDEN)
    (unprivileged / "closed").mkdir()
    for path in (unprivileged, *unprivileged.iterdir()):
        os.chown(path, nobody, -1)
    (unprivileged / "secret.py").chmod(0)
    (unprivileged / "closed").chmod(0)
    os.seteuid(nobody)
    if with_git:
        subprocess.run(["git", "init", "-q"], check=True, env={"PATH": os.environ["PATH"], "HOME": str(unprivileged)})
    capsys.readouterr()
    assert cli.main(["check", "--output-format=concise", "-q"]) == 2
    out, err = capsys.readouterr()
    assert out.startswith("worker.py:6:13: KC101")
    assert "keepcause: secret.py: can't be read: Permission denied\n" in err
    assert "keepcause: closed: can't be read: Permission denied\n" in err.replace("./", "").replace("closed/", "closed")
    assert len(err.splitlines()) == 2


def test_a_folder_that_may_not_be_read_below_the_top(unprivileged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["check", "-q"])
    nobody = 65534 if os.geteuid() == 0 else os.geteuid()
    closed = unprivileged / "pkg" / "closed\nfor all"
    closed.mkdir(parents=True)
    for path in (unprivileged, closed.parent, closed):
        os.chown(path, nobody, -1)
    closed.chmod(0)
    os.seteuid(nobody)
    subprocess.run(["git", "init", "-q"], check=True, env={"PATH": os.environ["PATH"], "HOME": str(unprivileged)})
    capsys.readouterr()
    assert cli.main(["check", "-q", "pkg"]) == 2
    told = capsys.readouterr().err.replace("\\n", "\n")
    assert "keepcause: pkg/closed\nfor all: can't be read: Permission denied\n" in told


@pytest.mark.parametrize("output_format", FORMATS)
def test_folders_that_may_not_be_entered(
    unprivileged: Path, capsys: pytest.CaptureFixture[str], worker: str, output_format: str
) -> None:
    def check(path: str) -> tuple[int, str, str]:
        code = cli.main(["check", f"--output-format={output_format}", "-q", path])
        return code, *capsys.readouterr()

    (unprivileged / "home").mkdir()
    (unprivileged / "closed").mkdir(mode=0o700)
    (unprivileged / "closed" / "worker.py").write_text(worker)
    os.chdir("home")
    sound = str(unprivileged / "worker.py")
    code, whole, _ = check(sound)
    assert code == 1
    assert "`raise ... from None` hides why a worker failed" in whole
    for folder in ("home", "closed"):
        os.chown(unprivileged / folder, 65534 if os.geteuid() == 0 else -1, -1)
        (unprivileged / folder).chmod(0)
    os.seteuid(os.geteuid() or 65534)
    inner = str(unprivileged / "closed" / "worker.py")
    nothing = check(str(unprivileged / "closed"))[1]
    assert check(inner) == (2, nothing, f"keepcause: {inner}: can't be read: Permission denied\n")
    assert check(sound)[:2] == (1, whole)
    assert check(".") == (2, nothing, "keepcause: .: can't be read: Permission denied\n")


def test_a_working_directory_that_can_not_be_reached_by_its_name(
    unprivileged: Path, capsys: pytest.CaptureFixture[str], worker: str
) -> None:
    """Its files are read by relative names, but the program that they belong to is not."""
    (unprivileged / "home" / "project").mkdir(parents=True)
    os.chdir("home/project")
    Path("worker.py").write_text(worker)
    os.chown("..", 65534 if os.geteuid() == 0 else -1, -1)
    Path("..").chmod(0)
    os.seteuid(os.geteuid() or 65534)
    for path in (".", "worker.py"):
        assert cli.main(["check", path]) == 2
        assert capsys.readouterr().err == f"keepcause: {path}: can't be read: Permission denied\n"


@pytest.mark.parametrize("command", ["check", "check --output-format=json", "fix --diff", "rule --all"])
def test_whoever_reads_the_output_has_gone(project: Path, command: str, worker: str) -> None:
    for number in range(5):
        (project / f"broken{number}.py").symlink_to("nowhere.py")
        (project / f"{number}.py").write_text(worker * 50)
    for streams in ("", " 2>&1"):
        done = subprocess.run(
            f"'{sys.executable}' -m keepcause {command}{streams} | head -c 1",
            shell=True,
            capture_output=True,
            timeout=60,
        )
        assert len(done.stdout) == 1
        assert all(line.endswith(b"link to nothing") for line in done.stderr.splitlines())


def test_the_output_can_not_be_written(project: Path, keepcause: Run) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "keepcause", "check"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert done.returncode == 2
    assert done.stderr == "keepcause: stopped: [Errno 28] No space left on device\n"
    for streams in (">&-", "2>&-", ">&- 2>&-"):
        command = f"'{sys.executable}' -m keepcause check worker.py nowhere.py {streams}"
        done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2
        assert "Traceback" not in done.stderr


def test_the_working_directory_has_gone(project: Path, keepcause: Run) -> None:
    command = f"mkdir gone; cd gone; rmdir ../gone; '{sys.executable}' -m keepcause check"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr == "keepcause: stopped: [Errno 2] No such file or directory\n"
