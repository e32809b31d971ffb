"""Cheap tests on a file's bytes: may a worker-init path begin in it, by itself? Imports words and launch sites."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from keepcause.lint.evidence import launch, startup
from keepcause.lint.unparsed.logical import BETWEEN, NEXT_NAME, NO_WORD, WORD

if TYPE_CHECKING:
    from collections.abc import Iterable

    from keepcause.lint.unparsed.file import Unparsed


def _bytes(name: re.Pattern[str]) -> bytes:
    """The pattern of a name, for bytes."""
    pattern = name.pattern.encode().replace(rb"\w", WORD)
    return rb"(?x:%s)%s" % (pattern, NO_WORD)


def _behind(sign: bytes, *names: re.Pattern[str]) -> re.Pattern[bytes]:
    return re.compile(rb"%s%s(?:%s)" % (sign, BETWEEN, b"|".join(map(_bytes, names))))


def _defines(*names: re.Pattern[str]) -> re.Pattern[bytes]:
    return _behind(b"def", *names)


def _word(end: bytes) -> re.Pattern[bytes]:
    return re.compile(end + NO_WORD)


_OWN_PACKAGE = re.compile(rb"from[\s\\]*+\.")
"""An import from the package that the file is part of, which may be any."""
_HOOKS = (
    (_word(b"Process"), launch.PROCESS_MODULES, _defines(re.compile("run"))),
    *(
        (_word(base.encode()), modules, _defines(startup.PLUGIN_HOOK))
        for base, modules in startup.PLUGIN_MODULES.items()
    ),
)
"""How the name of a base ends whose methods run in a worker, the modules that have such, and the methods."""
_RAY = _word(b"ray(?<!%sray)" % WORD)
_REMOTE = re.compile(rb"remote%s(?!%s)" % (NO_WORD, NEXT_NAME))
_ACTOR_STARTUP = _defines(re.compile("__init__"), startup.WORKER_STARTUP_NAME)
_CONNECT = _word(b"connect")
_STARTUP = _defines(startup.STARTUP_NAME)
_WAITING = re.compile(startup.WAITING.encode().replace(rb"\w", WORD))
_WORKERS = tuple(_word(end.encode()) for end in startup.WORKER_ENDINGS)
_MODULE_IMPORT = re.compile(rb"%simport(?=[\s\\(*])" % BETWEEN)
_DRIVING = (startup.DRIVING_NAME, startup.WORKER_STARTUP_NAME)
_DRIVES = _behind(rb"\.", *_DRIVING)
_DEFINES_DRIVING = _defines(*_DRIVING)


@functools.lru_cache(maxsize=1)
def may_have_child(file: Unparsed) -> bool:
    """Whether a function of the file may run in a worker."""
    code = file.code
    return (
        any(base.search(code) and _may_import(code, modules) and names.search(code) for base, modules, names in _HOOKS)
        or all(sign.search(code) for sign in (_RAY, _REMOTE, _ACTOR_STARTUP))
        or (b"celery" in code and _CONNECT.search(code) is not None)
        or launch.may_launch_alone(code)
    )


@functools.lru_cache(maxsize=1)
def may_have_root(file: Unparsed) -> bool:
    """Whether a function of the file may be the root of a worker-init path, or is said to be on one."""
    code = file.code
    return (
        b"keepcause:" in code
        or _STARTUP.search(code) is not None
        or _WAITING.search(code) is not None
        or _may_start_worker(code)
        or may_have_child(file)
    )


def _may_import(code: bytes, modules: Iterable[str]) -> bool:
    """Whether the file may import one of `modules`, or be part of it."""
    return any(module.encode() in code for module in modules) or _OWN_PACKAGE.search(code) is not None


def _may_start_worker(code: bytes) -> bool:
    """Whether the file may start a worker by a method or function, or have a class of workers with such a method."""
    workers = [match.end() for word in _WORKERS for match in word.finditer(code)]
    return bool(workers) and (
        _DRIVES.search(code) is not None
        or _DEFINES_DRIVING.search(code) is not None
        or any(_MODULE_IMPORT.match(code, end) for end in workers)
    )
