"""What kept a checkpoint from loading, as one error with every key; imports chain and plain."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .chain import Carried
from .plain import cut, ranks_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SECTION: Final = 2_000
"""Characters that one kind of finding may take in an error's text; the fields hold everything."""


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
        if not self.module:
            object.__setattr__(self, "module", self.key.rpartition(".")[0])

    def __str__(self) -> str:
        text = f"{self.key}: expected {list(self.expected)}, the checkpoint has {list(self.actual)}"
        return f"{text} (module {self.module})" if self.module else text


class DCPLoadError(Carried, RuntimeError):
    """A checkpoint does not fit the model: every missing and unexpected key and every shape that differs.

    One or two texts alone are accepted too, since some transports rebuild errors so; the text then holds both.

    Attributes:
        rank: the rank that found it, or None.
        checkpoint_step, path: which checkpoint.
        missing: keys that the model wants and the checkpoint lacks, sorted.
        unexpected: keys of the checkpoint that the model does not want, sorted.
        shape_conflicts: ShapeConflicts, sorted by key.
    """

    def __init__(
        self,
        rank: int | str | None = None,
        checkpoint_step: int | str | None = None,
        path: str | os.PathLike[str] | None = None,
        missing: Iterable[str] = (),
        unexpected: Iterable[str] = (),
        shape_conflicts: Iterable[ShapeConflict] = (),
        *,
        cause: BaseException | None = None,
    ) -> None:
        text = ""
        if isinstance(rank, str):
            text = rank if checkpoint_step is None else f"{rank}\n{checkpoint_step}"
            rank = checkpoint_step = None
        self.rank = rank
        self.checkpoint_step = checkpoint_step
        self.path = None if path is None else os.fspath(path)
        self.missing = sorted(map(str, missing))
        self.unexpected = sorted(map(str, unexpected))
        self.shape_conflicts = sorted(shape_conflicts)
        super().__init__(text or self._report())
        if cause is not None:
            self.__cause__ = cause

    def _report(self) -> str:
        head = f"rank {self.rank}: " if self.rank is not None else ""
        lines = [f"{head}could not load the checkpoint of step {self.checkpoint_step} at {self.path}: {self._counts()}"]
        lines += _section("missing", self.missing)
        lines += _section("unexpected", self.unexpected)
        lines += _section("shape_conflicts", self.shape_conflicts)
        return "\n".join(lines)

    def _counts(self) -> str:
        counts = (
            f"{len(self.missing)} missing",
            f"{len(self.unexpected)} unexpected",
            f"{len(self.shape_conflicts)} with another shape",
        )
        return ", ".join(count for count in counts if not count.startswith("0 ")) or "no keys named"

    def _keepcause_fields(self) -> dict[str, Any]:
        rows = [[each.key, list(each.expected), list(each.actual), each.module] for each in self.shape_conflicts]
        return {**super()._keepcause_fields(), "shape_conflicts": rows}

    def _keepcause_restore(self, state: dict[str, Any]) -> None:
        rows = state.get("shape_conflicts", [])
        fields: dict[str, Any] = {"rank": None, "checkpoint_step": None, "path": None, "missing": [], "unexpected": []}
        super()._keepcause_restore({**fields, **state, "shape_conflicts": [ShapeConflict(*row) for row in rows]})


def _section(title: str, findings: Iterable[object]) -> list[str]:
    """Return the heading and the findings that fit into SECTION, and how many more there are."""
    lines: list[str] = []
    left = SECTION
    more = 0
    for each in findings:
        line = f"    {cut(str(each), 400)}"
        left -= len(line)
        if left < 0:
            more += 1
        else:
            lines.append(line)
    if more:
        lines.append(f"    ... and {more} more, all in .{title}")
    return [f"  {title.replace('_', ' ')}:", *lines] if lines else []


class DCPErrorAggregator:
    """Collects the ranks' errors into one text that does not depend on their order of arrival."""

    def __init__(self) -> None:
        self._errors: list[BaseException] = []

    def collect(self, error: BaseException | None) -> None:
        """Take in one rank's error; None, a rank without one, does nothing."""
        if error is not None:
            self._errors.append(error)

    def summary(self) -> str:
        """Return one text that names every rank and all it found, equal findings once; empty if there is nothing."""
        groups: defaultdict[str, list[int | None]] = defaultdict(list)
        for error in self._errors:
            rank = getattr(error, "rank", None)
            text = str(error).removeprefix(f"rank {rank}: ")
            groups[text].append(rank)
        parts = [(sorted(ranks, key=_order), text) for text, ranks in groups.items()]
        return "\n".join(
            f"{ranks_text(ranks)}: {text}"
            for ranks, text in sorted(parts, key=lambda part: (_order(part[0][0]), part[1]))
        )


def _order(rank: int | None) -> tuple[bool, int]:
    return rank is None, rank or 0


def precheck_rank(
    current: Mapping[str, Any],
    saved: Mapping[str, Any],
    rank: int | None,
    step: int | None,
    path: str | os.PathLike[str],
) -> DCPLoadError | None:
    """Compare what the model wants with what is saved: mappings of key to a shape, or to anything with a `shape`.

    Returns a DCPLoadError with every difference, or None where there is none.
    """
    missing = current.keys() - saved.keys()
    unexpected = saved.keys() - current.keys()
    conflicts = [
        ShapeConflict(key, expected, actual)
        for key in current.keys() & saved.keys()
        if (expected := _shape(current[key])) != (actual := _shape(saved[key]))
    ]
    return (
        DCPLoadError(rank, step, path, missing, unexpected, conflicts) if missing or unexpected or conflicts else None
    )


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(getattr(value, "shape", value))
