"""The command line: which commands there are, and what becomes of their errors; imports a command when it is named."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from typing import TYPE_CHECKING

from keepcause.commands import TROUBLE, CommandError, complain

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

PROGRAM = "keepcause"
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
    try:
        try:
            options = _parsed(arguments)
            code: int = options.run(options)
        finally:
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


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of the command that is named; ends the process where help is asked for, or the usage is wrong."""
    if not arguments or arguments[0] not in COMMANDS:
        overview = _overview()
        overview.parse_known_args(arguments)
        overview.error("the command has to come first")
    name, *rest = arguments
    parser = _command(name)
    # Paths may stand on both sides of an option. argparse can't do that and know `--`, behind which `-x` is a path.
    end = rest.index("--") + 1 if "--" in rest else len(rest)
    rest[end:] = [f"./{path}" if path.startswith("-") and path != "-" else path for path in rest[end:]]
    options, unknown = parser.parse_known_intermixed_args(rest)
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{_hint(name, unknown[0].partition('=')[0])}")
    return options


def _overview() -> argparse.ArgumentParser:
    description = "Keep the root cause of a failure visible."
    parser = argparse.ArgumentParser(prog=PROGRAM, description=description, allow_abbrev=False)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and stop")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, purpose in COMMANDS.items():
        commands.add_parser(name, help=purpose)
    return parser


def _command(name: str) -> argparse.ArgumentParser:
    """The parser of one command, whose module is loaded."""
    purpose = COMMANDS[name]
    description = f"{purpose[0].upper()}{purpose[1:]}."
    parser = argparse.ArgumentParser(prog=f"{PROGRAM} {name}", description=description, allow_abbrev=False)
    loaded = importlib.import_module(f"keepcause.commands.{name}")
    loaded.add_options(parser)
    parser.set_defaults(run=loaded.run)
    return parser


def _hint(command: str, option: str) -> str:
    """What may have been meant by an option that `command` does not have."""
    import difflib

    if option.removeprefix("--") in COMMANDS:
        return f"; there is a command `{PROGRAM} {option.removeprefix('--')}`"
    if others := [name for name in COMMANDS if option in _options_of(name)]:
        return f"; `{PROGRAM} {others[0]}` has it"
    close = difflib.get_close_matches(option, _options_of(command), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _options_of(command: str) -> Collection[str]:
    return _command(command)._option_string_actions


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"{PROGRAM} {version(PROGRAM)}")
        parser.exit()
