"""Which files there are, and what they hold: a program's root, its Python files, bytes; standard library only."""

from __future__ import annotations

import errno
import os
import re
import stat
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Failed = Callable[[OSError], object]
    LeftOut = Callable[[str], bool]

ROOT_MARKS = (".git", "pyproject.toml", "setup.cfg", "setup.py")
SKIPPED = frozenset({".git", ".venv", "node_modules", "__pycache__", ".keepcause_cache"})
"""Folders that are never walked."""
_SHEBANG = re.compile(rb"#!.*\bpython[0-9.]*(?:\s|$)")
_GIT = ("git", "-c", "core.fsmonitor=false")
_GIT_ENVIRONMENT = {"LC_ALL": "C", "GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1"}
"""With the option above, what keeps git from running a command that the repository's configuration names: in a partial
clone it would fetch an ignore file that is not there, by any command."""
_GIT_SECONDS = 30
"""How long git may take for one answer; a pipe in place of a file that it reads would keep it for ever."""
_GIT_FAILED = re.compile(r"warning: could not open directory '(?P<folder>.*)': (?P<reason>.*)")


def read(path: Path | str) -> bytes:
    """The file's bytes; raises OSError, whose `strerror` is the reason, where it can't be read.

    Only regular files are opened: reading a pipe or a device may wait for ever, or act.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError as error:
        if os.path.islink(path):
            raise FileNotFoundError(errno.ENOENT, "it is a link to nothing", str(path)) from error
        raise
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    with open(path, "rb", buffering=0, opener=_at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return file.read()


def _at_once(path: str, flags: int) -> int:
    """Open without waiting: what was a file a moment ago may be a pipe by now."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def shares_root(folder: str, exists: Callable[[str], bool]) -> bool:
    """Whether the files of `folder` certainly have the same root as those of the folder above."""
    above = os.path.split(folder)[0]
    packages = exists(f"{folder}/__init__.py") and exists(f"{above}/__init__.py")
    return packages and not any(exists(f"{folder}/{mark}") for mark in ROOT_MARKS[:2])


def program_root(path: Path, exists: Callable[[str], bool] = os.path.exists) -> Path:
    """The folder of the program that the file `path` (absolute) belongs to.

    It is the nearest parent with `.git`, `pyproject.toml`, `setup.cfg` or `setup.py` (the last two not in or below a
    package); where there is none, the folder above the topmost package around the file, else the file's own folder.
    """
    packages = [folder for folder in path.parents if exists(f"{folder}/__init__.py")]
    topmost = packages[-1] if packages else None
    for folder in path.parents:
        in_package = topmost is not None and folder.is_relative_to(topmost)
        marks = ROOT_MARKS[:2] if in_package else ROOT_MARKS
        if any(exists(f"{folder}/{mark}") for mark in marks):
            return folder
    return topmost.parent if topmost is not None else path.parent


def python_files(
    folder: Path, failed: Failed = lambda error: None, left_out: LeftOut = lambda name: False
) -> list[str]:
    """The Python files below `folder`, relative to it with forward slashes, sorted.

    Inside a git repository git lists them, so that ignored files are left out; elsewhere, and where `folder` is itself
    ignored, the folder is walked. Links to folders are not followed. `failed` is told of each folder that can't be
    listed, `left_out` is asked by their names below `folder` whether a file or folder does not count.
    """
    listed = _listed_by_git(folder, failed)
    names = _walk(folder, failed, left_out) if listed is None else listed
    return sorted({name for name in names if name.endswith(".py") and not left_out(name)})


def says_python(path: Path) -> bool:
    """Whether a file is Python by its name or, where that has no extension, by its first line."""
    if path.suffix:
        return path.suffix in (".py", ".pyi")
    try:
        return _SHEBANG.match(read(path)) is not None
    except OSError:
        return True  # whoever reads it tells what is wrong


def _listed_by_git(folder: Path, failed: Failed) -> list[str] | None:
    absolute = Path(os.path.abspath(folder))
    if not any(os.path.exists(up / ".git") for up in (absolute, *absolute.parents)):
        return None
    try:
        if _git(folder, "check-ignore", "-q", ".").returncode == 0:
            return None
        listing = _git(folder, "ls-files", "-co", "--exclude-standard", "-z")
    except OSError:
        return None
    except subprocess.TimeoutExpired:
        failed(OSError(errno.ETIMEDOUT, f"git has not listed it within {_GIT_SECONDS} s, so it is walked", str(folder)))
        return None
    if listing.returncode != 0:
        return None
    for line in os.fsdecode(listing.stderr).splitlines():
        if warning := _GIT_FAILED.fullmatch(line):
            failed(OSError(0, warning["reason"], str(folder / warning["folder"])))
    names = (os.fsdecode(name) for name in listing.stdout.split(b"\0") if name.endswith(b".py"))
    # git lists what has been deleted, and submodules, which are folders.
    return [name for name in names if os.path.lexists(folder / name) and not os.path.isdir(folder / name)]


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return subprocess.run(
        (*_GIT, *arguments),
        cwd=folder,
        env=environment | _GIT_ENVIRONMENT,
        check=False,
        capture_output=True,
        timeout=_GIT_SECONDS,
    )


def _walk(folder: Path, failed: Failed, left_out: LeftOut) -> list[str]:
    found: list[str] = []
    for top, folders, names in os.walk(folder, onerror=failed):
        relative = os.path.relpath(top, folder)
        prefix = "" if relative == "." else relative.replace(os.sep, "/") + "/"
        folders[:] = [name for name in folders if name not in SKIPPED and not left_out(prefix + name)]
        found += [prefix + name for name in names]
    return found
