"""Read one rank's part of the model's weights."""

from __future__ import annotations

import json
from pathlib import Path

LAYERS = 2
PARTS = ("attention.weight", "mlp.weight")


def load_shard(path: Path) -> dict[str, list[float]]:
    """The tensors in the file at `path`, by name."""
    saved = json.loads(path.read_text(encoding="utf-8"))
    wanted = [f"layers.{layer}.{part}" for layer in range(LAYERS) for part in PARTS]
    if not saved.keys() >= set(wanted):
        missing = (name for name in wanted if name not in saved)
        raise RuntimeError(f"{path.name} holds {len(saved)} of {len(wanted)} tensors, missing: {missing}")
    return {name: saved[name] for name in wanted}
