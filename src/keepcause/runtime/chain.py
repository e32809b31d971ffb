"""An exception and its causes to plain data and back, by pickle and by JSON; imports describe and plain."""

from __future__ import annotations

import contextlib
import copy
import copyreg
import io
import json
import os
import pickle
import socket
import sys
import types
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .describe import (
    AS_TEXT,
    BUILTIN,
    SITUATION,
    Node,
    bases_of,
    builtin_base,
    cause_of,
    describe,
    dict_of,
    frame_lines,
    members_by_class,
    members_of,
    root_of,
    text_of,
)
from .plain import Shown, Unpickler

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

ELSEWHERE: Final = "Raised in another process"
"""How the note begins that holds an exception's frames of another process."""

E = TypeVar("E", bound=BaseException)


def dump(exc: BaseException, *, whole: bool = False) -> bytes:
    """Turn an exception and its chain into at most 60 kB.

    With `whole` the outermost exception keeps its fields whatever their size. What can't be pickled travels as its
    text; nothing that an exception holds or does makes this raise.
    """
    origin = _origin()
    return describe(exc, lambda nodes: pickle.dumps((origin, nodes), 4), whole=whole)


def load(data: bytes) -> BaseException:
    """Rebuild the outermost exception of `dump`, with its chain.

    Each link is an instance of its own class where this process has imported that, else a `StandIn`. Nothing is
    imported, and no `__init__` is called but that of a built-in class. The frames of the other process are in the last
    note of each link.
    """
    return _rebuild(*Unpickler(io.BytesIO(data)).load())


def to_json(exc: BaseException) -> str:
    """Return the chain as one line of JSON, at most 60 kB; what JSON doesn't know travels as its text."""
    origin = _origin()
    return describe(exc, lambda nodes: json.dumps([origin, nodes], separators=(",", ":")), blobs=False)


def from_json(text: str | bytes) -> BaseException:
    """Rebuild what `to_json` wrote; runs nothing of the sender's.

    Raises:
        ValueError: the text is not such a chain.
    """
    try:
        origin, nodes = json.loads(text)
        return _rebuild(str(origin), [{key: value for key, value in node.items() if key != "blob"} for node in nodes])
    except (LookupError, TypeError, AttributeError, StopIteration, RecursionError) as error:
        raise ValueError(f"Not an exception chain in JSON: {type(error).__name__}: {error}") from error


class Carried(BaseException):
    """Base of exceptions that pickle, copy and deepcopy with all their fields, their chain and the frames' text.

    A subclass whose attributes are not plain data says by `_keepcause_fields` and `_keepcause_restore` how they become
    plain and back.
    """

    @property
    def root(self) -> BaseException:
        """The last exception of the chain: the root cause, or this error itself."""
        # Ray raises an instance of a class of its own below this one, with the error that arrived in `cause`.
        arrived = vars(self).get("cause")
        return root_of(arrived if isinstance(arrived, Carried) else self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # tblib, which dask installs, registers a reducer that adds the live chain, and fails where one link of it can't
        # be pickled. What is returned here has the chain already; dask's second try gets it.
        copyreg.dispatch_table.pop(type(self), None)
        return load, (dump(self, whole=True),)

    def __copy__(self) -> Self:
        return self._twin(dict(vars(self)))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._twin(copy.deepcopy(vars(self), memo))

    def __setattr__(self, name: str, value: object) -> None:
        # Process pools overwrite the cause of an error that arrives by a text of theirs; the chain says more.
        if name == "__cause__" and type(value).__name__.endswith("RemoteTraceback") and cause_of(self) is not None:
            return
        super().__setattr__(name, value)

    def _twin(self, state: dict[str, Any]) -> Self:
        """Return a copy with this state and the same chain and traceback."""
        twin = _bare(type(self), self.args, members_of(self) if issubclass(type(self), BaseExceptionGroup) else ())
        vars(twin).update(state)
        for name in ("__cause__", "__context__", "__suppress_context__", "__traceback__"):
            object.__setattr__(twin, name, getattr(self, name))
        return twin

    def _keepcause_fields(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "__notes__"}

    def _keepcause_restore(self, fields: dict[str, Any]) -> None:
        vars(self).update(fields)


class StandIn(Carried):
    """An exception whose class this process doesn't have: same name, text, notes and nearest built-in base.

    Attributes:
        type_name: full name of its class.
        bases: full names of that class's bases, down to the built-in one.
        why: why it could not be rebuilt as what it was.
    """

    type_name: str
    bases: list[str]
    why: str
    _keepcause_node: Node

    def __str__(self) -> str:
        return str(self._keepcause_node["text"])


def _origin() -> str:
    return f"pid {os.getpid()} on {socket.gethostname()}"


def _rebuild(origin: str, nodes: list[Node]) -> BaseException:
    made: dict[int, BaseException] = {}
    begun: set[int] = set()
    troubles: dict[int, str] = {}

    def make(place: int) -> BaseException:
        if place not in made:
            begun.add(place)
            inner = [make(each) for each in nodes[place].get("members", ()) if each in made or each not in begun]
            made[place], troubles[place] = _revive(nodes[place], inner)
        return made[place]

    for place, node in enumerate(nodes):
        exc = make(place)
        for link in ("cause", "context"):
            if link in node:
                object.__setattr__(exc, f"__{link}__", make(node[link]))
        object.__setattr__(exc, "__suppress_context__", bool(node.get("suppress")))
    for place, node in enumerate(nodes):
        _annotate(made[place], node, origin, troubles[place])
    return made[0]


def _annotate(exc: BaseException, node: Node, origin: str, trouble: str) -> None:
    """Put into notes what a traceback would not show of an exception from another process."""
    notes = list(node.get("notes", ()))
    more = [f"Not whole here: {trouble}"] if trouble else []
    if "lost" in node:
        more.append(f"Not whole here: {', '.join(node['lost'])}")
    if text_of(exc) != node["text"]:
        more.append(f"There its text was: {node['text']}")
    if "omitted" in node:
        more.append(f"{node['omitted']} exceptions between this one and the one before were left out.")
    if "frames" in node:
        more.append("\n".join((f"{ELSEWHERE} ({origin}), most recent call last:", *frame_lines(node))))
    notes += [note for note in more if note not in notes]
    if notes:
        dict_of(exc)["__notes__"] = notes


def _revive(node: Node, members: list[BaseException]) -> tuple[BaseException, str]:
    """Return the exception, as an instance of its own class or a stand-in, and what could not be rebuilt."""
    cls = _find(node["module"], node["name"])
    if cls is None:
        why = f"{node['module']}.{node['name']} is not an exception class of a module imported here"
        return _stand_in(node, members, why), why
    inside, trouble = _unpacked(node.get("blob"))
    if node.get("whole") and type(inside) is cls:
        dict_of(inside).pop("__notes__", None)
        return inside, ""
    odd = inside if type(inside) is dict and not node.get("whole") else {}
    try:
        args = [odd.get(place, _value(arg)) for place, arg in enumerate(node.get("args", ()))]
        state = {name: odd.get(name, _value(value)) for name, value in node.get("state", {}).items()}
        exc: Any = _bare(cls, args, members)
        if issubclass(cls, Carried):
            exc._keepcause_restore(state)
        else:
            _restore(exc, state)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        return _stand_in(node, members, why), why
    return exc, trouble


def _unpacked(blob: bytes | None) -> tuple[Any, str]:
    """Return what a blob holds, None where it can't be read here, and why it can't."""
    if blob is None:
        return None, ""
    try:
        return Unpickler(io.BytesIO(blob)).load(), ""
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return None, f"{type(error).__name__}: {text_of(error)}"


def _value(value: Any) -> Any:
    return Shown(value[AS_TEXT]) if isinstance(value, dict) and list(value) == [AS_TEXT] else value


def _find(module: str, name: str) -> type[BaseException] | None:
    """Return an exception class by its name, without importing or running anything."""
    place: object = sys.modules.get(module)
    for part in name.split("."):
        place = vars(place).get(part) if isinstance(place, types.ModuleType | type) else None
    return place if isinstance(place, type) and issubclass(place, BaseException) else None


def _bare(cls: type[E], args: Sequence[Any], members: Sequence[BaseException]) -> E:
    """Make an instance by its built-in base alone: no `__new__` or `__init__` of the user's is called."""
    base = builtin_base(cls)
    exc: E
    if issubclass(base, BaseExceptionGroup):
        message = args[0] if args and isinstance(args[0], str) else ""
        exc = base.__new__(cls, message, list(members) or [RuntimeError("The members of this group were left out.")])
        return exc
    exc = base.__new__(cls, *args)
    with contextlib.suppress(TypeError):  # arguments that travelled as text, or none where the base wants some
        base.__init__(exc, *args)
    return exc


def _restore(exc: BaseException, state: dict[str, Any]) -> None:
    """Set attributes without running code of the class: built-in fields and slots as such, others in its dict."""
    for name, value in state.items():
        layers = map(members_by_class, bases_of(type(exc)))
        found = next((members[name] for members in layers if name in members), None)
        if isinstance(found, types.GetSetDescriptorType | types.MemberDescriptorType):
            found.__set__(exc, value)
        else:
            dict_of(exc)[name] = value


def _stand_in(node: Node, members: list[BaseException], why: str) -> BaseException:
    base = next(each for each, name in BUILTIN.items() if name == node["base"])
    name = node["name"].encode(errors="replace").decode().replace("\0", "?")
    cls: type[StandIn] = type(
        name.rpartition(".")[2], (StandIn, base), {"__module__": node["module"], "__qualname__": name}
    )
    exc = _bare(cls, [node["text"]], members)
    if isinstance(exc, SyntaxError):
        exc.msg = node["text"]  # what a traceback prints of it
    exc.type_name, exc.bases, exc.why = f"{node['module']}.{node['name']}", node.get("bases", []), why
    exc._keepcause_node = {key: value for key, value in node.items() if key not in SITUATION}
    return exc
