"""The built wheel, installed into an empty virtual environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from email.message import Message

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

NEWLY_LOADED = """
import json, sys
before = set(sys.modules)
import keepcause
assert not set(sys.modules) & {"keepcause.runtime", "keepcause.lint"}
keepcause.guard
print(json.dumps(sorted({module.__name__ for module in sys.modules.values()} - before)))
"""


def run(*command: str | Path, cwd: Path = Path("/")) -> str:
    """The standard output of `command`, run outside of this project."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the working tree."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=120,
    )
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The executables of a virtual environment that holds the wheel and, as no index may be asked, nothing else."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder)
    run(sys.executable, "-m", "pip", "--python", folder, "install", "--quiet", "--no-index", wheel)
    return folder / "bin"


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    """The wheel's METADATA."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = ROOT / "src" / "keepcause"
    on_disk = {path for path in package.rglob("*") if path.suffix == ".py" or path.name == "py.typed"}
    assert names == {path.relative_to(package.parent).as_posix() for path in on_disk}
    assert "keepcause/py.typed" in names


def test_wheel_holds_the_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/licenses/LICENSE"))
        assert archive.read(name) == (ROOT / "LICENSE").read_bytes()


def test_base_install_needs_nothing(metadata: Message) -> None:
    requirements = metadata.get_all("Requires-Dist", [])
    assert requirements
    assert all("extra ==" in requirement for requirement in requirements)


def test_extras(metadata: Message) -> None:
    assert set(metadata.get_all("Provides-Extra", [])) == {"fix", "flake8", "all"}


def test_readme_is_the_description(metadata: Message) -> None:
    assert str(metadata.get_payload()).strip() == (ROOT / "README.md").read_text(encoding="utf-8").strip()


def test_requires_python(metadata: Message) -> None:
    assert metadata["Requires-Python"] == ">=3.11"


def test_nobody_is_named_as_author(metadata: Message) -> None:
    assert metadata["Author"] is None
    assert metadata["Author-email"] is None


def test_console_script_tells_the_version(scripts: Path) -> None:
    assert run(scripts / "keepcause", "--version").split() == ["keepcause", PROJECT["version"]]


def test_check_works_without_any_extra(scripts: Path, tmp_path: Path) -> None:
    (tmp_path / "clean.py").write_text("print('fine')\n", encoding="utf-8")
    run(scripts / "keepcause", "check", "clean.py", cwd=tmp_path)


def test_fix_without_its_extra_says_what_to_install(scripts: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    text = "def f(rows):\n    raise ValueError(f'{(row for row in [1, 2])}')\n"
    broken.write_text(text, encoding="utf-8")
    command = (scripts / "keepcause", "fix", "broken.py")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "keepcause[fix]" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert broken.read_text(encoding="utf-8") == text


def test_entry_points_load_without_any_extra(scripts: Path) -> None:
    code = """
from importlib.metadata import distribution
for entry in distribution("keepcause").entry_points:
    entry.load()
    print(entry.group, entry.name)
"""
    found = set(run(scripts / "python", "-c", code).splitlines())
    assert found == {"console_scripts keepcause", "flake8.extension KC"}


FIX = ("keepcause fix broken.py", "KC201: 1 repaired, 0 left")
FLAKE8 = ("flake8 --exit-zero broken.py", "broken.py:2:1: KC201")


@pytest.mark.parametrize(("extra", "sessions"), [("fix", [FIX]), ("flake8", [FLAKE8]), ("all", [FLAKE8, FIX])])
def test_an_extra_brings_what_its_commands_need(
    wheel: Path, tmp_path: Path, extra: str, sessions: list[tuple[str, str]]
) -> None:
    (tmp_path / "broken.py").write_text("missing = map(str, [1])\nraise ValueError(f'{missing}')\n", encoding="utf-8")
    venv.create(tmp_path / "venv")
    run(sys.executable, "-m", "pip", "--python", tmp_path / "venv", "install", "--quiet", f"{wheel}[{extra}]")
    for command, says in sessions:
        name, *arguments = command.split()
        assert says in run(tmp_path / "venv" / "bin" / name, *arguments, cwd=tmp_path)


def test_flake8_lists_the_plugin() -> None:
    assert "keepcause: " in run(sys.executable, "-m", "flake8", "--version")


@pytest.mark.parametrize("where", ["empty environment", "this environment"])
def test_the_runtime_is_loaded_on_demand_with_the_standard_library_only(scripts: Path, where: str) -> None:
    python = scripts / "python" if where == "empty environment" else sys.executable
    loaded = json.loads(run(python, "-c", NEWLY_LOADED))
    assert {"keepcause", "keepcause.runtime"} <= set(loaded)
    runtime = [name for name in loaded if f"{name}.".startswith("keepcause.runtime.")]
    others = set(loaded) - {"keepcause", *runtime}
    assert {name for name in others if name.partition(".")[0] not in sys.stdlib_module_names} == set()
