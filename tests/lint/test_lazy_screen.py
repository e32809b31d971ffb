"""The screens turn down no file in which a rule finds something, in whatever spelling.

Run by hand with a number of seconds and folders, it writes faults into the files of those folders for that long:
`python tests/lint/test_lazy_screen.py 600 /usr/lib/python3`.
"""

from __future__ import annotations

import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from screened import given, may_find

from keepcause.lint.lazy.screen import generators, may_show_lazy
from keepcause.lint.rule import Rule, all_rules
from keepcause.lint.source import Source, SourceError
from keepcause.lint.unparsed.logical import LogicalLines, normalized

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Make = Callable[[random.Random], str]

ROOT = Path(__file__).parents[2]
RULES = {rule.code: rule for rule in all_rules()}
LAZY = [RULES[code] for code in ("KC201", "KC203", "KC204")]
CAUSES = [RULES[code] for code in ("KC101", "KC102", "KC103", "KC109")]

# An expression that holds something lazy, and what has to come before.
VALUES = [
    ("(x for x in rows)", ""),
    ("(x\tfor x in rows)", ""),
    ("( # so\n x # and\n for x in rows)", ""),
    ("((x, f'{x}') for x in rows)", ""),
    ("((x for x in rows))", ""),
    ("(str(x)[0] + ' for )' for x in rows)", ""),
    ("(  # a ( b\n # it's for\n x for x in rows)", ""),
    ("(((((((((x)))))))) for x in rows)", ""),
    ("(f'{x!r:>{9}}' for x in rows)", ""),
    ("(x async for x in rows)", ""),
    ("(waitfor for waitfor in rows)", ""),
    ("map(str, rows)", ""),
    ("map (str, rows)", ""),
    ("(map)(str, rows)", ""),
    ("(map if rows else map)(str, rows)", ""),
    ("(mapped := map(str, rows))", ""),
    ("(map(str, rows) if rows else zip(rows))", ""),
    ("\uff4dap(str, rows)", ""),
    ("filter(None, rows)", ""),
    ("zip(rows, rows)", ""),
    ("enumerate(rows)", ""),
    ("reversed(rows)", ""),
    ("iter(rows)", ""),
    ("m(str, rows)", "m = map"),
    ("m(str, rows)", "m = (map)"),
    ("m(str, rows)", "n, m = 1, map"),
    ("m(str, rows)", "m = None or map"),
    ("m(str, rows)", "n = map\nm = n"),
    ("m(str, rows)", "m: object = map"),
    ("m(str, rows)", "(m := map)"),
    ("m(str, rows)", "from builtins import map as m"),
    ("b.map(str, rows)", "import builtins as b"),
    ("any(str, rows)", "any = map"),
    ("functools.partial(map, str)(rows)", "import functools"),
    ("m(rows)", "from functools import partial\nm = partial(map, str)"),
    ("m(rows)", "from functools import partial as p\nm = p(map, str)"),
    ("itertools.chain(rows, rows)", "import itertools"),
    ("it.islice(rows, 2)", "import itertools as it"),
    ("c(rows, rows)", "from itertools import (chain as\n c)"),
    ("chain.from_iterable(rows)", "from itertools import chain"),
    ("\uff43hain(rows)", "from itertools import chain"),
    ("os.walk('.')", "import os"),
    ("scan('.')", "from os import scandir as scan"),
    ("glob.iglob('*')", "import glob"),
    ("csv.reader(rows)", "import csv"),
    ("re.finditer('a', 'b')", "import re"),
    ("gen(rows)", "def gen(rows):\n    yield from rows"),
    ("gen(rows)", "def gen(rows): yield 1"),
    ("gen(rows)", "def gen(rows):\n    f'{(yield 1)}'"),
    ("gen(rows)", "def gen(rows):\n    def inner():\n        pass\n    for row in rows:\n        yield row"),
    ("gen(rows)", "\fdef gen(rows):\n\tif rows:\n\t\tyield 1"),
    ("gen(rows)", 'def gen(rows):\n    """\ndef other():\n    pass\n    """\n    yield 1'),
    ("gen(rows)", 'def gen(rows):\n    x = """it\'s\nclass A:\n"""\n    x = yield'),
    ("gen(rows)", "@staticmethod\ndef gen(rows):\n    async def inner():\n        yield 1\n    yield (1)"),
    ("gen (rows)", "def gen(rows): 1; yield 1"),
    ("gen(rows)", "def \\\n  gen(rows):\n    yield 1"),
    ("gén(rows)", "def ge\u0301n(rows):\n    yield 1"),
    ("gen(rows)", "async def gen(rows):\n    yield 1"),
    ("gen(rows)", "def gen(rows):\n    return map(str, rows)"),
    ("gen(rows)", "def inner():\n    yield 1\ndef gen(rows):\n    if rows: return inner()\n    else: return inner()"),
    ("g(rows)", "def gen(rows):\n    yield 1\ng = gen"),
    ("Maker().gen()", "class Maker:\n    def gen(self):\n        yield 1"),
    ("Maker.gen()", "class Maker:\n    @staticmethod\n    def gen():\n        yield 1"),
]
# How the expression gets to the text: statements before it, and what the text then names.
BINDINGS = [
    ("", "{value}"),
    ("held = {value}", "held"),
    ("held = ({value})", "held"),
    ("held = (  # why\n    {value})", "held"),
    ("held\t=\\\n  {value}", "held"),
    ("held: object = {value}", "held"),
    ("held = other = {value}", "held"),
    ("held, other = {value}, 1", "held"),
    ("pass\nheld, other = {value}, {value}", "held"),
    ("held = (  # not (this\n    # nor [that for\n    {value})", "held"),
    ("held = rows  # list(\nheld = {value}", "held"),
    ("held = {value} if rows else {value}", "held"),
    ("[other, held] = 1, ({value})", "held"),
    ("(held := {value})", "held"),
    ("other = 1; held = {value}", "held"),
    ("if rows: held = {value}\nelse: held = {value}", "held"),
    ("try:\n    held = {value}\nfinally:\n    pass", "held"),
    ("\uff48eld = {value}", "held"),
    ("first = {value}\nheld = first", "held"),
    ("held = {value}; list = sorted", "held"),
]
# A statement that says something with `{text}` in it, and what has to come before.
TEXTS = [
    ("raise ValueError(f'no {{{text}}}')", ""),
    ("raise ValueError(f'no {{{text}!r:>{{9}}}} {{{text}=}}')", ""),
    ("raise ValueError(f'no {{ {{1: {text}}} }}')", ""),
    ('raise ValueError(f"""no\n{{{text}}}""")', ""),
    ("raise ValueError('(', rf'\\d{{{text}}}')", ""),
    ("raise ValueError({text})", ""),
    ("raise ValueError('no', {text})", ""),
    ("raise ValueError([1, {text}])", ""),
    ("raise ValueError(None or {text})", ""),
    ("raise ValueError('no %s' % ({text},))", ""),
    ("raise ValueError('no ' + str({text}))", ""),
    ("raise ValueError('no ' + repr({text}).strip())", ""),
    ("raise ValueError('no ' + {text})", ""),
    ("raise ValueError('no {{}}'.format({text}))", ""),
    ("raise ValueError('no {{a}}'.format(1,  # all\n  a={text}\n))", ""),
    ("raise ValueError('no %s' %  # in\n  {text})", ""),
    ("raise ValueError(  # list(\n  {text})", ""),
    ('raise ValueError(f"""no\n# {{{text}}}""")', ""),
    ("raise ValueError (rows and {text})", ""),
    ("raise OwnError({text})", "class OwnError(ValueError):\n    pass"),
    ("raise ValueError(', '.join(str({text})))", ""),
    ("raise ValueError(', '.join(f'{{{text}}}' for _ in rows))", ""),
    ("raise ValueError(textwrap.dedent(f'{{{text}}}'))", "import textwrap"),
    ("raise ValueError(s({text}))", "s = str"),
    ("raise ValueError(s({text}))", "from builtins import str as s"),
    ("raise ValueError(any({text}))", "any = str"),
    ("raise ValueError(any({text}))", "n, any = 1, repr"),
    ("raise ValueError(max({text}))", "max: object = repr"),
    ("raise ValueError(max({text}))", "(max := repr)"),
    ("raise ValueError(sum({text}))", "from builtins import repr as sum"),
    ("raise ValueError(list({text}))", "list = str"),
    ("raise ValueError from TypeError({text})", ""),
    ("raise ValueError({text}) from None", ""),
    ("raise ValueError(f'{{{text}}}').with_traceback(None)", ""),
    ("raise \\\n ValueError({text})", ""),
    ("raise(ValueError({text}))", ""),
    ("raise (  # why\n ValueError)(f'{{{text}}}')", ""),
    ("raise ValueError if rows else TypeError({text})", ""),
    ("raise Custom(f'{{{text}}}')", "from elsewhere import Custom"),
    ("raise errors.Custom(f'{{{text}}}')", "import errors"),
    ("raise Own({text})", "class Own(ValueError):\n    pass"),
    ("error = ValueError({text})\nraise error", ""),
    ("error = errors.Custom('no %s' % ({text},))\nraise error", "import errors"),
    ("error = make(f'{{{text}}}')\nraise error", "from errors import make"),
    ("show(lambda: ValueError({text}))", ""),
    ("message = f'{{{text}}}'\nraise ValueError(message)", ""),
    ("message = 'no '\nmessage += f'{{{text}}}'\nraise ValueError(message)", ""),
    ("message = (\n  'no '\n  f'{{{text}}}'\n)\nraise ValueError(message)", ""),
    ("message = 'a' if rows else f'{{{text}}}'\nraise ValueError(message)", ""),
    ("message = str({text})\nmore = message + '.'\nraise ValueError('no ' + more)", ""),
    ("assert rows, {text}", ""),
    ("assert rows, f'{{{text}}}'", ""),
    ("assert (rows\n), (\n'no %s' % ({text},))", ""),
    ("log.info('no %s', {text})", "import logging\nlog = logging.getLogger()"),
    ("logging.log(10, f'{{{text}}}')", "import logging"),
    ("note('no %s', {text})", "from logging import info as note\nfrom logging import info"),
    ("info('no %s', {text})", "from logging import info"),
    ("self.logger.exception('%s', {text})", ""),
    ("warnings.warn(f'{{{text}}}')", "import warnings"),
    ("warn(f'{{{text}}}')", "from warnings import warn"),
    ("pytest.fail(f'{{{text}}}')", "import pytest"),
    ("self.fail(f'{{{text}}}')", ""),
    ("self.assertTrue(rows, f'{{{text}}}')", ""),
    ("self.assertEqual(rows, 1, msg='no %s' % ({text},))", ""),
    ("sys.exit(f'{{{text}}}')", "import sys"),
    ("error.add_note(f'{{{text}}}')", ""),
    ("class Local(ValueError):\n    def __init__(self):\n        super().__init__(f'{{{text}}}')", ""),
    ("class Local(ValueError):\n    def __init__(self):\n        ValueError.__init__(self, f'{{{text}}}')", ""),
    ("class Local:\n    def __str__(self):\n        return f'{{{text}}}'", ""),
    ("class Local:\n    def __repr__(self): return 'a' + str({text})", ""),
    ("for _ in {text}: pass\nraise ValueError(list({text}))", ""),
    ("if any({text}):\n    raise ValueError(', '.join({text}))", ""),
    ("next({text})\nraise ValueError(f'{{[a for a in {text}]}}')", ""),
    ("if 1 in {text}: raise ValueError(f'{{[*{text}]}}')", ""),
    ("for _ in {text}: pass\nmessage = f'{{sorted({text})}}'\nraise ValueError(message)", ""),
]
# How the statements that say something are embedded.
PLACES = [
    "{code}",
    "if rows:\n    {code}",
    "while rows:\n\t{code}",
    "with rows:\n    if rows:\n        pass\n    else:\n        {code}",
    "try:\n    pass\nexcept OSError:\n    {code}",
    "match rows:\n    case 1:\n        {code}",
    "'''raise (a'''; \"it's\"; # it's [\n{code}",
    "x = {{1: '}}'}}  # ( \" '\n{code}",
    "# (all in list(\n{code}",
    "'#'; x = 'list('\n{code}",
]
ONE_LINE_PLACES = [
    "if rows: {code}",
    "pass; {code}",
    "if rows: pass\nelse: {code}",
    "if rows: pass\nelif 1: {code}",
    "try: {code}\nfinally: pass",
    "try: pass\nexcept OSError: {code}",
    "for _ in rows: {code}",
    "with rows: {code}; pass",
    "match rows:\n    case 1: {code}",
]


def indented(code: str, by: str) -> str:
    return code.replace("\n", f"\n{by}")


def mutant(choose: random.Random) -> str:
    """A piece of a module whose text shows something lazy, or would if some name meant something else."""
    value, before_value = choose.choice(VALUES)
    binding, name = choose.choice(BINDINGS)
    text, before_text = choose.choice(TEXTS)
    said = text.format(text=name.format(value=value))
    one_line = "\n" not in said and choose.random() < 0.4
    place = choose.choice(ONE_LINE_PLACES if one_line else PLACES)
    by = place.rpartition("\n")[2].partition("{")[0]
    body = place.format(code=indented(said, by if not by.strip() else ""))
    body = f"{binding.format(value=value)}\n{body}" if binding else body
    if choose.random() < 0.7:
        head = choose.choice(["def act(self, rows, error):", "async def act(self, rows, error):"])
        body = f"{head}\n    {indented(body, '    ')}"
    before = [part for part in (before_value, before_text) if part]
    choose.shuffle(before)
    return "\n".join([*before, body]) + "\n"


def attribute_mutant(choose: random.Random) -> str:
    """As `mutant`, where an attribute holds it."""
    value, before_value = choose.choice(VALUES)
    text, before_text = choose.choice([each for each in TEXTS if not each[0].startswith("class")])
    store = choose.choice(["self.held = {value}", "self.held: object = ({value})", "self.held = other = {value}"])
    said = text.format(text="self.held")
    methods = [
        f"    def __init__(self, rows):\n        {indented(store.format(value=value), '        ')}",
        f"    def act(self, rows, error):\n        {indented(said, '        ')}",
    ]
    choose.shuffle(methods)
    return "\n".join([before_value, before_text, "class Holder:", *methods]) + "\n"


def encoded(code: str, choose: random.Random) -> bytes:
    """The code with one of the line ends, byte order marks and encodings that Python reads."""
    end = choose.choice(["\n", "\n", "\n", "\r\n", "\r"])
    code = code.replace("\n", end)
    match choose.randrange(12):
        case 0:
            return b"\xef\xbb\xbf" + code.encode()
        case 1:
            return f"# coding: utf-7{end}".encode() + code.encode("utf-7")
        case 2 if code.isascii():
            return f"#!python{end}# vim: set fileencoding=latin-1 :{end}é = 1{end}{code}".encode("latin-1")
        case 3:
            return f"# -*- coding: utf-8 -*-{end}{code}".encode()
    return code.encode()


def finds(rules: list[Rule], source: Source) -> Iterator[Rule]:
    """The rules that find something in a parsed file."""
    for rule in rules:
        nodes = (node for kind in rule.nodes for node in source.scopes.nodes.get(kind, ()))
        if any(next(rule.check(node, source), None) is not None for node in nodes):
            yield rule


def parsed(data: bytes) -> Source | None:
    try:
        return Source(data)
    except (SourceError, RecursionError):
        return None


@dataclass
class Tally:
    """How many files were parsed, and in how many something was found."""

    parsed: int = 0
    found: int = 0

    def check(self, data: bytes, rules: list[Rule]) -> None:
        source = parsed(data)
        if source is not None:
            self.parsed += 1
            for rule in finds(rules, source):
                self.found += 1
                assert may_find(rule, data), (rule.code, data.decode(source.encoding))


CAUSE_SPELLINGS = [
    "raise (ValueError)(x for x in rows)",
    "raise (  # why\nValueError\n)(x for x in rows)",
    "assert rows, (str)(x for x in rows)",
    "raise ValueError((repr)(map(str, rows)))",
    "raise ValueError from None",
    "raise ValueError() from\tNone",
    "raise ValueError() from \\\n None",
    "raise ValueError() from (None)",
    "raise ValueError() from (  # from what?\n ( None ) )",
    "raise ValueError from(None); pass",
    "error.__suppress_context__ = True; raise error",
    "error.__cause__ = (\n None)\nraise error",
    "error.__\uff43ause__ = None; raise error",
    "setattr(error, '__ca' 'use__', None)\nraise error",
    "setattr(error, '\\x5f_cause__', None)\nraise error",
    "raise Failed(1, suppress_context=True)",
    "raise ValueError",
    "raise ValueError('no')",
    "raise(ValueError)",
    "raise \\\n ValueError",
]
CAUSE_PLACES = [
    "try:\n    pass\nexcept OSError as error:\n    {code}",
    "try: pass\nexcept OSError as error:\n\t{code}",
    "try:\n    pass\nexcept (  # a\n OSError) as error:\n    if rows:\n        pass\n    '\"'\n    {code}",
    "for x in rows:\n    try:\n        pass\n    except OSError as error:\n        x = '''\nexcept'''\n        {code}",
    "try:\n    pass\nexcept OSError as error:\n    x = (1,\n2)\n    {code}",
]


def cause_mutant(choose: random.Random) -> str:
    """A piece of a module with a handler that loses what it caught."""
    place = choose.choice(CAUSE_PLACES)
    by = place.rpartition("\n")[2].partition("{")[0]
    return place.format(code=indented(choose.choice(CAUSE_SPELLINGS), by)) + "\n"


KINDS: list[tuple[Make, list[Rule]]] = [(mutant, LAZY), (attribute_mutant, LAZY), (cause_mutant, CAUSES)]


def written_into(host: str, code: str, choose: random.Random) -> str:
    """A file's text with `code` before one of its outermost statements."""
    lines = host.split("\n")
    starts = [number for number, line in enumerate(lines) if line.startswith(("def ", "class ", "import "))]
    at = choose.choice(starts) if starts else 0
    return "\n".join([*lines[:at], code, *lines[at:]])


@pytest.mark.parametrize(("make", "rules"), KINDS)
def test_no_spelling_gets_through(make: Make, rules: list[Rule]) -> None:
    choose = random.Random(20)
    tally = Tally()
    for _ in range(1200):
        tally.check(encoded(make(choose), choose), rules)
    assert tally.parsed > 800
    assert tally.found > 400


@pytest.mark.parametrize(("make", "rules"), KINDS)
def test_no_spelling_gets_through_among_other_code(make: Make, rules: list[Rule]) -> None:
    choose = random.Random(21)
    hosts = [path.read_text() for path in sorted((ROOT / "src" / "keepcause" / "runtime").glob("*.py"))]
    hosts = [host for host in hosts if len(host) < 9000]
    tally = Tally()
    for _ in range(40):
        tally.check(encoded(written_into(choose.choice(hosts), make(choose), choose), choose), rules)
    assert tally.found > 15


def test_the_fixtures_get_through() -> None:
    tally = Tally()
    for path in sorted((ROOT / "tests" / "fixtures").glob("KC*/*.py")):
        tally.check(path.read_bytes(), [*LAZY, *CAUSES, RULES["KC202"]])
    assert tally.found > 20


# What stands where, as no list above puts it together.
SPELLINGS = [
    "raise (ValueError)(x for x in rows)",
    "raise (  # why\nValueError\n)(x for x in rows)",
    "assert rows, (str)(x for x in rows)",
    "raise ValueError((repr)(map(str, rows)))",
    "raise ValueError(  # why\n(x for x in rows))",
    "held = (  # why\n(x for x in rows))\nraise ValueError(held)",
    "def gen():\n    return(x for x in rows)\nraise ValueError(gen())",
    "def gen():\n    held = map(str, rows)\n    return held\nraise ValueError(gen())",
    "def gen():\n    return iter(rows) if rows else(x for x in rows)\nraise ValueError(f'{gen()}')",
    "def gen():\n    yield 1\ndef more():\n    return gen()\nraise ValueError(more())",
    "raise ValueError(rows or(x for x in rows))",
    "raise ValueError(rows and\t(x for x in rows))",
    "raise ValueError(1or(x for x in rows))",
    "raise ValueError(1jor(x for x in rows))",
    "raise ValueError(0 if 1else(x for x in rows))",
    "raise ValueError(1for x in rows)",
    "raise ValueError(1jfor x in rows)",
    "raise ValueError('?'for x in rows)",
    "raise ValueError([1, 2]for x in rows)",
    "raise ValueError(x for(x)in rows)",
    "raise ValueError(x for [x]in rows)",
    "raise ValueError(x for x, in rows)",
    "raise ValueError(x for x\\\nin rows)",
    "raise ValueError(x for x# in, (\n in rows)",
    "raise ValueError(x\ffor\fx\fin rows)",
    "raise ValueError(lambda a, b=1: a for x in rows)",
    "raise ValueError(lambda a, b={1: 2}: a for x in rows)",
    "raise ValueError(lambda_ for lambda_ in rows)",
    "raise ValueError(flambda for flambda in rows)",
    "raise ValueError\\\n(x for x in rows)",
    "class \u00c9Error(ValueError): pass\nraise \u00c9Error(x for x in rows)",
    "held = map(str, rows)\nnext(held)\nmax = list\nraise ValueError(f'{max(held)}')",
    "held = map(str, rows)\nnext(held)\nraise ValueError(f'{set(held)}')",
    "held = map(str, rows)\nnext(held)\nraise ValueError(', '.join(map(str, held)))",
    "held = map(str, rows)\ntext = f'{held}'\nraise ValueError(text.strip())",
    "held = map(str, rows)\ns = str\nraise ValueError(s(f'{held}'))",
    "from textwrap import dedent as d\nheld = map(str, rows)\nraise ValueError(d(f'{held}'))",
    "held = map(str, rows)\nerror = make(a=f'{held}')\nraise error",
    "held = map(str, rows)\nraise ValueError(f'{1:{held}}')",
    "raise ValueError([1, 2 if rows else map(str, rows)])",
    "class A:\n    held = map(str, rows)\n    def act(self): raise ValueError(self.held)",
    "class A:\n    def __str__(self):\n        text = f'{map(str, self.rows)}'\n        return text",
    "import itertools\nraise ValueError(itertools\\\n.chain(rows))",
    "import itertools\nraise ValueError(\n    itertools  # what\n    .chain(rows)\n)",
    "import itertools\nraise ValueError((itertools).chain(rows))",
    "class A:\n    def gen(self): yield 1\n    def act(self): raise ValueError(\n        self\n        .gen())",
    'text = """\n# """; raise ValueError(map(str, rows))',
    "text = '''\n#'''; raise ValueError(x for x in rows)",
    "text = 'so\\\n# '; raise ValueError(map(str, rows))",
    f"raise ValueError({' ' * 300}map(str, rows))",
    "def gen():\n    for row in rows:\n# def old():\n        yield row\nraise ValueError(gen())",
    "def gen():\n    def inner(): pass\n# class Old\n    yield 1\nraise ValueError(gen())",
    "def gen():\n    def inner(): pass\n    got = (\nyield 1)\nraise ValueError(gen())",
    "def gen():\n    text = '''\ndef inner():\n'''\n    yield 1\nraise ValueError(gen())",
    "def gen():\n    'so\\\ndef'\n    yield 1\nraise ValueError(gen())",
    "def gen():\n    def inner():\n        pass\n    for row in rows:\n        yield row\nraise ValueError(gen())",
    "def gen():\n    def inner():\n        pass\n    if rows:\n        got = yield\nraise ValueError(gen())",
    "def gen():\n    def inner():\n        pass\n    got = \\\n            (yield 1)\nraise ValueError(gen())",
    "def gen():\n    def inner():\n        pass\n    got = [\n            (yield 1)]\nraise ValueError(gen())",
    "def gen():\n\tdef inner():\n\t\tpass\n\tfor row in rows:\n\t\tyield row\nraise ValueError(gen())",
    "def gen():\n  def inner():\n    pass\n  if 1:\n    return iter(rows)\n  return iter(())\nraise ValueError(gen())",
    "def gen():\n    return \\\n        map(str, rows)\nraise ValueError(gen())",
    "def gen():\n    return map(str, rows)\ntext = 'return'\nraise ValueError(f'{text}{gen()}')",
    "def gen():\n    yield rows if rows else rows\nraise ValueError(gen())",
    "def gen():\n    yield not rows and rows\nraise ValueError(gen())",
    "def gen():\n    yield 1if rows else 2\nraise ValueError(gen())",
    "def gen():\n    text = '''\ndef f():\n'''\n    more = \"'''\"\n    yield text, more\nraise ValueError(gen())",
    "def gen():\n    text = '''\ndef f():\n    pass\n'''\n    # with '''\n    yield text\nraise ValueError(gen())",
    "def gen():\n    text = '''\nclass A:\n'''\n    no = \"'''\"\n    return map(no, text)\nraise ValueError(gen())",
    "keep = rows \\\n    @rows\ndef gen():\n    yield 1\nraise ValueError(gen())",
    "static = staticmethod\nclass A:\n    @static\n    def gen(): yield 1\nraise ValueError(A.gen())",
    "import functools\nclass A:\n    @functools.cache\n    def __repr__(self):\n        return map(str, self.y) + '.'",
    "raise ValueError('{b}'.format(1 if rows else\n    rows, b=map(str, rows)))",
    "raise ValueError('{b}'.format(lambda:\n    rows, b = map(str, rows)))",
    "raise ValueError('x',  # what it may return\n    map(str, rows))",
    "async def gen():\n    def inner():\n        pass\n    yield 1\nraise ValueError(gen())",
    "def gen():\n    yield  rows\t; keep = rows\nraise ValueError(gen())",
    "class A(ValueError): pass\nraise A(f'{map(str, rows)}')",
    *(["class A[T](ValueError): pass\nraise A(f'{map(str, rows)}')"] if sys.version_info >= (3, 12) else []),
]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("code", SPELLINGS)
def test_no_odd_spelling_gets_through(code: str, end: str) -> None:
    tally = Tally()
    tally.check(f"rows = [1]\n{code}\n".replace("\n", end).encode(), LAZY)
    assert tally.found


@pytest.mark.parametrize(
    "code",
    [
        "raise ValueError(', '.join(str(row) for row in rows))",
        "held = map(str, rows)\nnames = pick(held)\nraise ValueError(f'{names}')",
        "held = (  # (for all in)\n    lambda row, other=1: row,\n    '(?:for) in',\n)\nraise ValueError(f'{held}')",
        "def names():\n    yield 1\ndef more():\n    return keep(names())\nraise ValueError(f'{more()}')",
        "raise ValueError(f'{\", \".join(map(str, rows))} {sum(row for row in rows)} {list(zip(rows, rows))}')",
        "def names():\n    yield 1\nraise ValueError(f'{sorted(names())}')",
        "rows = [x for x in map(str, rows)]\nraise ValueError(rows)",
        "for row in (x for x in rows): raise ValueError(f'{row}')",
        "raise ValueError('(x for x in rows)')  # {(x for x in rows)}",
        "def load(rows):\n    def names():\n        yield 1\n    return list(names())\nraise ValueError(f'{load(1)}')",
        "def names():\n  '''May\n  yield good results.'''\nraise ValueError(f'{names()}')",
        "class A: pass\nheld = map(str, rows)\nA(next(held))",
        "def names():\n    return map(str, rows)\nfor row in names():\n    raise ValueError(row)",
        "layers = nn.Sequential(*(make(row) for row in rows)); raise ValueError('no')",
    ],
)
def test_what_shows_nothing_lazy_is_not_parsed(code: str) -> None:
    assert not may_show_lazy(given(code))


@pytest.mark.parametrize(
    "code",
    [
        "from pkg.names import names\nraise ValueError(f'{names()}')",
        "from .names import (\n  one, names as n)\nfound = n()\nraise ValueError(f'{found}')",
        "import pkg.names\nraise ValueError(f'{pkg.names.names()}')",
        "from pkg import other as module\nshown = module . names()\nraise ValueError(f'{shown}')",
        "from pkg.names import *\nraise ValueError(f'{names()}')",
        "from pkg import *\nraise ValueError(f'{module.names()}')",
        "import pkg.names\nraise ValueError(\n  pkg\n  .names\n  .names())",
        "from pkg.names import one, \\\n  names as n\nraise ValueError(f'{n()}')",
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_generators_of_other_modules_count_where_they_are_known(code: str, end: str) -> None:
    code = code.replace("\n", end)
    assert not may_show_lazy(given(code))
    assert not may_show_lazy(given(code, "unheard_of"))
    assert may_show_lazy(given(code, "names"))


def test_generators() -> None:
    found = generators(b"def a():\n  def b():\n    yield 1\n  def c(): pass\nclass D:\n  def e(self): yield 1\n")
    assert found is not None
    assert {"b", "e"} <= found
    assert found.isdisjoint({"c", "D"})
    assert generators(b"def a(): pass") == frozenset()
    assert generators(b"class A:\n  def __init__(self):\n    yield\n") == frozenset()


@pytest.mark.parametrize(
    "code",
    ["x = 'a", "x = (1", "x = 1)", 'x = f"{y["a"]}"', "x = f'{'", "x = " + "(" * 40 + ")" * 40],
)
def test_lines_that_only_a_parser_can_tell_apart(code: str) -> None:
    with pytest.raises(ValueError, match="only a parser"):
        LogicalLines(code.encode())
    assert may_show_lazy(given(f"y = map(str, rows)\n{code}"))


def test_identifiers_are_read_as_python_compares_them() -> None:
    assert normalized("\uff4dap = '\uff4dap…' # …".encode()) == "map = '\uff4dap…' # …".encode()
    assert normalized(b"# coding: latin-1\n") is None
    assert normalized(b"\xff") is None
    assert normalized(b"x = '\xd7 \x90'") is None


@pytest.mark.parametrize(
    ("codes", "line"),
    [
        ({"KC101", "KC109"}, "raise ValueError from \\u004eone"),
        ({"KC102"}, "error.__\\u0063ause__ = None; raise error"),
        ({"KC103"}, "\\u0072aise ValueError"),
        ({"KC201"}, "raise ValueError(f'{m\\u0061p(str, error.args)}')"),
    ],
)
def test_other_encodings_are_read_whole(codes: set[str], line: str) -> None:
    code = f"# coding: raw_unicode_escape\ntry:\n    pass\nexcept OSError as error:\n    {line}\n".encode()
    found = {rule.code for rule in finds([*LAZY, *CAUSES], Source(code))}
    assert codes <= found
    assert all(may_find(RULES[code_found], code) for code_found in found)


def main(seconds: float, folders: list[str]) -> None:
    """Write faults into the files below `folders` until the time is up."""
    choose = random.Random(int(seconds))
    hosts = [path for folder in folders for path in Path(folder).rglob("*.py") if path.stat().st_size < 30_000]
    tally = Tally()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        source = parsed(choose.choice(hosts).read_bytes())
        if source is not None:
            make, rules = choose.choice(KINDS)
            host = source.text.replace("\r\n", "\n").replace("\r", "\n")
            tally.check(encoded(written_into(host, make(choose), choose), choose), rules)
    print(f"{tally.parsed} files parsed, {tally.found} findings, none turned down")


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])
