"""KC001: a `# noqa` comment that names a rule which finds nothing there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from keepcause.lint.finding import Edit, EditKind, Finding, Fix, Safety, Span
from keepcause.lint.rule import Rule, Where, all_rules

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from keepcause.lint.noqa import Directive, Suppressions
    from keepcause.lint.source import Source
    from keepcause.lint.unparsed.file import Unparsed

_NOQA = re.compile(rb"(?i:noqa)")
_OURS = re.compile(r"KC[0-9]+")
_SEPARATORS = ", \t\f"
_CODE = re.compile(r"(?P<code>[^,\s]+)(?P<separator>[,\s]*)")


class UnusedSuppression(Rule):
    """A `# noqa` comment names a rule that finds nothing there.

    ## What it does

    Finds codes of keepcause in `# noqa` comments, and in `# keepcause: noqa` comments for a whole file, that keep
    nothing quiet, and codes of keepcause that no rule has. Off unless it is selected by its code, and never reported by
    flake8.

    A code counts as unused only where that is known: its rule was on (for a prefix, all of its rules), and the evidence
    came from the whole program, however sure it has to be. Codes of other tools and blanket comments are left alone.

    ## Why it is bad

    The comment outlives what it excused, and will excuse the next fault on its line.

    ## Bad

    ```python
    def load(path):
        return open(path)  # noqa: KC101, SIM115
    ```

    ## Good

    ```python
    def load(path):
        return open(path)  # noqa: SIM115
    ```

    ## Fix safety

    Only the unused codes go, and the comment with the last of them; what else it says stays.
    """

    code = "KC001"
    name = "unused-suppression"
    message = "nothing here for this comment to keep quiet"
    where = Where.EVERYWHERE
    on_by_default = False
    reviews = True
    fixes = "safe"
    nodes = ()

    def glance(self, file: Unparsed) -> bool:
        """A file whose comments name no code of ours has none."""
        first = _NOQA.search(file.code)
        return first is not None and file.code.find(b"KC", first.end()) >= 0

    def review(
        self, source: Source, suppressions: Suppressions, found: Sequence[Finding], checked: frozenset[str]
    ) -> Iterator[Finding]:
        """Yield a finding for each comment with codes that nothing needs."""
        known = {rule.code for rule in all_rules()}
        for directive in suppressions.directives():
            here = {finding.code for finding in found if directive.concerns(finding)}
            unused, unknown = [], []
            for code in directive.codes:
                meant = {rule for rule in known if rule.startswith(code)}
                if not meant and _OURS.fullmatch(code):
                    unknown.append(code)
                elif meant and meant <= checked - {self.code} and not meant & here:
                    unused.append(code)
            if unused or unknown:
                yield self._finding(directive, unused, unknown, source)

    def _finding(self, directive: Directive, unused: list[str], unknown: list[str], source: Source) -> Finding:
        what = [f"it names {_listed(unused)}"] if unused else []
        what += [f"no rule has the code {_listed(unknown)}"] if unknown else []
        start = directive.column + directive.place.start
        end = directive.column + directive.codes_place.stop
        span = Span(directive.line, start, directive.line, end)
        gone = [*unused, *unknown]
        fix = Fix(Safety.SAFE, f"Remove {_listed(gone)}", (_without(directive, gone, source),))
        return Finding(self.code, f"{self.message}: {'; '.join(what)}", span, span, fix=fix)


def _listed(codes: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(codes))


def _without(directive: Directive, codes: Collection[str], source: Source) -> Edit:
    """The edit that takes the codes out of the comment, and the comment with the last of them."""
    row, column, comment = directive.line, directive.column, directive.comment
    new = _shorter(directive, codes)
    line = source.lines[row - 1]
    code = line[:column]
    span = Span(row, column, row, column + len(comment))
    if not new and code.strip():
        span = Span(row, len(code.rstrip()), row, len(line))
    elif not new:
        span = Span(row, 0, row + 1, 0) if row < len(source.lines) else Span(row, 0, row, len(line))
    return Edit(EditKind.COMMENT, span, text=new)


def _shorter(directive: Directive, codes: Collection[str]) -> str:
    """What is left of the comment without the codes; nothing where it says nothing else."""
    comment, place = directive.comment, directive.codes_place
    listed = list(_CODE.finditer(comment[place]))
    kept = "".join(match[0] for match in listed if match["code"] not in codes).rstrip(_SEPARATORS)
    if kept:
        return comment[: place.start] + kept + listed[-1]["separator"] + comment[place.stop :]
    before, after = comment[: directive.place.start], comment[directive.place.stop :].lstrip()
    if not after.startswith("#"):
        reason = after.lstrip(f"-:;{_SEPARATORS}")
        after = f"# {reason}" if reason else ""
    return f"{before if before.strip(_SEPARATORS + '#') else ''}{after}".rstrip()
