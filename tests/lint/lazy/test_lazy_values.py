"""Which names hold a lazy iterator where: small programs, each with the lines that print one."""

from __future__ import annotations

import pytest

from keepcause.lint.engine import Settings, lint_single_file
from keepcause.lint.source import Source

SETTINGS = Settings(codes=frozenset({"KC201", "KC202", "KC203", "KC204"}))

PROGRAMS = {
    "a star import may bring its own": """
        from shadow import *
        raise ValueError(f"{map(str, (1, 2))}")
    """,
    "the builtin by import": """
        from builtins import map
        raise ValueError(f"{map(str, (1, 2))}")  # KC201
    """,
    "another name is not looked for": """
        from builtins import map as apply, repr as show
        from itertools import chain as join
        several = zip
        raise ValueError(f"{apply(str, (1, 2))} {join(())} {several(())}", show(map(str, (1, 2))))
    """,
    "a name apart from its parenthesis is not looked for": """
        raise ValueError(f"{map(str, (1, 2))} {filter(None, ())} {zip ((1, 2))}")  # KC201
        (map)(str, ())
        filter  (None, ())
    """,
    "an exception that is not called like one": """
        class Failed(ValueError): pass
        class FailedError(ValueError): pass
        if 1:
            raise Failed(map(str, (1, 2)))
        elif 2:
            raise Failed(f"{map(str, (1, 2))}")  # KC201
        raise FailedError(map(str, (1, 2)))  # KC201
    """,
    "an alias of a module": """
        import itertools as tools
        raise ValueError(f"{tools.chain((1,), (2,))}")  # KC201
    """,
    "module level": """
        left = map(str, (1, 2))
        raise ValueError(f"{left}")  # KC201
    """,
    "deleted": """
        left = map(str, (1, 2))
        del left
        left = 1
        raise ValueError(f"{left}")
    """,
    "class body": """
        left = []
        class Names:
            left = map(str, (1, 2))
            assert not left, f"{left}"  # KC201
            def fail(self):
                raise ValueError(f"{left}")
    """,
    "class attribute": """
        class Names:
            left = map(str, (1, 2))
            def fail(self):
                raise ValueError(f"{self.left}")  # KC201
    """,
    "a field's default": """
        class Names(Model):
            left: object = map(str, (1, 2))
            def fail(self):
                raise ValueError(f"{self.left}")
    """,
    "global": """
        left = 0
        def load():
            global left
            left = map(str, (1, 2))
            raise ValueError(f"{left}")
    """,
    "nonlocal, lazy throughout": """
        def outer():
            left = map(str, (1, 2))
            def load():
                nonlocal left
                left = zip((1, 2))
                raise ValueError(f"{left}")  # KC201
            return load
    """,
    "while": """
        def run(steps):
            left = None
            while steps:
                if left is not None:
                    raise ValueError(f"{left}")
                left = map(str, (1, 2))
    """,
    "while True": """
        def run(steps):
            left = None
            while True:
                left = map(str, (1, 2))
                if steps():
                    break
            raise ValueError(f"{left}")  # KC201
    """,
    "for and else": """
        def run(steps):
            left = None
            for step in steps:
                if step:
                    left = map(str, (1, 2))
                    break
            else:
                left = zip((1, 2))
            raise ValueError(f"{left}")  # KC201
    """,
    "continue": """
        def run(steps):
            left = None
            for step in steps:
                if step:
                    continue
                left = map(str, (1, 2))
            raise ValueError(f"{left}")
    """,
    "except, all lazy": """
        def run(load):
            try:
                left = map(str, load())
            except OSError:
                left = map(str, (1, 2))
            raise ValueError(f"{left}")  # KC201
    """,
    "except, that leaves": """
        def run(load):
            left = None
            try:
                left = map(str, load())
            except OSError:
                return
            raise ValueError(f"{left}")  # KC201
    """,
    "in a handler": """
        def run(load):
            left = None
            try:
                left = map(str, (1, 2))
                load()
            except OSError:
                raise ValueError(f"{left}")
    """,
    "finally": """
        def run(load):
            left = None
            try:
                left = map(str, load())
            finally:
                assert load, f"{left}"
            raise ValueError(f"{left}")  # KC201
    """,
    "return through finally": """
        def run(load):
            left = None
            try:
                if load():
                    return
                left = map(str, (1, 2))
            finally:
                print(load)
            raise ValueError(f"{left}")  # KC201
    """,
    "with": """
        def run(lock):
            with lock:
                left = map(str, (1, 2))
                raise ValueError(f"{left}")  # KC201
    """,
    "walrus in a comprehension": """
        def run(steps):
            kept = [left := map(str, (1, 2)) for step in steps]
            raise ValueError(f"{left} {kept}")  # KC201
    """,
    "conditional expression": """
        def run(steps):
            left = map(str, (1, 2)) if steps else zip((1, 2))
            other = map(str, (1, 2)) if steps else []
            raise ValueError(f"{left} {len(other)} {other}")  # KC201
    """,
    "an alias": """
        def run(steps):
            left = map(str, (1, 2))
            other = left
            raise ValueError(f"{other}")  # KC201
    """,
    "a starred target is a list": """
        def run(steps):
            first, *left = map(str, (1, 2))
            raise ValueError(f"{left}")
    """,
    "match with a capture": """
        def run(steps):
            left = map(str, (1, 2))
            match steps:
                case [left]:
                    raise ValueError(f"{left}")
                case _:
                    raise ValueError(f"{left}")  # KC201
    """,
    "a parameter's default": """
        def run(left=map(str, (1, 2))):
            raise ValueError(f"{left}")
    """,
    "a generator method, not one of a subclass": """
        class Base:
            def items(self):
                yield 1
            def fail(self):
                raise ValueError(f"{self.items()}")  # KC201
    """,
    "a static method": """
        class Base:
            @staticmethod
            def items():
                yield 1
            @property
            def others(self):
                yield 1
            def fail(self):
                raise ValueError(f"{self.items()}")  # KC201
            def pass_by(self):
                raise ValueError(f"{self.others}")
    """,
    "an asynchronous function gives a coroutine": """
        async def load():
            return map(str, (1, 2))
        raise ValueError(f"{load()}")
    """,
    "a nested function's yield is its own": """
        def load():
            def inner():
                yield 1
            return list(inner())
        raise ValueError(f"{load()}")
    """,
    "a function bound twice": """
        def load():
            yield 1
        load = wrap(load)
        raise ValueError(f"{load()}")
    """,
    "calls that call each other": """
        def one(x):
            return two(x)
        def two(x):
            return one(x)
        raise ValueError(f"{one(1)}")
    """,
    "names bound to each other": """
        def run(one, two):
            while one:
                one = two
                two = one
            raise ValueError(f"{one}")
    """,
    "a text's parts": """
        def run(names):
            parts = "left: "
            parts = parts + "%s" % map(str, (1, 2))  # KC201
            parts = parts.strip()
            raise ValueError(parts)
    """,
    "a text used twice is one finding": """
        def run(logger):
            message = f"{map(str, (1, 2))}"  # KC201
            logger.error(message)
            if logger:
                raise ValueError(message)
            raise TypeError(message)
    """,
    "a cause": """
        raise Unknown("x") from Other(f"{map(str, (1, 2))}")  # KC201
    """,
    "a conditional exception": """
        raise (Unknown(f"{map(str, (1, 2))}") if 1 else ValueError(f"{[]}"))  # KC201
    """,
    "a compound statement's header": """
        def run(check):
            while check(ValueError(f"{map(str, (1, 2))}")):  # KC201
                pass
    """,
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_the_marked_lines_are_found(program: str) -> None:
    expected = [
        (number, line.partition("# ")[2]) for number, line in enumerate(program.split("\n"), start=1) if "# KC" in line
    ]
    source = Source(("if 1:\n" + "\n".join(program.split("\n")[1:])).encode(), "program.py")
    found = sorted({(finding.span.line, finding.code) for finding in lint_single_file(source, SETTINGS)})
    assert found == expected


def test_a_finding_in_a_header_covers_the_header_alone() -> None:
    source = Source(b"def run(check):\n    while check(ValueError(f'{map(str, ())}')):\n        pass\n", "program.py")
    [finding] = lint_single_file(source, SETTINGS)
    assert finding.statement.line == finding.statement.end_line == 2
    assert finding.no_fix == "it stands in the header of a compound statement"


def test_a_finding_in_a_default_covers_the_header_alone() -> None:
    source = Source(b"def run(error=ValueError(f'{map(str, ())}')):\n    pass\n", "program.py")
    [finding] = lint_single_file(source, SETTINGS)
    assert finding.statement.line == finding.statement.end_line == 1


def test_a_test_keeps_its_text() -> None:
    source = Source(b"assert x, f'{map(str, ())}'\n", "tests/test_names.py")
    [finding] = lint_single_file(source, SETTINGS)
    assert finding.fix is None
    assert finding.no_fix == "a test may mean what it says"


def test_a_long_chain_is_read() -> None:
    chain = " + ".join(["'x'"] * 400 + ["str(map(str, ()))"])
    source = Source(f"raise ValueError({chain})\n".encode(), "program.py")
    assert [finding.code for finding in lint_single_file(source, SETTINGS)] == ["KC201"]


def test_the_reason_is_the_same_each_time() -> None:
    code = (
        b"NAMES = ['a']\n"
        b"def go(names):\n"
        b"    names = sorted(names)\n"
        b"    left = map(str, names)\n"
        b"    if any(left):\n"
        b"        raise ValueError(f'{left}')\n"
        b"    names = list(map(str, NAMES))\n"
        b"    raise ValueError(f'{left}')\n"
    )
    kept = [Source(code) for _ in range(30)]  # so that the nodes of each lie elsewhere
    titles = {finding.fix.title for each in kept for finding in lint_single_file(each, SETTINGS) if finding.fix}
    assert titles == {"List it where it is bound, line 4 (unsafe: line 7 binds anew what it reads)"}
