"""The plugin in the real flake8, in a subprocess."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from keepcause.config import KEYS
from samples import WORKER

CONFIGURATION = Path(__file__).parents[1] / "docs" / "configuration.md"
REASON = "(worker-init: Worker.init_device (start-up by its name))"
KC101 = f"KC101 `raise ... from None` hides why a worker failed to start {REASON}"
MULTILINE = WORKER.replace('"no device"', '\n                "no device",\n                self,\n            ')


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: a project that holds `worker.py`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "worker.py").write_text(WORKER)
    return tmp_path


def flake8(*arguments: str, stdin: str | bytes = "", **environment: str) -> list[str]:
    """The lines that flake8 prints for all codes of ours, and for these arguments."""
    done = subprocess.run(
        [sys.executable, "-m", "flake8", "--jobs=1", *arguments],
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        timeout=60,
        env={**os.environ, **environment},
    )
    assert done.stderr == b"", done.stderr.decode()
    return done.stdout.decode().splitlines()


def places(lines: list[str]) -> list[str]:
    """`row:column: code` of each line."""
    return [line.partition(":")[2][: line.partition(":")[2].index("KC") + 5] for line in lines]


def test_it_is_listed() -> None:
    assert f"keepcause: {version('keepcause')}" in "".join(flake8("--version"))


def test_a_finding(project: Path) -> None:
    assert flake8("--select=KC", "worker.py") == [f"worker.py:6:13: {KC101}"]
    assert flake8("worker.py") == [f"worker.py:6:13: {KC101}"]
    assert flake8("--extend-ignore=KC1", "worker.py") == []
    assert flake8("--extend-ignore=KC2", "worker.py") == [f"worker.py:6:13: {KC101}"]
    assert flake8("--select=KC2", "worker.py") == []


def test_stdin(project: Path) -> None:
    assert flake8("-", stdin=WORKER) == [f"stdin:6:13: {KC101}"]
    assert flake8("--stdin-display-name=pkg/worker.py", "-", stdin=WORKER) == [f"pkg/worker.py:6:13: {KC101}"]
    assert flake8("--stdin-display-name=tests/test_worker.py", "-", stdin=WORKER) == []


def test_columns_count_characters(project: Path) -> None:
    code = WORKER.replace("            raise", '            x = "ß机"; raise').replace("no device", "机器")
    (project / "worker.py").write_text(code, encoding="utf-8")
    assert places(flake8("--select=KC", "worker.py")) == ["6:23: KC101"]
    (project / "worker.py").write_bytes(("\ufeff# ß\r\n" + code.replace("\n", "\r\n")).encode())
    assert places(flake8("--select=KC", "worker.py")) == ["7:23: KC101"]
    (project / "worker.py").write_bytes(("# coding: latin-1\n" + WORKER.replace("no", "é")).encode("latin-1"))
    assert places(flake8("--select=KC", "worker.py")) == ["7:13: KC101"]


def test_several_files_at_once(project: Path) -> None:
    for number in range(8):
        (project / f"worker{number}.py").write_text(WORKER)
    lines = flake8("--jobs=2", "--select=KC", ".")
    assert len(lines) == 9
    assert len(flake8("--jobs=2", "--select=KC", "--per-file-ignores=worker[0-3].py:KC1", ".")) == 5


COVERING = [
    "# noqa",
    "# NoQA",
    "# noqa: KC101",
    "# noqa:KC101",
    "# noqa: KC1",
    "# noqa: E501,KC101",
    "# noqa: E501 KC101",
    "# noqa : KC101",
    "# noqa: why not",
    "# noqa:  KC201",
    "# why  # noqa: KC101 # really",
]
NOT_COVERING = ["# noqa: kc101", "# noqa: KC201", "# noqa: E501", "#noqa", "#  noqa", "# no qa", "# noqa: E501 # noqa"]


def test_noqa_on_any_line_of_the_statement(project: Path) -> None:
    """flake8 itself judges the first line; what it says there is what we say of every line."""
    (project / "worker.py").unlink()
    ends = ("raise RuntimeError(", '"no device",', "                self,", "from None")
    for name, comments in (("covered", COVERING), ("open", NOT_COVERING)):
        for number, comment in enumerate(comments):
            for line, end in enumerate(ends):
                code = MULTILINE.replace(f"{end}\n", f"{end}  {comment}\n", 1)
                assert code != MULTILINE
                (project / f"{name}{number}_{line}.py").write_text(code)
    found = sorted(f"open{number}_{line}.py" for number in range(len(NOT_COVERING)) for line in range(len(ends)))
    assert (
        sorted(
            line.split(":")[0] for line in flake8("--select=KC", *sorted(path.name for path in project.glob("*.py")))
        )
        == found
    )
    check = [sys.executable, "-m", "keepcause", "check", "-q", "--output-format=concise"]
    done = subprocess.run(check, capture_output=True, text=True, timeout=60)
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == found


def test_noqa_outside_of_the_statement(project: Path) -> None:
    code = MULTILINE.replace("except OSError:", "except OSError:  # noqa") + "# noqa\n"
    (project / "worker.py").write_text(code)
    assert places(flake8("--select=KC", "worker.py")) == ["6:13: KC101"]


def test_disable_noqa(project: Path) -> None:
    (project / "worker.py").write_text(MULTILINE.replace("self,", "self,  # noqa"))
    assert flake8("--select=KC", "worker.py") == []
    assert places(flake8("--select=KC", "--disable-noqa", "worker.py")) == ["6:13: KC101"]
    (project / "worker.py").write_text("# flake8: noqa\n" + WORKER)
    assert flake8("--select=KC", "worker.py") == []


def test_fix_leaves_alone_what_a_comment_covers(project: Path) -> None:
    for code in (MULTILINE.replace("self,", "self,  # noqa"), WORKER.replace("from None", "from None  # noqa: KC101")):
        (project / "worker.py").write_text(code)
        done = subprocess.run([sys.executable, "-m", "keepcause", "fix"], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout) == (0, "Nothing found.\n")
        assert (project / "worker.py").read_text() == code


def test_configuration(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.keepcause]\nselect = ['KC201']\n")
    assert flake8("worker.py") == []
    assert flake8("--select=KC", "worker.py") == []
    assert flake8("--select=KC101", "worker.py") == [f"worker.py:6:13: {KC101}"]
    assert flake8("--extend-select=KC101", "worker.py") == [f"worker.py:6:13: {KC101}"]
    (project / "pyproject.toml").write_text("[tool.keepcause]\nignore = ['KC101']\n")
    assert flake8("worker.py") == []
    (project / "setup.cfg").write_text("[flake8]\nselect = KC101\n")
    assert flake8("worker.py") == [f"worker.py:6:13: {KC101}"]


def test_a_mistake_in_the_configuration(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.keepcause]\nselct = []\n")
    for jobs in ("--jobs=1", "--jobs=2"):
        done = subprocess.run(
            [sys.executable, "-m", "flake8", jobs, "worker.py", "worker.py"], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 1
        assert "[tool.keepcause] has no key 'selct'; did you mean 'select'?" in done.stdout + done.stderr
        assert "Traceback" not in done.stdout + done.stderr


def test_a_file_that_can_not_be_parsed(project: Path) -> None:
    (project / "broken.py").write_text("def f(:\n")
    lines = flake8("--select=KC,E9", "broken.py", "worker.py")
    assert [line.split(":")[0] for line in lines] == ["broken.py", "worker.py"]


def test_options_of_its_own(project: Path) -> None:
    code = WORKER.replace("init_device", "opened")
    (project / "worker.py").write_text(code)
    assert flake8("worker.py") == []
    named = ["6:13: KC101"]
    assert places(flake8("--keepcause-worker-init=worker:Worker.opened, other:x", "worker.py")) == named
    (project / "setup.cfg").write_text("[flake8]\nkeepcause-worker-init =\n    other:x,\n    worker:Worker.*\n")
    assert places(flake8("worker.py")) == named
    assert flake8("--keepcause-not-worker-init=worker:*", "worker.py") == []
    (project / "setup.cfg").write_text("[flake8]\nkeepcause_evidence = sure\n")
    (project / "pyproject.toml").write_text("[tool.keepcause]\nworker-init = ['worker:*']\nevidence = 'possible'\n")
    assert places(flake8("worker.py")) == named
    assert flake8("--keepcause-worker-init=other:*", "worker.py") == []


def test_every_option_is_offered(project: Path) -> None:
    text = "\n".join(flake8("--help"))
    offered = set(re.findall(r"--keepcause-([a-z-]+)", text))
    assert offered == {key.name for key in KEYS if key.flake8}
    for key in KEYS:
        assert (f"--keepcause-{key.name}`" in CONFIGURATION.read_text(encoding="utf-8")) is key.flake8


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("evidence=much", "keepcause-evidence: expected one of sure, likely, possible, not 'much'"),
        ("rank-names=a.b.c", "keepcause-rank-names: expected names such as 'rank' or 'self.rank', not 'a.b.c'"),
        ("worker-init-error=Mine", "keepcause-worker-init-error: expected a class such as "),
    ],
)
def test_a_mistake_in_an_option(project: Path, option: str, says: str) -> None:
    (project / "setup.cfg").write_text(f"[flake8]\nkeepcause-{option.replace('=', ' = ')}\n")
    for arguments in (["worker.py"], ["--isolated", f"--keepcause-{option}", "worker.py"]):
        done = subprocess.run([sys.executable, "-m", "flake8", *arguments], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1
        assert f"keepcause: {says}" in done.stdout + done.stderr
        assert "Traceback" not in done.stdout + done.stderr


def test_files_of_the_configuration(project: Path) -> None:
    for name in ("a/x.py", "b/x.py"):
        (project / name).parent.mkdir()
        (project / name).write_text(WORKER)
    (project / "pyproject.toml").write_text(
        "[tool.keepcause]\nextend-exclude = ['a']\nper-file-ignores = { 'b/*' = ['KC101'] }\n"
    )
    found = [line.split(":")[0] for line in flake8("--select=KC", "--jobs=2", ".", "a/x.py")]
    assert found == ["./worker.py"]
    assert [line.split(":")[0] for line in flake8("--select=KC101", ".")] == ["./worker.py"]
