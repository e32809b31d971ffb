"""`check --add-noqa`: where comments go, and that nothing else changes."""

from __future__ import annotations

import ast
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keepcause import cli
from keepcause.codemod.annotate import annotate
from keepcause.lint.engine import Engine, Settings, lint_single_file
from keepcause.lint.finding import Grade
from keepcause.lint.rule import all_rules
from keepcause.lint.source import Source, SourceError
from samples import HEAD

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., subprocess.CompletedProcess[str]]

EVERY_RULE = Settings(codes=frozenset(rule.code for rule in all_rules()), evidence=Grade.POSSIBLE, single_file=True)
CASES = [
    ("raise X from None", "raise X from None  # noqa: KC101"),
    ("raise X from None   ", "raise X from None  # noqa: KC101   "),
    ("raise X from None # why", "raise X from None # why  # noqa: KC101"),
    ("raise X from None # why ", "raise X from None # why  # noqa: KC101 "),
    ("raise X from None  # noqa: E501", "raise X from None  # noqa: E501, KC101"),
    ("raise X from None  # noqa:E501,W291 - long", "raise X from None  # noqa:E501,W291, KC101 - long"),
    ("raise X from None  # noqa: kc101", "raise X from None  # noqa: kc101, KC101"),
    ("raise X from None  #noqa", "raise X from None  #noqa  # noqa: KC101"),
    ("raise X from None  # type: ignore[misc]", "raise X from None  # type: ignore[misc]  # noqa: KC101"),
    ("raise X from None; x = 1", "raise X from None; x = 1  # noqa: KC101"),
    ("raise X(\n    1,\n) from None", "raise X(  # noqa: KC101\n    1,\n) from None"),
    ("raise X(  # why\n    1) from None", "raise X(  # why  # noqa: KC101\n    1) from None"),
    ("raise X \\\n    from None", "raise X \\\n    from None  # noqa: KC101"),
    ("raise X('''a\nb\n''') from None", "raise X('''a\nb\n''') from None  # noqa: KC101"),
    ("raise X('''a\n''',\n  1) from None", "raise X('''a\n''',  # noqa: KC101\n  1) from None"),
    ("raise X('''# noqa: E501\n''',\n  1) from None", "raise X('''# noqa: E501\n''',\n  1) from None  # noqa: KC101"),
    ("raise X('# noqa: E501',\n  1) from None", "raise X('# noqa: E501',\n  1) from None  # noqa: KC101"),
]


def added(data: bytes) -> bytes:
    source = Source(data, "worker.py")
    result, left = annotate(source, lint_single_file(source, EVERY_RULE))
    assert not left
    return result


@pytest.mark.parametrize(("before", "after"), CASES)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", ""])
def test_where_a_comment_goes(before: str, after: str, end: str, project: Path) -> None:
    sources = [f"{HEAD}            {text}{end or chr(10)}" for text in (before, after)]
    if not end:
        sources = [source.removesuffix("\n") for source in sources]
    old, new = (source.replace("\n", end or "\n").encode() for source in sources)
    source = Source(old, "worker.py")
    findings = [finding for finding in lint_single_file(source, EVERY_RULE) if finding.code == "KC101"]
    assert annotate(source, findings) == (new, ())
    (project / "worker.py").write_bytes(new)
    flake8 = [sys.executable, "-m", "flake8", "--jobs=1", "--select=KC", "worker.py"]
    done = subprocess.run(flake8, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("", "")


def test_a_statement_without_a_place_is_left() -> None:
    source = Source(f"{HEAD}            raise X('# noqa: E501') from None\n".encode())
    findings = [finding for finding in lint_single_file(source, EVERY_RULE) if finding.code == "KC101"]
    assert annotate(source, findings) == (source.data, tuple(findings))


@pytest.mark.parametrize(
    ("head", "encoding"),
    [("# coding: latin-1\n", "latin-1"), ("# coding: shift_jis\n", "shift_jis"), ("", "utf-8-sig")],
)
def test_bytes_stay(head: str, encoding: str) -> None:
    text = f"{head}\f\nx = '\u00a7'\n{HEAD}            raise X('\u00a7') from None"
    assert added(text.encode(encoding)) == f"{text}  # noqa: KC101".encode(encoding)


PARTS = [
    "raise X(",
    ") from None",
    "'''",
    "# noqa",
    "# noqa: E501",
    "  # why",
    "\\",
    "\n",
    "\r\n",
    "\f",
    " ",
    "1,",
    ";",
    '"',
]
TEXTS = st.lists(st.sampled_from(PARTS), max_size=10).map("".join)


@given(TEXTS, TEXTS)
@example("'''\\) from None", "'''# noqa")  # Python warns of what is in the string
def test_whatever_the_source_only_comments_grow(before: str, after: str) -> None:
    data = f"{HEAD}            {before}\n            raise X({after}) from None\n".encode()
    try:
        source = Source(data)
    except SourceError:
        return
    findings = lint_single_file(source, EVERY_RULE)
    result, left = annotate(source, findings)
    assert ast.dump(Source(result).tree, include_attributes=True) == ast.dump(source.tree, include_attributes=True)
    rest = iter(result)
    assert all(byte in rest for byte in data), "something is gone"
    again = lint_single_file(Source(result), EVERY_RULE)
    assert [(finding.code, finding.span) for finding in again] == [(finding.code, finding.span) for finding in left]
    assert annotate(Source(result), again)[0] == result


def test_the_command(project: Path, keepcause: Run, worker: str) -> None:
    (project / "other.py").write_text(worker + worker.replace("Worker", "Another"))
    done = keepcause("check", "--add-noqa")
    assert (done.returncode, done.stdout) == (0, "Added `# noqa` comments for 3 findings in 2 files.\n")
    assert (project / "worker.py").read_text() == worker.replace("None", "None  # noqa: KC101")
    assert keepcause("check").stdout == "Nothing found.\n"
    (project / "worker.py").write_text(worker)
    assert keepcause("check", "--add-noqa", "--quiet", "--select", "KC2").stdout == ""
    assert (project / "worker.py").read_text() == worker
    (project / "worker.py").chmod(0o444)
    done = keepcause("check", "--add-noqa")
    assert (done.returncode, done.stderr) == (2, "keepcause: worker.py: not changed: the file is read-only\n")
    assert keepcause("check", "--add-noqa", "-", input=worker).returncode == 2


def test_trouble_where_no_comment_can_stand(project: Path, keepcause: Run, worker: str) -> None:
    (project / "worker.py").write_text(worker.replace("no device", "# noqa: E501"))
    done = keepcause("check", "--add-noqa")
    assert (done.returncode, done.stderr) == (2, "keepcause: worker.py:6: no comment can keep KC101 quiet\n")
    assert done.stdout == "Added `# noqa` comments for 0 findings in 0 files.\n"


def test_a_file_that_changes_after_its_check_gets_no_comment(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check = Engine.check
    text = "x = 1\n" * 9

    def disturbed(self: Engine, path: Path) -> object:
        found = check(self, path)
        (project / "worker.py").write_text(text)
        return found

    monkeypatch.setattr(Engine, "check", disturbed)
    assert cli.main(["check", "--add-noqa"]) == 2
    assert capsys.readouterr().err == "keepcause: worker.py: not changed: changed by someone else meanwhile\n"
    assert (project / "worker.py").read_text() == text


def test_it_needs_no_libcst(project: Path) -> None:
    code = "import sys; sys.modules['libcst'] = None; from keepcause.cli import main; main(['check', '--add-noqa'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "Added `# noqa` comments for 1 finding in 1 file.\n"), done.stderr
