"""One rank's state dict against a checkpoint's metadata; imports describe, findings, metadata; torch in functions."""

from __future__ import annotations

import contextlib
import copy
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .describe import raised_at, root_of, text_of, type_name
from .findings import Findings, ShapeConflict, TypeConflict
from .metadata import WHOLE, ShardFile, inspect, paused_gc
from .plain import cut

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


@dataclass(frozen=True)
class Compared:
    """What one rank knows before a shard is read.

    Attributes:
        findings: what is wrong, of no rank yet.
        fatal: whether torch would fail to load it.
        wanted: keys that this rank wants and the checkpoint has.
        unexpected: keys that the checkpoint has and this rank does not want, sorted.
        rank_local: whether only this rank's own metadata could be read.
        reader: a storage reader that has the metadata already.
        verdict: code of what is at the path where the metadata can't be read.
    """

    findings: Findings
    fatal: bool
    wanted: Collection[str] = ()
    unexpected: tuple[str, ...] = ()
    rank_local: bool = False
    reader: Any = None
    verdict: str = ""


def compare(state_dict: Mapping[str, Any], path: Any, rank: int, planner: Any, storage_reader: Any) -> Compared:
    """Compare a state dict with the checkpoint, as torch would at the beginning of a load.

    Args:
        state_dict: as `torch.distributed.checkpoint.load` takes it.
        path: the checkpoint's id, None where the reader has it.
        rank: this process's number in the group; 0 is the coordinator.
        planner, storage_reader: torch's, or None for the default ones.

    Raises:
        Exception: whatever the state dict, the planner or the reader raise.
    """
    with paused_gc():
        return _compare(state_dict, path, rank, planner, storage_reader)


def _compare(state_dict: Mapping[str, Any], path: Any, rank: int, planner: Any, storage_reader: Any) -> Compared:
    from torch.distributed.checkpoint import DefaultLoadPlanner
    from torch.distributed.checkpoint._storage_utils import _storage_setup

    reader = _storage_setup(storage_reader, path, reader=True)
    try:
        metadata, alone = _metadata(reader, rank)
    except Exception as error:
        return _unreadable(path if path is not None else getattr(reader, "checkpoint_id", ""), error)
    wanted, refusal, partial = _wanted(state_dict, metadata, rank, planner or DefaultLoadPlanner())
    found, fatal = _differences(wanted, metadata.state_dict_metadata, partial)
    if refusal is not None and not fatal:
        found, fatal = replace(found, failure=f"the planner refuses: {said(refusal)}"), True
    files = _damaged(reader, metadata, wanted)
    saved = metadata.state_dict_metadata
    return Compared(
        replace(found, files=files),
        fatal or bool(files),
        [key for key in wanted if key in saved],
        tuple(sorted(saved.keys() - wanted.keys())),
        alone is not None,
        _remembering(reader, metadata, alone),
    )


def said(exc: BaseException) -> str:
    """Return an exception's type and text, the place where it was raised, and its root cause, bounded."""
    text = f"{type_name(exc)}: {text_of(exc)}"
    tb = raised_at(exc)
    if tb is not None:
        code = tb.tb_frame.f_code
        text = f"{cut(text, 1_000)} (in {code.co_name}, {code.co_filename}:{tb.tb_lineno})"
    root = root_of(exc)
    return text if root is exc else f"{text}; root cause: {cut(f'{type_name(root)}: {text_of(root)}', 500)}"


def _metadata(reader: Any, rank: int) -> tuple[Any, Exception | None]:
    """Read the metadata; where only this rank's own can be read, return why the common one can't."""
    import inspect as signatures

    try:
        found = reader.read_metadata()
        if found:
            return found, None
        raise ValueError("it is empty")
    except Exception as error:
        if "kwargs" in signatures.signature(reader.read_metadata).parameters:
            with contextlib.suppress(Exception):  # the common metadata's trouble says more
                return reader.read_metadata(rank=rank), error
        raise


def _unreadable(path: Any, error: Exception) -> Compared:
    failure = f"the metadata can't be read: {said(error)}"
    if isinstance(path, str | os.PathLike) and "://" not in os.fspath(path):
        found = inspect(path)
        if found.verdict != WHOLE:
            return Compared(Findings(failure=str(found)), True, verdict=found.verdict)
    return Compared(Findings(failure=failure), True, verdict="metadata-unreadable")


def _remembering(reader: Any, metadata: Any, alone: Exception | None) -> Any:
    """Return a twin of the reader that has read the metadata already."""
    twin = copy.copy(reader)
    place = str(getattr(reader, "checkpoint_id", None))

    def read_metadata(*args: Any, **kwargs: Any) -> Any:
        if alone is not None and kwargs.get("rank") is None:
            raise alone
        return metadata

    def reset(checkpoint_id: Any = None) -> None:
        if checkpoint_id is not None and str(checkpoint_id) != place:
            del twin.read_metadata
        type(reader).reset(twin, checkpoint_id)

    twin.read_metadata, twin.reset = read_metadata, reset
    return twin


def _wanted(
    state_dict: Mapping[str, Any], metadata: Any, rank: int, planner: Any
) -> tuple[dict[str, Any], Exception | None, bool]:
    """Return what the planner will look for by full name, its refusal, and whether it bears missing keys."""
    import torch
    from torch.distributed.checkpoint import DefaultLoadPlanner
    from torch.distributed.checkpoint.stateful import Stateful
    from torch.nn import Parameter

    plain = {torch.Tensor, Parameter, dict, list, int, str}
    states = {
        # The second question alone, to a protocol, would take longer than all the rest.
        key: value.state_dict() if type(value) not in plain and isinstance(value, Stateful) else value
        for key, value in ((key, state_dict[key]) for key in sorted(state_dict))
    }
    own = [getattr(type(planner), name, None) for name in ("set_up_planner", "create_local_plan")]
    if own == [DefaultLoadPlanner.set_up_planner, DefaultLoadPlanner.create_local_plan]:
        return _flattened(states, metadata, planner), None, planner.allow_partial_load
    # Nobody but the planner itself knows what it does; it is asked on a copy, so that the real one is still fresh.
    twin = copy.copy(planner)
    twin.set_up_planner(_containers(states), metadata, rank == 0)
    seen = getattr(twin, "state_dict", None)
    wanted = seen if isinstance(seen, dict) else _flattened(states, metadata, DefaultLoadPlanner())
    try:
        twin.create_local_plan()
    except Exception as error:
        return wanted, error, False
    return wanted, None, True


def _containers(value: Any) -> Any:
    """Return the value with its dicts and lists copied, which a planner may change, and nothing else."""
    if type(value) is dict:
        return {key: _containers(each) for key, each in value.items()}
    if type(value) is list:
        return [_containers(each) for each in value]
    return copy.copy(value) if isinstance(value, dict | list) else value


def _flattened(states: dict[str, Any], metadata: Any, planner: Any) -> dict[str, Any]:
    """Flatten as DefaultLoadPlanner does, with its fallback for what torch before 2.4 saved."""
    from torch.distributed._shard.sharded_tensor import ShardedTensor
    from torch.distributed.checkpoint._nested_dict import flatten_state_dict
    from torch.distributed.checkpoint._traverse import traverse_state_dict_v_2_3

    if not planner.flatten_state_dict:
        return states
    flat: dict[str, Any] = flatten_state_dict(states)[0]
    if planner.flatten_sharded_tensors:
        flat = {
            key: value for key, value in flat.items() if not isinstance(value, ShardedTensor) or value.local_shards()
        }
    unexpected = metadata.state_dict_metadata.keys() - flat.keys()
    if unexpected:
        old: dict[str, Any] = {}
        traverse_state_dict_v_2_3(states, lambda path, value: old.update({".".join(map(str, path)): value}))
        if old.keys() & unexpected:
            return old
    return flat


def _differences(wanted: Mapping[str, Any], saved: Mapping[str, Any], partial: bool) -> tuple[Findings, bool]:
    import torch
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata

    missing, shapes, dtypes, kinds = [], [], [], []
    fatal = False
    for key, value in wanted.items():
        there = saved.get(key)
        if there is None:
            missing.append(key)
        elif isinstance(value, torch.Tensor) or hasattr(value, "__create_chunk_list__"):
            if not isinstance(there, TensorStorageMetadata):
                kinds.append(TypeConflict(key, f"a tensor {value.dtype} {list(value.size())}", "an object"))
            else:
                if there.size != value.size():
                    shapes.append(ShapeConflict(key, tuple(value.size()), tuple(there.size)))
                if there.properties.dtype != value.dtype:
                    dtypes.append(TypeConflict(key, str(value.dtype), str(there.properties.dtype)))
        elif isinstance(there, TensorStorageMetadata):
            what = f"a tensor {there.properties.dtype} {list(there.size)}"
            kinds.append(TypeConflict(key, f"an object of {type(value).__qualname__}", what))
            fatal = True
    if partial:
        missing = []
    found = Findings(
        missing=tuple(sorted(missing)),
        shape_conflicts=tuple(sorted(shapes)),
        dtype_conflicts=tuple(sorted(dtypes)),
        kind_conflicts=tuple(sorted(kinds)),
    )
    return found, fatal or bool(missing or shapes)


def _damaged(reader: Any, metadata: Any, wanted: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the damaged shard files that this rank would read, where they are local files."""
    from torch.distributed.checkpoint import filesystem

    if type(getattr(reader, "fs", None)) is not filesystem.FileSystem or not isinstance(metadata.storage_data, dict):
        return ()
    files: dict[str, list[Any]] = {}
    for index, place in metadata.storage_data.items():
        if isinstance(place, filesystem._StorageInfo) and index.fqn in wanted:
            files.setdefault(place.relative_path, []).append((index, place.offset + place.length))
    found = []
    for name, entries in files.items():
        shard = ShardFile.at(reader.path, name, max(end for _, end in entries), len(entries))
        if shard.damage:
            size = shard.size or 0
            lost = sorted({index.fqn for index, end in entries if end > size and _reads(metadata, index, wanted)})
            if lost:
                more = f" and {len(lost) - 1} more" if lost[1:] else ""
                found.append(f"{name} is {shard.damage}, and {lost[0]}{more} would be read from it")
    return tuple(sorted(found))


def _reads(metadata: Any, index: Any, wanted: Mapping[str, Any]) -> bool:
    """Tell whether this rank would read that piece of a key: of a sharded tensor, what overlaps its own part."""
    from torch.distributed.checkpoint.planner_helpers import _create_read_items

    try:
        items = _create_read_items(index.fqn, metadata.state_dict_metadata[index.fqn], wanted[index.fqn])
    except (ValueError, RuntimeError, IndexError):  # shapes or kinds differ
        return True
    return any(item.storage_index == index for item in items)
