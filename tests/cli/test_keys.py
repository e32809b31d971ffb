"""The one table of keys, and all that is made from it: options, flake8's options, Python's keywords, documentation."""

from __future__ import annotations

import argparse
import re
import tomllib
from pathlib import Path

import configuration_page
import pytest
import write_pages

from keepcause import cli
from keepcause.config import KEYS, Key, defaults, load
from keepcause.config.kinds import TRUTH
from keepcause.config.options import add_options, given

ROOT = Path(__file__).parents[2]
each_key = pytest.mark.parametrize("key", KEYS, ids=[key.name for key in KEYS])


def test_the_page_is_made_from_the_table() -> None:
    text = write_pages.CONFIGURATION.read_text(encoding="utf-8")
    assert text == configuration_page.configuration_page(), "run `make docs`"
    assert [line[4:] for line in text.splitlines() if line.startswith("### ")] == [key.name for key in KEYS]


@each_key
def test_a_key_says_what_it_does(key: Key, tmp_path: Path) -> None:
    assert "%" not in key.help, "argparse would fill it in"
    assert not key.help.endswith(".")
    path = tmp_path / "pyproject.toml"
    path.write_text(f"[tool.keepcause]\n{key.name} = {key.example}\n", encoding="utf-8")
    loaded = load(path)
    assert loaded is not None
    assert loaded[key.name] != defaults()[key.name], "an example that changes nothing shows nothing"
    assert tomllib.loads(f"x = {configuration_page.toml(key.default)}")["x"] == key.default


@pytest.mark.parametrize("command", ["check", "fix"])
def test_every_key_is_an_option(command: str) -> None:
    options = cli._options_of(command)
    for key in KEYS:
        assert key.option in options
        assert (f"--no-{key.name}" in options) is (key.kind is TRUTH)


@each_key
def test_an_option_says_what_the_file_says(key: Key, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    value = tomllib.loads(f"x = {key.example}")["x"]
    parser = argparse.ArgumentParser()
    add_options(parser)
    match value:
        case bool():
            arguments = [key.option]
        case str():
            arguments = [key.option, value]
        case list():
            arguments = [key.option, ",".join(value)]
        case dict():
            arguments = [key.option, " ".join(f"{glob}:{','.join(codes)}" for glob, codes in value.items())]
    assert given(vars(parser.parse_args(arguments))) == {key.name: key.kind.read(value, tmp_path)}
    assert given(vars(parser.parse_args([]))) == {}


def test_what_an_option_does_not_take(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, says in (
        (["--select=E501"], "argument --select: no rule has the code 'E501'; there are "),
        (["--per-file-ignores=KC101"], "argument --per-file-ignores: expected GLOB:CODES, not 'KC101'"),
        (["--select="], "argument --select: no rule has the code ''; there are KC001, "),
        (["--per-file-ignores=a.py:E501"], "argument --per-file-ignores: 'a.py': no rule has the code 'E501'"),
        (["--extend-exclude=!a.py"], "argument --extend-exclude: expected globs of what is left out, not '!a.py'"),
        (["--exclude=a\\b"], "argument --exclude: expected globs with forward slashes, not 'a\\\\b'"),
        (["--worker-init-error=Mine"], "argument --worker-init-error: expected a class such as "),
        (["--rank-names=a.b.c"], "argument --rank-names: expected names such as "),
        (["--output-format=xml"], "argument --output-format: invalid choice: "),
        (["--config=x.toml", "--isolated"], "argument --isolated: not allowed with argument --config"),
    ):
        with pytest.raises(SystemExit) as ended:
            cli.main(["check", *arguments])
        assert ended.value.code == 2
        assert says in capsys.readouterr().err


def test_the_hooks_leave_out_what_is_excluded() -> None:
    """As pre-commit names every changed file."""
    hooks = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    entries = re.findall(r"^  entry: keepcause (\S+)(.*)$", hooks, re.MULTILINE)
    assert entries == [("check", " --force-exclude"), ("fix", " --force-exclude")]
