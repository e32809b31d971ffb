"""The keys as options of the command line; imports the table of keys."""

from __future__ import annotations

import argparse
import functools
from pathlib import Path
from typing import TYPE_CHECKING

from keepcause.config import KEYS, Config, Key
from keepcause.config.kinds import TRUTH

if TYPE_CHECKING:
    from collections.abc import Mapping


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add an option for each key."""
    for key in KEYS:
        if key.kind is TRUTH:
            parser.add_argument(key.option, action=argparse.BooleanOptionalAction, default=None, help=key.help)
        elif key.kind.choices:
            parser.add_argument(key.option, choices=key.kind.choices, help=key.help)
        else:
            parser.add_argument(
                key.option, type=functools.partial(_value, key), metavar=key.kind.metavar, help=key.help
            )


def add_file_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which file is read."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--config", type=Path, metavar="FILE", help="read this file, not the nearest pyproject.toml")
    which.add_argument("--isolated", action="store_true", help="read no configuration file")


def given(options: Mapping[str, object]) -> Config:
    """The keys that these options, named as attributes are, say something of."""
    said = {key.name: options.get(key.name.replace("-", "_")) for key in KEYS}
    return {name: value for name, value in said.items() if value is not None}


def _value(key: Key, text: str) -> object:
    try:
        return key.kind.read(key.kind.parse(text), Path.cwd())
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
