"""Which functions run while a worker starts, each with the path of calls that proves it; standard library only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepcause.lint.evidence import startup
from keepcause.lint.evidence.resolve import Located, Resolver, is_constructor, last_part
from keepcause.lint.evidence.roots import ACTOR_START, BOOT_HOOK, PROCESS_RUN, STARTS, Roots
from keepcause.lint.evidence.summary import Class
from keepcause.lint.finding import LAUNCH_SITE, Grade, Step, WorkerInit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.evidence.program import Program
    from keepcause.lint.evidence.summary import Function
    from keepcause.lint.options import Declared

_CHILD_SIDE = (BOOT_HOOK, ACTOR_START, PROCESS_RUN)
_MOST_CALLERS = 25
_MOST_FILES_OF_A_STEP = 8
_DEEPEST = 4
_DETOURS = 2
_LEAST_SHARE = 0.5
_NOT_CALLED = "nothing in the program is seen to call it"


@dataclass(frozen=True, slots=True)
class Caller:
    """A place that calls a function: at `line`, in `function`."""

    path: str
    function: Function
    line: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a function is on a worker-init path, and what decided.

    `why` says what makes a root one, how the function follows from its caller, or what cut the path.
    """

    path: str
    function: Function
    depth: int | None
    why: str
    caller: Verdict | None = None
    root: Step | None = None
    callers: tuple[Caller, ...] = ()
    final: bool = False
    """No longer path would change it."""
    of_parent: bool = False
    """The path begins in a process that starts workers or waits for them, which pickles no error of its own."""


class Graph:
    """The calls of one program, followed backward from the functions that are asked about."""

    def __init__(self, program: Program, declared: Declared) -> None:
        self.program = program
        self._declared = declared
        self.resolver = Resolver(program)
        self.roots = Roots(self.resolver)
        self._verdicts: dict[tuple[str, int, int, int, bool], Verdict] = {}
        self._callers: dict[tuple[str, int], tuple[Caller, ...]] = {}

    def evidence(self, path: str, line: int, at: int, least: Grade) -> WorkerInit | None:
        """Why line `at` of the function whose `def` is at `line` of `path` is on a worker-init path; None where not.

        Evidence that is only *possible* is looked for where it is the `least` that counts.
        """
        function = self.function(path, line)
        proof = self._proof(self.verdict(path, function, at), least) if function else None
        return WorkerInit(proof[0], tuple(_steps(proof[1]))) if proof else None

    def _proof(self, verdict: Verdict, least: Grade) -> tuple[Grade, Verdict] | None:
        """How sure it is that the function is on a worker-init path, and the verdict that has the path."""
        if verdict.depth is not None:
            return Grade.SURE if verdict.depth <= 1 else Grade.LIKELY, verdict
        possible = self._in_spite_of_share(verdict, 2) if least is Grade.POSSIBLE else None
        return (Grade.POSSIBLE, possible) if possible else None

    def _in_spite_of_share(self, verdict: Verdict, calls: int) -> Verdict | None:
        """The same function as called from a root by at most `calls` calls, whoever else calls it."""
        for caller in verdict.callers if calls else ():
            above = self.verdict(caller.path, caller.function, caller.line, calls - 1)
            found = above if above.depth is not None else self._in_spite_of_share(above, calls - 1)
            if found is not None:
                return _called(verdict.path, verdict.function, verdict.callers, caller, found)
        return None

    def raised(self, path: str, qualname: str, least: Grade) -> WorkerInit | None:
        """The best evidence that a worker may raise the exception class `qualname` of `path` as it starts."""
        raised = self.resolver.class_of(path, qualname)
        if raised is None:
            return None
        found: list[WorkerInit] = []
        for raiser in self._raisers(Located(path, raised)):
            verdict = self.verdict(raiser.path, raiser.function, raiser.line)
            proof = self._proof(self._in_a_worker(verdict) or verdict, least)
            if proof is not None and not proof[1].of_parent:
                step = Step(qualname, path, raised.line, f"raised at line {raiser.line} of {raiser.path}")
                found.append(WorkerInit(proof[0], (*_steps(proof[1]), step)))
        return min(found, key=lambda evidence: (evidence.grade.doubt, len(evidence.path)), default=None)

    def _in_a_worker(self, verdict: Verdict, calls: int = _DETOURS) -> Verdict | None:
        """The same function on a path that begins in no parent, if need be not by the nearest of its callers."""
        if verdict.depth is None:
            return None
        if not verdict.of_parent:
            return verdict
        for caller in self._few_callers(verdict) if calls else ():
            above = self.verdict(caller.path, caller.function, caller.line, _DEEPEST - _DETOURS)
            found = self._in_a_worker(above, calls - 1)
            if found is not None:
                return _called(verdict.path, verdict.function, verdict.callers, caller, found)
        return None

    def _few_callers(self, verdict: Verdict) -> tuple[Caller, ...]:
        """The callers of a function, be it a root, whose callers decide nothing; none of a shared helper."""
        if verdict.callers:
            return verdict.callers
        files = self._files_that_may_call(verdict.path, verdict.function)
        callers = self.callers(verdict.path, verdict.function) if len(files) <= _MOST_CALLERS else ()
        return callers if len(callers) <= _MOST_CALLERS else ()

    def _raisers(self, raised: Located) -> Iterator[Caller]:
        """Every function that is seen to raise the class."""
        assert isinstance(raised.what, Class)
        name = raised.what.qualname.rpartition(".")[2]
        words = [self.program.module_name(raised.path).rpartition(".")[2], name]
        for candidate in self.program.files_that("mention", [name], words, raised.path):
            for function in self.program.functions_with(candidate, [name]):
                lines = [
                    call.line
                    for call in function.body.raises
                    if call.reference.endswith(name) and raised in self.resolver.resolve(candidate, call.reference)
                ]
                if lines:
                    yield Caller(candidate, function, max(lines))

    def child(self, path: str, line: int, at: int, *, last: bool = False) -> WorkerInit | None:
        """Why line `at` of the function whose `def` is at `line` of `path` runs in a worker; None where it does not.

        The function is what a launch site starts, or is called by one that is: `last`, with nothing behind it.
        """
        function = self.function(path, line)
        if function is None or self.roots.cut(path, function):
            return None
        if steps := self._child_steps(path, function, at):
            return WorkerInit(Grade.SURE, steps)
        if self._is_shared(path, function):
            return None
        for caller in self.callers(path, function):
            if last and caller.line < caller.function.tail:
                continue
            if steps := self._child_steps(caller.path, caller.function, caller.line):
                step = Step(function.qualname, path, function.line, f"called at line {caller.line} of {caller.path}")
                return WorkerInit(Grade.SURE, (*steps, step))
        return None

    def _is_shared(self, path: str, function: Function) -> bool:
        """Whether a function is no step of one kind of worker: many files may call it, or it serves or cleans up."""
        serves = startup.SERVING_NAME.fullmatch(function.name) is not None
        return serves or len(self._files_that_may_call(path, function)) > _MOST_FILES_OF_A_STEP

    def _child_steps(self, path: str, function: Function, at: int) -> tuple[Step, ...]:
        """The launch site, where there is one, and the function, if its line `at` runs in a worker that starts."""
        if function.body.serves_at(at):
            return ()
        for launcher, site in self.roots.launches(path, function):
            root = Step(site.how, launcher, site.line, LAUNCH_SITE)
            return root, Step(function.qualname, path, function.line, "launch target")
        forks = [site for site in self.roots.sites(path, function) if site.child[0] <= at <= site.child[1]]
        why = f"forks at line {forks[-1].line}" if forks else self.roots.named(path, function)
        return (Step(function.qualname, path, function.line, why),) if forks or why in _CHILD_SIDE else ()

    def at(self, path: str, line: int) -> Function | None:
        """The innermost function around `line`, outside of all the module itself; None where there is no file."""
        summary = self.program.summary(path)
        return summary.around([line])[-1] if summary else None

    def function(self, path: str, line: int) -> Function | None:
        """The function whose `def` is at `line`; line 0 is the module itself."""
        summary = self.program.summary(path)
        return next((f for f in summary.around([line]) if f.line == line), None) if summary else None

    def verdict(self, path: str, function: Function, at: int, budget: int = _DEEPEST) -> Verdict:
        """The shortest worker-init path to `function` that is at most `budget` calls long, or what there is instead.

        Line `at` of the function is what counts, 0 for all of it: before it starts workers, or where it serves, that is
        no evidence.
        """
        starts = self.roots.sites(path, function)
        later = starts[0].line if starts and 0 < at < starts[0].line else 0
        serving = at > 0 and function.body.serves_at(at)
        key = (path, function.line, budget, later, serving)
        if key not in self._verdicts:
            self._verdicts[key] = self._decide(path, function, budget, later, serving=serving)
        return self._verdicts[key]

    def _decide(self, path: str, function: Function, budget: int, later: int, *, serving: bool) -> Verdict:
        mark = function.mark or self._declared.mark(self.program.module_name(path), function.qualname)
        if mark:
            depth = 0 if mark == "worker-init" else None
            return Verdict(path, function, depth, f"declared `{mark}`", final=True, of_parent=_waits(function))
        cut = self.roots.cut(path, function)
        if cut:
            return Verdict(path, function, None, cut, final=True)
        if serving and not startup.is_startup(function.name):
            return Verdict(path, function, None, "it serves there, or ends", final=True)
        if root := self._root(path, function, later):
            return root
        if startup.SERVING_NAME.fullmatch(function.name):
            return Verdict(path, function, None, "serving, validation or shut-down by its name", final=True)
        if function.line == 0:
            return Verdict(path, function, None, "module level", final=True)
        if budget == 0:
            return Verdict(path, function, None, "too far from any root")
        files = self._files_that_may_call(path, function)
        if len(files) > _MOST_CALLERS:
            return Verdict(path, function, None, f"a shared helper: {len(files)} files may call it", final=True)
        callers = self.callers(path, function)
        if not callers:
            why = f"comes before it starts workers at line {later}" if later else _NOT_CALLED
            return Verdict(path, function, None, why, final=True)
        if len(callers) > _MOST_CALLERS:
            return Verdict(
                path, function, None, f"a shared helper: {len(callers)} callers", callers=callers, final=True
            )
        return self._by_callers(path, function, callers, budget)

    def _by_callers(self, path: str, function: Function, callers: tuple[Caller, ...], budget: int) -> Verdict:
        """Marked if enough of its callers are; no more of them are looked into than it takes to know."""
        enough = math.ceil(len(callers) * _LEAST_SHARE)
        for deeper in range(budget):
            verdicts = [self.verdict(caller.path, caller.function, caller.line, deeper) for caller in callers]
            marked = [pair for pair in zip(verdicts, callers, strict=True) if pair[0].depth is not None]
            if len(marked) >= enough:
                nearest, caller = min(marked, key=lambda pair: pair[0].depth or 0)
                return _called(path, function, callers, caller, nearest)
            if sum(verdict.final for verdict in verdicts) > len(callers) - enough:
                break
        if len(callers) == 1:
            why = "its one caller is not on a worker-init path"
        else:
            why = f"{len(marked)} of its {len(callers)} callers are on a worker-init path"
        return Verdict(path, function, None, why, callers=callers, final=all(v.final for v in verdicts))

    def _root(self, path: str, function: Function, later: int) -> Verdict | None:
        """What makes the function a root: its name, what launches it, or else what it launches or waits for itself."""
        sites = () if later else self.roots.sites(path, function)
        named = "" if sites else self.roots.named(path, function)
        for launcher, site in self.roots.launches(path, function) if function.line and not named else ():
            step = Step(site.how, launcher, site.line, LAUNCH_SITE)
            return Verdict(path, function, 0, "launch target", root=step)
        if sites:
            why = f"{STARTS}: {sites[0].how} at line {sites[0].line}"
        else:
            why = named or self.roots.driving(path, function)
        return Verdict(path, function, 0, why, of_parent=not named or _waits(function)) if why else None

    def callers(self, path: str, function: Function) -> tuple[Caller, ...]:
        """Every function in the program that is seen to call `function`, by path and line."""
        key = (path, function.line)
        if key not in self._callers:
            self._callers[key] = tuple(self._find_callers(path, function)) if function.line else ()
        return self._callers[key]

    def _files_that_may_call(self, path: str, function: Function) -> list[str]:
        names, words = self.resolver.names(function), self.resolver.words(path, function)
        files = self.program.files_that("may_call", names, words, path)
        if not is_constructor(function):
            return files
        derived = self.program.derived(last_part(function.owner))  # they call it behind `super()`
        return sorted({*files, *(file for defining in derived.values() for file in defining)})

    def _find_callers(self, path: str, function: Function) -> Iterator[Caller]:
        target = Located(path, function)
        names = {*self.resolver.names(function), function.name}
        for candidate in self._files_that_may_call(path, function):
            for caller in self.program.functions_with(candidate, names):
                if (candidate, caller.line) == (path, function.line):
                    continue
                lines = [
                    call.line
                    for call in caller.body.calls
                    if last_part(call.reference) in names and self.resolver.runs(candidate, call.reference, target)
                ]
                if lines:
                    starting = [line for line in lines if not caller.body.serves_at(line)]
                    yield Caller(candidate, caller, max(starting or lines))


def _called(path: str, function: Function, callers: tuple[Caller, ...], caller: Caller, above: Verdict) -> Verdict:
    """The verdict on a function as called by one of its callers, which is on the path `above`."""
    assert above.depth is not None
    why = f"called at line {caller.line} of {caller.path}"
    return Verdict(path, function, above.depth + 1, why, above, callers=callers, of_parent=above.of_parent)


def _waits(function: Function) -> bool:
    """Whether a function waits until something is ready, by its name."""
    return startup.WAITING_NAME.fullmatch(function.name) is not None


def _steps(verdict: Verdict) -> Iterator[Step]:
    if verdict.caller is not None:
        yield from _steps(verdict.caller)
    if verdict.root is not None:
        yield verdict.root
    yield Step(verdict.function.qualname, verdict.path, verdict.function.line, verdict.why)
