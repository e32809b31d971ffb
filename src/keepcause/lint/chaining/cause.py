"""The handler that a `raise` lies in, and the repair that chains it to what was caught; standard library only."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepcause.lint.binding import Kind
from keepcause.lint.chaining.makers import hands_back, sets_cause
from keepcause.lint.chaining.managers import UNWRAPPED, is_unwrapped
from keepcause.lint.chaining.meant import MEANT, is_meant
from keepcause.lint.finding import Edit, EditKind, Fix, Safety
from keepcause.lint.syntax import LOOPS, SCOPES, block, caught_names, is_caught, last_name, maker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.binding import Binding
    from keepcause.lint.source import Source

_JUMPS = (ast.Raise, ast.Return, ast.Break, ast.Continue)
_FRESH_NAMES = ("e", "exc", "err", "error")
ONLY_A_SYMPTOM = "only what the parent notices, `keepcause.guard` in the worker brings the cause"
_IMPORT_ERRORS = ("ImportError", "ModuleNotFoundError")
_SYMPTOMS = frozenset(
    {
        "EOFError",
        "BrokenPipeError",
        "ConnectionResetError",
        "Empty",
        "TimeoutError",
        "BrokenProcessPool",
        "ActorDiedError",
        "GetTimeoutError",
    }
)
_CONTROL_FLOW = frozenset({"StopIteration", "StopAsyncIteration", "GeneratorExit", "CancelledError", "Return"})
"""`Return` is what Tornado's coroutines raise to return a value."""


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
    for up in _within_scope(node, source):
        if isinstance(up, ast.ExceptHandler):
            handlers.append(up)
        elif isinstance(up, ast.Try | ast.TryStar) and child in up.finalbody and not handlers:
            in_finally = True
        child = up
    return Caught(tuple(handlers), in_finally) if handlers else None


def has_cause(node: ast.Raise) -> bool:
    """Whether `node` says `from`, and not `from None`."""
    return node.cause is not None and not _is_none(node.cause)


def is_control_flow(node: ast.Raise, source: Source) -> bool:
    """Whether what is raised steers the program (StopIteration, CancelledError ...) rather than reports a failure."""
    assert node.exc is not None
    references = source.scopes.references(maker(node.exc))
    names = [reference.removesuffix("()").rpartition(".")[2] for reference in references]
    return named_control_flow(node.exc) or not _CONTROL_FLOW.isdisjoint(names)


def named_control_flow(raised: ast.expr) -> bool:
    """Whether what is raised is called like an exception that steers the program, whatever that name means."""
    return last_name(maker(raised)) in _CONTROL_FLOW


def guards_an_import(handler: ast.ExceptHandler, source: Source) -> bool:
    """Whether `handler` belongs to a `try` that finds out if a package is there.

    That takes an `import` in the body of the `try`; one that does more counts only where nothing but import errors are
    caught.
    """
    tried = source.parents[handler]
    assert isinstance(tried, ast.Try | ast.TryStar)
    imports = [isinstance(statement, ast.Import | ast.ImportFrom) for statement in tried.body]
    return all(imports) or (any(imports) and all(name in _IMPORT_ERRORS for name in caught_names(handler)))


def symptom(handler: ast.ExceptHandler) -> str:
    """What `handler` catches if that is only how a parent notices that a worker died; else empty."""
    return next((name for name in caught_names(handler) if name in _SYMPTOMS), "")


def chain(node: ast.Raise, caught: Caught, source: Source) -> Fix | str:
    """The fix that makes `node` keep what its innermost handler caught, or the reason why there is none."""
    assert node.exc is not None
    handler = caught.innermost
    own = _handler_of(node.exc, caught)
    if own is not None and (rebound := _rebound(own, node, source)):
        return rebound
    if own is handler:
        return _raise_again(node, caught, source)
    if node.cause is None and caught.in_finally:
        return "another exception may be under way in the `finally`, and `from` would hide it"
    values = list(outcomes(node.exc))
    if refusal := next(filter(None, (_refusal(value, caught, source) for value in values)), ""):
        return refusal
    if node.cause is not None and any(_is_stored(value, caught, source) for value in values):
        return unhide(node, source, handler)
    name, edits = handler.name, []
    if name is None:
        if handler.type is None and source.scopes.lookup("BaseException", source.scopes.of[handler]):
            return "`BaseException`, which the handler has to name, is something else here"
        name = fresh_name(handler, source)
        edits = [Edit(EditKind.BIND_CAUGHT, source.span(handler), (), name)]
    elif rebound := _rebound(handler, node, source):
        return rebound
    edits.append(Edit(EditKind.SET_CAUSE, source.span(node), (), name))
    doubt = next(filter(None, (_doubt(value, caught, source) for value in values)), "")
    if doubt and node.cause is None:
        doubt = "it may have a cause already"
    doubt = _intention(node, handler, source) or doubt
    if not doubt and is_unwrapped(values, handler, source):
        doubt = UNWRAPPED
    return _fix(f"Raise from the caught exception: `from {name}`", edits, doubt)


def unhide(node: ast.Raise, source: Source, handler: ast.ExceptHandler | None = None) -> Fix:
    """The fix that takes `from None` off a raise, where no exception is at hand that belongs in its place."""
    assert node.exc is not None
    new = all(_is_new(value, source) for value in outcomes(node.exc))
    doubt = _intention(node, handler, source) or ("" if new else "which erases a cause that it may have")
    return _fix("Drop `from None`", [Edit(EditKind.DROP_CAUSE, source.span(node))], doubt)


def _fix(title: str, edits: list[Edit], doubt: str) -> Fix:
    """The fix, which is unsafe where there is a `doubt`, and says so."""
    return Fix(Safety.UNSAFE, f"{title} ({doubt})", tuple(edits)) if doubt else Fix(Safety.SAFE, title, tuple(edits))


def _intention(node: ast.Raise, handler: ast.ExceptHandler | None, source: Source) -> str:
    """Why the author may not want the traceback to show more than the text; empty where nothing tells of that."""
    assert node.exc is not None
    if _has_traceback_text(node.exc, source):
        return "its text has the traceback already, perhaps since the cause does not pickle"
    return MEANT if node.cause is not None and is_meant(node, handler, source) else ""


def is_unchained(node: ast.Raise, caught: Caught, source: Source) -> bool:
    """Whether what `node` raises is made here, so that only its implicit context knows what was caught."""
    assert node.exc is not None
    return all(_is_made_here(value, caught, source) for value in outcomes(node.exc))


def fresh_name(handler: ast.ExceptHandler, source: Source) -> str:
    """A name for what `handler` catches that nothing else in its function, or in the module outside of one, uses.

    Of the usual names, the one that most handlers of the file use comes first. The name is deleted when the handler
    ends, so handlers inside one another get different ones.
    """
    function = source.scopes.of[handler].function
    taken = set(source.scopes.names_in(function))
    outer = [up for up in _within_scope(handler, source) if isinstance(up, ast.ExceptHandler) and up.name is None]
    usual = sorted(_FRESH_NAMES, key=lambda name: -source.scopes.handler_names[name])
    names = [*usual, *(f"exc{number}" for number in range(1, len(taken) + len(outer) + 2))]
    if function.parent is None and function.star_import:
        names = [f"_{name}" for name in names]  # any other name may have come in by `import *`
    return [name for name in names if name not in taken][len(outer)]


def _raise_again(node: ast.Raise, caught: Caught, source: Source) -> Fix:
    """`raise e from None` of what the innermost handler caught."""
    # A bare `raise` would raise the whole group in `except*`, and in a `finally` perhaps another exception.
    if caught.in_finally or isinstance(source.parents[caught.innermost], ast.TryStar):
        kind, title = EditKind.DROP_CAUSE, "Raise it with its cause: drop `from None`"
    else:
        kind, title = EditKind.RERAISE, "Raise the caught exception as it is: `raise`"
    return _fix(title, [Edit(kind, source.span(node))], _intention(node, caught.innermost, source))


def _handler_of(raised: ast.expr, caught: Caught) -> ast.ExceptHandler | None:
    """The handler around the raise that caught exactly what is raised."""
    if not isinstance(raised, ast.Name):
        return None
    return next((handler for handler in caught.handlers if handler.name == raised.id), None)


# Whether the handler's name still holds what it caught


def _rebound(handler: ast.ExceptHandler, node: ast.Raise, source: Source) -> str:
    """Why the handler's name may no longer hold what it caught at `node`; empty where it does."""
    assert handler.name is not None
    scope = source.scopes.of[handler]
    home = scope.elsewhere.get(handler.name, scope)
    for binding in home.bindings.get(handler.name, []):
        if binding.node is not handler and _may_precede(binding, node, handler, source):
            return f"`{handler.name}` is bound anew or deleted before the raise"
    return ""


def _may_precede(binding: Binding, node: ast.Raise, handler: ast.ExceptHandler, source: Source) -> bool:
    """Whether `binding` may be made between the handler's start and the raise."""
    if handler not in _within_scope(binding.node, source):
        # Code around the handler is done or yet to come; a function that shares the name may be called at any time.
        return source.function(binding.node) is not source.function(handler)
    around = [node, *_up_to(node, handler, source), handler]
    if any(isinstance(up, LOOPS) for up in around):
        return True
    if _place(binding.node) > (node.end_lineno or 0, node.end_col_offset or 0):
        return False
    leaves = False
    child: ast.AST = binding.node
    for up in source.ancestors(binding.node):
        if up in around:
            return not leaves and not _in_other_arm(up, child, around)
        conditional = isinstance(up, ast.If | ast.Match | ast.match_case)
        leaves = conditional and (leaves or isinstance(block(up, child)[-1], _JUMPS))
        child = up
    return True


def _in_other_arm(up: ast.AST, child: ast.AST, around: list[ast.AST]) -> bool:
    """Whether `child` lies in one arm of the `if` statement `up`, and what is `around` the raise in the other."""
    other = around[around.index(up) - 1]
    return isinstance(up, ast.If) and ([child in up.body, other in up.body] in ([True, False], [False, True]))


# What is raised


def outcomes(raised: ast.expr) -> Iterator[ast.expr]:
    """The expressions whose value `raised` may be."""
    match raised:
        case ast.IfExp(body=body, orelse=orelse):
            yield from outcomes(body)
            yield from outcomes(orelse)
        case ast.BoolOp(values=values):
            for value in values:
                yield from outcomes(value)
        case ast.NamedExpr(value=value):
            yield from outcomes(value)
        case _:
            yield raised


def _refusal(value: ast.expr, caught: Caught, source: Source) -> str:
    """Why no cause can be set on `value`, which may be what is raised."""
    match value:
        case ast.Call(func=ast.Attribute(attr="with_traceback")):
            return "the raised exception sets its own traceback"
        case ast.Subscript():
            return "the raised exception comes out of a container and may have a cause of its own"
        case ast.Name(id=name) if name == caught.innermost.name:
            return "it may raise the caught exception itself"
        case ast.Name(id=name) if _handler_of(value, caught) is None:
            bindings = source.scopes.lookup(name, source.scopes.of[value])
            values = [outcome for b in bindings if b.value is not None for outcome in outcomes(b.value)]
            if any(_comes_from(outcome, caught, source) for outcome in values):
                return f"`{name}` may be the caught exception itself"
        case ast.Call() | ast.Attribute() if _comes_from(value, caught, source):
            return f"it comes out of `{caught.innermost.name}` and may be the caught exception itself"
    return ""


def _comes_from(value: ast.expr, caught: Caught, source: Source) -> bool:
    """Whether `value` is what the innermost handler caught, an attribute of it, or what a method of it returns."""
    while True:
        match value:
            case ast.Call(func=func) if is_class(func, source):
                return False
            case ast.Call(func=inner) | ast.Attribute(value=inner) | ast.Subscript(value=inner):
                value = inner
            case _:
                return is_caught(value, caught.innermost)


def _doubt(value: ast.expr, caught: Caught, source: Source) -> str:
    """Why it is not certain that a cause set on `value` changes only what the error shows; empty where it is."""
    if all(_is_new(outcome, source) for outcome in _held(value, source)):
        return ""
    if isinstance(value, ast.Call):
        return "this call may return the caught exception itself"
    return "it may be the caught exception itself"


def _is_stored(value: ast.expr, caught: Caught, source: Source) -> bool:
    """Whether `value` may be an exception from before what was caught, with a cause of its own."""
    made = (ast.Call, ast.Await)
    return _handler_of(value, caught) is not None or any(
        not isinstance(outcome, made) and not _is_new(outcome, source) for outcome in _held(value, source)
    )


def _held(value: ast.expr, source: Source) -> list[ast.expr]:
    """What a name is given in assignments, leaving out None; `value` itself where it is no name, or not only that."""
    if isinstance(value, ast.Name) and not is_class(value, source):
        bindings = source.scopes.lookup(value.id, source.scopes.of[value])
        given = [b.value if b.kind is Kind.ASSIGNMENT and b.value else value for b in bindings]
        return [outcome for each in given for outcome in outcomes(each) if not _is_none(outcome)] or [value]
    return [value]


def _is_made_here(value: ast.expr, caught: Caught, source: Source) -> bool:
    """Whether `value` is certainly not what was caught, and nothing is seen to give it a cause."""
    match value:
        case ast.Call(func=ast.Attribute(value=made, attr="with_traceback")):
            return _is_made_here(made, caught, source)
        case ast.Call(func=func):
            return not (
                _comes_from(value, caught, source)
                or sets_cause(func, source)
                or hands_back(value, caught.innermost.name, source)
            )
        case ast.Name(id=name) if not is_class(value, source):
            bindings = source.scopes.lookup(name, source.scopes.of[value])
            given = [outcome for b in bindings if b.value is not None for outcome in outcomes(b.value)]
            kept = [outcome for outcome in given if not _is_none(outcome)]
            return (
                all(binding.kind is Kind.ASSIGNMENT for binding in bindings)
                and bool(kept)
                and all(_is_new(outcome, source) for outcome in kept)
                and not _is_given_cause(value, source)
            )
    return is_class(value, source) and not sets_cause(value, source)


def _is_given_cause(name: ast.Name, source: Source) -> bool:
    """Whether `name.__cause__` is assigned anywhere in the file."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "__cause__"
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == name.id
        for node in source.scopes.nodes.get(ast.Attribute, ())
    )


def _is_new(value: ast.expr, source: Source) -> bool:
    return is_class(maker(value), source)


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def is_class(node: ast.expr, source: Source) -> bool:
    """Whether `node` names a class: one seen here, `type(x)`, or one by Python's spelling of class names."""
    scopes = source.scopes
    match node:
        case ast.Call(func=ast.Name(id="type"), args=[_]) | ast.Attribute(attr="__class__"):
            return True
    reference = scopes.qualified(node)
    if reference is not None and reference.startswith("builtins."):
        return isinstance(getattr(builtins, reference.removeprefix("builtins."), None), type)
    if reference is not None and reference.startswith(":") and "()" not in reference:
        return any(isinstance(definition, ast.ClassDef) for definition in scopes.definitions.get(reference, ()))
    spelled = last_name(node).lstrip("_")
    return spelled[:1].isupper() and not spelled.isupper()


def _has_traceback_text(raised: ast.expr, source: Source) -> bool:
    """Whether text that the module `traceback` made goes into what is raised, by way of variables too."""
    pending = [raised]
    seen: set[str] = set()
    while pending:
        for node in ast.walk(pending.pop()):
            references = source.scopes.references(node.func) if isinstance(node, ast.Call) else ()
            if any(reference.startswith("traceback.") for reference in references):
                return True
            if isinstance(node, ast.Name) and node.id not in seen:
                seen.add(node.id)
                pending += _given(source.scopes.lookup(node.id, source.scopes.of[node]), source)
    return False


def _given(bindings: list[Binding], source: Source) -> Iterator[ast.expr]:
    """What these bindings give or add to their name."""
    for binding in bindings:
        up = source.parents.get(binding.node)
        if binding.value is not None:
            yield binding.value
        elif isinstance(up, ast.AugAssign):
            yield up.value


def _within_scope(node: ast.AST, source: Source) -> Iterator[ast.AST]:
    """The nodes around `node`, innermost first, up to its function or class."""
    for up in source.ancestors(node):
        if isinstance(up, SCOPES):
            return
        yield up


def _up_to(node: ast.AST, top: ast.AST, source: Source) -> Iterator[ast.AST]:
    for up in source.ancestors(node):
        if up is top:
            return
        yield up


def _place(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
