"""Launch sites: the calls by which real code starts worker processes, actors and ranks; standard library only."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from keepcause.lint.syntax import EXITS, block, last_name, run_nodes, short
from keepcause.lint.unparsed.logical import BETWEEN, NEXT_NAME, NO_WORD
from keepcause.lint.unparsed.surroundings import (
    FARTHEST,
    Definitions,
    is_in_comment,
    told_before,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from keepcause.lint.source import Source

    References = Callable[[ast.AST], tuple[str, ...]]

_MULTIPROCESSING = r"(?:(?:torch\.)?multiprocessing|multiprocess|billiard|torch_xla\.distributed\.xla_multiprocessing)"
PROCESS_MODULES = ("multiprocess", "billiard")
"""Every module that has process classes holds one of these words."""
_CONTEXT = rf"{_MULTIPROCESSING}(?:\.context|\.process|\.get_context\(\)|\.pool|\.\w+Context\(\))?"
PROCESS = re.compile(rf"{_CONTEXT}\.\w*Process")
_POOL = re.compile(
    rf"{_CONTEXT}\.(?:Pool|\w*ProcessPool\w*)|concurrent\.futures(?:\.process)?\.ProcessPoolExecutor"
    r"|(?:loky|joblib\.externals\.loky)(?:\.\w+)*\.(?:get_reusable_executor|ProcessPoolExecutor)"
)
_SPAWN = re.compile(
    rf"{_MULTIPROCESSING}(?:\.spawn)?\.(?:spawn|start_processes)|torch_xla(?:\.\w+)*\.(?:spawn|_run_multiprocess|launch)"
    r"|torch\.distributed(?:\.elastic)?\.(?:multiprocessing\.(?:api\.)?start_processes)"
    r"|torch\.distributed\.launcher(?:\.api)?\.elastic_launch\(\)"
)
_LOADER = re.compile(r"torch\.utils\.data(?:\.\w+)*\.DataLoader")
_ACTOR = re.compile(r"ray\.(?:actor\.)?remote\b")
THREAD = "threading.Thread"
_LITERAL = rb"(?:\[[^\[\]\"'#]*+\]|\"[^\"\\\n]*+\"|'[^'\\\n]*+'|\d++|None)\s*+[,)]"
_KEYWORDS = tuple(
    re.compile(rb"%s%s=(?!=)%s(?!%s)" % (word, BETWEEN, BETWEEN, _LITERAL))
    for word in (b"target", b"initializer", b"worker_init_fn")
)
_THREAD_CALL = re.compile(rb"(?<![\w.])threading\.Thread\(\s*+\Z")
_IMPORTS_THREADING = re.compile(rb"^[ \t]*import threading\r?$", re.MULTILINE)
_CALLED = re.compile(
    rb"\((?:(?<=spawn\()|(?<=start_processes\()|(?<=launch\()|(?<=_run_multiprocess\()|(?<=fork\()|(?<=remote\()(?<!\wremote\())"
)
_STARTERS = (
    *(
        re.compile(word + NO_WORD)
        for word in (b"Thread", b"Process", b"Pool", b"get_reusable_executor", b"worker_init_fn")
    ),
    re.compile(rb"ProcessPool"),
    re.compile(
        rb"(?:[.,(]|import)%s(?:spawn|start_processes|launch|_run_multiprocess|fork|remote)%s(?!%s)"
        % (BETWEEN, NO_WORD, NEXT_NAME)
    ),
)
"""How what starts a function is called, or the keyword that takes it: one stands where a file itself shows a launch."""
_LAUNCHERS = (b"elastic_launch", b"torch_xla")
"""Whose `launch` starts processes."""
ACTOR = "?"
"""Stands in a target for an actor of unknown class."""
_NO_FUNCTIONS = (ast.Constant, ast.List, ast.ListComp)
_NO_PROCESSES = ("psutil.", "threading.", "multiprocessing.dummy")
_WAITS = frozenset({"wait", "join", "result", "get"})
_CLASS_NAME = re.compile(r"_*[A-Z]\w*[a-z]\w*|_*[A-Z]")


@dataclass(frozen=True, slots=True)
class Launch:
    """One call that starts workers: `how` it was recognised, and references to what runs in them."""

    how: str
    targets: tuple[str, ...]
    line: int
    child: tuple[int, int] = (0, 0)
    """First and last line of what the launching function itself runs in the child, after a fork."""
    by: tuple[str, ...] = ()
    """What is called, where only the program can tell whether that is a process class."""
    presumed: bool = True
    """Whether it is taken for one where the program does not have it: an attribute of some context, not a name."""


def may_launch(data: bytes) -> bool:
    """Whether a file with these bytes may hold a launch site."""
    return next(signs(data), None) is not None


def may_launch_alone(data: bytes) -> bool:
    """Whether a file with these bytes may hold a launch site that is told from this file alone."""
    return next(_calls(data), None) is not None or (
        next(_arguments(data), None) is not None and any(starter.search(data) for starter in _STARTERS)
    )


def signs(data: bytes) -> Iterator[int]:
    """Where the file's bytes hold what every launch site does."""
    yield from _calls(data)
    yield from _arguments(data)


def _calls(data: bytes) -> Iterator[int]:
    """Where what starts workers may be called."""
    for match in _CALLED.finditer(data):
        if not data.endswith(b"launch", 0, match.start()) or any(word in data for word in _LAUNCHERS):
            yield match.start()


def _arguments(data: bytes) -> Iterator[int]:
    """Where a function may be handed to what starts workers."""
    defined = Definitions(data)
    for keyword in _KEYWORDS:
        for match in keyword.finditer(data):
            if _is_argument(data, match.start()) and not _is_for_method_thread(data, match.start(), defined):
                yield match.start()


def _is_argument(data: bytes, start: int) -> bool:
    """Whether the name at `start`, which something is assigned to, may be a call's keyword."""
    before, _ = told_before(data, start)
    if not before:
        return True
    return before.endswith((b"(", b",")) and not is_in_comment(data, start)


def _is_for_method_thread(data: bytes, start: int, defined: Definitions) -> bool:
    """Whether the keyword at `start` is the first of a `threading.Thread` that is not started by an `__init__`."""
    return (
        _THREAD_CALL.search(data, max(0, start - FARTHEST), start) is not None
        and _IMPORTS_THREADING.search(data) is not None  # else `threading` may be anything
        and all(name != b"__init__" for _, name in defined.functions_around(start))
    )


def recognise(call: ast.Call, references: References, source: Source) -> Iterator[Launch]:
    """The launches that `call` makes; `references` gives what an expression stands for."""
    called = references(call.func)
    line = call.lineno
    named = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    keywords = {name: value for name, value in named.items() if not isinstance(value, _NO_FUNCTIONS)}
    if "target" in keywords and _may_be_process(call.func, called):
        how = f"Process(target={short(keywords['target'])})"
        by = () if any(map(PROCESS.fullmatch, called)) else called
        presumed = isinstance(call.func, ast.Attribute) and call.func.attr.endswith("Process")
        yield Launch(how, _targets(keywords["target"], references), line, by=by, presumed=presumed)
    elif "target" in keywords and THREAD in called and _is_waited_for(call, source):
        target = keywords["target"]
        yield Launch(f"Thread(target={short(target)}), waited for", _targets(target, references), line)
    if "initializer" in keywords and _is_pool(call.func, called):
        target = keywords["initializer"]
        yield Launch(f"{_last(call.func)}(initializer={short(target)})", _targets(target, references), line)
    if "worker_init_fn" in keywords and (
        not called or any(map(_LOADER.fullmatch, called)) or _last(call.func)[0:1].isupper()
    ):
        target = keywords["worker_init_fn"]
        yield Launch(f"{_last(call.func)}(worker_init_fn={short(target)})", _targets(target, references), line)
    if any(map(_SPAWN.fullmatch, called)):
        started = keywords.get("fn") or keywords.get("entrypoint") or next(iter(call.args), None)
        if started is not None:
            yield Launch(f"{_last(call.func)}({short(started)})", _targets(started, references), line)
    if "os.fork" in called:
        body, others = _branches(call, source)
        if EXITS.isdisjoint(_called(others, references)):  # a parent that ends makes a daemon of itself
            child = (body[0].lineno, body[-1].end_lineno or 0) if body else (0, 0)
            yield Launch("os.fork()", _called(body, references), line, child=child)
    yield from _actors(call, references)
    yield from _polled(call, source)


def _may_be_process(function: ast.expr, called: tuple[str, ...]) -> bool:
    """Whether `function`, called with `target=`, is a process class or may be one by its spelling."""
    if any(map(PROCESS.fullmatch, called)):
        return True
    if any(reference.startswith(_NO_PROCESSES) for reference in called):
        return False
    if isinstance(function, ast.Attribute) and function.attr.endswith("Process"):
        return True
    return bool(called) and _CLASS_NAME.fullmatch(_last(function)) is not None


def _is_pool(function: ast.expr, called: tuple[str, ...]) -> bool:
    if any(map(_POOL.fullmatch, called)):
        return True
    known_otherwise = any(reference.startswith(":") or ".dummy" in reference for reference in called)
    return isinstance(function, ast.Attribute) and function.attr == "Pool" and not known_otherwise


def _actors(call: ast.Call, references: References) -> Iterator[Launch]:
    """`Actor.remote()`, `Actor.options(...).remote()`, `ray.remote(Actor)`, `ray.remote(**options)(Actor)`."""
    if any(reference in ("ray.remote", "ray.remote()") for reference in references(call.func)):
        started = next(iter(call.args), None)
        how = f"ray.remote({short(started)})" if started else ""
    elif isinstance(call.func, ast.Attribute) and call.func.attr == "remote":
        started = call.func.value
        if isinstance(started, ast.Call) and isinstance(started.func, ast.Attribute) and started.func.attr == "options":
            started = started.func.value
        how = f"{short(started)}.remote()"
    else:
        return
    if targets := tuple(r for r in references(started) if _names_class(r)) if started else ():
        yield Launch(how, targets, call.lineno)


def _polled(call: ast.Call, source: Source) -> Iterator[Launch]:
    """`handle.method.remote()` in a function that asks whether an actor is ready: that method is start-up."""
    match call.func:
        case ast.Attribute(value=ast.Attribute(attr=method), attr="remote"):
            function = source.function(call)
            if function is not None and "ready" in function.name:
                yield Launch(f"{method}.remote(), polled until ready", (f"{ACTOR}.{method}",), call.lineno)


def _names_class(reference: str) -> bool:
    """Whether a reference ends in a name that is spelled like a class: a task is no worker, an actor is one."""
    return _CLASS_NAME.fullmatch(reference.rpartition(".")[2].lstrip(":")) is not None


def is_actor(decorators: tuple[str, ...]) -> bool:
    """Whether these decorators make a class a ray actor."""
    return any(map(_ACTOR.match, decorators))


def _targets(target: ast.expr, references: References) -> tuple[str, ...]:
    """What runs when `target` is called: a function, a partial's function, or all that a lambda calls."""
    if isinstance(target, ast.Lambda):
        calls = (node for node in ast.walk(target.body) if isinstance(node, ast.Call))
        return tuple(reference for call in calls for reference in references(call.func))
    return references(target)


def _is_waited_for(call: ast.Call, source: Source) -> bool:
    """Whether the thread is started by an `__init__` that waits for something further down."""
    function = source.function(call)
    if function is None or function.name != "__init__":
        return False
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _WAITS
        and node.lineno > call.lineno
        and (node.func.attr != "get" or not node.args)
        for node in ast.walk(function)
    )


def _branches(call: ast.Call, source: Source) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """What the child and what the parent runs after `os.fork()`: in `if pid == 0:`, or behind `if pid != 0: return`."""
    statement = source.statement(call)
    statements = block(source.parents[statement], statement)
    start = statements.index(statement)
    for number, tested in enumerate(statements[start:], start + 1):
        if isinstance(tested, ast.If):
            if _is_child_test(tested.test):
                return tested.body, tested.orelse
            return tested.orelse or statements[number:], tested.body
    return [], []


def _is_child_test(test: ast.expr) -> bool:
    match test:
        case ast.Compare(ops=[ast.Eq()], comparators=[ast.Constant(value=0)]):
            return True
        case ast.UnaryOp(op=ast.Not()):
            return True
    return False


def _called(body: list[ast.stmt], references: References) -> tuple[str, ...]:
    calls = (node for node in run_nodes(body) if isinstance(node, ast.Call))
    return tuple(dict.fromkeys(reference for call in calls for reference in references(call.func)))


def _last(function: ast.expr) -> str:
    return last_name(function) or "pool"
