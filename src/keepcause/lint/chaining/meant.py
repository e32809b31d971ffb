"""Whether a comment beside a `raise ... from None` says that it is meant; standard library only."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast

    from keepcause.lint.source import Source

MEANT = "a comment says that it is meant"
_COMMENT = re.compile(r"(?:^|[\s:)])#(.*)")
_REASON = re.compile(
    r"\b(?:suppress|hid(?:e|ing)|chain|expos|(?<!memory )leak|secret|redact|credential|verbos|nois[ey]|spam|clutter)"
    r"|\b(?:trace ?back|stack ?trace)|\b(?:original|underlying|internal|inner) (?:\w+ ){0,2}(?:error|exception)",
    re.IGNORECASE,
)
"""What such comments speak of: the traceback and the chain, what is in the way there, and what must not be seen."""


def is_meant(node: ast.Raise, handler: ast.ExceptHandler | None, source: Source) -> bool:
    """Whether a comment above `node`, on its last line or on the header of its handler speaks of what is hidden."""
    lines = source.lines
    first = node.lineno - 1
    while first and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    beside = [*lines[first : node.lineno - 1], lines[source.span(node).end_line - 1][source.span(node).end_column :]]
    if handler is not None:
        beside += lines[handler.lineno - 1 : handler.body[0].lineno - 1]
    text = " ".join(comment[1] for line in beside if (comment := _COMMENT.search(line)))
    return _REASON.search(text) is not None
