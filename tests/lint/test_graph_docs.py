"""The tables and sessions of `docs/worker-init.md`, run as written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from keepcause import cli, commands
from keepcause.lint.checked import FileReport
from keepcause.lint.engine import Engine, Settings
from keepcause.lint.finding import LAUNCH_SITE, Grade

TEXT = (Path(__file__).parents[2] / "docs" / "worker-init.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
IMPORTS, *_ = (text for _, text in BLOCKS)
SHARD = next(text for _, text in BLOCKS if text.startswith("# shard.py\n"))
SESSIONS = re.findall(r"^\$ keepcause (.*)\n((?:(?!\$ ).*\n)*)", "".join(t for k, t in BLOCKS if k == "console"), re.M)
LOADING = """\
def load(*arguments):
    try:
        open("shard")
    except OSError:
        raise RuntimeError("no shard") from None
"""
PLACE = re.compile(r" at line \d+(?: of \S+)?")


def rows(name: str) -> list[tuple[str, str, str]]:
    """What a table lists, its examples and what it says of each."""
    table = TEXT.partition(f"<!-- {name} -->\n")[2].partition(f"<!-- /{name} -->")[0]
    cells = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    return [(what, "\n".join(span for _, span in SPAN.findall(example)), last) for what, example, last in cells]


SPAN = re.compile(r"(`+)(.*?)\1(?!`)")
EVIDENCE = rows("evidence")
CUTS = rows("cuts")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: a program with `load` in a file of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "loading.py").write_text(LOADING, encoding="utf-8")
    return tmp_path


def paths(folder: Path, example: str) -> list[str]:
    """The worker-init path of each finding with this example in the program."""
    (folder / "example.py").write_text(f"{IMPORTS}\n\n{example}\n", encoding="utf-8")
    report = Engine(Settings(codes=frozenset({"KC101"}))).check(folder / "loading.py")
    assert isinstance(report, FileReport), report
    found = []
    for finding in report.findings:
        assert finding.worker_init
        first, *steps = finding.worker_init.path
        root = first.function if first.why == LAUNCH_SITE else f"{first.function} ({first.why})"
        found.append(PLACE.sub("", " -> ".join([root, *(step.function for step in steps)])))
    return found


def test_nothing_is_found_without_evidence(project: Path) -> None:
    assert paths(project, "") == []
    assert paths(project, "def anything(): load()") == []


@pytest.mark.parametrize(("example", "path"), [row[1:] for row in EVIDENCE], ids=[row[0] for row in EVIDENCE])
def test_evidence(project: Path, example: str, path: str) -> None:
    assert paths(project, example) == [path.strip("`") if path.count("`") == 2 else path[2:-2]]


@pytest.mark.parametrize(("example", "reason"), [row[1:] for row in CUTS], ids=[row[0] for row in CUTS])
def test_what_is_cut(project: Path, example: str, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert paths(project, example) == []
    name, _, why = reason.partition(": ")
    assert cli.main(["trace", "example.py", "loading.py"]) == commands.CLEAN
    said = why if why.startswith("worker-init") else f"not worker-init: {why}\n"
    assert f": {name.strip('`')}\n  {said}" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "output"), SESSIONS, ids=[arguments for arguments, _ in SESSIONS])
def test_sessions(
    arguments: str, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shard.py").write_text(SHARD, encoding="utf-8")
    assert cli.main(arguments.split()) == commands.CLEAN
    assert capsys.readouterr().out.strip() == output.strip()


def test_grades_are_all_told() -> None:
    table = TEXT.partition("## How sure it is\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| \*(\w+)\*", table, re.MULTILINE) == [grade.value for grade in Grade]
