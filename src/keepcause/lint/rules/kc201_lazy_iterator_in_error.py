"""KC201: an error text that prints a lazy iterator instead of its items."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from keepcause.lint.lazy.occasions import error_texts
from keepcause.lint.lazy.rule import LazyRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.finding import Finding
    from keepcause.lint.source import Source


class LazyIteratorInError(LazyRule):
    """An error text prints `<generator object ...>` instead of the items.

    ## What it does

    Finds lazy iterators in the text of an error: generator expressions, `map`, `filter`, `zip`, `enumerate`,
    `reversed`, `iter`, the functions of `itertools`, calls of generator functions, and names and attributes that
    certainly hold one. A text is what an exception, an `assert` or a failing test says, and what `__str__` and
    `__repr__` return, put together by f-strings, `str`, `repr`, `format`, `%`, `join` or `+`.

    ## Why it is bad

    A lazy iterator has no readable form: the error says `unknown: <generator object check.<locals>.<genexpr> at
    0x7f...>`, and the names, which the author took the trouble to find, are lost with the process.

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
            raise KeyError(f"unknown: {[name for name in unknown]}")
    ```

    ## Fix safety

    The iterator is listed where it is shown; where it is bound, if something else has taken items from it before or
    uses it afterwards. That is safe where it changes the text alone: all that is read is known to be a container, and
    the elements are names, constants, attributes of plain names, comparisons, truth tests, or `str`, `repr` and
    `type` of them, which are taken not to raise or act. It is unsafe where listing may raise, act, or take what the
    caller still needs. There is no fix for what never ends, may be huge, reads a file or acts, nor where a list would
    not do: after `next`, or in a truth test.
    """

    code = "KC201"
    name = "lazy-iterator-in-error"
    message = "error text prints a lazy iterator"
    text = "error text"
    fixes = "safe or unsafe, per case"
    nodes = (ast.Raise, ast.Assert, ast.Call, ast.FunctionDef)

    def check(self, node: ast.AST, source: Source) -> Iterator[Finding]:
        """Yield a finding for each lazy iterator that the error text made by `node` prints."""
        yield from self.printed(error_texts(node, source), source)
