"""A checkpoint's metadata as inert records, read quickly; imports machine."""

from __future__ import annotations

import re
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from .machine import ITEMS, METADATA, NEVER, PLACE, RECORDS, SIZE, TUPLED, WAITING, InertError, Machine, Name, Record

if TYPE_CHECKING:
    from collections.abc import Callable

_NEW: Final = b")\x81\x94}\x94("
"""How an object begins whose state is a dict: no arguments, new, memoize, an empty dict, memoize, mark."""
_OLD: Final = b")\x81\x94("
"""How an object begins whose state is a tuple: no arguments, new, memoize, mark."""
_GET: Final = rb"(?:h.|j....)"
_SIZE: Final = rb"(?:K.|M..|J....){1,3}+[\x85-\x87]\x94\x85\x94R\x94"
"""How a call of torch.Size goes on: one to three ints, a tuple of them, memoize, a tuple of that, memoize, call."""
_NUMBER: Final = rb"K.|M..|J....|\x8a\x05.{5}|\x8a\x06.{6}"
_TEXT: Final = rb"\x8c[\x01-\x7f][ -~]++\x94"
_SHAPE: Final = re.compile(_SIZE, re.DOTALL)
_INT: Final = re.compile(rb"K(.)|M(..)|J(....)", re.DOTALL)
_PAIR: Final = re.compile(rb"(%b)(?:(%b)(%b)?|(%b)|(%b))" % (_GET, _GET, _SIZE, _NUMBER, _TEXT), re.DOTALL)
"""A name and its value: something fetched, a torch.Size, a number, a text."""
_FLAT: Final = re.compile(rb"((?:%b(?:%b(?:%b)?|%b|%b)){1,5}+)ub" % (_GET, _GET, _SIZE, _NUMBER, _TEXT), re.DOTALL)
"""A state of such pairs only, to its end: set items, build."""
_FIELDS: Final = re.compile(rb"((?:%b|[\x88\x89]){1,5}+)t\x94b" % _GET, re.DOTALL)
"""A state that is a tuple of what is fetched and of booleans: tuple, memoize, build."""
_CHUNK: Final = rb"%b%b(?:%b%b%b){2}ub" % (_GET, re.escape(_NEW), _GET, _GET, _SIZE)
_TENSOR: Final = re.compile(
    rb"%b%b%b%b(?:%b|[\x88\x89]){1,5}+t\x94b%b%b%b%b\]\x94(?:%ba|\((?:%b){2,64}+e)ub"
    % (re.escape(_NEW), _GET, _GET, re.escape(_OLD), _GET, _GET, _GET, _SIZE, _GET, _CHUNK, _CHUNK),
    re.DOTALL,
)
"""A whole tensor: its properties, its size, its chunks. Tensors of the same dtype, size and sharding are the same."""
_KEY: Final = re.compile(rb"\x8c([\x01-\x7f])([ -~]++)\x94(%b)(?=%b)" % (_GET, re.escape(_NEW)), re.DOTALL)
"""A key and the name of what is saved under it."""
_PATH: Final = re.compile(rb"(?:j....j....\x85\x94){1,1000}+", re.DOTALL)
_PATHS: Final = Struct("<xIxI2x")
"""A key and its path, which is the key alone."""
_STORED: Final = re.compile(
    rb"(%b%b%b)(%b)((?:%b(?:%b(?:%b)?|%b|%b)){1,4}+ub%b%b%b%b%b)(%b)(%b)(%b)ub"
    % (
        *(_GET, re.escape(_NEW), _GET, _GET),
        *(_GET, _GET, _SIZE, _NUMBER, _TEXT),
        *(_GET, re.escape(_NEW), _GET, _GET, _GET),
        *(rb"(?:%b)" % _NUMBER, _GET, rb"(?:%b)" % _NUMBER),
    ),
    re.DOTALL,
)
"""An index and where it is stored; in most, only the key, the offset and the length are others than in the last."""
_MOST: Final = 10_000
"""Sequences of instructions of which it is kept what they did."""
_TENSORS: Final = f"{METADATA}.TensorStorageMetadata"
_SHARED: Final = frozenset({f"{METADATA}.ChunkStorageMetadata", TUPLED})
"""What many keys have the same of, so that one record stands for all."""


def load(data: bytes, *, size: int = SIZE, items: int = ITEMS) -> Any:
    """Read a pickle and return its records, dicts, lists, tuples and scalars; a torch.Size becomes a tuple of ints.

    Args:
        data: the pickle, of protocol 2 or later.
        size: bytes that it may have.
        items: items that its containers may hold altogether.

    Raises:
        InertError: it can't be read so.
    """
    if len(data) > size:
        raise InertError("limit", f"it has {len(data):,} bytes, more than the {size:,} that are read")
    if data[:1] != b"\x80":
        reason = "foreign" if data else "truncated"
        raise InertError(reason, f"it begins with {data[:20]!r}, not as a pickle does" if data else "it is empty")
    return _Quick(data, items).run()


class _Quick(Machine):
    """Carries out as one what nearly always follows the name of a class, a few sequences of instructions.

    Whatever differs from them is left to be done step by step.
    """

    def __init__(self, data: bytes, items: int) -> None:
        super().__init__(data, items)
        self.stepping = False
        self.tensors: dict[bytes, tuple[Record, list[Any], int]] = {}
        self.names: dict[tuple[bytes, ...], tuple[str, ...]] = {}
        self.shapes: dict[bytes, tuple[int, ...]] = {}
        self.stored: dict[tuple[bytes, ...], tuple[Record, Record, list[Any], list[Any], int]] = {}
        self.records: dict[tuple[Name, bytes], tuple[Record, list[Any]]] = {}

    def _after_name(self, name: Name, at: int) -> int:
        data = self.data
        if name == _TENSORS and (tensor := _TENSOR.match(data, at)):
            return self._pairs_from(self._tensor_of(tensor))
        if data.startswith(_NEW, at):
            state = _FLAT.match(data, at + len(_NEW))
            end = None if state is None else self._known(name, state, self._pairs)
            if end is None:
                return self._new(name, at)
            return self._pairs_from(end) if name == PLACE else end
        if name == TUPLED and data.startswith(_OLD, at) and (state := _FIELDS.match(data, at + len(_OLD))):
            return self._known(name, state, self._fields) or at
        if name == "torch.Size" and (call := _SHAPE.match(data, at)) and (shape := self._shape(call[0])) is not None:
            self.stack[-1] = shape
            self.memo += (shape, NEVER, shape)
            return call.end()
        return at

    def _pairs_from(self, at: int) -> int:
        """Carry out pairs of a dict, as long as they are of one of the kinds that checkpoints have many of."""
        data, stack = self.data, self.stack
        while len(stack) <= WAITING and not self.stepping:
            if stored := _STORED.match(data, at):
                at = self._stored(stored)
            elif (key := _KEY.match(data, at)) and len(key[2]) == key[1][0]:
                tensor = _TENSOR.match(data, key.end())
                name = self._fetch(key[3])
                if tensor is None or name != _TENSORS:
                    break
                text = key[2].decode()
                self.memo.append(text)
                stack += (text, name)
                at = self._tensor_of(tensor)
            elif paths := _PATH.match(data, at):
                at = self._paths(paths)
            else:
                break
        return at

    def _paths(self, paths: re.Match[bytes]) -> int:
        memo = self.memo
        for key, part in _PATHS.iter_unpack(paths[0]):
            if memo[key] is NEVER or memo[part] is NEVER:
                self._refuse("fetches what is written only once")
            path = (memo[part],)
            memo.append(path)
            self.stack += (memo[key], path)
        self._count((paths.end() - paths.start()) // _PATHS.size)
        return paths.end()

    def _stored(self, stored: re.Match[bytes]) -> int:
        """Carry out such instructions the first time, and afterwards repeat what they did with the new values."""
        head, fqn, middle, offset, name, length = stored.groups()
        known = self.stored.get((head, middle, name))
        if known is None:
            memoized, left = len(self.memo), self.left
            self._step(stored)
            index, place = self.stack[-2:]
            kept = self.memo[memoized:]
            if type(index) is type(place) is Record and len(self.stored) < _MOST:
                second = next(number for number, each in enumerate(kept) if each is place)
                known = index, place, kept[1:second], kept[second + 1 :], left - self.left
                self.stored[head, middle, name] = known
            return stored.end()
        first, last, between, behind, items = known
        self._count(items)
        index = Record(first.kind, (), first.names, (self._fetch(fqn), *first.values[1:]))
        place = Record(last.kind, (), last.names, (last.values[0], _number(offset), _number(length)))
        self.memo += (index, *between, place, *behind)
        self.stack += (index, place)
        return stored.end()

    def _tensor_of(self, tensor: re.Match[bytes]) -> int:
        """Carry out a tensor's instructions the first time that they come, and afterwards repeat what they did."""
        known = self.tensors.get(tensor[0])
        if known is None:
            memoized, left = len(self.memo), self.left
            self._step(tensor)
            if len(self.tensors) < _MOST:
                self.tensors[tensor[0]] = self.stack[-1], self.memo[memoized:], left - self.left
        else:
            record, memoized_then, items = known
            self._count(items)
            self.stack[-1] = record
            self.memo += memoized_then
        return tensor.end()

    def _step(self, instructions: re.Match[bytes]) -> None:
        """Carry out these instructions, and none behind them."""
        self.stepping = True
        self._run(instructions.start(), instructions.end())
        self.stepping = False

    def _known(
        self, name: Name, state: re.Match[bytes], read: Callable[[Record, bytes], list[Any] | None]
    ) -> int | None:
        """Put a record with this state on the stack, and what it memoizes into the memo; None if it is an odd one."""
        key = (name, state[0]) if name in _SHARED else None
        known = self.records.get(key) if key else None
        if known is None:
            if name not in RECORDS:
                return None
            record = Record(name, ())
            kept = read(record, state[1])
            if kept is None:
                return None
            known = record, [record, NEVER, *kept]
            if key and len(self.records) < _MOST:
                self.records[key] = known
        self._count(1 + len(known[0].values))
        self.stack[-1] = known[0]
        self.memo += known[1]
        return state.end()

    def _pairs(self, record: Record, raw: bytes) -> list[Any] | None:
        pairs = _PAIR.findall(raw)
        gets = tuple([pair[0] for pair in pairs])
        names = self.names.get(gets)
        if names is None:
            names = self.names[gets] = self._layout(tuple(map(self._fetch, gets)))
        values: list[Any] = []
        kept: list[Any] = []
        found: Any
        for _, value, size, number, text in pairs:
            if number:
                found = _number(number)
            elif not value:
                if len(text) != text[1] + 3:
                    return None
                found = text[2:-1].decode()
                kept.append(found)
            elif size:
                found = self._shape(size)
                if found is None or self._fetch(value) != "torch.Size":
                    return None
                kept += (found, NEVER, found)
            else:
                found = self._fetch(value)
            values.append(found)
        record.names, record.values = names, tuple(values)
        return kept

    def _fields(self, record: Record, raw: bytes) -> list[Any]:
        values: list[Any] = []
        at = 0
        while at < len(raw):
            width = {0x68: 2, 0x6A: 5}.get(raw[at], 1)
            values.append(raw[at] == 0x88 if width == 1 else self._fetch(raw[at : at + width]))
            at += width
        record.values = tuple(values)
        return []

    def _shape(self, raw: bytes) -> tuple[int, ...] | None:
        """Return the size that this call of torch.Size makes; None where its tuple takes fewer numbers."""
        shape = self.shapes.get(raw)
        if shape is None:
            numbers = _INT.findall(raw[:-6])
            shape = tuple(int.from_bytes(a or b or c, "little", signed=bool(c)) for a, b, c in numbers)
            if len(shape) != raw[-6] - 0x84:
                return None
            self.shapes[raw] = shape
        return shape

    def _new(self, name: Name, at: int) -> int:
        self._record(self.stack.pop(), ())
        self.memo += (self.stack[-1], NEVER)
        self.stack.append({})
        return self._mark(at + len(_NEW))


def _number(raw: bytes) -> int:
    return int.from_bytes(raw[1 + (raw[0] == 0x8A) :], "little", signed=raw[0] in b"J\x8a")
