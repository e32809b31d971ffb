"""What the rules about lazy iterators in texts share: what is said about one, and where; standard library only."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from keepcause.lint.files import is_test_path
from keepcause.lint.lazy.repair import repair
from keepcause.lint.lazy.screen import may_show_lazy
from keepcause.lint.lazy.texts import Via
from keepcause.lint.lazy.values import lazy
from keepcause.lint.rule import IN_A_TEST, Rule, Where
from keepcause.lint.syntax import short

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from keepcause.lint.finding import Finding, Fix
    from keepcause.lint.lazy.texts import Shown
    from keepcause.lint.lazy.values import Lazy
    from keepcause.lint.source import Source
    from keepcause.lint.unparsed.file import Unparsed


class LazyRule(Rule):
    """A rule about what a text shows."""

    where = Where.EVERYWHERE
    text: ClassVar[str]
    """What the rule's texts are called."""

    def possible(self, file: Unparsed) -> bool:
        """A file in which nothing lazy can get into a text has none."""
        return may_show_lazy(file)

    def printed(self, texts: Iterable[Shown], source: Source) -> Iterator[Finding]:
        """A finding for each lazy iterator that the texts print as it is."""
        for shown in texts:
            if shown.via is Via.LISTED:
                continue
            value = lazy(shown.node, source)
            if value is not None:
                fix = repair(shown, value, source)
                yield self.report(shown, f"{self.text} {_happens(shown, value)}", fix, source)

    def report(self, shown: Shown, message: str, fix: Fix | str, source: Source) -> Finding:
        """A finding at the statement that makes this part of the text; of a compound one only the header counts."""
        if is_test_path(source.path):
            fix = IN_A_TEST
        statement = source.statement(shown.node)
        finding = self.found(statement, source, fix, message)
        if not hasattr(statement, "body"):
            return finding
        header, up = shown.node, source.parents[shown.node]
        while up is not statement:
            header, up = (up if isinstance(up, ast.expr) else header), source.parents[up]
        end = source.span(header)
        span = replace(finding.span, end_line=end.end_line, end_column=end.end_column)
        return replace(finding, span=span, statement=span)


def _happens(shown: Shown, value: Lazy) -> str:
    is_inline = shown.node in value.origins
    lines = " and ".join(sorted({str(origin.lineno) for origin in value.origins}, key=int))
    origin = "" if is_inline else f" ({'line' if lines.isdigit() else 'lines'} {lines})"
    what = f"`{short(shown.node)}` is {value.what}{origin}"
    if shown.via is Via.CONCATENATED or (shown.fails and shown.via is Via.FIELD):
        return f"raises TypeError: {what}"
    if shown.via is Via.CHARACTERS:
        return f"joins the characters of `{value.prints}`: {what}"
    return f"prints `{value.prints}`: {what}"
