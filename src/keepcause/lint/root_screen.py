"""Cheap tests on a file's bytes: may a worker-init path begin in it, as far as it shows itself? Imports words only."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from keepcause.lint import launch, startup
from keepcause.lint.logical import BETWEEN, LETTERS, NEXT_NAME, NO_WORD, WORD
from keepcause.lint.surroundings import BLANK, BRACKETS, places

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


_OWN_PACKAGE = re.compile(rb"from[\s\\]*+\.")
"""An import from the package that the file is part of, which may be any."""
_HOOKS = (
    *(
        ((_word(base),), (*map(re.compile, modules), _OWN_PACKAGE), (_defines(names),))
        for base, modules, names in (
            (b"Process", (b"multiprocess", b"billiard"), re.compile("run")),
            (b"Plugin", (b"distributed",), startup.PLUGIN_HOOK),
            (b"Worker", (b"gunicorn", b"uvicorn"), startup.PLUGIN_HOOK),
            (b"Step", (b"celery",), startup.PLUGIN_HOOK),
        )
    ),
    (
        (_word(b"ray(?<!%sray)" % WORD),),
        (re.compile(rb"remote%s(?!%s)" % (NO_WORD, NEXT_NAME)),),
        (_defines(re.compile("__init__"), startup.WORKER_STARTUP_NAME),),
    ),
    ((_word(b"celery"),), (_word(b"connect"),)),
)
"""What a file holds, one of each, where a function of it runs in a worker without a launch site."""
_STARTUP = _defines(startup.STARTUP_NAME)
_WAITING = re.compile(startup.WAITING.encode().replace(rb"\w", WORD))
_DRIVING = re.compile(
    rb"\.(?<!super\(\)\.)%s(?:%s|%s)" % (BETWEEN, _bytes(startup.DRIVING_NAME), _bytes(startup.WORKER_STARTUP_NAME))
)
"""A method that starts a worker, if it is one's; what `super()` calls is not, by its name."""
_WORKER_STARTUP = _defines(startup.WORKER_STARTUP_NAME)
_WORKERS = tuple(_word(word.encode()) for word in startup.WORKERS)
_IS_RENAMED = re.compile(rb"%sas(?=[\s\\])" % BETWEEN)
_IS_MODULE = re.compile(rb"%simport(?=[\s\\(*])" % BETWEEN)
_COMMENT = re.compile(rb"#[^\r\n]*+")
_LONGEST_HEAD = 2000
"""How many bytes before the name of a base its class is sought."""
_HANDED_ON = (b"=", b"(", b"[", b"{", b",", b"|", b"or", b"else", b"and")
"""What stands before a class that may get another name."""


@functools.lru_cache(maxsize=1)
def may_have_child(file: Unparsed) -> bool:
    """Whether a function of the file may run in a worker."""
    code = file.code
    hooks = (all(any(sign.search(code) for sign in signs) for signs in hook) for hook in _HOOKS)
    return any(hooks) or launch.may_launch_alone(code)


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


def _may_start_worker(code: bytes) -> bool:
    """Whether the file may start a worker by a method, or have a class of workers with one."""
    workers = [match.span() for word in _WORKERS for match in word.finditer(code)]
    if not workers:
        return False
    if _DRIVING.search(code) or any(_IS_MODULE.match(code, end) for _, end in workers):
        return True
    is_class = any(_may_be_inherited(code, *span) for span in workers)
    return is_class and _WORKER_STARTUP.search(code) is not None


def _has_colon(text: bytes) -> bool:
    """Whether a colon stands in the text, which has no comments, that is in no bracket or string."""
    return any(
        not any(quote in text[:at] for quote in (b'"', b"'"))
        and all(text.count(left, 0, at) <= text.count(right, 0, at) for left, right in BRACKETS)
        for at in places(text, b":")
    )


def _may_be_inherited(code: bytes, start: int, end: int) -> bool:
    """Whether the class whose name ends so stands at the head of a class, or gets another name that may."""
    text = code[max(0, start - _LONGEST_HEAD) : start]
    if any(not _has_colon(_COMMENT.sub(b"", text[head:])) for head in places(text, b"class")):
        return True
    before = text.rstrip(LETTERS + b".").rstrip(BLANK)
    return _IS_RENAMED.match(code, end) is not None or before.endswith(_HANDED_ON)
