"""One exception as plain data: names, text, arguments, notes, frames, links; imports the standard library, plain."""

from __future__ import annotations

import builtins
import itertools
import linecache
from collections import deque
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .plain import Shown, all_shown, cut, is_a, is_big, is_plain, pickled, shortened, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
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
PARTS: Final = 1_000
"""Arguments kept of one exception, and attributes."""
BLOB: Final = 32_000
"""Bytes that one exception's arguments and attributes may take."""
REPORT: Final = 60_000
"""Bytes that a chain may take: so much is written to a pipe (65,536 bytes on Linux) without waiting for its reader."""

_SQUEEZES: Final = ((FRAMES, 4_000, True), (10, 1_000, True), (4, 300, False), (2, 60, False))
"""Frames, characters a text, and whether arguments stay: what a chain that is too big is cut down to, step by step."""

_PART_NAMES: Final = {"args": "arguments", "state": "attributes"}

S = TypeVar("S", str, bytes)

Node = dict[str, Any]
"""One exception; what is empty is absent.

`module`, `name`: its class. `base`: the nearest built-in class; `bases`: names of the classes before that one.
`text`: its str. `args`, `state`: arguments and attributes; what isn't plain stands there as its text, and is in
`blob`, pickled: place of the argument or name of the attribute -> value. With `whole` the blob is the exception
itself. `fields`: it is one of ours, which can't do without its `state`. `lost`: names of arguments and attributes that
could not be sent whole. `notes`. `frames`: (file, line, function, source). `skipped`: frames left out after the first
half. `cause`, `context`, `members`: places in the list of nodes. `suppress`: the context is not shown. `omitted`: links
left out before the next one.
"""

AS_TEXT: Final = "keepcause.text"
"""Only key of the dict that stands in `args` and `state` for the text of a value that isn't plain."""

SITUATION: Final = frozenset(
    {"notes", "frames", "skipped", "cause", "context", "members", "suppress", "omitted"},
)
"""The fields that tell an exception's place in one chain, not the exception itself."""

BUILTIN: Final[dict[type, str]] = {
    each: name for name, each in vars(builtins).items() if isinstance(each, type) and issubclass(each, BaseException)
}
_BUILTIN_IDS: Final = frozenset(map(id, BUILTIN))

# Read at the C level, so that no class of the user's has a say in it.
cause_of: Final = BaseException.__dict__["__cause__"].__get__
context_of: Final = BaseException.__dict__["__context__"].__get__
suppresses: Final = BaseException.__dict__["__suppress_context__"].__get__
traceback_of: Final = BaseException.__dict__["__traceback__"].__get__
dict_of: Final = BaseException.__dict__["__dict__"].__get__
bases_of: Final = type.__dict__["__mro__"].__get__
members_by_class: Final = type.__dict__["__dict__"].__get__
module_of: Final = type.__dict__["__module__"].__get__
name_of: Final = type.__dict__["__qualname__"].__get__
members_of: Final = BaseExceptionGroup.__dict__["exceptions"].__get__


def text_of(exc: BaseException) -> str:
    """Return the bounded `str` of an exception.

    Big arguments are never formatted whole; a `__str__` that raises is named instead.
    """
    try:
        own = type(exc).__str__
        if own is BaseException.__str__ and len(exc.args) == 1 and is_a(exc.args[0], str):
            return cut(exc.args[0])
        if (own is BaseException.__str__ or own is KeyError.__str__) and is_big(exc.args):
            return shown(exc.args[0]) if len(exc.args) == 1 else all_shown(exc.args)
        return cut(str(exc))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return f"<an exception whose str() raised {type(error).__name__}>"


def type_name(exc: BaseException) -> str:
    """Return the class's name as a traceback prints it: `ValueError`, `package.module.CustomError`."""
    module, name = _names(type(exc))
    return name if module in ("builtins", "__main__", "__mp_main__") else f"{module}.{name}"


def builtin_base(cls: type) -> Any:
    """Return the nearest built-in exception class."""
    for each in bases_of(cls):
        if id(each) in _BUILTIN_IDS:  # a metaclass may say how its classes are compared
            return each
    raise TypeError(f"{name_of(cls)} is not an exception class")


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
        if not issubclass(type(root), BaseExceptionGroup) or len(members_of(root)) != 1:
            break
        root = line_of(members_of(root)[0])[-1]
    return root


def raised_at(exc: BaseException) -> TracebackType | None:
    """Return the innermost entry of an exception's traceback; None where it has no traceback."""
    tb: TracebackType | None = traceback_of(exc)
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    return tb


def describe(exc: BaseException, encode: Callable[[list[Node]], S], *, whole: bool = False, blobs: bool = True) -> S:
    """Encode an exception and its chain, the outermost first, in about REPORT characters or bytes.

    With `whole` the outermost keeps all its fields, whatever their size. Without `blobs` only plain data is made.
    """
    nodes = []
    for place, (each, links) in enumerate(_collect(exc)):
        node = _node(each, None if whole and not place else BLOB, blobs)
        node.update(links)
        nodes.append(node)
    for squeeze in _SQUEEZES:
        encoded = encode(nodes)
        if len(encoded) <= REPORT or (whole and len(encoded) - len(encode(nodes[:1])) <= REPORT):
            return encoded
        nodes = nodes[:whole] + [_squeezed(node, *squeeze) for node in nodes[whole:]]
    return encode(nodes)


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
    place: dict[int, int] = {}
    jumps: dict[int, tuple[BaseException, int]] = {}
    heads = deque([head])
    while heads and len(kept) < NODES:
        line = [each for each in line_of(heads.popleft()) if id(each) not in place]
        if len(line) > LINKS:
            jumps[id(line[LINKS // 2 - 1])] = line[-LINKS // 2], len(line) - LINKS
            line = line[: LINKS // 2] + line[-LINKS // 2 :]
        for each in line[: NODES - len(kept)]:
            place[id(each)] = len(kept)
            kept.append(each)
            if issubclass(type(each), BaseExceptionGroup):
                heads.extend(members_of(each))
            cause, context = cause_of(each), context_of(each)
            if context is not None and context is not cause and (cause is not None or suppresses(each)):
                heads.append(context)
    return [(each, _links(each, place, jumps.get(id(each)))) for each in kept]


def _links(exc: BaseException, place: dict[int, int], jump: tuple[BaseException, int] | None) -> Node:
    links: Node = {}
    cause, context = cause_of(exc), context_of(exc)
    if cause is not None and id(cause) in place:
        links["cause"] = place[id(cause)]
    if context is not None and id(context) in place:
        links["context"] = place[id(context)]
    if jump is not None:
        following, links["omitted"] = jump
        if id(following) in place:
            links["context" if cause is None else "cause"] = place[id(following)]
    if suppresses(exc):
        links["suppress"] = True
    if issubclass(type(exc), BaseExceptionGroup):
        links["members"] = [place[id(each)] for each in members_of(exc) if id(each) in place]
    return links


def _node(exc: BaseException, limit: int | None, blobs: bool) -> Node:
    """Describe one exception but for its links; `limit` bounds the bytes of its arguments and attributes."""
    cls = type(exc)
    base = builtin_base(cls)
    module, name = _names(cls)
    node: Node = {"module": module, "name": name, "base": BUILTIN[base], "text": text_of(exc)}
    try:
        own = dict_of(exc)
        if known := own.get("_keepcause_node"):
            node = {key: value for key, value in known.items() if blobs or key not in ("blob", "whole")}
        else:
            if cls is not base:
                between = itertools.takewhile(lambda each: each is not base, bases_of(cls)[1 : LINKS + 1])
                node["bases"] = [".".join(_names(each)) for each in between]
            node |= _payload(exc, base, limit, blobs)
        if "__notes__" in own:
            node["notes"] = _notes(own["__notes__"])
    except KeyboardInterrupt:
        raise
    except BaseException:
        pass  # a class that won't be looked at: its name, text, frames and links still travel
    frames, skipped = _frames(traceback_of(exc))
    if frames:
        node["frames"] = frames
    if skipped:
        node["skipped"] = skipped
    return node


def _names(cls: type) -> tuple[str, str]:
    module, name = module_of(cls), name_of(cls)
    if type(module) is not str or type(name) is not str:
        module, name = (each if type(each) is str else shown(each) for each in (module, name))
    return (module, name) if len(module) + len(name) <= 600 else (cut(module, 300), cut(name, 300))


def _notes(notes: Any) -> list[str]:
    if not is_a(notes, list | tuple):
        return [shown(notes)]
    if len(notes) > NOTES:
        notes = [*notes[: NOTES // 2], *notes[-NOTES // 2 :]]
    return [cut(note, NOTE) if is_a(note, str) else shown(note) for note in notes]


def _frames(tb: TracebackType | None) -> tuple[list[tuple[str, int, str, str]], int]:
    """Return the outermost and innermost frames of a traceback, and how many lie between them."""
    links = []
    while tb is not None:
        links.append(tb)
        tb = tb.tb_next
    skipped = max(0, len(links) - FRAMES)
    if skipped:
        links = links[: FRAMES // 2] + links[-FRAMES // 2 :]
    # Equal frames of a recursion become one object, which pickle writes once.
    known: dict[tuple[int, int], tuple[str, int, str, str]] = {}
    frames = []
    for each in links:
        frame, line = each.tb_frame, each.tb_lineno
        code = frame.f_code
        key = id(code), line
        if key not in known:
            known[key] = _frame(code, line, frame.f_globals)
        frames.append(known[key])
    return frames, skipped


def _frame(code: CodeType, line: int, names: dict[str, Any]) -> tuple[str, int, str, str]:
    file, function = code.co_filename, code.co_qualname
    try:
        source = linecache.getline(file, line, names).strip()
    except Exception:  # the module's loader is anybody's code
        source = ""
    if len(file) + len(function) + len(source) > 400:
        file, function, source = cut(file, 300), cut(function, 200), cut(source, 200)
    return file, line, function, source


def _payload(exc: BaseException, base: Any, limit: int | None, blobs: bool) -> Node:
    """Return the node's `args`, `state`, `blob`, `whole` and `lost`."""
    args, state, more = _bounded(*_parts(exc, base), limit)
    odd: dict[int | str, Any] = {place: value for place, value in enumerate(args) if not is_plain(value, limit)}
    odd |= {name: value for name, value in state.items() if not is_plain(value, limit)}
    payload: Node = {}
    if odd:
        args = [_plain_form(value, limit) if place in odd else value for place, value in enumerate(args)]
        state = {name: _plain_form(value, limit) if name in odd else value for name, value in state.items()}
    if args:
        payload["args"] = list(args)
    if state:
        payload["state"] = state
    cls = type(exc)
    ours = cls is not base and hasattr(cls, "_keepcause_fields")
    if ours:
        payload["fields"] = True
    if blobs and cls is not base and not ours:
        own = cls.__reduce__ is not base.__reduce__ or cls.__reduce_ex__ is not object.__reduce_ex__
        if own and (blob := pickled(exc, limit)) is not None:
            return payload | {"blob": blob, "whole": True}
    if odd:
        payload |= _odd_parts(odd, limit, blobs)
    return payload | {"lost": payload.get("lost", []) + more} if more else payload


def _bounded(
    args: Sequence[Any], state: dict[str, Any], limit: int | None
) -> tuple[Sequence[Any], dict[str, Any], list[str]]:
    """Return as many arguments and attributes as are kept, and how many are not, in words."""
    if limit is None:
        return args, state, []
    more = {"arguments": len(args) - PARTS, "attributes": len(state) - PARTS}
    words = [f"{count:,} more {what}" for what, count in more.items() if count > 0]
    return args[:PARTS], dict(itertools.islice(state.items(), PARTS)) if len(state) > PARTS else state, words


def _plain_form(value: Any, limit: int | None) -> Any:
    short = shortened(value, lambda each: is_plain(each, limit))
    return {AS_TEXT: short} if isinstance(short, Shown) else short


def _odd_parts(odd: dict[int | str, Any], limit: int | None, blobs: bool) -> Node:
    """Return `blob` and `lost` for the arguments and attributes that aren't plain."""
    if not blobs:
        return {"lost": _part_names(odd)}
    blob = pickled(odd, limit)
    if blob is not None:
        return {"blob": blob}
    share = None if limit is None else limit // (len(odd) + 1)
    short = {key: shortened(value, lambda each: pickled(each, share) is not None) for key, value in odd.items()}
    return {"blob": pickled(short, limit), "lost": _part_names(key for key in odd if short[key] is not odd[key])}


def _part_names(keys: Iterable[int | str]) -> list[str]:
    return [cut(key, 100) if isinstance(key, str) else f"argument {key + 1}" for key in keys][:NODES]


def _parts(exc: BaseException, base: Any) -> tuple[Sequence[Any], dict[str, Any]]:
    """Return the arguments and attributes that make an exception what it is."""
    if type(exc) is not base and (fields := getattr(type(exc), "_keepcause_fields", None)):
        return exc.args, fields(exc)
    reduced = base.__reduce__(exc)
    state = dict(reduced[2]) if len(reduced) > 2 and reduced[2] else {}
    if type(exc) is not base and isinstance(slots := object.__getstate__(exc), tuple):
        state |= slots[1]
    if state:
        state.pop("__notes__", None)
    return reduced[1][:1] if issubclass(type(exc), BaseExceptionGroup) else reduced[1], state


def _squeezed(node: Node, frames: int, characters: int, arguments: bool) -> Node:
    dropped = {"blob", "whole"} if arguments else {"blob", "whole", "args", "state", "bases", "lost"}
    small = {key: value for key, value in node.items() if key not in dropped}
    for key in ("module", "name", "text"):
        small[key] = cut(node[key], characters)
    if "notes" in node:
        small["notes"] = [cut(note, characters) for note in node["notes"]]
    kept = node.get("frames", ())
    if len(kept) > frames:
        small["frames"] = [*kept[: frames // 2], *kept[-frames // 2 :]]
        small["skipped"] = node.get("skipped", 0) + len(kept) - frames
    return small if arguments else small | _few_parts(node, small["text"], characters)


def _few_parts(node: Node, text: str, characters: int) -> Node:
    """Return the arguments and attributes without which one that is squeezed most would not say what it said.

    These are its text in place of big arguments, and the short ones of the fields of one of ours.
    """
    parts: Node = {}
    if args := node.get("args"):
        group = "members" in node and type(args[0]) is str
        parts["args"] = args if is_plain(args, characters) else [cut(args[0], characters) if group else {AS_TEXT: text}]
    if state := node.get("state"):
        short = {name: cut(value, characters) if type(value) is str else value for name, value in state.items()}
        kept = {name: value for name, value in short.items() if is_plain(value, characters * 2)}
        parts["state"] = kept if "fields" in node else {}
    lost = [what for name, what in _PART_NAMES.items() if name in parts and parts[name] != node[name]]
    return parts | {"lost": lost} if lost else parts
