"""Which functions run while a worker starts, each with the path of calls that proves it; standard library only."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepcause.lint import launch, startup
from keepcause.lint.finding import Grade, Step, WorkerInit
from keepcause.lint.summary import Class, Function

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.launch import Launch
    from keepcause.lint.program import Program

LAUNCH_SITE = "launch site"
_BOOT_HOOK = "boot hook"
_ACTOR_START = "start-up method of a ray actor"
_PROCESS_RUN = "run() of a Process class"
_CHILD_SIDE = (_BOOT_HOOK, _ACTOR_START, _PROCESS_RUN)
_GRADES = list(Grade)
_MOST_CALLERS = 25
_DEEPEST = 4
_LONGEST = 12
_LEAST_SHARE = 0.5
_TOKEN = re.compile(r"[^.()]+(?:\(\))*")
_EXCEPTION_NAME = re.compile(r"\w*(?:Error|Exception|Warning|Exit|Interrupt)")
_CONSTRUCTORS = ("__init__", "__new__", "__post_init__")


@dataclass(frozen=True, slots=True)
class Located:
    """A definition and the file that has it."""

    path: str
    what: Function | Class


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


class Graph:
    """The calls of one program, followed backward from the functions that are asked about."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._verdicts: dict[tuple[str, int, int], Verdict] = {}
        self._callers: dict[tuple[str, int], tuple[Caller, ...]] = {}
        self._resolved: dict[tuple[str, str], tuple[Located, ...]] = {}

    def evidence(self, path: str, line: int) -> WorkerInit | None:
        """Why the function whose `def` is at `line` of `path` is on a worker-init path; None where it is not."""
        function = self.function(path, line)
        if function is None:
            return None
        verdict = self.verdict(path, function)
        if verdict.depth is None:
            return None
        return WorkerInit(Grade.SURE if verdict.depth <= 1 else Grade.LIKELY, tuple(_steps(verdict)))

    def raised(self, path: str, qualname: str) -> WorkerInit | None:
        """The best evidence that the exception class `qualname` of `path` is raised on a worker-init path."""
        raised = self._class(path, qualname)
        found: list[WorkerInit] = []
        for raiser in self._raisers(Located(path, raised)) if raised else ():
            evidence = self.evidence(raiser.path, raiser.function.line)
            if evidence is not None and raised is not None:
                step = Step(qualname, path, raised.line, f"raised at line {raiser.line} of {raiser.path}")
                found.append(WorkerInit(evidence.grade, (*evidence.path, step)))
        return min(found, key=lambda evidence: (_GRADES.index(evidence.grade), len(evidence.path)), default=None)

    def _raisers(self, raised: Located) -> Iterator[Caller]:
        """Every function that is seen to raise the class."""
        assert isinstance(raised.what, Class)
        name = raised.what.qualname.rpartition(".")[2]
        words = [self.program.module_name(raised.path).rpartition(".")[2], name]
        for candidate in self.program.mentioning(name, words, raised.path):
            summary = self.program.summary(candidate)
            for function in summary.functions if summary else ():
                for call in function.raises:
                    if call.reference.endswith(name) and raised in self.resolve(candidate, call.reference):
                        yield Caller(candidate, function, call.line)
                        break

    def child(self, path: str, line: int, at: int) -> WorkerInit | None:
        """Why line `at` of the function whose `def` is at `line` of `path` runs in a worker; None where it does not.

        The function is what a launch site starts, or is called by one that is.
        """
        function = self.function(path, line)
        if function is None or self._hard_cut(path, function):
            return None
        if steps := self._child_steps(path, function, at):
            return WorkerInit(Grade.SURE, steps)
        for caller in self.callers(path, function):
            if steps := self._child_steps(caller.path, caller.function, caller.line):
                step = Step(function.qualname, path, function.line, f"called at line {caller.line} of {caller.path}")
                return WorkerInit(Grade.SURE, (*steps, step))
        return None

    def _child_steps(self, path: str, function: Function, at: int) -> tuple[Step, ...]:
        """The launch site, where there is one, and the function, if its line `at` runs in a worker."""
        for launcher, site in self._launches(path, function):
            root = Step(site.how, launcher, site.line, LAUNCH_SITE)
            return root, Step(function.qualname, path, function.line, "launch target")
        why = self._named_root(path, function)
        for site in function.launches:
            if site.child[0] <= at <= site.child[1]:
                why = f"forks at line {site.line}"
        return (Step(function.qualname, path, function.line, why),) if why in _CHILD_SIDE or "forks" in why else ()

    def function(self, path: str, line: int) -> Function | None:
        """The function whose `def` is at `line`; line 0 is the module itself."""
        summary = self.program.summary(path)
        return next((f for f in summary.functions if f.line == line), None) if summary else None

    def verdict(self, path: str, function: Function, budget: int = _DEEPEST) -> Verdict:
        """The shortest worker-init path to `function` that is at most `budget` calls long, or what there is instead."""
        key = (path, function.line, budget)
        if key not in self._verdicts:
            self._verdicts[key] = Verdict(path, function, None, "calls itself")
            self._verdicts[key] = self._decide(path, function, budget)
        return self._verdicts[key]

    def _decide(self, path: str, function: Function, budget: int) -> Verdict:
        if function.mark:
            return Verdict(path, function, 0 if function.mark == "worker-init" else None, f"marked `{function.mark}`")
        cut = self._hard_cut(path, function)
        if cut:
            return Verdict(path, function, None, cut, final=True)
        if root := self._root(path, function):
            return root
        if startup.SERVING_NAME.fullmatch(function.name):
            return Verdict(path, function, None, "serving, validation or shut-down by its name", final=True)
        if function.line == 0:
            return Verdict(path, function, None, "module level", final=True)
        if budget == 0:
            return Verdict(path, function, None, "too far from any root")
        callers = self.callers(path, function)
        if not callers:
            return Verdict(path, function, None, "nothing in the program is seen to call it", final=True)
        if len(callers) > _MOST_CALLERS:
            return Verdict(
                path, function, None, f"a shared helper: {len(callers)} callers", callers=callers, final=True
            )
        return self._by_callers(path, function, callers, budget)

    def _by_callers(self, path: str, function: Function, callers: tuple[Caller, ...], budget: int) -> Verdict:
        """Marked if enough of its callers are; no more of them are looked into than it takes to know."""
        enough = math.ceil(len(callers) * _LEAST_SHARE)
        for deeper in range(budget):
            verdicts = [self.verdict(caller.path, caller.function, deeper) for caller in callers]
            marked = [verdict for verdict in verdicts if verdict.depth is not None]
            if len(marked) >= enough:
                nearest = min(marked, key=lambda verdict: verdict.depth or 0)
                line = next(c.line for c in callers if (c.path, c.function) == (nearest.path, nearest.function))
                why = f"called at line {line} of {nearest.path}"
                return Verdict(path, function, (nearest.depth or 0) + 1, why, nearest, callers=callers)
            if sum(verdict.final for verdict in verdicts) > len(callers) - enough:
                break
        why = f"{len(marked)} of its {len(callers)} callers are on a worker-init path"
        return Verdict(path, function, None, why, callers=callers, final=all(v.final for v in verdicts))

    def _hard_cut(self, path: str, function: Function) -> str:
        """What ends a path even at a root."""
        if startup.is_test_path(path):
            return "test or benchmark"
        owner = self._class(path, function.owner)
        if owner is not None and self._is_exception(Located(path, owner)):
            return "method of an exception class"
        return ""

    # Roots

    def _root(self, path: str, function: Function) -> Verdict | None:
        if function.launches:
            first = function.launches[0]
            return Verdict(path, function, 0, f"starts workers: {first.how} at line {first.line}")
        if why := self._named_root(path, function) or self._driving_root(function):
            return Verdict(path, function, 0, why)
        for launcher, site in self._launches(path, function):
            step = Step(site.how, launcher, site.line, LAUNCH_SITE)
            return Verdict(path, function, 0, "launch target", root=step)
        return None

    def _launches(self, path: str, function: Function) -> Iterator[tuple[str, Launch]]:
        """The launch sites, with their files, that run `function` in a worker."""
        target = Located(path, function)
        owner = self._class(path, function.owner)
        name = _searched(function, owner)
        launchers = (
            [*self.program.mentioning(name, self._narrowed(path, function, owner), path)] if function.line else []
        )
        if owner is not None and self._is_actor(Located(path, owner)):
            launchers += [p for p in self.program.launchers if f".{name}.remote".encode() in self.program.data(p)]
        for launcher in sorted({*launchers} & {*self.program.launchers}):
            summary = self.program.summary(launcher)
            for starter in summary.functions if summary else ():
                for site in starter.launches:
                    if any(self._runs(launcher, reference, target) for reference in site.targets):
                        yield launcher, site

    def _named_root(self, path: str, function: Function) -> str:
        name = function.name
        if startup.STARTUP_NAME.fullmatch(name):
            return "start-up by its name"
        if any(startup.BOOT_HOOK.fullmatch(decorator) for decorator in function.decorators):
            return _BOOT_HOOK
        owner = self._class(path, function.owner)
        if owner is None:
            return ""
        if launch.is_actor(owner.decorators) and (name == "__init__" or startup.WORKER_STARTUP_NAME.fullmatch(name)):
            return _ACTOR_START
        if startup.WORKER_STARTUP_NAME.fullmatch(name) and self._is_worker(Located(path, owner)):
            return "start-up method of a worker class"
        if name == "run" and any(map(launch.PROCESS.fullmatch, self._base_names(Located(path, owner)))):
            return _PROCESS_RUN
        if startup.PLUGIN_HOOK.fullmatch(name) and any(
            startup.PLUGIN_CLASS.fullmatch(base) for base in self._base_names(Located(path, owner))
        ):
            return _BOOT_HOOK
        return ""

    def _driving_root(self, function: Function) -> str:
        """Why `function` is a parent that starts workers or waits for them, by the methods that it calls."""
        for call in function.calls:
            owner, _, name = call.reference.rpartition(".")
            if startup.WAITING_NAME.fullmatch(name):
                return f"waits for readiness: {name}() at line {call.line}"
            owner = owner.removesuffix("()").rpartition(".")[2].lstrip(":")
            starts = startup.DRIVING_NAME.fullmatch(name) or startup.WORKER_STARTUP_NAME.fullmatch(name)
            if (
                starts
                and startup.WORKER_CLASS.fullmatch(owner)
                and not call.reference.startswith(f":{function.owner}()")
            ):
                return f"starts workers: {owner}.{name}() at line {call.line}"
        return ""

    def _is_worker(self, owner: Located) -> bool:
        assert isinstance(owner.what, Class)
        names = (owner.what.qualname, *self._base_names(owner))
        return any(startup.WORKER_CLASS.fullmatch(name.rpartition(".")[2].lstrip(":")) for name in names)

    def _is_actor(self, owner: Located) -> bool:
        """Whether a class is a ray actor, or is called like one that is made an actor elsewhere."""
        assert isinstance(owner.what, Class)
        return launch.is_actor(owner.what.decorators) or self._is_worker(owner)

    def _is_exception(self, owner: Located) -> bool:
        return any(_EXCEPTION_NAME.fullmatch(base.rpartition(".")[2].lstrip(":")) for base in self._base_names(owner))

    def _base_names(self, owner: Located, depth: int = 6) -> list[str]:
        """The references of all classes that a class inherits from, nearest first, as far as the program has them."""
        assert isinstance(owner.what, Class)
        names: list[str] = []
        for base in owner.what.bases:
            names.append(self.program.absolute(owner.path, base) if not base.startswith(":") else base)
            if depth:
                for parent in self.resolve(owner.path, base):
                    if isinstance(parent.what, Class) and parent != owner:
                        names += self._base_names(parent, depth - 1)
        return list(dict.fromkeys(names))

    # Callers

    def callers(self, path: str, function: Function) -> tuple[Caller, ...]:
        """Every function in the program that is seen to call `function`, by path and line."""
        key = (path, function.line)
        if key not in self._callers:
            self._callers[key] = tuple(self._find_callers(path, function)) if function.line else ()
        return self._callers[key]

    def _find_callers(self, path: str, function: Function) -> Iterator[Caller]:
        target = Located(path, function)
        owner = self._class(path, function.owner)
        name = _searched(function, owner)
        for candidate in self.program.calling(name, self._narrowed(path, function, owner), path):
            summary = self.program.summary(candidate)
            for caller in summary.functions if summary else ():
                if (candidate, caller.line) == (path, function.line):
                    continue
                for call in caller.calls:
                    last = call.reference.rpartition(".")[2].lstrip(":")
                    if last in (name, function.name) and self._runs(candidate, call.reference, target):
                        yield Caller(candidate, caller, call.line)
                        break

    def _narrowed(self, path: str, function: Function, owner: Class | None) -> list[str]:
        """Words of which another file must import one to mean this function: its module's, its own, its family's."""
        module = self.program.module_name(path).rpartition(".")[2]
        if owner is None:
            return [module, function.name]
        family = [owner.qualname, *self._base_names(Located(path, owner))]
        return [module, *(name.rpartition(".")[2].lstrip(":") for name in family)]

    def _runs(self, path: str, reference: str, target: Located) -> bool:
        """Whether calling `reference`, as written in `path`, may run `target`."""
        if reference.startswith(f"{launch.ACTOR}."):
            assert isinstance(target.what, Function)
            owner = self._class(target.path, target.what.owner)
            named = reference == f"{launch.ACTOR}.{target.what.name}"
            return named and owner is not None and self._is_actor(Located(target.path, owner))
        for found in self.resolve(path, reference):
            if found == target:
                return True
            if isinstance(found.what, Class):
                if self._constructor_of(found, target):
                    return True
            elif self._overrides(target, found, reference):
                return True
        return False

    def _constructor_of(self, built: Located, target: Located) -> bool:
        if not isinstance(target.what, Function) or target.what.name not in _CONSTRUCTORS:
            return False
        return any(method == target for method in self._lookup(built, target.what.name))

    def _overrides(self, target: Located, found: Located, reference: str) -> bool:
        """Whether `target` is a method that overrides `found` in a subclass, and the call may reach subclasses."""
        assert isinstance(target.what, Function)
        assert isinstance(found.what, Function)
        if reference.startswith("super(") or target.what.name != found.what.name:
            return False
        base = self._class(found.path, found.what.owner)
        derived = self._class(target.path, target.what.owner)
        return (
            base is not None
            and derived is not None
            and Located(found.path, base) in self._ancestors(Located(target.path, derived))
        )

    def _ancestors(self, owner: Located, depth: int = 6) -> list[Located]:
        found: list[Located] = []
        assert isinstance(owner.what, Class)
        for base in owner.what.bases:
            for parent in self.resolve(owner.path, base):
                if isinstance(parent.what, Class) and parent != owner:
                    found.append(parent)
                    if depth:
                        found += self._ancestors(parent, depth - 1)
        return found

    # References

    def resolve(self, path: str, reference: str) -> tuple[Located, ...]:
        """The definitions in the program that `reference`, as written in the file at `path`, may mean."""
        key = (path, reference)
        if key not in self._resolved:
            self._resolved[key] = ()  # a reference that leads back to itself means nothing
            if reference.count(".") <= _LONGEST:  # attributes that hold their own attributes make it grow for ever
                self._resolved[key] = tuple(dict.fromkeys(self._resolve(path, reference)))
        return self._resolved[key]

    def _resolve(self, path: str, reference: str) -> Iterator[Located]:
        if reference.startswith("super("):
            inside, _, rest = reference.removeprefix("super(").partition(")")
            for owner in self.resolve(path, inside):
                for parent in self._ancestors(owner) if isinstance(owner.what, Class) else ():
                    method = self._own_methods(parent, rest.lstrip("."))
                    if method:
                        yield from method
                        return
            return
        if reference.startswith(":"):
            yield from self._within(path, _TOKEN.findall(reference[1:]))
            return
        yield from self._imported(self.program.absolute(path, reference))

    def _imported(self, dotted: str) -> Iterator[Located]:
        tokens = _TOKEN.findall(dotted)
        for count in range(len(tokens), 0, -1):
            path = self.program.modules.get(".".join(tokens[:count]))
            if path is not None:
                if rest := tokens[count:]:
                    yield from self._within(path, rest)
                return

    def _within(self, path: str, tokens: list[str]) -> Iterator[Located]:
        """What a dotted name means in a module: a definition of its own, or what it imported or assigned."""
        summary = self.program.summary(path)
        if summary is None:
            return
        plain = [token.removesuffix("()") for token in tokens]
        for count in range(len(tokens), 0, -1):
            if any(token.endswith("()") for token in tokens[: count - 1]):
                continue
            qualname = ".".join(plain[:count])
            found = [
                Located(path, d) for d in (*summary.functions, *summary.classes) if d.qualname == qualname and d.line
            ]
            if found:
                for definition in found:
                    yield from self._member(definition, tokens[count - 1].endswith("()"), tokens[count:])
                return
        head, *rest = tokens
        calls = head[len(plain[0]) :]
        for meaning in summary.names.get(plain[0], ()):
            if meaning != f":{plain[0]}":
                yield from self.resolve(path, ".".join([f"{meaning}{calls}", *rest]))
        if plain[0] not in summary.names:
            for star in summary.star_imports:
                yield from self._imported(".".join([self.program.absolute(path, star), *tokens]))

    def _member(self, definition: Located, called: bool, rest: list[str]) -> Iterator[Located]:
        """`definition`, or what attributes lead to from it."""
        if isinstance(definition.what, Function):
            if called and rest:
                for returned in definition.what.returns:
                    yield from self.resolve(definition.path, ".".join([f"{returned}()", *rest]))
            elif not called:
                yield definition
            return
        if not rest:
            yield definition
            return
        name, *others = rest
        plain = name.removesuffix("()")
        methods = list(self._lookup(definition, plain))
        for method in methods:
            yield from self._member(method, name.endswith("()"), others)
        if not methods:
            for holder in (definition, *self._ancestors(definition)):
                assert isinstance(holder.what, Class)
                for value in holder.what.attributes.get(plain, ()):
                    yield from self.resolve(holder.path, ".".join([f"{value}{name[len(plain) :]}", *others]))

    def _lookup(self, owner: Located, name: str) -> list[Located]:
        for holder in (owner, *self._ancestors(owner)):
            if methods := self._own_methods(holder, name):
                return methods
        return []

    def _own_methods(self, owner: Located, name: str) -> list[Located]:
        summary = self.program.summary(owner.path)
        assert isinstance(owner.what, Class)
        qualname = f"{owner.what.qualname}.{name}"
        return [Located(owner.path, f) for f in summary.functions if f.qualname == qualname] if summary else []

    def _class(self, path: str, qualname: str) -> Class | None:
        summary = self.program.summary(path) if qualname else None
        return next((c for c in summary.classes if c.qualname == qualname), None) if summary else None


def _searched(function: Function, owner: Class | None) -> str:
    """The name that a file has to have in it to run `function`: a constructor is called by its class's."""
    if owner is not None and function.name in _CONSTRUCTORS:
        return owner.qualname.rpartition(".")[2]
    return function.name


def _steps(verdict: Verdict) -> Iterator[Step]:
    if verdict.caller is not None:
        yield from _steps(verdict.caller)
    if verdict.root is not None:
        yield verdict.root
    yield Step(verdict.function.qualname, verdict.path, verdict.function.line, verdict.why)
