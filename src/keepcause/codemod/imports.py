"""Where an import that a repair needs goes: where a person would put it; imports the linter's data and `edits`."""

from __future__ import annotations

import ast
import os
import sys
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import libcst as cst

from keepcause.codemod.edits import between_and_behind, cut, restored
from keepcause.codemod.verify import RefusedError
from keepcause.lint.files import read
from keepcause.lint.source import NEWLINE
from keepcause.lint.structured.errors import imported_as, means

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from keepcause.codemod.splice import Splice
    from keepcause.lint.source import Source

ImportNode: TypeAlias = ast.Import | ast.ImportFrom
T = TypeVar("T")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_FUTURE, _STANDARD, _INSTALLED, _OWN, _RELATIVE = range(5)


def added_import(source: Source, reference: str, at: ast.AST, *, own: Collection[str] = ()) -> Splice:
    """The change that imports `module:Name` for use at the node `at`.

    `own` are the project's own top-level packages. Raises RefusedError where the name means something else in the file
    already, or is imported there.
    """
    if found := imported_as(reference, at, source):
        local, always = found
        raise RefusedError(f"`{local}` is imported {'already' if always else 'only under a condition'}")
    module, _, name = reference.partition(":")
    scopes = source.scopes
    if name in scopes.names_in(scopes.module):
        raise RefusedError(f"`{name}` means something else in this file")
    if _is_shadowed(source.path, module, name):
        raise RefusedError(f"`{module}` is a module beside this file, which has no `{name}`")
    leading = _leading(source, at)
    for node in leading:
        if isinstance(node, ast.ImportFrom) and _imports_from(source, node, module):
            return _extended(source, node, name)
    return _new_line(source, leading, module, f"from {module} import {name}", own)


def own_packages(path: str) -> tuple[str, ...]:
    """The top-level package that the file at `path` lies in; none where no folder around it is a package."""
    packages = [folder.name for folder in Path(os.path.abspath(path)).parents if os.path.isfile(folder / "__init__.py")]
    return tuple(packages[-1:])


def _is_shadowed(path: str, module: str, name: str) -> bool:
    """Whether a module by that name, found before an installed one, says nothing of `name`."""
    outside = (folder for folder in Path(os.path.abspath(path)).parents if not os.path.isfile(folder / "__init__.py"))
    folder = next(outside, None)
    beside = [folder / f"{module}.py", folder / module / "__init__.py"] if folder else []
    try:
        return any(name.encode() not in read(file) for file in beside if file.is_file())
    except OSError:
        return True


def _imports_from(source: Source, node: ast.ImportFrom, module: str) -> bool:
    named = node.names[0].name != "*" and bool(node.module)
    return named and means(source, f"{'.' * node.level}{node.module}", module)


def _leading(source: Source, at: ast.AST) -> list[ast.stmt]:
    """The module's statements before its first definition and before the use."""
    around = {at, *source.ancestors(at)}
    leading: list[ast.stmt] = []
    for node in source.tree.body:
        if node in around or isinstance(node, _DEFINITIONS):
            break
        leading.append(node)
    return leading


def _extended(source: Source, node: ast.ImportFrom, name: str) -> Splice:
    """`name` among the names of an import that is there, by the order that these are in."""
    part = cut(source, node)
    line = part.module.body[0]
    assert isinstance(line, cst.SimpleStatementLine)
    statement = line.body[0]
    assert isinstance(statement, cst.ImportFrom)
    index = _by_habit([alias.name for alias in node.names], name, (_by_type, str.lower, str))
    extended = _appended(statement, name) if index == len(node.names) else _inserted(statement, name, index)
    changed = part.module.deep_replace(statement, extended)
    assert isinstance(changed, cst.Module)
    return part.place.start, part.place.stop, restored(part, changed)


def _inserted(statement: cst.ImportFrom, name: str, index: int) -> cst.ImportFrom:
    assert not isinstance(statement.names, cst.ImportStar)
    between, _ = between_and_behind(_before_a_name(statement), cst.SimpleWhitespace(""))
    new = cst.ImportAlias(cst.Name(name), comma=cst.Comma(whitespace_after=between))
    return statement.with_changes(names=[*statement.names[:index], new, *statement.names[index:]])


def _appended(statement: cst.ImportFrom, name: str) -> cst.ImportFrom:
    assert not isinstance(statement.names, cst.ImportStar)
    *others, last = statement.names
    start, comma, rpar = _before_a_name(statement), last.comma, statement.rpar
    if isinstance(comma, cst.Comma):
        between, end = between_and_behind(start, comma.whitespace_after)
        comma = comma.with_changes(whitespace_after=end)
    else:
        between, end = between_and_behind(start, rpar.whitespace_before if rpar else cst.SimpleWhitespace(""))
        rpar = rpar.with_changes(whitespace_before=end) if rpar else None
    last = last.with_changes(comma=cst.Comma(whitespace_after=between))
    return statement.with_changes(names=[*others, last, cst.ImportAlias(cst.Name(name), comma=comma)], rpar=rpar)


def _before_a_name(statement: cst.ImportFrom) -> cst.BaseParenthesizableWhitespace:
    """What stands before one of the names: a new line with their indentation where one does, else a space."""
    assert not isinstance(statement.names, cst.ImportStar)
    first = statement.names[0].comma
    spaces = [statement.lpar.whitespace_after] if statement.lpar else []
    if isinstance(first, cst.Comma) and len(statement.names) > 1:
        spaces.append(first.whitespace_after)
    for space in spaces:
        if isinstance(space, cst.ParenthesizedWhitespace):
            return space
    return cst.SimpleWhitespace(" ")


def _by_habit(present: Sequence[T], new: T, habits: Iterable[Callable[[T], Any]]) -> int:
    """Where `new` belongs by the first habit that `present` keeps to; at the end where it keeps to none."""
    for key in habits:
        keys = [key(each) for each in present]
        if keys == sorted(keys):
            return bisect_right(keys, key(new))
    return len(present)


def _by_type(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest, as isort and ruff have it."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return kind, name.lower()


@dataclass(frozen=True)
class _Line:
    """An import statement in the module's head, or the one to come; the physical lines count from 1."""

    section: int
    module: str
    plain: bool
    first: int = 0
    last: int = 0

    def plain_first(self) -> tuple[bool, str]:
        return not self.plain, self.module.lower()

    def by_module(self) -> tuple[str, bool]:
        return self.module.lower(), not self.plain


def _new_line(source: Source, leading: Iterable[ast.stmt], module: str, text: str, own: Collection[str]) -> Splice:
    new = _Line(_section(module, own), module, plain=False)
    lines = [_line(node, own) for node in leading if isinstance(node, ast.Import | ast.ImportFrom)]
    blocks = _blocks(source, lines)
    for block in reversed(blocks):
        kin = [line for line in block if line.section == new.section]
        if kin:
            index = _by_habit(kin, new, (_Line.plain_first, _Line.by_module))
            return _after(source, kin[index - 1].last, text) if index else _before(source, kin[0].first, text)
    # A file that has the sections before and after in one block has no blank lines between sections.
    blank = not any(block[0].section < new.section < block[-1].section for block in blocks)
    earlier = [line.last for line in lines if line.section < new.section]
    if earlier:
        return _after(source, max(earlier), text, blank=blank)
    if lines:
        return _before(source, _with_comments(source, lines[0].first), text, blank=int(blank))
    return _first_import(source, text)


def _section(module: str, own: Collection[str], level: int = 0) -> int:
    top = module.partition(".")[0]
    if level:
        return _RELATIVE
    if top == "__future__":
        return _FUTURE
    if top in own:
        return _OWN
    return _STANDARD if top in sys.stdlib_module_names else _INSTALLED


def _line(node: ImportNode, own: Collection[str]) -> _Line:
    assert node.end_lineno is not None
    if isinstance(node, ast.Import):
        module = node.names[0].name
        return _Line(_section(module, own), module, plain=True, first=node.lineno, last=node.end_lineno)
    module = node.module or ""
    return _Line(_section(module, own, node.level), module, plain=False, first=node.lineno, last=node.end_lineno)


def _blocks(source: Source, lines: Iterable[_Line]) -> list[list[_Line]]:
    """The import statements with nothing but comments between them belong together."""
    blocks: list[list[_Line]] = []
    for line in lines:
        if blocks and all(_is_comment(between) for between in source.lines[blocks[-1][-1].last : line.first - 1]):
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return blocks


def _first_import(source: Source, text: str) -> Splice:
    first = source.tree.body[0]
    if ast.get_docstring(source.tree, clean=False) is not None:
        assert first.end_lineno is not None
        following = source.lines[first.end_lineno] if first.end_lineno < len(source.lines) else ""
        end = _line_end(source, first.end_lineno)
        return _after(source, first.end_lineno, text + end if following.strip() else text, blank=True)
    start, blank = first.lineno, 1
    if isinstance(first, _DEFINITIONS):
        start, blank = min([start, *(decorator.lineno for decorator in first.decorator_list)]), 2
    return _before(source, _with_comments(source, start), text, blank=blank)


def _with_comments(source: Source, line: int) -> int:
    """The first line of the comment right above `line`, unless that is the file's own head."""
    first = line
    while first > 1 and _is_comment(source.lines[first - 2]):
        first -= 1
    return line if first == 1 else first


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _before(source: Source, line: int, text: str, *, blank: int = 0) -> Splice:
    start = source.line_starts[line - 1]
    return start, start, text + _line_end(source, line) * (1 + blank)


def _after(source: Source, line: int, text: str, *, blank: bool = False) -> Splice:
    end = _line_end(source, line)
    if line == len(source.lines):
        return len(source.text), len(source.text), end * (1 + blank) + text
    start = source.line_starts[line]
    return start, start, end * blank + text + end


def _line_end(source: Source, line: int) -> str:
    match = NEWLINE.match(source.text, source.line_starts[line - 1] + len(source.lines[line - 1]))
    return match[0] if match else "\n"
