"""Cheap tests on a file's bytes: may a worker-init path begin in it, as far as it shows itself? Imports words only."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from keepcause.lint import launch, startup
from keepcause.lint.logical import BETWEEN, NO_WORD, WORD

if TYPE_CHECKING:
    from keepcause.lint.unparsed import Unparsed


def _bytes(name: re.Pattern[str]) -> bytes:
    """The pattern of a name, for bytes."""
    pattern = name.pattern.encode().replace(rb"\w", WORD)
    return rb"(?x:%s)%s" % (pattern, NO_WORD)


def _defines(*names: re.Pattern[str]) -> re.Pattern[bytes]:
    return re.compile(rb"def%s(?:%s)" % (BETWEEN, b"|".join(map(_bytes, names))))


def _word(end: bytes) -> re.Pattern[bytes]:
    return re.compile(end + NO_WORD)


_HOOKS = (
    (_word(b"Process"), _defines(re.compile("run"))),
    *((_word(base), _defines(startup.PLUGIN_HOOK)) for base in (b"Plugin", b"Worker", b"Step")),
    (_word(b"ray(?<!%sray)" % WORD), _word(b"remote"), _defines(re.compile("__init__"), startup.WORKER_STARTUP_NAME)),
    (_word(b"celery"), _word(b"connect")),
)
"""What a file holds, all of a group, where a function of it runs in a worker without a launch site."""
_STARTUP = _defines(startup.STARTUP_NAME)
_WAITING = re.compile(startup.WAITING.encode().replace(rb"\w", WORD))
_WORKERS = tuple(map(str.encode, startup.WORKERS))
_DRIVING = re.compile(rb"(?<!%s)(?:%s|%s)" % (WORD, _bytes(startup.DRIVING_NAME), _bytes(startup.WORKER_STARTUP_NAME)))


@functools.lru_cache(maxsize=1)
def may_have_child(file: Unparsed) -> bool:
    """Whether a function of the file may run in a worker."""
    code = file.code
    return any(all(sign.search(code) for sign in signs) for signs in _HOOKS) or launch.may_launch(code)


@functools.lru_cache(maxsize=1)
def may_have_root(file: Unparsed) -> bool:
    """Whether a function of the file may be the root of a worker-init path, or is said to be on one."""
    code = file.code
    return (
        b"keepcause:" in code
        or _STARTUP.search(code) is not None
        or _WAITING.search(code) is not None
        or (any(word in code for word in _WORKERS) and _DRIVING.search(code) is not None)
        or may_have_child(file)
    )
