"""`keepcause fix`: what is changed, what is left and why, and that no file is ever half written."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., subprocess.CompletedProcess[str]]

MIXED = """\
class Worker:
    def init_device(self):
        try:
            self.open()
        except OSError as error:
            raise error \\
                from None
    def init_model(self):
        try:
            self.open()
        except OSError:
            raise RuntimeError("no model") from None
    def init_cache(self):
        try:
            self.open()
        except OSError:
            raise failed() from None
    def init_again(self, failures):
        try:
            self.open()
        except OSError:
            raise failures[0] from None
"""
REPAIRED = MIXED.replace("raise error \\\n                from None", "raise").replace(
    'OSError:\n            raise RuntimeError("no model") from None',
    'OSError as error:\n            raise RuntimeError("no model") from error',
)
UNSAFE = REPAIRED.replace(
    "OSError:\n            raise failed() from None", "OSError as error:\n            raise failed() from error"
)
REASONS = """\
  1 left: its fix needs --unsafe-fixes
  1 left: the raised exception comes out of a container and may have a cause of its own
"""


def test_fix(project: Path, keepcause: Run) -> None:
    (project / "worker.py").write_text(MIXED)
    done = keepcause("fix", ".")
    assert (done.returncode, done.stderr) == (1, "")
    assert (project / "worker.py").read_text() == REPAIRED
    assert "worker.py:16:13: KC101" in done.stdout
    assert "  = fix (unsafe): Raise from the caught exception: `from error` (this call may return" in done.stdout
    assert "  = not repaired: its fix needs --unsafe-fixes\n" in done.stdout
    assert "worker.py:21:13: KC101" in done.stdout
    assert "  = no fix: the raised exception comes out of a container and may have a cause of its own\n" in done.stdout
    assert done.stdout.endswith(f"\nKC101: 2 repaired, 2 left\n{REASONS}")
    assert keepcause("fix", "-q", "--unsafe-fixes", "--output-format=concise").stdout.startswith("worker.py:21:13: ")
    assert (project / "worker.py").read_text() == UNSAFE
    done = keepcause("fix", "--unsafe-fixes")
    assert (done.returncode, done.stdout.splitlines()[-2]) == (1, "KC101: 0 repaired, 1 left")
    assert (project / "worker.py").read_text() == UNSAFE


def test_nothing_is_left(project: Path, keepcause: Run) -> None:
    done = keepcause("fix")
    assert (done.returncode, done.stdout, done.stderr) == (0, "KC101: 1 repaired, 0 left\n", "")
    done = keepcause("fix")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Nothing found.\n", "")
    done = keepcause("fix", "-q", "--output-format=json")
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
    for command in ("check", "fix"):
        done = keepcause(command, "worker.py", "nowhere.py")
        assert (done.returncode, done.stdout) == (2, "Nothing found in what could be checked.\n")


def test_diff(project: Path, keepcause: Run, worker: str) -> None:
    (project / "worker.py").write_text(MIXED)
    (project / "a b\t.py").write_bytes(worker.replace("\n", "\r\n").encode())
    (project / "latin.py").write_bytes(("# coding: latin-1\n# \xe9\n" + worker).encode("latin-1"))
    before = {path: path.read_bytes() for path in project.iterdir()}
    done = subprocess.run([sys.executable, "-m", "keepcause", "fix", "--diff", "."], capture_output=True, timeout=60)
    assert done.returncode == 1
    assert {path: path.read_bytes() for path in project.iterdir()} == before
    assert done.stderr.decode() == f"KC101: 4 can be repaired, 2 left\n{REASONS}"
    names = re.findall(rb"^\+\+\+ .*", done.stdout, re.MULTILINE)
    assert names == [b'+++ "b/a b\\011.py"', b"+++ b/latin.py", b"+++ b/worker.py"]
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "-c", "core.autocrlf=false", "apply", "-"], input=done.stdout, check=True)
    assert (project / "worker.py").read_text() == REPAIRED
    assert keepcause("fix", "--diff", "-q", "latin.py", "a b\t.py").stdout == ""


def test_json_lists_what_is_left(project: Path, keepcause: Run) -> None:
    (project / "worker.py").write_text(MIXED)
    done = keepcause("fix", "--output-format=json")
    assert [(found["location"]["row"], bool(found["fix"])) for found in json.loads(done.stdout)] == [
        (16, True),
        (21, False),
    ]
    assert done.stderr == f"KC101: 2 repaired, 2 left\n{REASONS}"


def test_exit_non_zero_on_fix(project: Path, keepcause: Run) -> None:
    done = keepcause("fix", "--exit-non-zero-on-fix")
    assert (done.returncode, done.stdout) == (1, "KC101: 1 repaired, 0 left\n")
    assert keepcause("fix", "--exit-non-zero-on-fix").returncode == 0


def test_show_fixes(project: Path, keepcause: Run) -> None:
    (project / "more.py").write_text(MIXED + "def check(rows):\n    raise ValueError(f'{(n for n in (1, 2))}')\n")
    (project / "other.py").touch()
    done = keepcause("fix", "--show-fixes", "--diff")
    assert done.stderr.startswith(
        "more.py:\n  2 can be repaired: KC101 raise-from-none\n  1 can be repaired: KC201 lazy-iterator-in-error\n"
        "worker.py:\n  1 can be repaired: KC101 raise-from-none\nKC101: 3 can be repaired, 2 left\n"
    )
    done = keepcause("fix", "--show-fixes", "--output-format=concise", "worker.py")
    assert done.stdout == "worker.py:\n  1 repaired: KC101 raise-from-none\nKC101: 1 repaired, 0 left\n"
    assert keepcause("fix", "--show-fixes", "worker.py").stdout == "Nothing found.\n"


def test_a_long_run_counts_on_a_terminal(project: Path, worker: str, on_a_terminal: Callable[..., bytes]) -> None:
    for number in range(400):
        (project / f"worker_{number}.py").write_text(worker)
    shown = on_a_terminal("fix", "--diff", "-q", "--single-file", stdout=subprocess.DEVNULL).decode()
    numbers = [int(number) for number in re.findall(r"\r(\d+) of 401 files", shown)]
    assert numbers == sorted(set(numbers))
    assert numbers
    assert re.fullmatch(r"(\r\d+ of 401 files|\r\x1b\[K)+", shown)
    assert shown.endswith("\r\x1b[K")
    assert on_a_terminal("fix", "--diff", "-q", "worker.py", stdout=subprocess.DEVNULL) == b""


def test_several_passes_and_lines_that_move(project: Path, keepcause: Run) -> None:
    """A repair that joins lines moves the functions below it, of which the program was read before."""
    (project / "start.py").write_text("import worker\n\n\ndef init_worker():\n    worker.load()\n")
    below = "def load():\n    try:\n        f()\n    except OSError:\n        raise failed() from None\n"
    (project / "worker.py").write_text(MIXED + below)
    done = keepcause("fix", "-q", "--output-format=concise")
    assert "worker.py:26:9: KC101" in done.stdout
    assert "-> load" in done.stdout


def test_every_other_byte_stays(project: Path, keepcause: Run, worker: str) -> None:
    texts = {
        "crlf.py": (worker.replace("\n", "\r\n"), "utf-8"),
        "cr.py": (worker.replace("\n", "\r"), "utf-8"),
        "bom.py": ("\ufeff# ß\n" + worker, "utf-8"),
        "shift_jis.py": ("# coding: shift_jis\n# 機器\n" + worker, "shift_jis"),
        "latin.py": ("# -*- coding: latin-1 -*-\n# \xe9\x85\n" + worker, "latin-1"),
        "mixed.py": ("\f# \x1c\u2028\r\n\n\t\r" + worker.rstrip(), "utf-8"),
    }
    for name, (text, encoding) in texts.items():
        (project / name).write_bytes(text.encode(encoding))
        (project / name).chmod(0o640)
    assert keepcause("fix", *texts).stdout == "KC101: 6 repaired, 0 left\n"
    for name, (text, encoding) in texts.items():
        expected = text.replace("OSError", "OSError as e").replace("from None", "from e")
        assert (project / name).read_bytes() == expected.encode(encoding)
        assert (project / name).stat().st_mode & 0o777 == 0o640


def test_what_can_not_be_written_is_named(project: Path, keepcause: Run, worker: str) -> None:
    (project / "a.py").write_text(worker)
    (project / "a.py").chmod(0o444)
    done = keepcause("fix")
    assert done.returncode == 2
    assert done.stderr == "keepcause: a.py: not repaired: the file is read-only\n"
    assert done.stdout == "KC101: 1 repaired, 0 left, 1 failed\n  1 failed: the file is read-only\n"
    assert (project / "a.py").read_text() == worker
    assert "from e" in (project / "worker.py").read_text()


def test_without_libcst(project: Path, keepcause: Run) -> None:
    (project / "libcst.py").write_text("raise ModuleNotFoundError('no', name='libcst')")
    done = keepcause("fix", env={**os.environ, "PYTHONPATH": str(project)})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "keepcause: `keepcause fix` needs LibCST: pip install 'keepcause[fix]'\n"


def test_interrupted(project: Path, worker: str) -> None:
    """Wherever Ctrl-C strikes, each file is old or new, nothing stays behind and no traceback is shown."""
    new = worker.replace("OSError", "OSError as e").replace("from None", "from e")
    files = [project / f"worker_{number:03}.py" for number in range(120)]
    struck = 0
    for number in range(4):
        for path in files:
            path.write_text(worker)
        command = [sys.executable, "-m", "keepcause", "fix", "-q", "--single-file", *map(str, files)]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background shell may ignore it
        )
        deadline = time.monotonic() + 60
        while process.poll() is None and files[8 * number].read_text() == worker and time.monotonic() < deadline:
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert errors == ""
        contents = [path.read_text() for path in files]
        assert set(contents) <= {worker, new}
        assert sorted(project.glob("worker_*")) == files
        assert not list(project.glob(".keepcause*"))
        struck += process.returncode == 130
        assert process.returncode in (0, 130)
        assert process.returncode == 130 or contents == [new] * len(files)
    assert struck


def test_interrupted_while_starting(project: Path, keepcause: Run) -> None:
    (project / "tomllib.py").write_text("raise KeyboardInterrupt")
    done = keepcause("check", env={**os.environ, "PYTHONPATH": str(project)})
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


STRUCTURED = """\
class Worker:
    def init_device(self, rank):
        try:
            self.open()
        except OSError:
            raise RuntimeError("no device") from None
"""
RAISED = STRUCTURED.replace("OSError", "OSError as e").replace(
    'RuntimeError("no device") from None', 'WorkerInitError("no device", rank=rank) from e'
)


def test_structured(project: Path, keepcause: Run) -> None:
    (project / "worker.py").write_text(STRUCTURED)
    done = keepcause("fix", "--diff", "--structured")
    assert (done.returncode, (project / "worker.py").read_text()) == (1, STRUCTURED)
    assert done.stderr.startswith("KC101: 1 can be repaired, 0 left\nKC401: 1 can be repaired, 0 left\n")
    done = keepcause("fix", "--structured")
    assert (done.returncode, done.stderr) == (0, "")
    assert (project / "worker.py").read_text() == f"from keepcause import WorkerInitError\n\n\n{RAISED}"
    *_, last = done.stdout.splitlines()
    assert last.startswith(f"{project}: imports keepcause, but declares no dependency on it: declare it, or copy")
    assert "`keepcause vendor DIR`" in last
    assert keepcause("fix", "--structured").stdout == "Nothing found.\n"


def test_structured_hides_what_a_comment_says_is_hidden(project: Path, keepcause: Run) -> None:
    text = STRUCTURED.replace("None\n", "None  # the path is a secret\n")
    (project / "worker.py").write_text(text)
    keepcause("fix", "--structured")
    structured = text.replace('RuntimeError("no device")', 'WorkerInitError("no device", rank=rank)')
    assert (project / "worker.py").read_text() == f"from keepcause import WorkerInitError\n\n\n{structured}"
    keepcause("fix", "--unsafe-fixes")
    assert "from e  # the path is a secret\n" in (project / "worker.py").read_text()


def test_structured_is_asked_for(project: Path, keepcause: Run) -> None:
    (project / "worker.py").write_text(STRUCTURED)
    assert "  1 left: its fix needs --structured\n" in keepcause("fix", "--select", "KC401").stdout
    assert (project / "worker.py").read_text() == STRUCTURED
    assert keepcause("fix", "--structured", "--ignore", "KC4", "--diff").stderr == "KC101: 1 can be repaired, 0 left\n"
    assert "KC401" not in keepcause("check").stdout


@pytest.mark.parametrize("condition", ["if TYPE_CHECKING:", "try:"])
def test_structured_where_the_class_is_imported_under_a_condition(
    project: Path, keepcause: Run, condition: str
) -> None:
    """What type checkers see alone, or what may be missing, can't be raised."""
    more = "\nexcept ImportError:\n    pass" if condition == "try:" else ""
    text = f"{condition}\n    from keepcause import WorkerInitError{more}\n\n\n{STRUCTURED}"
    (project / "worker.py").write_text(text)
    done = keepcause("fix", "--structured", "--select=KC401", "-q", "--output-format=concise")
    assert (done.returncode, (project / "worker.py").read_text()) == (1, text)
    done = keepcause("fix", "--structured", "--select=KC401")
    assert "  1 left: `WorkerInitError` is imported only under a condition\n" in done.stdout


def test_structured_as_configured(project: Path, keepcause: Run) -> None:
    config = 'worker-init-error = "service.errors:StartError"\nrank-names = ["self.number"]\n'
    (project / "pyproject.toml").write_text(f"[tool.keepcause]\n{config}")
    package = project / "service"
    package.mkdir()
    (package / "__init__.py").touch()
    text = STRUCTURED.replace("self.open()", "self.open(self.number)").replace(" from None", " from e")
    text = text.replace("OSError", "OSError as e").replace('"no device"', 'f"{self.number}: no device"')
    (package / "worker.py").write_text(f"import os\n\nfrom .errors import Other\n\n\n{text}")
    done = keepcause("fix", "--structured", "service")
    assert (done.returncode, done.stdout) == (0, "KC401: 1 repaired, 0 left\n")
    head = "import os\n\nfrom .errors import Other, StartError\n\n\n"
    raised = text.replace("RuntimeError", "StartError").replace('device")', 'device", rank=self.number)')
    assert (package / "worker.py").read_text() == head + raised


def test_a_declared_dependency(project: Path, keepcause: Run) -> None:
    for name, text in [
        ("pyproject.toml", '[project]\nname = "x"\ndependencies = ["torch", "keepcause>=0.1"]\n'),
        ("pyproject.toml", '[dependency-groups]\nrun = ["keepcause[fix]"]\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\nkeepcause = "^0.1"\n'),
        ("setup.py", "from setuptools import setup\nsetup(install_requires=['keepcause ; python_version>\"3\"'])\n"),
        ("setup.cfg", "[options]\ninstall_requires =\n    torch\n    keepcause~=0.1\n"),
        ("requirements.txt", "torch\nkeepcause==0.1 # errors\n"),
        ("requirements/base.txt", "keepcause\n"),
    ]:
        (project / "requirements").mkdir(exist_ok=True)
        (project / "worker.py").write_text(STRUCTURED)
        (project / name).write_text(text)
        assert keepcause("fix", "--structured").stdout.endswith("KC401: 1 repaired, 0 left\n"), name
        (project / name).write_text("" if name.endswith((".toml", ".txt")) else "# nothing")
    for name, text in [
        ("pyproject.toml", '[tool.keepcause]\nignore = ["KC202"]\n'),
        ("requirements.txt", "# keepcause\nkeepcauses\nnot-keepcause\n"),
    ]:
        (project / "worker.py").write_text(STRUCTURED)
        (project / name).write_text(text)
        assert "declares no dependency" in keepcause("fix", "--structured").stdout, name


def test_keys_under_the_opposite_name(project: Path, keepcause: Run) -> None:
    text = """\
import torch


def load_weights(model, path):
    saved = torch.load(path)
    missing = set(saved) - set(model.state_dict())
    raise RuntimeError(f"{path}: missing {missing}")
"""
    (project / "worker.py").write_text(text)
    note = (
        "  = note: `missing` (line 6) holds what the checkpoint has and the model lacks, so it goes to `unexpected`\n"
    )
    assert note in keepcause("check", "--select", "KC402").stdout
    assert keepcause("fix", "--structured", "-q").returncode == 0
    raised = text.replace(
        'RuntimeError(f"{path}: missing {missing}")', "DCPLoadError(path=path, unexpected=list(missing))"
    )
    assert (project / "worker.py").read_text() == raised.replace(
        "import torch\n", "import torch\nfrom keepcause import DCPLoadError\n"
    )
