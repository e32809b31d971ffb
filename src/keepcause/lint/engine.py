"""Paths and settings -> findings, file by file, in a stable order; standard library only."""

from __future__ import annotations

import ast
import contextlib
import functools
import os
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from keepcause.lint.checked import FileReport, Trouble, unreadable
from keepcause.lint.evidence.screen import may_have_child, may_have_root
from keepcause.lint.files import Tree, is_test_path, read
from keepcause.lint.finding import LAUNCH_SITE, Finding, Grade, WorkerInit
from keepcause.lint.noqa import Suppressions
from keepcause.lint.options import Declared, Structured
from keepcause.lint.rule import Rule, Where, all_rules
from keepcause.lint.source import Source, SourceError
from keepcause.lint.unparsed.file import Unparsed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from keepcause.lint.evidence.graph import Graph
    from keepcause.lint.evidence.program import Program

    Explain = Callable[[Finding, Where], WorkerInit | None]
    Programs = dict[Path, Program]

_MOST_NAMES = 4


@dataclass(frozen=True)
class Settings:
    """What to look for: the codes that are on, the least grade of evidence, and whether files are linked."""

    codes: frozenset[str] = field(default_factory=lambda: frozenset(r.code for r in all_rules() if r.on_by_default))
    evidence: Grade = Grade.LIKELY
    single_file: bool = False
    declared: Declared = field(default_factory=Declared)
    noqa: bool = True
    structured: Structured = field(default_factory=Structured)

    @functools.cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that are on, by code."""
        return tuple(rule for rule in all_rules() if rule.code in self.codes)

    @property
    def reviewed(self) -> bool:
        """Whether the comments that keep findings quiet are looked at, for which all evidence counts."""
        return self.noqa and not self.single_file and any(rule.reviews for rule in self.rules)


def looking(data: bytes, settings: Settings, generators: frozenset[str] = frozenset()) -> Sequence[Rule]:
    """The rules that may find something in a file with these bytes; `generators` are those of its whole program."""
    file = Unparsed.of(data, generators)
    if file is None:
        return settings.rules
    seen = (rule for rule in settings.rules if rule.glance(file))
    return [rule for rule in seen if _counts(rule, file, settings) and rule.possible(file)]


def _counts(rule: Rule, file: Unparsed, settings: Settings) -> bool:
    """Whether a finding may have the evidence that the rule asks for; that other files give some is not ruled out."""
    if not settings.single_file or rule.where is Where.EVERYWHERE or settings.declared.worker_init:
        return True
    return may_have_child(file) if rule.where is Where.WORKER_CHILD else may_have_root(file)


def lint_source(source: Source, settings: Settings, explain: Explain, rules: Iterable[Rule]) -> list[Finding]:
    """The findings of one file, by position, of those `rules`, which are on.

    `explain` gives the worker-init evidence that a kind of rule asks for.
    """
    source.structured = settings.structured
    by_code = {rule.code: rule for rule in settings.rules}
    found: list[Finding] = []
    for finding in _raw_findings(source, rules):
        where = by_code[finding.code].where
        if where is not Where.EVERYWHERE:
            evidence = explain(finding, where)
            if evidence is None:
                continue
            evidence = replace(evidence, grade=max(evidence.grade, finding.at_best, key=lambda grade: grade.doubt))
            finding = replace(finding, worker_init=evidence, message=f"{finding.message} ({reason(evidence)})")
        found.append(finding)
    sure = [f for f in found if f.worker_init is None or f.worker_init.grade.doubt <= settings.evidence.doubt]
    places = {(finding.span, finding.code) for finding in sure}
    reported = [f for f in dict.fromkeys(sure) if (f.span, by_code[f.code].unless) not in places]
    if settings.noqa and (reported or settings.reviewed):
        suppressions = Suppressions(source.text)
        for rule in settings.rules if settings.reviewed else ():
            reported += rule.review(source, suppressions, found, settings.codes)
        reported = [finding for finding in reported if not suppressions.cover(finding)]
    return sorted(reported, key=lambda finding: (finding.span, finding.code))


def reason(evidence: WorkerInit) -> str:
    """The path in one line, names only: the root and the last steps."""
    root, *_ = evidence.path
    names = [step.function for step in evidence.path]
    if root.why != LAUNCH_SITE:
        names[0] += f" ({root.why})"
    if len(names) > _MOST_NAMES:
        names = [names[0], "...", *names[-(_MOST_NAMES - 1) :]]
    return f"worker-init: {' -> '.join(names)}"


def _raw_findings(source: Source, rules: Iterable[Rule]) -> Iterator[Finding]:
    for rule in rules:
        for kind in rule.nodes:
            for node in source.scopes.nodes.get(kind, ()):
                yield from rule.check(node, source)


class Engine:
    """Checks files under one set of settings; what is read of programs is kept.

    `given` texts count in place of what is on disk. Engines with the same ones may share `programs`, and a `tree`.
    """

    def __init__(
        self,
        settings: Settings,
        programs: Programs | None = None,
        given: Mapping[Path, bytes] | None = None,
        tree: Tree | None = None,
    ) -> None:
        self.settings = settings
        self._programs: Programs = {} if programs is None else programs
        self._given = {os.path.abspath(path): data for path, data in (given or {}).items()}
        self._tree = tree or Tree()

    def check(self, path: Path | str) -> FileReport | Trouble:
        """The findings of the file at `path`, or why it could not be checked."""
        data = self._given.get(os.path.abspath(path)) if self._given else None
        try:
            data = read(path) if data is None else data
        except OSError as error:
            return unreadable(path, error)
        try:
            return FileReport(Path(path), data, tuple(self.findings(path, data)))
        except SourceError as error:
            return Trouble(str(path), error.reason, error.line)
        except RecursionError:
            return Trouble(str(path), "nested too deeply to be checked")

    def findings(self, path: Path | str, data: bytes) -> list[Finding]:
        """The findings of a file whose bytes are `data`.

        Raises SourceError where they can't be read as Python and may hold a finding: else they are not parsed.
        """
        try:
            return self._findings(path, data)
        except (SourceError, RecursionError):
            raise
        except BaseException:  # a fault, or it took too long: what was made of a program may be half of it
            self._programs.clear()
            raise

    def _findings(self, path: Path | str, data: bytes) -> list[Finding]:
        root, name = self._tree.place(path)
        program = None if self.settings.single_file else self._program(root)
        if program:
            program.hold(name, data)
        rules = looking(data, self.settings, program.generators if program else frozenset())
        if not rules:
            return []
        source = Source(data, name)
        graph = self.graph(root) if program else None
        if graph:
            source.elsewhere = partial(graph.resolver.gives, name)
        linked = _alone(source, self.settings) if graph is None else lambda: graph
        # A comment may keep quiet what is only possible; then it is in use.
        least = Grade.POSSIBLE if self.settings.reviewed and b"noqa" in data.lower() else self.settings.evidence
        return lint_source(
            source, self.settings, lambda *asked: _absolute(_evidence(linked, source, least, *asked), root), rules
        )

    def program(self, path: Path) -> Program | None:
        """The program that the file is checked in; None where it is checked alone."""
        return None if self.settings.single_file else self._program(self._tree.place(path)[0])

    def graph(self, root: Path) -> Graph:
        """A new graph of the program below `root`.

        Each file is checked with one of its own: what a graph knows already it does not ask the program again, which
        notes what the check of each file has asked.
        """
        # Here, as below: most files are turned down, and need no graph.
        from keepcause.lint.evidence.graph import Graph

        return Graph(self._program(root), self.settings.declared)

    def _program(self, root: Path) -> Program:
        if root not in self._programs:
            self._programs[root] = self._read_program(root)
        return self._programs[root]

    def _read_program(self, root: Path) -> Program:
        from keepcause.lint.evidence.program import Program

        program = Program(root, self._tree.program_files(str(root)))
        given = {}
        for path, data in self._given.items():
            place, name = self._tree.place(Path(path))
            if place == root:
                with contextlib.suppress(SourceError):
                    given[name] = Source(data, name)
        if not given:
            return program
        return Program(root, {*program.paths, *(name for name in given if not is_test_path(name))}, given)


def lint_single_file(source: Source, settings: Settings, rules: Iterable[Rule] | None = None) -> list[Finding]:
    """The findings of one file with the evidence of that file alone; `source.path` is below its program's root.

    `rules` are those that are `looking`, where that is known.
    """
    graph = _alone(source, settings)
    rules = looking(source.data, settings) if rules is None else rules
    return lint_source(source, settings, lambda *asked: _evidence(graph, source, settings.evidence, *asked), rules)


def _alone(source: Source, settings: Settings) -> Callable[[], Graph]:
    """The graph of a program that is one file, made when it is first asked for."""

    @functools.cache
    def graph() -> Graph:
        from keepcause.lint.evidence.graph import Graph
        from keepcause.lint.evidence.program import Program

        return Graph(Program.of_one_file(source), settings.declared)

    return graph


def _evidence(
    linked: Callable[[], Graph], source: Source, least: Grade, finding: Finding, where: Where
) -> WorkerInit | None:
    graph = linked()
    graph.program.offer(source)
    summary = graph.program.summary(source.path)
    if summary is None:
        raise RecursionError  # the file has been parsed, so only its depth can be the reason
    line = finding.function
    if source.data != graph.program.data(source.path):
        # A repair may have moved functions since the program read the file, but has made and removed none.
        defined = (ast.FunctionDef, ast.AsyncFunctionDef)
        here = sorted(node.lineno for node in source.scopes.inside if isinstance(node, defined))
        there = [function.line for function in summary.functions() if function.line]
        line = dict(zip(here, there, strict=False)).get(line, line)
    if finding.raised:
        return graph.raised(source.path, finding.raised, least)
    at = finding.span.line - finding.function + line
    if where is Where.WORKER_CHILD:
        return graph.child(source.path, line, at, last=finding.as_last)
    return graph.evidence(source.path, line, at, least)


def _absolute(evidence: WorkerInit | None, root: Path) -> WorkerInit | None:
    if evidence is None:
        return None
    return replace(evidence, path=tuple(replace(step, file=str(root / step.file)) for step in evidence.path))
