"""Cheap tests on a file's bytes: can a rule find anything in its handlers at all? Imports the parser only.

A test must be sound: a file that it turns down has no finding of its rule, in any legal spelling. Statements are parsed
alone, and what can't be is taken for what a rule looks for.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from keepcause.lint.source import SourceError, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from keepcause.lint.unparsed.file import Unparsed

    Parents = Mapping[ast.AST, ast.AST]

FROM_NONE = re.compile(rb"from(?:[\s\\(]++|#[^\r\n]*+)*+None")
"""The two words, with whatever is legal between them."""
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def may_handle(file: Unparsed, glance: Callable[[bytes], object], test: Callable[[ast.ExceptHandler], bool]) -> bool:
    """Whether the file may hold an exception handler that passes `test`.

    `glance`, asked first, must be true of the text of every such handler, whatever comes behind it.
    """
    try:
        handlers = (_parsed(*handler) for handler in file.handling(glance))
        return any(handler is None or test(handler) for handler in handlers)
    except RecursionError:
        return True


def may_handle_in_function(
    file: Unparsed, glance: Callable[[bytes], object], test: Callable[[ast.ExceptHandler, Parents], bool]
) -> bool:
    """As `may_handle`, for handlers in functions, each of which is parsed alone and without lone strings.

    `test` gets what holds each statement of the function, up to a module.
    """
    try:
        lines = file.lines
        starts = (start for start in lines.holding(b"except") if glance(lines.line(start).lstrip()))
        functions = dict.fromkeys(map(lines.function, starts))
        found = (_parents(parse(_indented(function.decode()))) for function in functions if function)
        return any(isinstance(node, ast.ExceptHandler) and test(node, parents) for parents in found for node in parents)
    except (ValueError, SourceError, RecursionError):
        return True


def _parents(tree: ast.Module) -> dict[ast.AST, ast.AST]:
    """Each statement, handler and case below `tree` -> what holds it."""
    parents: dict[ast.AST, ast.AST] = {}
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        held = [child for name in _BLOCKS for child in getattr(node, name, ())]
        parents.update(dict.fromkeys(held, node))
        pending += held
    return parents


def _indented(text: str) -> str:
    """What is indented, in a block that may hold it."""
    return f"if 1:\n{text}" if text[:1].isspace() else text


def _parsed(indentation: bytes, text: bytes) -> ast.ExceptHandler | None:
    """The handler; None where it can't be parsed alone, as where its text ends within a string or bracket."""
    try:
        tree = parse(_indented((indentation + b"try: pass\n" + indentation + text).decode()))
    except SourceError:
        return None
    block = tree.body[0]
    tried = block.body[0] if isinstance(block, ast.If) else block
    return tried.handlers[0] if isinstance(tried, ast.Try | ast.TryStar) else None
