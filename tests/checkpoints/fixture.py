"""Write the checkpoint tests/fixtures/checkpoints/step-7 with torch, on two ranks; imports harness.

The tests that need no torch read it. It holds every kind of value: whole and sharded tensors, none of them of more than
a few bytes, objects, nested dicts and lists, several dtypes.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import torch
from harness import Rank, child, judged, run

PLACE = Path(__file__).resolve().parents[1] / "fixtures" / "checkpoints" / "step-7"


def save(me: Rank) -> object:
    """Save it."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (me.world,))
    state = {
        "net": {
            "l0": {
                "w": distribute_tensor(torch.ones(4, 3), mesh, [Shard(0)]),
                "b": torch.ones(4, dtype=torch.bfloat16),
            },
            "l10": {"w": torch.ones(2, 1, 1, 1, 300), "b": torch.tensor(1.0, dtype=torch.float64)},
            "l2": {"mask": torch.ones(0, 2, dtype=torch.bool), "f8": torch.ones(3).to(torch.float8_e5m2)},
        },
        "moments": [torch.ones(2, dtype=torch.int64), torch.ones(70_000, 0)],
        "epoch": 4,
    }
    me.only(0, lambda: shutil.rmtree(PLACE, ignore_errors=True))
    PLACE.parent.mkdir(parents=True, exist_ok=True)
    os.chdir(PLACE.parent)  # the metadata holds the path that is given here
    dcp.save(state, checkpoint_id=PLACE.name)
    return None


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child({"save": save}, sys.argv[5:], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
    else:
        sys.exit("\n".join(judged(run(__file__, ["save"], 2), "save")) or 0)
