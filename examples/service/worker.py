"""What a worker process does until it is ready."""

from __future__ import annotations

from pathlib import Path

from checkpoint_loader import load_shard

SHARDS = Path(__file__).parent / "shards"


def device_index(name: str) -> int:
    """The number in a device name such as `cuda:3`."""
    kind, _, index = name.partition(":")
    if kind not in ("cpu", "cuda"):
        raise ValueError(f"unknown kind of device: {kind!r}")
    return int(index)


def init_device(name: str) -> int:
    """Choose the device that this worker computes on."""
    try:
        return device_index(name)
    except ValueError:
        raise RuntimeError("device initialization failed, see the worker's log for the root cause") from None


def init_worker(rank: int, device: str) -> str:
    """Bind the device, load the shard; returns what the launcher prints when the worker is ready."""
    index = init_device(device)
    weights = load_shard(SHARDS / f"rank-{rank}.json")
    return f"{len(weights)} tensors on device {index}"
