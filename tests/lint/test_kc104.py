"""Workers that end in silence: how sure each finding is."""

from __future__ import annotations

from pathlib import Path

from keepcause.lint.engine import Settings, lint_single_file
from keepcause.lint.finding import Grade
from keepcause.lint.source import Source

FIXTURES = Path(__file__).parents[1] / "fixtures" / "KC104"


def graded(code: bytes) -> list[tuple[int, Grade]]:
    """The findings with the grade of their evidence, the merely possible ones too."""
    settings = Settings(codes=frozenset({"KC104"}), evidence=Grade.POSSIBLE)
    found = lint_single_file(Source(code, "worker.py"), settings)
    return [(finding.span.line, finding.worker_init.grade) for finding in found if finding.worker_init]


def test_silence_is_sure() -> None:
    found = graded((FIXTURES / "bad.py").read_bytes())
    assert found
    assert {grade for _, grade in found} == {Grade.SURE}


def test_a_logged_traceback_makes_it_possible_only() -> None:
    code = (FIXTURES / "good.py").read_bytes()
    functions = {line: text for line, text in enumerate(code.decode().splitlines(), 1) if text.startswith("def ")}
    names = [functions[max(line for line in functions if line < found)] for found, _ in graded(code)]
    assert names == ["def logs(app):", "def logs_with_info(app):", "def prints(app):"]
    assert {grade for _, grade in graded(code)} == {Grade.POSSIBLE}


def test_the_path_ends_at_the_function_that_is_silent() -> None:
    found = lint_single_file(
        Source((FIXTURES / "bad.py").read_bytes(), "worker.py"), Settings(codes=frozenset({"KC104"}))
    )
    paths = [[step.function for step in finding.worker_init.path] for finding in found if finding.worker_init]
    assert ["Process(target=calls)", "calls", "loads"] in paths
    assert ["forks"] in paths
    assert ["OwnProcess.run"] in paths
