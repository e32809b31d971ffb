"""The text of a checkpoint error: counts, the first of each kind, near names; imports findings and plain."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from .findings import LISTS, Findings
from .plain import counted, cut, ranks_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FIRST: Final = 10
"""How many of each kind are shown; the fields hold everything."""
LINE: Final = 300
"""Characters that one of them may take."""
GROUPS: Final = 6
"""How many groups of ranks are shown."""
TEXT: Final = 12_000
"""Characters of the whole text."""
LIKE: Final = 0.7
"""How alike, from 0 to 1, names have to be for one to be suggested for the other."""
CANDIDATES: Final = 300
"""How many names are compared with a missing one."""

TITLES: Final = {
    "missing": "missing, wanted by the model and not in the checkpoint",
    "unexpected": "unexpected, in the checkpoint and not wanted by the model",
    "shape_conflicts": "with another shape",
    "dtype_conflicts": "with another dtype",
    "kind_conflicts": "of another kind",
    "files": "damaged shard files",
}
COUNTED: Final = {
    "missing": "missing",
    "unexpected": "unexpected",
    "shape_conflicts": "with another shape",
    "dtype_conflicts": "with another dtype",
    "kind_conflicts": "of another kind",
}


def checkpoint_text(step: object, path: object) -> str:
    """Return `the checkpoint of step 7 at /ckpt/step-7`."""
    return f"the checkpoint{'' if step is None else f' of step {step}'} at {path}"


def counts(numbers: dict[str, int]) -> str:
    """Return `6 missing, 3 with another shape`; empty if there is nothing."""
    return ", ".join(
        counted(number, "damaged shard file") if name == "files" else f"{number} {COUNTED[name]}"
        for name, number in numbers.items()
        if number
    )


def body(findings: Sequence[Findings], unexpected: Sequence[str]) -> list[str]:
    """Return the lines below the first: failures, then every group of ranks, then what no rank wants."""
    lines: list[str] = []
    failed = [each for each in findings if each.failure]
    for place, each in enumerate(failed[:GROUPS]):
        after = f", {each.time - failed[0].time:.1f} s later" if place and failed[0].time else ""
        first = " first" if len(failed) > 1 and not place else ""
        lines.append(f"  {ranks_text(each.ranks)} failed{first}{after}: {cut(each.failure, 1_500)}")
    lines += _more(len(failed) - GROUPS, "groups of ranks that failed, in .findings")
    found = [each for each in findings if any(getattr(each, name) for name in LISTS)]
    for each in found[:GROUPS]:
        if each.ranks and (failed or len(found) > 1):
            lines.append(f"  on {ranks_text(each.ranks)}:")
        for name in LISTS:
            near = _near(each.missing, unexpected) if name == "missing" else {}
            lines += section(name, getattr(each, name), near)
        lines += prefix_hint(each.missing, unexpected)
    lines += _more(len(found) - GROUPS, "groups of ranks, in .findings")
    return lines + section("unexpected", unexpected, {})


def section(name: str, items: Sequence[object], near: dict[str, str]) -> list[str]:
    """Return a heading with the number of items, and the first of them."""
    if not items:
        return []
    lines = [f"  {TITLES[name]} ({len(items)}):"]
    for each in items[:FIRST]:
        hint = f" (did you mean {near[str(each)]}?)" if str(each) in near else ""
        lines.append(f"    {_shown(str(each))}{_shown(hint)}")
    return lines + _more(len(items) - FIRST, f"in .{name}")


def _shown(text: str) -> str:
    """Return a name on one line, whatever it is made of."""
    return cut(text if text.isprintable() else text.encode("unicode_escape").decode(), LINE)


def _more(number: int, what: str) -> list[str]:
    return [f"    ... and {number} more {what}"] if number > 0 else []


def _near(missing: Sequence[str], unexpected: Sequence[str]) -> dict[str, str]:
    """Return, for those missing names that are shown, the unexpected name most like each, where one is like it."""
    if prefix_hint(missing, unexpected):
        return {}
    found = {}
    for name in missing[:FIRST]:
        likeness, best = max(
            ((_likeness(name, each), each) for each in _candidates(name, unexpected)), default=(0.0, "")
        )
        if likeness >= LIKE:
            found[name] = best
    return found


def _likeness(one: str, other: str) -> float:
    """Return from 0 to 1 how alike two names are, judged by the parts in which they differ."""
    left, right = one.split("."), other.split(".")
    for end in (0, -1):
        while left and right and left[end] == right[end]:
            left.pop(end)
            right.pop(end)
    a, b = ".".join(left), ".".join(right)
    if a.isdigit() or b.isdigit():
        return 0.0  # the same of another layer
    if a.startswith(b) or b.startswith(a):
        return 1 - abs(len(a) - len(b)) / 100  # a part more, or one that is shortened
    import difflib  # only an error that has near names to offer needs it

    return difflib.SequenceMatcher(None, a, b).ratio()


def _candidates(name: str, unexpected: Sequence[str]) -> list[str]:
    """Return the names to compare with: all of a few, of many those with the same parent or the same last part."""
    names: Iterable[str] = unexpected
    if len(unexpected) > CANDIDATES:
        parent, _, leaf = name.rpartition(".")
        names = [each for each in unexpected if each.startswith(f"{parent}.")]
        names += [each for each in unexpected if each.endswith(f".{leaf}") and abs(len(each) - len(name)) < 4]
    return [each for each in names if len(each) <= LINE][:CANDIDATES] if len(name) <= LINE else []


def prefix_hint(missing: Sequence[str], unexpected: Iterable[str]) -> list[str]:
    """Tell the prefix by which all missing names differ from names in the checkpoint, if there is one."""
    if not missing or not unexpected:
        return []
    names = set(unexpected)
    count = f"all {len(missing)} missing names exist" if len(missing) > 1 else "the missing name exists"
    for prefix in sorted({each[: -len(missing[0])] for each in names if each.endswith(f".{missing[0]}")}, key=len):
        if all(prefix + each in names for each in missing):
            return [f'  {count} in the checkpoint with the prefix "{cut(prefix, LINE)}"']
    parts = missing[0].split(".")
    for length in range(1, len(parts)):
        prefix = ".".join(parts[:length]) + "."
        if all(each.startswith(prefix) and each.removeprefix(prefix) in names for each in missing):
            return [f'  {count} in the checkpoint without the prefix "{cut(prefix, LINE)}"']
    return []


def summed_up(errors: Iterable[tuple[int | None, str]]) -> str:
    """Return one text of many ranks' texts, equal ones once, whatever their order."""
    groups: defaultdict[str, list[int | None]] = defaultdict(list)
    for rank, text in errors:
        groups[text].append(rank)
    parts = [(sorted(ranks, key=_order), text) for text, ranks in groups.items()]
    return "\n".join(
        f"{ranks_text(ranks)}: {text}" for ranks, text in sorted(parts, key=lambda part: (_order(part[0][0]), part[1]))
    )


def _order(rank: int | None) -> tuple[bool, int]:
    return rank is None, rank or 0
