"""Where a file's bytes may make something lazy that is not used up at once; imports logical lines only.

This reads names and the few bytes before them, in any bytes: a comment that reads like code counts as code. It relies
on what `keepcause.lint.lazy` and `keepcause.lint.texts` leave alone: functions that are called by a name which is not
their own, or which stands apart from its parenthesis.
"""

from __future__ import annotations

import bisect
import functools
import re
from typing import TYPE_CHECKING

from keepcause.lint.logical import BETWEEN, STRING, width

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

BUILTINS = ("map", "filter", "zip", "enumerate", "reversed", "iter")
_ITERTOOLS = (
    *("accumulate", "batched", "chain", "from_iterable", "combinations", "combinations_with_replacement", "compress"),
    *("cycle", "dropwhile", "filterfalse", "groupby", "islice", "pairwise", "permutations", "product", "starmap"),
    *("takewhile", "zip_longest"),
)
_MODULES = {
    **dict.fromkeys(_ITERTOOLS, "itertools"),
    **dict.fromkeys(("scandir", "walk", "fwalk"), "os"),
    "iglob": "glob",
    "reader": "csv",
    "finditer": "re",
}
"""Functions of the standard library -> what has to be in a file that calls them."""
LAZY = frozenset((*BUILTINS, *_MODULES))
LOGS = ("debug", "info", "warning", "warn", "warn_explicit", "error", "critical", "exception", "fatal", "log")
_SHOWING = ("str", "repr", "ascii", "format", "exit", "__init__", *LOGS)
"""What shows a sole argument as it is, beside exceptions."""
_EXCEPTIONS = ("Error", "Exception", "Warning", "Exit", "Interrupt", "Iteration", "Group")
"""How exceptions are called that show a sole argument as it is."""
_GIVING = ("return", "else", "or", "and")
"""The words whose operand may go on as it is."""
_LETTING_ON = frozenset(map(str.encode, (*_SHOWING, *_GIVING)))
_LETTING_ON_ENDS = tuple(map(str.encode, _EXCEPTIONS))

_GOING_ON = tuple(b"%c" % sign for sign in b"=([{,:%+).")
"""What may stand before something that goes on as it is."""
_BLANK = b" \t\r\n\f\\"
_WORD = bytes(byte for byte in range(256) if byte >= 0x80 or chr(byte).isalnum() or byte == ord("_"))
_COMMENT = re.compile(rb"[^\"'#]*+#[^{]*+")
"""A line up to what is no code: it is in a comment, or in a text and not in its fields."""
_DOTTED = _WORD + b"."
_TO_SEVERAL = re.compile(rb"[\r\n][^#\r\n]*[^\s\\,(#][ \t]*[\r\n]\s*[\w.]++(?:, ?[\w.]++)++ ?= ?\Z")
"""An assignment to more than one name, at the beginning of a statement."""
_CLOSING = (b")", b"]", b"}", b'"', b"'")
_LINE_ENDS = (b"\n", b"\r", b"\0")
_FARTHEST = 200
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

    No comma stands in it before the loop but in brackets, strings and what a lambda takes.
    """
    word = rb"[\w\x80-\xff]"
    plain = rb"[^\"'#()\[\]{}\\"
    goes_on = rb"(?<=[A-IK-Z_a-ik-z\x80-\xff])"  # a word, but no number, which a word may follow at once
    letters = rb"%s,?fl]++|f(?!or(?!%s))|l(?!ambda(?!%s))|%s[fl]" % (plain, word, word, goes_on)
    between = rb"#[^\r\n]*+|\\(?=[\r\n])"
    parts = rb"(?:%s|lambda%s:]*+:|%s|%s|%s)*+" % (letters, plain, _bracket(), STRING, between)
    loop = rb"for%s]*?(?:\sin(?!%s)|[\"'#(\[{\\])" % (plain, word)
    bracket = rb"[(\[{](?!%s]*+\\[^\r\n])" % plain
    unread = rb"%s|lambda|(?<=[fFtT])[\"']|(?<=[fFtT][rR])[\"']" % bracket
    return rb"%s(?:%s|%s)" % (parts, loop, unread)


@functools.cache
def _all() -> re.Pattern[bytes]:
    """A bracket with nothing behind it in its statement."""
    return re.compile(rb"%s[ \t]*+(?=[\r\n#;\0]|\Z)" % _bracket(), re.DOTALL)


_SIGNS = rb"=(\[{,:%+"
_GIVEN = _behind(("urn", "lse", "and", "[^a-ik-z_]or"))
"""Matches behind a parenthesis that follows one of `_GIVING`, or a word that ends as they do."""
_USING_UP = rb"(?:%s)" % b"|".join((rb"\sin ", rb"ist\(", rb"ict\(", rb"oin\(", rb"ple\(", rb"ted\("))
"""Of what `_is_used_up` says that it runs through what follows, the most frequent: `list(`, `sorted(`."""


@functools.cache
def _source() -> re.Pattern[bytes]:
    """The parenthesis of a call of something lazy, where an empty group matches, or of a generator expression.

    Behind a generator expression's own parenthesis stands a sign, or a blank and what lets it go on.
    """
    showing = (*_SHOWING, *_EXCEPTIONS)
    given_apart = _behind((name[-2:] for name in (*showing, *_GIVING)), rb"\s")
    going_on = rb"(?<=[\s\\)%s]\s\()|(?<=[\r\n]\()|%s" % (_SIGNS, given_apart)
    behind_word = rb"(?<=[a-z_]\()(?:%s()|%s|%s)" % (
        _before_paren(LAZY, unless=_USING_UP),
        _before_paren(showing),
        _GIVEN,
    )
    behind_blank = rb"(?<=\s\()(?:%s()|%s)" % (_before_paren(LAZY, b" "), going_on)
    behind_sign = rb"(?<=[%s]\()" % _SIGNS
    parts = (behind_word, behind_blank, behind_sign, _generator())
    return re.compile(rb"\((?:%s|%s|%s)(?(1)|(?(2)|(?=%s)))" % parts, re.DOTALL)


def sources(code: bytes) -> Iterator[int]:
    """Where a generator expression or the standard library makes something lazy that is not used up at once."""
    for match in _source().finditer(code):
        at = match.start()
        start = at if match.lastindex is None else _called_at(code, at)
        if start >= 0 and not _is_used_up(code, start) and not _is_unpacked(code, start, at):
            yield at


def _called_at(code: bytes, at: int) -> int:
    """Where the dotted name before the parenthesis at `at` begins; -1 where it is none of the lazy functions."""
    called = code[max(0, at - _FARTHEST) : at].removesuffix(b" ")
    owner = called.rstrip(_WORD)
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
    """Where the dotted name begins that goes on at `at`; -1 where `at` is in a word, or no root is one of `roots`."""
    first = max(0, at - _FARTHEST)
    before = code[first:at]
    rest = before.rstrip(_DOTTED)
    owner = before[len(rest) :]
    if owner and not owner.endswith(b"."):
        return -1
    if owner and roots is not None:
        root = owner.partition(b".")[0]
        if root not in roots if root else rest.rstrip(_BLANK).endswith(_CLOSING):
            return -1
    return first + len(rest)


def _is_used_up(code: bytes, start: int) -> bool:
    """Whether what stands before the expression at `start` runs through it or drops it: a loop, `*`, most calls."""
    first = max(0, start - _FARTHEST)
    window = code[first:start]
    before = window.rstrip(_BLANK)
    line = before[max(map(before.rfind, _LINE_ENDS)) + 1 :]
    is_cut = first > 0 and len(line) == len(before)
    if any(end in window[len(before) :] for end in _LINE_ENDS):
        if is_cut or b"#" in line:
            return False  # a comment may end there
    elif not is_cut and _COMMENT.fullmatch(line):
        return True
    is_argument = before.endswith(b"(")
    before = before[:-1] if is_argument else before
    word = before[len(before.rstrip(_WORD)) :]
    if not word:
        return not (is_argument or before.endswith(_GOING_ON))
    is_number = word[:1].isdigit()  # and a word right behind it
    return not (word in _LETTING_ON or word.endswith(_LETTING_ON_ENDS) or is_number)


def _is_unpacked(code: bytes, start: int, at: int) -> bool:
    """Whether all that a statement assigns, to more than one name, begins at `start` and ends with the bracket `at`."""
    to_several = _TO_SEVERAL.search(code, max(0, start - _FARTHEST), start)
    return to_several is not None and _all().match(code, at) is not None


# Functions that give generators

_DEFINITION = re.compile(rb"(?<![\w\x80-\xff.])(def|class)(?=[\s\\])%s([\w\x80-\xff]++)" % BETWEEN)
_DECORATED = re.compile(rb"[ \t]*@(?!staticmethod|classmethod)[\w.]++(?:\(.*\))?[ \t\r]*\n[ \t]*(?:async )?")
_YIELD = re.compile(rb"yield(?<=[\s:;=({]yield)(?![\w\x80-\xff])")
_BEFORE_YIELD = (b":", b";", b"=", b"(", b"{")


def generators(code: bytes) -> frozenset[bytes]:
    """The names of the generator functions that `code` defines, and of some others."""
    names: set[bytes] = set()
    yields = [at for at in _places(code, b"yield") if _may_yield(code, at)]
    if yields:
        definitions = sorted([*_places(code, b"def"), *_places(code, b"class")])
        for at in yields:
            names.update(_around(code, at, definitions))
    return frozenset(names)


def _places(code: bytes, word: bytes) -> Iterator[int]:
    at = code.find(word)
    while at >= 0:
        yield at
        at = code.find(word, at + len(word))


def _may_yield(code: bytes, at: int) -> bool:
    """Whether the word, or part of one, at `at` may be a `yield` of the code."""
    if not _YIELD.match(code, at):
        return False
    before = code[_line_start(code, at) : at].rstrip(_BLANK)
    return not before or before.endswith(_BEFORE_YIELD)


def _around(code: bytes, at: int, places: list[int]) -> Iterator[bytes]:
    """The names of the functions around `at`, of the one before it, and of what strings may hold.

    `places` are where there may be definitions, in their order.
    """
    least, is_first = _column(code, at), True
    for start in reversed(places[: bisect.bisect(places, at)]):
        column = _column(code, start)
        if (is_first or column < least) and (definition := _DEFINITION.match(code, start)):
            if definition[1] == b"def":
                is_first = False
                if not _is_decorated(code, start):
                    yield definition[2]
            if column < least and not _may_be_text(code, start, at):
                least = column
        if not (least or is_first):
            return


def line_around(code: bytes, at: int) -> bytes:
    """The line of the file around `at`, whether it is a whole logical line or not."""
    ends = [end for end in (code.find(b"\n", at), code.find(b"\r", at)) if end >= 0]
    return code[_line_start(code, at) : min(ends, default=len(code))]


def _line_start(code: bytes, at: int) -> int:
    return max(code.rfind(b"\n", 0, at), code.rfind(b"\r", 0, at)) + 1


def _column(code: bytes, at: int) -> int:
    """The indentation of the line around `at`."""
    line = code[_line_start(code, at) : at]
    return width(line[: len(line) - len(line.lstrip(b" \t\f"))])


def _is_decorated(code: bytes, start: int) -> bool:
    """Whether a function that does not give what it makes, since it is decorated, begins at `start`."""
    above = code.rfind(b"\n", 0, max(0, _line_start(code, start) - 1)) + 1
    return _DECORATED.fullmatch(code, above, start) is not None


def _may_be_text(code: bytes, start: int, end: int) -> bool:
    """Whether what stands at `start` may be in a string that ends before `end`."""
    return any(code.count(quotes, start, end) % 2 for quotes in (b'"""', b"'''"))


# Functions of other modules

_IMPORT = re.compile(rb"import(?=[\s\\(*])((?:[^\r\n(\\]++|\\\s|\((?:[^)#]++|#[^\r\n]*+)*+\))*+)")
_NAME = re.compile(rb"[\w\x80-\xff]++")
_RENAMED = re.compile(rb"([\w\x80-\xff]++)%sas(?<=[\s\\]as)(?=[\s\\])%s([\w\x80-\xff]++)" % (BETWEEN, BETWEEN))
_ATTRIBUTE = re.compile(rb"\.[\s\\]*+([\w\x80-\xff]++) ?\(")


def used_from(code: bytes, elsewhere: frozenset[bytes]) -> Iterator[bytes]:
    """The names by which calls that are not used up at once may call one of the functions `elsewhere`."""
    imports = b"\n".join(_IMPORT.findall(code))
    words = frozenset(_NAME.findall(imports))
    names = elsewhere if b"*" in imports else elsewhere & words | elsewhere.intersection(_ATTRIBUTE.findall(code))
    renamed = {alias for name, alias in _RENAMED.findall(imports) if name in elsewhere} if elsewhere & words else ()
    return (name for name in (*names, *renamed) if is_used(code, name, words))
