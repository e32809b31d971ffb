"""The linter and the codemod as functions: what they give, what they raise, how they are typed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import keepcause
from keepcause import api
from keepcause.config import KEYS
from samples import REPAIRED, WORKER

USES = Path(__file__).with_name("uses.py")
UNSAFE = "def f(rows):\n    raise ValueError(f'{rows()} {(row for row in rows())}')\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: a project that holds `worker.py`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "worker.py").write_text(WORKER, encoding="utf-8")
    return tmp_path


def test_mypy_takes_right_uses_and_refuses_wrong_ones(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path, "--config-file=", USES],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout
    assert USES.read_text(encoding="utf-8").count("# type: ignore[") > 10


def test_the_names_are_written_once() -> None:
    assert sorted(keepcause._API) == sorted(api.__all__)
    assert all(getattr(keepcause, name) is getattr(api, name) for name in api.__all__)
    assert set(api.__all__) <= set(dir(keepcause))
    assert not set(api.__all__) & set(keepcause.__all__)
    text = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    assert all(f"`{name}" in text for name in api.__all__)


def test_the_options_are_the_keys() -> None:
    keys = {key.name.replace("-", "_") for key in KEYS} - {"output_format"}
    assert set(keepcause.Options.__annotations__) == keys | {"config", "isolated"}


def test_what_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'keepcause' has no attribute 'lint_file'"):
        keepcause.lint_file  # type: ignore[attr-defined]


def test_the_linter_is_loaded_on_demand() -> None:
    code = (
        "import json, sys, keepcause; before = 'keepcause.lint' in sys.modules; dir(keepcause); keepcause.lint_source;"
        "print(json.dumps([before, 'keepcause.lint' in sys.modules, 'libcst' in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == [False, True, False]


@pytest.mark.parametrize("source", [WORKER, WORKER.encode(), "\ufeff" + WORKER, WORKER.replace("\n", "\r\n")])
def test_lint_source(source: str | bytes) -> None:
    (finding,) = keepcause.lint_source(source)
    assert (finding.code, finding.span.line, finding.span.column) == ("KC101", 6, 12)
    assert keepcause.lint_source(source, ignore=["KC1"]) == []


def test_lint_source_without_a_name_stands_alone(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.keepcause]\nselect = []\n")
    assert len(keepcause.lint_source(WORKER)) == 1
    assert keepcause.lint_source(WORKER, "worker.py") == []
    assert len(keepcause.lint_source(WORKER, "worker.py", isolated=True)) == 1
    assert keepcause.lint_source(WORKER, config="pyproject.toml") == []


def test_lint_source_belongs_to_the_files_program(project: Path) -> None:
    code = WORKER.replace("init_device", "opened").replace("class Worker:\n", "class Shard:\n")
    (project / "start.py").write_text(
        "from multiprocessing import Process\nfrom shards import Shard\n\nProcess(target=Shard().opened).start()\n"
    )
    assert keepcause.lint_source(code) == []
    (finding,) = keepcause.lint_source("# not on disk\n\n" + code, project / "shards.py")
    assert finding.worker_init is not None
    assert finding.worker_init.path[-1].line == 4
    (project / "shards.py").write_text("def other(): ...\n\n\ndef more(): ...\n" + code)
    (finding,) = keepcause.lint_source("# as it is edited\n\n" + code, project / "shards.py")
    assert finding.worker_init is not None
    assert finding.worker_init.path[-1].line == 4
    assert keepcause.fix_source(code, project / "shards.py").source.count(" from e") == 1


def test_lint_paths(project: Path) -> None:
    (project / "broken.py").write_text(WORKER + "def (")
    result = keepcause.lint_paths([".", "nowhere.py"])
    assert {path: [finding.code for finding in found] for path, found in result.findings.items()} == {
        Path("worker.py"): ["KC101"]
    }
    assert [(trouble.path, trouble.line) for trouble in result.troubles] == [("broken.py", 7), ("nowhere.py", 0)]
    assert not keepcause.lint_paths(["worker.py"], per_file_ignores={"worker.py": ["KC"]}).findings
    assert not keepcause.lint_paths([]).findings


def test_fix_source() -> None:
    result = keepcause.fix_source(WORKER)
    assert (result.source, [finding.code for finding in result.fixed], result.left) == (REPAIRED, ["KC101"], ())
    assert keepcause.fix_source(WORKER.encode()).source == REPAIRED.encode()
    assert keepcause.fix_source("\ufeff" + WORKER).source == "\ufeff" + REPAIRED
    assert keepcause.fix_source(WORKER.replace("\n", "\r\n")).source == REPAIRED.replace("\n", "\r\n")
    latin = "# coding: latin-1\n# é\n"
    assert keepcause.fix_source(latin + WORKER).source == latin + REPAIRED
    assert keepcause.fix_source((latin + WORKER).encode("latin-1")).source == (latin + REPAIRED).encode("latin-1")
    assert keepcause.fix_source("x = 1\n") == keepcause.FixResult("x = 1\n", (), ())


def test_fix_source_makes_unsafe_repairs_where_it_may() -> None:
    result = keepcause.fix_source(UNSAFE)
    assert (result.source, result.fixed) == (UNSAFE, ())
    assert [finding.no_fix for finding in result.left] == ["its fix needs --unsafe-fixes"]
    assert keepcause.fix_source(UNSAFE, unsafe_fixes=True).left == ()


def test_mistakes(project: Path) -> None:
    with pytest.raises(keepcause.SourceError) as raised:
        keepcause.lint_source(WORKER + "def (")
    assert raised.value.line == 7
    with pytest.raises(keepcause.SourceError, match="can't be encoded as"):
        keepcause.lint_source("# coding: ascii\nx = 'é'\n")
    with pytest.raises(ValueError, match=re.escape("select: no rule has the code 'E501'")):
        keepcause.lint_source("x", select=["E501"])
    with pytest.raises(ValueError, match=re.escape("select: expected a list of strings, not 'KC101'; write ['KC101']")):
        keepcause.lint_source("x", select="KC101")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="there is no option 'selct'"):
        keepcause.lint_source("x", selct=["KC101"])  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=re.escape("expected a list of paths, not 'worker.py'")):
        keepcause.lint_paths("worker.py")
    (project / "pyproject.toml").write_text("[tool.keepcause]\nselct = []\n")
    with pytest.raises(keepcause.ConfigError, match="did you mean 'select'"):
        keepcause.lint_source("x", "worker.py")
    with pytest.raises(keepcause.ConfigError):
        keepcause.lint_paths(["worker.py"])


def test_without_libcst() -> None:
    code = (
        "import sys; sys.modules['libcst'] = None\nimport keepcause\n"
        "try:\n    keepcause.fix_source('x')\nexcept ModuleNotFoundError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "keepcause.fix_source needs LibCST: pip install 'keepcause[fix]'\n"
