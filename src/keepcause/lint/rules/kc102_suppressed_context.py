"""KC102: an exception whose cause or context is taken away by hand where a worker starts."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from keepcause.lint.binding import Kind
from keepcause.lint.chaining import cause
from keepcause.lint.finding import Edit, EditKind, Fix, Safety
from keepcause.lint.rule import Rule, Where

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.finding import Finding
    from keepcause.lint.source import Source
    from keepcause.lint.unparsed.file import Unparsed

_CAUSE = "__cause__"
_ARGUMENT = "suppress_context"
_GIVEN = re.compile(rb"(?:__cause__|suppress_context(?:__)?)(?:(?:\\[\r\n]++)*+[\"']|(?:[\s\\)]|#[^\r\n]*+)*+=(?!=))")
"""One of these names where it is given a value, or in quotes, as for `setattr`."""


class SuppressedContext(Rule):
    """An exception is stripped of its cause or context by hand.

    ## What it does

    Finds `exc.__suppress_context__ = True`, `exc.__cause__ = None` and the same by `setattr` for an exception that is
    raised in code that runs while a worker starts; an exception class that does it to itself and is raised there; and
    a constructor argument that makes it do so.

    ## Why it is bad

    It is `raise ... from None` in other words: the traceback ends at the new exception, and what happened in the worker
    is not shown.

    ## Bad

    ```python
    def wait_for_ready(pipe):
        failed = RuntimeError("a worker failed to start")
        try:
            return pipe.recv()
        except EOFError:
            failed.__suppress_context__ = True
            raise failed
    ```

    ## Good

    ```python
    def wait_for_ready(pipe):
        failed = RuntimeError("a worker failed to start")
        try:
            return pipe.recv()
        except EOFError as e:
            raise failed from e
    ```

    ## Fix safety

    Safe: the line goes and the same handler's raise gets a cause, so only the traceback changes. There is no fix where
    the exception is raised elsewhere, and none for a class that does it to itself.
    """

    code = "KC102"
    name = "suppressed-context"
    message = "hides why a worker failed to start"
    where = Where.WORKER_INIT
    fixes = "safe"
    nodes = (ast.Assign, ast.Call, ast.Raise)

    def glance(self, file: Unparsed) -> bool:
        """A file that gives neither attribute a value, nor an argument called like one, has none."""
        return any(name.encode() in file.code for name in (_CAUSE, _ARGUMENT)) and _GIVEN.search(file.code) is not None

    def check(self, node: ast.AST, source: Source) -> Iterator[Finding]:
        """Yield a finding for each way to strip an exception."""
        match node:
            case ast.Raise(exc=ast.expr() as raised) if not cause.has_cause(node):
                for call in cause.outcomes(raised):
                    if isinstance(call, ast.Call) and (named := _suppressing_argument(call, source)):
                        what = f"`{named}` {self.message}"
                        yield self.found(node, source, "what the argument does is the class's matter", what)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _strips(name, value):
                around = source.parents[node]
                if isinstance(around, ast.ClassDef):
                    yield from self._in_class(node, f"{name} = {ast.unparse(value)}", around, source)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    if isinstance(target, ast.Attribute) and _strips(target.attr, value):
                        yield from self._stripped(node, target.value, source)
            case ast.Call(func=ast.Name(id="setattr"), args=[stripped, ast.Constant(value=str(name)) as text, value]):
                statement = source.parents[node]
                if _strips(name, value) and isinstance(statement, ast.Expr) and _is_spelled_out(name, text, source):
                    yield from self._stripped(statement, stripped, source)

    def _stripped(self, statement: ast.stmt, stripped: ast.expr, source: Source) -> Iterator[Finding]:
        """`statement` strips the value of `stripped`: an exception that is raised near by, or a class's own `self`."""
        if not isinstance(stripped, ast.Name):
            return
        owner = source.scopes.owner(source.scopes.of[statement])
        if owner is not None and f":{owner.qualname}()" in source.scopes.references(stripped):
            assert isinstance(owner.node, ast.ClassDef)
            yield from self._in_class(statement, ast.unparse(statement), owner.node, source)
            return
        raises = [node for node in _raises(stripped, statement, source) if not cause.has_cause(node)]
        if raises:
            message = f"`{ast.unparse(statement)}` {self.message}"
            yield self.found(statement, source, _fix(statement, stripped.id, raises, source), message)

    def _in_class(self, statement: ast.stmt, text: str, owner: ast.ClassDef, source: Source) -> Iterator[Finding]:
        qualname = source.scopes.inside[owner].qualname
        message = f"`{text}` in `{qualname}` {self.message}"
        reason = "whether to show the context is decided where the exception is raised"
        yield self.found(statement, source, reason, message, raised=qualname)


def _strips(attribute: str, value: ast.expr) -> bool:
    match attribute, value:
        case ("__suppress_context__", ast.Constant(value=True)) | ("__cause__", ast.Constant(value=None)):
            return True
    return False


def _is_spelled_out(name: str, text: ast.expr, source: Source) -> bool:
    """Whether the string `text` holds `name` as it is, not put together of parts or by escapes."""
    return name in source.text[source.slice(source.span(text))]


def _raises(stripped: ast.Name, statement: ast.stmt, source: Source) -> list[ast.Raise]:
    """What raises the stripped exception further down in the same function."""
    handlers = [up for up in source.ancestors(statement) if isinstance(up, ast.ExceptHandler)]
    caught = next((handler for handler in handlers if handler.name == stripped.id), None)
    function = source.function(statement)
    last = (function.end_lineno if function else None) or len(source.lines)
    found = []
    for node in source.scopes.nodes.get(ast.Raise, ()):
        assert isinstance(node, ast.Raise)
        if not statement.lineno <= node.lineno <= last or source.function(node) is not function:
            continue
        if node.exc is None:
            around = cause.caught_at(node, source)
            raised = around is not None and around.innermost is caught
        else:
            raised = any(isinstance(v, ast.Name) and v.id == stripped.id for v in cause.outcomes(node.exc))
        if raised:
            found.append(node)
    return found


def _fix(statement: ast.stmt, name: str, raises: list[ast.Raise], source: Source) -> Fix | str:
    """Drop the line; every raise of the exception in the line's handler keeps what was caught."""
    handler = next((up for up in source.ancestors(statement) if isinstance(up, ast.ExceptHandler)), None)
    parts: list[Fix] = []
    for node in raises:
        caught = cause.caught_at(node, source)
        if handler is None or caught is None or caught.innermost is not handler:
            return "no raise in the same handler gets a cause"
        if handler.name == name and node.cause is None:
            continue  # what was caught, which shows its own cause again
        part = cause.chain(node, caught, source)
        if isinstance(part, str):
            return part
        parts.append(part)
    if isinstance(statement, ast.Assign) and len(statement.targets) > 1:
        return "the line assigns to something else as well"
    safety = Safety.UNSAFE if any(part.safety is Safety.UNSAFE for part in parts) else Safety.SAFE
    drop = Edit(EditKind.DROP_STATEMENT, source.span(statement))
    edits = dict.fromkeys(edit for part in parts for edit in part.edits)
    titles = dict.fromkeys(part.title for part in parts)
    title = "Drop the line" + "".join(f"; {title[0].lower()}{title[1:]}" for title in titles)
    return Fix(safety, title, (drop, *edits))


def _suppressing_argument(call: ast.Call, source: Source) -> str:
    """The argument that makes the exception strip itself: one that this file's class does it by, or that says so."""
    if not cause.is_class(call.func, source):
        return ""
    parameters = list(_suppressing_parameters(call.func, source))
    for keyword in call.keywords:
        if isinstance(keyword.value, ast.Constant) and keyword.value.value is True:
            own = any(reference.startswith(":") for reference in source.scopes.references(call.func))
            if keyword.arg in parameters or (keyword.arg == _ARGUMENT and not own):
                return f"{keyword.arg}=True"
    return ""


def _suppressing_parameters(made_by: ast.expr, source: Source) -> Iterator[str]:
    """The constructor's parameters that a class of this file assigns to the flag."""
    classes = [reference[1:] for reference in source.scopes.references(made_by) if reference.startswith(":")]
    for node in source.scopes.nodes.get(ast.Assign, ()):
        match node:
            case ast.Assign(targets=[ast.Attribute(attr="__suppress_context__")], value=ast.Name(id=name)):
                owner = source.scopes.owner(source.scopes.of[node])
                bindings = source.scopes.lookup(name, source.scopes.of[node])
                if owner is not None and owner.qualname in classes:
                    yield from (name for binding in bindings if binding.kind is Kind.PARAMETER)
