"""Each kind of edit, on every shape of statement that Python allows."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from keepcause.lint.finding import EditKind

if TYPE_CHECKING:
    from collections.abc import Callable

BIND, SET, DROP, RERAISE = EditKind.BIND_CAUGHT, EditKind.SET_CAUSE, EditKind.DROP_CAUSE, EditKind.RERAISE
CALL, DISPLAY, FIELD = EditKind.LIST_CALL, EditKind.LIST_DISPLAY, EditKind.LIST_FIELD
since_312 = pytest.mark.skipif(sys.version_info < (3, 12), reason="this form came with Python 3.12")
since_314 = pytest.mark.skipif(sys.version_info < (3, 14), reason="this form came with Python 3.14")


def handled(statement: str, header: str = "except X as e") -> str:
    return f"try:\n    f()\n{header}:\n    {statement}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("raise Y from None", "raise Y from e"),
        ("raise Y", "raise Y from e"),
        ("raise(Y)", "raise(Y) from e"),
        ("raise Y  # why", "raise Y from e  # why"),
        ("raise Y from (None)", "raise Y from (e)"),
        ("raise Y from(None)", "raise Y from(e)"),
        ("raise (Y)from((None))", "raise (Y)from((e))"),
        ("raise\tY\tfrom\tNone\t# why", "raise\tY\tfrom\te\t# why"),
        ("raise\fY from\fNone", "raise\fY from\fe"),
        ("raise Y \\\n  from \\\n None", "raise Y \\\n  from \\\n e"),
        ("raise Y from (  # why\n None  # how\n)", "raise Y from (  # why\n e  # how\n)"),
        (
            "raise Y(  # why\n  'a' # None\n  'from None',\n) from None",
            "raise Y(  # why\n  'a' # None\n  'from None',\n) from e",
        ),
        ("a; raise Y from None;  # why", "a; raise Y from e;  # why"),
        ("if a: raise Y from None", "if a: raise Y from e"),
        ("if a: b; raise Y", "if a: b; raise Y from e"),
        ("raise Y(f'{None}', None) from None", "raise Y(f'{None}', None) from e"),
        ("raise Y(u'é', r'\\d', b'x') from None", "raise Y(u'é', r'\\d', b'x') from e"),
        ("raise (await y) from None", "raise (await y) from e"),
        ("raise (yield) from None", "raise (yield) from e"),
        ("raise Y(lambda: None) from None", "raise Y(lambda: None) from e"),
        ("raise Y('''a\n  b''') from None", "raise Y('''a\n  b''') from e"),
        pytest.param("raise Y(f'{d['a']}') from None", "raise Y(f'{d['a']}') from e", marks=since_312),
        pytest.param("raise Y(f'{x  # why\n}') from None", "raise Y(f'{x  # why\n}') from e", marks=since_312),
        pytest.param("raise Y(t'{x}') from None", "raise Y(t'{x}') from e", marks=since_314),
    ],
)
def test_set_cause(edited: Callable[..., str], before: str, after: str) -> None:
    assert edited(handled(before), (SET, 0, "e")) == handled(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("except X", "except X as e"),
        ("except(X)", "except(X) as e"),
        ("except (A, B)", "except (A, B) as e"),
        ("except", "except BaseException as e"),
        ("except  ", "except BaseException as e  "),
        ("except X ", "except X as e "),
        ("except X\\\n ", "except X as e\\\n "),
        ("except \\\n X", "except \\\n X as e"),
        ("except\tX", "except\tX as e"),
        ("except (  # a: b\n  A,\n  B,  # c:\n)", "except (  # a: b\n  A,\n  B,  # c:\n) as e"),
        ("except* X", "except* X as e"),
        ("except*(A, B)", "except*(A, B) as e"),
        ("except *X", "except *X as e"),
        ("except d[a:b]", "except d[a:b] as e"),
        ("except (lambda: X)()", "except (lambda: X)() as e"),
        ("except lambda: X", "except lambda: X as e"),
        ("except (y := X)", "except (y := X) as e"),
        ("except X if a else Y", "except X if a else Y as e"),
        pytest.param("except A, B", "except (A, B) as e", marks=since_314),
    ],
)
def test_bind_caught(edited: Callable[..., str], before: str, after: str) -> None:
    for tail in (":\n    raise Y from None\n", ":  # why: so\n\n  # how\n  raise Y from None\n", ": raise Y from None"):
        code = f"try:\n    f()\n{before}{tail}"
        expected = f"try:\n    f()\n{after}{tail}".replace("from None", "from e")
        assert edited(code, (BIND, 0, "e"), (SET, 0, "e")) == expected


def test_bind_caught_touches_no_body(edited: Callable[..., str]) -> None:
    body = "\n    @deco\n    def g(): pass ;\n    x = [1,2 ,]\n    class A : x=1\n"
    code = f"try:\n    f()\nexcept X :{body}else:\n    pass\n"
    assert edited(code, (BIND, 0, "e")) == code.replace("except X :", "except X as e :")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("raise Y from None", "raise Y"),
        ("raise (Y)from None  # why", "raise (Y)  # why"),
        ("raise Y \\\n from None", "raise Y"),
        ("raise Y(\n) from (None); a", "raise Y(\n); a"),
    ],
)
def test_drop_cause(edited: Callable[..., str], before: str, after: str) -> None:
    assert edited(handled(before), (DROP, 0)) == handled(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("raise e from None", "raise"),
        ("raise(e)from None", "raise"),
        ("raise \\\n e from None  # why", "raise  # why"),
        ("if a: raise e from None; b", "if a: raise; b"),
    ],
)
def test_reraise(edited: Callable[..., str], before: str, after: str) -> None:
    assert edited(handled(before), (RERAISE, 0)) == handled(after)


@pytest.mark.parametrize(
    ("before", "target", "after"),
    [
        ("raise Y(x)", "x", "raise Y(list(x))"),
        ("raise Y(x, x)", "x", "raise Y(list(x), x)"),
        ("raise Y((x))", "x", "raise Y(list(x))"),
        ("raise Y((  # why\n  x  # how\n))", "x", "raise Y(list(  # why\n  x  # how\n))"),
        ("raise Y(str(a for a in b))", "(a for a in b)", "raise Y(str(list(a for a in b)))"),
        ("raise Y(str((a for a in b)))", "(a for a in b)", "raise Y(str(list(a for a in b)))"),
        ("raise Y(str(((a for a in b))))", "(a for a in b)", "raise Y(str((list(a for a in b))))"),
        ("raise Y((a for a in b), 1)", "(a for a in b)", "raise Y(list(a for a in b), 1)"),
        ("raise Y(k=(a for a in b))", "(a for a in b)", "raise Y(k=list(a for a in b))"),
        ("raise Y(str(a async for a in b))", "(a async for a in b)", "raise Y(str(list(a async for a in b)))"),
        ("raise Y('%s' % x)", "x", "raise Y('%s' % list(x))"),
        ("raise Y('%s' % (x,))", "x", "raise Y('%s' % (list(x),))"),
        ("raise Y(*x)", "x", "raise Y(*list(x))"),
        ("raise Y(a if(x)else b)", "x", "raise Y(a if(list(x))else b)"),
        ("raise Y(map(f, x))", "map(f, x)", "raise Y(list(map(f, x)))"),
        ("raise Y(map(f, x))", "x", "raise Y(map(f, list(x)))"),
        ("raise Y(d.keys() or e)", "d.keys() or e", "raise Y(list(d.keys() or e))"),
        ("raise Y((await x))", "await x", "raise Y(list(await x))"),
        ("raise Y(f'{f(x)}')", "x", "raise Y(f'{f(list(x))}')"),
        ("raise Y('é', x)", "x", "raise Y('é', list(x))"),
        ("return log(x)", "x", "return log(list(x))"),
        ("m = x", "x", "m = list(x)"),
        ("m = yield x", "x", "m = yield list(x)"),
        ("assert a, x", "x", "assert a, list(x)"),
        ("m: T = x; raise Y", "x", "m: T = list(x); raise Y"),
        pytest.param("raise Y(f'{f(x, d['a'])}')", "x", "raise Y(f'{f(list(x), d['a'])}')", marks=since_312),
    ],
)
def test_list_call(edited: Callable[..., str], before: str, target: str, after: str) -> None:
    assert edited(handled(before), (CALL, target)) == handled(after)


@pytest.mark.parametrize(
    ("before", "target", "after"),
    [
        ("raise Y(x)", "x", "raise Y([*x])"),
        ("raise Y((x))", "x", "raise Y([*(x)])"),
        ("raise Y(a or b)", "a or b", "raise Y([*(a or b)])"),
        ("raise Y(a if b else c)", "a if b else c", "raise Y([*(a if b else c)])"),
        ("raise Y(str(a for a in b))", "(a for a in b)", "raise Y(str([a for a in b]))"),
        ("raise Y(str((  # why\n a for a in b)))", "(a for a in b)", "raise Y(str([  # why\n a for a in b]))"),
        ("raise Y(str(a async for a in b))", "(a async for a in b)", "raise Y(str([a async for a in b]))"),
        ("raise Y(str(await a for a in b))", "(await a for a in b)", "raise Y(str([await a for a in b]))"),
    ],
)
def test_list_display(edited: Callable[..., str], before: str, target: str, after: str) -> None:
    assert edited(handled(before), (DISPLAY, target)) == handled(after)


@pytest.mark.parametrize(
    ("before", "target", "after"),
    [
        ("f'{x}'", "x", "f'{list(x)}'"),
        ("f'{x!r}'", "x", "f'{list(x)!r}'"),
        ("f'{x!s:>{w}}'", "x", "f'{list(x)!s:>{w}}'"),
        ("f'{a:>{x}}'", "x", "f'{a:>{list(x)}}'"),
        ("f'{ x }'", "x", "f'{ list(x) }'"),
        ("f'a{x=}b'", "x", "f'ax={list(x)!r}b'"),
        ("f'{ x = }'", "x", "f' x = {list(x)!r}'"),
        ("f'{x=!s:>9}'", "x", "f'x={list(x)!s:>9}'"),
        ("f'{x=:>9}'", "x", "f'x={list(x):>9}'"),
        ("f'{x=} {x=}'", "x", "f'x={list(x)!r} {x=}'"),
        ("rf'\\d{x=}'", "x", "rf'\\dx={list(x)!r}'"),
        ('f"""{x[{1: 2}[1]]=}"""', "x[{1: 2}[1]]", 'f"""x[{{1: 2}}[1]]={list(x[{1: 2}[1]])!r}"""'),
        ("f\"{x['a']=}\"", "x['a']", "f\"x['a']={list(x['a'])!r}\""),
        ("f'''{\n x\n =}'''", "x", "f'''\n x\n ={list(x)!r}'''"),
        ("f'{(a for a in b)}'", "(a for a in b)", "f'{list(a for a in b)}'"),
        ("f'{ (a for a in b) !r}'", "(a for a in b)", "f'{ list(a for a in b) !r}'"),
        ("f'{map(str, x)}' 'b'", "map(str, x)", "f'{list(map(str, x))}' 'b'"),
        ("'a' f'{x}' f'{x}'", "x", "'a' f'{list(x)}' f'{x}'"),
        ("f'{f\"{x}\"}'", "x", "f'{f\"{list(x)}\"}'"),
        pytest.param("f'{x['a']=}'", "x['a']", "f'x[\\'a\\']={list(x['a'])!r}'", marks=since_312),
        pytest.param("f'{f'{f'{x}'}'}'", "x", "f'{f'{f'{list(x)}'}'}'", marks=since_312),
        pytest.param("f'{x['\\n']=}'", "x['\\n']", "f'x[\\'\\n\\']={list(x['\\n'])!r}'", marks=since_312),
    ],
)
def test_list_field(edited: Callable[..., str], before: str, target: str, after: str) -> None:
    assert edited(handled(f"raise Y({before})"), (FIELD, target)) == handled(f"raise Y({after})")


@pytest.mark.parametrize(
    ("before", "target", "after"),
    [
        ("f'{x}'", "x", "f'{[*x]}'"),
        ("f'{x=}'", "x", "f'x={[*x]!r}'"),
        ("f'{(a for a in b)}'", "(a for a in b)", "f'{[a for a in b]}'"),
    ],
)
def test_list_field_where_list_is_another_name(
    edited: Callable[..., str], before: str, target: str, after: str
) -> None:
    assert edited(handled(f"raise Y({before})"), (FIELD, target, "display")) == handled(f"raise Y({after})")


@pytest.mark.parametrize(
    ("kind", "before", "target", "after"),
    [
        (EditKind.LIST_ASYNC, "raise Y(x)", "x", "raise Y([item async for item in x])"),
        (EditKind.LIST_KEYS, "raise Y(d.keys( ))", "d.keys()", "raise Y(list(d))"),
        (EditKind.LIST_KEYS, "raise Y('%s' % a[0].keys())", "a[0].keys()", "raise Y('%s' % list(a[0]))"),
        (EditKind.JOIN, "raise Y('a' + x)", "x", "raise Y('a' + \", \".join(map(str, x)))"),
        (EditKind.JOIN, "raise Y('a' + (x))", "x", "raise Y('a' + \", \".join(map(str, (x))))"),
        (EditKind.JOIN, "raise Y(f'{x}')", "x", "raise Y(f'{\", \".join(map(str, x))}')"),
        (EditKind.JOIN, 'raise Y(f"{x}")', "x", "raise Y(f\"{', '.join(map(str, x))}\")"),
        (EditKind.JOIN, 'raise Y(f"""{x}""")', "x", 'raise Y(f"""{", ".join(map(str, x))}""")'),
        (EditKind.DROP_CALL, "raise Y(', '.join(str(x)))", "str(x)", "raise Y(', '.join(x))"),
        (EditKind.DROP_CALL, "raise Y(j(str(a for a in b)))", "str((a for a in b))", "raise Y(j(a for a in b))"),
        (
            EditKind.DROP_CALL,
            "raise Y(j(str(a for a in b), 1))",
            "str((a for a in b))",
            "raise Y(j((a for a in b), 1))",
        ),
        (EditKind.DROP_CALL, "raise Y(a if(str(x))else b)", "str(x)", "raise Y(a if(x)else b)"),
    ],
)
def test_other_ways(edited: Callable[..., str], kind: EditKind, before: str, target: str, after: str) -> None:
    assert edited(handled(before), (kind, target)) == handled(after)


def test_no_string_is_put_where_both_quotes_are_taken(refused: Callable[..., str]) -> None:
    assert refused(handled("raise Y(f\"{f'{x}'}\")"), (EditKind.JOIN, "x")) == "LibCST can't make the change"


@since_312
def test_a_string_may_stand_in_quotes_like_its_own_where_others_do(edited: Callable[..., str]) -> None:
    code = handled('raise Y(f"{a["b"]}{x}")')
    assert edited(code, (EditKind.JOIN, "x")) == handled('raise Y(f"{a["b"]}{", ".join(map(str, x))}")')


@pytest.mark.parametrize(
    ("how", "before", "target", "after"),
    [
        ("async", "f'{x!s}'", "x", "f'{[item async for item in x]!s}'"),
        ("keys", "f'{d.keys()=}'", "d.keys()", "f'd.keys()={list(d)!r}'"),
    ],
)
def test_other_ways_in_a_field(edited: Callable[..., str], how: str, before: str, target: str, after: str) -> None:
    assert edited(handled(f"raise Y({before})"), (FIELD, target, how)) == handled(f"raise Y({after})")


def test_edits_of_one_statement_and_its_handler(edited: Callable[..., str]) -> None:
    code = handled("raise Y(f'{x=}', map(f, (x)), str(a for a in b)) from None", "except X")
    asks = [(BIND, 0, "e"), (SET, 0, "e"), (FIELD, "x"), (CALL, "map(f, x)"), (DISPLAY, "(a for a in b)")]
    expected = handled("raise Y(f'x={list(x)!r}', list(map(f, (x))), str([a for a in b])) from e", "except X as e")
    assert edited(code, *asks) == expected
    assert edited(code, *reversed(asks), asks[0]) == expected


def test_an_edit_inside_another(edited: Callable[..., str]) -> None:
    code = handled("raise Y(map(f, (x)))")
    assert edited(code, (CALL, "map(f, x)"), (CALL, "x")) == handled("raise Y(list(map(f, list(x))))")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_stay(edited: Callable[..., str], end: str) -> None:
    code = handled("raise Y(\n  '''a\n''',\n  x,\n) from None", "except (  # why\n  X\n)").replace("\n", end)
    expected = code.replace("None", "e").replace(")" + ":", ") as e:").replace("x,", "list(x),")
    assert edited(code, (BIND, 0, "e"), (SET, 0, "e"), (CALL, "x")) == expected


def test_mixed_line_ends_stay(edited: Callable[..., str]) -> None:
    code = "\f\rtry: f()\r\nexcept X:\r\traise Y(\r\n x,\r  y\n  ) from \\\r\n None\r"
    expected = "\f\rtry: f()\r\nexcept X as e:\r\traise Y(\r\n x,\r  list(y)\n  ) from \\\r\n e\r"
    assert edited(code, (BIND, 0, "e"), (SET, 0, "e"), (CALL, "y")) == expected


def test_mixed_line_ends_that_would_be_lost(refused: Callable[..., str]) -> None:
    assert "lines end" in refused(handled("raise Y(\r\n) \\\n from None"), (DROP, 0))


@pytest.mark.parametrize(
    ("statement", "ask", "reason"),
    [
        ("raise Y from z", (SET, 0, "e"), "another cause"),
        ("raise", (SET, 0, "e"), "not a raise of an exception"),
        ("raise e", (SET, 0, "e"), "its own cause"),
        ("raise Y", (DROP, 0), "no `from None`"),
        ("raise Y() from None", (RERAISE, 0), "not a raise of a name"),
        ("raise z from None", (RERAISE, 0), "not of e"),
        ("raise Y from (  # why\n None)", (DROP, 0), "comment would be lost"),
        ("raise (  # why\n e) from None", (RERAISE, 0), "comment would be lost"),
        ("raise Y(*x)", (CALL, "*x"), "not a value"),
        ("x = y", (CALL, "x"), "not a value"),
        ("with x: pass", (CALL, "x"), "not a simple"),
        ("raise Y from None", (SET, 0, "z"), "binds e, not z"),
        ("raise Y from None", (BIND, 0, "z"), "already binds e"),
        ("def g(): raise Y from None", (SET, 0, "e"), "in no handler"),
        ("lambda: (yield x)", (CALL, "(yield x)"), "can't make"),
        ("raise Y(d.keys(1))", (EditKind.LIST_KEYS, "d.keys(1)"), "not a call that the fix fits"),
        ("raise Y(str(x, y))", (EditKind.DROP_CALL, "str(x, y)"), "not a call that the fix fits"),
        ("raise Y(str(  # why\n x))", (EditKind.DROP_CALL, "str(x)"), "comment would be lost"),
        pytest.param("raise Y(f'{x\n=}')", (FIELD, "x"), "can't make", marks=since_312),
    ],
)
def test_refusals(
    refused: Callable[..., str], statement: str, ask: tuple[EditKind, int | str, str], reason: str
) -> None:
    assert reason in refused(handled(statement), ask)


def test_no_bare_raise_in_except_star(refused: Callable[..., str]) -> None:
    assert "except*" in refused(handled("raise e from None", "except* X as e"), (RERAISE, 0))


def test_cause_of_an_outer_handler(refused: Callable[..., str]) -> None:
    inner = "try: g()\n    except Z as z:\n        raise Y from None"
    assert "binds z, not e" in refused(handled(inner), (SET, 0, "e"))


@pytest.mark.parametrize("part", ["x", "a", "b"])
def test_nested_too_deeply(refused: Callable[..., str], part: str) -> None:
    assert "nested too deeply" in refused(handled(f"raise Y({'+'.join([part] * 900)}) from None"), (SET, 0, "e"))
