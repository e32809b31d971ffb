"""Where error and log texts are made: raises, asserts, exception classes, `__str__`, loggers; standard library only."""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from keepcause.lint.binding import Kind
from keepcause.lint.lazy.sources import EXCEPTIONS, LEVELS, LOGS
from keepcause.lint.lazy.texts import Shown, Texts, Via
from keepcause.lint.lazy.values import given, values
from keepcause.lint.syntax import own_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.source import Source

_KEEP_ARGUMENTS = (KeyError, OSError, SystemExit)
_NO_TEXT = (StopIteration, StopAsyncIteration, BaseExceptionGroup, UnicodeError, SyntaxError)
_OWN_WAYS = frozenset({"__init__", "__new__", "__str__", "__repr__"})
_EXCEPTION_NAMES = ("Error", "Exception", "Warning")
_PYTEST = frozenset(f"pytest.{name}" for name in ("fail", "skip", "xfail", "exit"))
_FAILING_METHODS = ("fail", "skipTest", "add_note")
_ENDING = ("exit", "skip", "xfail", *_FAILING_METHODS)
_WARN = ("warnings.warn", "warnings.warn_explicit")


def error_texts(node: ast.AST, source: Source) -> Iterator[Shown]:
    """What the error text shows that `node`, a raise, assert, call or function definition, makes."""
    texts = Texts(source)
    match node:
        case ast.Raise(exc=ast.expr() as raised, cause=cause):
            yield from _raised(raised, texts, source)
            if cause is not None:
                yield from _raised(cause, texts, source)
        case ast.Assert(msg=ast.expr() as message):
            yield from texts.value(message)
        case ast.Call(func=func) if not all(isinstance(each, ast.Constant) for each in (*node.args, *node.keywords)):
            exception = exception_class(func, source)
            if exception is not None:
                yield from _exception(node, exception, prints_arguments(func, source), texts)
            else:
                yield from _other_call(node, texts, source)
        case ast.FunctionDef(name="__str__" | "__repr__"):
            for part in own_nodes(node):
                if isinstance(part, ast.Return) and part.value is not None:
                    yield from texts.text(part.value)


def _raised(raised: ast.expr, texts: Texts, source: Source) -> Iterator[Shown]:
    """What exceptions of classes that this file does not know show; the others are found by their calls."""
    match raised:
        case ast.Call(func=ast.Attribute(value=ast.Call() as inner, attr="with_traceback")):
            yield from _raised(inner, texts, source)
        case ast.Call(func=func):
            if exception_class(func, source) is None:
                yield from _exception(raised, None, False, texts)
        case ast.IfExp(body=body, orelse=orelse):
            yield from _raised(body, texts, source)
            yield from _raised(orelse, texts, source)
        case ast.Name():
            bound = source.scopes.lookup(raised.id, source.scopes.of[raised])
            if any(isinstance(given(binding), ast.Call) for binding in bound):
                for value in values(raised, source):
                    if isinstance(value, ast.Call):
                        yield from _raised(value, texts, source)


def _exception(call: ast.Call, known: type[BaseException] | None, plain: bool, texts: Texts) -> Iterator[Shown]:
    """What the text of an exception shows; of a class of unknown ways only what is written as text counts."""
    for argument in call.args:
        if known is None or not plain or issubclass(known, _NO_TEXT):
            yield from texts.text(argument)
            continue
        kept = known.__name__ if issubclass(known, _KEEP_ARGUMENTS) else ""
        for shown in texts.value(argument):
            whole = shown.node is argument and shown.via is Via.VALUE
            yield Shown(argument, Via.VALUE, argument, kept=kept) if whole else shown
    for keyword in call.keywords:
        yield from texts.text(keyword.value)


def _other_call(call: ast.Call, texts: Texts, source: Source) -> Iterator[Shown]:
    """`super().__init__` of an exception class, `sys.exit`, `add_note`, and what makes a test fail."""
    match call.func:
        case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr="__init__"):
            known, plain = _base(call, source)
            if known is not None:
                yield from _exception(call, known if plain else None, plain, texts)
        case ast.Attribute(value=value, attr="__init__") if exception_class(value, source) is not None:
            for argument in call.args[1:]:
                yield from texts.text(argument)
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in _ENDING:
            reference = source.scopes.qualified(call.func)
            if reference == "sys.exit":
                yield from _exception(call, SystemExit, True, texts)
            elif reference in _PYTEST or (isinstance(call.func, ast.Attribute) and name in _FAILING_METHODS):
                yield from _exception(call, None, False, texts)
        case ast.Attribute(value=ast.Name(id="self"), attr=method) if method.startswith("assert"):
            for message in _assertion_messages(call, method):
                yield from texts.text(message)


def _assertion_messages(call: ast.Call, method: str) -> list[ast.expr]:
    """The message of a unittest assertion: what follows the one or two values that it looks at."""
    if method.startswith(("assertRaises", "assertWarns", "assertLogs", "assertNoLogs")):
        return []
    looked_at = 1 if method in ("assertTrue", "assertFalse", "assertIsNone", "assertIsNotNone") else 2
    return [*call.args[looked_at:], *(keyword.value for keyword in call.keywords if keyword.arg == "msg")]


def _base(node: ast.AST, source: Source) -> tuple[type[BaseException] | None, bool]:
    """The builtin exception above the class around `node`, and whether no class between has its own ways."""
    owner = source.scopes.owner(source.scopes.of[node])
    if owner is None or not isinstance(owner.node, ast.ClassDef):
        return None, False
    bases = owner.node.bases
    known = exception_class(bases[0], source) if bases else None
    if known is None and owner.node.name.endswith(_EXCEPTION_NAMES):
        return Exception, False
    return known, known is not None and prints_arguments(bases[0], source)


def exception_class(func: ast.expr, source: Source) -> type[BaseException] | None:
    """The builtin exception class that `func` is or derives from, as far as this file shows it."""
    return next((found for found, _ in _lineage(func, source) if found is not None), None)


def prints_arguments(func: ast.expr, source: Source) -> bool:
    """Whether the exception class `func`, by its name, shows its arguments as they are: none above has its own ways."""
    is_named_so = isinstance(func, ast.Name) and func.id.endswith(EXCEPTIONS)
    return is_named_so and all(plain for _, plain in _lineage(func, source))


def _lineage(func: ast.expr, source: Source) -> Iterator[tuple[type[BaseException] | None, bool]]:
    """The classes from `func` up by first bases: the builtin class, if it is one, and whether it has no own ways."""
    if not isinstance(func, ast.Name) or not func.id.lstrip("_")[:1].isupper():
        return  # cheap, and true of nearly every call
    seen: set[ast.AST] = set()
    current: ast.expr | None = func
    while isinstance(current, ast.Name) and current not in seen:
        seen.add(current)
        if source.scopes.is_builtin(current.id, current):
            known = getattr(builtins, current.id, None)
            if isinstance(known, type) and issubclass(known, BaseException):
                yield known, True
            return
        definition = _class(current, source)
        if definition is None:
            yield None, False
            return
        own = {part.name for part in definition.body if isinstance(part, ast.FunctionDef)}
        yield None, own.isdisjoint(_OWN_WAYS) and not definition.decorator_list
        current = definition.bases[0] if definition.bases else None


def _class(node: ast.Name, source: Source) -> ast.ClassDef | None:
    """The class of this file that a plain name stands for."""
    bindings = source.scopes.lookup(node.id, source.scopes.of[node])
    match [binding.node for binding in bindings if binding.kind is Kind.DEFINITION]:
        case [ast.ClassDef() as definition] if len(bindings) == 1:
            return definition
    return None


# Logs


def log_texts(node: ast.Call, source: Source) -> Iterator[Shown]:
    """What the log entry or warning that the call `node` makes shows."""
    given = logged(node, source)
    if not given:
        return
    texts = Texts(source)
    message, *others = given
    yield from texts.value(message)
    filled_by_braces = isinstance(message, ast.Constant) and "{" in str(message.value) and "%" not in str(message.value)
    if filled_by_braces:
        for other in others:
            yield from texts.value(other)
    elif len(others) == 1 and isinstance(others[0], ast.Dict):
        yield from texts.percent(message, others[0])
    else:
        yield from texts.arguments(message, others)


def logged(call: ast.Call, source: Source) -> list[ast.expr]:
    """The message and its arguments, where `call` is one to a logger or to `warnings.warn`; else empty."""
    match call.func:
        case ast.Attribute(value=receiver, attr=method) if method in LEVELS and _is_logger(receiver, source):
            return call.args[1:] if method == "log" else call.args
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in LOGS:
            reference = source.scopes.qualified(call.func) or ""
            if reference in _WARN:
                return call.args[:1]
            if reference.startswith("logging."):
                return call.args[1:] if name == "log" else call.args
    return []


def _is_logger(node: ast.expr, source: Source) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            if name.lower().strip("_").endswith(("logger", "log")):
                return True
            return any(found.startswith("logging.") for found in source.scopes.references(node))
        case ast.Call(func=func):
            return _is_logger(func, source) or "logger" in ast.unparse(func).lower()
    return False


def is_also_raised(shown: Shown, source: Source) -> bool:
    """Whether the name that holds a logged text is in an error of the same function too, where it is found already."""
    function = source.function(shown.node) or source.tree
    return shown.through != "" and any(
        isinstance(name, ast.Name) and name.id == shown.through
        for node in ast.walk(function)
        if isinstance(node, ast.Raise | ast.Assert)
        for name in ast.walk(node)
    )
