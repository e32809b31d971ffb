"""Why an exception class does not survive a round trip through pickle; standard library only.

A pickled exception is rebuilt by calling its class with `args`; then its attributes are set. Verdicts here are right
for what the file shows, and none is given where a base class is not in it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from keepcause.lint.pickling import construct
from keepcause.lint.pickling.construct import Count, Lineage, Signature
from keepcause.lint.source import asked_once
from keepcause.lint.syntax import Function, yields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.source import Source

_UNPICKLABLE = {
    **dict.fromkeys(("threading.Lock", "threading.RLock", "threading.Condition", "threading.Semaphore"), "a lock"),
    **dict.fromkeys(("threading.BoundedSemaphore", "threading.Event", "threading.Barrier"), "a lock"),
    **dict.fromkeys(("multiprocessing.Lock", "multiprocessing.RLock", "multiprocessing.Event"), "a lock"),
    **dict.fromkeys(("queue.Queue", "queue.SimpleQueue", "threading.Thread", "threading.local"), "a lock"),
    **dict.fromkeys(("socket.socket", "socket.create_connection"), "a socket"),
    **dict.fromkeys(("builtins.open", "io.open", "tempfile.TemporaryFile", "os.fdopen"), "an open file"),
    **dict.fromkeys(("sys._getframe", "inspect.currentframe"), "a frame"),
    **dict.fromkeys(("weakref.ref", "weakref.proxy"), "a weak reference"),
    "subprocess.Popen": "a process",
    "sqlite3.connect": "a connection",
}
_REDUCE = ("__reduce_ex__", "__reduce__")
_AS_ITS_BASE = "as its base"
_AS_EXCEPTIONS_DO = "as exceptions do"
_NUMBER_FORMATS = "bcdeEfFgGnoxX%"


def fault(node: ast.ClassDef, source: Source) -> str:
    """Why no instance of the exception class survives; empty where instances do, or where it can't be told."""
    family = construct.lineage(node, source)
    if family is None or f":{source.scopes.inside[family.classes[0]].qualname}" in _with_reducer(source):
        return ""
    made_by = _made_by(family, source)
    if made_by is None:
        return ""
    if construct.is_local(node, source):
        return "it is defined inside of a function, where pickle does not find it"
    signatures = construct.signatures(family, source)
    if signatures is None:
        return ""
    if isinstance(made_by, Count):
        return _misfit(signatures, [made_by], "`__reduce__` gives")
    return (
        _frozen(family, source)
        or _held(family, source)
        or _misfit(signatures, construct.counts(family, source), "`args` holds")
        or _by_keyword(family, signatures, source)
        or _changed_values(family, source)
    )


@asked_once
def _with_reducer(source: Source) -> frozenset[str]:
    """What `copyreg.pickle` is called for."""
    return frozenset(
        reference
        for call in source.scopes.nodes.get(ast.Call, ())
        if isinstance(call, ast.Call) and call.args and "copyreg.pickle" in source.scopes.references(call.func)
        for reference in source.scopes.references(call.args[0])
    )


def _made_by(family: Lineage, source: Source) -> Count | str | None:
    """How many arguments `__reduce__` gives the class; a text where it does as exceptions do; else None."""
    for owner in family.classes:
        reduce = Lineage((owner,), family.builtin).method(*_REDUCE)
        made_by = _reduction(reduce, family, source) if reduce is not None else _AS_ITS_BASE
        if made_by != _AS_ITS_BASE:
            return made_by
    return _AS_EXCEPTIONS_DO


def _reduction(reduce: Function, family: Lineage, source: Source) -> Count | str | None:
    """As `_made_by`, for one `__reduce__`, which may leave it to that of the class's base."""
    returned = [node.value for node in ast.walk(reduce) if isinstance(node, ast.Return) and node.value is not None]
    if len(returned) != 1:
        return None
    match returned[0]:
        case ast.Call(func=ast.Attribute(attr="__reduce__" | "__reduce_ex__", value=behind)):
            builtin = isinstance(behind, ast.Name) and source.scopes.qualified(behind) == f"builtins.{behind.id}"
            return _AS_EXCEPTIONS_DO if builtin else _AS_ITS_BASE if isinstance(behind, ast.Call) else None
        case ast.Tuple(elts=[made_by, ast.Tuple(elts=arguments)]) if _is_own_class(made_by, family, source):
            starred = any(isinstance(argument, ast.Starred) for argument in arguments)
            return None if starred else Count(len(arguments), len(arguments))
        case ast.Tuple(elts=[made_by, ast.Attribute(attr="args"), *_]) if _is_own_class(made_by, family, source):
            return _AS_EXCEPTIONS_DO
    return None


def _is_own_class(node: ast.expr, family: Lineage, source: Source) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="type"), args=[ast.Name()]) | ast.Attribute(attr="__class__"):
            return True
    return f":{source.scopes.inside[family.classes[0]].qualname}" in source.scopes.references(node)


# What the class is called with


def _misfit(signatures: list[Signature], found: list[Count], held: str) -> str:
    """Why the constructor can't be called with what is kept; empty where on some way it can."""
    for signature in signatures:
        if signature.keywords:
            names = ", ".join(f"`{name}`" for name in signature.keywords)
            return f"it is rebuilt by position, but its constructor needs {names} by keyword"
        if not any(count.given or signature.fits(count) for count in found):
            count = found[-1]
            values = "no values" if count.most == 0 else f"{count.least} value{'s' * (count.least != 1)}"
            asked = f"needs {signature.needs}" if count.most < signature.needs else f"takes {signature.takes}"
            return f"{held} {values}, but its constructor {asked}"
    return ""


def _by_keyword(family: Lineage, signatures: list[Signature], source: Source) -> str:
    """Where `args` is what was given by position: whether an instance is made with less than that."""
    if not all(count.given for count in construct.counts(family, source)):
        return ""
    for signature in signatures:
        for call in construct.keyword_constructions(family, signature.needs, source):
            given = len(call.args)
            values = "nothing" if not given else f"{given} value{'s' * (given != 1)}"
            return (
                f"line {call.lineno} makes it by keyword: `args` then holds {values}, but {signature.needs} are needed"
            )
    return ""


def _changed_values(family: Lineage, source: Source) -> str:
    """What `__init__` does to an argument that can't be done to what it gets back: the text that it made, or None."""
    init = construct.initializer(family, source)
    found = construct.counts(family, source)
    if not isinstance(init, Function) or len(found) != 1 or found[0].call is None:
        return ""
    call = found[0].call
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return ""
    names = construct.parameters(init)
    optional = init.args.defaults
    for index, name in enumerate(names):
        if not construct.bound_once(name, init, source):
            continue
        kind: type | None
        if index < len(call.args):
            kind, what = (str, "its own text") if _is_text(call.args[index]) else (None, "")
        else:
            default = optional[index - len(names)]
            is_none = isinstance(default, ast.Constant) and default.value is None
            kind, what = (type(None), "None") if is_none else (None, "")
        use = _impossible_use(name, kind, init, source) if kind else ""
        if use:
            return f"it is rebuilt with {what} as `{name}`, and `{use}` fails"
    return ""


def _is_text(value: ast.expr) -> bool:
    match value:
        case ast.JoinedStr() | ast.Constant(value=str()):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="format" | "join")):
            return True
        case ast.BinOp(left=left, op=ast.Add() | ast.Mod(), right=right):
            return _is_text(left) or (isinstance(value.op, ast.Add) and _is_text(right))
    return False


def _impossible_use(name: str, kind: type, init: Function, source: Source) -> str:
    """What `init` certainly does with its parameter `name` that a value of type `kind` does not bear."""
    for node in ast.walk(init):
        if not (isinstance(node, ast.Name) and node.id == name) or not _surely_runs(node, init, source):
            continue
        match source.parents[node]:
            case ast.Attribute(attr=attribute, ctx=ast.Load()) as use if not hasattr(kind, attribute):
                return ast.unparse(use)
            case ast.Subscript(value=ast.Name() as held, slice=ast.Constant(value=str())) as use if held is node:
                return ast.unparse(use)
            case ast.FormattedValue(format_spec=ast.JoinedStr(values=[ast.Constant(value=str(spec))])) if spec[
                -1:
            ] in _NUMBER_FORMATS or kind is type(None):
                return f"{{{name}:{spec}}}"
    return ""


def _surely_runs(node: ast.AST, init: Function, source: Source) -> bool:
    for up in source.ancestors(node):
        if up is init:
            return True
        if isinstance(up, ast.stmt) and not isinstance(up, ast.Assign | ast.AnnAssign | ast.Expr | ast.With):
            return False
        if isinstance(up, ast.IfExp | ast.BoolOp | ast.Lambda | ast.comprehension | ast.ListComp | ast.GeneratorExp):
            return False
    return False


# What goes with it


def _frozen(family: Lineage, source: Source) -> str:
    """A frozen dataclass forbids what unpickling does: setting attributes."""
    frozen = any((construct.dataclass_options(owner, source) or {}).get("frozen") for owner in family.classes)
    if frozen and any(construct.fields(family, source)) and family.method("__setstate__") is None:
        return "it is a frozen dataclass, whose attributes can't be set when it is rebuilt"
    return ""


def _held(family: Lineage, source: Source) -> str:
    """What the instance holds that can't be pickled."""
    for node, _ in construct.fields(family, source):
        for keyword in node.value.keywords if isinstance(node.value, ast.Call) else ():
            kinds = {_UNPICKLABLE.get(r) for r in source.scopes.references(keyword.value)} - {None}
            if keyword.arg == "default_factory" and kinds:
                return f"`{ast.unparse(node.target)}` holds {kinds.pop()}, which can't be pickled"
    for function in _constructors(family):
        for name, held in _kept(function).items():
            if name not in _slots(family) and (what := _unpicklable(held, function, source)):
                return f"`self.{name}` holds {what}, which can't be pickled"
    counts = construct.counts(family, source)
    init = construct.initializer(family, source)
    if len(counts) == 1 and counts[0].call is not None and isinstance(init, Function):
        for value in counts[0].call.args:
            if what := _unpicklable(value, init, source):
                return f"`args` holds {what}, which can't be pickled"
    return ""


def _constructors(family: Lineage) -> Iterator[Function]:
    """The constructors of the family that run: each one that the one before it calls."""
    for owner in family.classes:
        own = Lineage((owner,), family.builtin).method("__init__", "__post_init__")
        if own is not None:
            yield own
            calls = (node for node in ast.walk(own) if isinstance(node, ast.Attribute) and node.attr == "__init__")
            if not any(calls):
                return


def _kept(function: Function) -> dict[str, ast.expr]:
    """What is certainly assigned to attributes of `self`, and not assigned anew."""
    kept: dict[str, ast.expr] = {}
    assigned: list[str] = []
    this = construct.instance(function)
    for node in ast.walk(function):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute, ctx=ast.Store() | ast.Del()) if name == this:
                assigned.append(attribute)
    for statement in function.body:
        match statement:
            case (
                ast.Assign(targets=[ast.Attribute(value=ast.Name(id=name), attr=attribute)], value=ast.expr() as value)
                | ast.AnnAssign(
                    target=ast.Attribute(value=ast.Name(id=name), attr=attribute), value=ast.expr() as value
                )
            ) if name == this and assigned.count(attribute) == 1:
                kept[attribute] = value
    return kept


def _slots(family: Lineage) -> frozenset[str]:
    """Attributes that are in no `__dict__`, so that pickle leaves them behind."""
    found: list[str] = []
    for owner in family.classes:
        for node in owner.body:
            match node:
                case ast.Assign(targets=[ast.Name(id="__slots__")], value=value):
                    constants = [part.value for part in ast.walk(value) if isinstance(part, ast.Constant)]
                    found += [name for name in constants if isinstance(name, str)]
    return frozenset(found)


def _unpicklable(value: ast.expr, function: Function, source: Source) -> str:
    """What `value` is, where it certainly can't be pickled."""
    match value:
        case ast.Lambda():
            return "a lambda"
        case ast.GeneratorExp():
            return "a generator"
        case ast.Attribute(attr="__traceback__" | "tb_frame"):
            return "a traceback"
        case ast.Subscript(value=inner, slice=ast.Constant(value=2)) if _called(inner, source) == {"sys.exc_info"}:
            return "a traceback"
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
            return next(filter(None, (_unpicklable(part, function, source) for part in parts)), "")
        case ast.Name(id=name):
            return _unpicklable_name(name, function, source)
    called = _called(value, source)
    if called and all(reference in _UNPICKLABLE for reference in called):
        return _UNPICKLABLE[min(called)]
    return "a generator" if called and all(_is_generator(reference, source) for reference in called) else ""


def _called(value: ast.expr, source: Source) -> set[str]:
    return set(source.scopes.references(value.func)) if isinstance(value, ast.Call) else set()


def _unpicklable_name(name: str, function: Function, source: Source) -> str:
    """As `_unpicklable`, for a name that the constructor binds once."""
    bindings = source.scopes.inside[function].bindings.get(name, [])
    if len(bindings) != 1:
        return ""
    if isinstance(bindings[0].node, Function | ast.ClassDef):
        return "a definition inside of a function"
    value = bindings[0].value
    is_parameter = isinstance(bindings[0].node, ast.arg)
    return "" if value is None or is_parameter else _unpicklable(value, function, source)


def _is_generator(reference: str, source: Source) -> bool:
    """Whether all functions of this file that a reference names make generators."""
    named = source.scopes.definitions.get(reference, [])
    return bool(named) and all(
        isinstance(node, ast.FunctionDef) and not node.decorator_list and yields(node) for node in named
    )
