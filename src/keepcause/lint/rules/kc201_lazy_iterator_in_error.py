"""KC201: an error text that prints a lazy iterator instead of its items."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from keepcause.lint.rule import Rule, Where
from keepcause.lint.showing import lazily_shown
from keepcause.lint.texts import error_texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.finding import Finding
    from keepcause.lint.source import Source


class LazyIteratorInError(Rule):
    """An error text prints `<generator object ...>` instead of the items.

    ## What it does

    Finds lazy iterators in the text of an error: generator expressions, `map`, `filter`, `zip`, `enumerate`, `reversed`,
    `iter`, the functions of `itertools`, and calls of generator functions, shown by an f-string, `str`, `repr`, `format`,
    `%`, `+` or as an argument of the exception. A text is what a `raise` or an `assert` says, what an exception class passes
    to `super().__init__`, and what `__str__` and `__repr__` return.

    ## Why it is bad

    A lazy iterator has no readable form: the error says `unknown: <generator object load.<locals>.<genexpr> at 0x7f...>`,
    and the names, which the author took the trouble to find, are lost with the process.

    ## Bad

    ```python
    def check(saved):
        names = sorted(saved)
        unknown = [name for name in names if name not in KNOWN]
        if unknown:
            raise KeyError(f"unknown: {(name for name in unknown)}")
    ```

    ## Good

    ```python
    def check(saved):
        names = sorted(saved)
        unknown = [name for name in names if name not in KNOWN]
        if unknown:
            raise KeyError(f"unknown: {list(name for name in unknown)}")
    ```

    ## Fix safety

    The fix lists the iterator where it is shown, or where it is bound if it is used elsewhere too. It is safe where that
    changes nothing but the text: all that is read is known to be a container, and the elements are names, constants,
    attributes of plain names, comparisons, truth tests, or `str`, `repr` and `type` of them, which are taken not to raise or
    act. There is no fix for what never ends, may be huge, reads a file or acts.
    """

    code = "KC201"
    name = "lazy-iterator-in-error"
    message = "error text prints a lazy iterator"
    where = Where.EVERYWHERE
    fixes = "safe or unsafe, per case"
    nodes = (ast.Raise, ast.Assert, ast.Call, ast.Return)

    def check(self, node: ast.AST, source: Source) -> Iterator[Finding]:
        """Yield a finding for each lazy iterator that the error text made by `node` prints."""
        for said, fix in lazily_shown(error_texts(node, source), source):
            yield self.found(source.statement(node), source, fix, f"error text {said}")
