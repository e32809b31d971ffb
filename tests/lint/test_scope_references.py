"""What an expression stands for, by one module's own names."""

from __future__ import annotations

import ast

import pytest

from keepcause.lint.source import Source


def references(text: str) -> tuple[str, ...]:
    """What the argument of the call of `ask` in `text` stands for."""
    source = Source(text.encode())
    (call,) = (
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ask"
    )
    return source.scopes.references(call.args[0])


CASES = {
    "an import": ("import a.b\nask(a.b.f)", ["a.b.f"]),
    "an import with another name": ("import a.b as c\nask(c.f)", ["a.b.f"]),
    "a name from a module": ("from a import b as c\nask(c.d)", ["a.b.d"]),
    "a relative import": ("from ..a import b\nask(b)", ["..a.b"]),
    "a module beside": ("from . import b\nask(b.f)", [".b.f"]),
    "an import inside a function": ("def f():\n    from a import b\n    ask(b)", ["a.b"]),
    "an import that the function around shadows": ("from a import b\ndef f(b):\n    ask(b)", []),
    "a star import": ("from a import *\nfrom .b import *\nask(f)", ["a.f", ".b.f"]),
    "a builtin": ("ask(map)", ["builtins.map"]),
    "a builtin that is shadowed": ("def map(): ...\nask(map)", [":map"]),
    "an unknown name": ("ask(unknown)", []),
    "a definition": ("class C:\n    def m(self): ...\nask(C.m)", [":C.m"]),
    "a nested function": ("def f():\n    def g(): ...\n    ask(g)", [":f.g"]),
    "a class's names, in its methods": ("class C:\n    def g(self): ...\n    def m(self):\n        ask(g)", []),
    "self": ("class C:\n    def m(self):\n        ask(self.g)", [":C().g"]),
    "cls": ("class C:\n    @classmethod\n    def m(cls):\n        ask(cls.g)", [":C.g"]),
    "a static method has no self": ("class C:\n    @staticmethod\n    def m(self):\n        ask(self.g)", []),
    "super": ("class C(D):\n    def m(self):\n        ask(super().m)", ["super(:C).m"]),
    "super inside": ("class C:\n    def m(self):\n        def n():\n            ask(super().m)", ["super(:C).m"]),
    "a constructed object": ("class C: ...\nx = C()\nask(x.m)", [":C().m"]),
    "what a call returns": ("import a\nask(a.f().g)", ["a.f().g"]),
    "partial": ("import functools as t\nask(t.partial(f, 1))\ndef f(): ...", [":f"]),
    "partial of nothing": ("from functools import partial\nask(partial())", ["functools.partial()"]),
    "a or b": ("import a, b\nask(a.f or b.f)", ["a.f", "b.f"]),
    "a if c else b": ("import a, b\nask(a.f if a else b.f)", ["a.f", "b.f"]),
    "a name set in if and else": ("import a, b\nif a:\n    x = a.f\nelse:\n    x = b.f\nask(x)", ["a.f", "b.f"]),
    "a walrus": ("import a\nask((x := a.f))", ["a.f"]),
    "unpacking, pair by pair": ("import a, b\nx, y = a.f, b.f\nask(y)", ["b.f"]),
    "part of something": ("import a\nx, y = a.f\nask(y)", []),
    "await": ("import a\nasync def f():\n    ask(await a.g())", ["a.g()"]),
    "an annotated parameter": ("from a import C\ndef f(x: C):\n    ask(x.m)", ["a.C().m"]),
    "an optional one": ("import typing as t\nfrom a import C\ndef f(x: t.Optional[C]):\n    ask(x.m)", ["a.C().m"]),
    "a union in quotes": ("import a, b\ndef f(x: 'a.C | b.D | None'):\n    ask(x.m)", ["a.C().m", "b.D().m"]),
    "quotes inside": ("import t\nfrom a import C\ndef f(x: t.Union['C', None]):\n    ask(x.m)", ["a.C().m"]),
    "quotes around no expression": ("from a import C\ndef f(x: 'C ('):\n    ask(x.m)", []),
    "a list of objects": ("from a import C\ndef f(x: list[C]):\n    ask(x.m)", []),
    "a default": ("import a\ndef f(x=a.g):\n    ask(x)", ["a.g"]),
    "a default that is only a value": ("def f(x=3):\n    ask(x)", []),
    "a global": ("import a\nx = a.f\ndef g():\n    global x\n    ask(x)", ["a.f"]),
    "a name that stands for itself": ("x = x\nask(x)", []),
    "a lambda's argument": ("x = 3\nf = lambda x: ask(x)", []),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_references(text: str, expected: list[str]) -> None:
    assert list(references(text)) == expected


def test_a_name_with_very_many_meanings_has_few_references() -> None:
    text = "\n".join(f"import m{n}\nx = m{n}.f if x else m{n}.g" for n in range(40))
    assert len(references(f"{text}\nask(x)")) <= 8
