"""Whatever the source, a repair never crashes, never breaks a file and never changes anything else."""

from __future__ import annotations

import ast
import os
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keepcause.codemod.apply import repair
from keepcause.lint.finding import Safety
from keepcause.lint.source import NEWLINE, Source, SourceError, parse

if TYPE_CHECKING:
    from collections.abc import Callable

    from keepcause.lint.finding import Finding

    Lint = Callable[[bytes], list[Finding]]

ONCE = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
GAPS = st.sampled_from([" ", " ", " ", "  ", "\t", "\f ", " \\\n ", "\\\n\t"])
TAILS = st.sampled_from(["", "", "", " ;", "  # from None", " ; x", "\t# except X: lazy", " "])
HEADERS = [
    "except",
    "except X",
    "except(X)",
    "except (X, Y)",
    "except X as e",
    "except d[1:2] as exc",
    "except X\\\n as e",
]
RAISED = [
    *("Error", "Error()", "(Error)", "e", "exc", "error", "Error(lazy)", "Error(\n lazy_one, # lazy\n\tlazy_two)"),
    *(
        "Error(str(lazy))",
        "Error(f'{e} None')",
        "Error(f'{lazy}')",
        "Error('''\n  raise X from None\n''')",
        "Error((lazy))",
    ),
    *("Error(a if(lazy)else b)", "e.with_traceback(None)", "errors[0]", "Error(lambda: lazy)", "Error(await lazy)"),
    *("Error(\n)", "(\n Error # lazy\n)", "make()", "Error(yes=lazy,)", "Error(*lazy, **{'lazy': lazy})"),
]
CAUSES = ["None", "None", "(None)", "( # None\n None)", "e", "", "((None))"]


@st.composite
def raises(draw: st.DrawFn) -> str:
    cause = draw(st.sampled_from(CAUSES))
    start = f"raise{draw(GAPS)}{draw(st.sampled_from(RAISED))}"
    return f"{start}{draw(GAPS)}from{draw(GAPS)}{cause}" if cause else start


@st.composite
def blocks(draw: st.DrawFn, depth: int = 0) -> list[str]:
    """The lines of a block, to be indented; later lines of a statement stay as they are."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 2))):
        form = draw(st.sampled_from(["raise", "raise", "try", "try", "if", "def", "other"] if depth < 3 else ["raise"]))
        if form == "raise":
            lines.append(draw(raises()) + draw(TAILS))
        elif form == "try":
            lines += ["try:", *_indented(draw(blocks(depth + 1))), *draw(handlers(depth))]
        elif form == "if":
            lines.append(f"if e: {draw(raises())}{draw(TAILS)}")
        elif form == "def":
            lines += ["", "async def f(e):", *_indented(draw(blocks(depth + 1)))]
        else:
            lines.append(
                draw(st.sampled_from(["e = X()", "for e in lazy: pass", "global e", "# raise X from None", "x"]))
            )
    return [*lines, "pass"]


@st.composite
def handlers(draw: st.DrawFn, depth: int) -> list[str]:
    headers = draw(st.lists(st.sampled_from(HEADERS[1:]), max_size=2))
    star = draw(st.booleans()) and bool(headers)
    headers = [header.replace("except", "except*", 1) for header in headers] if star else headers
    headers += [] if star else draw(st.lists(st.just("except"), min_size=not headers, max_size=1))
    lines: list[str] = []
    for header in headers:
        colon = draw(st.sampled_from([":", " :", ":  # why: lazy"]))
        lines += [header + colon, *_indented(draw(blocks(depth + 1)))]
    if draw(st.booleans()):
        lines += ["finally:", *_indented(draw(blocks(depth + 1)))]
    return lines


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


@st.composite
def files(draw: st.DrawFn) -> bytes:
    text = "\n".join(draw(blocks())) + draw(st.sampled_from(["", "\n", "\n\f\n# é"]))
    ends = draw(st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=1, max_size=3))
    parts = text.split("\n")
    text = "".join(part + ends[number % len(ends)] for number, part in enumerate(parts[:-1])) + parts[-1]
    cookie, encoding = draw(st.sampled_from([("", "utf-8"), ("", "utf-8-sig"), ("# coding: latin-1\n", "latin-1")]))
    return (cookie + text).encode(encoding)


LIBRARY = sorted(
    path
    for path in Path(os.__file__).parent.glob("*.py")
    if path.stat().st_size < 12_000 and b" from None" in path.read_bytes()
)
PIECES = st.sampled_from(
    [
        b"",
        b"\r",
        b"\n",
        b"\\\n",
        b"\f",
        b" from None",
        b"lazy",
        b"raise X(lazy) from None\n",
        b"except:",
        b"(",
        b'"""',
        b"\xff",
        b"#",
    ]
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    data = draw(st.sampled_from(LIBRARY)).read_bytes()
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(data)))
        data = data[:start] + draw(PIECES) + data[start + draw(st.integers(0, 3)) :]
    return data


@ONCE
@given(data=files())
def test_made_up_files(lint: Lint, data: bytes) -> None:
    judge(lint, data)


@ONCE
@given(data=mutated())
def test_mutated_files_of_the_standard_library(lint: Lint, data: bytes) -> None:
    judge(lint, data)


@ONCE
@given(data=st.binary(max_size=200) | st.text(max_size=100).map(str.encode))
def test_noise(lint: Lint, data: bytes) -> None:
    judge(lint, data)


def judge(lint: Lint, data: bytes) -> None:
    """Repair `data`, and hold the result against it without any help of the codemod's own checks."""
    try:
        source = Source(data)
    except SourceError:
        return
    result = repair(source, lint(data), allowed=frozenset(Safety), relint=lint)
    assert result.failed == ()
    assert result.applied or result.data == data
    repaired = Source(result.data)
    assert ast.dump(undone(source)) == ast.dump(undone(repaired))
    assert comments(source) == comments(repaired)
    again = repair(repaired, lint(result.data), allowed=frozenset(Safety), relint=lint)
    assert (again.data, again.applied) == (result.data, ())


def undone(source: Source) -> ast.Module:
    tree = parse(source.text)
    Undo().visit(tree)
    return tree


class Undo(ast.NodeTransformer):
    """Takes away everything that a repair may add, so that the original and the result become one."""

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.cause, ast.Name | ast.Constant):
            node.cause = None
        if isinstance(node.exc, ast.Name) and node.exc.id in ("e", "exc"):
            node.exc = None
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        self.generic_visit(node)
        node.name = None
        node.type = node.type or ast.Name("BaseException", ast.Load())
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Name(id="list"), args=[ast.Name(id=name)]) if name.startswith("lazy"):
                return node.args[0]
        return node


def comments(source: Source) -> list[str]:
    """The file's comments; none where `tokenize`, unlike the parser, does not take the file."""
    lines = iter([*(line + "\n" for line in NEWLINE.split(source.text)), ""])
    try:
        tokens = list(tokenize.generate_tokens(lambda: next(lines)))
    except (tokenize.TokenError, IndentationError):
        return []
    return [token.string for token in tokens if token.type == tokenize.COMMENT]
