"""KC103: a new exception raised in a handler without `from` where a worker starts."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from keepcause.lint.chaining import cause
from keepcause.lint.chaining.screen import may_handle
from keepcause.lint.chaining.swallowed import is_swallowed
from keepcause.lint.rule import Rule, Where
from keepcause.lint.syntax import caught_names, last_name, maker, own_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.finding import Finding
    from keepcause.lint.source import Source
    from keepcause.lint.unparsed.file import Unparsed

_RAISE = re.compile(rb"raise(?:[ \t\f]|\\\n)*+[^\s;#\\]")
_EXITS = ("SystemExit", "KeyboardInterrupt")
_NOTHING_THERE = frozenset({"Empty", "StopIteration", "StopAsyncIteration"})
"""What says that there is nothing more, and never why."""
_STOPS = re.compile(r"_*Stop[A-Z]\w*(?<!Error)")
"""Exceptions that tell a loop to end, as StopIteration does."""


class UnchainedRaise(Rule):
    """A new exception raised in a handler without `from` does not take the caught one along.

    ## What it does

    Finds `raise New(...)` without `from` inside an exception handler, in code that runs while a worker process, actor
    or rank starts, or while its parent waits for it to be ready. Left alone are the caught exception itself, exceptions
    that come from elsewhere and may have a cause of their own, those that steer the program (`StopIteration`,
    `CancelledError`, `SystemExit`) or that a `try` around the raise catches and drops, what is raised since a queue is
    `Empty` or an iterator at its end, and guards around an optional import.

    ## Why it is bad

    The caught exception is only the new one's context. One process's traceback shows it as something that happened on
    the side; whoever walks `__cause__` to find the root ends one step too early. `from` says which failure led to
    which, and is what `keepcause.guard` and other transports hand on first.

    ## Bad

    ```python
    class Worker:
        def init_device(self):
            try:
                self.device = open_device(self.rank)
            except OSError:
                raise RuntimeError(f"rank {self.rank} has no device")
    ```

    ## Good

    ```python
    class Worker:
        def init_device(self):
            try:
                self.device = open_device(self.rank)
            except OSError as e:
                raise RuntimeError(f"rank {self.rank} has no device") from e
    ```

    ## Fix safety

    Safe where the raise builds a new exception: only the traceback changes. Unsafe where a function makes it and may
    have given it a cause, where the author put the traceback into the text, or around the `yield` of a
    `contextmanager`, as for KC101. There is no fix where the caught name is bound anew before the raise, where the
    raise sets its own traceback, or in a `finally`, where another exception may be under way.
    """

    code = "KC103"
    name = "unchained-raise"
    message = "`raise` without `from` does not keep the cause of a worker's failure to start"
    where = Where.WORKER_INIT
    fixes = "safe"
    nodes = (ast.Raise,)

    def glance(self, file: Unparsed) -> bool:
        """A file without a handler that by itself seems to raise something new has none."""
        return may_handle(file, _RAISE.search, _may_lose_cause)

    def check(self, node: ast.AST, source: Source) -> Iterator[Finding]:
        """Yield a finding for a new exception that has no cause."""
        match node:
            case ast.Raise(exc=ast.expr() as raised, cause=None):
                caught = cause.caught_at(node, source)
                if (
                    caught is not None
                    and _may_be_new(raised, caught.innermost)
                    and cause.is_unchained(node, caught, source)
                    and not cause.is_control_flow(node, source)
                    and not _exits(raised, source)
                    and not cause.guards_an_import(caught.innermost, source)
                    and not _NOTHING_THERE.issuperset(caught_names(caught.innermost))
                    and not is_swallowed(node, source)
                ):
                    yield self.found(node, source, cause.chain(node, caught, source))


def _may_lose_cause(handler: ast.ExceptHandler) -> bool:
    """Whether a raise of the handler's own, not of a handler in it, may be one that the rule reports."""
    raises = (node for node in own_nodes(handler, ast.ExceptHandler) if isinstance(node, ast.Raise) and not node.cause)
    return any(node.exc is not None and _may_be_new(node.exc, handler) for node in raises)


def _may_be_new(raised: ast.expr, handler: ast.ExceptHandler) -> bool:
    """Whether it may be an error other than what `handler` caught, by the names that it is called."""
    match raised:
        case ast.Call(func=ast.Attribute(value=made, attr="with_traceback")):
            return _may_be_new(made, handler)
        case ast.Name(id=name) if name == handler.name:
            return False
    name = last_name(maker(raised))
    return not (cause.named_control_flow(raised) or name in _EXITS or _STOPS.fullmatch(name))


def _exits(raised: ast.expr, source: Source) -> bool:
    """Whether it ends the program."""
    references = source.scopes.references(maker(raised))
    return any(f"builtins.{name}" in references for name in _EXITS)
