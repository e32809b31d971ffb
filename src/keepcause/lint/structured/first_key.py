"""Raises that end a loop over keys at its first odd one; standard library only."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepcause.lint.binding import Kind
from keepcause.lint.structured.keys import Keys, absent_from, difference, is_fixed, looped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.binding import Binding
    from keepcause.lint.source import Source

_NO_KEY = re.compile(r"type|device|config|kind")
_SHAPES = ("shape", "size", "get_shape")
_LISTS = ("list", "set", "sorted", "frozenset", "tuple", "dict")
_ANEW = ("state_dict", "named_parameters", "named_buffers", "keys", "items")
"""Methods whose result is the same, or a new iterator over the same, each time."""
_HELD = ("state_dict", "keys", "items", "load", "load_file")
"""Functions that give a mapping or a view, and no iterator."""
_MAPPINGS = ("state_dict", "checkpoint", "ckpt")


@dataclass(frozen=True)
class FirstKey:
    """A check in a loop, whose raise ends the loop.

    `names` are those that the loop binds. `keys` says which keys have to be collected, where the check is whether a
    collection has a key; None where it compares shapes. `all_of_them` is an expression that lists all such keys; where
    it is empty, `reason` says why there is none.
    """

    names: frozenset[str]
    keys: Keys | None
    all_of_them: str = ""
    reason: str = ""


def first_key(node: ast.Raise, source: Source) -> FirstKey | None:
    """Return what the loop around `node` looks for, if `node` raises in the round where it comes to it."""
    check = source.parents[node]
    if not isinstance(check, ast.If) or source.function(node) is None:
        return None
    for loop in _loops(check, source):
        names = _bound_in(loop, source)
        test = _unfolded(check, node, loop, source)
        for key in [found.id for found in ast.walk(test) if isinstance(found, ast.Name) and found.id in names]:
            if _NO_KEY.search(key):
                continue
            other = absent_from(key, test)
            if other is not None and not is_fixed(other, source):
                return _absent(key, other, test, loop, check, source)
        if _compares_shapes(test, names, source):
            return FirstKey(names, None)
    return None


def shapes(node: ast.AST) -> list[ast.Attribute]:
    """Return where an expression asks for a shape: `x.shape`, `x.size`, called or not."""
    return [found for found in ast.walk(node) if isinstance(found, ast.Attribute) and found.attr in _SHAPES]


def _loops(check: ast.If, source: Source) -> Iterator[ast.For]:
    below: ast.AST = check
    for up in source.ancestors(check):
        if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.While):
            return
        if isinstance(up, ast.For) and below in up.body:
            yield up
        below = up


def _bound_in(loop: ast.For, source: Source) -> frozenset[str]:
    """The names that differ from round to round."""
    inside = set(ast.walk(loop))
    bindings = source.scopes.of[loop].bindings
    return frozenset(name for name, bound in bindings.items() if any(each.node in inside for each in bound))


def _unfolded(check: ast.If, node: ast.Raise, loop: ast.For, source: Source) -> ast.expr:
    """What holds where `node` raises; what a name was given in place of the name that is asked whether it is None."""
    if node in check.orelse:
        return ast.UnaryOp(ast.Not(), check.test)
    match check.test:
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Is()], comparators=[ast.Constant(value=None)] as none):
            inside = set(ast.walk(loop))
            values = [each.value for each in source.scopes.of[check].bindings.get(name, ()) if each.node in inside]
            if len(values) == 1 and values[0] is not None:
                return ast.Compare(values[0], [ast.Is()], none)
    return check.test


def _compares_shapes(test: ast.expr, names: frozenset[str], source: Source) -> bool:
    """Whether two values differ of which one is a shape, and one depends on the round."""
    differ = [
        found
        for found in ast.walk(test)
        if isinstance(found, ast.Compare)
        and isinstance(found.ops[0], ast.NotEq)
        and not is_fixed(found.comparators[0], source)
    ]
    return any(shapes(each) and names & {n.id for n in ast.walk(each) if isinstance(n, ast.Name)} for each in differ)


def _absent(key: str, other: ast.expr, test: ast.expr, loop: ast.For, check: ast.If, source: Source) -> FirstKey:
    names = _bound_in(loop, source)
    one = looped(key, loop.target, loop.iter)
    keys = difference(one, other, source) if one is not None else Keys("", check.lineno)
    if not keys.field:
        unseen = f"it can't be seen whose keys `{key}` and `{ast.unparse(other)}` hold"
        return FirstKey(names, keys, "", keys.unknown or unseen)
    if loop.body != [check] or len(check.body) != 1 or check.orelse or test is not check.test:
        return FirstKey(names, keys, "", "the loop does more than this check: list the keys before it")
    if not _is_plain(test, other):
        return FirstKey(names, keys, "", f"`{ast.unparse(test)}` calls what may act")
    if not _again(loop.iter, source):
        return FirstKey(names, keys, "", f"`{ast.unparse(loop.iter)}` may not give its keys twice")
    # A tuple's parentheses depend on the version of Python.
    targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
    target = ", ".join(ast.unparse(each) for each in targets)
    return FirstKey(names, keys, f"[{key} for {target} in {ast.unparse(loop.iter)} if {ast.unparse(test)}]")


def _again(iterable: ast.expr, source: Source) -> bool:
    """Whether the same keys come when the expression is evaluated and gone through once more."""
    match iterable:
        case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in _LISTS:
            return source.scopes.is_builtin(name, iterable) and _again(inner, source)
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in _ANEW
        case ast.Name(id=name):
            bindings = source.scopes.lookup(name, source.scopes.of[iterable])
            return len(bindings) == 1 and _is_collection(bindings[0], name, source)
    return False


def _is_collection(binding: Binding, name: str, source: Source) -> bool:
    """Whether a name that is bound so holds no iterator, which would be used up."""
    match binding.value:
        case _ if binding.kind is Kind.PARAMETER:
            return name.endswith(_MAPPINGS)
        case ast.Call(func=ast.Name(id=called)) if called in _LISTS:
            return source.scopes.is_builtin(called, binding.node)
        case ast.Call(func=ast.Attribute(attr=called) | ast.Name(id=called)):
            return called in _HELD
        case ast.ListComp() | ast.SetComp():
            return binding.kind is Kind.ASSIGNMENT
    return False


def _is_plain(test: ast.expr, other: ast.expr) -> bool:
    """Whether nothing is called for the test but what it takes to have the other collection, or its `get`."""
    allowed = {id(node) for node in ast.walk(other)}
    calls = [node for node in ast.walk(test) if isinstance(node, ast.Call) and id(node) not in allowed]
    return all(isinstance(call.func, ast.Attribute) and call.func.attr == "get" for call in calls)
