"""What can be run through again and again, as far as one file shows it; standard library only."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from keepcause.lint.binding import FunctionNode
from keepcause.lint.lazy.events import backward, binds, reads
from keepcause.lint.lazy.uses import Use, use_of
from keepcause.lint.lazy.values import attribute_values, events_of, is_read_once, last_bindings

if TYPE_CHECKING:
    from keepcause.lint.binding import Binding
    from keepcause.lint.lazy.events import Event
    from keepcause.lint.source import Source

_CONTAINERS = frozenset(f"builtins.{name}" for name in ("list", "tuple", "dict", "set", "frozenset", "range"))
_DICT = frozenset(("builtins.dict",))
_DISPLAYS = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp)
_ENUMS = frozenset(f"enum.{name}" for name in ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"))
_PROOFS = (Use.MEASURED, Use.WHOLE)


def is_container(node: ast.expr, source: Source, seen: frozenset[ast.AST] = frozenset()) -> bool:
    """Whether `node` certainly holds a container, as far as this file shows it."""
    match node:
        case ast.Constant(value=value):
            return isinstance(value, str | bytes)
        case ast.Call(func=ast.Attribute(value=inner, attr="keys" | "values" | "items"), args=[]):
            return is_dict(inner, source)
        case ast.Call(func=func):
            return source.scopes.qualified(func) in _CONTAINERS | {"builtins.sorted"}
        case ast.Name() if node not in seen:
            bindings = _bindings_when_read(node, source)
            if bindings and all(_binds_container(binding, source, seen | {node}) for binding in bindings):
                return True
            return _stays(node, bindings, source) and _is_shown_to_be_container(node, source)
    return isinstance(node, _DISPLAYS)


def _bindings_when_read(name: ast.Name, source: Source) -> list[Binding]:
    """The last bindings of `name`; all of them where a comprehension reads it, perhaps later than where it stands."""
    if is_read_once(name, source):
        return last_bindings(name, source)
    return source.scopes.lookup(name.id, source.scopes.of[name])


def _stays(name: ast.Name, bindings: list[Binding], source: Source) -> bool:
    """Whether what is known of `name` here still holds when it is read."""
    return len(bindings) == 1 or is_read_once(name, source)


def is_dict(node: ast.expr, source: Source) -> bool:
    """Whether `node` certainly holds a dict, as far as this file shows it."""
    match node:
        case ast.Dict() | ast.DictComp():
            return True
        case ast.Call(func=func):
            return source.scopes.qualified(func) == "builtins.dict"
        case ast.Attribute():
            held = attribute_values(node, source)
            return bool(held) and all(value is not None and is_dict(value, source) for value in held)
        case ast.Name():
            bindings = _bindings_when_read(node, source)
            if bindings and all(_binds_dict(binding, source) for binding in bindings):
                return True
            return _stays(node, bindings, source) and any(
                _tests_for(test, node, _DICT, source) for test in _passed_tests(node, source)
            )
    return False


def _binds_dict(binding: Binding, source: Source) -> bool:
    if isinstance(binding.node, ast.arg):
        arguments = source.parents[binding.node]
        return isinstance(arguments, ast.arguments) and binding.node is arguments.kwarg
    return binding.value is not None and not isinstance(binding.value, ast.Name) and is_dict(binding.value, source)


def _binds_container(binding: Binding, source: Source, seen: frozenset[ast.AST]) -> bool:
    match binding.node:
        case ast.arg() as parameter:
            arguments = source.parents[parameter]
            return isinstance(arguments, ast.arguments) and parameter in (arguments.vararg, arguments.kwarg)
        case ast.ClassDef(bases=bases):
            return any(source.scopes.qualified(base) in _ENUMS for base in bases)
    return binding.value is not None and is_container(binding.value, source, seen)


def _is_shown_to_be_container(name: ast.Name, source: Source) -> bool:
    """Whether what the body does with `name` before it comes here shows that it holds a container, on every path."""
    _, events = events_of(name, source)
    if not events:
        return False
    if any(_tests_for(test, name, _CONTAINERS, source) for test in _passed_tests(name, source)):
        return True

    def is_proof(event: Event) -> bool:
        if not reads(event, name.id):
            return False
        used = event.node
        assert isinstance(used, ast.Name)
        return is_read_once(used, source) and use_of(used, source) in _PROOFS and _is_done(used, name, source)

    def ends(event: Event) -> bool:
        return binds(event, name.id) or is_proof(event)

    reached = [[each for each in backward(event, ends) if ends(each)] for event in events]
    return all(each and all(map(is_proof, each)) for each in reached)


def _is_done(used: ast.Name, place: ast.Name, source: Source) -> bool:
    """Whether what is done at `used` is done, and has not failed, wherever the program comes to `place` after it."""
    around_place = {place, *source.ancestors(place)}
    child: ast.AST = used
    for up in source.ancestors(used):
        if isinstance(up, ast.For | ast.AsyncFor) and up in around_place and child is up.iter:
            return False
        if isinstance(up, ast.With | ast.AsyncWith | ast.Try | ast.TryStar) and not around_place.intersection(up.body):
            return False
        if isinstance(up, FunctionNode):
            break
        child = up
    return True


def _passed_tests(node: ast.AST, source: Source) -> list[ast.expr]:
    """The conditions that are true here: asserts and early exits above, and the `if`s around."""
    found: list[ast.expr] = []
    child: ast.AST = node
    for up in source.ancestors(node):
        if isinstance(up, ast.If | ast.While | ast.IfExp):
            if child is up.body or (isinstance(up.body, list) and child in up.body):
                found += _conjuncts(up.test)
        elif isinstance(up, ast.BoolOp) and isinstance(up.op, ast.And):
            for earlier in up.values[: up.values.index(child)] if child in up.values else []:
                found += _conjuncts(earlier)
        for _, block in ast.iter_fields(up):
            if isinstance(block, list) and child in block and isinstance(child, ast.stmt):
                for earlier in block[: block.index(child)]:
                    found += _known_after(earlier)
        if isinstance(up, FunctionNode):
            break
        child = up
    return found


def _known_after(statement: ast.stmt) -> list[ast.expr]:
    match statement:
        case ast.Assert(test=test):
            return _conjuncts(test)
        case ast.If(test=test, body=[*_, ast.Raise() | ast.Return() | ast.Continue() | ast.Break()], orelse=[]):
            refused = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else [test]
            return [each.operand for each in refused if isinstance(each, ast.UnaryOp) and isinstance(each.op, ast.Not)]
    return []


def _conjuncts(test: ast.expr) -> list[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def _tests_for(test: ast.expr, name: ast.Name, classes: frozenset[str], source: Source) -> bool:
    """Whether `test` asks if `name`, not bound anew since, is of one of `classes`."""
    match test:
        case ast.Call(func=func, args=[ast.Name() as tested, kinds]) if tested.id == name.id:
            each = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
            return (
                source.scopes.qualified(func) == "builtins.isinstance"
                and all(source.scopes.qualified(kind) in classes for kind in each)
                and set(last_bindings(tested, source)) == set(last_bindings(name, source))
            )
    return False
