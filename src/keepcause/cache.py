"""What was found in the files of a program before, kept as JSON with a digest; imports the linter's data only.

What is found in one file may depend on every other of its program: a record tells which files have changed, and keeps
what it takes to say which results still hold.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import re
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from keepcause.lint.checked import Trouble
from keepcause.lint.files import read
from keepcause.lint.finding import Edit, EditKind, Finding, Fix, Grade, Safety, Span, Step, WorkerInit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

_KEPT = 30 * 24 * 3600
"""For how many seconds a record that nobody asks for is kept."""
_MOST_BYTES = 200 * 10**6
"""How much all records may hold."""
_GRAIN = 2 * 10**9
"""A file that changed within so many nanoseconds before it was read may have changed again without its time telling."""
_OWN = re.compile(r"[0-9a-f]{32}\.json|record-\w+\.tmp")
_NOTHING = b"[{}, {}]\nnull"
_TAG_NAME = "CACHEDIR.TAG"
_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# Files of keepcause, which can be deleted at any time.\n"

Result = tuple[tuple[Finding, ...], Trouble | None]
"""What was found in a file, or why it could not be checked."""


class State(NamedTuple):
    """A file as it was: when it was changed, its size, and a digest of its bytes."""

    seen: Sequence[int]
    """When its bytes and when it itself was changed, and which file it is; nothing where that can't be trusted."""
    size: int
    digest: str


class CacheError(Exception):
    """A folder can't be used; the message says why."""


def check_folder(folder: Path) -> None:
    """Raise CacheError where `folder` holds something else than a cache: git would be told to leave that out, too.

    Raises OSError where that can't be seen.
    """
    if folder.exists() and not folder.is_dir():
        raise CacheError(f"{folder}: is no folder")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / _TAG_NAME).exists():
        raise CacheError(f"{folder}: holds other files; name a folder that is new or empty")


class Record:
    """What is known of one program, whose files go by their names below its root."""

    def __init__(self, folder: Path, asked: object, root: str, listed: Iterable[str]) -> None:
        """`asked` is all that decides what is found, but for what the program's files hold, which are `listed`."""
        self.results: dict[str, Result | None] = {}
        """What was found in each file that was checked and is not known to have changed since; None for nothing."""
        self.changed: set[str] = set()
        """The files that have changed since they were last looked at."""
        self.is_outdated = False
        """Whether it no longer says how the files are."""
        self._folder = folder
        self._root = root
        self._listed = sorted(listed)
        key = "\0".join([json.dumps([_tool(), sys.version, asked, root]), *self._listed])
        self._path = folder / f"{_digest(key.encode('utf-8', 'surrogateescape'))}.json"
        self._asked = time.time_ns()
        self._states: dict[str, State] = {}
        self._others: dict[str, State] = {}
        """Files that nobody asks for now, and that are no part of the program."""
        self._program = b""

    def load(self, files: Iterable[str], warn: Callable[[str], object]) -> None:
        """Find out what still holds for `files` and those of the program; `warn` is told of a damaged record."""
        known, self._program = self._kept(warn).split(b"\n")
        states, results = json.loads(known)
        self._others = {name: State(*state) for name, state in states.items()}
        self.results = {name: _result(*result) if result else None for name, result in results.items()}
        for name in sorted({*self._listed, *files}):
            before = self._others.pop(name, None)
            state = self._states[name] = _state(f"{self._root}/{name}", before)
            if before and (state.digest != before.digest or not state.digest):  # what can't be read may be anything
                self.changed.add(name)
                self.results.pop(name, None)
            self.is_outdated |= before != self._trusted(state)

    def _kept(self, warn: Callable[[str], object]) -> bytes:
        """What `store` has written below its digest; nothing where it is not as it was written."""
        try:
            text = b"" if os.path.islink(self._path) else read(self._path)
        except OSError:
            return _NOTHING
        digest, _, kept = text.partition(b"\n")
        if digest != _digest(kept).encode():
            warn(f"{self._path}: damaged; it is not used, and written anew")
            return _NOTHING
        with contextlib.suppress(OSError):
            os.utime(self._path, follow_symlinks=False)
        return kept

    def program(self) -> Any:
        """What was kept of the program beside its files; None where nothing was."""
        return json.loads(self._program)

    def keep_program(self, value: object) -> None:
        """Keep something, which JSON can tell with lists for sets, of the program beside its files."""
        self._program = json.dumps(value, default=list).encode("ascii")

    def store(self) -> None:
        """Keep what was found, unless files were changed meanwhile. Nothing happens in a read-only folder."""
        import tempfile  # only here: it takes as long to load as a record

        if any(_seen(f"{self._root}/{name}") != (state.seen, state.size) for name, state in self._states.items()):
            return
        states = self._others | {name: self._trusted(state) for name, state in self._states.items()}
        results = {name: _plain(result) for name, result in self.results.items()}
        text = json.dumps([states, results]).encode("ascii") + b"\n" + self._program
        with contextlib.suppress(OSError):
            _prepare(self._folder)
            handle, name = tempfile.mkstemp(dir=self._folder, prefix="record-", suffix=".tmp")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(b"%s\n%s" % (_digest(text).encode(), text))
                os.replace(name, self._path)
            except BaseException:
                os.unlink(name)
                raise
            _clean(self._folder)

    def _trusted(self, state: State) -> State:
        """The state, without times where the file changed just before anything was asked of it."""
        is_settled = bool(state.seen) and max(state.seen[:2]) < self._asked - _GRAIN
        return state if is_settled else state._replace(seen=[])


def _state(path: str, before: State | None) -> State:
    """The file's state; it need not be read where time and size are as before."""
    seen, size = _seen(path)
    if before and (seen, size) == (before.seen, before.size):
        return before
    try:
        return State(seen, size, _digest(read(path)))
    except OSError:
        return State([], -1, "")


def _seen(path: str) -> tuple[list[int], int]:
    """When the file's bytes and when it itself was last changed, and which file it is; then its size."""
    try:
        status = os.stat(path)
    except OSError:
        return [], -1
    return [status.st_mtime_ns, status.st_ctime_ns, status.st_ino], status.st_size


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


@functools.cache
def _tool() -> list[list[object]]:
    """The files of this package: another version of it may find something else."""
    found = []
    for top, folders, names in os.walk(os.path.dirname(__file__)):
        folders[:] = [folder for folder in folders if folder not in ("__pycache__", "runtime")]
        for name in names:
            status = os.stat(os.path.join(top, name))
            found.append([os.path.join(top, name), status.st_mtime_ns, status.st_size])
    return sorted(found)


def _prepare(folder: Path) -> None:
    """Make the folder, which git is told to leave out and other programs not to keep."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in ((".gitignore", "*\n"), (_TAG_NAME, _TAG)):
        # Never through a link, which may have come with the checked code and lead anywhere.
        with contextlib.suppress(FileExistsError), open(folder / name, "x", encoding="ascii") as file:
            file.write(text)


def _clean(folder: Path) -> None:
    """Drop what nobody has asked for in a long time, and the oldest where there is too much."""
    oldest = time.time() - _KEPT
    records = [
        (entry.stat(follow_symlinks=False), entry.path) for entry in os.scandir(folder) if _OWN.fullmatch(entry.name)
    ]
    size = 0
    for status, path in sorted(records, key=lambda record: -record[0].st_mtime):
        size += status.st_size
        if status.st_mtime < oldest or size > _MOST_BYTES:
            with contextlib.suppress(OSError):
                os.unlink(path)


# Results as JSON


def _result(findings: Sequence[Any], trouble: Sequence[Any] | None) -> Result:
    return tuple(_finding(*each) for each in findings), Trouble(*trouble) if trouble else None


def _plain(value: object) -> object:
    """A result, or a part of one, as lists of texts and numbers: the fields of each part in their order."""
    fields = getattr(value, "__dataclass_fields__", None)
    if fields is not None:
        return [_plain(getattr(value, name)) for name in fields]
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _finding(
    code: str,
    message: str,
    span: Sequence[int],
    statement: Sequence[int],
    function: int,
    fix: Sequence[Any] | None,
    no_fix: str,
    worker_init: Sequence[Any] | None,
    raised: str,
    at_best: str,
    *others: Any,
) -> Finding:
    return Finding(
        code,
        message,
        Span(*span),
        Span(*statement),
        function,
        _fix(*fix) if fix else None,
        no_fix,
        _worker_init(*worker_init) if worker_init else None,
        raised,
        Grade(at_best),
        *others,
    )


def _worker_init(grade: str, path: Sequence[Any]) -> WorkerInit:
    return WorkerInit(Grade(grade), tuple(Step(*step) for step in path))


def _fix(safety: str, title: str, edits: Sequence[Any]) -> Fix:
    made = (Edit(EditKind(kind), Span(*at), tuple(target), text) for kind, at, target, text in edits)
    return Fix(Safety(safety), title, tuple(made))
