"""What the screens of one rule say of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepcause.lint.unparsed.file import Unparsed

if TYPE_CHECKING:
    from keepcause.lint.rule import Rule


def may_find(rule: Rule, data: bytes) -> bool:
    """Whether a file with these bytes is parsed for `rule`, be there evidence or not."""
    file = Unparsed.of(data)
    return file is None or (rule.glance(file) and rule.possible(file))


def given(code: str, *generators: str) -> Unparsed:
    """A file of a program that has these generator functions elsewhere."""
    file = Unparsed.of(code.encode(), frozenset(generators))
    assert file is not None
    return file
