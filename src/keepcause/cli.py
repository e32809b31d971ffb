"""The command line: which commands there are, and what becomes of their errors; imports a command when it is named."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from typing import TYPE_CHECKING

from keepcause.commands import TROUBLE, CommandError, complain

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = {
    "check": "find code that hides why something failed",
    "fix": "repair what `check` finds",
    "trace": "tell whether a function is on a worker-init path, and why",
    "checkpoint": "tell what is at a checkpoint path",
    "vendor": "copy the runtime into a project that can't depend on keepcause",
    "rule": "explain a rule",
}
"""Each command, which is a module of `keepcause.commands`, and what it is for."""


def main(arguments: Sequence[str]) -> int:
    """Run one command; returns 0 where nothing is found, 1 where something is, 2 where there was trouble."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    options = _parser(arguments).parse_args(arguments)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except CommandError as error:
        complain(str(error))
        return TROUBLE
    except OSError as error:
        # Nearly always the output can't be written. Python's own flush at exit must not fail for the same reason.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            complain(f"stopped: {error}")
        return TROUBLE
    return code


def _parser(arguments: Sequence[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """The parser, with the options of those commands that `arguments` name: the modules of others are not loaded."""
    parser = argparse.ArgumentParser(prog="keepcause", description="Keep the root cause of a failure visible.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and stop")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, purpose in COMMANDS.items():
        command = commands.add_parser(name, help=purpose)
        if name in arguments:
            loaded = importlib.import_module(f"keepcause.commands.{name}")
            loaded.add_options(command)
            command.set_defaults(run=loaded.run)
    return parser


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"keepcause {version('keepcause')}")
        parser.exit()
