"""KC104: a worker that ends without a word about what it caught."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from keepcause.lint.finding import Grade
from keepcause.lint.rule import Rule, Where
from keepcause.lint.screen import handlers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.finding import Finding
    from keepcause.lint.source import Source

_BROAD = re.compile(rb"except(?:[\s\\]*+:|(?:[^:#]|#[^\r\n]*+)*?Exception)")
_BROAD_TYPES = frozenset({"builtins.Exception", "builtins.BaseException"})
_EXITS = frozenset({"sys.exit", "os._exit", "builtins.exit", "builtins.quit"})
_HANDS_ON = re.compile(r"send\w*|put(?:_nowait)?|set_exception|set_result|write|dump|publish")
_LOGS = re.compile(r"debug|info|warn(?:ing)?|error|critical|fatal|exception|log\w*|print\w*|write")
_SHOWS = frozenset({"str", "repr", "type", "isinstance", "format", "getattr", "hasattr"})
_CLEANS_UP = re.compile(
    r"_*(?:a?close|shutdown|shut_down|terminate|kill|join|stop|unlink|remove|rmtree|clean|clear|destroy|release|cancel"
    r"|flush|disconnect|deregister|unregister|del|exit|finalize|send|put|wait|teardown)\w*"
)
_ENDS_THE_WORKER = "ends the worker"
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class SilentWorkerExit(Rule):
    """A worker catches everything, ends, and tells its parent nothing.

    ## What it does

    Finds broad handlers (`except:`, `BaseException`, `Exception`) in a function that a launch site starts in a worker,
    or that such a function calls, if they end the worker or the function (`sys.exit`, `os._exit`, `return`, or nothing
    behind them) and neither raise nor hand the exception to anyone: over a connection, a queue or a future, into a
    file, an attribute or a call. A handler that logs the traceback is reported with `--evidence possible` only; one
    that returns a value is not, as it tells the caller.

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

    def possible(self, data: bytes) -> bool:
        """A file without a broad handler has none."""
        return any(_BROAD.match(handler) for handler in handlers(data))

    def check(self, node: ast.AST, source: Source) -> Iterator[Finding]:
        """Yield a finding for a broad handler that keeps the exception to itself."""
        assert isinstance(node, ast.ExceptHandler)
        function = source.function(node)
        if function is None or not _is_broad(node, source) or not _stands_alone(node, function, source):
            return
        end = _end(node, function, source)
        if end and not _hands_on(node, source):
            finding = replace(self._silent(node, end, source), as_last=end != _ENDS_THE_WORKER)
            yield replace(finding, at_best=Grade.POSSIBLE) if _logs_traceback(node, source) else finding

    def _silent(self, node: ast.ExceptHandler, end: str, source: Source) -> Finding:
        head = source.span(node)
        line = source.lines[head.line - 1]
        span = replace(head, end_line=head.line, end_column=max(head.column + 1, len(line.rstrip())))
        function = source.function(node)
        finding = self.found(node.body[-1], source, "only the program knows a way to its parent")
        caught = f"except {ast.unparse(node.type)}" if node.type else "except"
        message = f"`{caught}` {end} {self.message}"
        return replace(finding, message=message, span=span, statement=span, function=function.lineno if function else 0)


def _is_broad(node: ast.ExceptHandler, source: Source) -> bool:
    if node.type is None:
        return True
    types = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    return any(source.scopes.qualified(part) in _BROAD_TYPES for part in types)


def _stands_alone(node: ast.ExceptHandler, function: ast.AST, source: Source) -> bool:
    """Whether the `try` is a step of the function itself: in no loop that goes on, no clean-up, and none itself."""
    tried = source.parents[node]
    assert isinstance(tried, ast.Try | ast.TryStar)
    if all(_cleans_up(statement) for statement in tried.body):
        return False
    child: ast.AST = tried
    for up in source.ancestors(tried):
        if up is function:
            return True
        if isinstance(up, ast.For | ast.AsyncFor | ast.While | ast.ExceptHandler):
            return False
        if isinstance(up, ast.Try | ast.TryStar) and child in up.finalbody:
            return False
        child = up
    return False


def _cleans_up(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=func) | ast.Await(value=ast.Call(func=func))):
            return _CLEANS_UP.fullmatch(_last(func)) is not None
        case ast.If(body=body, orelse=orelse):
            return all(map(_cleans_up, (*body, *orelse)))
    return isinstance(statement, ast.Pass | ast.Delete)


def _end(node: ast.ExceptHandler, function: ast.FunctionDef | ast.AsyncFunctionDef, source: Source) -> str:
    """How the handler ends the worker or its function; empty where it does not, raises, or returns a value."""
    raises = [inner for inner in _inside(node) if isinstance(inner, ast.Raise)]
    last = node.body[-1]
    if any(not _is_exit(raised.exc, source) for raised in raises):
        return ""
    match last:
        case ast.Raise():
            return _ENDS_THE_WORKER
        case ast.Expr(value=ast.Call(func=func)) if not _EXITS.isdisjoint(source.scopes.references(func)):
            return _ENDS_THE_WORKER
        case ast.Return(value=None | ast.Constant(value=None)):
            return "returns"
        case ast.Return() | ast.Continue() | ast.Break():
            return ""
    return "ends the function" if _is_last(source.parents[node], function, source) else ""


def _is_exit(raised: ast.expr | None, source: Source) -> bool:
    made_by = raised.func if isinstance(raised, ast.Call) else raised
    return made_by is not None and "builtins.SystemExit" in source.scopes.references(made_by)


def _is_last(statement: ast.AST, function: ast.AST, source: Source) -> bool:
    """Whether nothing of the function comes behind the statement."""
    while statement is not function:
        around = source.parents[statement]
        blocks = [getattr(around, name, []) for name in ("body", "orelse", "finalbody")]
        if not any(block and block[-1] is statement for block in blocks):
            return False
        statement = around
    return True


def _inside(node: ast.ExceptHandler) -> Iterator[ast.AST]:
    """What the handler itself runs."""
    pending: list[ast.AST] = list(node.body)
    while pending:
        inner = pending.pop()
        yield inner
        if not isinstance(inner, _NESTED):
            pending += ast.iter_child_nodes(inner)


def _hands_on(node: ast.ExceptHandler, source: Source) -> bool:
    """Whether someone else gets to know of the exception."""
    for inner in _inside(node):
        match inner:
            case ast.Call(func=func):
                name = _last(func)
                if _HANDS_ON.fullmatch(name) and not _is_stream(func):
                    return True
                tells = not _LOGS.fullmatch(name) and name not in _SHOWS and not _is_log(func)
                arguments = [*inner.args, *(keyword.value for keyword in inner.keywords)]
                if tells and any(_mentions(argument, node, source) for argument in arguments):
                    return True
            case ast.Assign(value=value) | ast.AugAssign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                if _mentions(value, node, source):
                    return True
    return False


def _mentions(value: ast.expr, node: ast.ExceptHandler, source: Source) -> bool:
    """Whether `value` holds the exception or its traceback."""
    for inner in ast.walk(value):
        if isinstance(inner, ast.Name) and inner.id == node.name:
            return True
        references = source.scopes.references(inner.func) if isinstance(inner, ast.Call) else ()
        if any(r.startswith("traceback.format") or r in ("sys.exc_info", "sys.exception") for r in references):
            return True
    return False


def _logs_traceback(node: ast.ExceptHandler, source: Source) -> bool:
    for inner in _inside(node):
        if not isinstance(inner, ast.Call):
            continue
        keywords = {keyword.arg: keyword.value for keyword in inner.keywords}
        shown = keywords.get("exc_info")
        if shown is not None and not (isinstance(shown, ast.Constant) and not shown.value):
            return True
        if _last(inner.func) == "exception" or any(
            reference.startswith("traceback.") or reference == "sys.excepthook"
            for reference in source.scopes.references(inner.func)
        ):
            return True
    return False


def _is_log(func: ast.expr) -> bool:
    return "log" in ast.unparse(func).lower()


def _is_stream(func: ast.expr) -> bool:
    return re.fullmatch(r"sys\.(?:__)?std(?:err|out)(?:__)?\.\w+", ast.unparse(func)) is not None


def _last(func: ast.expr) -> str:
    match func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""
