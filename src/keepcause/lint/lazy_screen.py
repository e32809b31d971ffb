"""Cheap test on a file's bytes: can anything lazy get into a text in it? Imports logical lines only.

The rules about lazy iterators follow values by scope and flow. This follows words, whatever they mean where they stand:
a name that is given something lazy anywhere may hold it everywhere. What it turns down has no finding.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
import warnings
from typing import TYPE_CHECKING

from keepcause.lint.logical import BETWEEN, NO_WORD, TOKENS, LogicalLines, normalized, statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_VIEW = re.compile(rb"\.%s(?:keys|values|items)" % BETWEEN)

_BUILTINS = ("map", "filter", "zip", "enumerate", "reversed", "iter")
_ITERTOOLS = (
    *("accumulate", "batched", "chain", "from_iterable", "combinations", "combinations_with_replacement", "compress"),
    *("cycle", "dropwhile", "filterfalse", "groupby", "islice", "pairwise", "permutations", "product", "starmap"),
    *("takewhile", "zip_longest"),
)
_OTHERS = {
    b"scandir": ("scandir",),
    b"walk": ("walk", "fwalk"),
    b"glob": ("iglob",),
    b"csv": ("reader",),
    b"finditer": ("finditer",),
    b"itertools": _ITERTOOLS,
}
"""What has to be in a file -> functions of the standard library that it may call then."""
_LAZY = frozenset((*_BUILTINS, *(name for names in _OTHERS.values() for name in names)))

_LISTING = ("list", "tuple", "sorted")
_TAKING = ("any", "all", "sum", "max", "next")
_QUIET = (*_LISTING, *_TAKING)
_SHOWING = ("str", "repr", "ascii", "format", "dedent", "indent", "fill", "shorten", "cleandoc")
_ERRORS = ("exit", "skip", "xfail", "fail", "skipTest", "add_note", "__init__")
_LOGS = ("debug", "info", "warning", "warn", "warn_explicit", "error", "critical", "exception", "fatal", "log")
_SAYING = frozenset((*_ERRORS, *_LOGS))
_EXCEPTIONS = frozenset(
    name for name, what in vars(builtins).items() if isinstance(what, type) and issubclass(what, BaseException)
)
_OWN_TEXTS = frozenset(("__str__", "__repr__"))

_QUIET_CALL = b"".join(rb"(?<!\b%s)" % name.encode() for name in _QUIET) + rb"(?<!\.join)"
_FOR = re.compile(rb"for" + NO_WORD)
_ATTRIBUTE = re.compile(rb"\.(?<!self\.)(?<!cls\.)%s([\w\x80-\xff]++)" % BETWEEN)
_IMPORTED = re.compile(rb"import%s([^\0]*+)" % NO_WORD)
_WORD = re.compile(rb"[\w\x80-\xff]++")
_GENERATOR = re.compile(
    _QUIET_CALL + rb"\((?:[^\"'#()\[\]{}\\f]++|f|%s)*?(?<![A-Za-z_\x80-\xff])for%s" % (TOKENS, NO_WORD), re.DOTALL
)


def _uses(name: str, *ignored: bytes) -> re.Pattern[bytes]:
    """Finds the word `name`, unless what stands right before it is one of `ignored`.

    The letters come first, since a pattern that begins with them is quick to search for.
    """
    word = name.encode()
    behind = b"".join(rb"(?<!%s%s)" % (before, word) for before in (rb"[\w\x80-\xff]", *ignored))
    return re.compile(word + NO_WORD + behind)


_TAKEN_AT_ONCE = (b" in ", rb"\.join\(", *(rb"\b%s\(" % name.encode() for name in _QUIET))
_BUILTIN_USES = tuple(_uses(name, rb"\.", *_TAKEN_AT_ONCE) for name in _BUILTINS)
_QUALIFIED_USES = tuple(_uses(name, *_TAKEN_AT_ONCE) for name in _BUILTINS)
_OTHER_USES = {word: tuple(_uses(name, *_TAKEN_AT_ONCE) for name in names) for word, names in _OTHERS.items()}
_VALUE = rb"(?::[^\r\n=]*)?=(?!=)"
_QUIET_BINDINGS = tuple(
    re.compile(name.encode() + NO_WORD + rb"(?=[)\]\s\\]*+(?:%s|:=|,[^=\r\n]*=))" % _VALUE) for name in _QUIET
)
_CONSTANT_DEFAULT = re.compile(rb"\w*\s*%s%s(?:None|True|False|[^A-Za-z_\x80-\xff(])" % (_VALUE, BETWEEN))
_NO_TEXT = re.compile(rb"[^\"'#]*")
_BRACKET = re.compile(rb"([\w\x80-\xff)\]]\s*)?[(\[{]|([)\]}])")
_QUIET_ALIAS = re.compile(rb"as%s(?:%s)%s" % (BETWEEN, "|".join(_QUIET).encode(), NO_WORD))


def may_show_view(data: bytes) -> bool:
    """Whether the file with these bytes may make a view of a dict."""
    plain = normalized(data)
    return plain is None or _VIEW.search(plain) is not None


@functools.lru_cache(maxsize=1)
def may_show_lazy(data: bytes, elsewhere: frozenset[str] = frozenset()) -> bool:
    """Whether an error or log text in the file with these bytes may show, or run through, a lazy iterator.

    `elsewhere` are the names of other modules' functions that may give one.
    """
    plain = normalized(data)
    if plain is None:
        return True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _Search(LogicalLines(plain), elsewhere).finds_some()
    except (ValueError, RecursionError, MemoryError):
        return True


def generators(data: bytes) -> frozenset[str] | None:
    """The names of a file's generator functions, and of some others; None where it takes parsing to tell them."""
    plain = normalized(data)
    if plain is None:
        return None
    if b"yield" not in plain:
        return frozenset()
    try:
        lines = LogicalLines(plain)
    except ValueError:
        return None
    return frozenset(name for start in lines.holding(b"yield") for name in lines.around(start))


class _Search:
    """Follows lazy iterators and texts from name to name, by lines; a name means the same in all of the file."""

    def __init__(self, lines: LogicalLines, elsewhere: frozenset[str]) -> None:
        self._lines = lines
        self._elsewhere = elsewhere
        self._bound: set[str] = set()
        """The names and attributes that may hold something lazy, a function that makes it, or a text that shows it."""
        self._waiting: list[str] = []
        self._attributes = _LAZY if b"builtins" in lines.code else _LAZY.difference(_BUILTINS)

    def finds_some(self) -> bool:
        """Whether some text may show one."""
        for start in self._lines.holding(b"yield"):
            self._bind_functions(start)
        if any(self._shows(start) for start in self._sources()):
            return True
        while self._waiting:
            if any(self._shows(start) for start in self._lines.holding(self._waiting.pop().encode())):
                return True
        return self._rebinds_quiet()

    def _matching(self, patterns: Iterable[re.Pattern[bytes]]) -> list[int]:
        """The lines in which one of `patterns` is found."""
        code, start = self._lines.code, self._lines.start
        return list(dict.fromkeys(start(match.start()) for each in patterns for match in each.finditer(code)))

    def _sources(self) -> list[int]:
        """The lines in which something lazy is made, but for what is taken apart at once."""
        code = self._lines.code
        uses = list(_QUALIFIED_USES if b"builtins" in code else _BUILTIN_USES)
        for word, more in _OTHER_USES.items():
            if word in code:
                uses += more
        generators = list(self._generators())
        return list(dict.fromkeys((*generators, *self._matching(uses), *self._calls_elsewhere())))

    def _generators(self) -> Iterator[int]:
        """The lines that hold a generator expression."""
        code, end = self._lines.code, 0
        for match in _FOR.finditer(code):
            if match.start() > end:
                start, end = self._lines.start(match.start()), code.index(b"\0", match.end())
                if _GENERATOR.search(code, start, end):
                    yield start

    def _calls_elsewhere(self) -> Iterator[int]:
        """The lines that import, or name as an attribute, a function that gives something lazy."""
        if self._elsewhere:
            code, start = self._lines.code, self._lines.start
            for pattern in (_ATTRIBUTE, _IMPORTED):
                for match in pattern.finditer(code):
                    words = map(bytes.decode, _WORD.findall(match[1]))
                    if not self._elsewhere.isdisjoint(words):
                        yield start(match.start())

    def _rebinds_quiet(self) -> bool:
        """Whether the file may let one of the builtins that take items at once mean something that shows them."""
        code = self._lines.code
        if _QUIET_ALIAS.search(code):
            return True
        hits = [match.start() for pattern in _QUIET_BINDINGS for match in pattern.finditer(code)]
        starts = {start: None for hit in hits if self._may_bind(start := self._lines.start(hit), hit)}
        tops = [top for start in starts for top in statements(self._lines.line(start))]
        return any(_rebinds(node) for top in tops for node in ast.walk(top))

    def _may_bind(self, start: int, hit: int) -> bool:
        """Whether the name at `hit`, behind which there is some `=`, may be bound there to a function."""
        line, before = self._lines.line(start), self._lines.code[start:hit]
        if b":=" in line or b"lambda" in line or not _NO_TEXT.fullmatch(before):
            return True
        if b"def" in line:
            is_header = line.rstrip().endswith(b":")
            return not (is_header and _CONSTANT_DEFAULT.match(self._lines.code, hit))
        in_call: list[bool] = []
        for bracket in _BRACKET.finditer(before):
            if bracket[2]:
                del in_call[-1:]
            else:
                in_call.append(bool(bracket[1]))
        return not any(in_call)

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
                says = name in _SAYING or name in _EXCEPTIONS or name in self._lines.classes
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
            case ast.alias(name=name, asname=alias):
                word = name.rpartition(".")[2]
                if word in self._elsewhere or (alias and (word in _LAZY or word in self._bound)):
                    self._bind(alias or word)

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
                return name in self._bound or name in _LAZY
            case ast.Attribute(attr=name, value=owner):
                return (
                    name in self._bound
                    or name in self._attributes
                    or (name in self._elsewhere and not (isinstance(owner, ast.Name) and owner.id in ("self", "cls")))
                )
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


def _rebinds(node: ast.AST) -> bool:
    """Whether `node` may give one of the quiet builtins' names to another function."""
    match node:
        case ast.Assign(targets=targets, value=value):
            names = [part for target in targets for part in ast.walk(target)]
            return any(_is_quiet(name) for name in names) and _refers(value)
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            return _is_quiet(target) and _refers(value)
        case ast.arguments():
            return any(name in _QUIET and _refers(default) for name, default in _defaults(node))
    return False


def _is_quiet(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in _QUIET


def _refers(node: ast.expr) -> bool:
    """Whether `node` may stand for a function."""
    match node:
        case ast.Name() | ast.Attribute():
            return True
        case ast.Call(args=[first, *_]):  # it may be a partial one
            return _refers(first)
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.BoolOp(values=parts):
            return any(map(_refers, parts))
        case ast.IfExp(body=body, orelse=orelse):
            return _refers(body) or _refers(orelse)
        case ast.NamedExpr(value=value) | ast.Await(value=value) | ast.Starred(value=value):
            return _refers(value)
    return False
