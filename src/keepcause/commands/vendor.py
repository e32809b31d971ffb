"""The command `vendor`: copy the runtime into a project; imports `keepcause.vendor`, which does it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from keepcause.commands import CLEAN, CommandError
from keepcause.vendor import VendorError, vendor

if TYPE_CHECKING:
    import argparse


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options to its parser."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="the package that the copy becomes")


def run(options: argparse.Namespace) -> int:
    """Make the copy, or bring it up to date."""
    try:
        print(vendor(options.folder))
    except VendorError as error:
        raise CommandError(str(error)) from error
    return CLEAN
