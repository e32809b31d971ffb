"""Random functions around a lazy iterator and a text, checked against what running them shows."""

from __future__ import annotations

import ast
import io
import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keepcause.codemod.apply import repair
from keepcause.lint.engine import Settings, lint_single_file
from keepcause.lint.finding import Safety
from keepcause.lint.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from keepcause.lint.finding import Finding

SETTINGS = Settings(codes=frozenset({"KC201", "KC203", "KC204"}))
HEAD = """\
import itertools

KNOWN = (1, 3)


class Told(ValueError):
    pass


def generate(values):
    for value in values:
        yield value


"""
LAZY = [
    "(x for x in {0})",
    "(x for x in {0} if x != 2)",
    "(x for x in {0} if x not in KNOWN)",
    "(str(x) for x in {0})",
    "(6 // x for x in {0})",
    "(y for x in {0} for y in (x, x))",
    "(y for x in KNOWN for y in {0})",
    "map(str, {0})",
    "map(lambda x: x + 1, {0})",
    "filter(None, {0})",
    "zip({0}, KNOWN)",
    "zip(KNOWN, {0})",
    "enumerate({0})",
    "iter({0})",
    "itertools.chain({0}, KNOWN)",
    "itertools.islice({0}, 2)",
    "generate({0})",
    "(x for x in generate({0}))",
    "(x for x in map(str, {0}))",
    "(x for x in iter({0}))",
]
LAZY_TEXT = re.compile(r"<.* object .*at 0x")
READ = ["arg", "base", "[1, 2, 3]", "KNOWN", "arg[:]", "inner"]
GUARDS = [
    "pass",
    "assert isinstance(arg, list)",
    "if not isinstance(arg, list):\n    return None",
    "if isinstance(arg, list):\n    seen.append(0)",
    "seen.append(len(arg))",
    "for each in arg:\n    seen.append(each)",
    "for each in arg:\n    seen.append(each)\n    break",
    "try:\n    len(arg)\nexcept TypeError:\n    pass",
]
CHANGES = [
    "it = map(str, KNOWN)",
    "it = it if flag else map(str, base)",
    "base = [7]",
    "base = iter(arg)",
    "base = it",
    "base.append(5)",
    "arg.append(4)",
]
"""What may change the items, so that it is not known how many there are."""
BEFORE = [
    "pass",
    "seen.append(any(it))",
    "for y in it:\n    seen.append(y)",
    "for y in it:\n    seen.append(y)\n    if flag:\n        break",
    "seen.append(next(it, None))",
    "seen.append(1 in it)",
    "seen.append(list(it))",
    "seen.append([y for y in it])",
    "seen.append(it is None)",
    "seen.append(f'{it}'[:4])",
    "seen.append([y for y in it if it])",
    "seen.append([1 in it for _ in KNOWN])",
    "for left, right in zip(it, KNOWN):\n    seen.append(left)",
    "seen.extend(it)",
    "KNOWN = list(it)",
    "other = it",
    "seen.append(bool(it))",
    "it = list(it)",
    "if flag:\n    it = list(it)",
    "if flag:\n    it = map(str, KNOWN)",
    "if flag:\n    seen.append(all(it))",
    "if flag:\n    seen.append(sorted(map(str, it)))\nelse:\n    seen.append(tuple(it))",
    *CHANGES,
    "with contextlib.suppress(ZeroDivisionError):\n    seen.append(sum(1 for _ in it))",
    "try:\n    seen.append(max(map(str, it)))\nfinally:\n    seen.append(0)",
    "def later():\n    return list(it)",
    "def later():\n    return len(arg)",
    "later = lambda: sorted(it)",
    "later = (y for y in it)\nseen.append(next(later, None))",
    "it, other = it, it",
    "for it in ([], it):\n    pass",
    "del other",
]
AROUND = [
    ["{0}"],
    ["{0}"],
    ["if flag:", "    {0}"],
    ["if flag:", "    seen.append(0)", "else:", "    {0}"],
    ["while True:", "    {0}", "    break"],
    ["while flag:", "    {0}", "    flag = False"],
    ["for turn in KNOWN:", "    {0}"],
    ["for turn in KNOWN:", "    if turn == 3:", "        continue", "    {0}", "else:", "    seen.append(1)"],
    ["try:", "    {0}", "finally:", "    seen.append(2)"],
    ["try:", "    {0}", "    raise KeyError", "except KeyError:", "    seen.append(3)"],
    ["try:", "    seen.append(arg[0])", "    {0}", "except TypeError:", "    seen.append(4)"],
    ["try:", "    raise KeyError", "except KeyError:", "    {0}", "else:", "    seen.append(5)"],
    ["try:", "    if flag:", "        return None", "    {0}", "finally:", "    seen.append(6)"],
    ["with contextlib.suppress(TypeError):", "    seen.append(arg[0])", "    {0}"],
    ["match flag:", "    case True:", "        {0}", "    case other:", "        seen.append(other)"],
    ["match arg:", "    case [first, *_]:", "        {0}", "    case _:", "        pass"],
]
SHOWN = [
    *("f'{it}'", "f'{it!r}'", "f'{it=}'", "f'a {[it]}'", "'%s' % it"),
    *("str(it)", "'{}'.format(it)", "'a ' + repr(it)"),
]
LISTED = ["f'{list(it)}'", "'; '.join(map(str, it))", "f'{sorted(map(str, it))}'", "f'{[*it]}'", "f'{[y for y in it]}'"]
TEXTS = [
    "raise Told({0})",
    "assert not flag, {0}",
    "logger.warning({0})",
    "message = {0}\nraise Told(message)",
    "try:\n    raise Told({0})\nexcept Told as error:\n    logger.warning('%s', error)",
    "for turn in range(2):\n    logger.warning({0})",
    "if flag:\n    raise Told({0})",
]
AFTER = [
    "pass",
    "seen.append(list(it))",
    "return it",
    "return list(it)",
    "for y in it:\n    seen.append(y)",
    "seen.append(next(it, None))",
    "seen.append(list(base))",
    "seen.append(list(arg))",
]


@dataclass(frozen=True)
class Program:
    """A function as text; `full` gives all items of its iterator."""

    text: str
    full: str


@st.composite
def wrapped(draw: st.DrawFn, statements: list[str]) -> str:
    """One of `statements` inside up to two compound ones."""
    statement = draw(st.sampled_from(statements))
    for _ in range(draw(st.integers(0, 2))):
        lines = []
        for line in draw(st.sampled_from(AROUND)):
            indent = line[: len(line) - len(line.lstrip())]
            lines += [indent + each for each in statement.split("\n")] if line.strip() == "{0}" else [line]
        statement = "\n".join(lines)
    return statement


@st.composite
def programs(draw: st.DrawFn) -> Program:
    made = draw(st.sampled_from(LAZY)).format(draw(st.sampled_from(READ)))
    start = ["base = sorted(arg)" if draw(st.booleans()) else "base = [1, 2, 3]"]
    start.append(draw(st.sampled_from(GUARDS)))
    start.append("inner = " + draw(st.sampled_from(["arg", "base", "(x for x in base)", "list(base)"])))
    text = draw(st.sampled_from(SHOWN if draw(st.booleans()) else LISTED))
    before = [draw(wrapped(BEFORE)) for _ in range(draw(st.integers(0, 3)))]
    middle = [f"it = {made}" if draw(st.integers(0, 3)) else draw(wrapped([f"it = {made}"])), *before]
    end = [draw(st.sampled_from(TEXTS)).format(text)]
    end = [draw(wrapped(end)) if draw(st.integers(0, 3)) == 0 else end[0]]
    end += draw(st.lists(st.sampled_from(AFTER), max_size=2))
    whole = [*start, *middle, *end]
    if draw(st.integers(0, 4)) == 0:
        whole = [*start, middle[0], _indented("for again in (1, 2):", middle[1:] + end)]
    return Program(
        HEAD + _indented("def run(arg, flag, seen):", whole) + "\n",
        HEAD + _indented("def run(arg, flag, seen):", [*start, f"return list({made})"]) + "\n",
    )


def _indented(head: str, blocks: Iterable[str]) -> str:
    lines = [line for block in blocks for line in block.split("\n")]
    return "\n".join([head, *("    " + line for line in lines or ["pass"])])


@dataclass(frozen=True)
class Outcome:
    """What a run did; `texts` is what its error and log entries say."""

    returned: object
    raised: str
    seen: object
    left: object
    texts: tuple[str, ...]

    def but_texts(self) -> tuple[object, ...]:
        return self.returned, self.raised, self.seen, self.left, len(self.texts)


def run(text: str, argument: Callable[[], Any], *, flag: bool) -> Outcome:
    stream = io.StringIO()
    logger = logging.Logger("random")
    logger.addHandler(logging.StreamHandler(stream))
    space: dict[str, Any] = {"logger": logger}
    exec(compile("import contextlib\n" + text, "random", "exec"), space)
    seen: list[object] = []
    given_argument = argument()
    returned, raised, texts = None, "", []
    try:
        returned = space["run"](given_argument, flag, seen)
    except Exception as error:
        raised = type(error).__name__
        if raised in ("Told", "AssertionError") and str(error):
            texts.append(str(error))
    texts += stream.getvalue().splitlines()
    return Outcome(plain(returned), raised, [plain(each) for each in seen], plain(given_argument), tuple(texts))


def plain(value: object) -> object:
    """What can be compared: an iterator as the name of its type and what is left in it."""
    if isinstance(value, list | tuple | str | int | bool | None):
        return value
    try:
        return type(value).__name__, list(value)  # type: ignore[call-overload]
    except Exception as error:
        return type(value).__name__, type(error).__name__


def found(source: Source) -> list[Finding]:
    return lint_single_file(source, SETTINGS)


ARGUMENTS: tuple[Callable[[], Any], ...] = (lambda: [1, 2, 3], lambda: iter([1, 2, 3]))


@settings(max_examples=300, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.sampled_from(ARGUMENTS), st.booleans())
def test_what_is_reported_is_printed_and_what_is_safe_changes_the_text_alone(
    program: Program, argument: Callable[[], Any], flag: bool
) -> None:
    source = Source(program.text.encode(), "random.py")
    findings = found(source)
    before = run(program.text, argument, flag=flag)
    codes = {finding.code for finding in findings}
    if codes & {"KC201", "KC203"}:
        assert all(LAZY_TEXT.search(text) for text in before.texts), before.texts
    changed = any(change in program.text for change in CHANGES)
    full = None if changed else run(program.full, lambda: [1, 2, 3], flag=flag).returned
    if "KC204" in codes and isinstance(full, list) and full and argument is ARGUMENTS[0]:
        assert all(len(items(text)) < len(full) or "for again" in program.text for text in before.texts), before.texts

    repaired = repair(
        source, findings, allowed=frozenset({Safety.SAFE}), relint=lambda data: found(Source(data, "x.py"))
    )
    assert not repaired.failed
    after = run(repaired.data.decode(), argument, flag=flag)
    assert after.but_texts() == before.but_texts(), repaired.data.decode()
    if repaired.applied and isinstance(full, list) and argument is ARGUMENTS[0]:
        for text in after.texts:
            assert not LAZY_TEXT.search(text)
            assert all(str(item) in text for item in full), text


def items(text: str) -> list[object]:
    """The items that a text lists."""
    if text.startswith("["):
        listed = ast.literal_eval(text)
        assert isinstance(listed, list)
        return listed
    return [*text.split("; ")] if text else []
