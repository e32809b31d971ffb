"""What a structured error is made of: its class, its fields, the edits for them; standard library only."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from keepcause.lint.binding import Kind
from keepcause.lint.chaining import cause
from keepcause.lint.finding import Edit, EditKind, Fix, Safety
from keepcause.lint.syntax import block, last_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from keepcause.lint.source import Source

_FOR_LOOPS = (ast.For, ast.AsyncFor)
_HEADERS = (*_FOR_LOOPS, ast.With, ast.AsyncWith)


def rank_field(node: ast.Raise, source: Source) -> str:
    """`rank=NAME` for the first rank that is certainly set where `node` raises; `local_rank=NAME` if it is a local one.

    Empty where there is none.
    """
    names = sorted(source.structured.rank_names, key=lambda name: name.endswith("local_rank"))
    name = first_set(names, node, source)
    field = "local_rank" if name.endswith("local_rank") else "rank"
    return f"{field}={name}" if name else ""


def first_set(names: Sequence[str], node: ast.Raise, source: Source) -> str:
    """The first of `names` (`name` or `self.name`) that certainly has a value where `node` raises; else empty."""
    return next((name for name in names if _is_set(name, node, source)), "")


def _is_set(name: str, node: ast.Raise, source: Source) -> bool:
    owner, _, attribute = name.rpartition(".")
    if owner:
        return _is_attribute_set(owner, attribute, node, source)
    bindings = source.scopes.lookup(name, source.scopes.of[node])
    if any(binding.kind is Kind.DELETION for binding in bindings):
        return False
    return any(binding.kind is Kind.PARAMETER or _comes_before(binding.node, node, source) for binding in bindings)


def _is_attribute_set(owner: str, attribute: str, node: ast.Raise, source: Source) -> bool:
    """Whether the function has used `owner.attribute` before, or the constructor of its class sets it."""
    function = source.function(node)
    bindings = source.scopes.lookup(owner, source.scopes.of[node])
    if function is None or [binding.kind for binding in bindings] != [Kind.PARAMETER]:
        return False
    for here in source.scopes.nodes.get(ast.Attribute, ()):
        match here:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if (name, attr) == (owner, attribute):
                inside = source.function(here)
                if inside is function and (source.statement(here) is node or _comes_before(here, node, source)):
                    return True
                if isinstance(here.ctx, ast.Store) and _constructs(inside, function, source):
                    return True
    return False


def _constructs(one: ast.AST | None, other: ast.AST, source: Source) -> bool:
    """Whether `one` is the constructor of the class whose method `other` is, and not `other` itself."""
    constructor = isinstance(one, ast.FunctionDef) and one.name == "__init__" and one is not other
    return constructor and one is not None and source.parents[one] is source.parents[other]


def _comes_before(place: ast.AST, node: ast.Raise, source: Source) -> bool:
    """Whether the statement of `place` has certainly run when `node` does."""
    around = [node, *source.ancestors(node)]
    statement = source.statement(place)
    if statement in around:
        # Only a header that binds: what is set in the block is a statement of its own.
        return isinstance(statement, _HEADERS) and any(up in statement.body for up in around)
    if isinstance(statement, _FOR_LOOPS):
        return False  # behind a loop its name holds the last item, or nothing
    statements = block(source.parents[statement], statement)
    return any(up in statements[statements.index(statement) + 1 :] for up in around)


def class_name(reference: str, node: ast.Raise, source: Source) -> tuple[str, tuple[Edit, ...]]:
    """What the class `module:Name` is called where `node` raises, and the edit that imports it, if it takes one."""
    found = imported_as(reference, node, source)
    if found is not None and found[1]:
        return found[0], ()
    return reference.partition(":")[2], (Edit(EditKind.ADD_IMPORT, source.span(node), (), reference),)


def imported_as(reference: str, at: ast.AST, source: Source) -> tuple[str, bool] | None:
    """What the module calls `module:Name` where `at` stands, and whether it is imported under no condition.

    None where it is not imported, or the name may mean something else there.
    """
    wanted, scopes = reference.replace(":", "."), source.scopes
    for local, bindings in scopes.module.bindings.items():
        imports = [b.node for b in bindings if b.kind is Kind.IMPORT and means(source, b.target, wanted)]
        if imports and len(imports) == len(bindings) and scopes.lookup(local, scopes.of[at]) is bindings:
            return local, any(source.parents[node] is source.tree for node in imports)
    return None


def means(source: Source, reference: str, wanted: str) -> bool:
    """Whether `reference`, as it is written in the file, is `wanted`; a relative one by the file's path."""
    level = len(reference) - len(reference.lstrip("."))
    if not level:
        return reference == wanted
    folders = source.path.replace("\\", "/").split("/")[:-level]
    return f".{'.'.join([*folders, reference[level:]])}".endswith(f".{wanted}")


def chained(node: ast.Raise, source: Source) -> tuple[Edit, ...]:
    """The edits that make `node` keep what its handler caught, where it has no cause and can safely get one."""
    caught = cause.caught_at(node, source)
    if caught is None or cause.has_cause(node):
        return ()
    fix = cause.chain(node, caught, source)
    return fix.edits if isinstance(fix, Fix) and fix.safety is Safety.SAFE else ()


def fix(node: ast.Raise, source: Source, title: str, change: Edit, imports: tuple[Edit, ...]) -> Fix:
    """The fix that makes `change`, what it has to import, and the chain to what was caught."""
    return Fix(Safety.UNSAFE, title, (change, *imports, *chained(node, source)))


def raises(node: ast.Raise, source: Source, *classes: str) -> bool:
    """Whether `node` raises a new exception of one of these builtin classes, by its own name."""
    func = node.exc.func if isinstance(node.exc, ast.Call) else None
    name = last_name(func) if func is not None else ""
    return func is not None and name in classes and source.scopes.qualified(func) == f"builtins.{name}"
