"""What checks have asked of a program, and which of them a change of its files reaches; imports the index."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from keepcause.lint.evidence.index import Index

if TYPE_CHECKING:
    from collections.abc import Mapping, Set

    from keepcause.lint.evidence.index import Entry
    from keepcause.lint.evidence.mentions import Question
    from keepcause.lint.evidence.program import Program


class Used(NamedTuple):
    """What the check of one file has asked of its program."""

    files: frozenset[str]
    """The files that it has read, or was told of."""
    questions: frozenset[Question]
    """Which files it asked for."""
    bases: frozenset[str]
    """The names of classes of which it asked what inherits from them."""


def reached(
    uses: Mapping[str, Used], program: Program, changed: Set[str], before: Mapping[str, Entry]
) -> set[str] | None:
    """The files whose checks, by what each has used, may find something else since files have `changed`.

    None where all may. `before` has the entries of the program's index as they were.
    """
    index, old = program.index, Index(before)
    if index.generators != old.generators:  # each check asks for these
        return None
    questions = {question for used in uses.values() for question in used.questions}
    answered = {question for question in questions if program.has_answer(question, changed)}
    bases = {base for used in uses.values() for base in used.bases}
    regrown = {base for base in bases if index.derived(base) != old.derived(base)}
    return {
        path for path, used in uses.items() if used.files & changed or used.questions & answered or used.bases & regrown
    }
