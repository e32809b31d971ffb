"""What makes a function the root of a worker-init path, and what ends one; standard library only."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from keepcause.lint.evidence import launch, startup
from keepcause.lint.evidence.resolve import Located
from keepcause.lint.evidence.summary import Body, Class, Function
from keepcause.lint.files import is_test_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.evidence.launch import Launch
    from keepcause.lint.evidence.resolve import Resolver

BOOT_HOOK = "boot hook"
ACTOR_START = "start-up method of a ray actor"
PROCESS_RUN = "run() of a Process class"
STARTS = "starts workers"
_PROGRAM = re.compile(r"subprocess\.Popen|asyncio\.(?:subprocess\.)?create_subprocess_(?:exec|shell)|os\.posix_spawnp?")
"""What starts another program, which is no launch site as nobody sees what it runs."""


class Roots:
    """Judges one function at a time, by its name, its class, its own calls, and the launch sites of the program."""

    def __init__(self, resolver: Resolver) -> None:
        self.resolver = resolver
        self.program = resolver.program

    def cut(self, path: str, function: Function) -> str:
        """What ends a path even at a root."""
        if is_test_path(path):
            return "test or benchmark"
        owner = self.resolver.class_of(path, function.owner)
        if owner is not None and self.resolver.is_exception(Located(path, owner)):
            return "method of an exception class"
        return ""

    def launches(self, path: str, function: Function) -> Iterator[tuple[str, Launch]]:
        """The launch sites, with their files, that run `function` in a worker."""
        target = Located(path, function)
        names = self.resolver.names(function)
        launchers = set(self.program.files_that("may_launch", names, self.resolver.words(path, function), path))
        owner = self.resolver.class_of(path, function.owner)
        if owner is not None and self.resolver.is_actor(Located(path, owner)):
            launchers.update(self.program.files_that("may_call_actor", [function.name]))
        for launcher in sorted(launchers):
            for starter in self.program.functions_that_launch(launcher):
                for site in self.sites(launcher, starter):
                    if any(self.resolver.runs(launcher, reference, target) for reference in site.targets):
                        yield launcher, site

    def sites(self, path: str, function: Function) -> list[Launch]:
        """The launch sites in `function`, without calls of what the program knows to be no process class."""
        return [site for site in function.body.launches if not site.by or self._starts_processes(path, site)]

    def _starts_processes(self, path: str, site: Launch) -> bool:
        found = [called for reference in site.by for called in self.resolver.resolve(path, reference)]
        if not found:
            return site.presumed
        return any(isinstance(called.what, Class) and self._is_process(called) for called in found)

    def _is_process(self, owner: Located) -> bool:
        """Whether a class inherits from a process class, or starts processes as it is built."""
        if any(map(launch.PROCESS.fullmatch, self.resolver.base_names(owner))):
            return True
        built = self.resolver.resolve(owner.path, f":{owner.what.qualname}.__init__")
        sites = [site for made in built if isinstance(made.what, Function) for site in made.what.body.launches]
        return any(site.presumed or not site.by for site in sites)

    def _starts_thread(self, path: str, method: str) -> bool:
        """Whether the program shows that `method` belongs to a thread, or makes one and no process."""
        owners = self.resolver.resolve(path, method.rpartition(".")[0])
        if any(isinstance(owner.what, Class) and launch.THREAD in self.resolver.base_names(owner) for owner in owners):
            return True
        return any(self._makes_threads_alone(path, body) for path, body in self._bodies(path, method))

    def _makes_threads_alone(self, path: str, body: Body) -> bool:
        """Whether `body` makes a thread, and no process, be it by one more call; a thread may listen to a process."""
        if all(call.reference != launch.THREAD for call in body.calls):
            return False
        called = (below for call in body.calls for _, below in self._bodies(path, call.reference))
        return not any(
            each.launches or any(_PROGRAM.fullmatch(call.reference) for call in each.calls) for each in (body, *called)
        )

    def _bodies(self, path: str, reference: str) -> Iterator[tuple[str, Body]]:
        for found in self.resolver.resolve(path, reference):
            if isinstance(found.what, Function):
                yield found.path, found.what.body

    def named(self, path: str, function: Function) -> str:
        """Why `function` belongs to start-up by its name, its class or its decorators."""
        name = function.name
        if startup.STARTUP_NAME.fullmatch(name):
            return "start-up by its name"
        if any(startup.BOOT_HOOK.fullmatch(decorator) for decorator in function.decorators):
            return BOOT_HOOK
        owner = self.resolver.class_of(path, function.owner)
        if owner is None:
            return ""
        if launch.is_actor(owner.decorators) and (name == "__init__" or startup.WORKER_STARTUP_NAME.fullmatch(name)):
            return ACTOR_START
        if startup.WORKER_STARTUP_NAME.fullmatch(name) and self.resolver.is_worker(Located(path, owner)):
            return "start-up method of a worker class"
        if name == "run" and any(map(launch.PROCESS.fullmatch, self.resolver.base_names(Located(path, owner)))):
            return PROCESS_RUN
        if startup.PLUGIN_HOOK.fullmatch(name) and any(
            startup.PLUGIN_CLASS.fullmatch(base) for base in self.resolver.base_names(Located(path, owner))
        ):
            return BOOT_HOOK
        return ""

    def driving(self, path: str, function: Function) -> str:
        """Why `function` is a parent that starts workers or waits for them, by the methods that it calls."""
        for call in function.body.calls:
            owner, _, name = call.reference.rpartition(".")
            if startup.WAITING_NAME.fullmatch(name):
                return f"waits for readiness: {name}() at line {call.line}"
            scope = owner.removesuffix("()")
            is_own = scope.startswith(":") and f":{function.qualname}.".startswith(f"{scope}.")
            if is_own or call.reference.startswith(f":{function.owner}()"):
                continue
            worker = scope.rpartition(".")[2].lstrip(":")
            starts = startup.DRIVING_NAME.fullmatch(name) or startup.WORKER_STARTUP_NAME.fullmatch(name)
            if starts and startup.WORKER_CLASS.fullmatch(worker) and not self._starts_thread(path, call.reference):
                return f"{STARTS}: {worker}.{name}() at line {call.line}"
        return ""
