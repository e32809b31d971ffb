"""KC203: a log entry or warning that prints a lazy iterator instead of its items."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from keepcause.lint.lazy.occasions import is_also_raised, log_texts
from keepcause.lint.lazy.rule import LazyRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.finding import Finding
    from keepcause.lint.source import Source


class LazyIteratorInLog(LazyRule):
    """A log entry prints `<generator object ...>` instead of the items.

    ## What it does

    Finds lazy iterators in what is logged, at any level, by the `logging` module or an object whose name ends in
    `log` or `logger`, and in what `warnings.warn` says: in the message and in the arguments that fill it. What counts
    as lazy is as in KC201.

    ## Why it is bad

    The log is often the only trace of what a worker did before it died, and `<map object at 0x7f...>` tells nothing.

    ## Bad

    ```python
    def start(devices):
        names = sorted(devices)
        logger.info("starting on %s", map(str, names))
    ```

    ## Good

    ```python
    def start(devices):
        names = sorted(devices)
        logger.info("starting on %s", list(map(str, names)))
    ```

    ## Fix safety

    As for KC201. An iterator that is used after the log entry is listed where it is bound, since listing it in the
    call would leave nothing for what comes later.
    """

    code = "KC203"
    name = "lazy-iterator-in-log"
    message = "log text prints a lazy iterator"
    text = "log text"
    fixes = "safe or unsafe, per case"
    nodes = (ast.Call,)

    def check(self, node: ast.AST, source: Source) -> Iterator[Finding]:
        """Yield a finding for each lazy iterator that the log entry made by `node` prints."""
        if isinstance(node, ast.Call):
            texts = (shown for shown in log_texts(node, source) if not is_also_raised(shown, source))
            yield from self.printed(texts, source)
