"""Which files there are: a program's root, its Python files, a folder's listing; standard library only."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_ROOT_MARKS = (".git", "pyproject.toml", "setup.cfg", "setup.py")
_SKIPPED = frozenset({".git", ".venv", "node_modules", "__pycache__"})
_GIT_LIST = ("git", "-c", "core.fsmonitor=false", "ls-files", "-co", "--exclude-standard", "-z")


def program_root(path: Path) -> Path:
    """The folder of the program that the file `path` (absolute) belongs to.

    It is the nearest parent with `.git`, `pyproject.toml`, `setup.cfg` or `setup.py` (the last two not in or below a
    package); where there is none, the folder above the topmost package around the file, else the file's own folder.
    """
    packages = [folder for folder in path.parents if (folder / "__init__.py").is_file()]
    topmost = packages[-1] if packages else None
    for folder in path.parents:
        in_package = topmost is not None and folder.is_relative_to(topmost)
        marks = _ROOT_MARKS[:2] if in_package else _ROOT_MARKS
        if any((folder / mark).exists() for mark in marks):
            return folder
    return topmost.parent if topmost is not None else path.parent


def python_files(folder: Path) -> list[str]:
    """The Python files below `folder`, relative to it with forward slashes, sorted.

    Inside a git repository git lists them, so that ignored files are left out; elsewhere, and where `folder` is itself
    ignored, the folder is walked. Links to folders are not followed.
    """
    listed = _listed_by_git(folder)
    names = _walk(folder) if listed is None else listed
    return sorted({name for name in names if name.endswith(".py")})


def _listed_by_git(folder: Path) -> list[str] | None:
    if not any((up / ".git").exists() for up in (folder, *folder.parents)):
        return None
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        ignored = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", "check-ignore", "-q", "."],
            cwd=folder,
            env=environment,
            check=False,
            capture_output=True,
        )
        if ignored.returncode == 0:
            return None
        listing = subprocess.run(_GIT_LIST, cwd=folder, env=environment, check=False, capture_output=True)
    except OSError:
        return None
    if listing.returncode != 0:
        return None
    names = (os.fsdecode(name) for name in listing.stdout.split(b"\0") if name.endswith(b".py"))
    return [name for name in names if os.path.lexists(folder / name)]


def _walk(folder: Path) -> list[str]:
    found: list[str] = []
    for top, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        relative = os.path.relpath(top, folder)
        prefix = "" if relative == "." else relative.replace(os.sep, "/") + "/"
        found += [prefix + name for name in names]
    return found
