"""Programs that are broken, cyclic or built to make a linker run for ever, through the real command."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

HIDES = """\
    try:
        open("shard")
    except OSError:
        raise RuntimeError("no shard") from None
"""
START = f"""\
from multiprocessing import Process

from entry import enter


def start():
    Process(target=enter)


def unlinked():
{HIDES}
"""
ENTRY = f"""\
def enter():
{HIDES}
"""
FOUND = "entry.py:5:9: KC101 [*] `raise ... from None` hides why a worker failed to start (worker-init: "

CONCISE = ["--output-format=concise"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A program of two files with one finding, in `entry.py`."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "start.py").write_text(START)
    (tmp_path / "entry.py").write_text(ENTRY)
    return tmp_path


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    """`keepcause check` with a deadline; it may not end with a traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "keepcause", "check", "--select=KC101", "--evidence=possible", *CONCISE],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def findings(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The lines that are findings."""
    return [line for line in done.stdout.splitlines() if " KC101 " in line]


@pytest.mark.parametrize(
    "broken",
    [
        b"def unfinished(",
        b"from entry import enter\nenter(\xff\xfe)\n",
        b"# coding: nonsense\nfrom entry import enter\nenter()\n",
        b"from entry import enter\nenter(\0)\n",
        b"from entry import enter\n" + b"enter(" * 5000 + b")" * 5000,
        b"",
        b"\xef\xbb\xbffrom entry import *\n",
    ],
)
def test_a_broken_file_does_not_hide_the_others(project: Path, broken: bytes) -> None:
    (project / "broken.py").write_bytes(broken)
    (found,) = findings(check(project))
    assert found == f"{FOUND}Process(target=enter) -> enter)"


def test_two_modules_of_one_name_are_one_finding(project: Path) -> None:
    for folder in ("a", "b"):
        (project / folder).mkdir()
        (project / folder / "__init__.py").touch()
        (project / folder / "entry.py").write_text(ENTRY)
        (project / folder / "start.py").write_text(START)
    assert findings(check(project)) == [f"{FOUND}Process(target=enter) -> enter)"]


def test_a_link_to_a_file_of_the_program_is_the_file_again(project: Path) -> None:
    (project / "linked.py").symlink_to("entry.py")
    (project / "round").symlink_to(".")
    assert findings(check(project)) == [f"{FOUND}Process(target=enter) -> enter)"]


def many(lines: int, line: str) -> str:
    """The line with each number in it."""
    return "\n".join(line.format(n=n, next=n + 1) for n in range(lines))


TANGLES = {
    "names that become what they call": "x = start\n" + many(300, "x = x.f()\nx = x.g(x).h[0].i()"),
    "names that are each other's": "\n".join(f"a{n} = a{(n * 7 + 1) % 90} or a{(n * 5 + 2) % 90}" for n in range(90)),
    "attributes that are each other's": "class Knot:\n    def __init__(self):\n"
    + "\n".join(f"        self.a{n} = self.a{(n * 7 + 1) % 90}.a{(n * 5 + 2) % 90}.a{n}()" for n in range(90))
    + "\n        self.a0.a1.a2.a3.a4.a5.enter()\n",
    "an attribute that is made of itself": "class Grown:\n    def __init__(self):\n        self.a = start\n"
    + many(11, "    def m{n}(self):\n        self.a = self.a.f{n}()\n")
    + "    def last(self):\n        self.a.enter()\n",
    "functions that return each other's": many(
        90, "def f{n}(x: 'K{n}') -> 'K{next}':\n    return x.m{next}().enter()\n"
    )
    + many(90, "class K{n}:\n    def m{n}(self) -> 'K{next}': ...\n    k: 'K{next} | K{n}'\n"),
    "a chain of calls": "start" + ".enter()" * 200,
    "classes of classes": "class C0: ...\n"
    + many(300, "class C{next}(C{n}):\n    def enter(self):\n        super().enter()\n"),
    "bases in a ring": many(60, "class R{n}(R{next}, R{n}): ...\n") + "\nclass R60(R0, R1, R2): ...\nR60().enter()\n",
    "diamonds on diamonds": "class D0: ...\nclass E0: ...\n"
    + many(60, "class D{next}(D{n}, E{n}): ...\nclass E{next}(D{n}, E{n}): ...\n")
    + "\nD60().enter()\nE60.enter()\n",
    "functions that call each other": "\n".join(
        f"def g{n}():\n" + "\n".join(f"    g{(n * k) % 40}()" for k in range(1, 20)) + "\n    enter()\n"
        for n in range(40)
    ),
    "functions in functions": "\n".join(f"{'  ' * n}def enter{n}():\n{'  ' * n}  enter()" for n in range(45)),
}


@pytest.mark.parametrize("tangle", TANGLES.values(), ids=TANGLES)
def test_a_tangle_ends_soon(project: Path, tangle: str) -> None:
    imports = "from multiprocessing import Process\nimport start\n"
    (project / "tangle.py").write_text(f"{imports}from entry import enter\n{tangle}\n")
    # Nothing launches what this one calls, so it is followed.
    (project / "followed.py").write_text(f"{imports}def enter():\n{HIDES}\n{tangle}\n")
    done = check(project)
    assert done.returncode == 1, done.stderr
    assert findings(done)[0].startswith("entry.py:5:9: KC101")


def test_many_modules_that_import_all_of_each_other(project: Path) -> None:
    for number in range(60):
        others = "\n".join(f"from m{(number * k + 1) % 60} import *" for k in range(2, 9))
        (project / f"m{number}.py").write_text(
            f"{others}\ndef f{number}():\n    f{(number + 31) % 60}()\n    enter()\n"
        )
    (project / "m0.py").write_text(f"from m1 import *\nfrom entry import *\n\n\ndef f0():\n    f1()\n{HIDES}\n")
    (found,) = findings(check(project))
    assert found == f"{FOUND}Process(target=enter) -> enter)"


def test_a_name_that_no_module_of_a_ring_of_star_imports_has(project: Path) -> None:
    (project / "one.py").write_text("from two import *\nimport other\n\n\ndef start():\n    nowhere()\n")
    (project / "two.py").write_text("from one import *\n")
    (project / "other.py").write_text(f"def nowhere():\n{HIDES}")
    done = check(project)
    assert done.stderr == ""
    assert findings(done) == [f"{FOUND}Process(target=enter) -> enter)"]
