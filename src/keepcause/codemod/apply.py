"""Findings + bytes -> repaired bytes; imports the linter's data and this room."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from operator import eq
from typing import TYPE_CHECKING, TypeAlias

from keepcause.codemod.edits import Located, Part, cut, locate, render
from keepcause.codemod.imports import added_import, own_packages
from keepcause.codemod.splice import Splice, spliced
from keepcause.codemod.verify import RefusedError, check_findings, check_text, lines_of, slot, statements
from keepcause.lint.finding import EditKind, Finding, Safety
from keepcause.lint.rule import structured_codes
from keepcause.lint.source import Source

if TYPE_CHECKING:
    from keepcause.lint.checked import FileReport
    from keepcause.lint.engine import Engine
    from keepcause.lint.finding import Edit, Span

Relint: TypeAlias = Callable[[bytes], Sequence[Finding]]
"""The findings of a changed file, found as those of the original were."""

Allowed: TypeAlias = frozenset[str]
"""Which fixes are made: those of a Safety, and those of a rule, by its code."""


def allowed_fixes(*, unsafe: bool, codes: Iterable[str]) -> Allowed:
    """The safe fixes, those of the rules `codes`, and where `unsafe` all others too."""
    return frozenset({*(Safety if unsafe else (Safety.SAFE,)), *codes})


@dataclass(frozen=True)
class Left:
    """A finding that was not repaired, and why."""

    finding: Finding
    reason: str


@dataclass(frozen=True)
class Repair:
    """One file after its fixes.

    An `applied` finding stands where it stood before its fix, `left` and `failed` ones where `data` has them. A failed
    finding's fix was made and taken back, as its result did not pass the checks.
    """

    data: bytes
    applied: tuple[Finding, ...]
    left: tuple[Left, ...]
    failed: tuple[Left, ...]

    @property
    def remaining(self) -> tuple[Finding, ...]:
        """The findings that `data` still has, by position, each with the reason in `no_fix`."""
        found = [replace(item.finding, no_fix=item.reason) for item in (*self.left, *self.failed)]
        return tuple(sorted(found, key=lambda finding: (finding.span, finding.code)))


def repair_file(report: FileReport, engine: Engine, allowed: Allowed) -> Repair:
    """As `repair`, for a file that `engine` has checked, and checks again as it is repaired."""
    if not report.findings:
        return Repair(report.data, (), (), ())  # it need not be Python
    source = Source(report.data, str(report.path))
    return repair(source, report.findings, allowed=allowed, relint=partial(engine.findings, report.path))


def repair(source: Source, findings: Sequence[Finding], *, allowed: Allowed, relint: Relint) -> Repair:
    """Apply the fixes of `findings` whose safety or code is allowed, each whole or not at all; nothing is written.

    Passes follow each other until one has nothing to apply, so repairing the result again changes nothing.
    """
    applied: list[Finding] = []
    while True:
        this = _Pass(source, findings, relint)
        left = []
        plans = []
        for finding in findings:
            if reason := _why_not(finding, allowed):
                left.append(Left(finding, reason))
                continue
            try:
                plans.append(this.plan(finding))
            except RefusedError as refused:
                left.append(Left(finding, str(refused)))
        state = this.settle(_State(source, findings), plans)
        if not state.plans:
            return Repair(source.data, tuple(applied), tuple(left), tuple(this.failed))
        applied += [plan.finding for plan in state.plans]
        source, findings = state.source, state.findings


def _why_not(finding: Finding, allowed: Allowed) -> str:
    if finding.fix is None:
        return finding.no_fix or "there is no fix for it"
    if finding.fix.safety in allowed or finding.code in allowed:
        return ""
    return f"its fix needs {'--structured' if finding.code in structured_codes() else '--unsafe-fixes'}"


@dataclass(frozen=True)
class _Plan:
    finding: Finding
    located: tuple[Located, ...]
    imports: tuple[Edit, ...]
    comments: tuple[Edit, ...]


@dataclass(frozen=True)
class _State:
    source: Source
    findings: Sequence[Finding]
    plans: tuple[_Plan, ...] = ()


class _Pass:
    """The fixes that are made in one source at once."""

    def __init__(self, source: Source, findings: Sequence[Finding], relint: Relint) -> None:
        self.failed: list[Left] = []
        self._source = source
        self._findings = findings
        self._relint = relint
        self._statements = {source.span(node): node for node in statements(source.tree)}
        self._parts: dict[Span, Part] = {}
        self._taken: dict[tuple[Span, tuple[str | int, ...]], Located] = {}
        self._imports: dict[str, Splice] = {}

    def plan(self, finding: Finding) -> _Plan:
        """Find what each edit changes; raises RefusedError where one can't be made or contradicts an earlier fix."""
        assert finding.fix is not None
        located: dict[tuple[Span, tuple[str | int, ...]], Located] = {}
        imports = tuple(edit for edit in finding.fix.edits if edit.kind is EditKind.ADD_IMPORT)
        comments = tuple(edit for edit in finding.fix.edits if edit.kind is EditKind.COMMENT)
        for edit in finding.fix.edits:
            if edit in comments:
                continue
            if edit in imports:
                self._import(edit)
                continue
            place = edit.statement, slot(edit)
            here = located.get(place) or self._taken.get(place)
            if here is not None and here.edit != edit:
                raise RefusedError("another fix changes the same place in another way")
            located[place] = here or self._locate(edit)
        self._taken |= located
        return _Plan(finding, tuple(located.values()), imports, comments)

    def _import(self, edit: Edit) -> None:
        """Find the place for an import; one that is new in this pass stands alone, as others may need the same line."""
        if self._imports.keys() - {edit.text}:
            raise RefusedError("another fix changes the imports")
        if edit.text not in self._imports:
            at = self._statements[edit.statement]
            own = own_packages(self._source.path)
            self._imports[edit.text] = added_import(self._source, edit.text, at, own=own)

    def _locate(self, edit: Edit) -> Located:
        statement = self._statements.get(edit.statement)
        if statement is None:
            raise RefusedError("there is no statement at the fix's place")
        try:
            if edit.kind is EditKind.DROP_STATEMENT:
                lines_of(self._source, edit.statement)  # refuses before anything is made
            if edit.statement not in self._parts:
                self._parts[edit.statement] = cut(self._source, statement)
            return locate(self._parts[edit.statement], statement, edit)
        except RecursionError as error:
            raise RefusedError("the statement is nested too deeply") from error

    def settle(self, state: _State, todo: Sequence[_Plan]) -> _State:
        """Add the plans whose result passes all checks; halves are tried apart, so that a bad one stops no other."""
        if not todo:
            return state
        try:
            return self._checked((*state.plans, *todo))
        except RefusedError as refused:
            if len(todo) == 1:
                self.failed.append(Left(todo[0].finding, str(refused)))
                return state
        half = len(todo) // 2
        return self.settle(self.settle(state, todo[:half]), todo[half:])

    def _checked(self, plans: tuple[_Plan, ...]) -> _State:
        located = list(dict.fromkeys(each for plan in plans for each in plan.located))
        imports = list(dict.fromkeys(edit for plan in plans for edit in plan.imports))
        added = {self._imports[edit.text] for edit in imports}
        added |= {_in_place(self._source, edit) for plan in plans for edit in plan.comments}
        data = spliced(self._source, sorted([*self._splices(located), *added]))
        repaired = check_text(self._source, [*(each.edit for each in located), *imports], data)
        now = self._relint(data)
        check_findings(self._source, self._findings, [plan.finding for plan in plans], repaired, now)
        return _State(repaired, now, plans)

    def _splices(self, located: Iterable[Located]) -> list[Splice]:
        by_part: dict[Span, list[Located]] = {}
        for each in located:
            by_part.setdefault(each.edit.statement, []).append(each)
        splices = []
        for span, here in by_part.items():
            part = self._parts[span]
            if any(each.edit.kind is EditKind.DROP_STATEMENT for each in here) and (
                lines := lines_of(self._source, span)
            ):
                splices.append((lines.start, lines.stop, ""))
                continue
            old, new = self._source.text[part.place], render(part, here)
            start = _common(old, new)
            end = _common(old[start:][::-1], new[start:][::-1])
            splices.append((part.place.start + start, part.place.stop - end, new[start : len(new) - end]))
        return splices


def _in_place(source: Source, edit: Edit) -> Splice:
    place = source.slice(edit.statement)
    return place.start, place.stop, edit.text


def _common(one: str, two: str) -> int:
    """How many characters both texts begin with."""
    return sum(takewhile(bool, map(eq, one, two)))
