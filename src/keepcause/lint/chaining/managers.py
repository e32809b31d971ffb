"""Whether `contextlib` makes something else of an exception that has a cause; standard library only."""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from keepcause.lint.syntax import caught_names, last_name, maker

if TYPE_CHECKING:
    from keepcause.lint.source import Source

UNWRAPPED = "if the `with` block raises StopIteration, `contextlib` drops a RuntimeError that has it as its cause"
_MANAGERS = ("contextmanager", "asynccontextmanager")
_CATCH_STOPS = frozenset({"", "Exception", "BaseException", "StopIteration", "StopAsyncIteration"})


def is_unwrapped(raised: list[ast.expr], handler: ast.ExceptHandler, source: Source) -> bool:
    """Whether what `handler` caught may come out of a context manager in place of one of `raised` that it causes.

    A StopIteration that is thrown into a generator comes back as the cause of a RuntimeError, so that is what
    `contextlib` takes each such RuntimeError for.
    """
    function, tried = source.function(handler), source.parents[handler]
    return (
        function is not None
        and any(last_name(maker(decorator)) in _MANAGERS for decorator in function.decorator_list)
        and isinstance(tried, ast.Try)
        and any(isinstance(node, ast.Yield) for statement in tried.body for node in ast.walk(statement))
        and not _CATCH_STOPS.isdisjoint(caught_names(handler))
        and any(_may_be_runtime_error(value, source) for value in raised)
    )


def _may_be_runtime_error(value: ast.expr, source: Source) -> bool:
    module, _, name = (source.scopes.qualified(maker(value)) or "").rpartition(".")
    known = getattr(builtins, name, None) if module == "builtins" else None
    return not isinstance(known, type) or issubclass(known, RuntimeError)
