"""What kept a checkpoint from loading, as one error with every key; imports chain, findings, plain and wording."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from .chain import Carried
from .findings import (
    CONFLICTS,
    LISTS,
    Findings,
    ShapeConflict,
    TypeConflict,
    conflicts,
    from_plain,
    grouped,
    rows,
    to_plain,
)
from .plain import counted, cut, ranks_text
from .wording import TEXT, body, checkpoint_text, counts, summed_up

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_FIELDS: Final[dict[str, Any]] = {"rank": None, "checkpoint_step": None, "path": None, "verdict": ""}


class DCPLoadError(Carried, RuntimeError):
    """A checkpoint does not fit the model, or can't be loaded: everything that is wrong, of every rank.

    One or two texts alone are accepted too, since some transports rebuild errors so; the text then holds both.

    Attributes:
        rank: the rank that found it, the lowest of several; or None.
        checkpoint_step, path: which checkpoint.
        missing: keys that the model wants and the checkpoint lacks, sorted.
        unexpected: keys of the checkpoint that no rank's model wants, sorted.
        shape_conflicts: ShapeConflicts, sorted by key.
        dtype_conflicts: TypeConflicts of dtypes, sorted by key; torch converts these in silence.
        kind_conflicts: TypeConflicts of tensors against other objects, sorted by key.
        files: damaged shard files, each with its damage.
        findings: Findings of each group of ranks that found the same; the earliest failure first.
        verdict: code of what is at the path where that can't be read as a checkpoint, else "".
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
        dtype_conflicts: Iterable[TypeConflict] = (),
        kind_conflicts: Iterable[TypeConflict] = (),
        findings: Iterable[Findings] = (),
        cause: BaseException | None = None,
    ) -> None:
        text = ""
        if isinstance(rank, str):
            text = rank if checkpoint_step is None else f"{rank}\n{checkpoint_step}"
            rank = checkpoint_step = None
        own = Findings(
            () if rank is None else (rank,),
            tuple(sorted(map(str, missing))),
            tuple(sorted(shape_conflicts)),
            tuple(sorted(dtype_conflicts)),
            tuple(sorted(kind_conflicts)),
        )
        self.findings = grouped([*([own] if own else []), *findings])
        ranks = [each for group in self.findings for each in group.ranks]
        self.rank = min(ranks) if rank is None and ranks else rank
        self.checkpoint_step = checkpoint_step
        self.path = None if path is None else os.fspath(path)
        self.missing: list[str] = self._all("missing")
        self.unexpected = sorted(map(str, unexpected))
        self.shape_conflicts: list[ShapeConflict] = self._all("shape_conflicts")
        self.dtype_conflicts: list[TypeConflict] = self._all("dtype_conflicts")
        self.kind_conflicts: list[TypeConflict] = self._all("kind_conflicts")
        self.files: list[str] = self._all("files")
        self.verdict = ""
        super().__init__(text or self._report())
        if cause is not None:
            self.__cause__ = cause

    @property
    def ranks(self) -> list[int]:
        """The ranks that found something, ascending; empty where that is not known."""
        own = () if self.rank is None else (self.rank,)
        return sorted({*own, *(rank for each in self.findings for rank in each.ranks)})

    def _all(self, name: str) -> list[Any]:
        return sorted({each for group in self.findings for each in getattr(group, name)})

    def _report(self) -> str:
        head = "" if self.rank is None else f"{ranks_text(self.ranks)}: "
        head += f"could not load {checkpoint_text(self.checkpoint_step, self.path)}"
        numbers = {name: len(getattr(self, name)) for name in ("missing", "unexpected", *LISTS[1:])}
        found = [counts(numbers)]
        failed = sum(len(each.ranks) or 1 for each in self.findings if each.failure)
        if failed:
            found.append(f"{counted(failed, 'rank')} failed")
        text = ", ".join(filter(None, found)) or "no keys named"
        return cut("\n".join([f"{head}: {text}", *body(self.findings, self.unexpected)]), TEXT)

    def _keepcause_fields(self) -> dict[str, Any]:
        plain = {name: rows(getattr(self, name)) for name in CONFLICTS}
        return {**super()._keepcause_fields(), **plain, "findings": [to_plain(each) for each in self.findings]}

    def _keepcause_restore(self, state: dict[str, Any]) -> None:
        fields = {**_FIELDS, **{name: [] for name in ("missing", "unexpected", "files")}, **state}
        for name in CONFLICTS:
            fields[name] = conflicts(name, _list(state.get(name)))
        fields["findings"] = tuple(from_plain(each) for each in _list(state.get("findings")))
        super()._keepcause_restore(fields)


def _list(value: Any) -> list[Any]:
    """Return a list as it is, and nothing for the text that stands for one that was too big to travel."""
    return value if isinstance(value, list) else []


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
        pairs = []
        for error in self._errors:
            ranks = error.ranks if isinstance(error, DCPLoadError) else [getattr(error, "rank", None)]
            text = str(error).removeprefix(f"{ranks_text(ranks)}: ")
            pairs += [(rank, text) for rank in ranks or [None]]
        return summed_up(pairs)


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
    found = [
        ShapeConflict(key, expected, actual)
        for key in current.keys() & saved.keys()
        if (expected := _shape(current[key])) != (actual := _shape(saved[key]))
    ]
    return DCPLoadError(rank, step, path, missing, unexpected, found) if missing or unexpected or found else None


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(getattr(value, "shape", value))
