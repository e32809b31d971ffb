"""Cases of checkpoints that do not load, and of some that do, really saved and really loaded; imports harness."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from harness import WAIT, Rank, child, error_of, expect_error, judged, run, torch_error

from keepcause import DCPLoadError, PreflightSummary, ShapeConflict, TypeConflict, collective, load, preflight
from keepcause.runtime.metadata import inspect
from keepcause.testing import assert_checkpoint_error_readable

if TYPE_CHECKING:
    from collections.abc import Callable

    Case = Callable[[Rank], object]

CASES: dict[str, Case] = {}
"""Every case; what it returns has to be the same text on all ranks."""
STEP = 7


def case(function: Case) -> Case:
    """Add a case."""
    CASES[function.__name__] = function
    return function


def model(layers: int = 6, width: int = 4, prefix: str = "net.") -> dict[str, Any]:
    """Return a small state dict."""
    return {f"{prefix}l{layer}.{part}": torch.ones(width) * layer for layer in range(layers) for part in ("w", "b")}


def refused(me: Rank, state: Callable[[], dict[str, Any]], path: Path, **options: Any) -> DCPLoadError:
    """Return preflight's error, after torch has failed on the same as well; both in a bounded time."""
    begin = time.monotonic()
    error = expect_error(error_of(preflight, state(), path, **options))
    seconds = time.monotonic() - begin
    assert seconds < WAIT + me.work, f"preflight took {seconds:.1f} s"
    again = expect_error(error_of(load, state(), path, **options))
    assert str(again) == str(error)
    assert torch_error(state(), path, **options) is not None, "torch loads this"
    assert str(path) in str(error)
    assert error.path == str(path)
    assert error.checkpoint_step == STEP
    assert f"step {STEP}" in str(error)
    assert error.rank is not None
    return assert_checkpoint_error_readable(error)


def fits(state: Callable[[], dict[str, Any]], path: Path, **options: Any) -> PreflightSummary:
    """Return preflight's summary, after torch has loaded the same."""
    summary = preflight(state(), path, **options)
    assert (found := torch_error(state(), path, **options)) is None, found
    load(state(), path, **options)
    return summary


@case
def six_keys_missing(me: Rank) -> object:
    path = me.saved(model(3))
    error = refused(me, model, path)
    assert error.missing == [f"net.l{layer}.{part}" for layer in (3, 4, 5) for part in ("b", "w")]
    assert all(key in str(error) for key in error.missing)
    assert "6 missing" in str(error)
    assert str(error).startswith(f"ranks 0-{me.world - 1} ({me.world}): could not load")
    return error


@case
def unexpected_keys(me: Rank) -> object:
    path = me.saved(model(3))
    summary = fits(lambda: model(2), path)
    assert summary.unexpected == ("net.l2.b", "net.l2.w")
    error = expect_error(error_of(preflight, model(2), path, strict=True))
    assert error.unexpected == ["net.l2.b", "net.l2.w"]
    return error


@case
def three_shapes_differ(me: Rank) -> object:
    path = me.saved(model(3, 9))

    def state() -> dict[str, Any]:
        return {**model(3, 9), **{f"net.l{layer}.w": torch.ones(4, 9) for layer in range(3)}}

    error = refused(me, state, path)
    assert error.shape_conflicts == [
        ShapeConflict(f"net.l{layer}.w", (4, 9), (9,), f"net.l{layer}") for layer in range(3)
    ]
    assert str(error).count("expected [4, 9], the checkpoint has [9]") == 3
    return error


@case
def nothing_at_the_path(me: Rank) -> object:
    me.saved(model(1), "step-8")
    error = refused(me, model, me.folder / "step-7")
    assert error.verdict == "nothing"
    assert "step-8" in str(error)
    return error


@case
def no_metadata(me: Rank) -> object:
    path = me.saved(model(1))
    me.only(0, (path / ".metadata").unlink)
    error = refused(me, model, path)
    assert error.verdict == "unfinished"
    return error


@case
def torch_save_file(me: Rank) -> object:
    path = me.folder / "step-7"
    me.only(0, lambda: torch.save(model(1), path))
    error = refused(me, model, path)
    assert error.verdict == "torch-file"
    return error


@case
def metadata_truncated(me: Rank) -> object:
    path = me.saved(model(1))
    me.only(0, lambda: os.truncate(path / ".metadata", 300))
    error = refused(me, model, path)
    assert error.verdict == "metadata-truncated"
    return error


@case
def metadata_is_html(me: Rank) -> object:
    path = me.saved(model(1))
    me.only(0, lambda: (path / ".metadata").write_bytes(b"<html>404</html>"))
    error = refused(me, model, path)
    assert error.verdict == "metadata-foreign"
    assert "<html>" in str(error)
    return error


@case
def shard_missing(me: Rank) -> object:
    path = me.saved(model(6))
    me.only(0, (path / "__1_0.distcp").unlink)
    error = refused(me, model, path)
    assert any(file.startswith("__1_0.distcp is missing") for file in error.files)
    return error


@case
def shard_cut(me: Rank) -> object:
    path = me.saved(model(6))
    me.only(0, lambda: os.truncate(path / "__0_0.distcp", 2000))
    error = refused(me, model, path)
    assert any(file.startswith("__0_0.distcp is cut: 2,000 of ") for file in error.files)
    return error


@case
def missing_on_one_rank_only(me: Rank) -> object:
    path = me.saved(model(3))
    error = refused(me, lambda: model(5 if me.rank == 1 else 3), path)
    assert error.missing == ["net.l3.b", "net.l3.w", "net.l4.b", "net.l4.w"]
    assert error.rank == 1
    assert [each.ranks for each in error.findings] == [(1,)]
    return error


@case
def a_rank_raises_before_and_leaves(me: Rank) -> object:
    path = me.saved(model(3))
    error = expect_error(error_of(_loads_after, me, path, 0.5))
    assert error.rank == 1
    assert "OSError: [Errno 28] the disk is full" in str(error)
    if me.rank == 1:
        assert isinstance(error.__cause__, OSError)
    return error


def _loads_after(me: Rank, path: Path, seconds: float) -> None:
    with collective(path) as together:
        if me.rank == 1:
            time.sleep(seconds)
            raise OSError(28, "the disk is full")
        together.load(model(3))


@case
def a_rank_raises_after_the_preflight(me: Rank) -> object:
    path = me.saved(model(3))

    def both() -> None:
        with collective(path) as together:
            together.preflight(model(3))
            if me.rank == 1:
                raise KeyError("no such buffer")
            together.load(model(3))

    error = expect_error(error_of(both))
    assert "rank 1 failed: KeyError: 'no such buffer'" in str(error)
    return error


@case
def a_rank_raises_at_the_end(me: Rank) -> object:
    path = me.saved(model(3))

    def both() -> None:
        with collective(path) as together:
            together.load(model(3))
            if me.rank == 1:
                raise KeyError("late")

    error = expect_error(error_of(both))
    assert "rank 1 failed: KeyError: 'late'" in str(error)
    return error


@case
def a_rank_raises_within_the_preflight(me: Rank) -> object:
    path = me.saved({"model": model(3)})

    class Broken:
        def state_dict(self) -> dict[str, Any]:
            if me.rank == 1:
                raise RuntimeError("no weights on this rank")
            return model(3)

        def load_state_dict(self, state: dict[str, Any]) -> None:
            pass

    error = expect_error(error_of(preflight, {"model": Broken()}, path))
    assert "rank 1 failed: RuntimeError: no weights on this rank" in str(error)
    return error


@case
def a_rank_raises_in_load_state_dict(me: Rank) -> object:
    path = me.saved({"model": model(3)})

    class Broken:
        def state_dict(self) -> dict[str, Any]:
            return model(3)

        def load_state_dict(self, state: dict[str, Any]) -> None:
            if me.rank == 1:
                raise RuntimeError("can't take it")

    error = expect_error(error_of(load, {"model": Broken()}, path))
    assert "rank 1 failed: RuntimeError: can't take it" in str(error)
    return error


@case
def a_rank_skips_the_load(me: Rank) -> object:
    path = me.saved(model(3))

    def both() -> None:
        with collective(path) as together:
            if me.rank != 1:
                together.load(model(3))

    error = expect_error(error_of(both))
    assert "rank 1 failed: came to the end of the block, unlike rank" in str(error)
    return error


@case
def a_rank_sees_only_its_own_metadata(me: Rank) -> object:
    path = me.saved(model(3))
    view = me.folder / f"view-{me.rank}" / "step-7"
    view.parent.mkdir(exist_ok=True)
    if me.rank == 1:
        view.mkdir()
        for file in path.iterdir():
            os.link(file, view / ("__1.metadata" if file.name == ".metadata" else file.name))
    else:
        view.symlink_to(path)
    error = expect_error(error_of(preflight, model(3), view))
    assert "rank 1 failed: can read only its own metadata, unlike rank" in str(error)
    return str(error)


class _Unpicklable(Exception):
    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first}{second}")
        self.lock = __import__("threading").Lock()


@case
def the_planner_raises_what_cannot_travel(me: Rank) -> object:
    path = me.saved(model(3))

    class Planner(dcp.DefaultLoadPlanner):  # type: ignore[misc]
        def create_local_plan(self) -> Any:
            if me.rank == 1:
                raise _Unpicklable("the real", " reason")
            return super().create_local_plan()

    error = expect_error(error_of(load, model(3), path, planner=Planner()))
    assert "the real reason" in str(error)
    assert error.rank == 1
    return error


@case
def the_read_raises_what_cannot_travel(me: Rank) -> object:
    path = me.saved(model(3))

    class Planner(dcp.DefaultLoadPlanner):  # type: ignore[misc]
        def commit_tensor(self, read_item: Any, tensor: Any) -> None:
            if me.rank == 1:
                raise _Unpicklable("the real", " reason")

    error = expect_error(error_of(load, model(3), path, planner=Planner()))
    assert "rank 1 failed: " in str(error)
    assert "the real reason" in str(error)
    if me.rank == 1:
        assert isinstance(error.__cause__, _Unpicklable)
    else:
        assert "the real reason" in str(error.__cause__)
    return error


@case
def the_read_fails_on_all_ranks(me: Rank) -> object:
    path = me.saved(model(3))
    me.only(0, lambda: [file.write_bytes(bytes(file.stat().st_size)) for file in path.glob("*.distcp")])
    error = expect_error(error_of(load, model(3), path))
    assert isinstance(error.__cause__, BaseExceptionGroup)
    assert len(error.__cause__.exceptions) == me.world
    assert f"ranks 0-{me.world - 1}" in str(error)
    return error


@case
def dtype_differs(me: Rank) -> object:
    path = me.saved(model(1))
    summary = fits(lambda: {key: value.bfloat16() for key, value in model(1).items()}, path)
    assert summary.dtype_conflicts == [TypeConflict(key, "torch.bfloat16", "torch.float32") for key in sorted(model(1))]
    error = expect_error(error_of(preflight, {"net.l0.w": torch.ones(4).half()}, path, strict=True))
    assert "net.l0.w: expected torch.float16, the checkpoint has torch.float32" in str(error)
    return summary


@case
def kinds_differ(me: Rank) -> object:
    path = me.saved({"a": {"x": 1}, "b": torch.ones(2), "epoch": 3})
    summary = fits(lambda: {"b": torch.ones(2), "epoch": torch.ones(2)}, path)
    assert [each.key for each in summary.kind_conflicts] == ["epoch"]
    error = refused(me, lambda: {"b": 5}, path)
    assert error.kind_conflicts == [TypeConflict("b", "an object of int", "a tensor torch.float32 [2]")]
    return error


@case
def pipeline_stages(me: Rank) -> object:
    path = me.saved({**model(me.world), "old.w": torch.ones(1)})
    summary = fits(lambda: {key: value for key, value in model(me.world).items() if f"l{me.rank}." in key}, path)
    assert summary.unexpected == ("old.w",)
    assert summary.keys == 2
    return f"{summary.unexpected}"


@case
def subset_and_partial_loads(me: Rank) -> object:
    path = me.saved(model(3))
    fits(lambda: {"net.l1.w": torch.ones(4)}, path)
    summary = fits(lambda: model(5), path, planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert summary.keys == 6
    return summary


@case
def nested_stateful_and_odd_values(me: Rank) -> object:
    class Trainer:
        def __init__(self) -> None:
            self.epoch = 4

        def state_dict(self) -> dict[str, Any]:
            return {"epoch": self.epoch, "history": [1, 2], "moments": [torch.ones(2), torch.ones(3)]}

        def load_state_dict(self, state: dict[str, Any]) -> None:
            self.epoch = state["epoch"]

    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    optimizer = torch.optim.AdamW(net.parameters())
    net(torch.ones(3)).sum().backward()
    optimizer.step()

    def state() -> dict[str, Any]:
        return {
            "model": net,
            "optimizer": optimizer,
            "trainer": Trainer(),
            "scalar": torch.tensor(3.5),
            "empty": torch.ones(0, 4),
            "bf16": torch.ones(3, dtype=torch.bfloat16),
            "fp8": torch.ones(3, dtype=torch.float32).to(torch.float8_e4m3fn),
            "flags": torch.ones(3, dtype=torch.bool),
            "wide": torch.ones(1, 2, 1, 3, 1),
            "note": "ünï",
        }

    path = me.saved(state())
    summary = fits(state, path)
    assert not summary.unexpected
    same_as_torch(path)
    error = refused(me, lambda: {**state(), "scalar": torch.ones(1), "wide": torch.ones(2)}, path)
    assert [each.key for each in error.shape_conflicts] == ["scalar", "wide"]
    assert error.shape_conflicts[0].actual == ()
    return summary


def same_as_torch(path: Path) -> None:
    """Compare the torch-free reading with torch's own."""
    found = inspect(path)
    assert found.verdict == "whole", found
    theirs = dcp.FileSystemReader(path).read_metadata()
    ours = {key: (saved.shape, saved.dtype) for key, saved in found.keys.items()}
    tensors = dcp.TensorStorageMetadata
    assert ours == {
        key: (tuple(saved.size), str(saved.properties.dtype)) if isinstance(saved, tensors) else (None, None)
        for key, saved in theirs.state_dict_metadata.items()
    }
    ends: dict[str, int] = {}
    for place in theirs.storage_data.values():
        ends[place.relative_path] = max(ends.get(place.relative_path, 0), place.offset + place.length)
    assert {file.name: file.needed for file in found.files} == ends
    for key, saved in theirs.state_dict_metadata.items():
        if isinstance(saved, tensors):
            width = torch.empty(0, dtype=saved.properties.dtype).element_size()
            assert found.keys[key].bytes == saved.size.numel() * width


@case
def dtensors(me: Rank) -> object:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (me.world,))
    whole = torch.arange(me.world * 24.0).reshape(me.world * 4, 6)

    def state(place: Any = None, value: torch.Tensor = whole) -> dict[str, Any]:
        return {"w": distribute_tensor(value, mesh, [place or Shard(0)]), "b": torch.ones(3)}

    path = me.saved(state())
    same_as_torch(path)
    fits(state, path)
    fits(lambda: state(Shard(1)), path)
    summary = fits(lambda: state(Replicate()), path)
    fits(lambda: {"w": whole.clone()}, path)
    error = refused(me, lambda: state(value=torch.ones(me.world * 2, 6)), path)
    assert error.shape_conflicts == [ShapeConflict("w", (me.world * 2, 6), (me.world * 4, 6))]
    me.only(0, (path / f"__{me.world - 1}_0.distcp").unlink)
    lost = refused(me, lambda: {"w": state()["w"]}, path)
    assert lost.rank == me.world - 1, "only the rank that reads the missing shard finds it"
    return f"{summary}\n{error}\n{lost}"


@case
def sharded_tensors(me: Rank) -> object:
    from torch.distributed._shard import sharded_tensor
    from torch.distributed._shard.sharding_spec import ChunkShardingSpec

    spec = ChunkShardingSpec(0, [f"rank:{rank}/cpu" for rank in range(me.world)])

    def state(rows: int = 8) -> dict[str, Any]:
        return {"w": sharded_tensor.ones(spec, rows, 3)}

    path = me.saved(state())
    same_as_torch(path)
    fits(state, path)
    error = refused(me, lambda: state(12), path)
    assert error.shape_conflicts == [ShapeConflict("w", (12, 3), (8, 3))]
    return error


@case
def async_saved(me: Rank) -> object:
    path = me.folder / "step-7"
    dcp.async_save(model(3), checkpoint_id=path).result()
    dist.barrier()
    same_as_torch(path)
    return fits(lambda: model(3), path)


@case
def saved_without_collectives(me: Rank) -> object:
    def state(value: float) -> dict[str, Any]:
        return {"w": torch.full((4,), value)}

    path = me.saved(state(me.rank), use_collectives=False)
    dist.barrier()
    assert inspect(path).verdict == "rank-metadata"
    mine = state(9)
    load(mine, path)
    assert torch.equal(mine["w"], state(me.rank)["w"])
    fits(lambda: state(9), path)
    return refused(me, lambda: {**state(9), "b": torch.ones(1)}, path)


@case
def a_prefix_more(me: Rank) -> object:
    path = me.saved(model(20, prefix="model.net."))
    error = refused(me, lambda: model(20), path)
    assert 'all 40 missing names exist in the checkpoint with the prefix "model."' in str(error)
    return error


@case
def a_near_name(me: Rank) -> object:
    path = me.saved({"layers.0.attn.q_proj.weight": torch.ones(2)})
    error = refused(me, lambda: {"layers.0.attn.qproj.weight": torch.ones(2)}, path)
    assert "layers.0.attn.qproj.weight (did you mean layers.0.attn.q_proj.weight?)" in str(error)
    return error


@case
def a_reader_and_a_planner_of_ones_own(me: Rank) -> object:
    path = me.saved(model(3))
    read: list[int] = []

    class Reader(dcp.FileSystemReader):  # type: ignore[misc]
        def read_metadata(self, *args: Any, **kwargs: Any) -> Any:
            read.append(1)
            return super().read_metadata(*args, **kwargs)

    class Renaming(dcp.DefaultLoadPlanner):  # type: ignore[misc]
        def set_up_planner(self, state_dict: Any, metadata: Any = None, is_coordinator: bool = False) -> None:
            super().set_up_planner({f"net.{key}": value for key, value in state_dict.items()}, metadata, is_coordinator)

    def state(layers: int = 3) -> dict[str, Any]:
        return {key.removeprefix("net."): value for key, value in model(layers).items()}

    summary = load(state(), None, planner=Renaming(), storage_reader=Reader(path))
    assert read == [1], "the metadata is read once"
    assert summary.path == str(path)
    dcp.load(state(), planner=Renaming(), storage_reader=summary.storage_reader)
    assert read == [1]
    dcp.load(
        state(), checkpoint_id=me.saved(model(4), "step-9"), planner=Renaming(), storage_reader=summary.storage_reader
    )
    assert read == [1, 1], "another path is another checkpoint"
    error = expect_error(error_of(preflight, state(4), path, planner=Renaming()))
    assert error.missing == ["net.l3.b", "net.l3.w"]
    assert torch_error(state(4), path, planner=Renaming()) is not None
    return error


@case
def what_torch_takes_or_refuses(me: Rank) -> object:
    import numpy  # type: ignore[import-not-found, unused-ignore]

    path = me.saved({"w": torch.ones(3), "list": [1, torch.ones(2)], "note": "text", "deep": {"er": {"x": 1}}})
    fits(lambda: {"w": torch.ones(3, device="meta")}, path)
    fits(lambda: {"note": 5, "deep": {"er": {"x": "other"}}}, path)
    fits(lambda: {"w": torch.nn.Parameter(torch.ones(3))}, path)
    fits(dict, path)
    refused(me, lambda: {"w": numpy.ones(3)}, path)
    refused(me, lambda: {"w": None}, path)
    refused(me, lambda: {"w": [torch.ones(3)]}, path)
    refused(me, lambda: {"deep": {"er": 5}}, path)
    error = expect_error(error_of(preflight, {"a.b": torch.ones(1), "a": {"b": torch.ones(1)}}, path))
    assert "duplicated flatten key a.b" in str(error)
    assert torch_error({"a.b": torch.ones(1), "a": {"b": torch.ones(1)}}, path) is not None
    return error


@case
def files_that_nobody_reads(me: Rank) -> object:
    path = me.saved({f"k{rank}": torch.ones(rank + 1) for rank in range(me.world)})
    kept = {file.name for file in inspect(path).files}
    metadata = dcp.FileSystemReader(path).read_metadata()
    homes = {index.fqn: place.relative_path for index, place in metadata.storage_data.items()}
    assert len(kept) == me.world
    me.only(0, (path / homes["k0"]).unlink)
    fits(lambda: {"k1": torch.ones(2)}, path)
    error = refused(me, lambda: {"k0": torch.ones(1), "k1": torch.ones(2)}, path)
    assert error.files == [f"{homes['k0']} is missing, and k0 would be read from it"]
    return error


@case
def a_file_per_tensor_and_threads(me: Rank) -> object:
    path = me.folder / "step-7"
    dcp.save(model(5), storage_writer=dcp.FileSystemWriter(path, single_file_per_rank=False, thread_count=2))
    same_as_torch(path)
    fits(lambda: model(5), path)
    lost = next(file.name for file in inspect(path).files)
    me.only(0, (path / lost).unlink)
    error = refused(me, lambda: model(5), path)
    assert len(error.files) == 1
    return error


@case
def many_kinds_of_trouble_at_once(me: Rank) -> object:
    path = me.saved({**model(3), "old": torch.ones(1)})
    me.only(0, (path / "__0_0.distcp").unlink)

    def state() -> dict[str, Any]:
        return {**model(3), f"new{me.rank}": torch.ones(1), "net.l0.w": torch.ones(2), "net.l0.b": torch.ones(4).half()}

    error = refused(me, state, path)
    assert error.missing == [f"new{rank}" for rank in range(me.world)]
    assert [each.key for each in error.shape_conflicts] == ["net.l0.w"]
    assert [each.key for each in error.dtype_conflicts] == ["net.l0.b"]
    assert error.unexpected == ["old"]
    assert error.files
    assert [each.ranks for each in error.findings] == [(rank,) for rank in range(me.world)]
    return error


@case
def without_a_group(me: Rank) -> object:
    path = me.saved(model(3))
    dist.barrier()
    dist.destroy_process_group()
    fits(lambda: model(3), path)
    error = refused(me, lambda: model(4), path)
    assert error.rank == 0
    assert error.missing == ["net.l3.b", "net.l3.w"]
    store = dist.FileStore(str(me.folder / "again"), me.world)
    dist.init_process_group("gloo", store=store, rank=me.rank, world_size=me.world)
    return error


@case
def other_readers(me: Rank) -> object:
    path = me.saved(model(3))

    class Memory(dcp.StorageReader):  # type: ignore[misc]
        """Reads from bytes that it holds, and has no path."""

        def __init__(self) -> None:
            self.inner = dcp.FileSystemReader(path)

        def reset(self, checkpoint_id: Any = None) -> None:
            pass

        def read_metadata(self) -> Any:
            return self.inner.read_metadata()

        def set_up_storage_reader(self, metadata: Any, is_coordinator: bool) -> None:
            self.inner.set_up_storage_reader(metadata, is_coordinator)

        def prepare_local_plan(self, plan: Any) -> Any:
            return plan

        def prepare_global_plan(self, plans: Any) -> Any:
            return plans

        def read_data(self, plan: Any, planner: Any) -> Any:
            return self.inner.read_data(plan, planner)

        @classmethod
        def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
            return True

    state = model(3)
    summary = load(state, "memory://step-7", storage_reader=Memory())
    assert all(torch.equal(value, model(3)[key]) for key, value in state.items())
    assert (summary.path, summary.step) == ("memory://step-7", 7)
    error = expect_error(error_of(preflight, model(4), "memory://step-7", storage_reader=Memory()))
    assert error.missing == ["net.l3.b", "net.l3.w"]
    nothing = expect_error(error_of(preflight, model(4), "memory://none", storage_reader=Silent()))
    assert "TimeoutError: the store does not answer" in str(nothing)
    return f"{error}\n{nothing}"


class Silent(dcp.StorageReader):  # type: ignore[misc]
    """Can't read the metadata."""

    def reset(self, checkpoint_id: Any = None) -> None:
        """Do nothing."""

    def read_metadata(self) -> Any:
        """Fail."""
        raise TimeoutError("the store does not answer")

    set_up_storage_reader = prepare_local_plan = prepare_global_plan = read_data = reset

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Any) -> bool:
        """Take any."""
        return True


@case
def a_rank_ends_at_once(me: Rank) -> object:
    path = me.saved(model(3))
    context = torch.multiprocessing.get_context("spawn")
    arrivals = context.SimpleQueue()
    place = str(me.folder / f"store-{me.rank}")
    ended = [context.Process(target=_ends, args=(rank, place, str(path), arrivals)) for rank in range(2)]
    for process in ended:
        process.start()
    text, seconds = arrivals.get()
    for process in ended:
        process.join()
    assert "rank 0 failed: could not hear from the other ranks" in text
    assert seconds < WAIT
    return None


def _ends(rank: int, store: str, path: str, arrivals: Any) -> None:
    dist.init_process_group("gloo", store=dist.FileStore(store, 2), rank=rank, world_size=2)
    dist.barrier()
    if rank == 1:
        os._exit(7)
    begin = time.monotonic()
    error = error_of(load, model(3), path)
    arrivals.put((f"{type(error).__name__}: {error}", time.monotonic() - begin))
    os._exit(0)


@case
def a_subgroup(me: Rank) -> object:
    path = me.saved(model(3))
    group = dist.new_group([1])
    if me.rank == 1:
        error = expect_error(error_of(preflight, model(5), path, process_group=group))
        assert error.rank == 1
    dist.barrier()
    return None


def main() -> int:
    """Run the cases, or those whose names contain one of the words."""
    parser = argparse.ArgumentParser(description="Checkpoints that do not load, on 2 and 4 ranks.")
    parser.add_argument("words", nargs="*", help="run only cases whose names contain one of these")
    parser.add_argument("--worlds", type=int, nargs="+", default=[2, 4], help="numbers of ranks")
    parser.add_argument("--show", action="store_true", help="print what each case says")
    options = parser.parse_args()
    failed = 0
    for world in options.worlds:
        names = [name for name in CASES if not options.words or any(word in name for word in options.words)]
        rows = run(__file__, names, world)
        for name in names:
            wrong = judged(rows, name)
            failed += bool(wrong)
            seconds = max((row.get("seconds", 0.0) for row in rows if row["case"] == name), default=0.0)
            print(
                f"{'FAILED' if wrong else 'ok'} {name} on {world} ranks, {seconds:.1f} s", *wrong, sep="\n", flush=True
            )
            if options.show:
                print(next(row["text"] for row in rows if row["case"] == name))
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(CASES, sys.argv[5:], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
    else:
        sys.exit(main())
