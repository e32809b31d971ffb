"""KC109: `raise ... from None` anywhere, for code bases that want none at all."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from keepcause.lint.chaining import cause
from keepcause.lint.chaining.screen import FROM_NONE
from keepcause.lint.files import is_test_path
from keepcause.lint.rule import IN_A_TEST, Rule, Where

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.finding import Finding
    from keepcause.lint.source import Source
    from keepcause.lint.unparsed.file import Unparsed


class RaiseFromNoneAnywhere(Rule):
    """`raise ... from None` hides what happened before, wherever it stands.

    ## What it does

    Finds every `raise ... from None`: inside a handler and outside of one, where a worker starts and everywhere else.
    Off unless it is selected by its code. A raise that KC101 reports is not reported a second time.

    ## Why it is bad

    Often it is not: attribute lookup and argument checks have good reasons for `from None`. A code base that would
    rather see every cause turns this rule on and excuses the exceptions by `# noqa: KC109`.

    ## Bad

    ```python
    def port(text):
        try:
            return int(text)
        except ValueError:
            raise SystemExit(f"not a port: {text}") from None
    ```

    ## Good

    ```python
    def port(text):
        try:
            return int(text)
        except ValueError as e:
            raise SystemExit(f"not a port: {text}") from e
    ```

    ## Fix safety

    As for KC101. Outside of a handler `from None` is dropped: safe for a new exception, unsafe for one that may have a
    cause, which `from None` erased. There is no fix in a test, which may be about just that.
    """

    code = "KC109"
    name = "raise-from-none-anywhere"
    message = "`raise ... from None` hides what happened before"
    where = Where.EVERYWHERE
    unless = "KC101"
    on_by_default = False
    fixes = "safe"
    nodes = (ast.Raise,)

    def glance(self, file: Unparsed) -> bool:
        """A file without `from None` has none."""
        return FROM_NONE.search(file.code) is not None

    def check(self, node: ast.AST, source: Source) -> Iterator[Finding]:
        """Yield a finding for any `from None`."""
        match node:
            case ast.Raise(exc=ast.expr(), cause=ast.Constant(value=None)):
                caught = cause.caught_at(node, source)
                fix = cause.chain(node, caught, source) if caught else cause.unhide(node, source)
                yield self.found(node, source, IN_A_TEST if is_test_path(source.path) else fix)
