"""Files in which a rule about handlers or exception classes finds something are parsed, however it is written."""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING

import pytest
from screened import may_find

from keepcause.config.layers import Layers
from keepcause.lint.checked import FileReport
from keepcause.lint.rule import Rule, all_rules
from keepcause.lint.source import Source, SourceError
from keepcause.run import Run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RULES = {rule.code: rule for rule in all_rules()}

TRIES = ["try:\n    act()", "try: act()", "try:\n    '''a\nexcept b'''\n    act()", "try:\n    act(1,\n2)"]
HEADS = [
    "except Exception:",
    "except:",
    "except BaseException as error:",
    "except(Exception) as error :",
    "except (KeyError, # not: this\n Exception,\n) as error:",
    "except \\\n  Exception:",
    "except\\\n:",
    "except* Exception as error:",
    "except\tException\tas\terror\t:",
    "except builtins.Exception:",
    "except (act[1:2], Exception):",
    "except (act['#'], Exception):",
    "except (other := OSError, Exception) as error:",
    "except \uff25xception:",
    "except Exception:  # raise nothing, return 1",
]
PREFIXES = [
    "",
    'act(""" "\ntext\n"""); ',
    "act('''\ntext\n'''); ",
    "act(1,\n2); ",
    'act("except"); ',
    "act(')',\n'('); ",
    "act = \\\n1; ",
]
"""What comes before the last statement in the handler: strings and brackets whose lines are indented less."""
RAISES = [
    "raise Failed()",
    "raise Failed",
    "raise(Failed())",
    "raise \\\n Failed()",
    "raise (  # why\nFailed())",
    "raise Failed(error).with_traceback(None)",
    "raise errors.Failed('from None')",
    "raise Failed if act else Other",
    "raise \uff26ailed",
    "if act: raise Failed()",
    "for x in act:\n    if x:\n        raise Failed()",
    "try: raise Failed()\nfinally: act()",
    "raise",
    "raise error",
    "raise Failed() from error",
    "raise StopIteration",
    "raise SystemExit",
]
ENDS = [
    "pass",
    "...",
    "return",
    "return None",
    "raise SystemExit(3)",
    "raise SystemExit",
    "raise Leave",
    "raise SystemExit if act else SystemError",
    "sys.exit(3)",
    "sys . exit (3)",
    "sys.exit(3)\n'really'",
    "leave(3)",
    "os._exit(3)",
    "quit()",
    "log.error('no', exc_info=True)",
    "print('no', error)",
    "if act: pass",
    "return 1",
    "return 1\n'one'",
    "raise",
    "sent.put(error)",
    "text = traceback.format_exc()",
]
ENDS_ELSEWHERE = (
    "from sys import exit as leave\nimport sys, os, traceback, builtins\nLeave = SystemExit\n",
    "import sys, os, traceback, builtins\nleave, Leave = sys.exit, SystemExit\n",
    "import sys, os, traceback, builtins\nfrom builtins import SystemExit as Leave, exit as leave\n",
)
PLACES = [
    "def run(act):\n    {code}",
    "def run(act):\n\t{code}",
    "def run(act):\n        if act:\n            {code}\n        else:\n            pass",
    "def run(act):\n    with act:\n        {code}\n    # that is all",
    "class Worker:\n    def run(self, act):\n        '''Doc.'''\n        {code}\n\n    def stop(self): pass",
    "class Worker:\n    async def run(self, act):\n        if act:\n            {code}\n    name = 1",
    "def outer():\n    x = '''\n  def no():\n'''\n    def run(act):\n        {code}\n    return run",
    "def run(act):\n    try:\n        {code}\n    except OSError:\n        raise\n    finally:\n        pass",
    "def run(act):\n    act = (1,\n2)\n    {code}\n    '''text'''",
    "def run(act):\n    {code}\n    act()",
    "def run(act):\n    for x in act:\n        {code}",
    "\\\ndef run(act):\n    {code}",
    "    \\\n\ndef run(act):\n    if act:\n        pass\n    \\\n\n    {code}",
    "def run(act):\n    match act:\n        case 1:\n            {code}",
    "def run(\n    act,\n):\n    {code}",
]
CLASSES = [
    "class E(Generic[T[0], {1: 2}[1]],\n Exception):\n    def __init__(self, a, b): super().__init__(a)",
    "class Failed(Exception):\n    def __init__(self, a, b):\n        super().__init__(a)",
    "class Failed ( # a: b\n  Exception ) :\n\n\tdef __init__ ( self, a, b ) : super().__init__(a)",
    "class Failed(Generic[T], ValueError):\n    x = '''\nclass'''\n    def __init__(self, *, a):\n        pass",
    "class Failed(ValueError):\n    def \\\n     __init__(self, *, a): pass",
    "class Failed(ValueError):\n    def __new__(cls, *, a): return super().__new__(cls, a)",
    "class Failed(ValueError):\n    def __post_init__(self):\n        self.lock = threading.Lock()",
    "@dataclass\nclass Failed(Exception):\n    a: int = field(kw_only=True)",
    "@dc(frozen=True)\n# a comment\nclass Failed(Exception):\n    a: int",
    "@dataclasses.dataclass(\nfrozen=True\n)\nclass Failed(Exception): a: int",
    "class Base:\n    def __init__(self, *, a): pass\nclass Failed(Base, Exception):\n    pass",
    "class Base(Exception):\n    def __init__(self, *, a): pass\nOther = Base\nclass Failed(Other):\n    pass",
    "class Base(Exception): pass\none, Other = 1, Base\nclass Failed(Other):\n    def __init__(self, *, a): pass",
    "class Failed(queue.Empty):\n    def __init__(self, *, a): pass",
    "class Failed(G[int], Exception):\n    def __init__(self, *, a): pass",
    "class Base(Exception): pass\nclass Failed((Other := Base)):\n    def __init__(self, *, a): pass",
    "def make():\n    class Failed(Exception): pass\n    return Failed",
    "def make():\n    if 1:\n        class Failed(\nException\n): pass\n    return Failed",
    "class Outer:\n    class Failed(Exception):\n        def __init__(self, *, a): pass",
    "class \uff26ailed(\uff25xception):\n    def __init__(self, *, a): pass",
    "class Failed(Exception):\n    if 1: pass\n    def __init__(self, *, a): pass",
    "class Base(Exception):\n    def __init__(self): pass\nclass Failed(Base):\n    def __init__(self, *, a): pass",
    "class Failed(OSError):\n    def __init__(self, a): super().__init__(a, 1)",
    "class Failed(Exception):\n    def __init__(self, a): pass\nFailed(a=1)",
]
CLASSES_ELSEWHERE = (
    "import threading, queue, dataclasses\nfrom dataclasses import dataclass, dataclass as dc, field\n"
    "from typing import Generic, TypeVar, Generic as G\nT = TypeVar('T')\n"
)
STRIPS = [
    "setattr(error, '__cause__\\\n', None)",
    "error.__cause__ = None",
    "error.__suppress_context__ = True",
    "(error.__cause__) = None",
    "error.__cause__ \\\n = None",
    "error.__cause__ = error.other = None",
    "error.other = error . __suppress_context__ = True",
    "error.__\uff43ause__ = None",
    "setattr(error, '__cause__', None)",
    "setattr(error, r'''__suppress_context__''', True)",
    "setattr(error, 'x' '__cause__', None)",
]


def finds(rule: Rule, source: Source) -> bool:
    nodes = (node for kind in rule.nodes for node in source.scopes.nodes.get(kind, ()))
    return any(next(rule.check(node, source), None) is not None for node in nodes)


def variants(code: str) -> Iterator[bytes]:
    """The code with every line end, byte order mark and coding that Python reads, and without its last line end."""
    for end in ("\n", "\r\n", "\r"):
        yield code.replace("\n", end).encode()
    yield code.rstrip("\n").encode()
    yield b"\xef\xbb\xbf" + code.encode()
    yield f"# coding: utf-8\n{code}".encode()
    yield b"# coding: utf-7\n" + code.encode("utf-7")
    yield f"\f\n{code}\n\f\n".encode()
    yield code.replace("\n    ", "\n\f    ").encode()
    if code.isascii():
        yield f"# coding: latin-1\né = 1\n{code}".encode("latin-1")


def written(place: str, code: str) -> str:
    by = place.partition("{code}")[0].rpartition("\n")[2]
    return place.replace("{code}", code.replace("\n", f"\n{by}" if not by.strip() else "\n")) + "\n"


def check(code: str, rules: list[Rule]) -> int:
    """How often a rule finds something in a variant of the code that Python reads; no such file may be turned down."""
    found = 0
    for data in variants(code):
        try:
            source = Source(data)
        except SourceError:
            continue
        for rule in rules:
            if finds(rule, source):
                found += 1
                assert may_find(rule, data), (rule.code, data.decode(source.encoding))
    return found


def handlers(ends: list[str]) -> Iterator[str]:
    """Tries whose handlers end in one of the ways, in random spellings."""
    choose = random.Random(5)
    for head, end, place in itertools.product(HEADS, ends, PLACES):
        prefix = choose.choice(PREFIXES)
        joined = f" {prefix}{end}" if "\n" not in prefix + end and choose.random() < 0.3 else f"\n    {prefix}{end}"
        body = joined.replace("\n", "\n    ").replace("\n        ", "\n    ", 1) if "'''" not in prefix else joined
        yield written(place, f"{choose.choice(TRIES)}\n{head}{body}")


def sampled(codes: Iterator[str], share: float) -> Iterator[str]:
    choose = random.Random(6)
    return (code for code in codes if choose.random() < share)


def test_no_unchained_raise_is_turned_down() -> None:
    found = [check(code, [RULES["KC103"]]) for code in sampled(handlers(RAISES), 0.15)]
    assert sum(found) > 500


@pytest.mark.parametrize("between", ["", "\\\n", "        \\\n", "\n", "# a comment\n", "\\\n\n"])
def test_a_handler_goes_on_behind_what_only_looks_like_its_end(between: str) -> None:
    head = "def run(act):\n    try:\n        act()\n    except Exception:\n        act()\n"
    assert check(f"{head}{between}        raise Failed()\n", [RULES["KC103"]]) > 5
    assert check(f"import sys\n{head}{between}        sys.exit(1)\n", [RULES["KC104"]]) > 5


@pytest.mark.parametrize("elsewhere", ENDS_ELSEWHERE)
def test_no_silent_exit_is_turned_down(elsewhere: str) -> None:
    found = [check(elsewhere + code, [RULES["KC104"]]) for code in sampled(handlers(ENDS), 0.08)]
    assert sum(found) > 300


@pytest.mark.parametrize("code", CLASSES)
def test_no_class_that_pickle_loses_is_turned_down(code: str) -> None:
    rules = [RULES["KC301"], RULES["KC309"]]
    alone = check(f"{CLASSES_ELSEWHERE}{code}\n", rules)
    assert alone > 5
    check(written(f"{CLASSES_ELSEWHERE}if 1:\n    {{code}}", code), rules)  # most of them are no Python there


@pytest.mark.parametrize("code", STRIPS)
def test_no_stripped_exception_is_turned_down(code: str) -> None:
    found = check(
        f"def run():\n    try:\n        act()\n    except OSError as error:\n        {code}\n        raise\n",
        [RULES["KC102"]],
    )
    assert found > 5 or "'x'" in code


@pytest.mark.parametrize(
    "code",
    [
        "class E(Exception):\n    def __init__(self, a):\n        self.__suppress_context__ = a\nraise E(a=True)\n",
        "raise errors.Failed(suppress_context = True)\n",
        "class Failed(Exception):\n    __cause__ = None\n",
    ],
)
def test_no_class_that_strips_itself_is_turned_down(code: str) -> None:
    assert check(code, [RULES["KC102"]]) > 5


@pytest.mark.parametrize(
    "code", ["raise RuntimeError('no')", "raise (Exception)('no')", "raise\\\n builtins . RuntimeError('no')"]
)
def test_no_error_without_rank_is_turned_down(code: str) -> None:
    assert check(f"import builtins\ndef run(rank):\n    {code}\n", [RULES["KC401"]]) > 5


def test_an_attribute_counts_where_its_name_is_spelled_out() -> None:
    text = "try: act()\nexcept OSError as error:\n    setattr(error, {name}, None)\n    raise\n"
    assert finds(RULES["KC102"], Source(text.format(name="'__cause__'").encode()))
    assert not finds(RULES["KC102"], Source(text.format(name="'__ca' 'use__'").encode()))
    assert not finds(RULES["KC102"], Source(text.format(name="'\\x5f_cause__'").encode()))


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("KC101", "try:\n    a()\nexcept ValueError as e:\n    b(e)\nraise X() from None"),
        ("KC102", "def f(e): return e.__cause__ == None or getattr(e, '__context__', None)"),
        ("KC103", "raise X()"),
        ("KC103", "try:\n    a()\nexcept ValueError:\n    raise\nraise X()"),
        ("KC103", "try:\n    a()\nexcept ValueError as e:\n    log()\n    raise e\nelse:\n    raise X()"),
        ("KC103", "try:\n    a()\nexcept ValueError as e:\n    raise X(\n        'no'\n    ) from e"),
        ("KC103", "try:\n    a()\nexcept ValueError as e:\n    def f(): raise X()\n    raise SystemExit(1)"),
        ("KC103", "exceptions = [\n    ValueError,\n]"),
        ("KC104", "# except for this, Exception\ndef f(): pass"),
        ("KC104", "try:\n    a()\nexcept Exception:\n    pass"),
        ("KC104", "def f():\n    try:\n        a()\n    except Exception:\n        raise X()"),
        (
            "KC104",
            "def f():\n    try:\n        a()\n    except Exception as e:\n        b()\n        raise e  # no exit",
        ),
        ("KC104", "def f():\n    try:\n        a()\n    except Exception:\n        pass\n    return b"),
        (
            "KC104",
            "def f():\n    for b in c:\n        try:\n            a()\n        except Exception:\n            pass",
        ),
        ("KC104", "def f():\n    try:\n        a()\n    except Exception as e:\n        results.put(e)"),
        ("KC104", "def f():\n    try:\n        a.close()\n    except Exception:\n        pass"),
        ("KC301", "class E(Exception): pass\nclass A:\n    def __init__(self): pass"),
        ("KC301", "class E(mod.Error):\n    def __init__(self, a, b): pass"),
        ("KC301", "class Errors:\n    def __init__(self, a, b): raise Exception"),
        ("KC301", "class A:\n    class E(ValueError):\n        code = 1\n    def __init__(self): pass"),
        ("KC401", "class A(Exception): pass\nraise ValueError(Exception)".replace("ValueError(", "ValueError or (")),
    ],
)
def test_other_files_are_not_parsed(code: str, text: str) -> None:
    assert not may_find(RULES[code], f"{text}\n".encode())


@pytest.mark.parametrize(
    "text",
    [
        "class A(B,\n" * 25_000,
        "class E(Exception):\n    def __init__(self, a, b): ...\n" + "x + " * 50_000 + "(\n",
        "try: f()\nexcept E: raise X from None\n" + "wait_for_" * 100_000,
    ],
    ids=["headers without an end", "a line that ends in a bracket", "a word of waiting"],
)
def test_a_look_at_bytes_ends_soon(tmp_path: Path, text: str) -> None:
    """Each took minutes, where what stands behind was read again from every place; a file is given one."""
    path = tmp_path / "long.py"
    path.write_text(text)
    report = Run(Layers({"select": ("ALL",), "single-file": True}, isolated=True)).check(path)
    assert isinstance(report, FileReport) or not report.passing
