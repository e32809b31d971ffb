"""What making a list of a lazy iterator does besides; standard library only."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepcause.lint.lazy.containers import is_container, is_dict
from keepcause.lint.lazy.values import BUILTINS, ITERTOOLS, called_functions, last_bindings, lazy, values
from keepcause.lint.syntax import own_nodes, short

if TYPE_CHECKING:
    from keepcause.lint.lazy.values import Lazy
    from keepcause.lint.source import Source

_ACTS = {
    "os.scandir": "listing it reads a folder",
    "os.walk": "listing it reads folders",
    "os.fwalk": "listing it reads folders",
    "glob.iglob": "listing it reads folders",
    "csv.reader": "listing it reads the file",
}
_HUGE = ("product", "permutations", "combinations", "combinations_with_replacement")
_CALLS_ITS_FIRST = (
    *("builtins.map", "builtins.filter"),
    *("itertools.dropwhile", "itertools.takewhile", "itertools.filterfalse", "itertools.starmap"),
)
_SECOND_IS_A_NUMBER = ("builtins.enumerate", "itertools.islice", "itertools.batched")
_DOUBTS = {
    "itertools.accumulate": "what it adds up may raise",
    "itertools.chain.from_iterable": "what its elements hold may be one-shot",
}
_HARMLESS_CALLS = frozenset(f"builtins.{name}" for name in ("str", "repr", "type"))
_TAKING_METHODS = (
    *("pop", "popleft", "popitem", "get_nowait", "__next__", "fetchone", "fetchall"),
    *("read", "readline", "readlines", "recv", "recv_bytes"),
)
_ACTING_METHODS = (*_TAKING_METHODS, "append", "remove", "send", "close", "write")
_TAKING_CALLS = frozenset(("builtins.next", "builtins.input"))
_FILE_OPENERS = frozenset(("builtins.open", "io.open", "os.popen", "os.fdopen", "gzip.open", "bz2.open", "lzma.open"))
_NEVER_ENDS = "it never ends"
_LAZY_ITEMS = "its items are iterators themselves"


@dataclass(frozen=True)
class Listing:
    """What listing a lazy iterator does besides; both empty where it does nothing.

    `never` is a reason why it must not be listed, `doubt` one why the program might notice.
    """

    never: str = ""
    doubt: str = ""

    def __or__(self, other: Listing) -> Listing:
        return Listing(self.never or other.never, self.doubt or other.doubt)


def listing(value: Lazy, source: Source) -> Listing:
    """What making a list of `value`, whichever of its origins it comes from, does besides."""
    result = Listing()
    for origin in value.origins:
        result |= _origin(origin, source)
    return result


def _origin(node: ast.expr, source: Source) -> Listing:
    if isinstance(node, ast.GeneratorExp):
        return _generator_expression(node, source)
    assert isinstance(node, ast.Call)
    reference = source.scopes.qualified(node.func) or ""
    if reference in _ACTS:
        return Listing(never=_ACTS[reference])
    if reference == "re.finditer":
        return Listing(doubt="it runs the search")
    if not reference.startswith(("builtins.", "itertools.")):
        return _function_call(node, reference, source)
    name = reference.partition(".")[2]
    if name in _HUGE:
        return Listing(never="it may be huge")
    if name == "groupby":
        return Listing(never=_LAZY_ITEMS)
    if name == "cycle":
        return Listing(never=_NEVER_ENDS)
    if name == "iter" and len(node.args) == 2:
        return Listing(never=f"it calls `{short(node.args[0])}` again and again")
    return _over_arguments(node, reference, source)


def _over_arguments(node: ast.Call, reference: str, source: Source) -> Listing:
    """A builtin or an itertools function that runs through its arguments."""
    result = Listing()
    arguments = node.args
    if reference in _CALLS_ITS_FIRST and arguments:
        function, *arguments = arguments
        if reference == "builtins.map" and source.scopes.qualified(function) in BUILTINS | ITERTOOLS:
            return Listing(never=_LAZY_ITEMS)
        by_truth = isinstance(function, ast.Constant) and "filter" in reference
        result = Listing() if by_truth else _called(function, source)
        if len(arguments) != 1 or reference == "itertools.starmap":
            result |= Listing(doubt=f"`{short(function)}` may raise")
    if reference in _DOUBTS:
        result |= Listing(doubt=_DOUBTS[reference])
    if any(keyword.arg == "strict" for keyword in node.keywords):
        result |= Listing(doubt="its parts may differ in length")
    if reference in _SECOND_IS_A_NUMBER:
        arguments = arguments[:1]
    if reference in ("builtins.zip", "itertools.islice"):  # ends with its shortest
        ending = [argument for argument in arguments if not _is_endless(argument, source)]
        arguments = ending or ([] if reference == "itertools.islice" else arguments)
    for argument in arguments:
        result |= reading(argument, source)
    return result


def _function_call(node: ast.Call, reference: str, source: Source) -> Listing:
    """A generator function of this file: its body would run."""
    result = Listing()
    for function in called_functions(reference, source):
        body = list(own_nodes(function, ast.GeneratorExp))
        stops = any(isinstance(part, ast.Return | ast.Break | ast.Raise) for part in body)
        if any(isinstance(part, ast.While) and _is_true(part.test) for part in body) and not stops:
            result |= Listing(never=f"`{function.name}` never ends")
        taking = next((part.func for part in body if isinstance(part, ast.Call) and _takes(part.func, source)), None)
        if taking is not None:
            result |= Listing(never=f"`{function.name}` calls `{short(taking)}`, which acts")
    return result | Listing(doubt=f"it runs `{short(node.func)}`, which may raise or act")


def _takes(function: ast.expr, source: Source) -> bool:
    """Whether a call of `function` takes something that is gone then."""
    reference = source.scopes.qualified(function)
    if reference in _TAKING_CALLS or reference in _FILE_OPENERS:
        return True
    return isinstance(function, ast.Attribute) and function.attr in _TAKING_METHODS


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and bool(node.value)


def _is_endless(node: ast.expr, source: Source) -> bool:
    if not isinstance(node, ast.Call):
        return False
    reference = source.scopes.qualified(node.func)
    if reference == "itertools.repeat":
        return len(node.args) + len(node.keywords) < 2
    return reference in ("itertools.count", "itertools.cycle")


def _generator_expression(node: ast.GeneratorExp, source: Source) -> Listing:
    result = Listing(never=_LAZY_ITEMS if lazy(node.elt, source) else "")
    for clause in node.generators:
        result |= reading(clause.iter, source)
        if not isinstance(clause.target, ast.Name) and _parts(clause.target) != _given_parts(clause.iter, source):
            result |= Listing(doubt=f"unpacking `{short(clause.target)}` may raise")
        for condition in clause.ifs:
            result |= _element(condition, source)
    return result | _element(node.elt, source)


def _parts(target: ast.expr) -> int | None:
    """How many plain names a target unpacks; None where it is no such target."""
    names = target.elts if isinstance(target, ast.Tuple | ast.List) else []
    return len(names) if names and all(isinstance(name, ast.Name) for name in names) else None


def _given_parts(node: ast.expr, source: Source) -> int:
    """How many parts the items of `node` have; 0 where that is not known."""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="items")):
            return 2 if is_dict(inner, source) else 0
        case ast.Call(func=func, args=arguments):
            reference = source.scopes.qualified(func)
            plain = not any(isinstance(argument, ast.Starred) for argument in arguments)
            return {"builtins.enumerate": 2, "builtins.zip": len(arguments) * plain}.get(reference or "", 0)
    return 0


def _element(node: ast.expr, source: Source) -> Listing:
    """What computing `node`, an element or a condition, may do.

    Names, constants, attributes of plain names, comparisons, truth tests, `str`, `repr` and `type` count as harmless.
    """
    match node:
        case ast.Name() | ast.Constant() | ast.Attribute(value=ast.Name()):
            return Listing()
        case ast.Call(func=func, args=[argument], keywords=[]) if source.scopes.qualified(func) in _HARMLESS_CALLS:
            return _element(argument, source)
        case ast.Call(func=func, args=arguments):
            return _called(func, source) | _all_elements(arguments, source)
        case ast.FormattedValue(value=inner, format_spec=None):
            return _element(inner, source)
        case ast.Compare(left=left, ops=operators, comparators=others):
            inside = [other for op, other in zip(operators, others, strict=True) if isinstance(op, ast.In | ast.NotIn)]
            eaten = next((other for other in inside if lazy(other, source)), None)
            one_shot = Listing(never=f"`in` runs through `{short(eaten)}`") if eaten is not None else Listing()
            return one_shot | _all_elements([left, *others], source)
        case ast.BoolOp(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.JoinedStr(values=parts):
            return _all_elements(parts, source)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _element(operand, source)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _all_elements([test, body, orelse], source)
    return Listing(doubt=f"`{short(node)}` may raise")


def _all_elements(nodes: list[ast.expr], source: Source) -> Listing:
    result = Listing()
    for node in nodes:
        result |= _element(node, source)
    return result


def _called(function: ast.expr, source: Source) -> Listing:
    reference = source.scopes.qualified(function)
    if reference in _HARMLESS_CALLS:
        return Listing()
    acts = isinstance(function, ast.Attribute) and function.attr in _ACTING_METHODS
    if acts or reference == "builtins.print" or _takes(function, source):
        return Listing(never=f"it calls `{short(function)}`, which acts")
    return Listing(doubt=f"it calls `{short(function)}`, which may raise or act")


def reading(node: ast.expr, source: Source) -> Listing:
    """What running through `node` once more does."""
    if _is_endless(node, source):
        return Listing(never=_NEVER_ENDS)
    if _is_file(node, source):
        return Listing(never=f"it reads the file `{short(node)}`")
    value = lazy(node, source)
    if value is not None:
        if node in value.origins:
            return listing(value, source)
        return Listing(never=f"it reads `{short(node)}`, which is {value.what} (line {value.origins[0].lineno})")
    if isinstance(node, ast.Name) and any(_is_endless(each, source) for each in _values(node, source)):
        return Listing(never=_NEVER_ENDS)
    if is_container(node, source):
        return Listing()
    return Listing(doubt=f"it reads `{short(node)}`, which may be one-shot")


def _values(name: ast.Name, source: Source) -> list[ast.expr]:
    return [value for value in values(name, source) if value is not None]


def _is_file(node: ast.expr, source: Source) -> bool:
    match node:
        case ast.Call(func=func):
            return source.scopes.qualified(func) in _FILE_OPENERS
        case ast.Name():
            entered = [source.parents.get(binding.node) for binding in last_bindings(node, source)]
            opened = [up.context_expr for up in entered if isinstance(up, ast.withitem)] + _values(node, source)
            return any(_is_file(each, source) for each in opened if isinstance(each, ast.Call))
        case ast.Attribute():
            return source.scopes.qualified(node) in ("sys.stdin", "sys.stdin.buffer")
    return False
