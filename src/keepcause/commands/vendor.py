"""The command `vendor`: a copy of the runtime, a package of its own; imports no other room."""

from __future__ import annotations

import ast
import re
import secrets
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from keepcause.commands import CLEAN, CommandError

if TYPE_CHECKING:
    import argparse

_RUNTIME = Path(__file__).parents[1] / "runtime"
_STAMP = "_version.py"
"""The one file that only a copy has: which version it is of, and which files are the copy's."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options to its parser."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="the package that the copy becomes")


def run(options: argparse.Namespace) -> int:
    """Make the copy, or bring it up to date."""
    print(_vendored(options.folder))
    return CLEAN


@dataclass(frozen=True)
class _Copy:
    """A copy of the runtime that is in a folder: its version and the names of its files."""

    version: str
    files: frozenset[str]

    @property
    def numbers(self) -> list[int]:
        """The version for comparing."""
        return [int(number) for number in re.findall(r"\d+", self.version)]


def _vendored(folder: Path) -> str:
    """Copy the runtime to `folder` and say what was done; files there that are of no copy stay as they are.

    Raises CommandError where that can't be a package, holds something else or a newer copy, or can't be written.
    """
    new = _Copy(version("keepcause"), frozenset(path.name for path in _RUNTIME.glob("*.py")))
    name = folder.absolute().name
    if not name.isidentifier():
        raise CommandError(f"{folder}: can't be imported, as {name!r} is no name for a package")
    try:
        old = _present(folder)
        if old is not None and old.numbers > new.numbers:
            raise CommandError(f"{folder}: holds a copy of keepcause {old.version}, newer than this {new.version}")
        folder.mkdir(parents=True, exist_ok=True)
        for file in sorted(new.files):
            _write(folder / file, (_RUNTIME / file).read_bytes())
        for file in old.files - new.files if old else ():
            (folder / file).unlink(missing_ok=True)
        _write(folder / _STAMP, _stamp(new).encode())
    except OSError as error:
        raise CommandError(f"{folder}: can't be written: {error.strerror or error}") from error
    if old is None:
        return f"{folder}: copied the runtime of keepcause {new.version}"
    if old.numbers < new.numbers:
        return f"{folder}: an older copy was there: replaced keepcause {old.version} by {new.version}"
    return f"{folder}: copied the runtime of keepcause {new.version} again"


def _present(folder: Path) -> _Copy | None:
    """The copy in `folder`, None where there is nothing; raises CommandError where there is something else."""
    try:
        names = [path.name for path in folder.iterdir()]
    except FileNotFoundError:
        return None
    if not set(names) - {"__pycache__"}:
        return None
    try:
        body = ast.parse((folder / _STAMP).read_bytes()).body
        values = {ast.unparse(node.targets[0]): node.value for node in body if isinstance(node, ast.Assign)}
        files = ast.literal_eval(values["FILES"])
        return _Copy(str(ast.literal_eval(values["__version__"])), frozenset(Path(file).name for file in files))
    except (FileNotFoundError, SyntaxError, KeyError, TypeError, ValueError) as error:
        raise CommandError(f"{folder}: holds something else than a copy of the runtime; name a new folder") from error


def _stamp(copy: _Copy) -> str:
    files = "".join(f'    "{file}",\n' for file in sorted(copy.files))
    return (
        '"""Which version of keepcause the files beside this one are a copy of; made by `keepcause vendor`."""\n\n'
        f'__version__ = "{copy.version}"\nFILES = (\n{files})\n'
    )


def _write(path: Path, data: bytes) -> None:
    """Replace a file at once, so that whoever imports it finds the old one or the new one."""
    temporary = path.with_name(f".keepcause-{secrets.token_hex(8)}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
