"""What a rule says about one place in one file, as plain frozen data; imports the standard library only."""

from __future__ import annotations

import enum
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Span:
    """A range of source text: lines count from 1, columns from 0 in characters; the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


class Safety(enum.StrEnum):
    """Whether a fix changes only what an error shows (safe) or may change more (unsafe)."""

    SAFE = "safe"
    UNSAFE = "unsafe"


class EditKind(enum.StrEnum):
    """The changes that the codemod knows; each one concerns a single statement, `except` header or comment."""

    BIND_CAUGHT = "bind-caught"
    """`except X:` becomes `except X as TEXT:` (a bare `except:` becomes `except BaseException as TEXT:`)."""
    SET_CAUSE = "set-cause"
    """`raise Y from None` or `raise Y` becomes `raise Y from TEXT`."""
    DROP_CAUSE = "drop-cause"
    """`raise Y from None` becomes `raise Y`."""
    RERAISE = "reraise"
    """`raise e from None` becomes `raise`."""
    DROP_STATEMENT = "drop-statement"
    """A simple statement goes, with its line where it has one of its own; else `pass` takes its place."""
    LIST_CALL = "list-call"
    """The target `x` becomes `list(x)`; a generator expression that is a call's only argument keeps that call."""
    LIST_DISPLAY = "list-display"
    """The target `x` becomes `[*x]`, for where `list` is not the builtin; `(a for a in b)` becomes `[a for a in b]`."""
    LIST_ASYNC = "list-async"
    """The target `x` becomes `[item async for item in x]`."""
    LIST_KEYS = "list-keys"
    """The target `d.keys()` becomes `list(d)`."""
    JOIN = "join"
    """The target `x` becomes `", ".join(map(str, x))`."""
    DROP_CALL = "drop-call"
    """The target `f(x)` becomes `x`."""
    CALL_CLASS = "call-class"
    """The target `Error(x)` becomes a call of another class with more keywords: TEXT is `Other(name=value)`."""
    REPLACE_CALL = "replace-call"
    """The target, a call, becomes the call TEXT."""
    ADD_IMPORT = "add-import"
    """The file imports TEXT, `module:Name`, for use in the statement."""
    COMMENT = "comment"
    """What stands at `statement`, a comment or its whole line, becomes TEXT."""
    LIST_FIELD = "list-field"
    """The target, an f-string field `{x}`, `{x!r}` or `{x=}`, shows a list; `{x=}` keeps its label as text.

    The edit's text says how the list is made, as the kinds above: `call` (or nothing), `display`, `async` or `keys`.
    """


@dataclass(frozen=True)
class Edit:
    """One change inside one statement.

    `statement` is the statement's (or the whole exception handler's) span. `target` is the path of field names and
    list indexes from that statement's AST node to the node that changes, empty for the statement itself: positions
    inside f-strings are not reliable before Python 3.12, paths are. `text` is the new name or code where the kind takes
    one.
    """

    kind: EditKind
    statement: Span
    target: tuple[str | int, ...] = ()
    text: str = ""


@dataclass(frozen=True)
class Fix:
    """A repair: all of its edits or none."""

    safety: Safety
    title: str
    edits: tuple[Edit, ...]


class Grade(enum.StrEnum):
    """How sure it is that a function runs while a worker starts; see `keepcause trace`."""

    SURE = "sure"
    LIKELY = "likely"
    POSSIBLE = "possible"

    @property
    def doubt(self) -> int:
        """How far it is from sure, which is 0."""
        return list(Grade).index(self)


LAUNCH_SITE = "launch site"
"""Why a step is a root: it names a call that launches a worker."""


@dataclass(frozen=True)
class Step:
    """One function on a worker-init path, with the reason why it follows from the step before it."""

    function: str
    file: str
    line: int
    why: str


@dataclass(frozen=True)
class WorkerInit:
    """Why a function is on a worker-init path: the chain from the root down to it."""

    grade: Grade
    path: tuple[Step, ...]


@dataclass(frozen=True)
class Finding:
    """One fault in one file.

    `span` is what is reported and underlined; `statement` is what a `noqa` comment on any of its lines covers.
    `no_fix` says why there is no fix, where there is none. `function` is the line of the innermost enclosing `def`, 0
    for module level: the worker-init evidence is looked up by it, or, where `raised` holds the qualified name of an
    exception class, by what raises that class. The finding is never more certain than `at_best`.
    """

    code: str
    message: str
    span: Span
    statement: Span
    function: int = 0
    fix: Fix | None = None
    no_fix: str = ""
    worker_init: WorkerInit | None = None
    raised: str = ""
    at_best: Grade = Grade.SURE
    as_last: bool = False
    """Of what a worker runs, it counts in the function that is launched and in the last one that this one calls."""
    note: str = ""
    """What else the reader should know of the place."""
