"""What a file's bytes say of names and launch sites, before it is parsed; standard library only."""

from __future__ import annotations

import functools
import re
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

from keepcause.lint.evidence import launch
from keepcause.lint.source import NEWLINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_CALL = re.compile(rb"\s*\(")
_CALLED = re.compile(rb"\s*\(|\s+as\b|\s*\.\s*(?:remote|options)\b")
"""What follows a name that is called, renamed by an import, or started as an actor."""
_STARTED = re.compile(rb"\s+as\b|\s*\.\s*(?:remote|options)\b")
_RENAMED = re.compile(rb"\s+as\b")
_DOTTED = b".0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_BOUND = (b"=", b"or", b"else", b"partial(", b")", b"]")
"""What stands before a name that is assigned, handed on by keyword, or bound by partial."""
_HANDED = (b"=", b"or", b"else", b"(", b",", b")", b"]")
"""What stands before a name that is assigned or handed on in any way."""
_LAUNCHED_INSIDE = tuple(
    re.compile(sign)
    for sign in (
        rb"fork\(",
        rb"target\s*=\s*lambda\b",
        rb"initializer\s*=\s*lambda\b",
        rb"worker_init_fn\s*=\s*lambda\b",
    )
)
"""Launches that name what runs by a call."""

Names = tuple[str, ...]
Verb = Literal["mention", "may_call", "may_launch", "may_call_actor"]


class Mentions:
    """A file's bytes, and what may be done in it to what is called by some names."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def mention(self, names: Names) -> bool:
        """Whether it has one of the identifiers `names`."""
        return bool(self._spans(names))

    def may_call(self, names: Names) -> bool:
        """Whether it may call or hand on what is called so."""
        return any(
            _CALLED.match(self.data, end) or self._stands_behind(_BOUND, start) for start, end in self._spans(names)
        )

    def may_launch(self, names: Names) -> bool:
        """Whether it may launch what is called so: start it as an actor, or hand it to what may start it."""
        if not self.lines_that_launch or not (spans := self._spans(names)):
            return False
        return self._launches_inside or any(self._is_handed_on(*span) for span in spans)

    def may_call_actor(self, names: Names) -> bool:
        """Whether it calls a method of an actor by one of `names`."""
        return any(f".{name}.remote".encode() in self.data for name in names)

    def lines_with(self, names: Names) -> list[int] | None:
        """The lines that have one of `names`; None where it gives what is called so another name."""
        spans = self._spans(names)
        return (
            None if any(self._is_renamed(*span) for span in spans) else list(self._lines(start for start, _ in spans))
        )

    @cached_property
    def lines_that_launch(self) -> list[int]:
        """The lines that hold what every launch site does."""
        return list(dict.fromkeys(self._lines(launch.signs(self.data))))

    @cached_property
    def _launches_inside(self) -> bool:
        return any(pattern.search(self.data) for pattern in _LAUNCHED_INSIDE)

    def _spans(self, names: Names) -> list[tuple[int, int]]:
        """Where the identifiers `names` stand."""
        needles = tuple(map(str.encode, names))
        if not any(needle in self.data for needle in needles):
            return []
        return [match.span() for match in _identifiers(needles).finditer(self.data)]

    def _lines(self, offsets: Iterable[int]) -> Iterator[int]:
        """The numbers of the lines at `offsets`, in their order."""
        data = self.data
        only_newlines = b"\r" not in data
        line, seen = 1, 0
        for offset in sorted(offsets):
            line += data.count(b"\n", seen, offset) if only_newlines else len(NEWLINE_BYTES.findall(data, seen, offset))
            seen = offset
            yield line

    def _is_handed_on(self, start: int, end: int) -> bool:
        """Whether the name there is started as an actor, or handed to what may start it."""
        handed = self._stands_behind(_HANDED, start) and not _CALL.match(self.data, end)
        return handed or _STARTED.match(self.data, end) is not None

    def _is_renamed(self, start: int, end: int) -> bool:
        """Whether the name there is not called, but given to another name."""
        bound = self._stands_behind(_BOUND, start) and not _CALL.match(self.data, end)
        return bound or _RENAMED.match(self.data, end) is not None

    def _stands_behind(self, signs: tuple[bytes, ...], start: int) -> bool:
        """Whether one of `signs` stands before the name at `start` and what it is an attribute of."""
        return self.data[max(0, start - 80) : start].rstrip(_DOTTED).rstrip().endswith(signs)


class Question(NamedTuple):
    """Which files may do something, the verb, to what is called by one of `names`.

    Only `path` and those that import or define one of `words` are concerned; with `may_call_actor`, all are.
    """

    verb: Verb
    names: Names
    words: tuple[str, ...]
    path: str

    def is_answered_by(self, file: Mentions) -> bool:
        """Whether the file, which is one of those, does."""
        return _TESTS[self.verb](file, self.names)


_TESTS: dict[Verb, Callable[[Mentions, Names], bool]] = {
    "mention": Mentions.mention,
    "may_call": Mentions.may_call,
    "may_launch": Mentions.may_launch,
    "may_call_actor": Mentions.may_call_actor,
}


@functools.lru_cache(maxsize=256)
def _identifiers(names: tuple[bytes, ...]) -> re.Pattern[bytes]:
    return re.compile(rb"(?:%b)(?!\w)" % b"|".join(map(re.escape, names)))
