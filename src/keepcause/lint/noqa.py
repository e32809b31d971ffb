"""`# noqa` comments, with flake8's grammar; standard library only."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from keepcause.lint.finding import Finding

# flake8's grammar, traps included: one blank between `#` and `noqa`; codes that it can't read make the comment a
# blanket one.
_DIRECTIVE = re.compile(r"# noqa(?::\s?(?P<codes>(?:[A-Z]+[0-9]+(?:[,\s]+)?)+))?", re.IGNORECASE)


def covers(line: str, code: str) -> bool:
    """Whether a `# noqa` comment on this physical line covers `code`; as in flake8, prefixes count and case matters."""
    directive = _DIRECTIVE.search(line)
    if directive is None:
        return False
    codes = directive["codes"]
    return codes is None or code.startswith(tuple(filter(None, re.split(r"[,\s]", codes))))


def suppressed(finding: Finding, lines: Sequence[str]) -> bool:
    """Whether a comment on any line of the finding's statement covers it; `lines` are the whole file's."""
    statement = finding.statement
    return any(covers(line, finding.code) for line in lines[statement.line - 1 : statement.end_line])
