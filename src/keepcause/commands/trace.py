"""The command `trace`: whether a function is on a worker-init path, and why; imports linter, report and session."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from keepcause.commands.session import Session
from keepcause.config import ConfigError
from keepcause.config.options import add_file_options
from keepcause.lint.checked import Trouble
from keepcause.lint.files import Tree, program_root
from keepcause.lint.source import SourceError
from keepcause.report import trace

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options to its parser."""
    parser.add_argument("paths", nargs="+", metavar="FILE[:LINE]", help="a place; with --roots: files and folders")
    parser.add_argument("--roots", action="store_true", help="list the launch sites in these instead")
    add_file_options(parser)


def run(options: argparse.Namespace) -> int:
    """Print the way by which each function, or the one at the line, is reached; returns 2 where there was trouble."""
    session = Session(options)
    silent = True
    for place in _places(session, options):
        if isinstance(place, Trouble):
            session.complain(place)
            continue
        path, line = place
        try:
            graph = session.run.engine(path).graph(program_root(Path(os.path.abspath(path))))
            for text in trace.roots(graph, path) if options.roots else trace.functions(graph, path, line):
                sys.stdout.write(text)
                silent = False
        except ConfigError as error:
            session.complain(Trouble(str(error.path), error.reason))
        except SourceError as error:
            session.complain(Trouble(str(path), error.reason, error.line))
    if silent and not session.troubled:
        print("No launch sites found." if options.roots else "No functions found.")
    return session.exit_code(False)


def _places(session: Session, options: argparse.Namespace) -> Iterator[tuple[Path, int | None] | Trouble]:
    """What is asked about: with --roots every file that the paths name, else each path with its line."""
    if options.roots:
        yield from ((Path(found), None) for found in session.files(map(Path, options.paths)))
        return
    for text in options.paths:
        path, line = trace.target(text)
        if os.path.isdir(path):
            yield Trouble(text, "is a folder; name a file, or list the launch sites in it by --roots")
        else:
            yield from (found if isinstance(found, Trouble) else (path, line) for found in Tree().expand([path]))
