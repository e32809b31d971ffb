"""KC301: an exception class that is raised where a worker starts and does not survive pickle."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from keepcause.lint.pickling.rule import PicklableRule
from keepcause.lint.rule import Where

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.finding import Finding
    from keepcause.lint.source import Source


class ExceptionNotPicklable(PicklableRule):
    """An exception class that is raised where a worker starts is lost on its way to the parent.

    ## What it does

    Finds exception classes whose instances do not survive a round trip through pickle, if they are raised in code that
    runs while a worker starts: their constructor needs more than `args` holds, or arguments by keyword; they hold a
    lock, a lambda, a generator, a socket or an open file; they are frozen dataclasses, or defined inside of a function.
    A class with a base class in another file is not judged, nor what the parent itself raises.

    ## Why it is bad

    pickle rebuilds an exception by calling its class with `args`. Where that fails, it fails in the process that
    *receives* the error: a `multiprocessing.Pool` hangs for ever, a `ProcessPoolExecutor` says that it is broken, and
    what the worker had to say is gone. An exception whose text only comes out doubled is not reported.

    ## Bad

    ```python
    class ShardError(Exception):
        def __init__(self, shard, path):
            super().__init__(f"shard {shard} at {path}")


    def init_worker(shard, path):
        raise ShardError(shard, path)
    ```

    ## Good

    ```python
    class ShardError(Exception):
        def __init__(self, shard, path):
            super().__init__(shard, path)

        def __str__(self):
            return "shard {} at {}".format(*self.args)


    def init_worker(shard, path):
        raise ShardError(shard, path)
    ```

    ## Fix safety

    There is none: hand all that the constructor needs to `super().__init__`, or write a `__reduce__` that returns the
    class and its arguments.
    """

    code = "KC301"
    name = "exception-not-picklable"
    message = "does not survive pickle on its way to the parent"
    where = Where.WORKER_INIT

    def check(self, node: ast.AST, source: Source) -> Iterator[Finding]:
        """Yield a finding for a class that is lost, to be kept where a worker that starts raises it."""
        assert isinstance(node, ast.ClassDef)
        yield from self.judged(node, source, raised=source.scopes.inside[node].qualname)
