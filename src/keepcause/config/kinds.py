"""The kinds of values that a key may have, as a file and as an option say them; imports the codes of the rules."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from keepcause.config.globs import anchored
from keepcause.lint.rule import all_codes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def _words(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _parts(text: str) -> list[str]:
    """What commas and line ends divide: names of files may hold blanks."""
    return [part.strip() for part in re.split(r"[,\n]", text) if part.strip()]


@dataclass(frozen=True)
class Kind:
    """One kind of value.

    `read` turns what a file holds into what is used; it is told the folder that globs count from. `parse` turns an
    option's text into what a file would hold. Both raise ValueError. `says` is what documentation calls it.
    """

    says: str
    read: Callable[[object, Path], Any]
    metavar: str = ""
    parse: Callable[[str], object] = _words
    choices: tuple[str, ...] = ()


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        hint = f"; write {_parts(value)}" if isinstance(value, str) and value else ""
        raise ValueError(f"expected a list of strings, not {value!r}{hint}")
    return tuple(value)


ALL = "ALL"
"""Stands for the codes of all rules where codes or prefixes are named."""


def means(name: str, code: str) -> bool:
    """Whether `name`, a code, a prefix or `ALL`, means the rule, or the rules, `code`."""
    return name == ALL or code.startswith(name)


def _some_words(text: str) -> list[str]:
    """What an option says that names rules; none, as of an unset variable, would turn off all of them."""
    return _words(text) or [""]


def _codes(value: object, folder: Path) -> tuple[str, ...]:
    """A list of rule codes or prefixes, or `ALL`; raises ValueError where one means no rule."""
    known = all_codes()
    listed = _strings(value)
    for code in listed:
        if not code or not any(means(code, rule) for rule in known):
            raise ValueError(f"no rule has the code {code!r}; there are {', '.join(known)}, and {ALL}")
    return listed


def _functions(value: object, folder: Path) -> tuple[str, ...]:
    """A list of functions; raises ValueError where one means none, as it names no module, or a file instead."""
    listed = _strings(value)
    for pattern in listed:
        if not re.search(r"[.:*?\]]", pattern) or "/" in pattern or ".py:" in pattern:
            raise ValueError(f"expected functions such as 'pkg.mod:Class.method', not {pattern!r}")
    return listed


def _globs(value: object, folder: Path) -> tuple[str, ...]:
    """A list of globs, made absolute."""
    patterns = _strings(value)
    for pattern in patterns:
        if pattern.startswith("!"):
            raise ValueError(f"expected globs of what is left out, not {pattern!r}: nothing is taken back by `!`")
    return tuple(anchored(pattern, folder) for pattern in patterns)


def _codes_by_glob(value: object, folder: Path) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """A table of globs, made absolute, and the codes that each leaves out; `!` before a glob turns it round."""
    if not isinstance(value, dict):
        raise ValueError(f"expected a table of globs and lists of codes, not {value!r}")
    read = []
    for pattern, listed in value.items():
        negation = "!" if pattern.startswith("!") else ""
        try:
            read.append((negation + anchored(pattern.removeprefix("!"), folder), _codes(listed, folder)))
        except ValueError as error:
            raise ValueError(f"{pattern!r}: {error}") from error
    return tuple(read)


def _pairs(text: str) -> object:
    table: dict[str, list[str]] = {}
    pattern = ""
    for word in _words(text):
        before, colon, code = word.rpartition(":")
        pattern = before if colon else pattern
        if not pattern:
            raise ValueError(f"expected GLOB:CODES, not {text!r}")
        table.setdefault(pattern, []).extend([code] if code else [])
    return table


def _names(value: object, folder: Path) -> tuple[str, ...]:
    """A list of names such as `rank` or `self.rank`."""
    listed = _strings(value)
    for name in listed:
        if not all(part.isidentifier() for part in name.split(".")) or name.count(".") > 1:
            raise ValueError(f"expected names such as 'rank' or 'self.rank', not {name!r}")
    return listed


def _reference(value: object, folder: Path) -> str:
    module, colon, name = str(value).partition(":")
    if not isinstance(value, str) or not colon or not all(part.isidentifier() for part in (*module.split("."), name)):
        raise ValueError(f"expected a class such as 'mypkg.errors:MyError', not {value!r}")
    return value


def _truth(value: object, folder: Path) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, not {value!r}")
    return value


def one_of(*choices: str) -> Kind:
    """The kind whose values are these words."""

    def read(value: object, folder: Path) -> str:
        if value not in choices:
            raise ValueError(f"expected one of {', '.join(choices)}, not {value!r}")
        return str(value)

    choices = tuple(map(str, choices))
    return Kind(f"one of {', '.join(f'`{choice}`' for choice in choices)}", read, parse=str, choices=choices)


CODES = Kind("list of rules' codes or their beginnings", _codes, "CODES", _some_words)
FUNCTIONS = Kind("list of functions", _functions, "FUNCTIONS")
GLOBS = Kind("list of globs", _globs, "GLOBS", _parts)
CODES_BY_GLOB = Kind("table of globs, each with a list of codes", _codes_by_glob, "GLOB:CODES", _pairs)
NAMES = Kind("list of names", _names, "NAMES")
REFERENCE = Kind("class, as `module:Name`", _reference, "CLASS", str)
TRUTH = Kind("`true` or `false`", _truth)
