"""How many findings there are of each rule, as a table or as JSON; imports the linter's data and registry."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from keepcause.lint.finding import Safety
from keepcause.lint.rule import all_rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from keepcause.lint.finding import Finding


def table(findings: Sequence[Finding]) -> str:
    """`count  CODE  [*] name`, the most frequent first: `[*]` where `fix` repairs all of them, `[-]` where some."""
    lines = []
    for code, name, count, safe in _rows(findings):
        mark = "*" if safe == count else "-" if safe else " "
        lines.append(f"{count:>{len(str(len(findings)))}}  {code}  [{mark}] {name}\n")
    return "".join(lines)


def as_json(findings: Sequence[Finding]) -> str:
    """A list with an object for each rule, with ruff's keys."""
    rows = [
        {"code": code, "name": name, "count": count, "fixable": safe == count, "fixable_count": safe}
        for code, name, count, safe in _rows(findings)
    ]
    return json.dumps(rows, indent=2) + "\n"


def _rows(findings: Sequence[Finding]) -> Iterator[tuple[str, str, int, int]]:
    """Code, name, number of findings and number of safe fixes of each rule that found something."""
    names = {rule.code: rule.name for rule in all_rules()}
    safe = Counter(finding.code for finding in findings if finding.fix and finding.fix.safety is Safety.SAFE)
    counts = Counter(finding.code for finding in findings)
    for code, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        yield code, names[code], count, safe[code]
