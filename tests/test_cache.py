"""What a check found before: used while nothing has changed, never else, whatever happens to the folder."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from keepcause import cli
from keepcause.cache import Record
from keepcause.config.layers import Layers
from keepcause.lint.checked import FileReport, Trouble
from keepcause.lint.engine import Engine
from keepcause.lint.finding import Edit, EditKind, Finding, Fix, Grade, Safety, Span, Step, WorkerInit
from keepcause.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


HELPER = "def load():\n    try:\n        f()\n    except OSError:\n        raise ValueError() from None\n"
WORKER = "import helper\n\n\ndef init_worker():\n    helper.load()\n"
OLD = 1_600_000_000


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    for name, text in (("helper.py", HELPER), ("worker.py", WORKER), ("other.py", "x = 1\n")):
        write(folder / name, text)
    return folder


def write(path: Path, text: str) -> None:
    """A file that was changed long ago, so that its time can be trusted."""
    path.write_text(text)
    os.utime(path, (OLD, OLD))


@pytest.fixture
def checked(project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], tuple[list[str], int]]:
    """Checks the project with its cache: the codes that it finds, and how many files were looked into."""
    monkeypatch.chdir(project)
    looked = 0
    check = Engine.check

    def counting(self: Engine, path: Path) -> object:
        nonlocal looked
        looked += 1
        return check(self, path)

    monkeypatch.setattr(Engine, "check", counting)

    def run(paths: Iterable[str] = (".",), **options: object) -> tuple[list[str], int]:
        nonlocal looked
        looked = 0
        this = Run(Layers(options, isolated=True))
        files = [path for path in this.files(map(Path, paths)) if isinstance(path, str)]
        reports = list(this.check_all(files, project / "cache"))
        return [f.code for report in reports if isinstance(report, FileReport) for f in report.findings], looked

    return run


def test_nothing_is_checked_again_while_nothing_changes(checked: Callable[[], tuple[list[str], int]]) -> None:
    assert checked() == (["KC101"], 3)
    assert checked() == (["KC101"], 0)


def test_a_change_elsewhere_in_the_program_counts(project: Path, checked: Callable[[], tuple[list[str], int]]) -> None:
    checked()
    write(project / "worker.py", "import helper\n\n\ndef serve_request():\n    helper.load()\n")
    assert checked() == ([], 2)
    write(project / "worker.py", WORKER)
    assert checked() == (["KC101"], 2)


PROGRAM = {
    "start.py": "from multiprocessing import Process\n\nfrom entry import enter\n\nProcess(target=enter)\n",
    "entry.py": "from load import load\n\n\ndef enter():\n    load()\n",
    "load.py": HELPER + "\n\nclass Part:\n    def read(self):\n        load()\n",
    "show.py": "from gather import parts\n\n\ndef show():\n    raise ValueError(f'{parts()}')\n",
    "gather.py": "def parts():\n    yield 1\n",
    "apart.py": "def apart():\n    return 1\n",
}
"""KC101 in `load.py`, as a worker calls `load`, and KC201 in `show.py`, as `parts` is a generator function."""


@pytest.mark.parametrize(
    ("name", "old", "new", "found", "looked"),
    [
        pytest.param("apart.py", "return 1", "return 2", ["KC101", "KC201"], 1, id="of no interest"),
        pytest.param("apart.py", "", "# load()\n", ["KC101", "KC201"], 1, id="names what it does not import"),
        pytest.param("apart.py", "", "import load\n\nload.load()\n", ["KC201"], 2, id="calls it now, too"),
        pytest.param("start.py", "target=enter", "args=enter", ["KC201"], 2, id="starts it no longer"),
        pytest.param("start.py", "\nProcess", "\n\nProcess", ["KC101", "KC201"], 2, id="starts it a line further"),
        pytest.param("entry.py", "    load()", "    pass", ["KC201"], 2, id="calls it no longer"),
        pytest.param("gather.py", "yield", "return", ["KC101"], 6, id="is no generator any more"),
        pytest.param("gather.py", "yield 1", "yield 2", ["KC101", "KC201"], 2, id="yields something else"),
        pytest.param("show.py", "{parts()}", "{[*parts()]}", ["KC101"], 1, id="is right now"),
        pytest.param(
            "apart.py", "", "class Mine(Part):\n    pass\n", ["KC101", "KC201"], 2, id="inherits from a caller's class"
        ),
        pytest.param("apart.py", "", "class Mine(Whole):\n    pass\n", ["KC101", "KC201"], 1, id="inherits otherwise"),
        pytest.param("apart.py", "def apart()", "def apart(", ["KC101", "KC201"], 1, id="can't be parsed"),
    ],
)
def test_only_what_a_change_reaches_is_checked_again(
    project: Path,
    checked: Callable[[], tuple[list[str], int]],
    name: str,
    old: str,
    new: str,
    found: list[str],
    looked: int,
) -> None:
    for file in project.glob("*.py"):
        file.unlink()
    for file_name, text in PROGRAM.items():
        write(project / file_name, text)
    assert checked() == (["KC101", "KC201"], 6)
    write(project / name, PROGRAM[name].replace(old, new) if old else PROGRAM[name] + new)
    assert checked() == (found, looked)
    shutil.rmtree(project / "cache")
    assert checked() == (found, 6)


def test_names_are_kept_as_they_are(project: Path, checked: Callable[[], tuple[list[str], int]]) -> None:
    """What looks like a generator function in a text may have a blank in its name."""
    write(project / "worker.py", f'"""\ndef a\u3000b():\n    yield\n"""\n{WORKER}')
    assert checked() == (["KC101"], 3)
    write(project / "other.py", "x = 2\n")
    assert checked() == (["KC101"], 1)


def test_files_that_are_asked_for_by_turns_share_what_is_known(
    project: Path, checked: Callable[..., tuple[list[str], int]]
) -> None:
    """What is no part of the program, as tests, may change while nobody asks for it, and so may what it depends on."""
    (project / "tests").mkdir()
    write(project / "tests" / "test_apart.py", "raise ValueError(i for i in ())\n")
    write(project / "tests" / "test_load.py", "from other import parts\n\nraise ValueError(parts())\n")
    write(project / "other.py", "def parts():\n    yield 1\n")
    assert checked() == (["KC101", "KC201", "KC201"], 5)
    assert checked(paths=["helper.py"]) == (["KC101"], 0)
    write(project / "tests" / "test_apart.py", "raise ValueError([i for i in ()])\n")
    write(project / "other.py", "class Parts:\n    def parts(self):\n        yield 1\n\n\ndef parts():\n    return 1\n")
    assert checked(paths=["helper.py"]) == (["KC101"], 0)
    assert checked() == (["KC101"], 3)


def test_a_file_that_comes_or_goes_counts(project: Path, checked: Callable[[], tuple[list[str], int]]) -> None:
    (project / "worker.py").unlink()
    assert checked() == ([], 2)
    write(project / "worker.py", WORKER)
    assert checked() == (["KC101"], 3)
    (project / "worker.py").unlink()
    assert checked() == ([], 0)  # the first record holds again


def test_where_programs_begin_counts(project: Path, checked: Callable[[], tuple[list[str], int]]) -> None:
    (project / "sub").mkdir()
    (project / "worker.py").rename(project / "sub" / "worker.py")
    write(project / "sub" / "__init__.py", "")
    assert checked()[1] == 4
    assert checked()[1] == 0
    write(project / "sub" / "pyproject.toml", "")  # the files are the same, but these are of another program now
    assert checked()[1] == 2


def test_bytes_count_where_times_do_not_tell(project: Path, checked: Callable[[], tuple[list[str], int]]) -> None:
    checked()
    (project / "other.py").touch()
    assert checked() == (["KC101"], 0)
    (project / "helper.py").write_text(HELPER)  # just now: a change in the same moment would have the same time
    checked()
    status = (project / "helper.py").stat()
    (project / "helper.py").write_text(HELPER.replace("from None", "from Nope"))
    os.utime(project / "helper.py", ns=(status.st_mtime_ns, status.st_mtime_ns))
    assert checked() == ([], 1)


def test_another_file_of_the_same_times_and_size_counts(
    project: Path, checked: Callable[[], tuple[list[str], int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    stat = os.stat

    def coarse(*asked: Any, **how: Any) -> os.stat_result:
        """As on a file system that tells no two moments of one year apart."""
        found = stat(*asked, **how)
        return os.stat_result(tuple(found), {"st_mtime_ns": OLD * 10**9, "st_ctime_ns": OLD * 10**9})

    monkeypatch.setattr(os, "stat", coarse)
    for name, function in (("kept", "init_worker"), ("other", "shut_worker")):
        (project.parent / name).mkdir()
        write(project.parent / name / "extra.py", HELPER.replace("load", function))
    (project / "extra.py").symlink_to(project.parent / "kept" / "extra.py")
    assert checked()[0] == ["KC101", "KC101"]
    (project / "extra.py").unlink()
    (project / "extra.py").symlink_to(project.parent / "other" / "extra.py")
    assert checked()[0] == ["KC101"]


def test_a_change_during_the_check_that_is_taken_back_counts(
    project: Path, checked: Callable[[], tuple[list[str], int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    check = Engine.check

    def disturbed(self: Engine, path: Path) -> object:
        write(project / "helper.py", "def load(): pass\n")
        try:
            return check(self, path)
        finally:
            write(project / "helper.py", HELPER)

    with monkeypatch.context() as patch:
        patch.setattr(Engine, "check", disturbed)
        assert checked()[0] == []
    assert checked() == (["KC101"], 3)


def test_trouble_is_told_by_the_name_that_is_asked_for(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "sub").mkdir()
    write(project / "sub" / "broken.py", HELPER.replace("load()", "load("))
    for folder, name in (
        (project, "sub/broken.py"),
        (project / "sub", "broken.py"),
        (project.parent, "project/sub/broken.py"),
    ):
        monkeypatch.chdir(folder)
        (trouble,) = Run(Layers(isolated=True)).check_all([name], project / "cache")
        assert str(trouble) == f"{name}:1: invalid syntax"
    assert len(list((project / "cache").glob("*.json"))) == 1


def test_what_could_not_be_read_is_read_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)

    def full(path: Path) -> bytes:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as failing:
        failing.setattr("keepcause.lint.engine.read", full)
        (trouble,) = Run(Layers(isolated=True)).check_all(["helper.py"], project / "cache")
        assert isinstance(trouble, Trouble)
    (report,) = Run(Layers(isolated=True)).check_all(["helper.py"], project / "cache")
    assert isinstance(report, FileReport)


def test_what_lies_above_the_target_of_a_link_counts(
    project: Path, checked: Callable[..., tuple[list[str], int]]
) -> None:
    """`link/../helper.py` is another file than the `helper.py` beside `link`."""
    (project.parent / "elsewhere" / "inner").mkdir(parents=True)
    (project / "link").symlink_to(project.parent / "elsewhere" / "inner")
    write(project.parent / "elsewhere" / "helper.py", HELPER)
    assert checked(["link/../helper.py"])[0] == ["KC101"]
    write(project.parent / "elsewhere" / "helper.py", HELPER.replace("from None", "from Nope"))
    assert checked(["link/../helper.py"])[0] == []


def test_other_options_are_another_check(checked: Callable[..., tuple[list[str], int]]) -> None:
    checked()
    assert checked(select=("KC103",)) == ([], 3)
    assert checked(select=("KC103",)) == ([], 0)
    assert checked() == (["KC101"], 0)


def test_every_field_of_a_finding_is_kept(tmp_path: Path) -> None:
    span = Span(3, 4, 5, 6)
    full = Finding(
        code="KC101",
        message="\udcff \n é",
        span=span,
        statement=Span(1, 2, 3, 4),
        function=7,
        fix=Fix(Safety.UNSAFE, "title", (Edit(EditKind.LIST_FIELD, span, ("values", 1), "call"),)),
        no_fix="no",
        worker_init=WorkerInit(Grade.LIKELY, (Step("f", "a.py", 3, "why"), Step("g", "b.py", 4, "so"))),
        raised="Error",
        at_best=Grade.POSSIBLE,
        as_last=True,
        note="note",
    )
    plain = Finding("KC102", "m", span, span)
    assert all(getattr(full, each.name) != getattr(plain, each.name) for each in fields(Finding) if each.name != "span")
    name = "file\udcff.py"
    (tmp_path / name).write_bytes(b"x")
    record, again = (Record(tmp_path / "cache", [], str(tmp_path), []) for _ in range(2))
    record.load([name], pytest.fail)
    record.results[name] = (full, plain, replace(full, worker_init=None, fix=None)), Trouble(name, "reason", 3)
    record.store()
    again.load([name], pytest.fail)
    assert again.results == record.results


@pytest.mark.parametrize("damage", [b"", b"\n", b"\xff", b"[" * 100_000])
def test_a_damaged_record_is_left_aside_with_a_warning(project: Path, damage: bytes) -> None:
    def check() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "keepcause", "check", "-q", "--output-format=concise"]
        return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)

    first = check()
    assert (first.returncode, first.stderr) == (1, "")
    (record,) = (project / ".keepcause_cache").glob("*.json")
    record.write_bytes(damage or record.read_bytes().replace(b"KC101", b"KC1O1"))
    second = check()
    assert (second.returncode, second.stdout) == (1, first.stdout)
    assert second.stderr == f"keepcause: warning: {record}: damaged; it is not used, and written anew\n"
    third = check()
    assert (third.stdout, third.stderr) == (first.stdout, "")


def test_where_it_is_kept(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "sub").mkdir()
    monkeypatch.chdir(project / "sub")
    for options, kept in (
        (["--no-cache"], set()),
        (["--cache-dir", "named"], {"sub/named"}),
        ([], {"sub/named", ".keepcause_cache"}),
    ):
        assert cli.main(["check", "..", *options]) == 1
        assert {str(path.relative_to(project).parent) for path in project.rglob("CACHEDIR.TAG")} == kept


def test_the_folder_is_hidden_from_git_and_from_backups(
    project: Path, checked: Callable[[], tuple[list[str], int]]
) -> None:
    checked()
    assert (project / "cache/.gitignore").read_text() == "*\n"
    assert (project / "cache/CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55\n")


def test_what_nobody_asks_for_goes(project: Path, checked: Callable[..., tuple[list[str], int]]) -> None:
    checked()
    (old,) = (project / "cache").glob("*.json")
    os.utime(old, (OLD, OLD))
    checked(select=("KC103",))
    assert not old.exists()


def test_of_too_much_the_oldest_goes(
    project: Path, checked: Callable[..., tuple[list[str], int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    checked()
    (old,) = (project / "cache").glob("*.json")
    os.utime(old, (time.time() - 60,) * 2)
    monkeypatch.setattr("keepcause.cache._MOST_BYTES", old.stat().st_size + 1)
    checked(select=("KC103",))
    assert old not in list((project / "cache").glob("*.json"))
    assert checked(select=("KC103",))[1] == 0


def test_a_folder_that_cannot_be_written_is_no_trouble(
    project: Path, checked: Callable[[], tuple[list[str], int]]
) -> None:
    (project / "cache").write_text("a file")
    assert checked() == checked() == (["KC101"], 3)


def test_records_hold_plain_json_only(project: Path, checked: Callable[[], tuple[list[str], int]]) -> None:
    checked()
    (record,) = (project / "cache").glob("*.json")
    _, files, program = record.read_text(encoding="ascii").split("\n")
    states, results = json.loads(files)
    assert sorted(states) == sorted(results) == ["helper.py", "other.py", "worker.py"]
    assert [name for name, result in results.items() if result] == ["helper.py"]
    entries, uses = json.loads(program)
    assert sorted(entries) == ["helper.py", "other.py", "worker.py"]
    assert list(uses) == ["helper.py"]


def test_eight_runs_at_once_agree(project: Path) -> None:
    command = [sys.executable, "-m", "keepcause", "check", "-q", "--output-format=concise"]
    runs = [subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(8)]
    said = [run.communicate(timeout=60) for run in runs]
    assert len(set(said)) == 1
    assert said[0][0].count(b"KC101") == 1
    assert said[0][1] == b""


@pytest.mark.parametrize(("name", "why"), [(".", "holds other files"), ("worker.py", "is no folder")])
def test_a_folder_with_other_files_is_no_cache(project: Path, name: str, why: str) -> None:
    command = [sys.executable, "-m", "keepcause", "check", "--cache-dir", name]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert why in done.stderr
    assert not (project / ".gitignore").exists()


def test_times_that_someone_set_do_not_hide_a_change(
    project: Path, checked: Callable[[], tuple[list[str], int]]
) -> None:
    checked()
    write(project / "helper.py", HELPER.replace("from None", "from Nope"))
    assert checked() == ([], 1)


def test_links_of_the_checked_code_lead_nowhere(project: Path, tmp_path: Path) -> None:
    """Else a link in place of the folder, or in it, would have files of others written and deleted."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    write(elsewhere / "precious.json", "{}")
    write(elsewhere / "CACHEDIR.TAG", "of someone else")
    (project / ".keepcause_cache").symlink_to(elsewhere)
    command = [sys.executable, "-m", "keepcause", "check", "-q"]
    assert subprocess.run(command, cwd=project, check=False, capture_output=True, timeout=60).returncode == 1
    assert sorted(path.name for path in elsewhere.iterdir()) == ["CACHEDIR.TAG", "precious.json"]
    (project / ".keepcause_cache").unlink()
    (project / ".keepcause_cache").mkdir()
    (project / ".keepcause_cache" / ".gitignore").symlink_to(elsewhere / "made.txt")
    assert subprocess.run(command, cwd=project, check=False, capture_output=True, timeout=60).returncode == 1
    assert sorted(path.name for path in elsewhere.iterdir()) == ["CACHEDIR.TAG", "precious.json"]


def test_only_records_are_deleted(project: Path, checked: Callable[..., tuple[list[str], int]]) -> None:
    checked()
    write(project / "cache" / "precious.json", "{}")
    write(project / "cache" / "notes.tmp", "")
    checked(select=("KC103",))
    assert (project / "cache" / "precious.json").exists()
    assert (project / "cache" / "notes.tmp").exists()


def test_a_link_in_place_of_a_record_is_none(
    project: Path, checked: Callable[[], tuple[list[str], int]], tmp_path: Path
) -> None:
    checked()
    (record,) = (project / "cache").glob("*.json")
    elsewhere = tmp_path / "elsewhere.json"
    record.rename(elsewhere)
    record.symlink_to(elsewhere)
    os.utime(elsewhere, (OLD, OLD))
    assert checked() == (["KC101"], 3)
    assert elsewhere.stat().st_mtime == OLD
    assert not record.is_symlink()
