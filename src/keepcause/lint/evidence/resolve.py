"""What a reference means in a program: functions, methods over the class hierarchy, classes; standard library only."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepcause.lint.evidence import launch, startup
from keepcause.lint.evidence.summary import Class, Function

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.evidence.program import Program

_LONGEST = 12
_MOST_CALLS = 4
_DEEPEST = 6
_TOKEN = re.compile(r"[^.()]+(?:\(\))*")
_EXCEPTION_NAME = re.compile(r"\w*(?:Error|Exception|Warning|Exit|Interrupt)")
_CONSTRUCTORS = ("__init__", "__new__", "__post_init__")


@dataclass(frozen=True, slots=True)
class Located:
    """A definition and the file that has it."""

    path: str
    what: Function | Class


class Resolver:
    """The definitions of one program, by reference; see `keepcause.lint.scope` for what a reference is."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._resolved: dict[tuple[str, str], tuple[Located, ...]] = {}

    def resolve(self, path: str, reference: str) -> tuple[Located, ...]:
        """The definitions in the program that `reference`, as written in the file at `path`, may mean."""
        key = (path, reference)
        if key not in self._resolved:
            self._resolved[key] = ()  # a reference that leads back to itself means nothing
            # Attributes that hold their own attributes, or what their own methods give, make it grow for ever.
            if reference.count(".") <= _LONGEST and reference.count("()") <= _MOST_CALLS:
                self._resolved[key] = tuple(dict.fromkeys(self._resolve(path, reference)))
        return self._resolved[key]

    def _resolve(self, path: str, reference: str) -> Iterator[Located]:
        if reference.startswith("super("):
            inside, _, rest = reference.removeprefix("super(").partition(")")
            for owner in self.resolve(path, inside):
                for parent in self.ancestors(owner) if isinstance(owner.what, Class) else ():
                    method = self._own_methods(parent, rest.lstrip("."))
                    if method:
                        yield from method
                        return
            return
        if reference.startswith(":"):
            yield from self._within(path, _TOKEN.findall(reference[1:]))
            return
        yield from self._imported(self.program.absolute(path, reference))

    def gives(self, path: str, reference: str) -> str:
        """What a call of the imported function `reference` certainly gives; see `Body.gives`."""
        name = reference.rpartition(".")[2]
        if name not in self.program.generators or "(" in reference:
            return ""
        kinds = {self._gives(found) for found in self.resolve(path, reference)}
        return kinds.pop() if len(kinds) == 1 else ""

    def _gives(self, found: Located) -> str:
        summary = self.program.summary(found.path)
        if summary is None or not isinstance(found.what, Function):
            return ""
        is_all = summary.meaning(found.what.qualname) == (f":{found.what.qualname}",)
        return found.what.body.gives if is_all else ""

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
            defined: list[Function | Class] = [
                *summary.functions_called(qualname),
                *summary.classes_called(qualname),
            ]
            found = [Located(path, definition) for definition in defined]
            if found:
                for definition in found:
                    yield from self._member(definition, tokens[count - 1].endswith("()"), tokens[count:])
                return
        head, *rest = tokens
        calls = head[len(plain[0]) :]
        meanings = summary.meaning(plain[0])
        for meaning in meanings:
            if meaning != f":{plain[0]}":
                yield from self.resolve(path, ".".join([f"{meaning}{calls}", *rest]))
        if not meanings:
            for star in summary.star_imports:
                dot = "" if star.endswith(".") else "."
                yield from self.resolve(path, f"{star}{dot}{'.'.join(tokens)}")

    def _member(self, definition: Located, called: bool, rest: list[str]) -> Iterator[Located]:
        """`definition`, or what attributes lead to from it."""
        if isinstance(definition.what, Function):
            if called and rest:
                for returned in definition.what.returns:
                    yield from self.resolve(definition.path, ".".join([returned, *rest]))
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
            for holder in (definition, *self.ancestors(definition)):
                assert isinstance(holder.what, Class)
                for value in holder.what.attribute(plain):
                    yield from self.resolve(holder.path, ".".join([f"{value}{name[len(plain) :]}", *others]))

    def _lookup(self, owner: Located, name: str) -> list[Located]:
        for holder in (owner, *self.ancestors(owner)):
            if methods := self._own_methods(holder, name):
                return methods
        return []

    def _own_methods(self, owner: Located, name: str) -> list[Located]:
        summary = self.program.summary(owner.path)
        assert isinstance(owner.what, Class)
        qualname = f"{owner.what.qualname}.{name}"
        return [Located(owner.path, f) for f in summary.functions_called(qualname)] if summary else []

    def class_of(self, path: str, qualname: str) -> Class | None:
        """The class `qualname` of the file at `path`; None where there is none."""
        summary = self.program.summary(path) if qualname else None
        return next(iter(summary.classes_called(qualname)), None) if summary else None

    # Classes

    def ancestors(self, owner: Located, depth: int = _DEEPEST) -> list[Located]:
        """The classes of the program that a class inherits from, nearest first."""
        found: list[Located] = []
        assert isinstance(owner.what, Class)
        for base in owner.what.bases:
            for parent in self.resolve(owner.path, base):
                if isinstance(parent.what, Class) and parent != owner:
                    found.append(parent)
                    if depth:
                        found += self.ancestors(parent, depth - 1)
        return found

    def base_names(self, owner: Located, depth: int = _DEEPEST) -> list[str]:
        """The references of all classes that a class inherits from, nearest first, as far as the program has them."""
        assert isinstance(owner.what, Class)
        names: list[str] = []
        for base in owner.what.bases:
            names.append(self.program.absolute(owner.path, base) if not base.startswith(":") else base)
            if depth:
                for parent in self.resolve(owner.path, base):
                    if isinstance(parent.what, Class) and parent != owner:
                        names += self.base_names(parent, depth - 1)
        return list(dict.fromkeys(names))

    def is_worker(self, owner: Located) -> bool:
        """Whether a class, or one that it inherits from, is called like a worker or what drives one."""
        assert isinstance(owner.what, Class)
        names = (owner.what.qualname, *self.base_names(owner))
        return launch.THREAD not in names and any(startup.WORKER_CLASS.fullmatch(last_part(name)) for name in names)

    def is_actor(self, owner: Located) -> bool:
        """Whether a class is a ray actor, or is called like one that is made an actor elsewhere."""
        assert isinstance(owner.what, Class)
        return launch.is_actor(owner.what.decorators) or self.is_worker(owner)

    def is_exception(self, owner: Located) -> bool:
        """Whether a class inherits from one that is called like an exception."""
        return any(_EXCEPTION_NAME.fullmatch(last_part(base)) for base in self.base_names(owner))

    # What runs a function

    def runs(self, path: str, reference: str, target: Located) -> bool:
        """Whether calling `reference`, as written in `path`, may run `target`."""
        if reference.startswith(f"{launch.ACTOR}."):
            assert isinstance(target.what, Function)
            owner = self.class_of(target.path, target.what.owner)
            named = reference == f"{launch.ACTOR}.{target.what.name}"
            return named and owner is not None and self.is_actor(Located(target.path, owner))
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
        base = self.class_of(found.path, found.what.owner)
        derived = self.class_of(target.path, target.what.owner)
        return (
            base is not None
            and derived is not None
            and Located(found.path, base) in self.ancestors(Located(target.path, derived))
        )

    def names(self, function: Function) -> list[str]:
        """The names by which `function` is called: a constructor by its class, or one that inherits from it."""
        if not is_constructor(function):
            return [function.name]
        name = last_part(function.owner)
        return [name, *self.program.derived(name)]

    def words(self, path: str, function: Function) -> list[str]:
        """Words of which another file must import one to mean this function: its module's, its own, its family's."""
        owner = self.class_of(path, function.owner)
        module = self.program.module_name(path).rpartition(".")[2]
        if owner is None:
            return [module, function.name]
        name = last_part(owner.qualname)
        bases = [last_part(base) for base in self.base_names(Located(path, owner))]
        return [module, name, *bases, *self.program.derived(name)]


def last_part(reference: str) -> str:
    """`c` of a reference `a.b.c` or `:c`."""
    return reference.rpartition(".")[2].lstrip(":")


def is_constructor(function: Function) -> bool:
    """Whether a method runs when its class is called."""
    return bool(function.owner) and function.name in _CONSTRUCTORS
