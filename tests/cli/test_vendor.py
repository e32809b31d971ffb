"""`keepcause vendor`: the copy is a package of its own, and no copy takes anything else away."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import keepcause as package

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., subprocess.CompletedProcess[str]]

VERSION = version("keepcause")
RUNTIME = Path(package.__file__).parent / "runtime"
USE = """
import pickle, sys
import errors
from errors import WorkerInitError
from errors._version import __version__
error = WorkerInitError("no device", rank=3, cause=OSError("gone"))
again = pickle.loads(pickle.dumps(error))
assert "keepcause" not in sys.modules
print(type(again).__module__.partition(".")[0], again.rank, repr(again.__cause__), __version__, *sorted(errors.__all__))
"""


def test_the_copy_is_a_package_of_its_own(project: Path, keepcause: Run) -> None:
    done = keepcause("vendor", "vendored/errors")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"vendored/errors: copied the runtime of keepcause {VERSION}\n"
    for path in RUNTIME.glob("*.py"):
        assert (project / "vendored" / "errors" / path.name).read_bytes() == path.read_bytes()
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, 'vendored')\n{USE}"]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert printed.split()[:4] == ["errors", "3", "OSError('gone')", VERSION]
    assert "WorkerInitError" in printed


def test_a_copy_is_there_already(project: Path, keepcause: Run) -> None:
    keepcause("vendor", "errors")
    assert keepcause("vendor", "errors").stdout == f"errors: copied the runtime of keepcause {VERSION} again\n"
    stamp = project / "errors" / "_version.py"
    current = stamp.read_text()
    stamp.write_text(current.replace(VERSION, "0.0.9").replace("FILES = (", 'FILES = (\n    "gone.py",'))
    (project / "errors" / "gone.py").write_text("old = 1\n")
    (project / "errors" / "theirs.py").write_text("own = 1\n")
    done = keepcause("vendor", "errors")
    assert done.stdout == f"errors: an older copy was there: replaced keepcause 0.0.9 by {VERSION}\n"
    assert stamp.read_text() == current
    assert not (project / "errors" / "gone.py").exists()
    assert (project / "errors" / "theirs.py").exists()
    stamp.write_text(current.replace(VERSION, "99.0"))
    done = keepcause("vendor", "errors")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"keepcause: errors: holds a copy of keepcause 99.0, newer than this {VERSION}\n"


def test_where_no_copy_may_be(project: Path, keepcause: Run) -> None:
    (project / "mine").mkdir()
    (project / "mine" / "__init__.py").touch()
    (project / "stamped").mkdir()
    (project / "stamped" / "_version.py").write_text("__version__ = '1'\n")
    for folder, reason in [
        ("mine", "holds something else"),
        ("stamped", "holds something else"),
        ("my-errors", "can't be imported, as 'my-errors' is no name for a package"),
        ("worker.py/errors", "can't be written: Not a directory"),
    ]:
        before = sorted(project.rglob("*"))
        done = keepcause("vendor", folder)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"keepcause: {folder}: {reason}"), done.stderr
        assert sorted(project.rglob("*")) == before
