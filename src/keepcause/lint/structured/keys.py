"""Which keys a collection holds, by what it was compared with: a model's or a checkpoint's; standard library only."""

from __future__ import annotations

import ast
import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepcause.lint.binding import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.binding import Binding
    from keepcause.lint.source import Source

_SAME_KEYS = ("set", "list", "sorted", "frozenset", "tuple", "dict", "iter")
_VIEWS = ("keys", "copy")
_OF_A_MODEL = ("state_dict", "named_parameters", "named_buffers")
_READS = re.compile(r"_?(safe_)?(torch_)?(load|read|open)(?!_state_dict$)")
_MODEL_WORDS = frozenset({"model", "module", "net", "network"})
_CHECKPOINT_WORDS = frozenset({"checkpoint", "ckpt", "saved"})
_DEEPEST = 8


class Side(enum.Enum):
    """Whose keys a collection holds."""

    MODEL = enum.auto()
    CHECKPOINT = enum.auto()


@dataclass(frozen=True)
class Keys:
    """Keys that one collection has and another lacks.

    `field` is `missing` for keys that the model has and the checkpoint lacks, `unexpected` for the opposite; where it
    is empty, `unknown` says what could not be seen. `line` is where they were compared.
    """

    field: str
    line: int
    unknown: str = ""


def keys(node: ast.expr, source: Source) -> Keys | None:
    """What the expression `node` holds, if it is the difference of two collections of keys."""
    if isinstance(node, ast.Name):
        bindings = source.scopes.lookup(node.id, source.scopes.of[node])
        found = {each for binding in bindings for each in _bound(binding, node.id, source)}
        return found.pop() if len(found) == 1 else None
    if isinstance(node, ast.Attribute) and node.attr in ("missing_keys", "unexpected_keys"):
        loads = _is_load(_value(node.value, source))
        return Keys(node.attr.removesuffix("_keys"), node.lineno) if loads else None
    return _compared(node, source)


def _bound(binding: Binding, name: str, source: Source) -> Iterator[Keys | None]:
    """What a binding gives to its name; nothing for an empty collection that is filled later."""
    if binding.kind is Kind.PART:
        yield _unpacked(binding.node, source)
    elif binding.value is None:
        yield None
    elif _is_empty(binding.value):
        yield from (_filled(call, source) for call in _fillings(name, binding, source))
    else:
        yield None if isinstance(binding.value, ast.Name) else keys(binding.value, source)


def _unpacked(node: ast.AST, source: Source) -> Keys | None:
    """`missing, unexpected = model.load_state_dict(...)`: by PyTorch's order, whatever the names."""
    up = source.parents.get(node)
    match up, source.parents.get(up) if up else None:
        case ast.Tuple(elts=[first, second]), ast.Assign(value=value) if _is_load(value):
            if node in (first, second):
                return Keys("missing" if node is first else "unexpected", value.lineno)
    return None


def _is_load(value: ast.expr | None) -> bool:
    match value:
        case ast.Call(func=ast.Attribute(attr="load_state_dict")):
            return True
    return False


def _is_empty(value: ast.expr) -> bool:
    match value:
        case ast.List(elts=[]) | ast.Call(func=ast.Name(id="set" | "list"), args=[], keywords=[]):
            return True
    return False


def _fillings(name: str, binding: Binding, source: Source) -> Iterator[ast.Call]:
    for call in source.scopes.nodes.get(ast.Call, ()):
        match call:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=filled)), args=[_]) if filled == name:
                if source.scopes.of[call].function is source.scopes.of[binding.node].function:
                    yield call


def _filled(call: ast.Call, source: Source) -> Keys | None:
    """`for key in one: if key not in other: name.append(key)`."""
    match call:
        case ast.Call(func=ast.Attribute(attr="append" | "add"), args=[ast.Name(id=key)]):
            tests = [up.test for up in source.ancestors(call) if isinstance(up, ast.If)]
            loops = [up for up in source.ancestors(call) if isinstance(up, ast.For)]
            if tests and loops and (other := absent_from(key, tests[0])) is not None:
                one = looped(key, loops[0].target, loops[0].iter)
                return difference(one, other, source) if one is not None else None
    return None


def _compared(value: ast.expr, source: Source) -> Keys | None:
    match value:
        case ast.Call(func=ast.Name(id=name), args=[inner], keywords=_) if name in _SAME_KEYS:
            return _compared(inner, source)
        case ast.Call(func=ast.Attribute(value=one, attr="difference"), args=[other]):
            return difference(one, other, source)
        case ast.BinOp(left=one, op=ast.Sub(), right=other) if _is_set(one, source) or _is_set(other, source):
            return difference(one, other, source)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            return _comprehension(value, source)
    return None


def _is_set(node: ast.expr | None, source: Source) -> bool:
    """Whether `node` is a set, or a view of keys, by its form or that of what its name was given."""
    match node:
        case ast.Set() | ast.SetComp() | ast.Call(func=ast.Name(id="set" | "frozenset") | ast.Attribute(attr="keys")):
            return True
        case ast.Name():
            value = _value(node, source)
            return value is not node and not isinstance(value, ast.Name) and _is_set(value, source)
    return False


def _comprehension(value: ast.ListComp | ast.SetComp | ast.GeneratorExp, source: Source) -> Keys | None:
    match value.elt, value.generators:
        case ast.Name(id=key), [ast.comprehension(target=target, iter=iterable, ifs=tests)]:
            one = looped(key, target, iterable)
            others = [other for test in tests if (other := absent_from(key, test)) is not None]
            if one is not None and len(others) == 1:
                return difference(one, others[0], source)
    return None


def looped(key: str, target: ast.expr, iterable: ast.expr) -> ast.expr | None:
    """The collection whose keys `key` runs over."""
    match target, iterable:
        case ast.Name(id=name), _ if name == key:
            return iterable
        case ast.Tuple(elts=[ast.Name(id=name), _]), ast.Call(func=ast.Attribute(value=mapping, attr="items")):
            return mapping if name == key else None
        case ast.Tuple(elts=[ast.Name(id=name), _]), ast.Call(func=ast.Attribute(attr=attr)) if attr in _OF_A_MODEL:
            return iterable if name == key else None
    return None


def absent_from(key: str, test: ast.expr) -> ast.expr | None:
    """The collection that `key` is not in, where `test` holds."""
    match test:
        case ast.Compare(left=ast.Name(id=name), ops=[ast.NotIn()], comparators=[other]) if name == key:
            return other
        case ast.UnaryOp(
            op=ast.Not(), operand=ast.Compare(left=ast.Name(id=name), ops=[ast.In()], comparators=[other])
        ) if name == key:
            return other
        case ast.Compare(
            left=ast.Call(func=ast.Attribute(value=other, attr="get"), args=[ast.Name(id=name)])
            | ast.NamedExpr(value=ast.Call(func=ast.Attribute(value=other, attr="get"), args=[ast.Name(id=name)])),
            ops=[ast.Is()],
            comparators=[ast.Constant(value=None)],
        ) if name == key:
            return other
        case ast.BoolOp(op=ast.And(), values=values):
            found = [absent for value in values if (absent := absent_from(key, value)) is not None]
            return found[0] if len(found) == 1 else None
    return None


def difference(one: ast.expr, other: ast.expr, source: Source) -> Keys:
    """What is in `one` and not in `other`."""
    sides = side(one, source), side(other, source)
    match sides:
        case Side.MODEL, Side.CHECKPOINT:
            return Keys("missing", one.lineno)
        case Side.CHECKPOINT, Side.MODEL:
            return Keys("unexpected", one.lineno)
    if any(found is None and is_fixed(node, source) for node, found in zip((one, other), sides, strict=True)):
        return Keys("", one.lineno)
    unknown = [ast.unparse(node) for node, found in zip((one, other), sides, strict=True) if found is None]
    if not unknown:
        return Keys("", one.lineno, "both sides of the comparison are of the same kind")
    # Nothing known of either: any two collections may be compared so.
    hint = "" if len(unknown) > 1 else f"it can't be seen whether `{unknown[0]}` holds the model's keys"
    return Keys("", one.lineno, hint)


def is_fixed(node: ast.expr, source: Source) -> bool:
    """Whether these are the program's own choices: a display, a constant by its name, a dataclass's fields."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=[inner]) if name in _SAME_KEYS:
            return is_fixed(inner, source)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.isupper() or name == "__dataclass_fields__" or _is_written_out(_value(node, source))
    return isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict | ast.Constant)


def _is_written_out(value: ast.expr | None) -> bool:
    """Whether this is a display of constants; an empty one may be filled later."""
    match value:
        case ast.Tuple(elts=each) | ast.List(elts=each) | ast.Set(elts=each) | ast.Dict(keys=each):
            return bool(each) and all(isinstance(one, ast.Constant) for one in each)
    return False


def side(node: ast.expr, source: Source, depth: int = _DEEPEST) -> Side | None:
    """Whose keys the collection `node` holds, by where it comes from; a parameter also by its own name."""
    if not depth:
        return None
    match node:
        case ast.Call(func=ast.Name(id=name), args=[inner]) if name in _SAME_KEYS:
            return side(inner, source, depth - 1)
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _VIEWS or name in ("get", "items"):
            return side(inner, source, depth - 1)
        case ast.Call(func=ast.Attribute(attr=name)) if name in _OF_A_MODEL:
            return Side.MODEL
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if _READS.match(name):
            return Side.CHECKPOINT
        case ast.ListComp(elt=ast.Name(id=key)) | ast.SetComp(elt=ast.Name(id=key)):
            generator, *more = node.generators
            over = None if more or generator.ifs else looped(key, generator.target, generator.iter)
            return side(over, source, depth - 1) if over is not None else None
        case ast.Subscript(value=inner) | ast.Attribute(value=inner):
            return side(inner, source, depth - 1)
        case ast.Name():
            return _side_of_name(node, source, depth)
    return None


def _side_of_name(name: ast.Name, source: Source, depth: int) -> Side | None:
    bindings = source.scopes.lookup(name.id, source.scopes.of[name])
    found = set()
    for binding in bindings:
        if binding.kind is Kind.PARAMETER:
            found.add(_side_of_parameter(binding, name.id, source))
        elif binding.value is not None:
            found.add(side(binding.value, source, depth - 1))
        else:
            opened = _opened(binding.node, source)
            found.add(side(opened, source, depth - 1) if opened is not None else None)
    return found.pop() if len(found) == 1 else None


def _opened(node: ast.AST, source: Source) -> ast.expr | None:
    """What `with ... as node` opens."""
    up = source.parents.get(node)
    return up.context_expr if isinstance(up, ast.withitem) else None


def _side_of_parameter(binding: Binding, name: str, source: Source) -> Side | None:
    function = source.function(binding.node)
    if function is not None and function.name in ("load_state_dict", "_load_from_state_dict"):
        parameters = [parameter.arg for parameter in function.args.args if parameter.arg not in ("self", "cls")]
        if parameters[:1] == [name]:
            return Side.CHECKPOINT
    words = set(name.lower().split("_"))
    model, checkpoint = bool(words & _MODEL_WORDS), bool(words & _CHECKPOINT_WORDS)
    if model == checkpoint:
        return None
    return Side.MODEL if model else Side.CHECKPOINT


def is_text(node: ast.expr, source: Source) -> bool:
    """Whether `node` is a name that was given a text, and nothing else."""
    value = _value(node, source)
    return isinstance(value, ast.JoinedStr) or (isinstance(value, ast.Constant) and isinstance(value.value, str))


def _value(node: ast.expr, source: Source) -> ast.expr | None:
    """What a name was given, if that is one thing; else the expression itself."""
    if not isinstance(node, ast.Name):
        return node
    bindings = source.scopes.lookup(node.id, source.scopes.of[node])
    return bindings[0].value if len(bindings) == 1 else None
