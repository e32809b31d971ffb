"""Each output format against what reads it: a schema, or the documented grammar of its lines."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit

import jsonschema
import pytest

from keepcause.config import FOR_PEOPLE, FORMATS
from keepcause.lint.rule import all_rules

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads(Path(__file__).with_name("sarif-2.1.0.json").read_text(encoding="utf-8"))
# https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
GITLAB = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "check_name": {"type": "string", "minLength": 1},
            "fingerprint": {"type": "string", "minLength": 1},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "pattern": r"^(?!\./)"},
                    "lines": {"type": "object", "required": ["begin"], "properties": {"begin": {"type": "integer"}}},
                },
            },
        },
    },
}
WORKER = """\
class Worker:
    def init_device(self):
        self.open()

    def open(self):
        try:
            self.device.open()
        except OSError:
            raise RuntimeError("no device") from None
"""
NAMES = [
    "worker.py",
    "with space, and: percent%0A.py",
    "new\nline.py",
    "::error title=x::y.py",
    "\x1b[31mred\x1b]0;title\x07.py",
    "r\u00e4der/\u673a\u5668.py",
    os.fsdecode(b"byte\xff.py"),
    "carriage\rreturn.py",
]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: a folder of a repository, with the same fault in files of all kinds of names."""
    for name in NAMES:
        path = tmp_path / "sub" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(WORKER, encoding="utf-8")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    monkeypatch.chdir(tmp_path / "sub")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    return tmp_path


def report(output_format: str, *arguments: str, code: int = 1) -> str:
    """What `keepcause check` prints, which is UTF-8."""
    done = subprocess.run(
        [sys.executable, "-m", "keepcause", "check", "--output-format", output_format, *arguments],
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (code, b"")
    return done.stdout.decode()


def commands(text: str) -> list[tuple[str, dict[str, str], str]]:
    """Workflow commands as the runner reads them: name, properties and message, with their escapes undone."""
    found = []
    for line in text.split("\n")[:-1]:
        match = re.fullmatch(r"::([a-z-]+) ([^\n]*?)::([^\r\n]*)", line)
        assert match, line
        pairs = [pair.partition("=") for pair in match[2].split(",")]
        properties = {key: unescaped(value, {"%3A": ":", "%2C": ","}) for key, _, value in pairs}
        found.append((match[1], properties, unescaped(match[3], {})))
    return found


def unescaped(text: str, more: dict[str, str]) -> str:
    escapes = {"%0D": "\r", "%0A": "\n", **more, "%25": "%"}
    return re.sub("|".join(escapes), lambda match: escapes[match[0]], text)


def test_github(project: Path) -> None:
    found = commands(report("github"))
    assert [name for name, _, _ in found] == ["error"] * len(NAMES)
    for _, properties, message in found:
        assert properties.keys() == {"file", "line", "col", "endLine", "endColumn", "title"}
        assert (properties["line"], properties["col"], properties["title"]) == ("9", "13", "keepcause KC101")
        assert re.search(r"\.py:9:13: KC101 `raise", message)
    files = {properties["file"] for _, properties, _ in found}
    plain = {name for name in NAMES if name.isprintable()} | {"new\nline.py", "carriage\rreturn.py"}
    assert {f"{project}/sub/{name}" for name in plain} <= files
    assert f"{project}/sub/byte\\xff.py" in files


@pytest.mark.parametrize("output_format", FORMATS)
def test_no_name_steers_a_terminal_or_a_runner(project: Path, output_format: str) -> None:
    text = report(output_format)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
    starts = {line[:2] for line in text.splitlines()}
    assert ("::" in starts) == (output_format == "github")


def sarif(*arguments: str, code: int = 1) -> dict[str, object]:
    log = json.loads(report("sarif", *arguments, code=code))
    jsonschema.validate(log, SCHEMA, format_checker=jsonschema.FormatChecker())
    run = log["runs"][0]
    assert isinstance(run, dict)
    return run


def file_of(run: dict[str, object], location: dict[str, object]) -> bytes:
    """The file that a location of SARIF means."""
    bases = run["originalUriBaseIds"]
    physical = location["physicalLocation"]
    assert isinstance(bases, dict)
    assert isinstance(physical, dict)
    artifact = physical["artifactLocation"]
    base = urlsplit(bases[artifact["uriBaseId"]]["uri"]) if "uriBaseId" in artifact else urlsplit("file:///")
    uri = urlsplit(artifact["uri"])
    assert not uri.query
    assert not uri.fragment
    assert base.path.endswith("/")
    return unquote_to_bytes(uri.path) if uri.scheme else unquote_to_bytes(base.path + uri.path)


def test_sarif(project: Path) -> None:
    run = sarif()
    results = run["results"]
    assert isinstance(results, list)
    files = {file_of(run, result["locations"][0]) for result in results}
    assert files == {os.fsencode(project / "sub" / name) for name in NAMES}
    for result in results:
        assert result["ruleId"] == "KC101"
        assert result["locations"][0]["physicalLocation"]["region"] == {
            "startLine": 9,
            "startColumn": 13,
            "endLine": 9,
            "endColumn": 54,
        }
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].startswith("sub/")


def test_sarif_holds_every_rule(project: Path) -> None:
    run = sarif("--select", "KC201", code=0)
    assert run["results"] == []
    tool = run["tool"]
    assert isinstance(tool, dict)
    rules = tool["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [rule.code for rule in all_rules()]
    for described, rule in zip(rules, all_rules(), strict=True):
        assert described["name"] == rule.name
        assert described["help"]["markdown"] == described["help"]["text"] == rule.page()
        assert described["fullDescription"]["text"] == described["shortDescription"]["text"]
        assert described["defaultConfiguration"]["enabled"] == rule.on_by_default


def test_a_code_flow_shows_the_steps_of_the_json() -> None:
    """The example service's findings, walked step by step as a viewer does."""
    service = str(ROOT / "examples" / "service")
    run = sarif(service, "--select", "KC1")
    results = run["results"]
    assert isinstance(results, list)
    listed = json.loads(report("json", service, "--select", "KC1"))
    assert len(results) == len(listed) > 0
    for result, finding in zip(results, listed, strict=True):
        (flow,) = result["codeFlows"]
        (thread,) = flow["threadFlows"]
        steps = [
            (
                os.fsdecode(file_of(run, step["location"])),
                step["location"]["physicalLocation"]["region"]["startLine"],
                step["location"]["message"]["text"],
            )
            for step in thread["locations"]
        ]
        path = finding["worker_init"]["path"]
        assert steps == [(step["file"], step["line"], f"{step['function']}: {step['why']}") for step in path]
        assert finding["worker_init"]["grade"] in flow["message"]["text"]


def test_a_file_outside_of_the_repository_has_an_absolute_uri(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "wor ker.py"
    outside.write_text(WORKER)
    run = sarif(str(outside))
    results = run["results"]
    assert isinstance(results, list)
    assert "uriBaseId" not in results[0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert file_of(run, results[0]["locations"][0]) == os.fsencode(outside)
    (found,) = json.loads(report("gitlab", str(outside)))
    assert found["location"]["path"] == str(outside)


def test_gitlab(project: Path) -> None:
    found = json.loads(report("gitlab"))
    jsonschema.validate(found, GITLAB)
    assert len({each["fingerprint"] for each in found}) == len(found) == len(NAMES)
    paths = {each["location"]["path"] for each in found}
    unicode = {name for name in NAMES if not re.search(r"[\ud800-\udfff]", name)}
    assert paths == {f"sub/{name}" for name in unicode} | {"sub/byte\\xff.py"}
    assert {each["location"]["lines"]["begin"] for each in found} == {9}


def fingerprints(path: Path) -> dict[str, list[str]]:
    results = sarif(str(path))["results"]
    assert isinstance(results, list)
    return {
        "sarif": [result["partialFingerprints"]["keepcause/v1"] for result in results],
        "gitlab": [each["fingerprint"] for each in json.loads(report("gitlab", str(path)))],
    }


def test_a_fingerprint_stays_when_lines_move(project: Path) -> None:
    path = project / "sub" / "worker.py"
    twice = WORKER + WORKER.replace("Worker", "OtherWorker")
    path.write_text(twice)
    before = fingerprints(path)
    assert before["sarif"] == before["gitlab"]
    assert len(set(before["sarif"])) == 2
    path.write_text("# moved\n\n" + twice.replace("    def open", "\n    def open"))
    assert fingerprints(path) == before
    path.write_text(twice.replace("no device", "none"))
    assert not set(fingerprints(path)["sarif"]) & set(before["sarif"])


def test_columns_count_characters(project: Path) -> None:
    path = project / "sub" / "worker.py"
    path.write_text(WORKER.replace("            raise", "            x = '\U0001f600'; raise"), encoding="utf-8")
    run = sarif(str(path))
    results = run["results"]
    assert isinstance(results, list)
    assert run["columnKind"] == "unicodeCodePoints"
    assert results[0]["locations"][0]["physicalLocation"]["region"]["startColumn"] == 22
    ((_, properties, _),) = commands(report("github", str(path)))
    assert properties["col"] == "22"


@pytest.mark.parametrize("output_format", FORMATS)
def test_a_format_is_a_file_with_a_documentation(output_format: str) -> None:
    text = importlib.import_module(f"keepcause.report.{output_format}").render([])
    assert text == "" if output_format in (*FOR_PEOPLE, "github") else json.loads(text) is not None
    page = (ROOT / "docs" / "output-formats.md").read_text(encoding="utf-8")
    assert f"| `{output_format}` |" in page
    assert f"`{output_format}`" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"`{output_format}`" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
