"""Change one statement's text as a Fix says, through LibCST; imports the linter's data and `verify`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import libcst as cst

from keepcause.codemod.verify import RefusedError, Statement, intend, same, slot, way
from keepcause.lint.finding import Edit, EditKind
from keepcause.lint.source import NEWLINE, Source, SourceError, follow, parse

Change: TypeAlias = Callable[[Any], "cst.CSTNode | cst.FlattenSentinel[cst.CSTNode]"]
_BLOCK = (ast.stmt, ast.ExceptHandler, ast.match_case)
_BEFORE_COLON = re.compile(r"(?:\s|\\(?=[\r\n]))*\Z")


@dataclass(frozen=True)
class Located:
    """An edit, bound to the node of a Part that it changes."""

    edit: Edit
    node: cst.CSTNode
    change: Change


@dataclass(frozen=True)
class Part:
    """What an edit may touch: a simple statement, or a handler from `except` up to before its colon."""

    place: slice
    """Where it stands, as offsets into the source's text."""
    ends: tuple[str, ...]
    """Its line ends; in `module` all are a line feed."""
    before: str
    after: str
    """What stands around it in `module`, so that it can be parsed alone."""
    module: cst.Module


def cut(source: Source, statement: Statement) -> Part:
    """The part of `statement` that edits may touch; raises RefusedError where LibCST does not read it exactly."""
    place = source.slice(source.span(statement))
    before, after = "", ""
    if isinstance(statement, ast.ExceptHandler):
        before, after = "try: pass\n", ": pass"
        place = slice(place.start, place.start + _header_length(source.text[place]))
    elif any(isinstance(child, _BLOCK) for child in ast.iter_child_nodes(statement)):
        raise RefusedError("the statement is not a simple one")
    text = source.text[place]
    code = before + NEWLINE.sub("\n", text) + after
    try:
        module = cst.parse_module(code)
    except cst.ParserSyntaxError as error:
        raise RefusedError("LibCST can't read the statement") from error
    if module.code != code:
        raise RefusedError("LibCST does not read the statement as it is written")
    return Part(place, tuple(NEWLINE.findall(text)), before, after, module)


def _header_length(text: str) -> int:
    for colon in re.finditer(":", text):
        head = _BEFORE_COLON.sub("", text[: colon.start()])
        try:
            parse(f"try: pass\n{head}: pass")
        except SourceError:
            continue
        return len(head)
    raise RefusedError("the handler's colon was not found")


def _parse(code: str, like: Statement) -> ast.AST:
    """The syntax tree of a module that holds one statement or one handler's header."""
    body = parse(code).body
    if len(body) != 1:
        raise RefusedError("the statement can't be parsed alone")
    if isinstance(like, ast.ExceptHandler):
        assert isinstance(body[0], ast.Try | ast.TryStar)
        return body[0].handlers[0]
    return body[0]


def locate(part: Part, statement: Statement, edit: Edit) -> Located:
    """The LibCST node that `edit` changes, and how; raises RefusedError where there is no such change.

    A change is right where the syntax tree of its result is the one that the edit intends: positions are not asked.
    """
    code = part.module.code
    intended = _parse(code, statement)
    intend(intended, [edit])
    for node in _candidates(part, _parse(code, statement), edit):
        for change in _changes(edit):
            located = Located(edit, node, change)
            try:
                changed = _changed(part, [located])
                result = _parse(changed.code, statement)
            except (cst.CSTValidationError, SourceError):
                continue
            if same(result, intended) and (_nests(part.module) or not _nests(changed)):
                restored(part, changed)
                return located
    raise RefusedError("LibCST can't make the change")


def _nests(module: cst.Module) -> bool:
    """Whether an f-string has its own quotes inside a field, which only Python 3.12 and later read."""
    return any(
        string.end in cst.Module([]).code_for_node(field.expression)
        for string in _walk(module)
        if isinstance(string, cst.FormattedString)
        for field in string.parts
        if isinstance(field, cst.FormattedStringExpression)
    )


def render(part: Part, located: Sequence[Located]) -> str:
    """The part's text with all these changes made; raises RefusedError as `restored` does."""
    return restored(part, _changed(part, located))


def restored(part: Part, module: cst.Module) -> str:
    """The part's new text with its own line ends; raises RefusedError where a comment or a line end would be lost."""
    if _comments(module) != _comments(part.module):
        raise RefusedError("a comment would be lost")
    code = module.code.removeprefix(part.before).removesuffix(part.after)
    lines = code.split("\n")
    if len(lines) == len(part.ends) + 1:
        return "".join(line + end for line, end in zip(lines, (*part.ends, ""), strict=True))
    if len(set(part.ends)) == 1:
        return part.ends[0].join(lines)
    raise RefusedError("its lines end in different ways")


class _Changer(cst.CSTTransformer):
    def __init__(self, located: Sequence[Located]) -> None:
        super().__init__()
        self._changes = {id(each.node): each.change for each in located}

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        change = self._changes.get(id(original_node))
        return change(updated_node) if change else updated_node


def _changed(part: Part, located: Sequence[Located]) -> cst.Module:
    return part.module.visit(_Changer(located))


def _comments(module: cst.Module) -> list[str]:
    return [node.value for node in _walk(module) if isinstance(node, cst.Comment)]


def _walk(top: cst.CSTNode) -> Iterator[cst.CSTNode]:
    stack = [top]
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(node.children)


def _candidates(part: Part, statement: ast.AST, edit: Edit) -> Iterator[cst.CSTNode]:
    nodes = _walk(part.module)
    if edit.kind is EditKind.BIND_CAUGHT:
        return (node for node in nodes if isinstance(node, cst.ExceptHandler | cst.ExceptStarHandler))
    if not edit.target:
        kinds = (cst.Assign, cst.Expr) if edit.kind is EditKind.DROP_STATEMENT else (cst.Raise,)
        return (node for node in nodes if isinstance(node, kinds))
    value = follow(statement, slot(edit))
    if edit.kind is EditKind.LIST_FIELD:
        fields = (node for node in nodes if isinstance(node, cst.FormattedStringExpression))
        return (node for node in fields if _reads_as(node.expression, value))
    return (node for node in nodes if isinstance(node, cst.BaseExpression) and _reads_as(node, value))


def _reads_as(node: cst.BaseExpression, value: ast.AST) -> bool:
    try:
        statement = parse(f"({cst.Module([]).code_for_node(node)}\n)").body[0]
    except SourceError:
        return False
    return isinstance(statement, ast.Expr) and same(statement.value, value)


def _changes(edit: Edit) -> Iterator[Change]:
    """The ways to make an edit, plainest first."""
    match edit.kind:
        case EditKind.BIND_CAUGHT:
            yield partial(bind_caught, name=edit.text)
        case EditKind.SET_CAUSE:
            yield partial(set_cause, name=edit.text)
        case EditKind.DROP_CAUSE:
            yield drop_cause
        case EditKind.RERAISE:
            yield reraise
        case EditKind.DROP_STATEMENT:
            yield to_pass
        case EditKind.CALL_CLASS:
            yield partial(call_class, wanted=edit.text)
        case EditKind.REPLACE_CALL:
            yield partial(replace_call, wanted=edit.text)
        case EditKind.LIST_FIELD:
            for listed in _WAYS[way(edit)]:
                yield partial(list_field, listed=listed, escape=False)
                yield partial(list_field, listed=listed, escape=True)
        case _:
            yield from _WAYS[way(edit)]


def bind_caught(handler: cst.ExceptHandler | cst.ExceptStarHandler, name: str) -> cst.CSTNode:
    """`except X` -> `except X as name`, `except` -> `except BaseException as name`."""
    bound = cst.AsName(cst.Name(name))
    if handler.type is None:
        space = cst.SimpleWhitespace(" ")
        return handler.with_changes(type=cst.Name("BaseException"), name=bound, whitespace_after_except=space)
    if isinstance(handler.type, cst.Tuple) and not handler.type.lpar:
        inside = handler.type.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return handler.with_changes(type=inside, name=bound)
    return handler.with_changes(name=bound)


def set_cause(statement: cst.Raise, name: str) -> cst.CSTNode:
    """`raise Y` or `raise Y from None` -> `raise Y from name`; parentheses around `None` stay."""
    if statement.cause is None:
        return statement.with_changes(cause=cst.From(cst.Name(name)))
    return statement.with_deep_changes(statement.cause.item, value=name)


def drop_cause(statement: cst.Raise) -> cst.CSTNode:
    """`raise Y from None` -> `raise Y`."""
    return statement.with_changes(cause=None)


def reraise(statement: cst.Raise) -> cst.CSTNode:
    """`raise e from None` -> `raise`."""
    return statement.with_changes(exc=None, cause=None, whitespace_after_raise=cst.SimpleWhitespace(""))


def to_pass(statement: cst.Assign | cst.Expr) -> cst.CSTNode:
    """`a.b = c` -> `pass`; where its line can go with it, the line goes instead."""
    return cst.Pass(semicolon=statement.semicolon)


def call_class(call: cst.Call, wanted: str) -> cst.BaseExpression:
    """`Error(x)` -> `Other(x, name=value)`; over several lines where the call is."""
    new = cst.ensure_type(cst.parse_expression(wanted), cst.Call)
    if not call.args:
        return call.with_changes(func=new.func, args=new.args)
    *others, last = call.args
    tail = last.comma.whitespace_after if isinstance(last.comma, cst.Comma) else last.whitespace_after_arg
    between, end = between_and_behind(call.whitespace_before_args, tail)
    following = [arg.with_changes(comma=cst.Comma(whitespace_after=between)) for arg in (last, *new.args)]
    following[0] = following[0].with_changes(whitespace_after_arg=cst.SimpleWhitespace(""))
    if isinstance(last.comma, cst.Comma):
        following[-1] = following[-1].with_changes(comma=last.comma.with_changes(whitespace_after=end))
    else:
        following[-1] = following[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT, whitespace_after_arg=end)
    return call.with_changes(func=new.func, args=[*others, *following])


def replace_call(call: cst.Call, wanted: str) -> cst.BaseExpression:
    """`Error(x)` -> `Other(name=value)`; an argument a line where the arguments begin on a line of their own."""
    new = cst.ensure_type(cst.parse_expression(wanted), cst.Call)
    start = call.whitespace_before_args
    if not isinstance(start, cst.ParenthesizedWhitespace) or not call.args:
        return new.with_changes(lpar=call.lpar, rpar=call.rpar)
    last = call.args[-1]
    end = last.comma.whitespace_after if isinstance(last.comma, cst.Comma) else last.whitespace_after_arg
    args = [arg.with_changes(comma=cst.Comma(whitespace_after=start)) for arg in new.args]
    args[-1] = args[-1].with_changes(comma=cst.Comma(whitespace_after=end))
    return new.with_changes(lpar=call.lpar, rpar=call.rpar, args=args, whitespace_before_args=start)


def between_and_behind(
    start: cst.BaseParenthesizableWhitespace, tail: cst.BaseParenthesizableWhitespace
) -> tuple[cst.BaseParenthesizableWhitespace, cst.BaseParenthesizableWhitespace]:
    """What stands before an argument or a name that is added, and behind it: comments stay behind what was there."""
    if not isinstance(start, cst.ParenthesizedWhitespace):
        return cst.SimpleWhitespace(" "), tail
    between = cst.ParenthesizedWhitespace(indent=start.indent, last_line=start.last_line)
    if not isinstance(tail, cst.ParenthesizedWhitespace):
        return between, tail
    between = between.with_changes(first_line=tail.first_line, empty_lines=tail.empty_lines)
    return between, tail.with_changes(first_line=cst.TrailingWhitespace(), empty_lines=[])


def list_call(value: cst.BaseExpression) -> cst.BaseExpression:
    """`x` -> `list(x)`; the value's own innermost parentheses become the call's."""
    if not value.lpar:
        return cst.Call(cst.Name("list"), [cst.Arg(value)])
    argument = cst.Arg(_bare(value), whitespace_after_arg=value.rpar[0].whitespace_before)
    return cst.Call(
        cst.Name("list"),
        [argument],
        lpar=value.lpar[:-1],
        rpar=value.rpar[1:],
        whitespace_before_args=value.lpar[-1].whitespace_after,
    )


def list_call_in_parentheses(value: cst.BaseExpression) -> cst.BaseExpression:
    """`(x)` -> `(list(x))`, for where the parenthesis keeps the value from the word before it."""
    return cst.Call(cst.Name("list"), [cst.Arg(_bare(value))], lpar=value.lpar, rpar=value.rpar)


def list_display(value: cst.BaseExpression) -> cst.BaseExpression:
    """`x` -> `[*x]`; a generator expression -> a list comprehension, parentheses -> brackets."""
    if not isinstance(value, cst.GeneratorExp):
        return cst.List([cst.StarredElement(value)])
    if not value.lpar:
        return cst.ListComp(value.elt, value.for_in)
    return cst.ListComp(
        value.elt,
        value.for_in,
        lbracket=cst.LeftSquareBracket(value.lpar[-1].whitespace_after),
        rbracket=cst.RightSquareBracket(value.rpar[0].whitespace_before),
        lpar=value.lpar[:-1],
        rpar=value.rpar[1:],
    )


def list_display_of_parentheses(value: cst.BaseExpression) -> cst.BaseExpression:
    """`x or y` -> `[*(x or y)]`, for what can't follow a star as it is."""
    inside = value.with_changes(lpar=[cst.LeftParen(), *value.lpar], rpar=[*value.rpar, cst.RightParen()])
    return cst.List([cst.StarredElement(inside)])


def list_async(value: cst.BaseExpression) -> cst.BaseExpression:
    """`x` -> `[item async for item in x]`."""
    clause = cst.CompFor(cst.Name("item"), value, asynchronous=cst.Asynchronous())
    return cst.ListComp(cst.Name("item"), clause)


def join(value: cst.BaseExpression, quote: str = '"') -> cst.BaseExpression:
    """`x` -> `", ".join(map(str, x))`."""
    mapped = cst.Call(cst.Name("map"), [cst.Arg(cst.Name("str")), cst.Arg(value)])
    return cst.Call(cst.Attribute(cst.SimpleString(f"{quote}, {quote}"), cst.Name("join")), [cst.Arg(mapped)])


def list_keys(value: cst.BaseExpression) -> cst.BaseExpression:
    """`d.keys()` -> `list(d)`."""
    keys = cst.ensure_type(cst.ensure_type(value, cst.Call).func, cst.Attribute)
    return list_call(keys.value)


def drop_call(value: cst.BaseExpression) -> cst.BaseExpression:
    """`f(x)` -> `x`; a generator expression that has no parentheses of its own takes the call's place without them."""
    return cst.ensure_type(value, cst.Call).args[0].value


def drop_call_to_parentheses(value: cst.BaseExpression) -> cst.BaseExpression:
    """`f(x)` -> `(x)`."""
    return drop_call(value).with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def list_field(
    field: cst.FormattedStringExpression, listed: Callable[[cst.BaseExpression], cst.BaseExpression], *, escape: bool
) -> cst.CSTNode | cst.FlattenSentinel[cst.CSTNode]:
    """`{x}` -> `{list(x)}`, `{x=}` -> `x={list(x)!r}`; `escape` keeps the label's quotes from ending the string."""
    if field.equal is None:
        return field.with_changes(expression=listed(field.expression))
    label = cst.Module([]).code_for_node(field.with_changes(conversion=None, format_spec=None))[1:-1]
    if escape:
        label = re.sub("([\"'])", r"\\\1", label)
    plain = field.conversion is None and field.format_spec is None
    shown = field.with_changes(
        expression=listed(field.expression),
        equal=None,
        conversion="r" if plain else field.conversion,
        whitespace_before_expression=cst.SimpleWhitespace(""),
        whitespace_after_expression=cst.SimpleWhitespace(""),
    )
    return cst.FlattenSentinel([cst.FormattedStringText(label.replace("{", "{{").replace("}", "}}")), shown])


_WAYS: dict[str, tuple[Callable[[cst.BaseExpression], cst.BaseExpression], ...]] = {
    "call": (list_call, list_call_in_parentheses),
    "display": (list_display, list_display_of_parentheses),
    "async": (list_async,),
    "join": (join, partial(join, quote="'")),
    "keys": (list_keys,),
    "drop": (drop_call, drop_call_to_parentheses),
}


def _bare(value: cst.BaseExpression) -> cst.BaseExpression:
    return value.with_changes(lpar=[], rpar=[])
