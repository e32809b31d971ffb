"""What `check` and `fix` are to look at: paths, lists of paths, or standard input; imports the linter's files."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from keepcause.commands import CommandError
from keepcause.lint.files import says_python

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

STDIN = "-"


@dataclass(frozen=True)
class Inputs:
    """Files and folders; or, where `given` is not None, one name with the text that was read from standard input."""

    paths: tuple[Path, ...]
    given: Mapping[Path, bytes] | None = None


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name what is looked at."""
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="files and folders, without any the working directory; `-` reads one file's text",
    )
    parser.add_argument("--stdin-filename", type=Path, metavar="FILE", help="which file the text of `-` is")
    parser.add_argument(
        "--files-from", metavar="FILE", help="a list of paths, a line each or separated by NUL; `-` reads it"
    )


def inputs(options: argparse.Namespace) -> Inputs:
    """What the options name; raises CommandError where they contradict each other or can't be read."""
    named = list(options.paths)
    listed = options.files_from is not None
    if options.stdin_filename is not None and not named and not listed:
        named = [STDIN]
    if STDIN in named:
        if len(named) > 1 or listed:
            raise CommandError("`-` is one file's text: no other path can be named beside it; a file `-` is `./-`")
        if options.stdin_filename is not None and os.path.isdir(options.stdin_filename):
            raise CommandError(f"--stdin-filename: {options.stdin_filename} is a folder; name a file in it")
        path = options.stdin_filename or Path(STDIN)
        return Inputs((path,), {path: _stdin()})
    if options.stdin_filename is not None:
        raise CommandError("--stdin-filename says which file the text of `-` is: no other path can be named beside it")
    if "" in named:
        raise CommandError("a path is empty; the working directory is `.`")
    if not named and not listed:
        return Inputs((Path(),))
    return Inputs((*map(Path, named), *(_listed(options.files_from) if listed else ())))


def _listed(name: str) -> Iterator[Path]:
    """The paths in a list; what is no Python file is left out, so that the list may be of all files."""
    try:
        data = _stdin() if name == STDIN else Path(name).read_bytes()
    except OSError as error:
        raise CommandError(f"{name}: can't be read: {error.strerror or error}") from error
    lines = data.split(b"\0") if b"\0" in data else data.splitlines()
    for path in (Path(os.fsdecode(line)) for line in lines if line):
        if path.name.endswith('"') and str(path).startswith('"') and not os.path.lexists(path):
            raise CommandError(f"{name}: {path} is a name as git quotes it; have it list names by -z")
        if os.path.isdir(path) or says_python(path):
            yield path


def _stdin() -> bytes:
    if sys.stdin is None:
        raise CommandError("standard input is closed")
    return sys.stdin.buffer.read()
