"""How much a preflight adds to a load, and how long the torch-free reading takes; needs torch, run by hand.

Three measurements, each the median of paired runs on two ranks with gloo: a load of 1 GB in 2,000 keys with and without
preflight; a preflight of 200,000 keys beside torch's own reading of their metadata; the reading of 1,000,000 keys
without torch, with its peak memory.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

KEYS, BYTES = 2_000, 1_000_000_000
MANY, MILLION = 200_000, 1_000_000


def model(keys: int, numbers: int, ranks: int = 1, rank: int = 0) -> dict[str, Any]:
    """Return a state dict of this many tensors of float32."""
    import torch

    return {
        f"model.layers.{number // 10}.part{number % 10}.weight": torch.ones(numbers)
        for number in range(keys)
        if number % ranks == rank
    }


def write_many(folder: Path, keys: int) -> None:
    """Write the metadata of a checkpoint of many small tensors, and its one shard file, without the values."""
    import gc
    import pickle

    import torch
    from torch.distributed.checkpoint.filesystem import _StorageInfo
    from torch.distributed.checkpoint.metadata import (
        ChunkStorageMetadata,
        Metadata,
        MetadataIndex,
        StorageMeta,
        TensorProperties,
        TensorStorageMetadata,
    )

    gc.disable()
    saved, stored, paths = {}, {}, {}
    for number in range(keys):
        key = f"model.layers.{number // 10}.part{number % 10}.weight"
        chunk = ChunkStorageMetadata(torch.Size([0, 0]), torch.Size([2, 2]))
        saved[key] = TensorStorageMetadata(TensorProperties(dtype=torch.float32), torch.Size([2, 2]), [chunk])
        stored[MetadataIndex(key, torch.Size([0, 0]), 0)] = _StorageInfo("__0_0.distcp", number * 2_000, 2_000)
        paths[key] = (key,)
    metadata = Metadata(saved, paths, stored, StorageMeta("step-1"), "1.0.0")
    folder.mkdir()
    with (folder / ".metadata").open("wb") as stream:
        pickle.dump(metadata, stream)
    with (folder / "__0_0.distcp").open("wb") as stream:
        stream.truncate(keys * 2_000)


def timed(do: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds that a call takes on the slower rank, and this rank's processor time."""
    import torch.distributed as dist

    dist.barrier()
    begin = time.perf_counter(), time.process_time()
    do()
    busy = time.process_time() - begin[1]
    dist.barrier()
    return time.perf_counter() - begin[0], busy


def median(times: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the medians of both."""
    wall, busy = zip(*times, strict=True)
    return statistics.median(wall), statistics.median(busy)


def one_gigabyte(path: Path, rank: int, world: int, pairs: int) -> str:
    """Load it with and without preflight, in turn; the first pair is not counted."""
    import torch.distributed.checkpoint as dcp

    from keepcause import load, preflight

    state = model(KEYS, BYTES // 4 // KEYS, world, rank)
    dcp.save(state, checkpoint_id=path)
    ways = [lambda: dcp.load(state, checkpoint_id=path), lambda: load(state, path), lambda: preflight(state, path)]
    times: list[list[tuple[float, float]]] = [[], [], []]
    for number in range(pairs + 1):
        for place in (0, 1, 2) if number % 2 else (1, 0, 2):
            times[place].append(timed(ways[place]))
    plain, checked, alone = (each[1:] for each in times)
    ratios = [b[0] / a[0] for a, b in zip(plain, checked, strict=True)]
    return (
        f"{BYTES / 1e9:.0f} GB in {KEYS:,} keys on {world} ranks: dcp.load {median(plain)[0]:.2f} s, with preflight "
        f"{median(checked)[0]:.2f} s, ratio {statistics.median(ratios):.3f}; preflight alone {median(alone)[0]:.3f} s, "
        f"{median(alone)[0] / median(plain)[0]:.1%} of dcp.load ({pairs} pairs)"
    )


def many_keys(path: Path, rank: int, world: int) -> str:
    """Compare a state dict of many keys, and beside it let torch read the metadata."""
    import torch.distributed.checkpoint as dcp

    from keepcause import preflight

    state = {key: value.reshape(2, 2) for key, value in model(MANY, 4).items()}
    half = {key: value for number, (key, value) in enumerate(state.items()) if number % world == rank}
    ways = [
        lambda: dcp.FileSystemReader(path).read_metadata(),
        lambda: preflight(state, path),
        lambda: preflight(half, path),
    ]
    times: list[list[tuple[float, float]]] = [[], [], []]
    for _ in range(3):
        for place, way in enumerate(ways):
            times[place].append(timed(way))
    texts = [f"{wall:.2f} s ({busy:.2f} s of processor time)" for wall, busy in map(median, times)]
    return (
        f"{MANY:,} keys on {world} ranks: torch reads the metadata in {texts[0]}; preflight, which reads them and "
        f"spares the load to do so, takes {texts[1]}; where each rank wants its own half {texts[2]}"
    )


def rank_main(rank: int, world: int, folder: Path, pairs: int) -> None:
    """Measure as one of two ranks; rank 0 prints."""
    import torch
    import torch.distributed as dist

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.FileStore(str(folder / "store"), world), rank=rank, world_size=world)
    for text in (one_gigabyte(folder / "step-1", rank, world, pairs), many_keys(folder / "many", rank, world)):
        if rank == 0:
            print(text, flush=True)
    dist.destroy_process_group()


def torch_free(folder: Path) -> None:
    """Read a million keys without torch, as `keepcause checkpoint` does."""
    from keepcause.runtime.metadata import inspect

    begin = time.perf_counter(), time.process_time()
    found = inspect(folder / "million")
    seconds = time.perf_counter() - begin[0], time.process_time() - begin[1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    size = (folder / "million" / ".metadata").stat().st_size / 1e6
    print(
        f"{len(found.keys):,} keys without torch ({found.verdict}, {size:.0f} MB of metadata): {seconds[0]:.1f} s, "
        f"{seconds[1]:.1f} s of processor time, {peak:.0f} MB at most",
        flush=True,
    )


def main() -> int:
    """Run all three; returns the first exit code that is not 0."""
    parser = argparse.ArgumentParser(description="What a preflight costs.")
    parser.add_argument("--pairs", type=int, default=5, help="paired loads of the big checkpoint")
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        part, folder, *rest = options.part
        if part == "rank":
            rank_main(int(rest[0]), 2, Path(folder), options.pairs)
        elif part == "torch-free":
            torch_free(Path(folder))
        else:
            write_many(Path(folder), int(part))
        return 0
    folder = tempfile.mkdtemp(prefix="checkpoint-")
    command = [sys.executable, __file__, "--pairs", str(options.pairs), "--part"]
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    try:
        subprocess.run([*command, str(MANY), f"{folder}/many"], check=True)
        ranks = [subprocess.Popen([*command, "rank", folder, str(rank)], env=environment) for rank in range(2)]
        code = max(rank.wait() for rank in ranks)
        subprocess.run([*command, str(MILLION), f"{folder}/million"], check=True)
        subprocess.run([*command, "torch-free", folder], check=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
