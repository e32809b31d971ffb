"""KC104: a worker that ends without a word about what it caught."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, TypeAlias

from keepcause.lint.chaining.screen import may_handle, may_handle_in_function
from keepcause.lint.chaining.swallowed import logs_traceback
from keepcause.lint.finding import Grade
from keepcause.lint.rule import Rule, Where
from keepcause.lint.syntax import EXITS, LOOPS, block, caught_names, is_caught, last_name, maker, own_nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from keepcause.lint.chaining.screen import Parents
    from keepcause.lint.finding import Finding
    from keepcause.lint.source import Source
    from keepcause.lint.unparsed.file import Unparsed

    Exits: TypeAlias = Callable[[ast.expr], bool]
    """Whether calling or raising an expression ends the process."""
    Meanings: TypeAlias = Callable[[ast.expr], tuple[str, ...]]
    """The dotted names that an expression may stand for."""

_BROAD = re.compile(rb"except(?:[\s\\]*+:|(?:[^:#]|#[^\r\n]*+)*?(?:Exception|[\[{\"']|lambda|:=))")
"""The head of a broad handler, or one with parts in which a colon may stand."""
_BROAD_TYPES = ("Exception", "BaseException")
_EXITS = EXITS | {"builtins.SystemExit"}
_EXIT_NAMES = frozenset(name.rpartition(".")[2] for name in _EXITS)
_OTHER_NAME = re.compile(
    rb"(?:exit|quit|SystemExit)(?![\w\x80-\xff])(?![ \t]*\()(?<!raise SystemExit)(?<!except SystemExit)"
)
"""One of these where it is not called, and so may get another name."""
_HANDS_ON = re.compile(r"send\w*|put(?:_nowait)?|set_exception|set_result|write|dump|publish")
_LOGS = re.compile(r"debug|info|warn(?:ing)?|error|critical|fatal|exception|log\w*|print\w*|write")
_SHOWS = frozenset({"str", "repr", "type", "isinstance", "format", "getattr", "hasattr"})
_CLEANS_UP = re.compile(
    r"_*(?:a?close|shutdown|shut_down|terminate|kill|stop|unlink|remove|rmtree|clean|clear|destroy|release|cancel"
    r"|flush|disconnect|deregister|unregister|delete|finalize|teardown)\w*"
)
_COMES_LAST = re.compile(r"_*(?:exit|join|del|send|put|wait)\w*")
_ENDS_THE_WORKER = "ends the worker"
_ENDS_THE_FUNCTION = "ends the function"


class SilentWorkerExit(Rule):
    """A worker catches everything, ends, and tells its parent nothing.

    ## What it does

    Finds broad handlers (`except:`, `BaseException`, `Exception`) in a function that a launch site starts in a worker,
    or that such a function calls, if they end the worker or the function (`sys.exit`, `os._exit`, `return`, or nothing
    behind them) and neither raise nor hand the exception to anyone: over a connection, a queue or a future, into a
    file, an attribute or a call. A handler that logs the traceback is reported with `--evidence possible` only; one
    that returns a value is not, as it tells the caller, nor is one that cleans up, or that is in a loop, in another
    handler or in a `finally`.

    ## Why it is bad

    The parent sees that the worker is gone, or, after a `return`, exit code 0. What happened stays in a process that is
    no more.

    ## Bad

    ```python
    import multiprocessing
    import sys


    def run(app):
        try:
            app.load()
        except Exception:
            sys.exit(3)


    def launch(app):
        multiprocessing.Process(target=run, args=(app,)).start()
    ```

    ## Good

    ```python
    import multiprocessing
    import traceback


    def run(app, failures):
        try:
            app.load()
        except Exception:
            failures.put(traceback.format_exc())
            raise


    def launch(app, failures):
        multiprocessing.Process(target=run, args=(app, failures)).start()
    ```

    ## Fix safety

    There is none: only the program's authors know the way to the parent. `keepcause.guard` is one.
    """

    code = "KC104"
    name = "silent-worker-exit"
    message = "and does not tell the parent what it caught"
    where = Where.WORKER_CHILD
    fixes = "none"
    nodes = (ast.ExceptHandler,)

    def glance(self, file: Unparsed) -> bool:
        """A file without a broad handler has none."""
        return any(True for _ in file.handling(_BROAD.match))

    def possible(self, file: Unparsed) -> bool:
        """Nor has one without such a handler that seems to end something silently, alone and in its function."""
        renamed = cache(lambda: _OTHER_NAME.search(file.code) is not None)

        def may_exit(node: ast.expr) -> bool:
            name = last_name(node)
            return not name or name in _EXIT_NAMES or renamed()

        def may_be_silent(node: ast.ExceptHandler) -> bool:
            return _is_called_broad(node) and _end(node, may_exit) != "" and not _hands_on(node, _spelled)

        def may_be_found(node: ast.ExceptHandler, parents: Parents) -> bool:
            return _end_in_function(node, parents, may_exit) != "" and may_be_silent(node)

        return may_handle(file, _BROAD.match, may_be_silent) and may_handle_in_function(
            file, _BROAD.match, may_be_found
        )

    def check(self, node: ast.AST, source: Source) -> Iterator[Finding]:
        """Yield a finding for a broad handler that keeps the exception to itself."""
        assert isinstance(node, ast.ExceptHandler)
        if not _is_broad(node, source):
            return
        end = _end_in_function(node, source.parents, partial(_is_exit, source=source))
        if end and not _hands_on(node, partial(_meanings, source=source)):
            caught = f"except {ast.unparse(node.type)}" if node.type else "except"
            message = f"`{caught}` {end} {self.message}"
            finding = self.found_at_head(node, source, "only the program knows a way to its parent", message)
            at_best = Grade.POSSIBLE if logs_traceback(node, source) else Grade.SURE
            yield replace(finding, as_last=end != _ENDS_THE_WORKER, at_best=at_best)


def _is_called_broad(node: ast.ExceptHandler) -> bool:
    return node.type is None or any(name in _BROAD_TYPES for name in caught_names(node))


def _is_broad(node: ast.ExceptHandler, source: Source) -> bool:
    if node.type is None:
        return True
    types = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    broad = (part for part in types if last_name(part) in _BROAD_TYPES)
    return any(source.scopes.qualified(part) == f"builtins.{last_name(part)}" for part in broad)


def _end_in_function(node: ast.ExceptHandler, parents: Parents, exits: Exits) -> str:
    """How the handler ends the worker or its function; empty where it does not."""
    tried = parents[node]
    assert isinstance(tried, ast.Try | ast.TryStar)
    function = _step_of(tried, parents)
    end = _end(node, exits) if function else ""
    return "" if end == _ENDS_THE_FUNCTION and not _is_last(tried, function, parents) else end


def _step_of(tried: ast.Try | ast.TryStar, parents: Parents) -> ast.AST | None:
    """The function that the `try` is a step of; None where it cleans up, or is in a loop, a handler or a clean-up."""
    if all(_cleans_up(statement) for statement in tried.body):
        return None
    child: ast.AST = tried
    while (up := parents.get(child)) is not None:
        if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef):
            return None if _CLEANS_UP.fullmatch(up.name) else up
        if isinstance(up, (*LOOPS, ast.ExceptHandler)):
            return None
        if isinstance(up, ast.Try | ast.TryStar) and child in up.finalbody:
            return None
        child = up
    return None


def _cleans_up(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=func) | ast.Await(value=ast.Call(func=func))):
            return any(pattern.fullmatch(last_name(func)) for pattern in (_CLEANS_UP, _COMES_LAST))
        case ast.If(body=body, orelse=orelse):
            return all(map(_cleans_up, (*body, *orelse)))
    return isinstance(statement, ast.Pass | ast.Delete) or _is_constant(statement)


def _end(node: ast.ExceptHandler, exits: Exits) -> str:
    """How the handler ends the worker or, if nothing comes behind it, its function; empty where it does not."""
    raises = (inner.exc for inner in own_nodes(node) if isinstance(inner, ast.Raise))
    if any(raised is None or is_caught(raised, node) or not exits(maker(raised)) for raised in raises):
        return ""
    match next((statement for statement in reversed(node.body) if not _is_constant(statement)), node.body[-1]):
        case ast.Raise():
            return _ENDS_THE_WORKER
        case ast.Expr(value=ast.Call(func=func)) if exits(func):
            return _ENDS_THE_WORKER
        case ast.Return(value=None | ast.Constant(value=None)):
            return "returns"
        case ast.Return() | ast.Continue() | ast.Break():
            return ""
    return _ENDS_THE_FUNCTION


def _is_constant(statement: ast.stmt) -> bool:
    """Whether the statement is a string or the like alone, which does nothing."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_exit(node: ast.expr, source: Source) -> bool:
    return not _EXITS.isdisjoint(source.scopes.references(node))


def _is_last(statement: ast.AST, function: ast.AST | None, parents: Parents) -> bool:
    """Whether nothing of the function comes behind the statement."""
    while statement is not function:
        around = parents[statement]
        if block(around, statement)[-1] is not statement:
            return False
        statement = around
    return True


def _hands_on(node: ast.ExceptHandler, meanings: Meanings) -> bool:
    """Whether someone else gets to know of the exception."""
    for inner in own_nodes(node):
        match inner:
            case ast.Call(func=func):
                name = last_name(func)
                if _HANDS_ON.fullmatch(name) and not _is_stream(func):
                    return True
                tells = not _LOGS.fullmatch(name) and name not in _SHOWS and not _is_log(func)
                arguments = [*inner.args, *(keyword.value for keyword in inner.keywords)]
                if tells and any(_mentions(argument, node, meanings) for argument in arguments):
                    return True
            case ast.Assign(value=value) | ast.AugAssign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                if _mentions(value, node, meanings):
                    return True
    return False


def _mentions(value: ast.expr, node: ast.ExceptHandler, meanings: Meanings) -> bool:
    """Whether `value` holds the exception or its traceback."""
    for inner in ast.walk(value):
        if is_caught(inner, node):
            return True
        called = meanings(inner.func) if isinstance(inner, ast.Call) else ()
        if any(r.startswith("traceback.format") or r in ("sys.exc_info", "sys.exception") for r in called):
            return True
    return False


def _spelled(node: ast.expr) -> tuple[str, ...]:
    return (ast.unparse(node),)


def _meanings(node: ast.expr, source: Source) -> tuple[str, ...]:
    """What `node` says, and what it means."""
    return (*_spelled(node), *source.scopes.references(node))


def _is_log(func: ast.expr) -> bool:
    return "log" in ast.unparse(func).lower()


def _is_stream(func: ast.expr) -> bool:
    return re.fullmatch(r"sys\.(?:__)?std(?:err|out)(?:__)?\.\w+", ast.unparse(func)) is not None
