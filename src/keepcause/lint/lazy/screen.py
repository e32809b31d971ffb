"""Cheap test on a file's bytes: can anything lazy get into a text in it? Imports logical lines and names.

The rules about lazy iterators follow values by scope and flow. This follows words, whatever they mean where they stand:
a name that is given something lazy anywhere may hold it everywhere. What it turns down has no finding.
"""

from __future__ import annotations

import ast
import functools
import re
from typing import TYPE_CHECKING

from keepcause.lint.lazy import sources as lazy_sources
from keepcause.lint.lazy.sources import BUILTINS, LAZY, LOGS, OWN_TEXTS, is_used, returning, sources, used_from
from keepcause.lint.pickling.construct import BUILTIN_EXCEPTIONS
from keepcause.lint.unparsed.logical import BETWEEN, normalized, statements
from keepcause.lint.unparsed.surroundings import line_around

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from keepcause.lint.unparsed.file import Unparsed
    from keepcause.lint.unparsed.logical import LogicalLines

_VIEW = re.compile(rb"\.%s(?:keys|values|items)" % BETWEEN)
_DEFINED = re.compile(rb"\bdef[ \t]+(?!__init__\b)([A-Za-z_]\w*)", re.ASCII)

_SHOWING = ("str", "repr", "ascii", "format", "dedent", "indent", "fill", "shorten", "cleandoc")
_ERRORS = ("exit", "skip", "xfail", "fail", "skipTest", "add_note", "__init__")
_SAYING = frozenset((*_ERRORS, *LOGS))
_LEAVES = (ast.Name, ast.Constant, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)


def may_show_view(file: Unparsed) -> bool:
    """Whether the file may make a view of a dict."""
    return _VIEW.search(file.code) is not None


@functools.lru_cache(maxsize=1)
def may_show_lazy(file: Unparsed) -> bool:
    """Whether an error or log text in the file may show, or run through, a lazy iterator."""
    code = file.code
    made = list(sources(code))
    returned = returning(code, made)
    functions = {name for name in lazy_sources.generators(code).union(*returned.values()) if is_used(code, name)}
    functions.update(used_from(code, _encoded(file.generators)) if file.generators else ())
    places = {line_around(code, at) for at in made if at not in returned}
    if not functions and not places:
        return False
    try:
        return _Search(file.lines, functions).finds_some(places)
    except (ValueError, RecursionError, MemoryError):
        return True


@functools.lru_cache(maxsize=1)
def _encoded(names: frozenset[str]) -> frozenset[bytes]:
    return frozenset(map(str.encode, names))


def generators(data: bytes) -> frozenset[str]:
    """The names of a file's generator functions, and of some others: all functions' where it takes parsing to tell."""
    plain = normalized(data)
    return frozenset(map(bytes.decode, _DEFINED.findall(data) if plain is None else lazy_sources.generators(plain)))


class _Search:
    """Follows lazy iterators and texts from name to name, by lines; a name means the same in all of the file."""

    def __init__(self, lines: LogicalLines, functions: Iterable[bytes]) -> None:
        """`functions` are the names of those that may give something lazy."""
        self._lines = lines
        self._attributes = LAZY if b"builtins" in lines.code else LAZY.difference(BUILTINS)
        self._functions: set[str] = set()
        """The names of functions that may give something lazy."""
        self._held: set[str] = set()
        """The names and attributes that may hold something lazy."""
        self._texts: set[str] = set()
        """The names that may hold a text that shows or runs through something lazy, or what is made from one."""
        self._waiting: list[tuple[str, set[str]]] = []
        for name in functions:
            self._add(name.decode(), self._functions)

    def finds_some(self, places: Iterable[bytes]) -> bool:
        """Whether some text may show one; `places` are what the file's lines hold that make something lazy."""
        if any(map(self._shows, {start for place in places for start in self._lines.holding(place)})):
            return True
        while self._waiting:
            if any(map(self._shows, self._concerned(*self._waiting.pop()))):
                return True
        return False

    def _add(self, name: str, to: set[str]) -> None:
        if name not in to:
            to.add(name)
            self._waiting.append((name, to))

    def _concerned(self, name: str, among: set[str]) -> Iterator[int]:
        """Where the lines begin in which `name`, which is one of `among`, may go on."""
        word = name.encode()
        for start in self._lines.holding(word):
            if among is not self._functions or is_used(self._lines.line(start), word):
                yield start

    # One line

    def _shows(self, start: int) -> bool:
        """Whether a text in the line at `start` may show something lazy; follows the names that it is given."""
        for top in statements(self._lines.line(start)):
            for node in _walk(top):
                match node:
                    case ast.Call():
                        if self._call_shows(node):
                            return True
                    case ast.Return(value=ast.expr() as value):
                        if self._return_shows(value, start):
                            return True
                    case ast.Raise(exc=raised, cause=cause):
                        if any(part is not None and self._says(part) for part in (raised, cause)):
                            return True
                    case ast.Assert(msg=ast.expr() as message):
                        if self._prints(message):
                            return True
                    case ast.Assign(targets=targets, value=value):
                        for target in targets:
                            self._give(target, value)
                    case (
                        ast.AnnAssign(target=target, value=ast.expr() as value)
                        | ast.AugAssign(target=target, value=value)
                        | ast.NamedExpr(target=target, value=value)
                    ):
                        self._give(target, value)
        return False

    def _call_shows(self, call: ast.Call) -> bool:
        """Whether `call` makes an error or log text that may show something lazy."""
        if not any(map(self._prints, _given(call))):
            return False
        match call.func:
            case ast.Name(id=name):
                return name in _SAYING or name in BUILTIN_EXCEPTIONS or name in self._lines.derived
            case ast.Attribute(attr=name):
                return name in _SAYING or name.startswith("assert")
        return False

    def _return_shows(self, value: ast.expr, start: int) -> bool:
        """Whether what the line at `start` returns is the text of an object, and may show something lazy."""
        if self._is_lazy(value):
            for name in self._lines.around(start):
                self._add(name, self._functions)
        return self._says(value) and not OWN_TEXTS.isdisjoint(self._lines.around(start))

    def _give(self, target: ast.expr, value: ast.expr) -> None:
        """Follow `target` if `value` goes on; unpacking gives each name its own value, or an item of something."""
        match target, value:
            case ((ast.Tuple() | ast.List()), (ast.Tuple() | ast.List())):
                if len(target.elts) == len(value.elts):
                    for each, given in zip(target.elts, value.elts, strict=True):
                        self._give(each, given)
            case ((ast.Name(id=name) | ast.Attribute(attr=name)), _):
                if self._is_lazy(value):
                    self._add(name, self._held)
                if self._says(value):
                    self._add(name, self._texts)

    # One expression

    def _is_lazy(self, node: ast.expr) -> bool:
        """Whether `node` may be lazy."""
        match node:
            case ast.GeneratorExp():
                return True
            case ast.Name() | ast.Attribute():
                return self._is_held(node)
            case ast.Call(func=ast.Name(id=name)):
                return name in self._functions or name in LAZY
            case ast.Call(func=ast.Attribute(attr=name)):
                return name in self._functions or name in self._attributes
            case ast.IfExp(body=body, orelse=orelse):
                return self._is_lazy(body) or self._is_lazy(orelse)
            case ast.NamedExpr(value=value):
                return self._is_lazy(value)
        return False

    def _is_held(self, node: ast.expr) -> bool:
        """Whether `node` names what this file may have given something lazy."""
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return name in self._held
        return False

    def _prints(self, node: ast.expr) -> bool:
        """Whether a text that shows `node` by its `str` or `repr` may show, or run through, something lazy."""
        match node:
            case ast.Starred(value=value):
                return self._is_held(value)
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts) | ast.BoolOp(values=parts):
                return any(map(self._prints, parts))
            case ast.Dict(values=parts):
                return any(map(self._prints, parts))
            case ast.IfExp(body=body, orelse=orelse):
                return self._prints(body) or self._prints(orelse)
            case ast.NamedExpr(value=value):
                return self._prints(value)
            case ast.ListComp(elt=element, generators=[first, *_]) | ast.SetComp(elt=element, generators=[first, *_]):
                return self._is_held(first.iter) or self._prints(element)
            case ast.Call(args=[first, *_]) if self._is_held(first):
                return True
        return self._is_lazy(node) or self._says(node)

    def _says(self, node: ast.expr) -> bool:
        """Whether `node`, if it is a text or made from one, may show, or run through, something lazy."""
        match node:
            case ast.Name(id=name):
                return name in self._texts
            case ast.JoinedStr(values=parts):
                fields = [part for part in parts if isinstance(part, ast.FormattedValue)]
                specs = [field.format_spec for field in fields if field.format_spec is not None]
                return any(self._prints(field.value) for field in fields) or any(map(self._says, specs))
            case ast.BinOp(left=left, right=right):
                return self._prints(left) or self._prints(right)
            case ast.IfExp(body=body, orelse=orelse):
                return self._says(body) or self._says(orelse)
            case ast.BoolOp(values=parts):
                return any(map(self._says, parts))
            case ast.NamedExpr(value=value):
                return self._says(value)
            case ast.Call(func=ast.Attribute(attr="join"), args=arguments):
                return any(map(self._joins, arguments))
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _SHOWING:
                return any(map(self._prints, _given(node)))
            case ast.Call(func=function):
                return any(map(self._says, (function, *_given(node))))
            case ast.Attribute(value=owner):
                return self._says(owner)
        return False

    def _joins(self, joined: ast.expr) -> bool:
        """Whether joining `joined` may show something lazy, or run through what a name holds."""
        match joined:
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                return any(map(self._says, parts))
            case (
                ast.GeneratorExp(elt=element, generators=[first, *_])
                | ast.ListComp(elt=element, generators=[first, *_])
            ):
                return self._is_held(first.iter) or self._says(element)
            case ast.Call(func=ast.Name(id=name)) if name in _SHOWING:
                return any(map(self._prints, joined.args))
            case ast.Call(args=arguments):
                return any(map(self._is_held, arguments))
        return self._is_held(joined)


def _walk(top: ast.AST) -> Iterator[ast.AST]:
    """`top` and what is below it, but names, constants and what has no place."""
    pending = [top]
    while pending:
        node = pending.pop()
        yield node
        for field in node._fields:
            value = getattr(node, field)
            parts = value if isinstance(value, list) else (value,)
            pending += [part for part in parts if isinstance(part, ast.AST) and not isinstance(part, _LEAVES)]


def _given(call: ast.Call) -> list[ast.expr]:
    """What `call` passes."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]
