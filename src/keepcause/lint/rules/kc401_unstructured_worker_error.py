"""KC401: an error of a worker's start that does not carry the rank."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from keepcause.lint.finding import Edit, EditKind, Fix
from keepcause.lint.lazy.texts import is_text
from keepcause.lint.rule import Rule, Where
from keepcause.lint.structured.errors import class_name, fix, raises, rank_field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.finding import Finding
    from keepcause.lint.source import Source
    from keepcause.lint.unparsed.file import Unparsed


_RAISES = re.compile(
    rb"raise(?:[\s\\()]|#[^\r\n]*+|[\w\x80-\xff]++(?:[\s\\]|#[^\r\n]*+)*+\.)*?(?:RuntimeError|Exception)"
)


class UnstructuredWorkerError(Rule):
    """An error of a worker's start does not carry the rank.

    ## What it does

    Finds `raise RuntimeError(...)` and `raise Exception(...)` in code that runs while a worker process, actor or rank
    starts, where the worker's rank is at hand: as `rank`, `local_rank`, `self.rank`, `global_rank` or `tp_rank`.

    ## Why it is bad

    Whoever waits for many workers has to find out which one failed from the text. A `WorkerInitError` holds the rank
    as a field and takes its cause along when it is pickled to go to another process.

    ## Bad

    ```python
    class Worker:
        def init_device(self, rank):
            try:
                self.device = open_device(rank)
            except OSError as e:
                raise RuntimeError("the device can't be opened") from e
    ```

    ## Good

    ```python
    from keepcause import WorkerInitError


    class Worker:
        def init_device(self, rank):
            try:
                self.device = open_device(rank)
            except OSError as e:
                raise WorkerInitError("the device can't be opened", rank=rank) from e
    ```

    ## Fix safety

    `WorkerInitError` is a `RuntimeError`, so `except RuntimeError` still catches it; but code that asks for the very
    type, or that let an `Exception` through, may act otherwise. So the fix is unsafe; `keepcause fix --structured`
    makes it. In a handler the raise gets its cause as well, where it has none and KC101 calls that safe. There is no
    fix where the error has anything but one text as its argument.

    ## Options

    `rank-names` are the names that hold a worker's rank. `worker-init-error`, such as `"mypkg.errors:WorkerInitError"`,
    is the class to raise where a project keeps its own.
    """

    code = "KC401"
    name = "unstructured-worker-error"
    message = "the error of a worker that fails to start does not carry its rank"
    where = Where.WORKER_INIT
    unless = "KC402"
    on_by_default = False
    structured = True
    fixes = "unsafe"
    nodes = (ast.Raise,)

    def glance(self, file: Unparsed) -> bool:
        """A file that raises neither class has none."""
        return _RAISES.search(file.code) is not None

    def check(self, node: ast.AST, source: Source) -> Iterator[Finding]:
        """Yield a finding for a `RuntimeError` or `Exception` where a rank is in scope."""
        assert isinstance(node, ast.Raise)
        raised = raises(node, source, "RuntimeError", "Exception")
        if raised and (field := rank_field(node, source)):
            yield self.found(node, source, _fix(node, field, source), f"{self.message}: `{field}` is at hand")


def _fix(node: ast.Raise, field: str, source: Source) -> Fix | str:
    call = node.exc
    assert isinstance(call, ast.Call)
    if call.keywords or len(call.args) > 1 or not all(_is_text(argument, source) for argument in call.args):
        return "its arguments are more than one text"
    name, imports = class_name(source.structured.worker_init_error, node, source)
    change = Edit(EditKind.CALL_CLASS, source.span(node), ("exc",), f"{name}({field})")
    return fix(node, source, f"Raise `{name}` with `{field}`", change, imports)


def _is_text(argument: ast.expr, source: Source) -> bool:
    if not isinstance(argument, ast.Name):
        return is_text(argument, source)
    bindings = source.scopes.lookup(argument.id, source.scopes.of[argument])
    return bool(bindings) and all(binding.value is not None and is_text(binding.value, source) for binding in bindings)
