"""A lazy iterator in a text: what is said about it, and how it is repaired; standard library only."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from keepcause.lint.finding import Edit, EditKind, Fix, Safety
from keepcause.lint.lazy import bound_before, lazy, listing, other_uses, short
from keepcause.lint.texts import Via

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from keepcause.lint.lazy import Lazy
    from keepcause.lint.source import Source
    from keepcause.lint.texts import Shown


def lazily_shown(texts: Iterable[Shown], source: Source) -> Iterator[tuple[str, Fix | str]]:
    """For each lazy iterator that a text prints, what happens in words, and the fix or the reason why there is none."""
    for shown in texts:
        if shown.via is Via.LISTED:
            continue
        made = lazy(shown.node, source)
        if made is not None:
            yield _said(shown, made), _at_site(shown, made, source)
        elif isinstance(shown.node, ast.Name):
            bound = bound_before(shown.node, source)
            if bound is not None and (made := lazy(bound.value, source)) is not None:
                yield _said(shown, made), _of_name(shown, shown.node, made, bound, source)


def _said(shown: Shown, made: Lazy) -> str:
    origin = "" if shown.node is made.node else f" (line {made.node.lineno})"
    return f"prints `{made.prints} ...>`: `{short(shown.node)}` is {made.what}{origin}"


def _at_site(shown: Shown, made: Lazy, source: Source) -> Fix | str:
    if shown.fails:
        return shown.fails
    if shown.kept and shown.via is Via.VALUE:
        return f"`{shown.kept}` keeps its arguments"
    effect = listing(made.node, source)
    if effect.never:
        return effect.never
    return _fix(_site_edit(shown, source), "List it where it is shown", effect.doubt)


def _of_name(shown: Shown, name: ast.Name, made: Lazy, bound: ast.Assign, source: Source) -> Fix | str:
    if not any(True for _ in other_uses(name, source)):
        return _at_site(shown, made, source)
    effect = listing(made.node, source)
    if effect.never:
        return effect.never
    edit = _list_edit(bound.value, source.statement(bound), source)
    return _fix(edit, "List it where it is bound", effect.doubt or f"`{name.id}` is used elsewhere")


def _fix(edit: Edit, title: str, doubt: str) -> Fix:
    if doubt:
        return Fix(Safety.UNSAFE, f"{title} (unsafe: {doubt})", (edit,))
    return Fix(Safety.SAFE, title, (edit,))


def _site_edit(shown: Shown, source: Source) -> Edit:
    statement = source.statement(shown.node)
    if shown.via is not Via.FIELD:
        return _list_edit(shown.node, statement, source)
    way = "" if source.scopes.is_builtin("list", shown.node) else "display"
    return Edit(EditKind.LIST_FIELD, source.span(statement), source.path_to(shown.holder, statement), way)


def _list_edit(node: ast.expr, statement: ast.stmt, source: Source) -> Edit:
    kind = EditKind.LIST_CALL if source.scopes.is_builtin("list", node) else EditKind.LIST_DISPLAY
    return Edit(kind, source.span(statement), source.path_to(node, statement))
