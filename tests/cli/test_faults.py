"""A file that takes too long, or on which keepcause itself fails: one line, exit code 2, and the others go on."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from keepcause import cli
from keepcause.lint import attempt
from keepcause.lint.rule import all_rules

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from keepcause.lint.finding import Finding
    from keepcause.lint.source import Source

RULES = {rule.code: rule for rule in all_rules()}
OPTIONS = ["-q", "--isolated", "--output-format=concise"]


@pytest.fixture
def two(project: Path, worker: str) -> Path:
    """A file named bad.py beside the sound one."""
    (project / "bad.py").write_text(worker)
    return project


def break_rule(monkeypatch: pytest.MonkeyPatch, act: str) -> None:
    """From now on KC101 acts in this way on bad.py."""
    rule = RULES["KC101"]
    check = type(rule).check

    def broken(node: ast.AST, source: Source) -> Iterator[Finding]:
        if source.path == "bad.py":
            if act == "loop":
                while True:
                    time.process_time()
            if act == "backtrack":
                re.match(r"(a|a)*b", "a" * 60)
            if act == "swallow":
                while True:
                    try:
                        sum(range(1000))
                    except Exception:
                        continue
            raise KeyError("what\nwas not thought of")
        yield from check(rule, node, source)

    monkeypatch.setattr(rule, "check", broken)


@pytest.mark.parametrize("command", ["check", "fix"])
@pytest.mark.parametrize("act", ["loop", "backtrack", "swallow"])
def test_a_file_that_takes_too_long(
    two: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], act: str, command: str
) -> None:
    break_rule(monkeypatch, act)
    monkeypatch.setattr(attempt, "SECONDS", 0.3)
    start = time.monotonic()
    assert cli.main([command, *OPTIONS, "bad.py", "worker.py"]) == 2
    assert time.monotonic() - start < 20
    out, err = capsys.readouterr()
    assert err == "keepcause: bad.py: can't be checked: it takes longer than 0.3 s\n"
    if command == "check":
        assert out.startswith("worker.py:6:13: KC101")
    else:
        assert "from e" in (two / "worker.py").read_text()


def test_a_fault_of_ours(
    two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    break_rule(monkeypatch, "raise")
    assert cli.main(["check", *OPTIONS, "bad.py", "worker.py"]) == 2
    out, err = capsys.readouterr()
    assert out.startswith("worker.py:6:13: KC101")
    assert err == (
        "keepcause: bad.py: can't be checked because of a fault in keepcause, please report it: "
        "KeyError: 'what\\nwas not thought of'\n"
    )
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    assert cli.main(["check", *OPTIONS, "bad.py", "worker.py"]) == 1, "it is looked at anew"


def test_a_fault_over_another_file_is_told_to_each_that_asks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second was told that nothing is started there, and its finding went without a word."""
    hides = "try:\n        f()\n    except OSError:\n        raise ValueError() from None\n"
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(f"def {name}():\n    {hides}")
    (tmp_path / "start.py").write_text(
        "from multiprocessing import Process\n\nimport one, two\n\nProcess(target=one.one)\nProcess(target=two.two)\n"
    )
    monkeypatch.chdir(tmp_path)
    assert cli.main(["check", *OPTIONS]) == 1
    assert capsys.readouterr().out.count("KC101") == 2

    def broken(*asked: object) -> Iterator[object]:
        raise KeyError("what was not thought of")

    monkeypatch.setattr("keepcause.lint.evidence.launch.recognise", broken)
    assert cli.main(["check", *OPTIONS, "--no-cache"]) == 2
    assert re.findall("(?m)^keepcause: (.*): can't be checked because of a fault", capsys.readouterr().err) == [
        "one.py",
        "two.py",
    ]


def test_a_fault_of_ours_while_repairing(
    two: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], worker: str
) -> None:
    from keepcause.codemod.outcome import Outcome

    add = Outcome.add

    def broken(self: Outcome, engine: object, report: object) -> bytes:
        if report.path.name == "bad.py":  # type: ignore[attr-defined]
            raise IndexError("out of range")
        return add(self, engine, report)  # type: ignore[arg-type]

    monkeypatch.setattr(Outcome, "add", broken)
    assert cli.main(["fix", *OPTIONS, "bad.py", "worker.py"]) == 2
    assert capsys.readouterr().err == (
        "keepcause: bad.py: can't be repaired because of a fault in keepcause, please report it: "
        "IndexError: out of range\n"
    )
    assert (two / "bad.py").read_text() == worker
    assert "from e" in (two / "worker.py").read_text()


def test_what_the_bound_costs() -> None:
    path = Path("worker.py")
    start = time.process_time()
    for _ in range(1000):
        assert attempt.attempt(path, lambda: 1, "checked") == 1
    assert time.process_time() - start < 0.5
