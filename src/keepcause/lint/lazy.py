"""Which expressions are lazy iterators, and what listing one would do besides; standard library only."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepcause.lint.scope import FunctionNode, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from keepcause.lint.source import Source

_BUILTINS = frozenset(f"builtins.{name}" for name in ("map", "filter", "zip", "enumerate", "reversed", "iter"))
# count and repeat are left out: they print what they hold.
_ITERTOOLS = frozenset(
    "itertools." + name
    for name in [
        "accumulate",
        "batched",
        "chain",
        "chain.from_iterable",
        "combinations",
        "combinations_with_replacement",
        "compress",
        "cycle",
        "dropwhile",
        "filterfalse",
        "groupby",
        "islice",
        "pairwise",
        "permutations",
        "product",
        "starmap",
        "takewhile",
        "zip_longest",
    ]
)
_OTHERS = {
    "os.scandir": "reads a folder",
    "os.walk": "reads folders",
    "os.fwalk": "reads folders",
    "glob.iglob": "reads folders",
    "csv.reader": "reads its rows from a file",
    "re.finditer": "",
}
_HUGE = frozenset(
    f"itertools.{name}" for name in ("product", "permutations", "combinations", "combinations_with_replacement")
)
_CALLS_ITS_FIRST = frozenset(
    (
        "builtins.map",
        "builtins.filter",
        *(f"itertools.{n}" for n in ("dropwhile", "takewhile", "filterfalse", "starmap")),
    )
)
_ENDLESS = frozenset(("itertools.count", "itertools.cycle"))
_CONTAINERS = frozenset(f"builtins.{name}" for name in ("list", "tuple", "dict", "set", "frozenset", "sorted", "range"))
_DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp)
_VIEWS = ("keys", "values", "items")
_ENUMS = frozenset(f"enum.{name}" for name in ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"))
_HARMLESS_CALLS = frozenset(f"builtins.{name}" for name in ("str", "repr", "type"))
_ACTING_METHODS = frozenset(
    [
        "pop",
        "popleft",
        "popitem",
        "read",
        "readline",
        "readlines",
        "recv",
        "recv_bytes",
        "get_nowait",
        "send",
        "write",
        "append",
        "remove",
        "close",
        "__next__",
    ]
)
_FILE_OPENERS = frozenset(("builtins.open", "io.open", "os.popen", "os.fdopen", "gzip.open", "bz2.open", "lzma.open"))


@dataclass(frozen=True, eq=False)
class Lazy:
    """A lazy iterator: the expression that makes it, what it is in words, and what its `repr` begins with."""

    node: ast.expr
    what: str
    prints: str
    is_async: bool = False


@dataclass(frozen=True)
class Listing:
    """What listing a lazy iterator does besides; both empty where it does nothing.

    `never` is a reason why it must not be listed, `doubt` one why the program might notice.
    """

    never: str = ""
    doubt: str = ""

    def __or__(self, other: Listing) -> Listing:
        return Listing(self.never or other.never, self.doubt or other.doubt)


def lazy(node: ast.expr, source: Source) -> Lazy | None:
    """What makes `node` a lazy iterator by its form, if it is one."""
    if isinstance(node, ast.GeneratorExp):
        if _is_async(node):
            return Lazy(node, "an asynchronous generator expression", "<async_generator object", is_async=True)
        return Lazy(node, "a generator expression", "<generator object")
    if not isinstance(node, ast.Call):
        return None
    reference = source.scopes.qualified(node.func)
    if reference is None:
        return None
    if reference in _BUILTINS:
        name = reference.removeprefix("builtins.")
        own = name not in ("iter", "reversed")  # these two give a type that depends on what they are given
        return Lazy(node, f"{_article(name)} `{name}`", f"<{name if own else '... iterator'} object")
    if reference in _ITERTOOLS:
        name = reference.removeprefix("itertools.")
        return Lazy(node, f"an `itertools.{name}`", f"<itertools.{name.partition('.')[0]} object")
    if reference in _OTHERS:
        return Lazy(node, f"the iterator of `{reference}`", "<... iterator object")
    return None


def _article(name: str) -> str:
    return "an" if name[0] in "aeiou" else "a"


def _is_async(node: ast.GeneratorExp) -> bool:
    first, *others = node.generators
    inside: list[ast.AST] = [node.elt, *first.ifs, *others]
    return (
        first.is_async == 1
        or any(each.is_async for each in others)
        or any(isinstance(part, ast.Await) for top in inside for part in ast.walk(top))
    )


def listing(node: ast.expr, source: Source) -> Listing:
    """What making a list of the lazy iterator `node` does besides."""
    if isinstance(node, ast.GeneratorExp):
        return _generator_expression(node, source)
    assert isinstance(node, ast.Call)
    reference = source.scopes.qualified(node.func) or ""
    if reference in _OTHERS:
        acts = _OTHERS[reference]
        return Listing(never=f"listing it {acts}" if acts else "", doubt="listing it runs the search")
    if reference in _HUGE:
        return Listing(never="it may be huge")
    if reference == "itertools.groupby":
        return Listing(never="its groups are iterators themselves")
    if any(isinstance(argument, ast.Starred) for argument in node.args):
        return Listing(doubt="reads what an unpacked argument holds")
    return _call(node, reference, source)


def _call(node: ast.Call, reference: str, source: Source) -> Listing:
    """A call of a builtin or an itertools function, told by its arguments."""
    result = Listing()
    arguments = node.args
    if reference == "builtins.iter" and len(arguments) == 2:
        return Listing(never="it calls a function until a sentinel comes")
    if reference in _CALLS_ITS_FIRST and arguments:
        function, *arguments = arguments
        called = source.scopes.qualified(function)
        is_none = isinstance(function, ast.Constant)
        if called not in _HARMLESS_CALLS and not (is_none and reference.endswith(("filter", "filterfalse"))):
            result |= _called(function)
    if reference in ("itertools.accumulate", "itertools.chain.from_iterable"):
        result |= Listing(
            doubt="what it adds up may raise" if reference.endswith("accumulate") else "reads its elements"
        )
    if reference in ("itertools.islice", "itertools.batched"):
        arguments = arguments[:1]
    if reference == "builtins.zip" and any(not _endless(argument, source) for argument in arguments):
        arguments = [argument for argument in arguments if not _endless(argument, source)]
    if reference == "itertools.cycle":
        result |= Listing(never="it never ends")
    for argument in arguments:
        result |= reading(argument, source)
    return result


def _endless(node: ast.expr, source: Source) -> bool:
    if not isinstance(node, ast.Call):
        return False
    reference = source.scopes.qualified(node.func)
    return reference in _ENDLESS or (reference == "itertools.repeat" and len(node.args) + len(node.keywords) < 2)


def _generator_expression(node: ast.GeneratorExp, source: Source) -> Listing:
    result = Listing()
    for clause in node.generators:
        result |= reading(clause.iter, source)
        if not isinstance(clause.target, ast.Name) and not _gives_tuples(clause.iter, source):
            result |= Listing(doubt=f"unpacking `{short(clause.target)}` may raise")
        for condition in clause.ifs:
            result |= _element(condition, source)
    return result | _element(node.elt, source)


def _gives_tuples(node: ast.expr, source: Source) -> bool:
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr == "items"
    return source.scopes.qualified(node.func) in ("builtins.enumerate", "builtins.zip")


def _element(node: ast.expr, source: Source) -> Listing:
    """What computing `node`, an element or a condition, may do.

    Names, constants, attributes of plain names, comparisons, truth tests, `str`, `repr` and `type` count as harmless.
    """
    match node:
        case ast.Name() | ast.Constant() | ast.Attribute(value=ast.Name()):
            return Listing()
        case ast.Call(func=func, args=[argument], keywords=[]) if source.scopes.qualified(func) in _HARMLESS_CALLS:
            return _element(argument, source)
        case ast.Call(func=func):
            return _called(func)
        case ast.FormattedValue(value=inner, format_spec=None):
            return _element(inner, source)
        case ast.Compare(left=left, comparators=others):
            parts = [left, *others]
        case ast.BoolOp(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.JoinedStr(values=parts):
            pass
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            parts = [operand]
        case ast.IfExp(test=test, body=body, orelse=orelse):
            parts = [test, body, orelse]
        case _:
            return Listing(doubt=f"`{short(node)}` may raise")
    result = Listing()
    for part in parts:
        result |= _element(part, source)
    return result


def _called(function: ast.expr) -> Listing:
    if isinstance(function, ast.Attribute) and function.attr in _ACTING_METHODS:
        return Listing(never=f"each item calls `{short(function)}`, which acts")
    return Listing(doubt=f"calls `{short(function)}`, which may raise or act")


def reading(node: ast.expr, source: Source) -> Listing:
    """What running through `node` once more does."""
    if is_container(node, source):
        return Listing()
    if _endless(node, source):
        return Listing(never="it never ends")
    if _is_file(node, source):
        return Listing(never=f"listing it reads the file `{short(node)}`")
    if lazy(node, source) is not None:
        return listing(node, source)
    return Listing(doubt=f"reads `{short(node)}`, which may be one-shot")


def _is_file(node: ast.expr, source: Source) -> bool:
    match node:
        case ast.Call(func=func):
            return source.scopes.qualified(func) in _FILE_OPENERS
        case ast.Name(id=name):
            return any(
                _is_file(opened, source)
                for binding in source.scopes.lookup(name, source.scopes.of[node])
                for opened in (binding.value, _entered(binding.node, source))
                if opened is not None
            )
    return False


def _entered(node: ast.AST, source: Source) -> ast.expr | None:
    up = source.parents.get(node)
    return up.context_expr if isinstance(up, ast.withitem) else None


def is_container(node: ast.expr, source: Source) -> bool:
    """Whether `node` can be run through again and again, as far as this file shows it."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, str | bytes)
        case ast.Call(func=ast.Attribute(value=inner, attr=method), args=[]) if method in _VIEWS:
            return _is_dict(inner, source)
        case ast.Call(func=func):
            return source.scopes.qualified(func) in _CONTAINERS
        case ast.Name():
            return _is_container_name(node, source)
    return isinstance(node, _DISPLAYS)


def _is_dict(node: ast.expr, source: Source) -> bool:
    match node:
        case ast.Dict() | ast.DictComp():
            return True
        case ast.Call(func=func):
            return source.scopes.qualified(func) == "builtins.dict"
        case ast.Name(id=name):
            bindings = source.scopes.lookup(name, source.scopes.of[node])
            return bool(bindings) and all(b.value is not None and _is_dict(b.value, source) for b in bindings)
    return False


def _is_container_name(node: ast.Name, source: Source) -> bool:
    bindings = source.scopes.lookup(node.id, source.scopes.of[node])
    if not bindings:
        return False
    if all(_binds_container(binding.node, binding.value, source) for binding in bindings):
        return True
    return any(
        _shows_container(use, node, source)
        for use in _function_nodes(node, source)
        if isinstance(use, ast.Name) and use is not node and use.id == node.id
        if source.scopes.lookup(use.id, source.scopes.of[use]) is bindings
    )


def _binds_container(node: ast.AST, value: ast.expr | None, source: Source) -> bool:
    if isinstance(node, ast.arg):
        function = source.scopes.of[node].node
        return isinstance(function, FunctionNode) and node in (function.args.vararg, function.args.kwarg)
    if isinstance(node, ast.ClassDef):
        return any(source.scopes.qualified(base) in _ENUMS for base in node.bases)
    return value is not None and not isinstance(value, ast.Name) and is_container(value, source)


def _function_nodes(node: ast.AST, source: Source) -> Iterable[ast.AST]:
    function = source.scopes.of[node].function.node
    return ast.walk(function)


def _shows_container(use: ast.Name, place: ast.Name, source: Source) -> bool:
    """Whether this use tells that its name holds a container: indexed, measured, tested for it or run through."""
    up = source.parents[use]
    match up:
        case ast.Subscript(value=value):
            return value is use and isinstance(up.ctx, ast.Load)
        case ast.Call(func=func, args=[first]) if first is use:
            return source.scopes.qualified(func) == "builtins.len"
        case ast.Call(func=func, args=[first, kinds]) if first is use:
            return source.scopes.qualified(func) == "builtins.isinstance" and _all_containers(kinds, source)
        case ast.For(iter=iterated) | ast.comprehension(iter=iterated):
            return iterated is use
    return False


def _all_containers(kinds: ast.expr, source: Source) -> bool:
    each = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
    return all(source.scopes.qualified(kind) in _CONTAINERS - {"builtins.sorted"} for kind in each)


def short(node: ast.AST) -> str:
    """The expression's source text on one line, cut where it is long."""
    written = " ".join(ast.unparse(node).split())
    return written if len(written) <= 60 else f"{written[:57]}..."


def bound_before(name: ast.Name, source: Source) -> ast.Assign | None:
    """The assignment that `name` last got its value from, where it stands in the same block."""
    statement: ast.AST = source.statement(name)
    block = next(
        (
            part
            for _, part in ast.iter_fields(source.parents[statement])
            if isinstance(part, list) and statement in part
        ),
        [],
    )
    bindings = source.scopes.lookup(name.id, source.scopes.of[name])
    for earlier in reversed(block[: block.index(statement)]):
        inside = set(ast.walk(earlier))
        here = [binding for binding in bindings if binding.node in inside]
        if here:
            whole = len(here) == 1 and here[0].kind is Kind.ASSIGNMENT and here[0].value is not None
            return earlier if whole and isinstance(earlier, ast.Assign) and here[0].node in earlier.targets else None
    return None


def other_uses(name: ast.Name, source: Source) -> Iterator[ast.AST]:
    """The other places of the same function that read the variable `name`."""
    bindings = source.scopes.lookup(name.id, source.scopes.of[name])
    for use in _function_nodes(name, source):
        read = isinstance(use, ast.Name) and isinstance(use.ctx, ast.Load) and use.id == name.id and use is not name
        if read and source.scopes.lookup(name.id, source.scopes.of[use]) is bindings:
            yield use
