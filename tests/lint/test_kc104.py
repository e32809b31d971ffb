"""Workers that end in silence: how sure each finding is, and that no file is passed over in which there may be one."""

from __future__ import annotations

from pathlib import Path

import pytest

from keepcause.lint.engine import Settings, lint_single_file
from keepcause.lint.finding import Grade
from keepcause.lint.rules.kc103_unchained_raise import UnchainedRaise
from keepcause.lint.rules.kc104_silent_worker_exit import SilentWorkerExit
from keepcause.lint.screen import handlers
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


HANDLERS = [
    "try:\n    a()\nexcept Exception:\n    b()\n    raise X()\n",
    "try: a()\nexcept Exception: raise X()\n",
    "try:\n    a()\nexcept (\n    KeyError,  # not: this\n    Exception,\n):\n    raise X()\n",
    "try:\n\ta()\nexcept Exception:\n\traise X()\n",
    "try:\n    a()\nexcept Exception:\n    b('''\ntext\n''')\n    raise X()\n",
    "try:\n    a()\nexcept Exception:\n    b(\n1,\n    )\n    raise X()\n",
    "try:\n    a()\nexcept Exception:\n    b(\n{)': 1}[')'])\n    raise X()\n".replace("{)", "{')"),
    "try:\n    a()\nexcept Exception:\n    b(')',\n1)\n    raise X()\n",
    "try:\n    a()\nexcept Exception:\n    b(  # )\n1)\n    raise X()\n",
    "try:\n    a()\nexcept Exception:\n    b('\\')',\n1)\n    raise X()\n",
    "try:\n    a()\nexcept Exception:\n    b = \\\n1\n    raise X()\n",
    "try:\n    a()\nexcept Exception:\n# a comment\n\n    raise X()\n",
    "try:\r\n    a()\r\nexcept Exception:\r\n    raise X()\r\n",
    "try:\r    a()\rexcept Exception:\r    raise X()\r",
    "try:\n    a()\n\fexcept Exception:\n    raise X()\n",
    "try:\n    a()\nexcept BaseException as e:\n    raise(X())\n",
    "try:\n    a()\nexcept Exception:\n    raise \\\n        X()\n",
    "try:\n    a()\nexcept:\n    raise X\n",
    "try:\n    a()\nexcept \\\n  Exception:\n    raise X\n",
    "try:\n    a()\nexcept* Exception:\n    raise X\n",
    "try:\n    a()\nexcept(Exception):\n    raise X\n",
]


@pytest.mark.parametrize("code", HANDLERS)
@pytest.mark.parametrize("indented", [False, True])
def test_no_handler_is_passed_over(code: str, indented: bool) -> None:
    if indented and "'''" not in code and "\f" not in code:
        code = "if a:\n" + "".join(f"    {line}" for line in code.splitlines(keepends=True))
    compile(code, "<test>", "exec")
    assert UnchainedRaise().possible(code.encode())
    assert SilentWorkerExit().possible(code.encode())


@pytest.mark.parametrize(
    "code",
    [
        b"raise X()\n",
        b"try:\n    a()\nexcept ValueError:\n    raise\nraise X()\n",
        b"try:\n    a()\nexcept ValueError:\n    pass\nelse:\n    raise X()\n",
        b"# except for this, Exception\nraise X()\n",
    ],
)
def test_other_files_are_passed_over(code: bytes) -> None:
    assert not UnchainedRaise().possible(code)
    assert not SilentWorkerExit().possible(code)


def test_a_handler_ends_where_its_block_does() -> None:
    data = b"try:\n    a()\nexcept A:\n    b()\n    # c\nexcept B:\n    d()\ne()\n"
    assert list(handlers(data)) == [b"except A:\n    b()\n    # c", b"except B:\n    d()"]
