"""A pickle's instructions, carried out on plain data: nothing is looked up or run; standard library only."""

from __future__ import annotations

import re
import sys
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE: Final = 1 << 30
"""Bytes that a pickle may have; a checkpoint of a million keys needs about 300 MB."""
ITEMS: Final = 100_000_000
"""Items that all containers together may hold; a checkpoint needs about 25 a key."""
WAITING: Final = 100_000
"""Values that may wait to be put into a container; pickle writes at most 1,000 pairs at a time."""
NESTING: Final = 100
"""Containers that may be open inside each other; a checkpoint needs fewer than 10."""

METADATA: Final = "torch.distributed.checkpoint.metadata"
PLACE: Final = "torch.distributed.checkpoint.filesystem._StorageInfo"
RECORDS: Final = frozenset(
    {f"{METADATA}.{name}" for name in ("Metadata", "TensorStorageMetadata", "BytesStorageMetadata", "StorageMeta")}
    | {f"{METADATA}.{name}" for name in ("ChunkStorageMetadata", "TensorProperties", "MetadataIndex")}
    | {f"{METADATA}._MEM_FORMAT_ENCODING", PLACE}
    | {"torch.Size", "torch.serialization._get_layout"}
    | {f"{module}.{kind}Path" for module in ("pathlib", "pathlib._local") for kind in ("Posix", "PurePosix", "Windows")}
)
"""What the metadata that torch 2.0 to 2.13 writes may make objects of."""
TUPLED: Final = f"{METADATA}.TensorProperties"
"""The one of them whose state is a tuple."""
DTYPE: Final = re.compile(r"torch\.(?:bool|bits\w+|(?:q?u?int|complex|b?float)\d+\w*)")
"""What else it may name."""


class InertError(ValueError):
    """A pickle can't be read as inert records.

    Attributes:
        reason: "truncated"; "foreign", it isn't the pickle of a checkpoint's metadata; "refused", it names what
            checkpoints do not, or does what they do not; "limit", it goes beyond a limit.
        name: the full name that was refused, or "".
    """

    def __init__(self, reason: str, text: str, name: str = "") -> None:
        super().__init__(text)
        self.reason, self.name = reason, name


class Record:
    """An object of the pickle: the full name of its class, what it was called with, and its state by name."""

    __slots__ = ("args", "kind", "names", "values")

    def __init__(
        self, kind: str, args: tuple[Any, ...], names: tuple[str, ...] = (), values: tuple[Any, ...] = ()
    ) -> None:
        self.kind, self.args, self.names, self.values = kind, args, names, values

    def get(self, name: str) -> Any:
        """Return what the state holds under this name, None if it doesn't."""
        return self.values[self.names.index(name)] if name in self.names else None


class Name(str):
    """The full name of a class or a dtype."""

    __slots__ = ()


NEVER: Final = object()
"""Stands in the memo for what pickle writes once and never fetches."""
_BYTE, _SHORT, _INT32, _UINT32, _INT64, _DOUBLE = (Struct(code) for code in ("<B", "<H", "<i", "<I", "<Q", ">d"))


class Machine:
    """Carries out a pickle's instructions on plain data."""

    def __init__(self, data: bytes, items: int) -> None:
        self.data, self.left = data, items
        self.at = 0
        self.stack: list[Any] = []
        self.memo: list[Any] = []
        self.marks: list[int] = []
        self.layouts: dict[tuple[str, ...], tuple[str, ...]] = {}

    def run(self) -> Any:
        """Return what the pickle holds."""
        try:
            self._run(0, sys.maxsize)
            return self.stack[-1]
        except IndexError as error:
            if self.at + 2 > len(self.data):
                self._truncated()
            raise InertError("refused", f"at byte {self.at} it takes a value that isn't there") from error
        except UnicodeDecodeError as error:
            raise InertError("refused", f"at byte {self.at} it holds a text that is none") from error

    def _run(self, at: int, stop: int) -> None:
        """Carry out the instructions from one place on, until another or the end of the pickle."""
        # The instructions that make up nine tenths of a checkpoint are carried out here, without a call.
        data, stack, memo, rare = self.data, self.stack, self.memo, _RARE
        while at < stop:
            self.at = at
            code = data[at]
            at += 1
            if code == 0x68 or code == 0x6A:  # fetch
                if code == 0x68:
                    value = memo[data[at]]
                    at += 1
                else:
                    value = memo[_UINT32.unpack(self._bytes(at, 4))[0]]
                    at += 4
                if value is NEVER:
                    self._refuse("fetches what is written only once")
                stack.append(value)
                if value.__class__ is Name:
                    at = self._after_name(value, at)
            elif code == 0x94:  # memoize
                memo.append(stack[-1])
            elif code == 0x8C:  # a short text
                end = at + 1 + data[at]
                if end > len(data):
                    self._truncated()
                if len(stack) > WAITING:
                    self._too_much()
                stack.append(data[at + 1 : end].decode("utf-8", "surrogatepass"))
                at = end
            elif code == 0x2E:  # the end
                if len(stack) != 1:
                    self._refuse("leaves values over")
                return
            elif code in rare:
                if len(stack) > WAITING:
                    self._too_much()
                at = rare[code](self, at)
            else:
                self._refuse(f"uses the instruction {bytes((code,))!r}")

    def _after_name(self, name: Name, at: int) -> int:
        """Go on after the name of a class was put on the stack; returns where the next instruction is."""
        return at

    def _pairs_from(self, at: int) -> int:
        """Go on where pairs of a dict may begin; returns where the next instruction is."""
        return at

    def _bytes(self, at: int, size: int) -> bytes:
        part = self.data[at : at + size]
        if len(part) < size:
            self._truncated()
        return part

    def _truncated(self) -> NoReturn:
        raise InertError("truncated", f"it ends after {len(self.data):,} bytes, in the middle of an instruction")

    def _refuse(self, what: str, name: str = "") -> NoReturn:
        raise InertError("refused", f"at byte {self.at} it {what}, which no checkpoint's metadata does", name)

    def _items(self) -> list[Any]:
        """Take the values since the last mark."""
        start = self.marks.pop()
        found = self.stack[start:]
        del self.stack[start:]
        self._count(len(found))
        return found

    def _too_much(self) -> NoReturn:
        raise InertError("limit", f"at byte {self.at} it nests deeper, or leaves more open, than is read")

    def _count(self, items: int) -> None:
        self.left -= items
        if self.left < 0:
            raise InertError("limit", "its containers hold more items than are read")

    def _fetch(self, get: bytes) -> Any:
        value = self.memo[int.from_bytes(get[1:], "little")]
        if value is NEVER:
            self._refuse("fetches what is written only once")
        return value

    def _layout(self, names: tuple[Any, ...]) -> tuple[str, ...]:
        if not all(type(name) is str for name in names):
            self._refuse("gives names to a state that are no texts")
        return self.layouts.setdefault(names, names)

    def _mark(self, at: int) -> int:
        if len(self.marks) >= NESTING:
            self._too_much()
        self.marks.append(len(self.stack))
        return at

    def _record(self, name: Any, args: Any) -> None:
        if type(name) is not Name or name not in RECORDS or type(args) is not tuple:
            self._refuse("calls something")
        self._count(1)
        self.stack.append(Record(name, args))

    def _name(self, module: Any, name: Any) -> Name:
        full = f"{module}.{name}"
        if type(module) is not str or type(name) is not str or not (full in RECORDS or DTYPE.fullmatch(full)):
            self._refuse(f"names {full[:200]!r:.200}", full[:200])
        return Name(full)

    # The rare instructions: each is given where its argument begins, and returns where the next one does.

    def _stack_global(self, at: int) -> int:
        name = self.stack.pop()
        self.stack.append(self._name(self.stack.pop(), name))
        return at

    def _global(self, at: int) -> int:
        end = self.data.find(b"\n", self.data.find(b"\n", at) + 1)
        if end < 0:
            self._truncated()
        module, _, name = self.data[at:end].decode().partition("\n")
        self.stack.append(self._name(module, name))
        return end + 1

    def _new_object(self, at: int) -> int:
        args = self.stack.pop()
        self._record(self.stack.pop(), args)
        return at

    def _call(self, at: int) -> int:
        args = self.stack.pop()
        if self.stack[-1:] == ["torch.Size"] and type(self.stack[-1]) is Name:
            sizes: Any = args[0] if type(args) is tuple and len(args) == 1 else None
            if type(sizes) not in (tuple, list) or not all(type(each) is int for each in sizes):
                self._refuse("makes a size of what are no numbers")
            self.stack[-1] = tuple(sizes)
            return at
        self._record(self.stack.pop(), args)
        return at

    def _build(self, at: int) -> int:
        state: Any = self.stack.pop()
        record = self.stack[-1]
        if type(record) is Record and type(state) is dict:
            record.names, record.values = self._layout(tuple(state)), tuple(state.values())
        elif type(record) is Record and type(state) is tuple and record.kind == TUPLED:
            record.values = state
        else:
            self._refuse("gives a state to what has none")
        return at

    def _set_items(self, at: int) -> int:
        items = self._items()
        return self._update(items, at)

    def _set_item(self, at: int) -> int:
        value = self.stack.pop()
        self._count(2)
        return self._update([self.stack.pop(), value], at)

    def _update(self, items: list[Any], at: int) -> int:
        keys = items[::2]
        # Anything else may be nested so deeply that its hash alone would end the process.
        if type(self.stack[-1]) is not dict or len(items) % 2 or not {*map(type, keys)} <= {str, int, Record}:
            self._refuse("fills a dict in another way")
        self.stack[-1].update(zip(keys, items[1::2], strict=True))
        return at

    def _append(self, at: int) -> int:
        value = self.stack.pop()
        self._count(1)
        return self._extend([value], at)

    def _appends(self, at: int) -> int:
        return self._extend(self._items(), at)

    def _extend(self, items: list[Any], at: int) -> int:
        if type(self.stack[-1]) is not list:
            self._refuse("fills a list that is none")
        self.stack[-1].extend(items)
        return at

    def _tuple(self, at: int) -> int:
        self.stack.append(tuple(self._items()))
        return at

    def _put(self, at: int) -> int:
        return self._memoize(self.data[at], at + 1)

    def _long_put(self, at: int) -> int:
        return self._memoize(_UINT32.unpack(self._bytes(at, 4))[0], at + 4)

    def _memoize(self, place: int, at: int) -> int:
        if place != len(self.memo):
            self._refuse("numbers its values out of order")
        self.memo.append(self.stack[-1])
        return at

    def _long_text(self, at: int) -> int:
        return self._text(_UINT32.unpack(self._bytes(at, 4))[0], at + 4)

    def _text(self, size: int, at: int) -> int:
        self.stack.append(self._bytes(at, size).decode("utf-8", "surrogatepass"))
        return at + size

    def _long(self, at: int) -> int:
        size = self.data[at]
        if size > 16:
            self._refuse("holds a number of more than 16 bytes")
        self.stack.append(int.from_bytes(self._bytes(at + 1, size), "little", signed=True))
        return at + 1 + size


def _constant(make: Callable[[], Any]) -> Callable[[Machine, int], int]:
    def push(machine: Machine, at: int) -> int:
        machine.stack.append(make())
        return at

    return push


def _number(form: Struct) -> Callable[[Machine, int], int]:
    def push(machine: Machine, at: int) -> int:
        machine.stack.append(form.unpack(machine._bytes(at, form.size))[0])
        return at + form.size

    return push


def _short_tuple(size: int) -> Callable[[Machine, int], int]:
    def push(machine: Machine, at: int) -> int:
        if len(machine.stack) < size:
            raise IndexError("too few values for a tuple")
        machine._count(size)
        machine.stack[-size:] = [tuple(machine.stack[-size:])]
        return at

    return push


_RARE: Final[dict[int, Callable[[Machine, int], int]]] = {
    ord("}"): _constant(dict),
    ord("]"): _constant(list),
    ord(")"): _constant(tuple),
    ord("N"): _constant(lambda: None),
    0x88: _constant(lambda: True),
    0x89: _constant(lambda: False),
    ord("K"): _number(_BYTE),
    ord("M"): _number(_SHORT),
    ord("J"): _number(_INT32),
    ord("G"): _number(_DOUBLE),
    0x8A: Machine._long,
    ord("X"): Machine._long_text,
    0x85: _short_tuple(1),
    0x86: _short_tuple(2),
    0x87: _short_tuple(3),
    ord("("): lambda machine, at: machine._pairs_from(machine._mark(at)),
    ord("t"): Machine._tuple,
    ord("a"): Machine._append,
    ord("e"): Machine._appends,
    ord("s"): Machine._set_item,
    ord("u"): Machine._set_items,
    ord("q"): Machine._put,
    ord("r"): Machine._long_put,
    ord("c"): Machine._global,
    0x93: Machine._stack_global,
    0x81: Machine._new_object,
    ord("R"): Machine._call,
    ord("b"): Machine._build,
    0x80: lambda machine, at: at + 1,  # protocol
    0x95: lambda machine, at: at + 8,  # length of a frame
}
