"""A second opinion on a repaired file: what differs from the original, and whether any fix may do that.

It reads both files with the standard library and shares nothing with the codemod's own checks but the decoding of a
file. Where the fixes were meant is told as the spans of statements.
"""

from __future__ import annotations

import ast
import itertools
import re
import tokenize
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from keepcause.lint.source import NEWLINE, Source, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.finding import Span

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)
_IMPORT = re.compile(rb"(?<![^\r\n])from keepcause import ([A-Za-z, ]+)(\r\n|\r|\n)")
_STRUCTURED = {b"WorkerInitError", b"DCPLoadError"}
_FACTS = ("rank", "local_rank", "checkpoint_step", "path")
_STRIPPED = (("__cause__", None), ("__suppress_context__", True))


class WrongError(Exception):
    """A change that no fix may make; the message says which."""


def judge(old: bytes, new: bytes, places: set[Span]) -> None:
    """Raise WrongError unless `new` is `old` with nothing but repairs in the statements at `places`, and an import."""
    try:
        after = Source(new)
    except SourceError as error:
        raise WrongError(f"the result can't be parsed: {error.reason}") from error
    reasons = []
    for plain in _without_import(old, new):
        try:
            _judge(Source(old), after if plain == new else Source(plain), places, old, plain)
        except WrongError as error:
            reasons.append(error)
        except SourceError as error:
            reasons.append(WrongError(f"without its import, the result can't be parsed: {error.reason}"))
        else:
            return
    raise reasons[0]


def _without_import(old: bytes, new: bytes) -> Iterator[bytes]:
    """`new` without the import of keepcause and the blank lines that came with it, however many these are.

    Where the file had one, it may have got more names.
    """
    match, had = _IMPORT.search(new), _IMPORT.search(old)
    if match is None:
        yield new
        return
    if had is not None:
        names, more = (set(line[1].split(b", ")) for line in (had, match))
        joined = names <= more and more - names <= _STRUCTURED
        yield new[: match.start()] + had[0] + new[match.end() :] if joined else new
        return
    end = match[2]
    for before, behind in itertools.product(range(3), repeat=2):
        start, stop = match.start() - before * len(end), match.end() + behind * len(end)
        few = before + behind <= 2
        if few and new[start : match.start()] == end * before and new[match.end() : stop] == end * behind:
            yield new[:start] + new[stop:]


def _judge(before: Source, after: Source, places: set[Span], old: bytes, new: bytes) -> None:
    if (before.encoding, old[:3] == b"\xef\xbb\xbf") != (after.encoding, new[:3] == b"\xef\xbb\xbf"):
        raise WrongError("the encoding differs")
    if _comments(before) != _comments(after):
        raise WrongError("the comments differ")
    _same_around(before, after, places)
    comparison = _Comparison(before, places)
    comparison.nodes(before.tree, after.tree, _Place())
    for handler in comparison.named:
        _check_name(handler, comparison.named, before)


# The bytes around


def _same_around(before: Source, after: Source, places: set[Span]) -> None:
    """All text between the places has to be there still, in its order."""
    changed = _changeable(before, places)
    kept = [before.text[one.stop : two.start] for one, two in pairwise([slice(0, 0), *changed])]
    last = before.text[changed[-1].stop :] if changed else before.text
    text = after.text
    if not text.endswith(last) or (changed and not text.startswith(kept[0])):
        raise WrongError("the text around the fixes differs")
    start, end = 0, len(text) - len(last)
    for piece in kept:
        found = text.find(piece, start, end)
        if found < 0:
            raise WrongError("the text between the fixes differs")
        start = found + len(piece)
    if not changed and start != end:
        raise WrongError("something differs where nothing was to be fixed")


def _changeable(source: Source, places: set[Span]) -> list[slice]:
    """The text that fixes may change: simple statements, handlers up to their bodies, lines of dropped statements."""
    found = []
    for node in source.scopes.parents:
        if isinstance(node, ast.stmt | ast.ExceptHandler) and source.span(node) in places:
            place = source.slice(source.span(node))
            if isinstance(node, ast.ExceptHandler):
                place = slice(place.start, source.slice(source.span(node.body[0])).start)
            elif _strips(node):
                head = re.search(r"[ \t\f]*\Z", source.text[: place.start])
                tail = re.compile(r"[ \t\f]*(\r\n|\r|\n)?").match(source.text, place.stop)
                assert head is not None
                assert tail is not None
                place = slice(head.start(), tail.end())
            found.append(place)
    return sorted(found, key=lambda place: place.start)


def _comments(source: Source) -> list[str]:
    lines = iter([*(f"{line}\n" for line in NEWLINE.split(source.text)), ""])
    try:
        tokens = list(tokenize.generate_tokens(lambda: next(lines)))
    except (tokenize.TokenError, IndentationError):
        return []  # unlike the parser, `tokenize` does not take every file
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


# The program


@dataclass(frozen=True)
class _Place:
    """Where a pair of nodes stands."""

    intended: bool = False
    """A fix was meant for this statement."""
    handler: ast.ExceptHandler | None = None
    """The innermost handler of the result."""
    star: bool = False
    in_finally: bool = False
    """In a `finally` inside of that handler."""
    newly_named: tuple[str, ...] = ()
    """The names that the fixes gave to the handlers around, outermost first."""


@dataclass
class _Comparison:
    source: Source
    places: set[Span]
    named: list[ast.ExceptHandler] = field(default_factory=list)
    """The handlers of the original that have got a name."""

    def nodes(self, old: ast.AST, new: ast.AST, at: _Place) -> None:
        if isinstance(old, ast.stmt | ast.ExceptHandler):
            intended = self.source.span(old) in self.places
            at = _Place(intended, at.handler, at.star, at.in_finally, at.newly_named)
        if isinstance(old, _SCOPES):
            at = _Place(at.intended)
        if isinstance(old, ast.Raise) and isinstance(new, ast.Raise):
            self._raises(old, new, at)
        elif isinstance(old, ast.ExceptHandler) and isinstance(new, ast.ExceptHandler):
            self._handlers(old, new, at)
        elif isinstance(old, ast.Try | ast.TryStar) and type(old) is type(new):
            self._tries(old, new, at)
        elif isinstance(old, ast.expr) and isinstance(new, ast.expr):
            self._expressions(old, new, at)
        else:
            self._fields(old, new, at)

    def _fields(self, old: ast.AST, new: ast.AST, at: _Place) -> None:
        if type(old) is not type(new):
            raise _wrong(old, f"{type(old).__name__} became {type(new).__name__}")
        for name in old._fields:
            self._values(old, getattr(old, name, None), getattr(new, name, None), at)

    def _values(self, owner: ast.AST, old: object, new: object, at: _Place) -> None:
        if isinstance(old, list) and isinstance(new, list):
            for one, two in self._paired(owner, old, new):
                self._values(owner, one, two, at)
        elif isinstance(old, ast.AST) and isinstance(new, ast.AST):
            self.nodes(old, new, at)
        elif type(old) is not type(new) or old != new:
            raise _wrong(owner, f"{old!r} became {new!r}")

    def _paired(self, owner: ast.AST, old: list[object], new: list[object]) -> Iterator[tuple[object, object]]:
        """The items side by side, without the statements that a fix may drop."""
        rest = list(new)
        for item in old:
            if isinstance(item, ast.stmt) and _strips(item) and self.source.span(item) in self.places:
                following = rest[0] if rest else None
                if not isinstance(following, ast.AST) or not _same(item, following):
                    if len(old) == len(new) and isinstance(following, ast.Pass):
                        rest.pop(0)
                    continue
            if not rest:
                raise _wrong(owner, "something is gone")
            yield item, rest.pop(0)
        if rest:
            raise _wrong(owner, "something is new")

    def _tries(self, old: ast.Try | ast.TryStar, new: ast.Try | ast.TryStar, at: _Place) -> None:
        star = isinstance(old, ast.TryStar)
        self._values(old, old.body, new.body, at)
        self._values(old, old.orelse, new.orelse, at)
        handled = _Place(at.intended, at.handler, star, at.in_finally, at.newly_named)
        self._values(old, old.handlers, new.handlers, handled)
        self._values(old, old.finalbody, new.finalbody, _Place(at.intended, at.handler, at.star, True, at.newly_named))

    def _handlers(self, old: ast.ExceptHandler, new: ast.ExceptHandler, at: _Place) -> None:
        names = at.newly_named
        if old.name != new.name:
            if not at.intended or old.name is not None or new.name is None:
                raise _wrong(old, f"the handler of {old.name} became one of {new.name}")
            if new.name in names:
                raise _wrong(old, f"{new.name} is the name of a handler around, too")
            if not any(isinstance(node, ast.Raise) and _is_name(node.cause, new.name) for node in ast.walk(new)):
                raise _wrong(old, f"nothing is raised from {new.name}")
            names = (*names, new.name)
            old.name = new.name
            self.named.append(old)
            if old.type is None:
                old.type = ast.Name("BaseException", ast.Load())
        if (old.type is None) != (new.type is None):
            raise _wrong(old, "what it catches differs")
        if old.type is not None and new.type is not None and not _same(old.type, new.type):
            raise _wrong(old, "what it catches differs")
        self._values(old, old.body, new.body, _Place(False, new, at.star, False, names))

    def _raises(self, old: ast.Raise, new: ast.Raise, at: _Place) -> None:
        if old.exc is not None and new.exc is None:
            self._bare_raise(old, new, at)
            return
        if _is_structured(new.exc) and not _is_structured(old.exc):
            self._structured(old.exc, new.exc, at)
        else:
            self._values(old, old.exc, new.exc, at)
        if (old.cause is None and new.cause is None) or (old.cause and new.cause and _same(old.cause, new.cause)):
            return
        if not at.intended or not (old.cause is None or _is_none(old.cause)):
            raise _wrong(old, "the cause differs")
        if new.cause is None:
            return
        if at.handler is None or not _is_name(new.cause, at.handler.name):
            raise _wrong(old, "the new cause is not what the innermost handler caught")
        if new.exc is not None and _is_name(new.exc, at.handler.name):
            raise _wrong(old, "the exception is its own cause")
        if any(node.lineno < new.lineno and _leads_to(node, new, at.handler) for node in _stores(at.handler)):
            raise _wrong(old, f"{at.handler.name} may not be what was caught")

    def _structured(self, old: ast.expr | None, new: ast.expr | None, at: _Place) -> None:
        """The arguments stay and a rank is added, or the keys of the text become fields."""
        assert isinstance(new, ast.Call)
        if not at.intended or not isinstance(old, ast.Call) or old.keywords:
            raise _wrong(new, "a structured error where no fix was meant")
        if ast.unparse(old.func) not in ("RuntimeError", "Exception"):
            raise _wrong(new, "a structured error in place of another class")
        fields = {keyword.arg: keyword.value for keyword in new.keywords}
        shown = {node.id for node in ast.walk(old) if isinstance(node, ast.Name)} | {"list"}
        for name, value in fields.items():
            if name in ("missing", "unexpected"):
                own = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
                if not own <= shown and not isinstance(value, ast.ListComp):
                    raise _wrong(new, f"{name} is not of the text")
            elif name not in _FACTS or not isinstance(value, ast.Name | ast.Attribute):
                raise _wrong(new, f"{name} is no such field")
            elif name.endswith("rank") and not ast.unparse(value).endswith("rank"):
                raise _wrong(new, f"{name} is no rank")
        if ast.unparse(new.func) == "WorkerInitError":
            self._values(old, old.args, new.args, at)
        elif new.args or not fields.keys() & {"missing", "unexpected"}:
            raise _wrong(new, "what the text lists is lost")

    def _bare_raise(self, old: ast.Raise, new: ast.Raise, at: _Place) -> None:
        handler = at.handler
        if not at.intended or handler is None or handler.name is None or not _is_name(old.exc, handler.name):
            raise _wrong(old, "a bare raise of something else")
        if new.cause is not None or not _is_none(old.cause) or at.in_finally or at.star:
            raise _wrong(old, "a bare raise that raises something else")
        if _stores(handler):
            raise _wrong(old, f"{handler.name} may not be what was caught")

    def _expressions(self, old: ast.expr, new: ast.expr, at: _Place) -> None:
        if _same(old, new):
            return
        if not at.intended:
            raise _wrong(old, "it differs where no fix was meant")
        reason = _wrong(old, "it became something else than a list of it")
        if type(old) is type(new):
            try:
                self._fields(old, new, at)
            except WrongError as error:
                reason = error
            else:
                return
        inner = _listed(old, new)
        if inner is None:
            raise reason
        names = {node.id for node in ast.walk(new) if isinstance(node, ast.Name)}
        names -= {node.id for node in ast.walk(old) if isinstance(node, ast.Name)}
        names -= {node.id for node in ast.walk(new) if isinstance(node, ast.Name) and _is_stored(node)}
        if bound := names & _bound_names(self.source, old):
            raise _wrong(old, f"{', '.join(bound)} is not the builtin")
        self._expressions(*inner, at)


def _listed(old: ast.expr, new: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """The part of both that has to be equal, where `new` lists or joins what `old` gives; None where it does not."""
    match old, new:
        case (
            ast.Call(func=ast.Attribute(value=value, attr="keys"), args=[], keywords=[]),
            ast.Call(func=ast.Name(id="list"), args=[listed], keywords=[]),
        ) if _same(value, listed):
            return value, listed
        case _, ast.Call(func=ast.Name(id="list"), args=[listed], keywords=[]):
            return old, listed
        case _, ast.List(elts=[ast.Starred(value=listed)]):
            return old, listed
        case ast.GeneratorExp(elt=elt, generators=generators), ast.ListComp(elt=same, generators=clauses):
            return ast.ListComp(elt, generators), ast.ListComp(same, clauses)
        case _, ast.ListComp(elt=ast.Name(id=item), generators=[ast.comprehension(target=target, iter=listed, ifs=[])]):
            return (old, listed) if _is_name(target, item) else None
        case (
            _,
            ast.Call(
                func=ast.Attribute(value=ast.Constant(value=", "), attr="join"),
                args=[ast.Call(func=ast.Name(id="map"), args=[ast.Name(id="str"), listed])],
            ),
        ):
            return old, listed
        case ast.Call(func=ast.Name(id="str" | "repr" | "format" | "ascii"), args=[value], keywords=[]), _:
            return value, new
    return None


def _check_name(handler: ast.ExceptHandler, named: list[ast.ExceptHandler], source: Source) -> None:
    """The name that `handler` has got is used by nothing else of its function, or of the module.

    Handlers behind one another may share a new name; where one lies in the other, `_handlers` has refused it.
    """
    function = next((up for up in source.ancestors(handler) if isinstance(up, Function)), source.tree)
    for node in ast.walk(function):
        own = node is function  # its name belongs to what is around it
        if not own and node not in named and handler.name in _names(node):
            raise _wrong(handler, f"{handler.name} is used in its function already")


def _names(node: ast.AST) -> list[str]:
    """The names that a node itself reads or binds."""
    match node:
        case ast.Name(id=name) | ast.arg(arg=name):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return names
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return [(alias.asname or alias.name).partition(".")[0] for alias in aliases]
        case ast.ExceptHandler(name=str(name)):
            return [name]
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            return [name]
    return []


def _bound_names(source: Source, place: ast.AST) -> set[str]:
    """The names that the module and the functions around `place` bind, or all that the file binds if none is known."""
    around = [up for up in source.ancestors(place) if isinstance(up, Function | ast.Module)]
    if not around:
        return {name for node in ast.walk(source.tree) for name in _bound(node)}
    return {name for scope in around for node in _inside(scope) for name in _bound(node)}


def _bound(node: ast.AST) -> list[str]:
    return [] if isinstance(node, ast.Name) and not _is_stored(node) else _names(node)


def _inside(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope, without what is in functions and classes of it; their names belong to it."""
    for node in ast.iter_child_nodes(scope):
        yield node
        if not isinstance(node, _SCOPES):
            yield from _inside(node)


def _is_structured(raised: ast.expr | None) -> bool:
    return isinstance(raised, ast.Call) and ast.unparse(raised.func) in ("WorkerInitError", "DCPLoadError")


def _strips(statement: ast.stmt) -> bool:
    """Whether a statement takes an exception's cause away."""
    match statement:
        case ast.Assign(targets=[ast.Attribute(attr=attribute)], value=ast.Constant(value=value)):
            return (attribute, value) in _STRIPPED
        case ast.Expr(
            value=ast.Call(
                func=ast.Name(id="setattr"), args=[_, ast.Constant(value=attribute), ast.Constant(value=value)]
            )
        ):
            return (attribute, value) in _STRIPPED
    return False


def _same(old: ast.AST, new: ast.AST) -> bool:
    return ast.dump(old) == ast.dump(new)


def _is_stored(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _stores(handler: ast.ExceptHandler) -> list[ast.Name]:
    """Where the handler's name is bound anew or deleted in its body."""
    names = [node for node in _same_names(handler, handler.name) if isinstance(node, ast.Name) and _is_stored(node)]
    return [node for node in names if node.id == handler.name]


def _same_names(top: ast.AST, name: str | None) -> Iterator[ast.AST]:
    """What is below `top`, but in functions and classes where `name` is another variable."""
    for node in ast.iter_child_nodes(top):
        has_scope = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda)
        shares = (ast.Nonlocal, ast.Global)
        if not has_scope or any(isinstance(inner, shares) and name in inner.names for inner in ast.walk(node)):
            yield node
            yield from _same_names(node, name)


def _leads_to(store: ast.AST, raised: ast.Raise, handler: ast.ExceptHandler) -> bool:
    """Whether `raised` may be reached from `store`: not from an if's other arm, nor where its arm ends the handler."""
    blocks: list[list[ast.stmt]] = [handler.body]
    for block in blocks:
        branches = [each for each in block if isinstance(each, ast.If)]
        for arm, other in [(each.body, each.orelse) for each in branches] + [
            (each.orelse, each.body) for each in branches
        ]:
            if _holds(arm, store):
                if _holds(other, raised) or (_ends(arm) and not _holds(arm, raised)):
                    return False
                blocks.append(arm)
    return True


def _holds(block: list[ast.stmt], node: ast.AST) -> bool:
    return any(inner is node for each in block for inner in ast.walk(each))


def _ends(block: list[ast.stmt]) -> bool:
    return bool(block) and isinstance(block[-1], ast.Raise | ast.Return)


def _is_name(node: ast.AST | None, name: str | None) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_none(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _wrong(node: ast.AST, what: str) -> WrongError:
    return WrongError(f"line {getattr(node, 'lineno', '?')}: {what}")
