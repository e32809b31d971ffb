"""What the rules for exception classes that pickle loses share; standard library only."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, ClassVar

from keepcause.lint.pickling.fault import fault
from keepcause.lint.pickling.screen import may_define_exception, may_lose_exception
from keepcause.lint.rule import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.finding import Finding
    from keepcause.lint.source import Source
    from keepcause.lint.unparsed.file import Unparsed


class PicklableRule(Rule):
    """A rule about exception classes that do not survive a round trip through pickle."""

    fixes: ClassVar[str] = "none"
    nodes = (ast.ClassDef,)

    def glance(self, file: Unparsed) -> bool:
        """A file without an exception class has none."""
        return may_define_exception(file)

    def possible(self, file: Unparsed) -> bool:
        """Nor has one without such a class that is local, or made by more than its builtin base."""
        return may_lose_exception(file)

    def judged(self, node: ast.ClassDef, source: Source, raised: str = "") -> Iterator[Finding]:
        """The finding at the head of a class that is lost."""
        reason = fault(node, source)
        if reason:
            no_fix = "give `args` what the constructor needs, or write a `__reduce__`"
            yield self.found_at_head(node, source, no_fix, f"`{node.name}` {self.message}: {reason}", raised)
