"""What the text of an error or log entry shows: the expressions interpolated into it; standard library only."""

from __future__ import annotations

import ast
import builtins
import enum
import re
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepcause.lint.scope import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.source import Source

_SHOWING = frozenset({"builtins.str", "builtins.repr", "builtins.ascii", "builtins.format"})
_AROUND_TEXT = frozenset(
    {"textwrap.dedent", "textwrap.indent", "textwrap.fill", "textwrap.shorten", "inspect.cleandoc", "builtins.str"}
)
_TEXT_METHODS = frozenset(
    [
        "capitalize",
        "casefold",
        "center",
        "encode",
        "expandtabs",
        "ljust",
        "lower",
        "lstrip",
        "replace",
        "rjust",
        "rstrip",
        "strip",
        "swapcase",
        "title",
        "upper",
    ]
)
_LISTING = frozenset(f"builtins.{name}" for name in ("list", "tuple", "sorted", "set", "frozenset"))
_PERCENT = re.compile(r"%(?:\((?P<key>[^)]*)\))?[#0\- +]*(?:\*|\d+)?(?:\.(?:\*|\d+))?[hlL]?(?P<type>.)", re.DOTALL)
_KEEP_ARGUMENTS = (KeyError, OSError, SystemExit)
_NO_TEXT = (StopIteration, StopAsyncIteration, BaseExceptionGroup, UnicodeError, SyntaxError)
_OWN_WAYS = frozenset({"__init__", "__new__", "__str__", "__repr__"})


class Via(enum.Enum):
    """How an expression gets into a text."""

    FIELD = enum.auto()
    """As the whole of an f-string's field."""
    VALUE = enum.auto()
    """By its own `str` or `repr`: an argument, an operand, an element of a display."""
    CONCATENATED = enum.auto()
    """As an operand of `+` beside a text, which raises TypeError."""
    CHARACTERS = enum.auto()
    """As `str(x)` whose characters are joined."""
    LISTED = enum.auto()
    """Item by item: the text runs through it."""


@dataclass(frozen=True, eq=False)
class Shown:
    """An expression that a text shows.

    `holder` is the f-string field, or the call of `str`, around it. `kept` names the exception class that keeps it as an
    argument besides the text. `fails` says why formatting it raises.
    """

    node: ast.expr
    via: Via
    holder: ast.expr
    kept: str = ""
    fails: str = ""


def error_texts(node: ast.AST, source: Source) -> Iterator[Shown]:
    """What the error text that `node` (a raise, assert, call or return) makes shows."""
    match node:
        case ast.Raise(exc=ast.expr() as raised):
            yield from _raised(raised, source)
        case ast.Assert(msg=ast.expr() as message):
            yield from value(message, source)
        case ast.Call() if exception := _exception_class(node.func, source):
            if not isinstance(source.parents[node], ast.Raise):
                yield from _exception(node, exception, source)
        case ast.Return(value=ast.expr() as returned):
            function = source.function(node)
            if function is not None and function.name in ("__str__", "__repr__"):
                yield from text(returned, source)


def text(node: ast.expr, source: Source) -> Iterator[Shown]:
    """What `node`, whose value is a text, shows."""
    match node:
        case ast.JoinedStr(values=values):
            for part in values:
                if isinstance(part, ast.FormattedValue):
                    yield from _field(part, source)
        case ast.BinOp(op=ast.Add()):
            yield from _concatenation(node, source)
        case ast.BinOp(left=left, op=ast.Mod(), right=right):
            yield from text(left, source)
            yield from _percent(left, right, source)
        case ast.IfExp(body=body, orelse=orelse):
            yield from text(body, source)
            yield from text(orelse, source)
        case ast.BoolOp(values=values):
            for part in values:
                yield from text(part, source)
        case ast.NamedExpr(value=inner):
            yield from text(inner, source)
        case ast.Call():
            yield from _call(node, source)


def value(node: ast.expr, source: Source, holder: ast.FormattedValue | None = None) -> Iterator[Shown]:
    """What showing `node` by its own `str` or `repr` shows; `holder` is the field that `node` is the whole of."""
    match node:
        case ast.JoinedStr() | ast.BinOp():
            yield from text(node, source)
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            for part in parts:
                if isinstance(part, ast.Starred):
                    yield Shown(part.value, Via.LISTED, part)
                else:
                    yield from value(part, source)
        case ast.Dict(values=parts):
            for part in parts:
                yield from value(part, source)
        case ast.IfExp(body=body, orelse=orelse):
            yield from value(body, source)
            yield from value(orelse, source)
        case ast.BoolOp(values=parts):
            for part in parts:
                yield from value(part, source)
        case ast.NamedExpr(value=inner):
            yield from value(inner, source)
        case ast.ListComp(elt=element, generators=[first, *_]) | ast.SetComp(elt=element, generators=[first, *_]):
            yield Shown(first.iter, Via.LISTED, node)
            yield from value(element, source)
        case ast.Call(args=[ast.expr() as listed, *_]) if source.scopes.qualified(node.func) in _LISTING:
            yield Shown(listed, Via.LISTED, node)
        case _:
            yield Shown(node, Via.VALUE if holder is None else Via.FIELD, holder or node)
            yield from text(node, source)


def _field(part: ast.FormattedValue, source: Source) -> Iterator[Shown]:
    spec = part.format_spec
    if isinstance(spec, ast.JoinedStr):
        yield from text(spec, source)
    fails = (
        "its format spec raises TypeError, with a list as well" if spec is not None and part.conversion == -1 else ""
    )
    for shown in value(part.value, source, part):
        yield Shown(shown.node, shown.via, shown.holder, fails=fails) if shown.node is part.value else shown


def _concatenation(node: ast.BinOp, source: Source) -> Iterator[Shown]:
    for side, other in ((node.left, node.right), (node.right, node.left)):
        if is_text(other, source) and not is_text(side, source):
            yield Shown(side, Via.CONCATENATED, side)
        yield from text(side, source)


def is_text(node: ast.expr, source: Source) -> bool:
    """Whether `node` is a text by its form."""
    match node:
        case ast.JoinedStr() | ast.Constant(value=str()):
            return True
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return is_text(left, source) or is_text(right, source)
        case ast.BinOp(left=left, op=ast.Mod()):
            return is_text(left, source)
        case ast.Call(func=ast.Attribute(value=inner, attr=method)):
            return method in (*_TEXT_METHODS, "format", "join") and is_text(inner, source)
        case ast.Call(func=func):
            return source.scopes.qualified(func) in _SHOWING | _AROUND_TEXT
    return False


def _percent(left: ast.expr, right: ast.expr, source: Source) -> Iterator[Shown]:
    """What `left % right` shows of `right`; conversions other than `%s`, `%r` and `%a` raise on anything lazy."""
    conversions = None
    if isinstance(left, ast.Constant) and isinstance(left.value, str):
        conversions = [c for c in _PERCENT.finditer(left.value) if c["type"] != "%"]
    match right:
        case ast.Tuple(elts=parts):
            for number, part in enumerate(parts):
                if isinstance(part, ast.Starred):
                    return
                if conversions is None or (number < len(conversions) and conversions[number]["type"] in "sra"):
                    yield from value(part, source)
        case ast.Dict(keys=keys, values=parts):
            for key, part in zip(keys, parts, strict=True):
                name = key.value if isinstance(key, ast.Constant) else None
                if conversions is None or any(c["key"] == name and c["type"] in "sra" for c in conversions):
                    yield from value(part, source)
        case _ if conversions is None or (len(conversions) == 1 and conversions[0]["type"] in "sra"):
            yield from value(right, source)


def _call(node: ast.Call, source: Source) -> Iterator[Shown]:
    """What a call whose result is a text shows."""
    match node:
        case ast.Call(func=ast.Attribute(value=separator, attr="join"), args=[joined]) if is_text(separator, source):
            yield from _joined(joined, source)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(template)), attr="format")):
            yield from _format(template, node, source)
        case ast.Call(func=ast.Attribute(value=inner, attr=method)) if method in _TEXT_METHODS:
            yield from text(inner, source)
        case ast.Call(func=func, args=[first, *_]):
            reference = source.scopes.qualified(func)
            if reference in _SHOWING and not isinstance(first, ast.Starred):
                yield from value(first, source)
            elif reference in _AROUND_TEXT:
                yield from text(first, source)


def _joined(joined: ast.expr, source: Source) -> Iterator[Shown]:
    match joined:
        case ast.Call(func=func, args=[inner], keywords=[]) if source.scopes.qualified(func) in _SHOWING:
            yield Shown(inner, Via.CHARACTERS, joined)
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            for part in parts:
                yield from text(part, source)
        case ast.GeneratorExp(elt=element, generators=[first, *_]) | ast.ListComp(elt=element, generators=[first, *_]):
            yield Shown(first.iter, Via.LISTED, joined)
            yield from text(element, source)
        case _:
            yield Shown(joined, Via.LISTED, joined)


def _format(template: str, node: ast.Call, source: Source) -> Iterator[Shown]:
    """What `template.format(...)` shows by a plain field, one without attribute, index or format spec."""
    try:
        fields = list(string.Formatter().parse(template))
    except ValueError:
        return
    automatic = 0
    names = set()
    for _, name, spec, conversion in fields:
        if name is None:
            continue
        if name == "":
            name, automatic = str(automatic), automatic + 1
        if not spec or conversion:
            names.add(name)
    for number, argument in enumerate(node.args):
        if isinstance(argument, ast.Starred):
            break
        if str(number) in names:
            yield from value(argument, source)
    for keyword in node.keywords:
        if keyword.arg in names:
            yield from value(keyword.value, source)


def _raised(raised: ast.expr, source: Source) -> Iterator[Shown]:
    match raised:
        case ast.Call(func=ast.Attribute(value=ast.Call() as inner, attr="with_traceback")):
            yield from _raised(inner, source)
        case ast.Call():
            yield from _exception(raised, _exception_class(raised.func, source), source)
        case ast.IfExp(body=body, orelse=orelse):
            yield from _raised(body, source)
            yield from _raised(orelse, source)


def _exception(call: ast.Call, exception: type[BaseException] | None, source: Source) -> Iterator[Shown]:
    """What the text of an exception shows; of a class of unknown ways only what is written as text counts."""
    plain = exception is not None and not issubclass(exception, _NO_TEXT) and prints_arguments(call.func, source)
    for argument in call.args:
        if not plain or exception is None:
            yield from text(argument, source)
            continue
        kept = exception.__name__ if issubclass(exception, _KEEP_ARGUMENTS) else ""
        for shown in value(argument, source):
            own = shown.node is argument and shown.via is Via.VALUE
            yield Shown(shown.node, shown.via, shown.holder, kept=kept) if own else shown
    for keyword in call.keywords:
        yield from text(keyword.value, source)


def _exception_class(func: ast.expr, source: Source) -> type[BaseException] | None:
    """The builtin exception class that `func` is or derives from, as far as this file shows it."""
    return next((found for found, _ in _lineage(func, source) if found is not None), None)


def prints_arguments(func: ast.expr, source: Source) -> bool:
    """Whether the exception class `func` shows its arguments as they are: no class up to the builtin one has own ways."""
    return all(plain for _, plain in _lineage(func, source))


def _lineage(func: ast.expr, source: Source) -> Iterator[tuple[type[BaseException] | None, bool]]:
    """The classes from `func` up by first bases: the builtin class, if it is one, and whether it has no own ways."""
    seen: set[ast.AST] = set()
    current: ast.expr | None = func
    while current is not None and current not in seen:
        seen.add(current)
        reference = source.scopes.qualified(current) or ""
        known = (
            getattr(builtins, reference.removeprefix("builtins."), None) if reference.startswith("builtins.") else None
        )
        if isinstance(known, type) and issubclass(known, BaseException):
            yield known, True
            return
        definition = _class(current, source)
        if definition is None:
            yield None, False
            return
        own = {part.name for part in definition.body if isinstance(part, ast.FunctionDef)}
        yield None, own.isdisjoint(_OWN_WAYS) and not definition.decorator_list
        current = definition.bases[0] if definition.bases else None


def _class(node: ast.expr, source: Source) -> ast.ClassDef | None:
    """The class of this file that a plain name stands for."""
    if isinstance(node, ast.Name):
        bindings = source.scopes.lookup(node.id, source.scopes.of[node])
        match [binding.node for binding in bindings if binding.kind is Kind.DEFINITION]:
            case [ast.ClassDef() as definition] if len(bindings) == 1:
                return definition
    return None
