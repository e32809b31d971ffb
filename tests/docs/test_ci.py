"""What the README and docs/ci.md give to GitHub, GitLab and tox, run as these run it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from keepcause import cli
from walk import ROOT, File, Reader, page

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
INPUT = re.compile(r"\$\{\{ inputs\.(\w+) \}\}")
BASH = "bash --noprofile --norc -eo pipefail"
"""How GitHub runs a step of `shell: bash`."""

BAD = """\
def init_device(index):
    try:
        return int(index)
    except ValueError:
        raise RuntimeError("no such device") from None
"""
FILES = {step.name: step for path in ("README.md", "docs/ci.md") for step in page(path) if isinstance(step, File)}
WORKFLOWS = [name for name in FILES if name.startswith(".github/workflows/")]


def valid(schema: str, file: Path) -> None:
    """Hold a file against a published schema."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def runner(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The temporary folder of a GitHub runner in which the action has installed keepcause."""
    folder = tmp_path_factory.mktemp("runner")
    code, output = step(Reader(folder, folder), ACTION["runs"]["steps"][0], clone, folder, {})
    assert code == 0, output
    return folder


def step(
    reader: Reader, step: Mapping[str, Any], clone: Path, runner: Path, inputs: Mapping[str, str]
) -> tuple[int, str]:
    """Run a step of the action as GitHub does: inputs stand where the step names them."""
    given = {name: value["default"] for name, value in ACTION["inputs"].items()} | dict(inputs)
    script = runner / "step.sh"
    script.write_text(INPUT.sub(lambda match: given[match[1]], step["run"]), encoding="utf-8")
    reader.environment |= {"RUNNER_TEMP": str(runner), "GITHUB_ACTION_PATH": str(clone)}
    reader.environment |= {
        name: INPUT.sub(lambda match: given[match[1]], value) for name, value in step.get("env", {}).items()
    }
    return reader.ends(f"{BASH} {script}")


def check(reader: Reader, runner: Path, **inputs: str) -> tuple[int, str]:
    """Run the action's second step."""
    return step(reader, ACTION["runs"]["steps"][1], runner, runner, inputs)


def write(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(BAD, encoding="utf-8")


def test_the_action_is_what_github_takes() -> None:
    valid("github-actions", ROOT / "action.yml")
    assert all(step["shell"] == "bash" for step in ACTION["runs"]["steps"])


def test_the_action_fails_on_findings(reader: Reader, runner: Path) -> None:
    (reader.folder / "clean.py").write_text("x = 1\n", encoding="utf-8")
    assert check(reader, runner)[0] == 0
    write(reader.folder, ["worker.py"])
    code, output = check(reader, runner)
    assert code == 1
    assert re.search(r"^::error .*file=\S*worker\.py,line=5,", output, re.MULTILINE), output


def test_the_action_checks_the_paths_and_takes_the_options(reader: Reader, runner: Path) -> None:
    write(reader.folder, ["a b/worker.py", "*/worker.py", "-c/worker.py", "other/worker.py"])
    code, output = check(reader, runner, paths="a b\n\n*\n-c\n", options="--output-format\n  concise -q")
    assert code == 1
    found = {line.partition(":")[0] for line in output.splitlines()}
    assert found == {"a b/worker.py", "*/worker.py", "-c/worker.py"}
    assert check(reader, runner, options="--select KC201")[0] == 0


@pytest.mark.parametrize("text", ["$(touch ran)", "`touch ran`", "; touch ran #", '"; touch ran; "', "\ntouch ran\n"])
def test_inputs_of_the_action_are_never_run(reader: Reader, runner: Path, text: str) -> None:
    for inputs in ({"paths": text}, {"options": text}):
        assert check(reader, runner, **inputs)[0] == 2
    assert not (reader.folder / "ran").exists()


@pytest.mark.parametrize("name", WORKFLOWS)
def test_workflows_are_what_github_takes(name: str, tmp_path: Path) -> None:
    file = tmp_path / "workflow.yml"
    file.write_text(FILES[name].text, encoding="utf-8")
    valid("github-workflows", file)
    (job,) = yaml.safe_load(FILES[name].text)["jobs"].values()
    for step in job["steps"]:
        if "/keepcause@" in step.get("uses", ""):
            assert step.get("with", {}).keys() <= ACTION["inputs"].keys()
            cli._parsed(["check", *step.get("with", {}).get("options", "").split()])
        elif step.get("run", "").startswith("keepcause "):
            cli._parsed(step["run"].split()[1:])


def test_the_gitlab_job_writes_its_report(reader: Reader, clone: Path, tmp_path: Path) -> None:
    reader.write(FILES[".gitlab-ci.yml"])
    valid("gitlab-ci", reader.folder / ".gitlab-ci.yml")
    write(reader.folder, ["worker.py"])
    job = yaml.safe_load(FILES[".gitlab-ci.yml"].text)["keepcause"]
    script = tmp_path / "job.sh"
    script.write_text("\n".join(["set -e", "python3 -m venv $0.venv", "PATH=$0.venv/bin:$PATH", *job["script"]]))
    reader.environment["KEEPCAUSE"] = str(clone)
    reader.run(f"bash {script}", expect=1)
    report = json.loads((reader.folder / job["artifacts"]["reports"]["codequality"]).read_text(encoding="utf-8"))
    assert [(entry["check_name"], entry["location"]["path"]) for entry in report] == [("KC101", "worker.py")]


def test_tox_runs_it(reader: Reader) -> None:
    reader.write(FILES["tox.ini"])
    write(reader.folder, ["src/worker.py"])
    assert "src/worker.py:5:9: KC101" in reader.run("tox -q -e keepcause", expect=1)
    reader.run("tox -q -e keepcause -- --select KC201 src")


def test_there_are_workflows() -> None:
    assert len(WORKFLOWS) == 3
