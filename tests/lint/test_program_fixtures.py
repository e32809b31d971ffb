"""The programs in `fixtures/projects`, through the real engine and through `keepcause trace`.

Each `raise ... from None` there has a comment that says what is expected: `# worker-init: <grade>: <names of the
path>`, `# not worker-init: <words of the reason>` or, where the rule itself leaves it alone, `# no finding`.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from keepcause import cli, commands
from keepcause.config.layers import Layers
from keepcause.lint.checked import FileReport
from keepcause.lint.engine import Engine, Settings
from keepcause.lint.files import Tree
from keepcause.lint.finding import LAUNCH_SITE, Grade

if TYPE_CHECKING:
    from keepcause.lint.finding import WorkerInit

PROJECTS = Path(__file__).parents[1] / "fixtures" / "projects"
NAMES = sorted(path.name for path in PROJECTS.iterdir() if path.is_dir())
EXPECTED = re.compile(
    r"from None {2}# (?:worker-init: (?P<path>.+)|not worker-init: (?P<reason>.+)|(?P<none>no finding))"
)
PLACE = re.compile(r" at line \d+(?: of \S+)?")
STEP = re.compile(r" {4}\S")
HEADER = re.compile(r"(?P<path>\S+?):(?P<line>\d+): (?P<name>\S+)")

each_project = pytest.mark.parametrize("name", NAMES)


@pytest.fixture
def project(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of one program, where no folder above it makes it a test; the working directory."""
    copy = tmp_path / "copy"
    shutil.copytree(PROJECTS / name, copy)
    if not (copy / "pyproject.toml").exists():
        (copy / "pyproject.toml").touch()
    monkeypatch.chdir(copy)
    return copy


def expectations(project: Path) -> dict[tuple[str, int], re.Match[str]]:
    """What each `raise ... from None` says of itself, by file and line."""
    found = {}
    for path in sorted(project.rglob("*.py")):
        for number, line in enumerate(path.read_bytes().decode("latin-1").splitlines(), 1):
            if "from None" in line:
                match = EXPECTED.search(line)
                assert match, f"{path.name}:{number} says nothing: {line}"
                found[path.relative_to(project).as_posix(), number] = match
    return found


def told(evidence: WorkerInit) -> str:
    """Grade and path of a finding, names only."""
    names = [step.function for step in evidence.path]
    if evidence.path[0].why != LAUNCH_SITE:
        names[0] += f" ({evidence.path[0].why})"
    return PLACE.sub("", f"{evidence.grade}: {' -> '.join(names)}")


def engine(project: Path, evidence: Grade = Grade.POSSIBLE) -> Engine:
    """What `keepcause check --evidence possible --select KC101` checks the project with."""
    declared = Layers().settings(project / "any.py").declared
    return Engine(Settings(codes=frozenset({"KC101"}), evidence=evidence, declared=declared))


def checked(engine: Engine, project: Path, paths: list[Path]) -> list[str]:
    """`file:line: grade: path` of each finding, in the order they come in."""
    found = []
    for path in Tree().expand(paths):
        assert isinstance(path, str), path
        report = engine.check(Path(path))
        assert isinstance(report, FileReport), report
        name = os.path.relpath(report.path, project)
        for finding in report.findings:
            assert finding.worker_init
            found.append(f"{name}:{finding.span.line}: {told(finding.worker_init)}")
    return found


@each_project
def test_findings(name: str, project: Path) -> None:
    expected = expectations(project)
    assert expected
    found = checked(engine(project), project, [project])
    assert found == [f"{path}:{line}: {match['path']}" for (path, line), match in expected.items() if match["path"]]


@each_project
def test_trace(name: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for (path, line), match in expectations(project).items():
        assert cli.main(["trace", f"{path}:{line}"]) == commands.CLEAN
        header, verdict, *rest = capsys.readouterr().out.splitlines()
        place = HEADER.fullmatch(header)
        assert place, header
        assert place["path"] == path
        assert int(place["line"]) <= line
        if match["path"]:
            grade, _, names = match["path"].partition(": ")
            assert verdict == f"  worker-init ({grade}):"
            steps = [step.strip().split("  ") for step in itertools.takewhile(STEP.match, rest)]
            first, _, why = steps[0]
            root = first if why == LAUNCH_SITE else PLACE.sub("", f"{first} ({why})")
            assert [root, *(step[0] for step in steps[1:])] == names.split(" -> ")
        elif match["reason"]:
            assert verdict.startswith("  not worker-init: ")
            assert match["reason"] in verdict, f"{path}:{line}"


@each_project
def test_findings_do_not_depend_on_what_is_checked_or_from_where(
    name: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = checked(engine(project), project, [project])
    paths = sorted(project.rglob("*.py"))
    one_by_one = [found for path in paths for found in checked(engine(project), project, [path])]
    assert sorted(one_by_one) == sorted(whole)
    assert sorted(checked(engine(project), project, paths[::-1])) == sorted(whole)
    folders = sorted({path.parent for path in paths}, reverse=True)
    assert sorted(checked(engine(project), project, folders)) == sorted(whole)
    monkeypatch.chdir(tmp_path)
    assert checked(engine(project), project, [Path("copy")]) == whole
    monkeypatch.chdir(folders[0])
    assert checked(engine(project), project, [Path(os.path.relpath(project))]) == whole


@each_project
def test_evidence_chooses_by_grade(name: str, project: Path) -> None:
    every = checked(engine(project), project, [project])
    grades = list(Grade)
    for least in grades:
        wanted = tuple(f": {grade}: " for grade in grades[: grades.index(least) + 1])
        found = checked(engine(project, least), project, [project])
        assert found == [line for line in every if any(grade in line for grade in wanted)]


@pytest.mark.parametrize(
    ("marks", "inside"),
    [
        ([".git/HEAD"], []),
        (["pyproject.toml"], []),
        (["setup.cfg"], []),
        (["setup.py"], []),
        ([], []),
        (["pyproject.toml"], ["app/setup.py"]),
    ],
)
def test_any_mark_of_a_root_links_the_same_program(
    marks: list[str], inside: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(PROJECTS / "imports" / "app", tmp_path / "project" / "app")
    for mark in (*marks, *inside):
        (tmp_path / "project" / mark).parent.mkdir(exist_ok=True)
        (tmp_path / "project" / mark).touch()
    monkeypatch.chdir(tmp_path)
    alone = tmp_path / "project" / "app" / "core" / "deep.py"
    assert checked(engine(tmp_path), tmp_path, [alone]) == [
        "project/app/core/deep.py:9: sure: Process(target=by_alias) -> aliased",
        "project/app/core/deep.py:16: sure: Process(target=app.core.deep.by_full_name) -> by_full_name",
        "project/app/core/deep.py:23: sure: Process(target=depths.by_module_alias) -> by_module_alias",
    ]
