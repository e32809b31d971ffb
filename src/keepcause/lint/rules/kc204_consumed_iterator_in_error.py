"""KC204: a text that lists an iterator after something took items from it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from keepcause.lint.lazy.lifetime import taker_before
from keepcause.lint.lazy.occasions import error_texts, log_texts
from keepcause.lint.lazy.repair import is_made_here, repair_consumed
from keepcause.lint.lazy.rule import LazyRule
from keepcause.lint.lazy.texts import Via
from keepcause.lint.lazy.values import lazy
from keepcause.lint.syntax import short

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.finding import Finding
    from keepcause.lint.lazy.texts import Shown
    from keepcause.lint.source import Source


class ConsumedIteratorInError(LazyRule):
    """A text lists an iterator that something has consumed before.

    ## What it does

    Finds error and log texts that run through a lazy iterator (`list(it)`, `", ".join(it)`, a comprehension) after
    something certainly took items from it on the way there: `any`, `all`, `in`, `next`, a loop, another listing. Of
    an iterator made by `iter`, from which items are meant to be taken one by one, only a run to its end counts. Also
    texts that themselves use up an iterator which an attribute holds from another function: the next one finds nothing.

    ## Why it is bad

    What was taken is gone: the text says `missing: []`, or leaves out the very item that made the check fail.

    ## Bad

    ```python
    def check(saved):
        names = sorted(saved)
        missing = (name for name in names if name not in KNOWN)
        if any(name in NEEDED for name in missing):
            raise KeyError(f"missing: {list(missing)}")
    ```

    ## Good

    ```python
    def check(saved):
        names = sorted(saved)
        missing = [name for name in names if name not in KNOWN]
        if any(name in NEEDED for name in missing):
            raise KeyError(f"missing: {list(missing)}")
    ```

    ## Fix safety

    Unsafe: the iterator is listed where it is bound, so that all of its items are computed there, and everything
    later sees all of them. There is no fix where a list would not do, or for what never ends, may be huge, reads a
    file or acts.
    """

    code = "KC204"
    name = "consumed-iterator-in-error"
    message = "text lists an iterator after something took items from it"
    text = "text"
    fixes = "unsafe"
    nodes = (ast.Raise, ast.Assert, ast.Call, ast.FunctionDef)

    def check(self, node: ast.AST, source: Source) -> Iterator[Finding]:
        """Yield a finding for each consumed iterator that a text made by `node` lists."""
        for shown in error_texts(node, source):
            yield from self._listed("error text", shown, source)
        if isinstance(node, ast.Call):
            for shown in log_texts(node, source):
                yield from self._listed("log text", shown, source)

    def _listed(self, text: str, shown: Shown, source: Source) -> Iterator[Finding]:
        value = lazy(shown.node, source) if shown.via is Via.LISTED else None
        if value is None or shown.node in value.origins:
            return
        what = f"`{short(shown.node)}`, which is {value.what} (line {value.origins[0].lineno})"
        match shown.node:
            case ast.Name() as name if (taker := taker_before(name, value, source)) is not None:
                message = f"{text} lists what is left of {what}: line {taker.lineno} takes items from it first"
            case ast.Attribute() as attribute if not is_made_here(attribute, source):
                message = f"{text} uses up {what}: the next one has no items"
            case _:
                return
        yield self.report(shown, message, repair_consumed(shown.node, value, source), source)
