"""The command `rule`: explain rules; imports the linter's registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepcause.commands import CLEAN, CommandError
from keepcause.lint.rule import all_rules

if TYPE_CHECKING:
    import argparse


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options to its parser."""
    parser.add_argument("code", nargs="?", metavar="CODE", help="the rule's code; without it, all rules are listed")
    parser.add_argument("--all", action="store_true", help="explain every rule")


def run(options: argparse.Namespace) -> int:
    """Print one rule's page, all of them, or their list."""
    rules = all_rules()
    if options.code is None and not options.all:
        for rule in rules:
            print(f"{rule.code} {rule.name}{'' if rule.on_by_default else ' (off by default)'}")
        return CLEAN
    chosen = [rule for rule in rules if options.all or rule.code == options.code.upper()]
    if not chosen:
        raise CommandError(f"no rule has the code {options.code!r}; there are {', '.join(rule.code for rule in rules)}")
    print("\n".join(rule.page() for rule in chosen), end="")
    return CLEAN
