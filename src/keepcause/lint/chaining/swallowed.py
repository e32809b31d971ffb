"""Whether what a `raise` raises ends in its own function, unseen; standard library only."""

from __future__ import annotations

import ast
import builtins
import re
from typing import TYPE_CHECKING

from keepcause.lint.syntax import EXITS, SCOPES, caught_names, is_caught, last_name, maker, own_nodes

if TYPE_CHECKING:
    from keepcause.lint.source import Source

_LOOKS = re.compile(r"exc_info|Exception")
"""Names of what gets to know of the exception in hand without being given it, as torch's `ExceptionWrapper`."""
_EXIT_NAMES = frozenset(reference.rpartition(".")[2] for reference in EXITS)
_BROAD = ("", "Exception", "BaseException")


def is_swallowed(node: ast.Raise, source: Source) -> bool:
    """Whether a `try` around `node` catches what it raises, by its name, and drops it: it only steers the function."""
    assert node.exc is not None
    raised = last_name(maker(node.exc))
    child: ast.AST = node
    for up in source.ancestors(node):
        if isinstance(up, SCOPES):
            return False
        if isinstance(up, ast.Try) and child in up.body:
            for handler in up.handlers:
                if any(_catches(name, raised) for name in caught_names(handler)):
                    return _drops(handler, source)
        child = up
    return False


def _catches(name: str, raised: str) -> bool:
    """Whether a handler of the class `name` catches what is called `raised`, as far as their names tell."""
    base, derived = getattr(builtins, name, None), getattr(builtins, raised, None)
    is_derived = isinstance(base, type) and isinstance(derived, type) and issubclass(derived, base)
    return name in (raised, *_BROAD) or is_derived


def _drops(handler: ast.ExceptHandler, source: Source) -> bool:
    """Whether `handler` neither raises, nor ends the process, nor looks at what it caught."""
    for node in own_nodes(handler):
        if isinstance(node, ast.Raise) or is_caught(node, handler):
            return False
        if isinstance(node, ast.Call) and (last_name(node.func) in _EXIT_NAMES or _LOOKS.search(last_name(node.func))):
            return False
    return not logs_traceback(handler, source)


def logs_traceback(handler: ast.ExceptHandler, source: Source) -> bool:
    """Whether `handler` logs or prints the traceback of what it caught."""
    for inner in own_nodes(handler):
        if not isinstance(inner, ast.Call):
            continue
        keywords = {keyword.arg: keyword.value for keyword in inner.keywords}
        shown = keywords.get("exc_info")
        if shown is not None and not (isinstance(shown, ast.Constant) and not shown.value):
            return True
        if last_name(inner.func) == "exception" or any(
            reference.startswith("traceback.") or reference == "sys.excepthook"
            for reference in source.scopes.references(inner.func)
        ):
            return True
    return False
