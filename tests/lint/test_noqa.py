"""Our reading of `# noqa` against flake8's own."""

from __future__ import annotations

from flake8.violation import Violation  # type: ignore[import-untyped]
from hypothesis import example, given
from hypothesis import strategies as st

from keepcause.lint.finding import Finding, Span
from keepcause.lint.noqa import covers, suppressed

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


def test_every_line_of_the_statement_counts() -> None:
    lines = ["# noqa", "raise X(", "    1,", ") from None", "# noqa"]
    finding = Finding("KC101", "", Span(2, 0, 2, 5), Span(2, 0, 4, 11))
    assert not suppressed(finding, lines)
    for number in (1, 2, 3):
        marked = [f"{line}  # noqa: KC1" if number == index else line for index, line in enumerate(lines)]
        assert suppressed(finding, marked)
