"""Assertions for projects' own tests of what errors keep and say; imports the runtime, runs the command line."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .runtime.describe import line_of, raised_at, text_of, type_name

if TYPE_CHECKING:
    from collections.abc import Callable

E = TypeVar("E", bound=BaseException)


def assert_keeps_cause(
    function: Callable[..., object], /, *args: Any, cause: type[BaseException] = BaseException, **options: Any
) -> BaseException:
    """Call the function, which has to fail, and return what it raises if that shows its root cause.

    Args:
        function: is called with the other arguments.
        cause: what the root cause has to be an instance of.

    Raises:
        AssertionError: it raised nothing, or an error without a cause, or one that hides what came before it, such as
            by `from None`.
    """
    try:
        function(*args, **options)
    except BaseException as exc:
        return _with_cause(exc, cause)
    raise AssertionError(f"{getattr(function, '__qualname__', function)} raised nothing")


def _with_cause(exc: BaseException, cause: type[BaseException]) -> BaseException:
    line = line_of(exc)
    root = line[-1]
    hidden = root.__context__ if root.__suppress_context__ and root.__cause__ is None else None
    if hidden is not None:
        raise AssertionError(
            f"{_named(root)} hides {_named(hidden)}: raise it `from` that, not `from None`{_place(root)}"
        ) from exc
    if len(line) == 1:
        raise AssertionError(f"{_named(exc)} has no cause{_place(exc)}") from exc
    if not isinstance(root, cause):
        raise AssertionError(f"The root cause is {_named(root)}, not a {cause.__name__}{_place(root)}") from exc
    return exc


def assert_survives_pickle(exc: E) -> E:
    """Return a copy of the exception that pickle made, if it has the same class, text, attributes and chain of causes.

    Raises:
        AssertionError: it can't be pickled or unpickled, or something of it is lost.
    """
    try:
        copy: E = pickle.loads(pickle.dumps(exc))
    except Exception as error:
        raise AssertionError(f"{_named(exc)} can't cross a process border: {_named(error)}") from error
    if type(copy) is not type(exc):
        raise AssertionError(f"{_named(exc)} arrives as a {type_name(copy)}")
    if text_of(copy) != text_of(exc):
        raise AssertionError(f"{_named(exc)} arrives with the text {text_of(copy)!r}")
    lost = vars(exc).keys() - vars(copy).keys()
    if lost:
        raise AssertionError(f"{_named(exc)} arrives without its {', '.join(sorted(lost))}")
    chain, arrived = ([_named(each) for each in line_of(one)[1:]] for one in (exc, copy))
    if chain != arrived:
        raise AssertionError(f"{_named(exc)} arrives without its cause: {chain} became {arrived}")
    return copy


def assert_checkpoint_error_readable(exc: E) -> E:
    """Return the error of a checkpoint that did not load, if its text says what one needs to know.

    Raises:
        AssertionError: the text holds a lazy iterator in place of names; or no rank, step or path; or the shapes of a
            conflict that it shows, by `shape_conflicts` or in words, are not both there.
    """
    text = text_of(exc)
    lazy = re.search(r"<(?:async_)?(?:generator|map|filter|zip|enumerate|reversed|\w*_?iterator) object[^>]*>", text)
    if lazy:
        raise AssertionError(f"{_named(exc)} prints {lazy[0]} in place of names")
    path = getattr(exc, "path", None)
    for what, pattern in {
        "rank": r"\branks? ?[:=#]? ?\d",
        "step": r"\bstep\w* ?[:=#]? ?\d",
        "path": r"\w+://\w|[/\\]\w" if path is None else re.escape(str(path)),
    }.items():
        if not re.search(pattern, text, re.IGNORECASE):
            raise AssertionError(f"{_named(exc)} names no {what}")
    for conflict in list(getattr(exc, "shape_conflicts", ()))[:10]:  # a text need not show more of them
        parts = [conflict.key, str(list(conflict.expected)), str(list(conflict.actual))]
        if not any(all(part in line for part in parts) for line in text.splitlines()):
            raise AssertionError(f"{_named(exc)} does not show both shapes of {conflict.key}")
    return exc


def check_no_raise_from_none(path: str | os.PathLike[str], everywhere: bool = False) -> None:
    """Check a file or folder for `raise ... from None` where workers start, or, if `everywhere`, in all code.

    The project's `[tool.keepcause]` and `# noqa` comments count as they do on the command line.

    Raises:
        AssertionError: there are some, or a file could not be checked; the message lists them.
    """
    code = "KC109" if everywhere else "KC101"
    options = [f"--select={code}", "--output-format=concise"]
    command = [sys.executable, "-m", "keepcause", "check", *options, "--", os.fspath(path)]
    # The child finds this keepcause wherever the test found it.
    places = [str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places))}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise AssertionError(f"{done.stdout}{done.stderr}".strip())


def _named(exc: BaseException) -> str:
    return f"{type_name(exc)}: {text_of(exc)}"


def _place(exc: BaseException) -> str:
    """Return where the exception was raised, as far as known."""
    tb = raised_at(exc)
    return "" if tb is None else f" ({tb.tb_frame.f_code.co_filename}:{tb.tb_lineno})"
