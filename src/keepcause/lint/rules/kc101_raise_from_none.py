"""KC101: `raise ... from None` where a worker starts."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from keepcause.lint.chaining import cause
from keepcause.lint.chaining.screen import FROM_NONE
from keepcause.lint.chaining.swallowed import is_swallowed
from keepcause.lint.rule import Rule, Where

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.finding import Finding
    from keepcause.lint.source import Source
    from keepcause.lint.unparsed.file import Unparsed


class RaiseFromNone(Rule):
    """`raise ... from None` hides why a worker failed to start.

    ## What it does

    Finds `raise ... from None` inside an exception handler, in code that runs while a worker process, actor or rank
    starts, or while its parent waits for it to be ready. Exceptions that steer the program, such as `StopIteration` and
    `CancelledError`, are left alone, those that a `try` around the raise catches and drops, and guards around an
    optional import.

    ## Why it is bad

    `from None` leaves the caught exception out of the traceback. In a program of many processes that traceback is
    often all that reaches the person who has to find the fault: "worker failed to initialize", and not one word of
    the missing file or the refused device.

    Where the caught exception is only what the parent sees of a worker's death (`EOFError`, `BrokenPipeError`,
    `ConnectionResetError`, `queue.Empty`, `TimeoutError`, `BrokenProcessPool`, ray's `ActorDiedError`), the cause
    itself is still in the child: `from` keeps the symptom, `keepcause.guard` and `keepcause.wait_for_workers` bring
    the cause.

    ## Bad

    ```python
    class Worker:
        def init_device(self):
            try:
                self.device = open_device(self.rank)
            except OSError:
                raise RuntimeError(f"rank {self.rank} has no device") from None
    ```

    ## Good

    ```python
    class Worker:
        def init_device(self):
            try:
                self.device = open_device(self.rank)
            except OSError as e:
                raise RuntimeError(f"rank {self.rank} has no device") from e
    ```

    ## Fix safety

    The handler gets a name where it has none, and the raise says `from` that name. `raise e from None` of the caught
    exception itself becomes a bare `raise`. That is safe where a new exception is raised: only the traceback changes.
    It is unsafe where what is raised may be the caught exception itself, as from an unknown function, where the author
    put the traceback into the text, and where a comment beside the raise says that the exception, its traceback or a
    secret is hidden on purpose. So it is around the `yield` of a `contextmanager`, which drops a RuntimeError whose
    cause is a StopIteration of the `with` block.

    An exception from before, which an outer handler caught or an attribute holds, may have a cause of its own: there
    `from None`, which erases it, is dropped, which is unsafe too. There is no fix where the caught name is bound anew
    before the raise, and where what is raised comes out of the caught exception or a container, or sets its own
    traceback.
    """

    code = "KC101"
    name = "raise-from-none"
    message = "`raise ... from None` hides why a worker failed to start"
    where = Where.WORKER_INIT
    fixes = "safe"
    nodes = (ast.Raise,)

    def glance(self, file: Unparsed) -> bool:
        """A file without `from None` in a handler has none."""
        return any(True for _ in file.handling(FROM_NONE.search)) and FROM_NONE.search(file.code) is not None

    def check(self, node: ast.AST, source: Source) -> Iterator[Finding]:
        """Yield a finding for a `from None` inside a handler."""
        match node:
            case ast.Raise(exc=ast.expr(), cause=ast.Constant(value=None)):
                caught = cause.caught_at(node, source)
                if (
                    caught is not None
                    and not cause.is_control_flow(node, source)
                    and not cause.guards_an_import(caught.innermost, source)
                    and not is_swallowed(node, source)
                ):
                    noticed = cause.symptom(caught.innermost)
                    message = f"{self.message}; `{noticed}` is {cause.ONLY_A_SYMPTOM}" if noticed else ""
                    yield self.found(node, source, cause.chain(node, caught, source), message)
