"""Make a virtual environment with the transports' libraries and run matrix.py in it; imports the standard library only.

Arguments go to matrix.py. The environment is made anew when requirements.txt or the Python version changes.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def environment(folder: Path) -> Path:
    """Return the environment's interpreter, after making the environment where it is not there yet."""
    python = folder / "bin" / "python"
    requirements = HERE / "requirements.txt"
    mark = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
    stamp = folder / "made-from"
    if not stamp.exists() or stamp.read_text() != mark:
        venv.create(folder, clear=True, with_pip=True)
        install = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", "-r", str(requirements)]
        subprocess.run(install, check=True)
        stamp.write_text(mark)
    return python


def main() -> int:
    """Run the matrix; returns its exit code."""
    python = environment(Path(os.environ.get("TRANSPORTS_VENV", HERE / ".venv")))
    path = os.pathsep.join(map(str, (ROOT / "src", ROOT / "tests" / "runtime", HERE)))
    # Nothing may listen on, or connect to, more than this machine.
    local = {"PYTHONPATH": path, "RAY_USAGE_STATS_ENABLED": "0", "GLOO_SOCKET_IFNAME": "lo"}
    return subprocess.run([python, HERE / "matrix.py", *sys.argv[1:]], env=os.environ | local, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
