"""Prove that a repaired file differs from the original just as its fixes mean; imports the linter only."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

from keepcause.lint.finding import EditKind
from keepcause.lint.source import Source, SourceError, follow, parse
from keepcause.lint.structured.errors import means

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from keepcause.lint.finding import Edit, Finding, Span

Statement: TypeAlias = ast.stmt | ast.ExceptHandler
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
_LIST_KINDS = (
    *(EditKind.LIST_CALL, EditKind.LIST_DISPLAY, EditKind.LIST_ASYNC, EditKind.LIST_KEYS, EditKind.JOIN),
    *(EditKind.DROP_CALL, EditKind.LIST_FIELD),
)


class RefusedError(Exception):
    """A fix can't be made, or its result can't be trusted; the message is the reason."""


def same(left: ast.AST, right: ast.AST) -> bool:
    """Whether two trees mean the same program, positions aside. Depth is no obstacle."""
    pairs: list[tuple[object, object]] = [(left, right)]
    while pairs:
        one, two = pairs.pop()
        if type(one) is not type(two):
            return False
        if isinstance(one, ast.AST):
            pairs += [(getattr(one, name, None), getattr(two, name, None)) for name in one._fields]
        elif isinstance(one, list) and isinstance(two, list):
            if len(one) != len(two):
                return False
            pairs += zip(one, two, strict=True)
        elif one != two:
            return False
    return True


def statements(tree: ast.Module) -> Iterator[Statement]:
    """Every statement and handler of `tree`, in an order that the edits do not change."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.stmt | ast.ExceptHandler):
            yield node
        for block in _BLOCKS:
            stack += getattr(node, block, ())


def slot(edit: Edit) -> tuple[str | int, ...]:
    """The place in the statement that the edit changes: two different edits of one slot contradict each other."""
    return (*edit.target, "value") if edit.kind is EditKind.LIST_FIELD else edit.target


def way(edit: Edit) -> str:
    """How an edit makes a value new: `call`, `display`, `async`, `keys` or `join`; `drop` takes a call's argument."""
    if edit.kind is EditKind.LIST_FIELD:
        return edit.text or "call"
    return "drop" if edit.kind is EditKind.DROP_CALL else edit.kind.removeprefix("list-")


def intend(statement: ast.AST, edits: Iterable[Edit]) -> None:
    """Change the syntax tree of one statement as the edits say; raises RefusedError where they do not fit it."""
    # A deeper place first: an edit around it would change the path to it.
    for edit in sorted(edits, key=lambda edit: -len(slot(edit))):
        if edit.kind in _LIST_KINDS:
            _intend_list(statement, edit)
        elif edit.kind is EditKind.BIND_CAUGHT:
            _intend_name(statement, edit.text)
        elif edit.kind is EditKind.DROP_STATEMENT:
            _intend_pass(statement)
        elif edit.kind in (EditKind.CALL_CLASS, EditKind.REPLACE_CALL):
            _intend_call(statement, edit)
        elif edit.kind is not EditKind.ADD_IMPORT:
            _intend_cause(statement, edit)


def _intend_pass(statement: ast.AST) -> None:
    if not isinstance(statement, ast.Assign | ast.Expr):
        raise RefusedError("not a statement that may go")
    statement.__class__ = ast.Pass  # type: ignore[assignment]  # whoever holds the node has to see the change


def _intend_call(statement: ast.AST, edit: Edit) -> None:
    value = _at(statement, edit.target)
    (wanted,) = (node.value for node in parse(edit.text).body if isinstance(node, ast.Expr))
    if not isinstance(value, ast.Call) or not isinstance(wanted, ast.Call):
        raise RefusedError("not a call")
    if edit.kind is EditKind.CALL_CLASS:
        wanted = ast.Call(wanted.func, value.args, [*value.keywords, *wanted.keywords])
    _replace(statement, edit.target, wanted)


def _at(statement: ast.AST, path: tuple[str | int, ...]) -> ast.AST:
    try:
        return follow(statement, path)
    except (AttributeError, IndexError, TypeError, AssertionError) as error:
        raise RefusedError("there is nothing at the fix's place") from error


def _new_import(edits: Iterable[Edit], repaired: Source) -> Span | None:
    """The import statement that the edits have added to the repaired file; None if they added to another, or nothing.

    No name is imported that the original had in any place.
    """
    names = [edit.text.partition(":")[2] for edit in edits if edit.kind is EditKind.ADD_IMPORT]
    for node in repaired.tree.body:
        if isinstance(node, ast.ImportFrom) and [alias.name for alias in node.names] == names[:1]:
            return repaired.span(node)
    return None


def _drop_import(tree: ast.Module, edits: Iterable[Edit], source: Source) -> None:
    """Take the imported name out of the tree of a repaired file."""
    for module, _, name in {edit.text.partition(":") for edit in edits if edit.kind is EditKind.ADD_IMPORT}:
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and means(source, f"{'.' * node.level}{node.module or ''}", module):
                node.names = [alias for alias in node.names if (alias.name, alias.asname) != (name, None)]
        tree.body = [node for node in tree.body if not isinstance(node, ast.ImportFrom) or node.names]


def lines_of(source: Source, span: Span) -> slice | None:
    """The lines that a dropped statement takes with it, as offsets; None where `pass` has to take its place.

    Raises RefusedError where a comment stands behind the statement.
    """
    statement = next(node for node in statements(source.tree) if source.span(node) == span)
    first, last = source.lines[span.line - 1], source.lines[span.end_line - 1]
    if last[span.end_column :].lstrip(" \t;").startswith("#"):
        raise RefusedError("a comment would be lost")
    block = next(
        block for name in _BLOCKS for block in [getattr(source.parents[statement], name, [])] if statement in block
    )
    continued = span.line > 1 and source.lines[span.line - 2].endswith("\\")
    alone = not first[: span.column].strip() and not last[span.end_column :].strip() and not continued
    if len(block) == 1 or not alone:
        return None
    starts = source.line_starts
    end = starts[span.end_line] if span.end_line < len(starts) else len(source.text)
    return slice(starts[span.line - 1], end)


def _gone(source: Source, edits: Iterable[Edit]) -> set[Span]:
    """The statements that take their lines with them."""
    dropped = {edit.statement for edit in edits if edit.kind is EditKind.DROP_STATEMENT}
    return {span for span in dropped if lines_of(source, span) is not None}


def _without(tree: ast.Module, gone: list[Statement]) -> None:
    for node in ast.walk(tree) if gone else ():
        for name in _BLOCKS:
            block = getattr(node, name, None)
            if isinstance(block, list):  # a lambda's or a conditional expression's is none
                block[:] = [statement for statement in block if statement not in gone]


def _intend_name(handler: ast.AST, name: str) -> None:
    if not isinstance(handler, ast.ExceptHandler):
        raise RefusedError("not an exception handler")
    if handler.name not in (None, name):
        raise RefusedError(f"the handler already binds {handler.name}")
    handler.name = name
    handler.type = handler.type or ast.Name("BaseException", ast.Load())


def _intend_cause(statement: ast.AST, edit: Edit) -> None:
    if not isinstance(statement, ast.Raise) or statement.exc is None:
        raise RefusedError("not a raise of an exception")
    if statement.cause is None and edit.kind is not EditKind.SET_CAUSE:
        raise RefusedError("the raise has no `from None`")
    if statement.cause is not None and not _is_none(statement.cause):
        raise RefusedError("the raise has another cause already")
    match edit.kind:
        case EditKind.SET_CAUSE:
            if _is_name(statement.exc, edit.text):
                raise RefusedError(f"{edit.text} would become its own cause")
            statement.cause = ast.Name(edit.text, ast.Load())
        case EditKind.DROP_CAUSE:
            statement.cause = None
        case EditKind.RERAISE:
            if not isinstance(statement.exc, ast.Name):
                raise RefusedError("not a raise of a name")
            statement.exc = statement.cause = None


def _intend_list(statement: ast.AST, edit: Edit) -> None:
    path = slot(edit)
    holder = _at(statement, edit.target) if edit.kind is EditKind.LIST_FIELD else None
    value = _at(statement, path)
    if holder is not None and not isinstance(holder, ast.FormattedValue):
        raise RefusedError("not a field of an f-string")
    if not isinstance(value, ast.expr) or isinstance(value, ast.Starred) or not _is_read(value):
        raise RefusedError("not a value that can be listed")
    _replace(statement, path, _listed(value, way(edit)))


def _listed(value: ast.expr, how: str) -> ast.expr:
    match how, value:
        case "display", _:
            return _display(value)
        case "async", _:
            clause = ast.comprehension(ast.Name("item", ast.Store()), value, [], 1)
            return ast.ListComp(ast.Name("item", ast.Load()), [clause])
        case "join", _:
            mapped = ast.Call(ast.Name("map", ast.Load()), [ast.Name("str", ast.Load()), value], [])
            return ast.Call(ast.Attribute(ast.Constant(", "), "join", ast.Load()), [mapped], [])
        case "keys", ast.Call(func=ast.Attribute(value=container, attr="keys"), args=[], keywords=[]):
            return _call(container)
        case "drop", ast.Call(args=[argument], keywords=[]):
            return argument
        case "call", _:
            return _call(value)
    raise RefusedError("not a call that the fix fits")


def _call(value: ast.expr) -> ast.expr:
    return ast.Call(ast.Name("list", ast.Load()), [value], [])


def _display(value: ast.expr) -> ast.expr:
    if isinstance(value, ast.GeneratorExp):
        return ast.ListComp(value.elt, value.generators)
    return ast.List([ast.Starred(value, ast.Load())], ast.Load())


def _replace(top: ast.AST, path: tuple[str | int, ...], new: ast.AST) -> None:
    *_, last = path
    if isinstance(last, int):
        getattr(follow(top, path[:-2]), str(path[-2]))[last] = new
    else:
        setattr(follow(top, path[:-1]), last, new)


def _is_read(value: ast.expr) -> bool:
    return isinstance(getattr(value, "ctx", ast.Load()), ast.Load)


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _is_name(value: ast.expr, name: str) -> bool:
    return isinstance(value, ast.Name) and value.id == name


def check_text(source: Source, edits: Sequence[Edit], data: bytes) -> Source:
    """The repaired file, parsed; raises RefusedError where it is not the original with these edits and nothing else."""
    try:
        repaired = Source(data, source.path)
    except SourceError as error:
        raise RefusedError(f"the result can't be parsed: {error.reason}") from error
    by_span: dict[Span, list[Edit]] = {}
    gone = _gone(source, edits)
    for edit in edits:
        by_span.setdefault(edit.statement, []).append(edit)
    spans = [source.span(node) for node in statements(source.tree)]
    intended = parse(source.text)
    meant = dict(zip(spans, statements(intended), strict=True))
    for span, here in by_span.items():
        intend(meant[span], here)
    _without(intended, [meant[span] for span in gone])
    result = parse(repaired.text)
    _drop_import(result, edits, source)
    if not same(intended, result):
        raise RefusedError("the result differs from the original elsewhere")
    added = _new_import(edits, repaired)
    there = [node for node in statements(repaired.tree) if repaired.span(node) != added]
    kept = dict(zip([span for span in spans if span not in gone], there, strict=True))
    for span in by_span.keys() - gone:
        for edit in by_span[span]:
            _check_handler(source, span, repaired, kept[span], edit)
    return repaired


def _check_handler(source: Source, span: Span, repaired: Source, statement: Statement, edit: Edit) -> None:
    if edit.kind not in (EditKind.SET_CAUSE, EditKind.RERAISE):
        return
    handler = _handler_around(repaired, statement)
    if handler is None or handler.name is None:
        raise RefusedError("the raise is in no handler that binds a name")
    if edit.kind is EditKind.SET_CAUSE and handler.name != edit.text:
        raise RefusedError(f"the innermost handler binds {handler.name}, not {edit.text}")
    if edit.kind is EditKind.RERAISE:
        raised = parse(source.text[source.slice(span)]).body[0]
        if not isinstance(raised, ast.Raise) or raised.exc is None or not _is_name(raised.exc, handler.name):
            raise RefusedError(f"the raise is not of {handler.name}, which the innermost handler caught")
        if isinstance(repaired.parents[handler], ast.TryStar):
            raise RefusedError("a bare raise in `except*` raises the whole group")


def _handler_around(source: Source, node: ast.AST) -> ast.ExceptHandler | None:
    for up in source.ancestors(node):
        if isinstance(up, ast.ExceptHandler):
            return up
        if isinstance(up, _SCOPES):
            break
    return None


def check_findings(
    source: Source, found: Iterable[Finding], applied: Sequence[Finding], repaired: Source, now: Iterable[Finding]
) -> None:
    """Raise RefusedError unless the applied findings are gone from the repaired file and no new one came."""
    edits = [edit for finding in applied if finding.fix for edit in finding.fix.edits]
    gone, added = _gone(source, edits), _new_import(edits, repaired)
    expected = _places(source, found, gone) - _places(source, applied, gone)
    for code, _ in _places(repaired, now, {added} if added else set()) - expected:
        raise RefusedError(f"the result still has, or newly has, a {code} finding")


def _places(source: Source, findings: Iterable[Finding], gone: set[Span]) -> Counter[tuple[str, int]]:
    """Each finding's code with the number of statements that start before it: edits move columns, not these."""
    spans = {source.span(node) for node in statements(source.tree)} - gone
    starts = sorted((span.line, span.column) for span in spans)
    return Counter((f.code, bisect_right(starts, (f.statement.line, f.statement.column))) for f in findings)
