"""The command `checkpoint`: what is at a path, as text or JSON; imports the runtime, and report for what it prints."""

from __future__ import annotations

import functools
import itertools
import json
import operator
import re
import sys
from typing import TYPE_CHECKING, Any, Final, TextIO

from keepcause.commands import CLEAN, FOUND, TROUBLE
from keepcause.report.text import counted, printable
from keepcause.runtime.checkpoint import DCPLoadError
from keepcause.runtime.findings import CONFLICTS, ShapeConflict, TypeConflict, rows
from keepcause.runtime.metadata import DAMAGED, WHOLE, Found, inspect, paused_gc

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from keepcause.runtime.metadata import SavedKey

_UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options to its parser."""
    parser.add_argument("path", metavar="DIR", help="the checkpoint's directory")
    parser.add_argument("--against", metavar="OTHER_DIR", help="print what differs, taking the other for the model")
    parser.add_argument("--json", action="store_true", help="print JSON, with the keys' full names")


def run(options: argparse.Namespace) -> int:
    """Print what is at the path; returns 0 where it is whole, 1 where it is damaged or differs, 2 where it is none."""
    found = inspect(options.path)
    other = None if options.against is None else inspect(options.against)
    error = _load_error(found, other) if other is not None and _are_comparable(found, other) else None
    with paused_gc():
        if options.json:
            _write_json(sys.stdout, found, other, error)
        else:
            sys.stdout.writelines(f"{printable(line)}\n" for line in _lines(found, other, error))
    return max(_code(found), CLEAN if other is None else _code(other), CLEAN if error is None else FOUND)


def _code(found: Found) -> int:
    return CLEAN if found.verdict == WHOLE else FOUND if found.verdict in DAMAGED else TROUBLE


def _are_comparable(found: Found, other: Found) -> bool:
    """Tell whether the keys of both are known: else all of one would seem to be missing in the other."""
    return found.has_keys and other.has_keys


def _load_error(found: Found, other: Found) -> DCPLoadError | None:
    """Return the error of loading `found` into a model that has the keys of `other`; None where nothing differs."""
    shapes, dtypes, kinds = [], [], []
    for key in found.keys.keys() & other.keys.keys():
        expected, actual = other.keys[key], found.keys[key]
        if expected.shape is None or actual.shape is None:
            if expected.shape != actual.shape:
                kinds.append(TypeConflict(key, str(expected), str(actual)))
            continue
        if expected.shape != actual.shape:
            shapes.append(ShapeConflict(key, expected.shape, actual.shape))
        if expected.dtype != actual.dtype:
            dtypes.append(TypeConflict(key, str(expected.dtype), str(actual.dtype)))
    missing = other.keys.keys() - found.keys.keys()
    unexpected = found.keys.keys() - other.keys.keys()
    if not (missing or unexpected or shapes or dtypes or kinds):
        return None
    return DCPLoadError(
        None, found.step, found.path, missing, unexpected, shapes, dtype_conflicts=dtypes, kind_conflicts=kinds
    )


def _lines(found: Found, other: Found | None, error: DCPLoadError | None) -> Iterator[str]:
    yield str(found)
    if other is not None:
        compared = _are_comparable(found, other)
        yield f"{'' if compared else 'not '}compared with {other.path}, {other}"
        if compared:
            yield from ["nothing differs"] if error is None else str(error).splitlines()
        return
    if found.keys:
        size = sum(saved.bytes for saved in found.keys.values())
        step = "" if found.step is None else f"step {found.step}, "
        yield f"{step}{counted(len(found.keys), 'key')}, {_shown_size(size)}"
        yield "keys:"
        yield from _tree(found.keys)
    if found.files:
        yield "shard files:"
        for file in found.files:
            size_text = "" if file.size is None else f"{_shown_size(file.size)}, "
            yield f"  {file.name}  {size_text}{counted(file.pieces, 'piece')}, {file.damage or 'whole'}"


def _tree(keys: Mapping[str, SavedKey]) -> Iterator[str]:
    """Yield a line for each module, with the bytes below it, and for each key."""
    order = sorted(keys, key=_natural)
    sizes, counts = _sums(keys, order)
    above: list[str] = []
    last, tail = None, ""
    for key in order:
        *modules, name = key.split(".")
        for depth in range(_common(above, modules), len(modules)):
            below = f"{_shown_size(sizes.pop())} in {counted(counts.pop(), 'key')}"
            yield f"{'  ' * (depth + 1)}{modules[depth]}  ({below})"
        above = modules
        if last is not keys[key]:
            last = keys[key]
            tail = f"{last}  {_shown_size(last.bytes)}"
        yield f"{'  ' * (len(modules) + 1)}{name}  {tail}"


def _sums(keys: Mapping[str, SavedKey], order: list[str]) -> tuple[list[int], list[int]]:
    """Return the bytes and the number of keys below each module, the first module last."""
    sizes: list[int] = []
    counts: list[int] = []
    below: list[str] = []
    open_sizes, open_counts = [0], [0]  # of the whole, and of each module in `below`
    for key in itertools.chain(reversed(order), [None]):
        modules = [] if key is None else key.split(".")[:-1]
        common = _common(below, modules)
        for _ in range(common, len(below)):
            sizes.append(open_sizes.pop())
            counts.append(open_counts.pop())
            open_sizes[-1] += sizes[-1]
            open_counts[-1] += counts[-1]
        opened = [0] * (len(modules) - common)
        open_sizes += opened
        open_counts += opened
        below = modules
        if key is not None:
            open_sizes[-1] += keys[key].bytes
            open_counts[-1] += 1
    return sizes, counts


def _common(one: list[str], other: list[str]) -> int:
    """Return how many modules both begin with."""
    return sum(itertools.takewhile(bool, map(operator.eq, one, other)))


def _natural(key: str) -> str:
    """Return a text that sorts as the key does when numbers in it count as such, and modules stay together."""
    return "\0".join(map(_natural_part, key.split(".")))


@functools.lru_cache(65_536)
def _natural_part(part: str) -> str:
    return re.sub(r"\d+", lambda number: number[0].zfill(12), part)


def _shown_size(size: float) -> str:
    """Return bytes as `1.5 MB`; a kB has 1,000."""
    unit = 0
    while size >= 1000 and unit < len(_UNITS) - 1:
        size /= 1000
        unit += 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{size} B"


def _write_json(stream: TextIO, found: Found, other: Found | None, error: DCPLoadError | None) -> None:
    """Write one object; the keys one by one, since there may be millions."""
    head = {"verdict": found.verdict, "step": found.step, "path": found.path, "message": str(found)}
    stream.write(json.dumps(head)[:-1] + ', "keys": {')
    between, last, plain = "", None, ""
    for key, saved in found.keys.items():
        if saved is not last:
            last, plain = saved, json.dumps(_plain(saved))
        stream.write(f"{between}{json.dumps(key)}: {plain}")
        between = ", "
    tail: dict[str, Any] = {"files": _files(found)}
    if other is not None:
        tail["against"] = {"verdict": other.verdict, "path": other.path, "message": str(other)}
        if _are_comparable(found, other):
            tail["difference"] = None if error is None else _difference(error)
    stream.write("}, " + json.dumps(tail)[1:] + "\n")


def _plain(saved: SavedKey) -> dict[str, Any]:
    return {"shape": None if saved.shape is None else list(saved.shape), "dtype": saved.dtype, "bytes": saved.bytes}


def _files(found: Found) -> list[dict[str, Any]]:
    return [
        {"name": file.name, "bytes": file.size, "needed": file.needed, "pieces": file.pieces, "damage": file.damage}
        for file in found.files
    ]


def _difference(error: DCPLoadError) -> dict[str, Any]:
    conflicts = {name: rows(getattr(error, name)) for name in CONFLICTS}
    return {"missing": error.missing, **conflicts, "unexpected": error.unexpected}
