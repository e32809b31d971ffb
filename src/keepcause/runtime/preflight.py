"""Check a torch checkpoint on all ranks before a shard is read; imports checkpoint, compare; torch in functions."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import pickle
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from .checkpoint import DCPLoadError
from .compare import Compared, compare, said
from .findings import Findings, TypeConflict, from_plain, grouped, to_plain
from .metadata import step_of
from .plain import counted, ranks_text
from .wording import checkpoint_text, counts, section

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType
    from typing import Self


_END: Final = "the end of the block"
_CALLED: Final = (
    *("set_up_planner", "create_local_plan", "create_global_plan", "finish_plan"),
    *("set_up_storage_reader", "prepare_local_plan", "prepare_global_plan", "read_data"),
)
"""What a load calls of its planner and its reader, and whose exceptions it sends to the other ranks."""


@dataclass(frozen=True)
class PreflightSummary:
    """What is worth knowing of a checkpoint that can be loaded; on all ranks the same but `keys` and `storage_reader`.

    Attributes:
        path, step: which checkpoint.
        keys: number of keys that this rank will load.
        unexpected: keys that no rank wants, sorted.
        findings: Findings of groups of ranks: dtypes that differ, tensors that will be replaced by other objects.
        storage_reader: has the metadata already; give it to `torch.distributed.checkpoint.load`.
    """

    path: str
    step: int | None
    keys: int
    unexpected: tuple[str, ...] = ()
    findings: tuple[Findings, ...] = ()
    storage_reader: Any = field(default=None, repr=False, compare=False)

    @property
    def dtype_conflicts(self) -> list[TypeConflict]:
        """Tensors that torch will convert in silence, of all ranks."""
        return sorted({each for group in self.findings for each in group.dtype_conflicts})

    @property
    def kind_conflicts(self) -> list[TypeConflict]:
        """Tensors in place of which torch will put other objects in silence, of all ranks."""
        return sorted({each for group in self.findings for each in group.kind_conflicts})

    def __str__(self) -> str:
        names = ("unexpected", "dtype_conflicts", "kind_conflicts")
        found = {name: getattr(self, name) for name in names}
        noted = counts({name: len(items) for name, items in found.items()}) or "nothing to note"
        head = f"{checkpoint_text(self.step, self.path)} fits: {counted(self.keys, 'key')} to load, {noted}"
        return "\n".join([head, *(line for name, items in found.items() for line in section(name, items, {}))])


def preflight(
    state_dict: Mapping[str, Any],
    path: str | os.PathLike[str] | None,
    *,
    step: int | None = None,
    process_group: Any = None,
    planner: Any = None,
    storage_reader: Any = None,
    strict: bool = False,
) -> PreflightSummary:
    """Compare a state dict with a torch DCP checkpoint before a shard is read, on all ranks of the group together.

    Args:
        state_dict, process_group, planner, storage_reader: as for `torch.distributed.checkpoint.load`.
        path: its `checkpoint_id`.
        step: the training step, for the error; by default what the path's name says.
        strict: unexpected keys, and dtypes and kinds that torch converts in silence, are errors too.

    Returns:
        What is worth knowing, with a storage reader that spares the load to read the metadata again.

    Raises:
        DCPLoadError: the load would fail; on every rank the same text.
    """
    return collective(
        path, step=step, process_group=process_group, planner=planner, storage_reader=storage_reader, strict=strict
    ).preflight(state_dict)


def load(
    state_dict: dict[str, Any],
    path: str | os.PathLike[str] | None,
    *,
    step: int | None = None,
    process_group: Any = None,
    planner: Any = None,
    storage_reader: Any = None,
    strict: bool = False,
) -> PreflightSummary:
    """`preflight`, then `torch.distributed.checkpoint.load`; the arguments are those of `preflight`.

    Raises:
        DCPLoadError: the checkpoint does not fit, or the load failed on some rank; on every rank the same text.
    """
    with collective(
        path, step=step, process_group=process_group, planner=planner, storage_reader=storage_reader, strict=strict
    ) as together:
        return together.load(state_dict)


class collective:  # noqa: N801 - used like contextlib's own managers
    """A block that all ranks of a group go through: where one fails, every rank raises the same error at once.

    Without it the others wait for the failed rank until the group's timeout. Inside, call `preflight` or `load` of
    what `with` gives; the end of the block is a meeting of all ranks too, so each of them has to reach it. The
    arguments are those of the function `preflight`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        *,
        step: int | None = None,
        process_group: Any = None,
        planner: Any = None,
        storage_reader: Any = None,
        strict: bool = False,
    ) -> None:
        if path is None and storage_reader is None:
            raise ValueError("Give a path or a storage reader.")
        self.planner, self.storage_reader, self.strict = planner, storage_reader, strict
        self._checkpoint_id = path
        name = str(getattr(storage_reader, "checkpoint_id", "?") if path is None else os.fspath(path))
        self.path, self.step = name, step_of(name) if step is None else step
        self._group = process_group
        self._over = False

    def __enter__(self) -> Self:
        self._over = False
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        if self._over:
            return
        error = self._meet(_END, _failed(exc) if exc is not None else Compared(Findings(), False))[1]
        if error is not None and (exc is None or isinstance(exc, Exception)):
            raise error from exc

    def preflight(self, state_dict: Mapping[str, Any]) -> PreflightSummary:
        """Compare the state dict with the checkpoint; see the function `preflight`."""
        return self._checked(state_dict, "the preflight")

    def load(self, state_dict: dict[str, Any]) -> PreflightSummary:
        """Compare the state dict with the checkpoint, then load it; see the function `load`."""
        import torch.distributed.checkpoint as dcp

        summary = self._checked(state_dict, "the load")
        caught: list[BaseException] = []
        try:
            with _portable(summary.storage_reader, caught), _portable(self.planner, caught):
                dcp.load(
                    state_dict,
                    storage_reader=summary.storage_reader,
                    planner=self.planner,
                    process_group=self._group,
                    no_dist=not _distributed(),
                )
        except dcp.CheckpointException as exc:
            self._raise_failed(_causes(exc, caught, self._me()[0]), exc)
        except Exception as exc:
            self._raise_failed({self._me()[0]: exc}, exc)
        error = self._meet("the end of the load", Compared(Findings(), False))[1]
        if error is not None:
            raise error
        return summary

    def _checked(self, state_dict: Mapping[str, Any], stage: str) -> PreflightSummary:
        trouble = None
        try:
            own = compare(state_dict, self._checkpoint_id, self._me()[0], self.planner, self.storage_reader)
        except Exception as exc:
            own, trouble = _failed(exc), exc
        summary, error = self._meet(stage, own)
        if error is not None:
            error.__cause__ = trouble or error.__cause__
            raise error
        assert summary is not None
        return summary

    def _raise_failed(self, causes: dict[int, BaseException], raised: BaseException) -> None:
        mine = causes.get(self._me()[0])
        own = _failed(mine) if mine is not None else Compared(Findings(), False)
        error = self._meet("the end of the load", own)[1]
        found = list(causes.values())
        if error is None:  # no rank says that it failed itself
            found_here = replace(_failed(raised).findings, ranks=(self._me()[1],))
            error = DCPLoadError(None, self.step, self.path, findings=[found_here])
        if len(found) > 1:
            raise error from BaseExceptionGroup("Ranks failed to load.", found)
        raise error from found[0] if found else raised

    def _me(self) -> tuple[int, int]:
        """Return this process's number in the group and among all."""
        if not _distributed():
            return 0, 0
        import torch.distributed as dist

        return dist.get_rank(self._group), dist.get_rank()

    def _meet(self, stage: str, own: Compared) -> tuple[PreflightSummary | None, DCPLoadError | None]:
        """Bring together what all ranks found; returns a summary, or the error that every rank has to raise."""
        me = self._me()[1]
        try:
            found = _gather(self._group, me, stage, self, own)
        except Exception as exc:
            self._over = True
            text = f"could not hear from the other ranks at {stage}; one may have ended, or never came: {said(exc)}"
            return None, DCPLoadError(
                me, self.step, self.path, findings=[Findings((me,), failure=text, time=time.time())], cause=exc
            )
        if found.fatal or (self.strict and (found.unexpected or found.findings)):
            self._over = True
            error = DCPLoadError(None, found.step, found.path, unexpected=found.unexpected, findings=found.findings)
            error.verdict = found.verdict
            return None, error
        summary = PreflightSummary(
            found.path, found.step, len(own.wanted), found.unexpected, found.findings, own.reader
        )
        return summary, None


@dataclass(frozen=True)
class _Together:
    """What all ranks found."""

    path: str
    step: int | None
    fatal: bool
    unexpected: tuple[str, ...]
    findings: tuple[Findings, ...]
    verdict: str


def _gather(group: Any, me: int, stage: str, block: collective, own: Compared) -> _Together:
    """Exchange plain data only: a short header of each rank, then whatever differs once, from the first that has it."""
    plain = to_plain(replace(own.findings, time=0.0))
    header = {
        "rank": me,
        "stage": stage,
        "path": block.path,
        "step": block.step,
        "fatal": own.fatal,
        "time": own.findings.time,
        "verdict": own.verdict,
        "rank_local": own.rank_local,
        "findings": _digest(plain) if plain else "",
        "wanted": _digest(sorted(own.wanted)) if own.unexpected and not own.rank_local else "",
    }
    headers = _all_gather(group, header)
    shared = _share(group, [each["findings"] for each in headers], plain)
    findings = [
        replace(from_plain(shared[each["findings"]]), ranks=(each["rank"],), time=each["time"])
        for each in headers
        if each["findings"]
    ]
    findings += _strays(headers)
    unexpected: tuple[str, ...] = ()
    if all(each["wanted"] for each in headers):
        wanted = set().union(*_share(group, [each["wanted"] for each in headers], list(own.wanted)).values())
        unexpected = _broadcast(group, tuple(key for key in own.unexpected if key not in wanted), 0)
    return _Together(
        headers[0]["path"],
        headers[0]["step"],
        any(each["fatal"] for each in headers) or any(each.failure for each in findings),
        unexpected,
        grouped(findings),
        next((each["verdict"] for each in headers if each["verdict"]), ""),
    )


def _strays(headers: list[dict[str, Any]]) -> list[Findings]:
    """Return as failures that ranks are at different places, or read different metadata: torch would wait for ever."""
    well = [each for each in headers if not each["fatal"]]
    found = []
    for name, stray in (("stage", _END), ("rank_local", True)):
        values = [each[name] for each in well]
        usual = max(sorted(set(values)), key=lambda value: (value != stray, values.count(value)), default=None)
        for value in sorted(set(values) - {usual}):
            ranks = tuple(each["rank"] for each in well if each[name] == value)
            others = ranks_text(each["rank"] for each in well if each[name] != value)
            what = f"came to {value}" if name == "stage" else "can read only its own metadata"
            found.append(Findings(ranks, failure=f"{what}, unlike {others}"))
    return found


def _failed(exc: BaseException) -> Compared:
    return Compared(Findings(failure=said(exc), time=time.time()), True)


def _digest(plain: Any) -> str:
    """Return a short text that is the same for equal plain data."""
    return hashlib.sha256(json.dumps(plain).encode()).hexdigest()


def _distributed() -> bool:
    import torch.distributed as dist

    return bool(dist.is_available() and dist.is_initialized())


def _all_gather(group: Any, value: Any) -> list[Any]:
    if not _distributed():
        return [value]
    import torch.distributed as dist

    values = [None] * dist.get_world_size(group)
    dist.all_gather_object(values, value, group=group)
    return values


def _share(group: Any, digests: list[str], own: Any) -> dict[str, Any]:
    """Return the data behind each digest, sent by the first rank that has it."""
    return {digest: _broadcast(group, own, digests.index(digest)) for digest in dict.fromkeys(digests) if digest}


def _broadcast(group: Any, own: Any, source: int) -> Any:
    """Return what the rank with the number `source` in the group gave as `own`."""
    if not _distributed():
        return own
    import torch.distributed as dist

    values = [own if dist.get_rank(group) == source else None]
    dist.broadcast_object_list(values, dist.get_global_rank(group, source) if group is not None else source, group)
    return values[0]


@contextlib.contextmanager
def _portable(thing: Any, caught: list[BaseException]) -> Iterator[None]:
    """Let only such exceptions leave the methods that torch calls as it can send to the other ranks."""
    wrapped = [name for name in _CALLED if hasattr(thing, name) and name not in vars(thing)]
    for name in wrapped:
        setattr(thing, name, _caught(getattr(thing, name), caught))
    try:
        yield
    finally:
        for name in wrapped:
            delattr(thing, name)


def _caught(method: Any, caught: list[BaseException]) -> Any:
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except Exception as exc:
            caught.append(exc)
            if _travels(exc):
                raise
            raise RuntimeError(said(exc)) from exc

    return call


def _travels(exc: Exception) -> bool:
    try:
        return type(pickle.loads(pickle.dumps(exc))) is type(exc)
    except Exception:
        return False


def _causes(exc: Any, caught: list[BaseException], me: int) -> dict[int, BaseException]:
    """Return each failed rank's exception; this rank's own is the real one, the others' have their frames as a note."""
    causes: dict[int, BaseException] = {}
    for rank, (cause, frames) in sorted(exc.failures.items()):
        causes[rank] = caught[0] if rank == me and caught else cause
        if causes[rank] is cause and rank != me:
            cause.add_note(f"Raised on rank {rank}:\n{''.join(frames.format())}")
    return causes
