"""`keepcause check`: what is reported, how it is printed, and the exit code."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., subprocess.CompletedProcess[str]]

MESSAGE = (
    "`raise ... from None` hides why a worker failed to start (worker-init: Worker.init_device (start-up by its name))"
)
BOTH = """\
class Worker:
    def init_device(self, names):
        names = list(names)
        try:
            self.open()
        except OSError:
            raise RuntimeError(f"unknown: {(n for n in names)}") from None
"""


def codes(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The codes of a concise report."""
    return [line.split(": ")[1][:5] for line in done.stdout.splitlines()]


def test_nothing_found(project: Path, keepcause: Run) -> None:
    (project / "worker.py").write_text("x = 1\n")
    done = keepcause("check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Nothing found.\n", "")
    done = keepcause("check", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_full(project: Path, keepcause: Run) -> None:
    done = keepcause("check", ".")
    assert done.returncode == 1
    assert done.stderr == ""
    assert done.stdout == (
        f"worker.py:6:13: KC101 {MESSAGE}\n"
        "  |\n"
        '6 |             raise RuntimeError("no device") from None\n'
        "  |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  = worker-init path (sure):\n"
        "      Worker.init_device  worker.py:2  start-up by its name\n"
        "  = fix (safe): Raise from the caught exception: `from e`\n"
        "\n"
        "Found 1 finding. `keepcause fix` repairs 1.\n"
    )


def test_full_underlines_what_the_reader_sees(project: Path, keepcause: Run) -> None:
    (project / "worker.py").write_text(
        "class Worker:\n\tdef init_device(self):\n\t\ttry: f()\n"
        '\t\texcept OSError: x = "机\u0301\x07"; raise X(\n\n\t\t\t"机器", # ß\n\t\t) from None # end\n',
        encoding="utf-8",
    )
    lines = keepcause("check", ".").stdout.splitlines()
    assert lines[1:7] == [
        "  |",
        '4 |         except OSError: x = "机\u0301\\x07"; raise X(',
        "  | " + " " * 38 + "^" * 8,
        "...",
        "7 |         ) from None # end",
        "  |         ^^^^^^^^^^^",
    ]


def test_concise(project: Path, keepcause: Run) -> None:
    done = keepcause("check", "--output-format", "concise")
    assert done.stdout == f"worker.py:6:13: KC101 [*] {MESSAGE}\nFound 1 finding. `keepcause fix` repairs 1.\n"
    assert keepcause("check", "--output-format=concise", "-q").stdout == f"worker.py:6:13: KC101 [*] {MESSAGE}\n"


def test_json(project: Path, keepcause: Run) -> None:
    (project / "worker.py").write_text(BOTH.replace("(f", "(\n                f"), encoding="utf-8")
    done = keepcause("check", "--output-format", "json")
    assert (done.returncode, done.stderr) == (1, "")
    first, second = json.loads(done.stdout)
    path = str(project / "worker.py")
    assert first == {
        "code": "KC101",
        "message": MESSAGE,
        "filename": path,
        "location": {"row": 7, "column": 13},
        "end_location": {"row": 8, "column": 60},
        "noqa_row": 7,
        "fix": {"applicability": "safe", "message": "Raise from the caught exception: `from e`"},
        "url": None,
        "worker_init": {
            "grade": "sure",
            "path": [{"function": "Worker.init_device", "file": path, "line": 2, "why": "start-up by its name"}],
        },
    }
    assert (second["code"], second["worker_init"]) == ("KC201", None)
    assert first.keys() == second.keys()
    (project / "worker.py").write_text("x = 1\n")
    assert keepcause("check", "--output-format", "json").stdout == "[]\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", ["KC101", "KC201"]),
        ("--select KC", ["KC101", "KC201"]),
        ("--select KC1", ["KC101"]),
        ("--select KC201,KC101", ["KC101", "KC201"]),
        ("--select KC201", ["KC201"]),
        ("--ignore KC2", ["KC101"]),
        ("--ignore KC", []),
        ("--select KC201 --ignore KC1", ["KC201"]),
        ("--select KC --ignore KC101", ["KC201"]),
    ],
)
def test_select_and_ignore(project: Path, keepcause: Run, arguments: str, expected: list[str]) -> None:
    (project / "worker.py").write_text(BOTH)
    done = keepcause("check", "-q", "--output-format=concise", *arguments.split())
    assert codes(done) == expected
    assert done.returncode == bool(expected)


@pytest.mark.parametrize(
    "arguments", ["--select E501", "--ignore KC101,KC9999", "--select kc101", "--evidence much", "--output-format xml"]
)
def test_wrong_usage(project: Path, keepcause: Run, arguments: str) -> None:
    option, value = arguments.split()
    done = keepcause("check", option, value)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"argument {option}" in done.stderr
    assert value.rpartition(",")[2] in done.stderr


def test_the_summary_says_what_fix_does(project: Path, keepcause: Run) -> None:
    unsafe = BOTH.replace("names = list(names)", "pass")
    (project / "worker.py").write_text(unsafe)
    summary = "Found 2 findings. `keepcause fix` repairs 1. `keepcause fix --unsafe-fixes` repairs 1 more.\n"
    assert keepcause("check").stdout.endswith(summary)
    summary = "Found 1 finding. `keepcause fix --unsafe-fixes` repairs 1.\n"
    assert keepcause("check", "--select=KC201").stdout.endswith(summary)
    (project / "worker.py").write_text(unsafe.replace("(n for n in names)", "iter(f, 1)"))
    done = keepcause("check", "--select=KC201")
    assert "  = no fix: it calls " in done.stdout
    assert done.stdout.endswith("\nFound 1 finding.\n")


def test_each_file_once_and_in_order(project: Path, keepcause: Run, worker: str) -> None:
    (project / "b.py").mkdir()
    for name in ("a.py", "b.py/z.py", "z.py"):
        (project / name).write_text(worker)
    done = keepcause("check", "-q", "--output-format=concise", "z.py", ".", "./z.py", project / "a.py", "b.py")
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["z.py", "a.py", "b.py/z.py", "worker.py"]


def test_paths_are_shown_from_the_working_directory(project: Path, keepcause: Run) -> None:
    (project / "sub").mkdir()
    done = keepcause("check", "--output-format=concise", "../worker.py", cwd=project / "sub")
    assert done.stdout.startswith("../worker.py:6:13: ")
    done = keepcause("check", "--output-format=concise", project / "worker.py")
    assert done.stdout.startswith("worker.py:6:13: ")
    done = keepcause("check", "--output-format=concise", project / "worker.py", cwd=project / "sub")
    assert done.stdout.startswith(f"{project}/worker.py:6:13: ")


def test_ignored_files_are_left_out_unless_named(project: Path, keepcause: Run, worker: str) -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    (project / ".gitignore").write_text("ignored\n")
    (project / "ignored").mkdir()
    (project / "ignored" / "old.py").write_text(worker)
    (project / "sub").mkdir()
    (project / "sub" / "new.py").write_text(worker)

    def checked(*paths: str, cwd: Path = project) -> list[str]:
        lines = keepcause("check", "-q", "--output-format=concise", *paths, cwd=cwd).stdout.splitlines()
        return [line.split(":")[0] for line in lines]

    assert checked() == ["sub/new.py", "worker.py"]
    assert checked("ignored/old.py") == checked("ignored") == ["ignored/old.py"]
    (project / "sub" / ".gitignore").write_text("*.py\n")
    assert checked(cwd=project / "sub") == []


def test_a_warning_of_the_checked_code_is_not_shown(project: Path, keepcause: Run) -> None:
    (project / "worker.py").write_text("x = '\\d'\nassert (1, 'a')\n1 is 1\nraise X from None\n")
    assert keepcause("check").stderr == ""
