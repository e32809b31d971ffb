"""Findings + a source -> its bytes with `# noqa` comments that keep them quiet; imports the linter and this room."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from keepcause.codemod.splice import Splice, spliced
from keepcause.codemod.verify import RefusedError, same
from keepcause.lint.noqa import Suppressions
from keepcause.lint.source import Source, SourceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from keepcause.lint.finding import Finding

    Codes = Mapping[int, set[str]]
    """The codes that the comment on a line is to name."""


def annotate(source: Source, findings: Sequence[Finding]) -> tuple[bytes, tuple[Finding, ...]]:
    """The source's bytes with the comments, and the findings that none can keep quiet.

    A comment stands where flake8 reads it: at the end of the finding's first line, or of those that are one with it.
    Only comments change, and they only grow; the syntax tree stays.
    """
    suppressions = Suppressions(source.text)
    codes: defaultdict[int, set[str]] = defaultdict(set)
    for finding in findings:
        if line := suppressions.place(finding):
            codes[line].add(finding.code)
    try:
        data = _annotated(source, suppressions, codes)
    except RefusedError:
        data = _one_by_one(source, suppressions, codes)
    after = Suppressions(Source(data, source.path).text)
    return data, tuple(finding for finding in findings if not after.cover(finding))


def _one_by_one(source: Source, suppressions: Suppressions, codes: Codes) -> bytes:
    """As `_annotated`, without those comments that can't be made."""
    data = source.data
    made: dict[int, set[str]] = {}
    for line in codes:
        try:
            data = _annotated(source, suppressions, {**made, line: codes[line]})
        except RefusedError:
            continue
        made[line] = codes[line]
    return data


def _annotated(source: Source, suppressions: Suppressions, codes: Codes) -> bytes:
    data = spliced(source, [_splice(source, suppressions, line, codes[line]) for line in sorted(codes)])
    try:
        if same(source.tree, Source(data, source.path).tree):
            return data
    except SourceError:
        pass
    raise RefusedError("a comment can't stand there")


def _splice(source: Source, suppressions: Suppressions, line: int, codes: set[str]) -> Splice:
    column, named = suppressions.end(line)
    place = source.line_starts[line - 1] + column
    listed = ", ".join(sorted(codes))
    return place, place, f", {listed}" if named else f"  # noqa: {listed}"
