"""Write random programs by hypothesmith (`pip install hypothesmith`) into a folder, for `fuzz.py --corpus FOLDER`."""

from __future__ import annotations

import hashlib
import sys
import time
import warnings
from pathlib import Path

import hypothesmith
from hypothesis import HealthCheck, Phase, given, seed, settings


def main(folder: Path, minutes: float) -> None:
    """Generate for so many minutes; each program is a file of its own, named by what it holds."""
    warnings.simplefilter("ignore")
    folder.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + 60 * minutes
    first = time.time_ns()
    while time.monotonic() < deadline:
        for number, programs in enumerate((hypothesmith.from_grammar(), hypothesmith.from_node())):

            @seed(first + number)
            @settings(
                max_examples=15,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(programs)
            def keep(code: str) -> None:
                data = code.encode("utf-8", "surrogatepass")
                (folder / f"{hashlib.sha256(data).hexdigest()[:16]}.py").write_bytes(data)

            keep()
        first += 2
    print(f"{len(list(folder.iterdir()))} programs in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
