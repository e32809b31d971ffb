"""Where a file's bytes may make something lazy that is not used up at once; imports logical lines and surroundings.

This reads names and the few bytes before them, in any bytes: a comment that reads like code counts as code. It relies
on what `keepcause.lint.lazy.values` and `keepcause.lint.lazy.texts` leave alone: functions that are called by a name
which is not their own, or which stands apart from its parenthesis.
"""

from __future__ import annotations

import functools
import keyword
import re
from typing import TYPE_CHECKING

from keepcause.lint.unparsed.logical import BETWEEN, LETTERS, NEXT_NAME, NO_WORD, STRING, WORD
from keepcause.lint.unparsed.surroundings import (
    BLANK,
    FARTHEST,
    Definitions,
    is_in_comment,
    line_start,
    places,
    told_before,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BUILTINS = ("map", "filter", "zip", "enumerate", "reversed", "iter")
ITERTOOLS = (
    *("accumulate", "batched", "chain", "chain.from_iterable", "combinations", "combinations_with_replacement"),
    *("compress", "cycle", "dropwhile", "filterfalse", "groupby", "islice", "pairwise", "permutations", "product"),
    *("starmap", "takewhile", "zip_longest"),
)  # count and repeat are not here: they print what they hold
OTHERS = ("os.scandir", "os.walk", "os.fwalk", "glob.iglob", "csv.reader", "re.finditer")
_MODULES = {
    **{name.rpartition(".")[2]: "itertools" for name in ITERTOOLS},
    **{name.rpartition(".")[2]: name.partition(".")[0] for name in OTHERS},
}
"""Functions of the standard library -> what has to be in a file that calls them."""
LAZY = frozenset((*BUILTINS, *_MODULES))
LEVELS = ("debug", "info", "warning", "warn", "error", "critical", "exception", "fatal", "log")
LOGS = (*LEVELS, "warn_explicit")
_SHOWING = ("str", "repr", "ascii", "format", "exit", "__init__", *LOGS)
"""What shows a sole argument as it is, beside exceptions."""
EXCEPTIONS = ("Error", "Exception", "Warning", "Exit", "Interrupt", "Iteration", "Group")
"""How exceptions are called that show a sole argument as it is."""
OWN_TEXTS = frozenset(("__str__", "__repr__"))
"""Methods that make an object's text."""
_OWN_TEXTS = frozenset(map(str.encode, OWN_TEXTS))
_GIVING = ("return", "else", "or", "and")
"""The words whose operand may go on as it is."""
_LETTING_ON = frozenset(map(str.encode, (*_SHOWING, *_GIVING)))
_LETTING_ON_ENDS = tuple(map(str.encode, EXCEPTIONS))

_SIGNS = b"=([{,:%+)"
_GOING_ON = tuple(b"%c" % sign for sign in _SIGNS + b".")
"""What may stand before something that goes on as it is."""
_DOTTED = LETTERS + b"."
_NAME = re.compile(rb"%s++" % WORD)
_BLOCKS = b"if|elif|else|for|while|with|def|class|try|except|finally|case|async"
_TO_SEVERAL = re.compile(
    rb"[\r\n](?:[ \t]*(?:%s)%s(?:(?!lambda)[^#\r\n])*:|[^#\r\n]*[\w)\]}\"'](?<!%s))[ \t]*[\r\n]"
    % (_BLOCKS, NO_WORD, b")(?<!".join(map(str.encode, keyword.kwlist)))
    + rb"\s*\w[\w.]*+(?:, ?\w[\w.]*+)++ = \Z"
)
"""An assignment to more than one name, at the beginning of a statement."""
_DEEPEST = 4


def _before_paren(names: Iterable[str], blank: bytes = b"", unless: bytes = b"") -> bytes:
    """Matches behind a parenthesis that follows one of `names`, or words that end so, but not right behind `unless`.

    Each name has three letters or more. Few words pass the look at each of their last three, which comes first.
    """
    by_length: dict[int, list[str]] = {}
    for name in names:
        by_length.setdefault(len(name), []).append(name)
    letters = ("".join(sorted({name[place] for name in names})).encode() for place in (-3, -2, -1))
    last = rb"(?<=[%s][%s][%s]%s\()" % (*letters, blank)
    whole = (
        _behind(each, blank) + (rb"(?<!%s%s)" % (unless, _any(each, blank)) if unless else b"")
        for each in by_length.values()
    )
    return rb"%s%s(?:%s)" % (last, _behind((name[-3:] for name in names), blank), b"|".join(whole))


def _behind(endings: Iterable[str], blank: bytes = b"") -> bytes:
    """Matches behind a parenthesis that follows one of `endings`, which are of one length."""
    return rb"(?<=%s)" % _any(endings, blank)


def _any(endings: Iterable[str], blank: bytes) -> bytes:
    return rb"(?:%s)%s\(" % ("|".join(sorted(set(endings))).encode(), blank)


def _bracket() -> bytes:
    """Matches a bracket to its end, where it is not too deep."""
    inside = rb"[^\"'#()\[\]{}\\]++|#[^\r\n]*+|\\\s|%s" % STRING
    bracket = rb"[(\[{](?:%s)*+[)\]}]" % inside
    for _ in range(_DEEPEST):
        bracket = rb"[(\[{](?:%s|%s)*+[)\]}]" % (inside, bracket)
    return bracket


def _generator() -> bytes:
    """Matches where a generator expression's inside begins, or what looks so: what can't be read on may be one.

    No comma stands in it before the loop but in brackets, strings and what a lambda takes; no code has a `?`.
    """
    plain = rb"[^\"'#()\[\]{}\\"
    goes_on = rb"(?<=[A-IK-Z_a-ik-z\x80-\xff])"  # a word, but no number, which a word may follow at once
    letters = rb"%s,?fl]++|f(?!or%s)|l(?!ambda%s)|%s[fl]" % (plain, NO_WORD, NO_WORD, goes_on)
    between = rb"#[^\r\n]*+|\\(?=[\r\n])"
    parts = rb"(?:%s|lambda%s:]*+:|%s|%s|%s)*+" % (letters, plain, _bracket(), STRING, between)
    loop = rb"for%s]*?(?:\sin%s|[\"'#(\[{\\])" % (plain, NO_WORD)
    bracket = rb"[(\[{](?!%s]*+\\[^\r\n])" % plain
    unread = rb"%s|lambda|(?<=[fFtT])[\"']|(?<=[fFtT][rR])[\"']" % bracket
    return rb"%s(?:%s|%s)" % (parts, loop, unread)


@functools.cache
def _all() -> re.Pattern[bytes]:
    """A bracket with nothing behind it in its statement."""
    return re.compile(rb"%s[ \t]*+(?=[\r\n#;\0]|\Z)" % _bracket(), re.DOTALL)


_GIVEN = _behind(("urn", "lse", "and", "[^a-ik-z_]or"))
"""Matches behind a parenthesis that follows one of `_GIVING`, or a word that ends as they do: not `for`, but `1jor`."""
_USING_UP = rb"(?:%s)" % b"|".join((rb"\sin ", rb"ist\(", rb"ict\(", rb"oin\(", rb"ple\(", rb"ted\("))
"""Of what `_is_used_up` says that it runs through what follows, the most frequent: `list(`, `sorted(`."""


@functools.cache
def _source() -> re.Pattern[bytes]:
    """The parenthesis of a call of something lazy, where an empty group matches, or of a generator expression.

    Before a generator expression's own parenthesis stands a sign, or a blank and what lets it go on.
    """
    showing = (*_SHOWING, *EXCEPTIONS)
    given_apart = _behind((name[-2:] for name in (*showing, *_GIVING)), rb"\s")
    signs = re.escape(_SIGNS)
    going_on = rb"(?<=[\s\\%s]\s\()|(?<=[\r\n]\()|%s" % (signs, given_apart)
    behind_word = rb"(?<=[a-z_]\()(?:%s()|%s|%s)" % (
        _before_paren(LAZY, unless=_USING_UP),
        _before_paren(showing),
        _GIVEN,
    )
    behind_blank = rb"(?<=\s\()(?:%s()|%s)" % (_before_paren(LAZY, b" "), going_on)
    behind_sign = rb"(?<=[%s]\()" % signs
    parts = (behind_word, behind_blank, behind_sign, _generator())
    return re.compile(rb"\((?:%s|%s|%s)(?(1)|(?(2)|(?=%s)))" % parts, re.DOTALL)


def sources(code: bytes) -> Iterator[int]:
    """Where expressions begin that make something lazy which is not used up at once.

    They are generator expressions and calls of the standard library, with the module that is called.
    """
    for match in _source().finditer(code):
        at = match.start()
        start = at if match.lastindex is None else _called_at(code, at)
        if start >= 0 and not _is_used_up(code, start) and not _is_unpacked(code, start, at):
            yield start


def _called_at(code: bytes, at: int) -> int:
    """Where the dotted name before the parenthesis at `at` begins; -1 where it is none of the lazy functions."""
    called = code[max(0, at - FARTHEST) : at].removesuffix(b" ")
    owner = called.rstrip(LETTERS)
    name = called[len(owner) :].decode(errors="replace")
    if name not in LAZY:
        return -1
    module = _MODULES.get(name, "" if not owner.endswith(b".") else "builtins")
    if module.encode() not in code:
        return -1
    is_known = name == "from_iterable" or not module or _renaming(module).search(code)
    return _owned_from(code, code.rindex(name.encode(), 0, at), None if is_known else frozenset((module.encode(),)))


@functools.cache
def _renaming(module: str) -> re.Pattern[bytes]:
    return re.compile(rb"%s[\s\\]++as(?=[\s\\])" % module.encode())


def is_used(code: bytes, name: bytes, roots: frozenset[bytes] | None = None) -> bool:
    """Whether a call of `name` is not used up at once; as an attribute, one of one of `roots`, or of anything."""
    at = code.find(name)
    while at >= 0:
        end = at + len(name)
        if code.startswith((b"(", b" ("), end):
            start = _owned_from(code, at, roots)
            if start >= 0 and not _is_used_up(code, start):
                return True
        at = code.find(name, end)
    return False


def _owned_from(code: bytes, at: int, roots: frozenset[bytes] | None) -> int:
    """Where the dotted name begins that goes on at `at`; -1 where `at` is in a word, or no root is one of `roots`.

    Where its root stands apart, or in parentheses, it is `at`.
    """
    first = max(0, at - FARTHEST)
    before = code[first:at]
    rest = before.rstrip(_DOTTED)
    owner = before[len(rest) :]
    if not owner:
        return at
    root = owner.partition(b".")[0]
    if not owner.endswith(b"."):
        return -1
    if not root:
        return at if roots is None or not roots.isdisjoint(_NAME.findall(rest)) else -1
    return first + len(rest) if roots is None or root in roots else -1


def _is_used_up(code: bytes, start: int) -> bool:
    """Whether what stands before the expression at `start` runs through it or drops it: a loop, `*`, most calls."""
    before, end = told_before(code, start)
    if not before:
        return False
    is_argument = before.endswith(b"(")
    before = before[:-1] if is_argument else before
    word = before[len(before.rstrip(LETTERS)) :]
    if word:
        is_number = word[:1].isdigit()  # and a word right behind it
        goes_on = word in _LETTING_ON or word.endswith(_LETTING_ON_ENDS) or is_number
    else:
        goes_on = is_argument or before.endswith(_GOING_ON)
    return not goes_on or is_in_comment(code, end)


def _is_unpacked(code: bytes, start: int, at: int) -> bool:
    """Whether all that a statement assigns, to more than one name, begins at `start` and ends with the bracket `at`."""
    if not code.endswith(b" = ", 0, start):
        return False
    to_several = _TO_SEVERAL.search(code, max(0, start - FARTHEST), start)
    return to_several is not None and _all().match(code, at) is not None


# Functions that give generators

_DECORATED = re.compile(rb"[ \t]*@(?!staticmethod|classmethod)[\w.]++(?:\(.*\))?[ \t\r]*\n[ \t]*(?:async )?")
_RENAMES_PLAIN = re.compile(rb"method(?<=staticmethod)(?<!@staticmethod)|method(?<=classmethod)(?<!@classmethod)")
"""A decorator that leaves a generator function what it is, where it may get another name."""
_YIELD = re.compile(rb"yield(?<=[\s:;=({]yield)%s(?!%s%s)" % (NO_WORD, NEXT_NAME, NEXT_NAME))
_BEFORE_YIELD = (b":", b";", b"=", b"(", b"{")


def generators(code: bytes) -> frozenset[bytes]:
    """The names of the generator functions that `code` defines, and of some others."""
    yields = [at for at in places(code, b"yield") if _may_yield(code, at)]
    defined = Definitions(code)
    return _undecorated(code, {function for at in yields for function in defined.functions_around(at)})


def returning(code: bytes, made: Iterable[int]) -> dict[int, frozenset[bytes]]:
    """Where something lazy is returned as it is -> the names of the function that does; `made` is where it is made.

    What makes an object's text is left out: it shows what it returns.
    """
    returned = [at for at in made if _is_returned(code, at)]
    defined = Definitions(code)
    around = {at: frozenset(defined.functions_around(at)) for at in returned}
    return {
        at: _undecorated(code, each) for at, each in around.items() if _OWN_TEXTS.isdisjoint(name for _, name in each)
    }


def _is_returned(code: bytes, at: int) -> bool:
    """Whether the word `return` stands before the expression at `at`, with only blanks between."""
    before, _ = told_before(code, at)
    return before.endswith(b"return")


def _undecorated(code: bytes, functions: Iterable[tuple[int, bytes]]) -> frozenset[bytes]:
    """The names of those `functions`, given by start and name, that give what they make: no constructor does."""
    return frozenset(name for start, name in functions if name != b"__init__" and not _is_decorated(code, start))


def _may_yield(code: bytes, at: int) -> bool:
    """Whether the word, or part of one, at `at` may be a `yield` of the code."""
    if not _YIELD.match(code, at):
        return False
    before = code[line_start(code, at) : at].rstrip(BLANK)
    return not before or before.endswith(_BEFORE_YIELD)


def _is_decorated(code: bytes, start: int) -> bool:
    """Whether a function that does not give what it makes, since it is decorated, begins at `start`."""
    above = code.rfind(b"\n", 0, max(0, line_start(code, start) - 1)) + 1
    return (
        _DECORATED.fullmatch(code, above, start) is not None
        and not code.endswith((b"\\\n", b"\\\r\n"), 0, above)
        and _RENAMES_PLAIN.search(code) is None
    )


# Functions of other modules

_IMPORT = re.compile(rb"import(?=[\s\\(*])((?:[^\r\n(\\]++|\\(?:\r\n|\s)|\((?:[^)#]++|#[^\r\n]*+)*+\))*+)")
_RENAMED = re.compile(rb"(%s++)%sas(?<=[\s\\]as)(?=[\s\\])%s(%s++)" % (WORD, BETWEEN, BETWEEN, WORD))
_ATTRIBUTE = re.compile(rb"\.[\s\\]*+(%s++) ?\(" % WORD)


def used_from(code: bytes, elsewhere: frozenset[bytes]) -> Iterator[bytes]:
    """The names by which calls that are not used up at once may call one of the functions `elsewhere`."""
    imports = b"\n".join(_IMPORT.findall(code))
    words = frozenset(_NAME.findall(imports))
    any_name = b"*" in imports
    names = elsewhere if any_name else elsewhere & words | elsewhere.intersection(_ATTRIBUTE.findall(code))
    renamed = {alias for name, alias in _RENAMED.findall(imports) if name in elsewhere} if elsewhere & words else ()
    return (name for name in (*names, *renamed) if is_used(code, name, None if any_name else words))
