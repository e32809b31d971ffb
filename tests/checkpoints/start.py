"""Run a script of this folder, cases.py by default, with the transports' environment; imports transports/run.py.

Arguments go to the script; `--script PATH` names another one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TRANSPORTS = ROOT / "tests" / "transports"
sys.path.insert(0, str(TRANSPORTS))

from run import environment  # noqa: E402 - found by the line above


def main() -> int:
    """Run the script; returns its exit code."""
    arguments = sys.argv[1:]
    script = str(HERE / "cases.py")
    if arguments[:1] == ["--script"]:
        script, arguments = arguments[1], arguments[2:]
    python = environment(Path(os.environ.get("TRANSPORTS_VENV", TRANSPORTS / ".venv")))
    path = os.pathsep.join(map(str, (ROOT / "src", HERE)))
    # Nothing may listen on, or connect to, more than this machine.
    local = {"PYTHONPATH": path, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    return subprocess.run([python, script, *arguments], env=os.environ | local, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
