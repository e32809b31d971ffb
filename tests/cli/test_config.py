"""`[tool.keepcause]`: which file counts, what the command line overrides, and how mistakes are named."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import keepcause as package
from keepcause.config import KEYS, ConfigError, defaults, enabled, load, overridden
from keepcause.config.layers import Layers
from keepcause.lint.rule import all_codes

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    Run = Callable[..., subprocess.CompletedProcess[str]]

OFF_BY_DEFAULT = '''
"""A rule that is off by default."""

import ast

from keepcause.lint.rule import Rule, Where


class EveryPass(Rule):
    """Finds `pass`."""

    code = "KC999"
    name = "every-pass"
    message = "a pass"
    where = Where.EVERYWHERE
    on_by_default = False
    fixes = "none"
    nodes = (ast.Pass,)

    def check(self, node, source):
        yield self.found(node, source, "there is none")
'''


def configured(folder: Path, text: str) -> Path:
    """A pyproject.toml whose `[tool.keepcause]` is `text`."""
    folder.mkdir(exist_ok=True)
    path = folder / "pyproject.toml"
    path.write_text(f"[tool.keepcause]\n{text}\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("selct = []", "[tool.keepcause] has no key 'selct'; did you mean 'select'?"),
        ("single_file = true", "[tool.keepcause] has no key 'single_file'; did you mean 'single-file'?"),
        ("x = 1", "[tool.keepcause] has no key 'x'; there are select, extend-select, "),
        ("select = 'KC101'", "[tool.keepcause] select: expected a list of strings, not 'KC101'; write ['KC101']"),
        ("select = [1]", "[tool.keepcause] select: expected a list of strings, not [1]"),
        ("ignore = ['KC101', 'E501']", "[tool.keepcause] ignore: no rule has the code 'E501'; there are KC001, "),
        ("ignore = ['']", "[tool.keepcause] ignore: no rule has the code ''; there are KC001, "),
        ("evidence = 'much'", "[tool.keepcause] evidence: expected one of sure, likely, possible, not 'much'"),
        ("evidence = true", "[tool.keepcause] evidence: expected one of sure, likely, possible, not True"),
        ("single-file = 'yes'", "[tool.keepcause] single-file: expected true or false, not 'yes'"),
        ("worker-init = {}", "[tool.keepcause] worker-init: expected a list of strings, not {}"),
        ("output-format = 'xml'", "[tool.keepcause] output-format: expected one of full, concise, json, "),
        ("exclude = ['{a']", "[tool.keepcause] exclude: expected globs with closed brackets and braces, not '{a'"),
        ("exclude = ['!a']", "[tool.keepcause] exclude: expected globs of what is left out, not '!a'"),
        ("per-file-ignores = ['a']", "[tool.keepcause] per-file-ignores: expected a table of globs and lists of codes"),
        (
            "per-file-ignores = {a = 'KC1'}",
            "[tool.keepcause] per-file-ignores: 'a': expected a list of strings, not 'KC1'; write ['KC1']",
        ),
        ("worker-init = ['']", "[tool.keepcause] worker-init: expected functions such as 'pkg.mod:Class.method'"),
        ("worker-init = ['load']", "[tool.keepcause] worker-init: expected functions such as 'pkg.mod:Class.method'"),
        ("worker-init = ['a.py:f']", "[tool.keepcause] worker-init: expected functions such as 'pkg.mod:Class.method'"),
        ("worker-init = ['a/b:f']", "[tool.keepcause] worker-init: expected functions such as 'pkg.mod:Class.method'"),
        ("[tool.keepcause.lint]", "[tool.keepcause] has no key 'lint'; there are select, "),
        ("select = [", "not valid TOML: "),
        ("a = '\udcff'", "not valid TOML: 'utf-8' codec can't decode byte 0xff"),
        ("a = " + "[" * 100_000, "not valid TOML: "),
    ],
)
def test_mistakes(tmp_path: Path, text: str, mistake: str) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(f"[tool.keepcause]\n{text}\n", encoding="utf-8", errors="surrogateescape")
    with pytest.raises(ConfigError) as raised:
        load(path)
    assert str(raised.value).startswith(f"{path}: {mistake}")


@pytest.mark.parametrize("text", ["[tool]\nkeepcause = 1", "tool.keepcause = [1]"])
def test_no_table(tmp_path: Path, text: str) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match="is not a table"):
        load(path)


@pytest.mark.parametrize("text", ["", "tool = 1", "[tool]\nother = 1", "[other.keepcause]\nx = 1"])
def test_no_configuration(tmp_path: Path, text: str) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(text)
    assert load(path) is None


def test_every_key_can_be_set_to_its_default(tmp_path: Path) -> None:
    def toml(value: object) -> str:
        return str(value).lower() if isinstance(value, bool) else repr(value)

    text = "\n".join(f"{key.name} = {toml(key.default)}" for key in KEYS)
    assert load(configured(tmp_path, text)) == defaults()


def test_the_nearest_file_with_a_table_counts(tmp_path: Path) -> None:
    configured(tmp_path, "select = ['KC101']")
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    nearest = Layers().at
    assert nearest(tmp_path / "a")["select"] == ("KC101",)
    configured(tmp_path / "a" / "b", "single-file = true")
    assert nearest(tmp_path / "a" / "b" / "c") == {**defaults(), "single-file": True}


def test_which_rules_are_on() -> None:
    everything = enabled(("KC",), ())
    assert everything == enabled(defaults()["select"], ()) >= {"KC101", "KC201"}
    assert enabled(("KC101",), ()) == {"KC101"}
    assert enabled((), ()) == frozenset()
    assert enabled(("KC",), ("KC1",)) == {code for code in everything if not code.startswith("KC1")}
    assert enabled(("KC101",), ("KC101",)) == frozenset()
    assert enabled(("ALL",), ()) == set(all_codes()) > everything
    assert enabled(("ALL",), ("KC",)) == enabled(("ALL",), ("ALL",)) == frozenset()
    assert enabled(("KC10",), ("ALL",)) == enabled(("KC10",), ())


@pytest.mark.parametrize(
    ("given", "select", "more", "ignore"),
    [
        ({}, ("KC1",), ("KC202",), ("KC2",)),
        ({"select": ("KC201",)}, ("KC201",), (), ("KC2",)),
        ({"select": ("KC2",)}, ("KC2",), (), ()),
        ({"select": ("KC",)}, ("KC",), (), ("KC2",)),
        ({"extend-select": ("KC201",)}, ("KC1",), ("KC202", "KC201"), ("KC2",)),
        ({"ignore": ("KC101",)}, ("KC1",), ("KC202",), ("KC2", "KC101")),
        ({"ignore": ("KC20",)}, ("KC1",), (), ("KC2", "KC20")),
        ({"ignore": ("KC1",)}, (), ("KC202",), ("KC2", "KC1")),
        ({"select": ("KC2",), "ignore": ("KC201",)}, ("KC2",), (), ("KC201",)),
        ({"select": ("ALL",)}, ("ALL",), (), ("KC2",)),
        ({"ignore": ("ALL",)}, (), (), ("KC2", "ALL")),
    ],
)
def test_the_command_line_overrides(given: dict[str, object], select: object, more: object, ignore: object) -> None:
    before = {**defaults(), "select": ("KC1",), "extend-select": ("KC202",), "ignore": ("KC2",)}
    found = overridden(before, given)
    assert (found["select"], found["extend-select"], found["ignore"]) == (select, more, ignore)
    assert {**found, **before} == before


def test_one_rule_more_brings_no_other_that_the_file_ignores() -> None:
    found = overridden({**defaults(), "ignore": ("KC2",)}, {"extend-select": ("KC202",)})
    kept = {code for code in enabled(("KC",), ()) if not code.startswith("KC2")}
    assert enabled((*found["select"], *found["extend-select"]), found["ignore"]) == {*kept, "KC202"}


def test_each_file_has_its_own(project: Path, keepcause: Run, worker: str) -> None:
    configured(project, "output-format = 'concise'")
    for name in ("a", "b", "c"):
        configured(project / name, {"a": "ignore = ['KC101']", "b": "slect = []", "c": ""}[name])
        (project / name / "worker.py").write_text(worker)
        (project / name / "other.py").write_text(worker)
    done = keepcause("check", "-q")
    assert done.returncode == 2
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["c/other.py", "c/worker.py", "worker.py"]
    mistake = "[tool.keepcause] has no key 'slect'; did you mean 'select'?"
    assert done.stderr == f"keepcause: {project}/b/pyproject.toml: {mistake}\n"
    done = keepcause("check", "-q", "--isolated", "--output-format=concise")
    assert (done.returncode, len(done.stdout.splitlines()), done.stderr) == (1, 7, "")
    done = keepcause("check", cwd=project / "b")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"keepcause: {project}/b/pyproject.toml: {mistake}\n"


def test_output_format_and_select(project: Path, keepcause: Run) -> None:
    configured(project, "output-format = 'json'\nselect = ['KC201']")
    assert keepcause("check").stdout == "[]\n"
    assert keepcause("check", "--select=KC1", "--output-format=concise").stdout.startswith("worker.py:6:13: KC101")


def test_a_rule_that_is_off_needs_its_full_code(project: Path, keepcause: Run) -> None:
    """A copy of the package with one more file in the folder of rules, which is all that a rule takes."""
    source = Path(package.__file__).parent
    shutil.copytree(source, project / "copy" / "keepcause", ignore=shutil.ignore_patterns("__pycache__"))
    (project / "copy" / "keepcause" / "lint" / "rules" / "kc999_every_pass.py").write_text(OFF_BY_DEFAULT)
    (project / "worker.py").write_text("pass\n")

    def found(*arguments: str) -> bool:
        done = keepcause(
            "check", "-q", "--output-format=concise", *arguments, "worker.py", env={"PYTHONPATH": str(project / "copy")}
        )
        assert done.stdout in ("", "worker.py:1:1: KC999 a pass\n")
        return bool(done.stdout)

    assert not found()
    assert not found("--select=KC")
    assert not found("--select=KC9")
    assert not found("--ignore=KC1")
    assert found("--select=KC999")
    assert found("--select=KC101,KC999", "--ignore=KC1")
    assert found("--select=ALL", "--ignore=KC1")
    configured(project, "select = ['KC999']")
    assert found()
    assert not found("--ignore=KC99")
    listed = keepcause("rule", env={"PYTHONPATH": str(project / "copy")}).stdout.splitlines()
    assert listed[-1] == "KC999 every-pass (off by default)"


@pytest.mark.parametrize(
    ("options", "told_of"),
    [
        (["--select=KC4"], ["KC4"]),
        (["--select=KC4,KC10", "--extend-select=KC309,KC20"], ["KC4"]),
        (["--extend-select=KC40"], ["KC40"]),
        (["--select=KC4,KC401"], []),
        (["--select=KC4,ALL"], []),
        (["--select=KC1", "--ignore=KC1"], []),
        (["--select=KC202"], []),
    ],
)
def test_a_beginning_that_selects_no_rule_is_told_of(
    project: Path, keepcause: Run, options: list[str], told_of: list[str]
) -> None:
    """A rule that is off needs its full code; to find nothing must not look as if it had been looked for."""
    done = keepcause("check", "--show-files", *options)
    assert (done.returncode, done.stdout) == (0, "worker.py\n")
    assert [re.findall("`(.*?)`", line)[0] for line in done.stderr.splitlines()] == told_of
    assert done.stderr.count(" selects no rule: ") == len(told_of)


def test_structured_turns_on_what_a_beginning_selects(project: Path, keepcause: Run) -> None:
    assert "selects no rule" not in keepcause("fix", "--structured", "--select=KC4", "--diff").stderr
    (project / "pyproject.toml").write_text("[tool.keepcause]\nextend-select = ['KC4']\n")
    assert "selects no rule" in keepcause("fix", "--diff").stderr
