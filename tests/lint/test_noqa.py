"""Our reading of `# noqa` against flake8's own."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

import pytest
from flake8.processor import FileProcessor  # type: ignore[import-untyped]
from flake8.violation import Violation  # type: ignore[import-untyped]
from hypothesis import example, given
from hypothesis import strategies as st

from keepcause.lint.finding import Finding, Span
from keepcause.lint.noqa import Suppressions, covers

if TYPE_CHECKING:
    from pathlib import Path

PARTS = [
    "# noqa",
    "#noqa",
    "#  noqa",
    "# NOQA",
    ":",
    " ",
    ",",
    ";",
    "KC101",
    "KC1",
    "kc101",
    "KC201",
    "E501",
    "KC",
    "x",
    "#",
    "\t",
    "KC10",
]
LINES = st.lists(st.sampled_from(PARTS), max_size=9).map("".join)


@given(LINES)
@example("x  # noqa: KC101")
@example("x  # noqa: E501 # noqa: KC101")
@example("x  # noqa:KC201,\tKC101")
@example("'# noqa'")
def test_a_line_means_what_flake8_takes_it_for(line: str) -> None:
    violation = Violation("KC101", "worker.py", 1, 1, "", line)
    assert covers(line, "KC101") == violation.is_inline_ignored(disable_noqa=False)


def finding(line: int, end_line: int | None = None, code: str = "KC101") -> Finding:
    span = Span(line, 0, end_line or line, 1)
    return Finding(code, "", span, span)


def test_every_line_of_the_statement_counts() -> None:
    lines = ["# noqa", "raise X(", "    1,", ") from None", "# noqa"]
    assert not Suppressions("\n".join(lines)).cover(finding(2, 4))
    for number in (1, 2, 3):
        marked = [f"{line}  # noqa: KC1" if number == index else line for index, line in enumerate(lines)]
        assert Suppressions("\n".join(marked)).cover(finding(2, 4))


TEXTS = [
    "x = 1  # noqa\n",
    "x = 1; y = '''a\nb'''  # noqa: KC101\nz = 1\n",
    "x = '''# noqa: E501\nb'''  # noqa: KC101\n",
    "x = 1 + \\\n  2  # noqa: KC101\n",
    "f(\n  1,  # noqa: KC101\n)\n",
    "f('''a\n''', # noqa: KC101\n  1)  # noqa\n",
    "if x:\n    y = 1  # noqa\n    \\\n    z = 2\n",
    "x = f'''{\n1}'''  # noqa: KC1\n",
    "x = 1\r\ny = '''\r\n'''  # noqa: KC\r\n",
    "x = 1\ry = 2  # noqa\r",
    "\fx = 1\n\f\ny = '''\f\n'''  # noqa\n",
    "\ufeffx = 1  # noqa\n",
    "x = (  # noqa\n",
    "x = '''a  # noqa\nb\n",
    "x = 1  # noqa: KC101",
]


@pytest.mark.parametrize("text", TEXTS)
def test_the_lines_in_which_flake8_looks(text: str, tmp_path: Path) -> None:
    """A finding of one line is covered just where flake8 covers it."""
    path = tmp_path / "checked.py"
    path.write_text(text, encoding="utf-8", newline="")
    options = Namespace(hang_closing=False, indent_size=4, max_line_length=79, max_doc_length=None, verbose=0)
    processor = FileProcessor(str(path), options)
    ours = Suppressions(text.removeprefix("\ufeff"))
    for number in range(1, len(processor.lines) + 1):
        line = processor.noqa_line_for(number)
        theirs = Violation("KC101", str(path), number, 1, "", line).is_inline_ignored(disable_noqa=False)
        assert ours.cover(finding(number)) == theirs, number


WHOLE_FILE = [
    "# flake8: noqa",
    "# flake8:noqa",
    "#flake8: noqa",
    "# flake8=noqa",
    "# FLAKE8: NoQA",
    "    # flake8: noqa",
    "x = 1  # flake8: noqa",
    "# flake8: noqa: E501",
    "# flake8: noqa: KC101",
    "# flake8: noqa E501",
    "# flake8: noqa because",
    "# flake8 : noqa",
    "# flake8: no qa",
    "'''\n# flake8: noqa\n'''",
    "# noqa",
]


@pytest.mark.parametrize("text", WHOLE_FILE)
def test_flake8s_comment_for_the_whole_file(text: str, tmp_path: Path) -> None:
    path = tmp_path / "checked.py"
    path.write_text(f"x = 1\n{text}\n", encoding="utf-8")
    options = Namespace(
        hang_closing=False, indent_size=4, max_line_length=79, max_doc_length=None, verbose=0, disable_noqa=False
    )
    theirs = FileProcessor(str(path), options).should_ignore_file()
    assert Suppressions(path.read_text(encoding="utf-8")).cover(finding(1)) == theirs


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("# keepcause: noqa", {"KC101", "KC102", "KC201"}),
        ("#keepcause:noqa", {"KC101", "KC102", "KC201"}),
        ("# KeepCause: NoQA", {"KC101", "KC102", "KC201"}),
        ("    # keepcause: noqa", {"KC101", "KC102", "KC201"}),
        ("# keepcause: noqa because it is generated", {"KC101", "KC102", "KC201"}),
        ("# keepcause: noqa: KC101", {"KC101"}),
        ("# keepcause: noqa: KC101,KC201", {"KC101", "KC201"}),
        ("# keepcause: noqa:KC101 KC201  # why", {"KC101", "KC201"}),
        ("# keepcause: noqa : KC1", {"KC101", "KC102"}),
        ("# keepcause: noqa KC101", {"KC101"}),
        ("# keepcause: noqa: kc101", {"KC101"}),
        ("# keepcause: noqa: KC101\n# keepcause: noqa: KC201", {"KC101", "KC201"}),
        ("# keepcause: noqa: E501", set()),
        ("# keepcause: noqa: everything", set()),
        ("# keepcause: noqa:", set()),
        ("# keepcause: noqable", set()),
        ("x = 1  # keepcause: noqa", set()),
        ("# see # keepcause: noqa", set()),
        ("'''\n# keepcause: noqa\n'''", set()),
        ("# ruff: noqa", set()),
        ("# keepcause: worker-init", set()),
    ],
)
def test_our_comment_for_the_whole_file(text: str, codes: set[str]) -> None:
    for source in (f"{text}\nx = 1\n", f"x = 1\n{text}\n"):
        found = [finding(1, code=code) for code in ("KC101", "KC102", "KC201")]
        assert {each.code for each in found if Suppressions(source).cover(each)} == codes
