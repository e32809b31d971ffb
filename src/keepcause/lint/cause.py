"""The handler that a `raise` lies in, and the repair that chains it to what was caught; standard library only."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepcause.lint.finding import Edit, EditKind, Fix, Safety
from keepcause.lint.scope import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.scope import Binding, Scope
    from keepcause.lint.source import Source

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FRESH_NAMES = ("e", "exc", "err", "error")
_CONTROL_FLOW = frozenset(
    {
        "builtins.StopIteration",
        "builtins.StopAsyncIteration",
        "builtins.GeneratorExit",
        "asyncio.CancelledError",
        "asyncio.exceptions.CancelledError",
        "concurrent.futures.CancelledError",
        "trio.Cancelled",
    }
)


@dataclass(frozen=True)
class Caught:
    """The handlers around a `raise`, innermost first, in the same scope."""

    handlers: tuple[ast.ExceptHandler, ...]
    in_finally: bool
    """The raise lies in an inner `finally`, where another exception may be under way."""

    @property
    def innermost(self) -> ast.ExceptHandler:
        """The handler whose exception is the context of what is raised."""
        return self.handlers[0]


def caught_at(node: ast.Raise, source: Source) -> Caught | None:
    """The handlers that `node` lies in, None if in none; a nested function, lambda or class ends the handler."""
    handlers: list[ast.ExceptHandler] = []
    in_finally = False
    child: ast.AST = node
    for up in source.ancestors(node):
        if isinstance(up, _SCOPES):
            break
        if isinstance(up, ast.ExceptHandler):
            handlers.append(up)
        elif isinstance(up, ast.Try | ast.TryStar) and child in up.finalbody and not handlers:
            in_finally = True
        child = up
    return Caught(tuple(handlers), in_finally) if handlers else None


def is_control_flow(node: ast.Raise, source: Source) -> bool:
    """Whether what is raised steers the program (StopIteration, CancelledError ...) rather than reports a failure."""
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return raised is not None and not _CONTROL_FLOW.isdisjoint(source.scopes.references(raised))


def chain(node: ast.Raise, caught: Caught, source: Source) -> Fix | str:
    """The fix that makes `node` keep what its innermost handler caught, or the reason why there is none."""
    assert node.exc is not None
    handler = caught.innermost
    own = _handler_of(node.exc, caught)
    if own is not None and (rebound := _rebound(own, node, source)):
        return rebound
    if own is handler:
        return _raise_again(node, caught, source)
    refusal = _refusal(node.exc, caught)
    if refusal:
        return refusal
    if handler.name is None:
        name = fresh_name(handler, source)
        edits = [Edit(EditKind.BIND_CAUGHT, source.span(handler), (), name)]
    else:
        if rebound := _rebound(handler, node, source):
            return rebound
        name = handler.name
        edits = []
    edits.append(Edit(EditKind.SET_CAUSE, source.span(node), (), name))
    doubt = _doubt(node.exc, caught, source)
    title = f"Raise from the caught exception: `from {name}`"
    return Fix(Safety.UNSAFE if doubt else Safety.SAFE, f"{title} ({doubt})" if doubt else title, tuple(edits))


def fresh_name(handler: ast.ExceptHandler, source: Source) -> str:
    """A name for what `handler` catches that nothing else in its scope uses.

    The name is deleted when the handler ends, so handlers inside one another get different ones.
    """
    scope = source.scopes.of[handler]
    taken = set(scope.function.names()) | set(scope.names())
    outer = [up for up in _within_scope(handler, source) if isinstance(up, ast.ExceptHandler) and up.name is None]
    numbered = (f"exc{number}" for number in range(1, len(taken) + len(outer) + 2))
    free = [name for name in (*_FRESH_NAMES, *numbered) if name not in taken]
    return free[len(outer)]


def _raise_again(node: ast.Raise, caught: Caught, source: Source) -> Fix | str:
    """`raise e from None` of what the innermost handler caught."""
    if isinstance(source.parents[caught.innermost], ast.TryStar):
        return Fix(
            Safety.SAFE, "Raise it with its cause: drop `from None`", (Edit(EditKind.DROP_CAUSE, source.span(node)),)
        )
    if caught.in_finally:
        return "it stands in a `finally`, where a bare `raise` may raise another exception"
    return Fix(
        Safety.SAFE, "Raise the caught exception as it is: `raise`", (Edit(EditKind.RERAISE, source.span(node)),)
    )


def _handler_of(raised: ast.expr, caught: Caught) -> ast.ExceptHandler | None:
    """The handler around the raise that caught exactly what is raised."""
    if not isinstance(raised, ast.Name):
        return None
    return next((handler for handler in caught.handlers if handler.name == raised.id), None)


def _rebound(handler: ast.ExceptHandler, node: ast.Raise, source: Source) -> str:
    """Why the handler's name no longer holds what it caught at `node`, if so."""
    assert handler.name is not None
    scope = source.scopes.of[handler]
    inner_loop = any(isinstance(up, _LOOPS) for up in _up_to(node, handler, source))
    for binding in _bindings(handler.name, scope):
        if binding.node is handler or handler not in _within_scope(binding.node, source):
            continue
        after_the_raise = _place(binding.node) > _place(node)
        if not after_the_raise or inner_loop:
            return f"`{handler.name}` is bound anew or deleted before the raise"
    return ""


def _bindings(name: str, scope: Scope) -> list[Binding]:
    return scope.elsewhere.get(name, scope).bindings.get(name, [])


def _refusal(raised: ast.expr, caught: Caught) -> str:
    """Why no cause can be set on what is raised, judged by its form."""
    names = {handler.name for handler in caught.handlers if handler.name}
    match raised:
        case ast.Call(func=ast.Attribute(attr="with_traceback")):
            return "the raised exception sets its own traceback"
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if name in names:
            return f"`{name}.{method}()` may return the caught exception itself"
        case ast.Subscript():
            return "the raised exception comes out of a container and may have a cause of its own"
        case ast.IfExp(body=body, orelse=orelse):
            return _refusal(body, caught) or _refusal(orelse, caught)
    return ""


def _doubt(raised: ast.expr, caught: Caught, source: Source) -> str:
    """Why it is not certain that a cause changes only what the error shows; empty where it is.

    `from None` has erased a stored exception's cause already; what is left to fear is that it is the caught exception
    itself.
    """
    if _has_traceback_text(raised, source):
        return "unsafe: the author put the traceback into the text, perhaps since the cause does not pickle"
    match raised:
        case ast.IfExp(body=body, orelse=orelse):
            return _doubt(body, caught, source) or _doubt(orelse, caught, source)
        case ast.Call(func=func):
            return "" if _is_class(func, source) else "unsafe: this call may return the caught exception itself"
        case ast.Name():
            if _is_class(raised, source):
                return ""
            if _handler_of(raised, caught) is not None:
                return ""
            bindings = source.scopes.lookup(raised.id, source.scopes.of[raised])
            built = [b for b in bindings if isinstance(b.value, ast.Call) and _is_class(b.value.func, source)]
            return "" if bindings and len(built) == len(bindings) else "unsafe: it may be the caught exception itself"
        case ast.Attribute() if _is_class(raised, source):
            return ""
    return "unsafe: it may be the caught exception itself"


def _is_class(node: ast.expr, source: Source) -> bool:
    """Whether `node` names a class: one seen here, or by Python's spelling of class names."""
    reference = source.scopes.qualified(node)
    if reference is not None and reference.startswith("builtins."):
        return isinstance(getattr(builtins, reference.removeprefix("builtins."), None), type)
    if reference is not None and reference.startswith(":") and isinstance(node, ast.Name):
        return any(
            binding.kind is Kind.DEFINITION and isinstance(binding.node, ast.ClassDef)
            for binding in source.scopes.lookup(node.id, source.scopes.of[node])
        )
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            spelled = name.lstrip("_")
            return spelled[:1].isupper() and not spelled.isupper()
    return False


def _has_traceback_text(raised: ast.expr, source: Source) -> bool:
    calls = (node for node in ast.walk(raised) if isinstance(node, ast.Call))
    return any(
        reference.startswith("traceback.format_") for call in calls for reference in source.scopes.references(call.func)
    )


def _within_scope(node: ast.AST, source: Source) -> Iterator[ast.AST]:
    """The nodes around `node`, innermost first, up to its function or class."""
    for up in source.ancestors(node):
        if isinstance(up, _SCOPES):
            return
        yield up


def _up_to(node: ast.AST, top: ast.AST, source: Source) -> Iterator[ast.AST]:
    for up in source.ancestors(node):
        if up is top:
            return
        yield up


def _place(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
