"""Cheap tests on a file's bytes: can a rule find anything in it at all? Imports logical lines and the parser only.

A test must be sound: a file that it turns down has no finding of its rule, in any legal spelling. Statements are parsed
alone, and what can't be is taken for what a rule looks for.
"""

from __future__ import annotations

import ast
import functools
import re
from typing import TYPE_CHECKING

from keepcause.lint.logical import LogicalLines, normalized
from keepcause.lint.source import SourceError, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Parents = Mapping[ast.AST, ast.AST]

_FROM_NONE = re.compile(rb"from(?:[\s\\(]++|#[^\r\n]*+)*+None")
_EXCEPT = re.compile(rb"except\b")
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_TEXT = re.compile(rb"\"[^\"\\\n]*\"|'[^'\\\n]*'|#[^\n]*")


def may_raise_from_none(data: bytes) -> bool:
    """Whether the file with these bytes may hold `from None`, with whatever is legal between the two words."""
    plain = normalized(data)
    return plain is None or _FROM_NONE.search(plain) is not None


def may_name(data: bytes, *names: str) -> bool:
    """Whether the file with these bytes may use one of `names`, or a name that holds one."""
    plain = normalized(data)
    return plain is None or any(name.encode() in plain for name in names)


def may_match(data: bytes, pattern: re.Pattern[bytes]) -> bool:
    """Whether `pattern` may be found in the code with these bytes."""
    plain = normalized(data)
    return plain is None or pattern.search(plain) is not None


def may_handle(data: bytes, glance: Callable[[bytes], object], test: Callable[[ast.ExceptHandler], bool]) -> bool:
    """Whether the file with these bytes may hold an exception handler that passes `test`.

    `glance`, asked first, must be true of the text of every such handler, whatever comes behind it.
    """
    plain = normalized(data)
    if plain is None:
        return True
    looked_at = (_parsed(*handler) for handler in _handlers(plain) if glance(handler[1]) or not _is_whole(handler[1]))
    try:
        return any(handler is None or test(handler) for handler in looked_at)
    except RecursionError:
        return True


def may_handle_in_function(
    data: bytes, glance: Callable[[bytes], object], test: Callable[[ast.ExceptHandler, Parents], bool]
) -> bool:
    """As `may_handle`, for handlers in functions, each of which is parsed alone and without lone strings.

    `test` gets what holds each statement of the function, up to a module.
    """
    plain = normalized(data)
    if plain is None:
        return True
    try:
        lines = LogicalLines(plain)
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


@functools.lru_cache(maxsize=1)
def _handlers(plain: bytes) -> list[tuple[bytes, bytes]]:
    """The indentation and text of each handler, from `except` to where its block ends by the looks of it.

    Where indentation is not what it looks like, the text is all that follows.
    """
    if b"\r" in plain:
        plain = plain.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    looks_right = b"\f" not in plain
    found = []
    for match in _EXCEPT.finditer(plain):
        start = plain.rfind(b"\n", 0, match.start()) + 1
        indentation = plain[start : match.start()]
        if indentation.strip(b" \t\f"):
            continue
        continued = plain[max(0, start - 2) : start] == b"\\\n"
        end = _behind(len(indentation)).search(plain, match.end()) if looks_right and not continued else None
        found.append((indentation, plain[match.start() : end.start() if end else len(plain)]))
    return found


@functools.cache
def _behind(indent: int) -> re.Pattern[bytes]:
    """The end of a line before one with code that is indented by at most `indent`."""
    return re.compile(rb"\n(?=[ \t]{0,%d}[^ \t\n#])" % indent)


def _is_whole(text: bytes) -> bool:
    """Whether no string, bracket or continuation is open at the end; false where that takes more than a glance."""
    code = _TEXT.sub(b"", text)
    return (
        not text.endswith(b"\\")
        and b'"""' not in text
        and b"'''" not in text
        and b'"' not in code
        and b"'" not in code
        and all(code.count(left) == code.count(right) for left, right in ((b"(", b")"), (b"[", b"]"), (b"{", b"}")))
    )


def _parsed(indentation: bytes, text: bytes) -> ast.ExceptHandler | None:
    """The handler; None where it can't be parsed alone, as where its text ends within a string or bracket."""
    try:
        tree = parse(_indented((indentation + b"try: pass\n" + indentation + text).decode()))
    except SourceError:
        return None
    block = tree.body[0]
    tried = block.body[0] if isinstance(block, ast.If) else block
    return tried.handlers[0] if isinstance(tried, ast.Try | ast.TryStar) else None
