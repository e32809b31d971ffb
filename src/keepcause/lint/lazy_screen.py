"""Cheap test on a file's bytes: can anything lazy get into a text in it? Imports logical lines and names.

The rules about lazy iterators follow values by scope and flow. This follows words, whatever they mean where they stand:
a name that is given something lazy anywhere may hold it everywhere. What it turns down has no finding.
"""

from __future__ import annotations

import ast
import functools
import re
from typing import TYPE_CHECKING

from keepcause.lint import lazy_sources
from keepcause.lint.construct import BUILTIN_EXCEPTIONS
from keepcause.lint.lazy_sources import BUILTINS, LAZY, LOGS, is_used, sources, used_from
from keepcause.lint.logical import BETWEEN, normalized, statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from keepcause.lint.logical import LogicalLines
    from keepcause.lint.unparsed import Unparsed

_VIEW = re.compile(rb"\.%s(?:keys|values|items)" % BETWEEN)

_LISTING = ("list", "tuple", "sorted")
_TAKING = ("any", "all", "sum", "max", "next")
_QUIET = (*_LISTING, *_TAKING)
_SHOWING = ("str", "repr", "ascii", "format", "dedent", "indent", "fill", "shorten", "cleandoc")
_ERRORS = ("exit", "skip", "xfail", "fail", "skipTest", "add_note", "__init__")
_SAYING = frozenset((*_ERRORS, *LOGS))
_OWN_TEXTS = frozenset(("__str__", "__repr__"))


def may_show_view(file: Unparsed) -> bool:
    """Whether the file may make a view of a dict."""
    return _VIEW.search(file.code) is not None


@functools.lru_cache(maxsize=1)
def may_show_lazy(file: Unparsed) -> bool:
    """Whether an error or log text in the file may show, or run through, a lazy iterator."""
    functions = {name for name in lazy_sources.generators(file.code) if is_used(file.code, name)}
    functions.update(used_from(file.code, _encoded(file.generators)) if file.generators else ())
    if not functions and next(sources(file.code), None) is None:
        return False
    try:
        return _Search(file.lines, functions).finds_some()
    except (ValueError, RecursionError, MemoryError):
        return True


@functools.lru_cache(maxsize=1)
def _encoded(names: frozenset[str]) -> frozenset[bytes]:
    return frozenset(map(str.encode, names))


def generators(data: bytes) -> frozenset[str] | None:
    """The names of a file's generator functions, and of some others; None where it takes parsing to tell them."""
    plain = normalized(data)
    return None if plain is None else frozenset(map(bytes.decode, lazy_sources.generators(plain)))


class _Search:
    """Follows lazy iterators and texts from name to name, by lines; a name means the same in all of the file."""

    def __init__(self, lines: LogicalLines, functions: Iterable[bytes]) -> None:
        """`functions` are the names of those that may give something lazy."""
        self._lines = lines
        self._bound: set[str] = set()
        """The names and attributes that may hold something lazy, a function that makes it, or a text that shows it."""
        self._waiting: list[str] = []
        self._attributes = LAZY if b"builtins" in lines.code else LAZY.difference(BUILTINS)
        for name in functions:
            self._bind(name.decode())

    def finds_some(self) -> bool:
        """Whether some text may show one."""
        code = self._lines.code
        if any(map(self._shows, dict.fromkeys(self._lines.start(at) for at in sources(code)))):
            return True
        while self._waiting:
            if any(map(self._shows, self._lines.holding(self._waiting.pop().encode()))):
                return True
        return False

    # One line

    def _shows(self, start: int) -> bool:
        """Whether a text in the line at `start` may show something lazy; binds the names that the line gives it to."""
        found = False
        for top in statements(self._lines.line(start)):
            for node in ast.walk(top):
                found = found or self._makes_text(node)
                self._follow(node, start)
        return found or not _OWN_TEXTS.isdisjoint(self._bound)

    def _makes_text(self, node: ast.AST) -> bool:
        """Whether `node` makes an error or log text that may show something lazy."""
        match node:
            case ast.Raise(exc=raised, cause=cause):
                return any(part is not None and self._flows(part) for part in (raised, cause))
            case ast.Assert(msg=ast.expr() as message):
                return self._flows(message, shown=True)
            case ast.Call(func=ast.Name(id=name)):
                says = name in _SAYING or name in BUILTIN_EXCEPTIONS or name in self._lines.classes
                return says and self._arguments_flow(node)
            case ast.Call(func=ast.Attribute(attr=name)):
                return (name in _SAYING or name.startswith("assert")) and self._arguments_flow(node)
        return False

    def _follow(self, node: ast.AST, start: int) -> None:
        """Bind the names to which `node` gives what may be lazy, or a text that may show it."""
        match node:
            case ast.Return(value=ast.expr() as value):
                if self._flows(value):
                    self._bind_functions(start)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._give(target, value)
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.AugAssign(target=target, value=value)
                | ast.NamedExpr(target=target, value=value)
            ):
                self._give(target, value)
            case ast.arguments():
                for parameter, default in _defaults(node):
                    if self._flows(default):
                        self._bind(parameter)

    def _bind(self, name: str) -> None:
        if name not in self._bound:
            self._bound.add(name)
            self._waiting.append(name)

    def _bind_functions(self, start: int) -> None:
        for name in self._lines.around(start):
            self._bind(name)

    def _give(self, target: ast.expr, value: ast.expr) -> None:
        """Bind `target` if `value` flows; unpacking gives each name its own value, or an item of something."""
        match target, value:
            case ((ast.Tuple() | ast.List()), (ast.Tuple() | ast.List())):
                if len(target.elts) == len(value.elts):
                    for each, given in zip(target.elts, value.elts, strict=True):
                        self._give(each, given)
            case ((ast.Name(id=name) | ast.Attribute(attr=name)), _):
                if self._flows(value):
                    self._bind(name)

    # One expression

    def _flows(self, node: ast.AST, shown: bool = False) -> bool:
        """Whether `node` may be lazy, a function that makes what is lazy, or a text that shows or runs through it.

        Within a text, which is where `shown` is true, listing what a name holds counts.
        """
        match node:
            case ast.GeneratorExp():
                return True
            case ast.Constant() | ast.Compare() | ast.Lambda() | ast.Subscript():
                return False
            case ast.Name() | ast.Attribute():
                return self._is_lazy(node)
            case ast.Starred(value=value):
                return shown and self._is_held(value)
            case ast.ListComp(elt=element) | ast.SetComp(elt=element):
                return shown and (self._is_held(node.generators[0].iter) or self._flows(element, shown))
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name) as function):
                return self._call_flows(node, function, name, shown)
            case ast.JoinedStr() | ast.BinOp():
                shown = True
        return any(self._flows(child, shown) for child in ast.iter_child_nodes(node))

    def _call_flows(self, call: ast.Call, function: ast.expr, name: str, shown: bool) -> bool:
        if self._is_lazy(function):
            return True
        if isinstance(function, ast.Name):
            if name in _QUIET:
                return shown and name in _LISTING and any(map(self._is_held, call.args))
            return self._arguments_flow(call)
        assert isinstance(function, ast.Attribute)
        owner = function.value
        if self._is_held(owner) or (not isinstance(owner, ast.Name | ast.Attribute) and self._flows(owner)):
            return True
        if name == "join":
            return any(map(self._joins, call.args))
        if name in _SHOWING:
            return self._arguments_flow(call)
        values = [*call.args, *(keyword.value for keyword in call.keywords)]
        return any(self._flows(value) for value in values if not self._is_made_here(value))

    def _arguments_flow(self, call: ast.Call) -> bool:
        return any(self._flows(part, shown=True) for part in (*call.args, *call.keywords))

    def _joins(self, joined: ast.expr) -> bool:
        """Whether joining `joined` may show something lazy, or run through what a name holds."""
        match joined:
            case ast.GeneratorExp(elt=element, generators=[first, *_]):
                return self._is_held(first.iter) or self._flows(element, shown=True)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name) as function, args=arguments):
                if name in _QUIET or self._is_lazy(function):
                    return any(map(self._is_held, arguments))
        return self._flows(joined, shown=True)

    def _is_made_here(self, node: ast.expr) -> bool:
        """Whether `node` makes something lazy, which a call of something unknown does not show."""
        match node:
            case ast.Call(func=function):
                return self._is_lazy(function)
        return isinstance(node, ast.GeneratorExp)

    def _is_lazy(self, node: ast.expr) -> bool:
        """Whether `node` names what may be lazy, a text that shows it, or a function that makes either."""
        match node:
            case ast.Name(id=name):
                return name in self._bound or name in LAZY
            case ast.Attribute(attr=name):
                return name in self._bound or name in self._attributes
        return False

    def _is_held(self, node: ast.expr) -> bool:
        """Whether `node` names what this file may have given something lazy, or a text that shows it."""
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return name in self._bound
        return False


def _defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    """The parameters that have a default, with it."""
    positional = [*arguments.posonlyargs, *arguments.args]
    for parameter, default in zip(reversed(positional), reversed(arguments.defaults), strict=False):
        yield parameter.arg, default
    for parameter, keyword_default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if keyword_default is not None:
            yield parameter.arg, keyword_default
