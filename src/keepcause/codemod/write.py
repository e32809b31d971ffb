"""The atomic write of a changed file, and its diff; imports the linter's files only."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import secrets
import stat
from typing import TYPE_CHECKING

from keepcause.lint.files import read

if TYPE_CHECKING:
    from pathlib import Path


class WriteError(Exception):
    """A file was left as it was; the message is the reason."""


def write(path: Path, old: bytes, new: bytes) -> None:
    """Replace the file's bytes `old` by `new` at once: whoever reads it, or kills us, finds one or the other.

    Mode and, where allowed, owner stay; of a symbolic link the file behind it is replaced. Raises WriteError, leaving
    the file as it was, where it is read-only, can't be written, or no longer holds `old`.
    """
    try:
        real = path.resolve(strict=True)
        status = _writable(real)
        if read(real) != new:
            _replace(real, status, old, new)
    except RuntimeError as error:
        raise WriteError("its symbolic links run in a circle") from error
    except OSError as error:
        raise WriteError(error.strerror or str(error)) from error


def _writable(path: Path) -> os.stat_result:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise WriteError("not a regular file")
    # The mode is asked as well: a superuser may write everything, but a file that nobody may write is meant to stay.
    if not status.st_mode & 0o222 or not os.access(path, os.W_OK):
        raise WriteError("the file is read-only")
    if not path.parent.stat().st_mode & 0o222 or not os.access(path.parent, os.W_OK | os.X_OK):
        raise WriteError("its directory is read-only")
    return status


def _replace(path: Path, status: os.stat_result, old: bytes, new: bytes) -> None:
    # Named so that nobody takes it for source, should we be killed before it is renamed.
    temporary = path.parent / f".keepcause-{secrets.token_hex(8)}.tmp"
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write(new)
            file.flush()
            for user, group in ((-1, status.st_gid), (status.st_uid, -1)):
                with contextlib.suppress(PermissionError):
                    os.fchown(file.fileno(), user, group)
            os.fchmod(file.fileno(), stat.S_IMODE(status.st_mode))
            os.fsync(file.fileno())
        if read(path) != old:
            raise WriteError("changed by someone else meanwhile")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync(path.parent)


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def diff(path: Path, old: bytes, new: bytes) -> bytes:
    """The unified diff of one file as `git apply` takes it, named from the working directory; empty if nothing differs.

    A file outside of it is named from the root folder, as git takes no path with `..`: the patch is applied in `/`.
    Bytes, as the file may be in any encoding; only a line feed ends a line.
    """
    relative = os.path.relpath(path)
    outside = relative.startswith(f"..{os.sep}")
    name = os.fsencode(os.path.abspath(path) if outside else f"/{relative}")
    lines = difflib.diff_bytes(
        difflib.unified_diff, _diff_lines(old), _diff_lines(new), _quoted(b"a" + name), _quoted(b"b" + name)
    )
    return b"".join(line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in lines)


def _diff_lines(data: bytes) -> list[bytes]:
    return re.findall(rb"[^\n]*\n|[^\n]+", data)


def _quoted(name: bytes) -> bytes:
    if re.search(rb'[\x00-\x1f"\\\x7f]', name):
        escaped = re.sub(rb'[\x00-\x1f"\\\x7f]', lambda match: b"\\%03o" % match[0][0], name)
        return b'"' + escaped + b'"'
    # Without a tab after it, a name would end at its first space.
    return name + b"\t" if b" " in name else name
