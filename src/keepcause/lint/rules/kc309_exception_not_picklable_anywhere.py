"""KC309: any exception class that does not survive pickle."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from keepcause.lint.pickling.rule import PicklableRule
from keepcause.lint.rule import Where

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.finding import Finding
    from keepcause.lint.source import Source


class ExceptionNotPicklableAnywhere(PicklableRule):
    """An exception class does not survive pickle, wherever it is raised.

    ## What it does

    As KC301, for every exception class. Off unless it is selected by its code. A class that KC301 reports is not
    reported a second time.

    ## Why it is bad

    Errors travel between processes in more places than a worker's start: results of pools, remote calls, caches. A code
    base that wants all of its exceptions to be able to turns this rule on.

    ## Bad

    ```python
    class QuotaError(Exception):
        def __init__(self, *, user, limit):
            super().__init__(f"{user} has used up {limit}")
    ```

    ## Good

    ```python
    class QuotaError(Exception):
        def __init__(self, user, limit):
            super().__init__(user, limit)
    ```

    ## Fix safety

    There is none, as for KC301.
    """

    code = "KC309"
    name = "exception-not-picklable-anywhere"
    message = "does not survive pickle"
    where = Where.EVERYWHERE
    unless = "KC301"
    on_by_default = False

    def check(self, node: ast.AST, source: Source) -> Iterator[Finding]:
        """Yield a finding for a class that is lost."""
        assert isinstance(node, ast.ClassDef)
        yield from self.judged(node, source)
