"""What a text shows: the expressions in it, through the names that hold its parts; standard library only."""

from __future__ import annotations

import ast
import enum
import re
import string
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from keepcause.lint.lazy.values import given, is_called_by_name, last_bindings, values

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from keepcause.lint.source import Source

SHOWING = frozenset(f"builtins.{name}" for name in ("str", "repr", "ascii", "format"))
_AROUND_TEXT = frozenset(
    ("textwrap.dedent", "textwrap.indent", "textwrap.fill", "textwrap.shorten", "inspect.cleandoc", "builtins.str")
)
_TEXT_METHODS = (
    *("capitalize", "casefold", "center", "encode", "expandtabs", "ljust", "lower", "lstrip", "replace", "rjust"),
    *("rstrip", "strip", "swapcase", "title", "upper"),
)
_LISTING = frozenset(f"builtins.{name}" for name in ("list", "tuple", "sorted", "set", "frozenset"))
_PERCENT = re.compile(r"%(?:\((?P<key>[^)]*)\))?[#0\- +]*(?:\*|\d+)?(?:\.(?:\*|\d+))?[hlL]?(?P<type>.)", re.DOTALL)


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

    `holder` is the f-string field, or the call, around it. `through` is the name that holds its part of the text.
    `kept` names the exception class that keeps it as an argument beside the text. `fails` says why formatting raises.
    """

    node: ast.expr
    via: Via
    holder: ast.expr
    through: str = ""
    kept: str = ""
    fails: str = ""


class Texts:
    """Reads the texts of one error or log entry."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._followed: set[ast.AST] = set()

    def text(self, node: ast.expr) -> Iterator[Shown]:
        """What `node`, whose value is a text, shows."""
        match node:
            case ast.JoinedStr(values=values):
                for part in values:
                    if isinstance(part, ast.FormattedValue):
                        yield from self._field(part)
            case ast.BinOp(op=ast.Add()):
                yield from self._concatenation(node)
            case ast.BinOp(left=left, op=ast.Mod(), right=right):
                yield from self.text(left)
                yield from self.percent(left, right)
            case ast.IfExp(body=body, orelse=orelse):
                yield from self.text(body)
                yield from self.text(orelse)
            case ast.BoolOp(values=values):
                for part in values:
                    yield from self.text(part)
            case ast.NamedExpr(value=inner):
                yield from self.text(inner)
            case ast.Call():
                yield from self._call(node)
            case ast.Name(ctx=ast.Load()):
                yield from self._named(node)

    def value(self, node: ast.expr, holder: ast.FormattedValue | None = None) -> Iterator[Shown]:
        """What showing `node` by its own `str` or `repr` shows; `holder` is the field that `node` is the whole of."""
        match node:
            case ast.JoinedStr() | ast.BinOp():
                yield from self.text(node)
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                for part in parts:
                    yield from self._element(part)
            case ast.Dict(values=parts) | ast.BoolOp(values=parts):
                for part in parts:
                    yield from self.value(part)
            case ast.IfExp(body=body, orelse=orelse):
                yield from self.value(body)
                yield from self.value(orelse)
            case ast.NamedExpr(value=inner):
                yield from self.value(inner)
            case ast.ListComp(elt=element, generators=[first, *_]) | ast.SetComp(elt=element, generators=[first, *_]):
                yield Shown(first.iter, Via.LISTED, node)
                yield from self.value(element)
            case ast.Call(args=[ast.expr() as listed, *_]) if self._source.scopes.qualified(node.func) in _LISTING:
                yield Shown(listed, Via.LISTED, node)
            case _:
                yield Shown(node, Via.VALUE if holder is None else Via.FIELD, holder or node)
                yield from self.text(node)

    def percent(self, template: ast.expr, given: ast.expr) -> Iterator[Shown]:
        """What `template % given` shows of `given`."""
        match given:
            case ast.Tuple(elts=parts):
                yield from self.arguments(template, parts)
            case ast.Dict(keys=keys, values=parts):
                conversions = _conversions(written(template, self._source))
                for key, part in zip(keys, parts, strict=True):
                    name = key.value if isinstance(key, ast.Constant) else None
                    if conversions is None or any(c["key"] == name and c["type"] in "sra" for c in conversions):
                        yield from self.value(part)
            case _:
                yield from self.arguments(template, [given])

    def arguments(self, template: ast.expr, given: list[ast.expr]) -> Iterator[Shown]:
        """What `template`, filled with the values `given` in their order, shows of them.

        Conversions other than `%s`, `%r` and `%a` raise on everything lazy.
        """
        conversions = _conversions(written(template, self._source))
        for number, part in enumerate(given):
            if isinstance(part, ast.Starred):
                return
            if conversions is None or (number < len(conversions) and conversions[number]["type"] in "sra"):
                yield from self.value(part)

    def _element(self, part: ast.expr) -> Iterator[Shown]:
        if isinstance(part, ast.Starred):
            yield Shown(part.value, Via.LISTED, part)
        else:
            yield from self.value(part)

    def _field(self, part: ast.FormattedValue) -> Iterator[Shown]:
        spec = part.format_spec
        if isinstance(spec, ast.JoinedStr):
            yield from self.text(spec)
        plain = spec is None or part.conversion != -1
        for shown in self.value(part.value, part):
            if shown.node is part.value and not plain:
                yield replace(shown, fails="its format spec raises TypeError, for a list as well")
            else:
                yield shown

    def _concatenation(self, node: ast.BinOp) -> Iterator[Shown]:
        parts: list[ast.expr] = []
        rest: ast.expr = node
        while isinstance(rest, ast.BinOp) and isinstance(rest.op, ast.Add):
            parts.append(rest.right)
            rest = rest.left
        parts.append(rest)
        some_text = any(is_text(part, self._source) for part in parts)
        for part in reversed(parts):
            if some_text and not is_text(part, self._source):
                yield Shown(part, Via.CONCATENATED, part)
            yield from self.text(part)

    def _call(self, node: ast.Call) -> Iterator[Shown]:
        """What a call whose result is a text shows."""
        match node:
            case ast.Call(func=ast.Attribute(value=separator, attr="join"), args=[joined]):
                if is_text(separator, self._source):
                    yield from self._joined(joined)
            case ast.Call(func=ast.Attribute(value=template, attr="format")):
                yield from self._format(template, node)
            case ast.Call(func=ast.Attribute(value=inner, attr=method)) if method in _TEXT_METHODS:
                yield from self.text(inner)
            case ast.Call(func=func, args=[first, *_]):
                if self._is_showing(func) and not isinstance(first, ast.Starred):
                    yield from self.value(first)
                elif self._source.scopes.qualified(func) in _AROUND_TEXT:
                    yield from self.text(first)

    def _is_showing(self, function: ast.expr) -> bool:
        reference = self._source.scopes.qualified(function)
        return reference in SHOWING and is_called_by_name(function, reference)

    def _joined(self, joined: ast.expr) -> Iterator[Shown]:
        match joined:
            case ast.Call(func=func, args=[inner], keywords=[]) if self._is_showing(func):
                yield Shown(inner, Via.CHARACTERS, joined)
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                for part in parts:
                    yield from self.text(part)
            case (
                ast.GeneratorExp(elt=element, generators=[first, *_])
                | ast.ListComp(elt=element, generators=[first, *_])
            ):
                yield Shown(first.iter, Via.LISTED, joined)
                yield from self.text(element)
            case ast.Call(func=func, args=[_, listed]) if self._source.scopes.qualified(func) == "builtins.map":
                yield Shown(listed, Via.LISTED, joined)
            case _:
                yield Shown(joined, Via.LISTED, joined)

    def _format(self, template: ast.expr, node: ast.Call) -> Iterator[Shown]:
        """What `template.format(...)` shows by a plain field, one without attribute, index or format spec."""
        names = _plain_fields(written(template, self._source) or "")
        for number, argument in enumerate(node.args):
            if isinstance(argument, ast.Starred):
                break
            if str(number) in names:
                yield from self.value(argument)
        for keyword in node.keywords:
            if keyword.arg in names:
                yield from self.value(keyword.value)

    def _named(self, name: ast.Name) -> Iterator[Shown]:
        """What the parts of the text that `name` was given last show."""
        bindings = self._source.scopes.lookup(name.id, self._source.scopes.of[name])
        if name in self._followed or not any(
            _gives_text(binding.node, given(binding), self._source) for binding in bindings
        ):
            return
        self._followed.add(name)
        for binding in last_bindings(name, self._source):
            if binding.node in self._followed:
                continue
            self._followed.add(binding.node)
            up = self._source.parents.get(binding.node)
            if (part := given(binding)) is not None:
                yield from _reached(self.text(part), name.id)
            elif isinstance(up, ast.AugAssign) and isinstance(up.target, ast.Name):
                yield from _reached(self.text(up.value), name.id)
                yield from self._named(up.target)


def _reached(texts: Iterable[Shown], name: str) -> Iterator[Shown]:
    return (replace(shown, through=name) for shown in texts)


def _gives_text(node: ast.AST, value: ast.expr | None, source: Source) -> bool:
    """Whether this binding may give a text that shows something."""
    up = source.parents.get(node)
    if value is None:
        return isinstance(up, ast.AugAssign) and isinstance(up.op, ast.Add)
    return isinstance(value, ast.JoinedStr | ast.BinOp | ast.IfExp) or (
        isinstance(value, ast.Call) and is_text(value, source)
    )


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
            return source.scopes.qualified(func) in SHOWING | _AROUND_TEXT
    return False


def written(template: ast.expr, source: Source) -> str | None:
    """The text of a template: a constant, what a name certainly holds, or what `_` translates; None if unknown."""
    match template:
        case ast.Constant(value=str(text)):
            return text
        case ast.Call(func=ast.Name(id="_" | "gettext"), args=[ast.Constant(value=str(text))]):
            return text
        case ast.Name():
            match values(template, source):
                case [ast.Constant(value=str(text))]:
                    return text
    return None


def _conversions(template: str | None) -> list[re.Match[str]] | None:
    """The conversions of a `%` template; None where the template is not known."""
    if template is None:
        return None
    return [found for found in _PERCENT.finditer(template) if found["type"] != "%"]


def _plain_fields(template: str) -> set[str]:
    try:
        fields = list(string.Formatter().parse(template))
    except ValueError:
        return set()
    names = set()
    automatic = 0
    for _, name, spec, conversion in fields:
        if name == "":
            name, automatic = str(automatic), automatic + 1
        if name is not None and (not spec or conversion):
            names.add(name)
    return names
