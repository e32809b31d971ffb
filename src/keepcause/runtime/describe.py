"""One exception as plain data: names, text, arguments, notes, frames, links; imports the standard library, plain."""

from __future__ import annotations

import builtins
import json
import linecache
import pickle
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from .plain import cut, is_big, is_plain, pickled, portable, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import CodeType, TracebackType

LINKS: Final = 16
"""Exceptions kept of one line of causes; the middle of a longer line is left out, the root never."""
NODES: Final = 64
"""Exceptions kept altogether, groups' members and suppressed contexts included."""
FRAMES: Final = 40
"""Frames kept of one exception: half of them the outermost, half the innermost."""
NOTES: Final = 8
"""Notes kept of one exception: half of them the first, half the last."""
NOTE: Final = 8_000
"""Characters kept of a note; it may hold the frames of an earlier process."""
BLOB: Final = 32_000
"""Bytes that one exception's arguments and attributes may take."""
REPORT: Final = 60_000
"""Bytes that a chain may take: so much is written to a pipe (65,536 bytes on Linux) without waiting for its reader."""

_SQUEEZES: Final = ((FRAMES, 4_000, True), (10, 1_000, True), (4, 300, False), (2, 60, False))
"""Frames, characters a text, and whether arguments stay: what a chain that is too big is cut down to, step by step."""

Node = dict[str, Any]
"""One exception; what is empty is absent.

`module`, `name`: its class. `base`: the nearest built-in class; `bases`: names of the classes before that one. `text`:
its str. `args`, `state`: arguments and attributes, as far as they are plain. `blob`: both of them pickled where they
aren't plain, or, with `whole`, the exception itself. `notes`. `frames`: (file, line, function, source). `skipped`:
frames left out after the first half. `cause`, `context`, `members`: places in the list of nodes. `suppress`: the
context is not shown. `omitted`: links left out before the next one.
"""

SITUATION: Final = frozenset(
    {"notes", "frames", "skipped", "cause", "context", "members", "suppress", "omitted"},
)
"""The fields that tell an exception's place in one chain, not the exception itself."""

BUILTIN: Final[dict[type, str]] = {
    each: name for name, each in vars(builtins).items() if isinstance(each, type) and issubclass(each, BaseException)
}

# Read at the C level, so that no class of the user's has a say in it.
cause_of: Final = BaseException.__dict__["__cause__"].__get__
context_of: Final = BaseException.__dict__["__context__"].__get__
suppresses: Final = BaseException.__dict__["__suppress_context__"].__get__
traceback_of: Final = BaseException.__dict__["__traceback__"].__get__
members_of: Final = BaseExceptionGroup.__dict__["exceptions"].__get__


def text_of(exc: BaseException) -> str:
    """Return the bounded `str` of an exception.

    Big arguments are never formatted whole; a `__str__` that raises is named instead.
    """
    try:
        if type(exc).__str__ is BaseException.__str__ and any(map(is_big, exc.args)):
            if len(exc.args) > 1:
                return f"({', '.join(map(shown, exc.args))})"
            return cut(exc.args[0]) if isinstance(exc.args[0], str) else shown(exc.args[0])
        return cut(str(exc))
    except Exception as error:
        return f"<an exception whose str() raised {type(error).__name__}>"


def type_name(exc: BaseException) -> str:
    """Return the class's name as a traceback prints it: `ValueError`, `package.module.CustomError`."""
    module, name = _names(type(exc))
    return name if module in ("builtins", "__main__", "__mp_main__") else f"{module}.{name}"


def builtin_base(cls: type) -> Any:
    """Return the nearest built-in exception class."""
    return next(each for each in cls.__mro__ if each in BUILTIN)


def line_of(exc: BaseException) -> list[BaseException]:
    """Return the exception and all that a traceback shows before it, the outermost first.

    What comes before an exception is its cause, else its context unless that is suppressed. A cycle ends the line.
    """
    line: list[BaseException] = []
    seen: set[int] = set()
    link: BaseException | None = exc
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        line.append(link)
        cause = cause_of(link)
        link = cause if cause is not None else None if suppresses(link) else context_of(link)
    return line


def root_of(exc: BaseException) -> BaseException:
    """Return the last exception of the chain, `exc` itself where it has no cause.

    A group with one member counts as that member.
    """
    root = line_of(exc)[-1]
    for _ in range(LINKS):
        if not isinstance(root, BaseExceptionGroup) or len(members_of(root)) != 1:
            break
        root = line_of(members_of(root)[0])[-1]
    return root


def describe(exc: BaseException, *, whole: bool = False, json_only: bool = False) -> list[Node]:
    """Describe an exception and its chain, the outermost first, in about REPORT bytes.

    With `whole` the outermost keeps all its fields, whatever their size; with `json_only` no blobs are made.
    """
    nodes = []
    for place, (each, links) in enumerate(_collect(exc)):
        limit = None if whole and not place else BLOB
        nodes.append(_node(each, limit, json_only) | links)
    return _fit(nodes, whole, json_only)


def frame_lines(node: Node) -> Iterator[str]:
    """Yield a node's frames as the lines of a traceback, the outermost first."""
    frames = node.get("frames", ())
    for number, (file, line, function, source) in enumerate(frames):
        if number == len(frames) // 2 and node.get("skipped"):
            yield f"  [{node['skipped']} frames left out]"
        yield f'  File "{file}", line {line}, in {function}'
        if source:
            yield f"    {source}"


def _collect(head: BaseException) -> list[tuple[BaseException, Node]]:
    """Choose the exceptions to keep, the outermost first, each with the fields that say how it is linked."""
    kept: list[BaseException] = []
    jumps: dict[int, tuple[BaseException, int]] = {}
    known: set[int] = set()
    heads = deque([head])
    while heads and len(kept) < NODES:
        line = [each for each in line_of(heads.popleft()) if id(each) not in known]
        if len(line) > LINKS:
            jumps[id(line[LINKS // 2 - 1])] = line[-LINKS // 2], len(line) - LINKS
            line = line[: LINKS // 2] + line[-LINKS // 2 :]
        line = line[: NODES - len(kept)]
        kept += line
        known.update(map(id, line))
        heads.extend(other for each in line for other in _sides(each) if id(other) not in known)
    place = {id(each): number for number, each in enumerate(kept)}
    return [(each, _links(each, place, jumps.get(id(each)))) for each in kept]


def _sides(exc: BaseException) -> list[BaseException]:
    """Return what is linked to an exception beside the next one of its line."""
    context = context_of(exc)
    members = members_of(exc) if isinstance(exc, BaseExceptionGroup) else ()
    return [*members] if context is None else [*members, context]


def _links(exc: BaseException, place: dict[int, int], jump: tuple[BaseException, int] | None) -> Node:
    links: Node = {}
    for name, other in (("cause", cause_of(exc)), ("context", context_of(exc))):
        if other is not None and id(other) in place:
            links[name] = place[id(other)]
    if jump is not None:
        following, links["omitted"] = jump
        if id(following) in place:
            links["cause" if cause_of(exc) is not None else "context"] = place[id(following)]
    if suppresses(exc):
        links["suppress"] = True
    if isinstance(exc, BaseExceptionGroup):
        links["members"] = [place[id(each)] for each in members_of(exc) if id(each) in place]
    return links


def _node(exc: BaseException, limit: int | None, json_only: bool) -> Node:
    """Describe one exception but for its links; `limit` bounds the bytes of its arguments and attributes."""
    cls = type(exc)
    base = builtin_base(cls)
    module, name = _names(cls)
    node: Node = {"module": module, "name": name, "base": BUILTIN[base], "text": text_of(exc)}
    try:
        if known := vars(exc).get("_keepcause_node"):
            node = {key: value for key, value in known.items() if not json_only or key not in ("blob", "whole")}
        else:
            if bases := [".".join(_names(each)) for each in cls.__mro__[1:-1] if each not in BUILTIN]:
                node["bases"] = bases[:LINKS]
            node |= _payload(exc, base, limit, json_only)
        if notes := _notes(exc):
            node["notes"] = notes
    except Exception:
        pass  # a class that won't be looked at: its name, text, frames and links still travel
    frames, skipped = _frames(traceback_of(exc))
    if frames:
        node["frames"] = frames
    if skipped:
        node["skipped"] = skipped
    return node


def _names(cls: type) -> tuple[str, str]:
    module, name = getattr(cls, "__module__", None), getattr(cls, "__qualname__", None)
    return cut(module, 300) if isinstance(module, str) else "?", cut(name, 300) if isinstance(name, str) else "?"


def _notes(exc: BaseException) -> list[str]:
    notes = vars(exc).get("__notes__")
    if not isinstance(notes, list | tuple):
        return []
    if len(notes) > NOTES:
        notes = [*notes[: NOTES // 2], *notes[-NOTES // 2 :]]
    return [cut(note, NOTE) if isinstance(note, str) else shown(note) for note in notes]


def _frames(tb: TracebackType | None) -> tuple[list[tuple[str, int, str, str]], int]:
    """Return the outermost and innermost frames of a traceback, and how many lie between them."""
    first: list[TracebackType] = []
    last: deque[TracebackType] = deque(maxlen=FRAMES // 2)
    count = 0
    while tb is not None:
        (first if count < FRAMES // 2 else last).append(tb)
        count += 1
        tb = tb.tb_next
    # Equal frames of a recursion become one object, which pickle writes once.
    known: dict[tuple[CodeType, int], tuple[str, int, str, str]] = {}
    frames = []
    for each in (*first, *last):
        code, line = each.tb_frame.f_code, each.tb_lineno
        frame = known.get((code, line))
        if frame is None:
            source = _source(code.co_filename, line, each.tb_frame.f_globals)
            frame = known[code, line] = (cut(code.co_filename, 300), line, cut(code.co_qualname, 200), source)
        frames.append(frame)
    return frames, count - len(frames)


def _source(file: str, line: int, names: dict[str, Any]) -> str:
    try:
        return cut(linecache.getline(file, line, names).strip(), 200)
    except Exception:  # the module's loader is anybody's code
        return ""


def _payload(exc: BaseException, base: Any, limit: int | None, json_only: bool) -> Node:
    """Return the node's `args`, `state`, `blob` and `whole`."""
    args, state = _parts(exc, base)
    plain = {name: value for name, value in state.items() if is_plain(value, limit)}
    plain_args = [arg if is_plain(arg, limit) else {"text": shown(arg)} for arg in args]
    payload: Node = {"args": plain_args} if args else {}
    if plain:
        payload["state"] = plain
    if json_only:
        return payload
    own = type(exc).__reduce__ is not base.__reduce__ or type(exc).__reduce_ex__ is not object.__reduce_ex__
    if own and not _has_fields(exc) and (blob := pickled(exc, limit)) is not None:
        return payload | {"blob": blob, "whole": True}
    if len(plain) < len(state) or any(mine is not arg for mine, arg in zip(plain_args, args, strict=True)):
        blob = pickled((args, state), limit)
        if blob is None:
            share = None if limit is None else limit // (len(args) + len(state) + 1)
            some = [portable(arg, share) for arg in args], {name: portable(each, share) for name, each in state.items()}
            blob = pickled(some, limit)
        payload["blob"] = blob
    return payload


def _has_fields(exc: BaseException) -> bool:
    return hasattr(type(exc), "_keepcause_fields")


def _parts(exc: BaseException, base: Any) -> tuple[Sequence[Any], dict[str, Any]]:
    """Return the arguments and attributes that make an exception what it is."""
    if _has_fields(exc):
        return exc.args, exc._keepcause_fields()  # type: ignore[attr-defined]
    reduced = base.__reduce__(exc)
    state = dict(reduced[2]) if len(reduced) > 2 and reduced[2] else {}
    slots = object.__getstate__(exc)
    if isinstance(slots, tuple):
        state |= slots[1]
    state.pop("__notes__", None)
    return reduced[1][:1] if isinstance(exc, BaseExceptionGroup) else reduced[1], state


def _fit(nodes: list[Node], whole: bool, json_only: bool) -> list[Node]:
    """Cut the nodes down until they take at most REPORT bytes; with `whole` the first one keeps its fields."""
    first, rest = (nodes[:1], nodes[1:]) if whole else ([], nodes)
    for frames, characters, arguments in _SQUEEZES:
        if len(json.dumps(rest) if json_only else pickle.dumps(rest)) <= REPORT:
            break
        rest = [_squeezed(node, frames, characters, arguments) for node in rest]
    return first + rest


def _squeezed(node: Node, frames: int, characters: int, arguments: bool) -> Node:
    dropped = {"blob", "whole"} if arguments else {"blob", "whole", "args", "state", "bases"}
    small = {key: value for key, value in node.items() if key not in dropped}
    for key in ("module", "name", "text"):
        small[key] = cut(node[key], characters)
    if "notes" in node:
        small["notes"] = [cut(note, characters) for note in node["notes"]]
    kept = node.get("frames", ())
    if len(kept) > frames:
        small["frames"] = [*kept[: frames // 2], *kept[-frames // 2 :]]
        small["skipped"] = node.get("skipped", 0) + len(kept) - frames
    return small
