"""Cheap test on a file's bytes: can it define an exception class that pickle loses? Imports lines, constructors.

What a class inherits from is followed by name; what it turns down is no exception, or one that is made as its builtin.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepcause.lint.pickling.construct import BUILTIN_EXCEPTIONS, PLAIN, WITHOUT_CONSTRUCTOR
from keepcause.lint.syntax import last_name
from keepcause.lint.unparsed.logical import BETWEEN, NO_WORD, WORD, statements

if TYPE_CHECKING:
    from keepcause.lint.unparsed.file import Unparsed
    from keepcause.lint.unparsed.logical import LogicalLines

_EXCEPTIONS = BUILTIN_EXCEPTIONS | {name.rpartition(".")[2] for name in PLAIN}
_NEUTRAL = frozenset(name.rpartition(".")[2] for name in WITHOUT_CONSTRUCTOR)
_IN_BASES = rb"(?:[^:#\[]|#[^\r\n]*+|\[[^\]]*+\])"
_CLASS = re.compile(
    rb"class(?=[\s\\])%s%s++%s(?:\[|\((?:%s{0,2000}?" % (BETWEEN, WORD, BETWEEN, _IN_BASES)
    + rb"(?:Error|Exception|Exit|Interrupt|Iteration|Warning|Empty|Full|\[[^\]]*?[\[{])|%s{2000}))" % _IN_BASES
)
"""The head of a class with type parameters, with a base that may be a builtin exception or another plain one, or with
more than anybody reads on for."""
_CONSTRUCTOR = re.compile(rb"\0[ \t\f]*+(?:async%s)?def%s__(?:init|new|post_init)__" % (BETWEEN, BETWEEN))


@dataclass(frozen=True)
class _Class:
    """A class by the last names of its bases, empty for what is no name. `fragile`: local or with a constructor."""

    bases: tuple[str, ...]
    fragile: bool


def may_define_exception(file: Unparsed) -> bool:
    """Whether the file may define an exception class."""
    return _CLASS.search(file.code) is not None


def may_lose_exception(file: Unparsed) -> bool:
    """Whether a class that it defines may be an exception that does not survive pickle."""
    try:
        return _Classes(file.lines).may_lose_one()
    except (ValueError, RecursionError, MemoryError):
        return True


class _Classes:
    """The classes of a file, whose names mean the same in all of it."""

    def __init__(self, lines: LogicalLines) -> None:
        """Raise ValueError where some header can't be parsed alone."""
        self._lines = lines
        self._named: defaultdict[str, list[_Class]] = defaultdict(list)
        for start in lines.holding(b"class"):
            line = lines.line(start)
            if line.lstrip().startswith(b"class"):
                for node in statements(line):
                    if isinstance(node, ast.ClassDef) and not node.keywords:
                        bases = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
                        self._named[node.name].append(_Class(tuple(map(last_name, bases)), self._is_fragile(start)))

    def may_lose_one(self) -> bool:
        """Whether one may be an exception that is not just made as the builtin that it inherits from."""
        return any(self._may_be_lost(each) for classes in self._named.values() for each in classes)

    def _is_fragile(self, start: int) -> bool:
        """Whether the class whose header begins at `start` may be local, have a constructor or have one made."""
        code = self._lines.code
        decorated = start > 0 and code[self._lines.start(start) + 1 : start].lstrip().startswith(b"@")
        return (
            any(self._lines.around(start))
            or (decorated and b"dataclass" in code)
            or _CONSTRUCTOR.search(self._lines.block(start)) is not None
        )

    def _may_be_lost(self, one: _Class) -> bool:
        family, is_exception = [one], False
        for member in family:
            for base in member.bases:
                classes, known = self._named.get(base, []), base in _EXCEPTIONS or base in _NEUTRAL
                if len(classes) + known > 1 or (not classes and not known and self._may_be_renamed(base)):
                    return True
                if not classes and not known:
                    return False
                is_exception |= base in _EXCEPTIONS
                family += [each for each in classes if each not in family]
        return is_exception and any(member.fragile for member in family)

    def _may_be_renamed(self, name: str) -> bool:
        """Whether the file gives `name` to something that may have another one."""
        word = re.escape(name.encode())
        given = rb"%s%s[^\0=]*=(?!=)|as%s%s%s" % (word, NO_WORD, BETWEEN, word, NO_WORD)
        return not name or re.search(given, self._lines.code) is not None
