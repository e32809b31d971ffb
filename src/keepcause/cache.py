"""What a check of the same files found before, kept as JSON with a digest of it; imports the linter's data only.

What is found in one file may depend on every file of its program: a record holds a whole check, and counts only as long
as none of its files has changed, none has come and none has gone.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sys
import time
from typing import TYPE_CHECKING, Any

from keepcause.lint.checked import Trouble
from keepcause.lint.files import read
from keepcause.lint.finding import Edit, EditKind, Finding, Fix, Grade, Safety, Span, Step, WorkerInit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_KEPT = 30 * 24 * 3600
"""For how many seconds a record that nobody asks for is kept."""
_GRAIN = 2 * 10**9
"""A file that changed within so many nanoseconds before it was read may have changed again without its time telling."""
_OWN = re.compile(r"[0-9a-f]{32}\.json|record-\w+\.tmp")
_TAG_NAME = "CACHEDIR.TAG"
_TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# Files of keepcause, which can be deleted at any time.\n"

State = list[Any]
"""When which file was changed, its size, and a digest of its bytes; no times where they can't be trusted."""
States = dict[str, State]
Result = tuple[tuple[Finding, ...], Trouble | None]
"""What was found in a file, or why it could not be checked."""
Results = dict[str, Result]


class CacheError(Exception):
    """A record can't be used; the message says why."""


def check_folder(folder: Path) -> None:
    """Raise CacheError where `folder` holds something else than a cache: git would be told to leave that out, too.

    Raises OSError where that can't be seen.
    """
    if folder.exists() and not folder.is_dir():
        raise CacheError(f"{folder}: is no folder")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / _TAG_NAME).exists():
        raise CacheError(f"{folder}: holds other files; name a folder that is new or empty")


class Record:
    """One check, known by what was asked of which files."""

    def __init__(self, folder: Path, asked: object, files: Iterable[str]) -> None:
        """`asked` is all that decides what is found, but for what `files`, absolute paths, hold."""
        said = json.dumps([_tool(), sys.version, asked])
        self._files = sorted(files)
        self._folder = folder
        key = "\0".join([said, *self._files]).encode("utf-8", "surrogateescape")
        self._path = folder / f"{_digest(key)}.json"
        self._asked = time.time_ns()

    def load(self) -> Results | None:
        """What was found in which file; None where that is not known any more. Raises CacheError for a damaged one."""
        if os.path.islink(self._path):
            return None
        try:
            text = read(self._path)
        except OSError:
            return None
        digest, _, text = text.partition(b"\n")
        try:
            if digest.decode("ascii", "replace") != _digest(text):
                raise ValueError("its digest differs")
            states, results = json.loads(text)
            if not all(_is_same(path, states[path]) for path in self._files):
                return None
            found = {path: _result(*result) for path, result in results.items()}
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise CacheError(f"{self._path}: damaged; it is not used, and written anew") from error
        with contextlib.suppress(OSError):
            os.utime(self._path, follow_symlinks=False)
        return found

    def states(self) -> States:
        """The state of each file, to be asked for before the files are checked."""
        return {path: _state(path) for path in self._files}

    def store(self, states: States, results: Results) -> None:
        """Keep what was found, unless files were changed since `states`. Nothing happens in a read-only folder."""
        import tempfile  # only here: it takes as long to load as a record

        if any(_seen(path) != state[:2] for path, state in states.items()):
            return
        trusted = {path: [self._trusted(seen), size, digest] for path, (seen, size, digest) in states.items()}
        kept = [trusted, {path: _plain(result) for path, result in results.items()}]
        text = json.dumps(kept).encode("ascii")
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

    def _trusted(self, seen: list[int]) -> list[int]:
        """When a file was changed, if that was long enough before anything was asked of it; else nothing."""
        return seen if seen and max(seen[:2]) < self._asked - _GRAIN else []


def _state(path: str) -> State:
    try:
        return [*_seen(path), _digest(read(path))]
    except OSError:
        return [[], -1, ""]


def _seen(path: str) -> list[Any]:
    """When the file's bytes and when it itself was last changed, and which file it is; then its size."""
    try:
        status = os.stat(path)
    except OSError:
        return [[], -1]
    return [[status.st_mtime_ns, status.st_ctime_ns, status.st_ino], status.st_size]


def _is_same(path: str, state: State) -> bool:
    """Whether the file is as it was: by time and size, else by its bytes."""
    seen, size, digest = state
    now, length = _seen(path)
    try:
        return bool(length == size >= 0 and (now == seen or _digest(read(path)) == digest))
    except OSError:
        return False


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


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
    """Drop what nobody has asked for in a long time."""
    oldest = time.time() - _KEPT
    for entry in os.scandir(folder):
        if _OWN.fullmatch(entry.name) and entry.stat(follow_symlinks=False).st_mtime < oldest:
            with contextlib.suppress(OSError):
                os.unlink(entry.path)


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
