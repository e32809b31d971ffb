"""Findings of one file, repaired together: which are applied, which stay, and what every other byte is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from keepcause.codemod.apply import Repair, repair
from keepcause.lint.finding import Edit, EditKind, Finding, Fix, Safety, Span
from keepcause.lint.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Lint = Callable[[bytes], list[Finding]]

SAFE = frozenset({Safety.SAFE})
EVERYTHING = frozenset(Safety)
TWO_FAULTS = """\
def start():
    try:
        f()
    except OSError:
        raise StartError(lazy) from None
"""


def run(lint: Lint, data: bytes, allowed: frozenset[Safety] = EVERYTHING) -> Repair:
    return repair(Source(data), lint(data), allowed=allowed, relint=lint)


def test_all_fixes_of_a_statement_in_one_pass(lint: Lint) -> None:
    result = run(lint, TWO_FAULTS.encode())
    assert result.data.decode() == TWO_FAULTS.replace("OSError", "OSError as e").replace(
        "(lazy) from None", "(list(lazy)) from e"
    )
    assert [finding.code for finding in result.applied] == ["KC101", "KC201"]
    assert result.left == result.failed == ()


def test_unsafe_fixes_are_left_unless_allowed(lint: Lint) -> None:
    result = run(lint, TWO_FAULTS.encode(), SAFE)
    assert b"raise StartError(lazy) from e\n" in result.data
    (left,) = result.left
    assert (left.finding.code, left.reason) == ("KC201", "its fix needs --unsafe-fixes")
    assert left.finding in lint(result.data)


def test_a_finding_without_a_fix_keeps_its_reason(lint: Lint) -> None:
    code = b"try:\n    f()\nexcept X as e:\n    raise e.with_traceback(None) from None\n"
    result = run(lint, code)
    assert result.data == code
    assert [left.reason for left in result.left] == ["the raised exception sets its own traceback"]


def test_nested_handlers_and_several_raises(lint: Lint) -> None:
    code = """\
try:
    f()
except (A, B):
    try:
        g()
    except C as c:
        if c: raise X(lazy_one, lazy_two) from None
        raise c from None
    else:
        raise Yield from None
    finally:
        h()
    raise Z(
        "z",  # from None
    ) from None
except:
    raise Wait from None
"""
    expected = """\
try:
    f()
except (A, B) as e:
    try:
        g()
    except C as c:
        if c: raise X(list(lazy_one), list(lazy_two)) from c
        raise
    else:
        raise Yield from e
    finally:
        h()
    raise Z(
        "z",  # from None
    ) from e
except BaseException as e:
    raise Wait from e
"""
    result = run(lint, code.encode())
    assert result.data.decode() == expected
    assert len(result.applied) == 7
    again = run(lint, result.data)
    assert (again.data, again.applied) == (result.data, ())


@pytest.mark.parametrize(
    ("encoding", "cookie", "word"),
    [
        ("utf-8", "", "é€😀"),
        ("utf-8-sig", "", "é€😀"),
        ("latin-1", "# -*- coding: latin-1 -*-", "é"),
        ("shift_jis", "# coding: shift_jis", "表示ソ"),
        ("gb18030", "# vim: set fileencoding=gb18030 :", "汉€"),
        ("cp932", "# coding: cp932", "①"),
        ("iso2022_jp", "# coding: iso2022_jp", "日本"),
        ("utf-7", "# coding: utf-7", "日本+"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_encodings(lint: Lint, encoding: str, cookie: str, word: str, end: str) -> None:
    code = f"{cookie}\n# {word}\n{TWO_FAULTS}    '{word}'; x  # {word}".replace("StartError(", f"StartError('{word}', ")
    expected = code.replace("OSError", "OSError as e").replace("lazy) from None", "list(lazy)) from e")
    result = run(lint, code.replace("\n", end).encode(encoding))
    assert result.data == expected.replace("\n", end).encode(encoding)


def test_bytes_that_have_a_shorter_spelling_stay(lint: Lint) -> None:
    # cp932 has two byte pairs for some characters, and Python writes only one of them.
    twice = b"\xfa\x54"
    assert twice.decode("cp932").encode("cp932") != twice
    code = b"# coding: cp932\nS = '" + twice + b"'\n" + TWO_FAULTS.replace("(lazy", "('W', lazy").encode()
    code = code.replace(b"'W'", b"'" + twice + b"'") + b"# " + twice
    result = run(lint, code)
    expected = code.replace(b"OSError", b"OSError as e").replace(b"lazy) from None", b"list(lazy)) from e")
    assert result.data == expected


def test_trailing_whitespace_tabs_form_feeds_and_no_final_newline(lint: Lint) -> None:
    code = "\f# x \t\n\f\ntry:\n\tf() ;\t\n\nexcept X :   \n\n\t# y\t\n\traise Y (a ,b)  from  None  ;  # z "
    expected = code.replace("X :", "X as e :").replace("None", "e")
    assert run(lint, code.encode()).data.decode() == expected


def finding(edit: Edit, code: str = "KC101") -> Finding:
    return Finding(code, "", edit.statement, edit.statement, fix=Fix(Safety.SAFE, "As the test asks", (edit,)))


def none_left(data: bytes) -> list[Finding]:
    return []


HANDLER = "try:\n    f()\nexcept X:\n    raise Y from None\n"


def test_two_names_for_one_handler(edits: Callable[..., Sequence[Edit]]) -> None:
    source = Source(HANDLER.encode())
    one, two, again = edits(
        source, (EditKind.BIND_CAUGHT, 0, "e"), (EditKind.BIND_CAUGHT, 0, "exc"), (EditKind.BIND_CAUGHT, 0, "e")
    )
    result = repair(source, [finding(one), finding(two), finding(again)], allowed=SAFE, relint=none_left)
    assert result.data.decode() == HANDLER.replace("X:", "X as e:")
    assert result.applied == (finding(one), finding(again))


def test_a_fix_that_contradicts_another_is_left_whole(edits: Callable[..., Sequence[Edit]]) -> None:
    source = Source(HANDLER.encode())
    bind, cause = edits(source, (EditKind.BIND_CAUGHT, 0, "e"), (EditKind.SET_CAUSE, 0, "e"))
    (other,) = edits(source, (EditKind.DROP_CAUSE, 0))
    both = Finding("KC101", "", cause.statement, cause.statement, fix=Fix(Safety.SAFE, "", (bind, cause)))
    seen = [finding(other), both]
    result = repair(source, seen, allowed=SAFE, relint=lambda data: [both] if data != source.data else seen)
    assert result.data.decode() == HANDLER.replace(" from None", "")
    assert result.applied == (finding(other),)


def test_one_bad_fix_does_not_stop_the_others(lint: Lint) -> None:
    def flawed(data: bytes) -> list[Finding]:
        return [
            finding(Edit(EditKind.SET_CAUSE, found.statement, (), "nobody")) if found.span.line == 15 else found
            for found in lint(data)
        ]

    code = TWO_FAULTS.replace("lazy", "") * 5
    result = repair(Source(code.encode()), flawed(code.encode()), allowed=EVERYTHING, relint=flawed)
    lines = code.replace("OSError", "OSError as e").replace("None", "e").splitlines()
    lines[13:15] = code.splitlines()[13:15]
    assert result.data.decode().splitlines() == lines
    assert len(result.applied) == 4
    (failed,) = result.failed
    assert (failed.finding.span.line, failed.reason) == (15, "the raise is in no handler that binds a name")


def test_a_fix_that_does_not_cure_is_taken_back(lint: Lint) -> None:
    found = lint(HANDLER.encode())
    result = repair(Source(HANDLER.encode()), found, allowed=EVERYTHING, relint=lambda data: found)
    assert result.data.decode() == HANDLER
    assert [failed.reason for failed in result.failed] == ["the result still has, or newly has, a KC101 finding"]


def test_a_fix_that_makes_a_new_finding_is_taken_back(lint: Lint) -> None:
    def worse(data: bytes) -> list[Finding]:
        return [Finding("KC999", "", Span(1, 0, 1, 1), Span(1, 0, 1, 1))]

    result = repair(Source(HANDLER.encode()), lint(HANDLER.encode()), allowed=EVERYTHING, relint=worse)
    assert result.data.decode() == HANDLER
    assert [failed.reason for failed in result.failed] == ["the result still has, or newly has, a KC999 finding"]


@pytest.mark.parametrize(
    "edit",
    [
        Edit(EditKind.SET_CAUSE, Span(1, 0, 1, 3), (), "e"),
        Edit(EditKind.LIST_CALL, Span(4, 4, 4, 21), ("exc", "args", 0)),
        Edit(EditKind.LIST_FIELD, Span(4, 4, 4, 21), ("exc",)),
        Edit(EditKind.BIND_CAUGHT, Span(4, 4, 4, 21), (), "e"),
        Edit(EditKind.SET_CAUSE, Span(4, 4, 4, 21), (), "not a name"),
    ],
)
def test_an_edit_that_fits_nowhere_is_left(edit: Edit) -> None:
    source = Source(HANDLER.encode())
    result = repair(source, [finding(edit)], allowed=SAFE, relint=none_left)
    assert result.data == source.data
    assert len(result.left) == 1
