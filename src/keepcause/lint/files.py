"""Which files there are, and what they hold: a program's root, its Python files, bytes; imports `Trouble` only."""

from __future__ import annotations

import errno
import functools
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from keepcause.lint.checked import Trouble, unreadable

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterable, Iterator

    Failed = Callable[[OSError], object]
    LeftOut = Callable[[str], bool]

ROOT_MARKS = (".git", "pyproject.toml", "setup.cfg", "setup.py")
CACHE_FOLDER = ".keepcause_cache"
SKIPPED = frozenset({".git", ".venv", "node_modules", "__pycache__", CACHE_FOLDER})
"""Folders that are never walked."""
_TEST_PARTS = frozenset({"test", "tests", "testing", "test_utils", "benchmark", "benchmarks"})
_TEST_FILE = re.compile(r"test_.*\.py|.*_test\.py|conftest\.py")
_AT_ONCE = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
"""Opens without waiting: what was a file a moment ago may be a pipe by now."""
_SHEBANG = re.compile(rb"#!.*\bpython[0-9.]*(?:\s|$)")
_GIT = ("git", "-c", "core.fsmonitor=false")
_GIT_ENVIRONMENT = {"LC_ALL": "C", "GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1"}
"""With the option above, what keeps git from running a command that the repository's configuration names: in a partial
clone it would fetch an ignore file that is not there, by any command."""
_GIT_SECONDS = 30
"""How long git may take for one answer; a pipe in place of a file that it reads would keep it for ever."""
_GIT_FAILED = re.compile(r"^warning: could not open directory '(?P<folder>(?s:.*?))/?': (?P<reason>.*)$", re.M)


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
    descriptor = os.open(path, _AT_ONCE)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        size = status.st_size + 4096  # all of it at once, unless it grows or does not say how big it is
        return b"".join(iter(lambda: os.read(descriptor, size), b""))
    finally:
        os.close(descriptor)


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


def is_test_path(path: str) -> bool:
    """Whether `path`, relative to its program's root with forward slashes, is a test or a benchmark."""
    *folders, name = path.split("/")
    return not _TEST_PARTS.isdisjoint(folders) or _TEST_FILE.fullmatch(name) is not None


def says_python(path: Path) -> bool:
    """Whether a file is Python by its name or, where that has no extension, by its first line."""
    if path.suffix:
        return path.suffix in (".py", ".pyi")
    try:
        return _SHEBANG.match(read(path)) is not None
    except OSError:
        return True  # whoever reads it tells what is wrong


class Tree:
    """The Python files below folders, each of which is listed once however often it is asked for."""

    def __init__(self) -> None:
        self._listed: dict[str, tuple[list[str], list[str]] | OSError] = {}
        self._of_git: dict[str, tuple[list[str] | None, list[OSError]]] = {}
        self._exists = functools.cache(os.path.exists)
        self._below = functools.cache(self._place_of)
        self.root = functools.cache(self._root)
        """The root of the program that the files of an absolute folder belong to."""
        self.program_files = functools.cache(self._program_files)
        """The files of the program below a root: every Python file of it but tests."""

    def python_files(
        self, folder: Path | str, failed: Failed = lambda error: None, left_out: LeftOut = lambda name: False
    ) -> list[str]:
        """The Python files below `folder`, relative to it with forward slashes, sorted.

        Inside a git repository git lists them, so that ignored files are left out; elsewhere, and where `folder` is
        itself ignored, the folder is walked. Links to folders are not followed. `failed` is told of each folder that
        can't be listed, `left_out` is asked by their names below `folder` whether a file or folder does not count.
        """
        top = str(folder)
        absolute = os.path.abspath(top)
        if absolute not in self._of_git:
            failures: list[OSError] = []
            self._of_git[absolute] = _listed_by_git(top, failures.append), failures
        names, failures = self._of_git[absolute]
        for failure in failures:
            failed(failure)
        found = self._walk(top, absolute, failed, left_out) if names is None else names
        return sorted({name for name in found if not left_out(name)})

    def place(self, path: Path | str) -> tuple[Path, str]:
        """The root of the program that the file at `path` belongs to, and the file's name below it."""
        folder, name = os.path.split(path)
        root, below = self._below(folder)
        return root, below + name

    def _place_of(self, folder: str) -> tuple[Path, str]:
        """The root of the program around a folder, and what comes before the names of its files below that."""
        folder = os.path.abspath(folder)
        root = self.root(folder)
        below = folder[len(str(root)) :].strip(os.sep).replace(os.sep, "/")
        return root, f"{below}/" if below else ""

    def _root(self, folder: str) -> Path:
        if _shares_root(folder, self._exists):
            return self.root(os.path.dirname(folder))
        return program_root(Path(folder, "_"), self._exists)

    def _program_files(self, root: str) -> list[str]:
        return [name for name in self.python_files(root) if not is_test_path(name)]

    def expand(
        self, paths: Iterable[Path], excluded: Callable[[str, str], bool] = lambda path, top: False
    ) -> Iterator[str | Trouble]:
        """The Python files that `paths` name: a file as it is, a folder by its listing; each file once.

        `excluded` is asked of what lies in a folder `top` whether it is left out; both are absolute.
        """
        seen: set[str] = set()
        for path in paths:
            for absolute, found in self._expand_one(str(path), excluded):
                if absolute not in seen:
                    seen.add(absolute)
                    yield found

    def _expand_one(self, path: str, excluded: Callable[[str, str], bool]) -> Iterator[tuple[str, str | Trouble]]:
        """Each file or trouble, with the file's absolute name or what else tells it from others."""
        if closed := _closed(path):
            yield path, unreadable(path, closed)
        elif os.path.isdir(path):
            failures: list[OSError] = []
            excluding: list[str] = []
            top = os.path.abspath(path)
            below = os.path.join(top, "")

            def left_out(inner: str) -> bool:
                if excluded(below + inner, top):
                    excluding.append(inner)
                    return True
                return False

            names = self.python_files(path, failures.append, left_out)
            yield from ((str(error.filename), unreadable(error.filename, error)) for error in failures)
            if not names and not failures:
                yield path, Trouble(path, f"holds no Python files{' that are not excluded' if excluding else ''}")
            prefix = "" if path == os.curdir else os.path.join(path, "")
            yield from ((below + name, prefix + name) for name in names)
        elif not os.path.lexists(path):
            yield path, Trouble(path, "does not exist")
        elif trouble := notebook(path):
            yield path, trouble
        else:
            yield os.path.abspath(path), path

    def _walk(self, top: str, absolute: str, failed: Failed, left_out: LeftOut) -> Iterator[str]:
        pending = [""]
        while pending:
            inner = pending.pop()
            prefix = f"{inner}/" if inner else ""
            try:
                folders, files = self._list(os.path.join(top, inner) if inner else top, f"{absolute}/{prefix}")
            except OSError as error:
                failed(error)
                continue
            yield from (prefix + name for name in files)
            pending += [prefix + name for name in folders if not left_out(prefix + name)]

    def _list(self, folder: str, key: str) -> tuple[list[str], list[str]]:
        """The folders in a folder that are walked, and its Python files; raises OSError."""
        if key not in self._listed:
            try:
                self._listed[key] = _list(folder)
            except OSError as error:
                self._listed[key] = error
        listed = self._listed[key]
        if isinstance(listed, OSError):
            raise OSError(listed.errno, listed.strerror, folder)
        return listed


def notebook(path: str) -> Trouble | None:
    """Why a file that is called like a notebook is not checked: it holds JSON, which may be Python by chance."""
    if path.endswith(".ipynb"):
        return Trouble(path, "is a notebook; check what `jupyter nbconvert --to script` makes of it")
    return None


def _closed(path: str) -> OSError | None:
    """What may not be entered on the way to a path, by its name or by the absolute one, by which programs are read."""
    try:
        os.lstat(path)
        os.lstat(os.path.abspath(path))
    except PermissionError as error:
        return error
    except (OSError, ValueError):
        pass  # whoever reads it tells what is wrong
    return None


def _shares_root(folder: str, exists: Callable[[str], bool]) -> bool:
    """Whether the files of `folder` certainly have the same root as those of the folder above."""
    packages = exists(f"{folder}/__init__.py") and exists(f"{os.path.dirname(folder)}/__init__.py")
    return packages and not any(exists(f"{folder}/{mark}") for mark in ROOT_MARKS[:2])


def _list(folder: str) -> tuple[list[str], list[str]]:
    folders, files = [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if _is_folder(entry):
                if name not in SKIPPED:
                    folders.append(name)
            elif name.endswith(".py") and not (entry.is_symlink() and os.path.isdir(entry)):
                files.append(name)
    return folders, files


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _listed_by_git(folder: str, failed: Failed) -> list[str] | None:
    absolute = Path(os.path.abspath(folder))
    top = next((up for up in (absolute, *absolute.parents) if os.path.exists(up / ".git")), None)
    if top is None:
        return None
    import subprocess  # only here: it takes as long to load as a big tree to be walked

    try:
        if _git(folder, "check-ignore", "-q", ".").returncode == 0:
            return None
        listing = _git(folder, "ls-files", "-co", "--exclude-standard", "-z")
    except OSError:
        return None
    except subprocess.TimeoutExpired:
        failed(OSError(errno.ETIMEDOUT, f"git has not listed it within {_GIT_SECONDS} s, so it is walked", folder))
        return None
    if listing.returncode != 0:
        return None
    for warning in _GIT_FAILED.finditer(os.fsdecode(listing.stderr)):
        inner = os.path.relpath(top / warning["folder"], absolute)  # git counts from the top of the repository
        failed(OSError(0, warning["reason"], os.path.join(folder, inner)))
    names = (os.fsdecode(name) for name in listing.stdout.split(b"\0") if name.endswith(b".py"))
    # git lists what has been deleted, and submodules, which are folders.
    return [name for name in names if _is_file(os.path.join(folder, name))]


def _is_file(path: str) -> bool:
    """Whether something other than a folder is there, be it a link to nothing."""
    try:
        return not stat.S_ISDIR(os.stat(path).st_mode)
    except OSError:
        return os.path.lexists(path)


def _git(folder: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    import subprocess

    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return subprocess.run(
        (*_GIT, *arguments),
        cwd=folder,
        env=environment | _GIT_ENVIRONMENT,
        check=False,
        capture_output=True,
        timeout=_GIT_SECONDS,
    )
