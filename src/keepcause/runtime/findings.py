"""What ranks found wrong with a checkpoint, as frozen values that become plain data and back; standard library only."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable


def _module(key: str) -> str:
    return key.rpartition(".")[0]


@dataclass(frozen=True, order=True)
class ShapeConflict:
    """A key whose shape differs: `expected` is the model's, `actual` the checkpoint's.

    `module` defaults to the key's parent.
    """

    key: str
    expected: tuple[int, ...]
    actual: tuple[int, ...]
    module: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "expected", tuple(self.expected))
        object.__setattr__(self, "actual", tuple(self.actual))
        object.__setattr__(self, "module", self.module or _module(self.key))

    def __str__(self) -> str:
        return _conflict(self, list(self.expected), list(self.actual))


@dataclass(frozen=True, order=True)
class TypeConflict:
    """A key whose type differs: `expected` is the model's, `actual` the checkpoint's.

    Types are dtypes such as "torch.bfloat16", or kinds: "tensor", "object", or a class's name. `module` defaults to
    the key's parent.
    """

    key: str
    expected: str
    actual: str
    module: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "module", self.module or _module(self.key))

    def __str__(self) -> str:
        return _conflict(self, self.expected, self.actual)


def _conflict(conflict: ShapeConflict | TypeConflict, expected: object, actual: object) -> str:
    text = f"{conflict.key}: expected {expected}, the checkpoint has {actual}"
    return f"{text} (module {conflict.module})" if conflict.module else text


@dataclass(frozen=True)
class Findings:
    """What some ranks, all of them the same, found.

    Attributes:
        ranks: their numbers, ascending.
        missing: keys that the model wants and the checkpoint lacks, sorted.
        shape_conflicts, dtype_conflicts, kind_conflicts: sorted by key.
        files: shard files that these ranks need and that are damaged, each with its damage.
        failure: what was raised on these ranks, as text, or "".
        time: seconds since the epoch when that was, the earliest of these ranks; 0 without a failure.
    """

    ranks: tuple[int, ...] = ()
    missing: tuple[str, ...] = ()
    shape_conflicts: tuple[ShapeConflict, ...] = ()
    dtype_conflicts: tuple[TypeConflict, ...] = ()
    kind_conflicts: tuple[TypeConflict, ...] = ()
    files: tuple[str, ...] = ()
    failure: str = ""
    time: float = 0.0

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in (*LISTS, "failure"))


LISTS: Final = ("missing", "shape_conflicts", "dtype_conflicts", "kind_conflicts", "files")
"""The fields of Findings that name keys or files."""
CONFLICTS: Final[dict[str, type[ShapeConflict] | type[TypeConflict]]] = {
    "shape_conflicts": ShapeConflict,
    "dtype_conflicts": TypeConflict,
    "kind_conflicts": TypeConflict,
}


def to_plain(findings: Findings) -> dict[str, Any]:
    """Return lists, texts and numbers that say the same; what is empty is absent."""
    plain = {each.name: getattr(findings, each.name) for each in fields(findings)}
    for name in CONFLICTS:
        plain[name] = rows(plain[name])
    return {name: list(value) if isinstance(value, tuple) else value for name, value in plain.items() if value}


def from_plain(plain: dict[str, Any]) -> Findings:
    """Return what `to_plain` was given."""
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()}
    for name in CONFLICTS:
        if name in values:
            values[name] = tuple(conflicts(name, values[name]))
    return Findings(**values)  # type: ignore[arg-type]


def rows(found: Iterable[ShapeConflict | TypeConflict]) -> list[list[Any]]:
    """Return conflicts as plain rows."""
    return [
        [
            list(part) if isinstance(part, tuple) else part
            for part in (each.key, each.expected, each.actual, each.module)
        ]
        for each in found
    ]


def conflicts(name: str, plain: Iterable[Any]) -> list[Any]:
    """Return the conflicts of a field by their rows."""
    return [CONFLICTS[name](*row) for row in plain]


def grouped(found: Iterable[Findings]) -> tuple[Findings, ...]:
    """Join equal findings of several ranks; the earliest failure comes first, then the lowest rank."""
    groups: dict[tuple[Any, ...], list[Findings]] = {}
    for each in found:
        groups.setdefault((*(getattr(each, name) for name in LISTS), each.failure), []).append(each)
    joined = [
        Findings(
            ranks=tuple(sorted(rank for each in group for rank in each.ranks)),
            **dict(zip((*LISTS, "failure"), key, strict=True)),
            time=min(each.time for each in group),
        )
        for key, group in groups.items()
    ]
    return tuple(sorted(joined, key=lambda each: (not each.failure, each.time or math.inf, each.ranks)))
