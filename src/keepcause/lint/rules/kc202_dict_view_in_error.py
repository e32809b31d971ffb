"""KC202: an error text that prints a dict view."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from keepcause.lint.lazy.containers import is_dict
from keepcause.lint.lazy.occasions import error_texts
from keepcause.lint.lazy.repair import list_at_site
from keepcause.lint.lazy.rule import LazyRule
from keepcause.lint.lazy.screen import may_show_view
from keepcause.lint.lazy.texts import Via
from keepcause.lint.lazy.values import values
from keepcause.lint.syntax import short

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.finding import Finding, Fix
    from keepcause.lint.lazy.texts import Shown
    from keepcause.lint.source import Source
    from keepcause.lint.unparsed.file import Unparsed


class DictViewInError(LazyRule):
    """An error text prints `dict_keys([...])` around the items.

    ## What it does

    Finds `.keys()`, `.values()` and `.items()` in the text of an error, where what they are called on is certainly a
    dict: a display, a comprehension, a call of `dict`, `**` arguments, or what `isinstance` has tested. Off unless it
    is selected by its code.

    ## Why it is bad

    The items are there, but wrapped in a name of Python's inside, `dict_keys(['a', 'b'])`. Added to a text by `+`, a
    view raises TypeError, which hides the error.

    ## Bad

    ```python
    def pick(name):
        known = {"a": 1, "b": 2}
        if name not in known:
            raise KeyError(f"{name} is none of {known.keys()}")
    ```

    ## Good

    ```python
    def pick(name):
        known = {"a": 1, "b": 2}
        if name not in known:
            raise KeyError(f"{name} is none of {list(known)}")
    ```

    ## Fix safety

    Safe: running through a dict changes nothing. Unsafe where the text raised TypeError before, and where items are
    joined that may be no strings.
    """

    code = "KC202"
    name = "dict-view-in-error"
    message = "error text prints a dict view"
    on_by_default = False
    text = "error text"
    fixes = "safe"
    nodes = (ast.Raise, ast.Assert, ast.Call, ast.FunctionDef)

    def glance(self, file: Unparsed) -> bool:
        """A file that makes no view of a dict has none."""
        return may_show_view(file)

    def possible(self, file: Unparsed) -> bool:
        """Views are not followed before parsing."""
        return True

    def check(self, node: ast.AST, source: Source) -> Iterator[Finding]:
        """Yield a finding for each dict view that the error text made by `node` prints."""
        for shown in error_texts(node, source):
            kind = _view(shown.node, source) if shown.via is not Via.LISTED else ""
            if kind:
                fails = shown.via is Via.CONCATENATED or shown.fails
                happens = "raises TypeError" if fails else f"prints `dict_{kind}([...])`"
                message = f"error text {happens}: `{short(shown.node)}` is a view of a dict"
                yield self.report(shown, message, _fix(shown, kind, source), source)


def _view(node: ast.expr, source: Source) -> str:
    """Which view of a dict `node` holds: `keys`, `values` or `items`; empty where it is none for certain."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="keys" | "values" | "items" as kind), args=[], keywords=[]):
            return kind if is_dict(inner, source) else ""
        case ast.Name():
            bound = source.scopes.lookup(node.id, source.scopes.of[node])
            if any(isinstance(binding.value, ast.Call) for binding in bound):
                kinds = {_view(v, source) if isinstance(v, ast.Call) else "" for v in values(node, source)}
                return kinds.pop() if len(kinds) == 1 else ""
    return ""


def _fix(shown: Shown, kind: str, source: Source) -> Fix | str:
    if shown.fails:
        return shown.fails
    if shown.kept:
        return f"`{shown.kept}` keeps its arguments"
    way = "call" if source.scopes.is_builtin("list", shown.node) else "display"
    if way == "call" and kind == "keys" and isinstance(shown.node, ast.Call):
        way = "keys"
    return list_at_site(shown, way, "", source, strings=False)
