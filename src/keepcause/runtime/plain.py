"""Any value as bounded text, as JSON-able data or as a bounded pickle; imports the standard library only."""

from __future__ import annotations

import io
import operator
import pickle
import reprlib
import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

TEXT: Final = 4_000
"""Characters kept of a text."""
ITEMS: Final = 20_000
"""Items kept, at most, of a list or tuple that is too big."""
DEPTH: Final = 8
"""Levels of lists and dicts that still count as plain data."""

_SCALARS: Final = frozenset({type(None), bool, int, float, str})


class Shown(str):
    """The text of a value that can't travel; its repr is the text itself, so that messages look as they did."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class _Bounded(reprlib.Repr):
    """A repr that looks at no more of a big value than it shows."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = self.maxdeque = (
            self.maxarray
        ) = 20
        self.maxstring = self.maxother = 1_000

    def repr_bytes(self, value: bytes, level: int) -> str:
        return repr(value) if len(value) <= 200 else f"{value[:200]!r}..."

    def repr_bytearray(self, value: bytearray, level: int) -> str:
        return f"bytearray({self.repr_bytes(bytes(value[:201]), level)})"


_bounded: Final = _Bounded()


def cut(text: str, limit: int = TEXT) -> str:
    """Shorten a text to about `limit` characters, keeping its start and its end, and say how much is gone."""
    if type(text) is not str:
        text = str.__str__(text)
    if len(text) <= limit:
        return text
    tail = limit // 4
    return f"{text[: limit - tail]} ... [{len(text) - limit} characters left out] ... {text[-tail:]}"


def is_a(value: Any, kinds: Any) -> bool:
    """Tell whether a value is of these types without asking it: a proxy may answer for another, or raise."""
    return issubclass(type(value), kinds)


def shown(value: object) -> str:
    """Return a bounded repr; one that raises is named instead."""
    try:
        return cut(_bounded.repr(value))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"


def all_shown(values: Sequence[object]) -> str:
    """Return the bounded repr of a tuple's values, as many of them as are shown of a tuple."""
    more = ", ..." if len(values) > _bounded.maxtuple else ""
    return cut(f"({', '.join(map(shown, values[: _bounded.maxtuple]))}{more})")


def is_big(value: object) -> bool:
    """Tell whether the value's text would have more than TEXT characters; looks no further than that."""
    left = TEXT
    todo: list[Any] = [value]
    while todo and left >= 0:
        each = todo.pop()
        if is_a(each, str | bytes | bytearray):
            left -= len(each)
        elif is_a(each, list | tuple | set | frozenset | dict):
            left -= 1 + len(each)
            if left >= 0:
                todo += each
                todo += each.values() if is_a(each, dict) else ()
    return left < 0


def is_plain(value: object, limit: int | None) -> bool:
    """Tell whether a value is the same after a round trip through JSON, in at most about `limit` characters.

    Plain are None, bool, int, float, str, and lists and dicts with text keys of these: exactly these types, no
    subclasses.
    """
    kind = type(value)
    if kind is str:
        return limit is None or len(value) <= limit  # type: ignore[arg-type]
    if kind is type(None) or kind is bool or kind is float:
        return True
    size = _plain_size(value, sys.maxsize if limit is None else limit, 0)
    return size is not None and (limit is None or size <= limit)


def _plain_size(value: Any, limit: int, depth: int) -> int | None:
    """Return about how many characters a value takes in JSON, None if it isn't plain; stops counting above `limit`."""
    kind = type(value)
    if kind is str:
        return len(value) + 4
    if kind is int:
        return 20 if value.bit_length() <= 64 else None
    if kind in _SCALARS:
        return 8
    if depth == DEPTH or kind not in (list, dict):
        return None
    total = 4
    for part in value if kind is list else (part for item in value.items() for part in item):
        size = _plain_size(part, limit, depth + 1)
        if size is None:
            return None
        total += size
        if total > limit:
            break
    return total if kind is list or all(type(key) is str for key in value) else None


def as_plain(value: Any, depth: int = 0) -> Any:
    """Return plain data that says the same: tuples become lists, keys and anything unknown become their text."""
    kind = type(value)
    if kind in _SCALARS and is_plain(value, None):
        return value
    if depth < DEPTH and is_a(value, list | tuple):
        return [as_plain(each, depth + 1) for each in value]
    if depth < DEPTH and is_a(value, dict):
        return {key if type(key) is str else shown(key): as_plain(each, depth + 1) for key, each in value.items()}
    if is_a(value, str):
        return str.__str__(value)
    number = _number(value)
    return shown(value) if number is None else number


def _number(value: Any) -> int | float | None:
    """Return what a number of another library is, None for anything else."""
    try:
        number = float(value) if is_a(value, float) else operator.index(value)
    except Exception:
        return None
    return number if is_plain(number, None) else None


def counted(number: int, noun: str) -> str:
    """Return `1 key` or `2 keys`."""
    return f"{number} {noun}{'s' * (number != 1)}"


def ranks_text(ranks: Iterable[int | None]) -> str:
    """Return `rank 3`, or `ranks 0-3, 7 (5)` with their number; None is an unknown rank."""
    known = sorted({rank for rank in ranks if rank is not None})
    if not known:
        return "unknown rank"
    if len(known) == 1:
        return f"rank {known[0]}"
    runs: list[list[int]] = []
    for rank in known:
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    return f"ranks {', '.join(str(a) if a == b else f'{a}-{b}' for a, b in runs)} ({len(known)})"


class _FullError(Exception):
    """A pickle went over its limit."""


class _Sink(io.RawIOBase):
    """Collects a pickle and stops it at its limit, before the rest is made."""

    def __init__(self, limit: int | None) -> None:
        self.parts: list[bytes] = []
        self.left = sys.maxsize if limit is None else limit

    def write(self, part: Any) -> int:
        self.left -= len(part)
        if self.left < 0:
            raise _FullError
        self.parts.append(bytes(part))
        return len(part)


class _Pickler(pickle.Pickler):
    """Refuses a text or bytes over the limit, before it is copied."""

    def __init__(self, sink: _Sink) -> None:
        super().__init__(sink, 4)
        self._sink = sink

    def persistent_id(self, value: Any) -> None:
        """Return None, which means that the value is pickled as usual; called for every object."""
        if is_a(value, str | bytes | bytearray) and len(value) > self._sink.left:
            raise _FullError


def pickled(value: object, limit: int | None) -> bytes | None:
    """Pickle a value; None where that raises or takes more than `limit` bytes."""
    sink = _Sink(limit)
    try:
        _Pickler(sink).dump(value)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return None
    return b"".join(sink.parts)


def shortened(value: Any, fits: Callable[[Any], bool]) -> Any:
    """Return the value if it fits, else as many items of a list or tuple as fit, else its text."""
    if fits(value):
        return value
    if is_a(value, list | tuple):
        count = min(len(value) // 2, ITEMS)
        while count and not fits(value[:count]):
            count //= 2
        if count:
            return value[:count]
    return cut(value) if is_a(value, str) else Shown(shown(value))


class Unpickler(pickle.Unpickler):
    """Finds names only in modules that are already imported, so that reading a pickle imports nothing."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the named object; raises UnpicklingError where its module isn't imported here."""
        if module not in sys.modules:
            raise pickle.UnpicklingError(f"no module named {module} is imported here")
        return super().find_class(module, name)
