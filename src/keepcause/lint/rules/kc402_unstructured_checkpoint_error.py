"""KC402: an error of a checkpoint's load that has its keys in the text only."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from keepcause.lint.finding import Edit, EditKind, Fix
from keepcause.lint.rule import Rule, Where
from keepcause.lint.structured.errors import class_name, first_set, fix, raises, rank_field
from keepcause.lint.structured.first_key import FirstKey, first_key, shapes
from keepcause.lint.structured.keys import Keys, is_text, keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.finding import Finding
    from keepcause.lint.source import Source
    from keepcause.lint.unparsed.file import Unparsed

_PATHS = ("checkpoint_path", "ckpt_path", "checkpoint_dir", "ckpt_dir", "weights_path", "path", "filename", "self.path")
_STEPS = ("checkpoint_step", "step", "global_step", "iteration")
_LISTED = re.compile(r"missing|unexpected|mismatch|conflict")
_NO_KEYS = re.compile(r"_(?:step|rank|file|path|dir|folder)s?$")
_CHECKPOINT = re.compile(r"checkpoint|ckpt|state_dict|weights", re.IGNORECASE)
_LOADING = re.compile(r"(?<![a-zA-Z])(?<!after_)(?:re)?load|Load|LOAD|restore|Restore|RESTORE")
_WEIGHTS = re.compile(r"checkpoint|ckpt|state_?dict|weight", re.IGNORECASE)
_MENTIONED = (
    *("state_dict", "named_", "load", "read", "open", "missing", "unexpected", "mismatch", "conflict"),
    *("Load", "LOAD", "restore", "Restore", "RESTORE"),
)
_PLACES = {
    "rank": re.compile(r"rank", re.IGNORECASE),
    "step": re.compile(r"step|iteration|epoch", re.IGNORECASE),
    "path": re.compile(r"path|file|dir|folder|ur[il]\b", re.IGNORECASE),
}
_FIRST = "the error of a checkpoint that does not fit names the first key only"
_SHAPES = "list what differs, and give `shape_conflicts` a ShapeConflict(key, expected, actual) for each"
_AROUND = ("list", "sorted", "set", "tuple", "str", "repr", "map", "iter")
_OPPOSITE = {"missing": "unexpected", "unexpected": "missing"}
_MEANING = {
    "missing": "what the model has and the checkpoint lacks, so it goes to `missing`",
    "unexpected": "what the checkpoint has and the model lacks, so it goes to `unexpected`",
}


class UnstructuredCheckpointError(Rule):
    """An error of a checkpoint's load has its keys in the text only.

    ## What it does

    Finds errors whose text lists keys that a model and a checkpoint do not share: the difference of two collections of
    which one comes from a model (`state_dict()`, `named_parameters()`) and the other from a file (`torch.load`,
    `load_file` and their like), or what `load_state_dict` returns. Also errors that end a loop over the keys at its
    first odd one, and in functions that load weights, by their names, those that show two shapes. The finding says
    which of rank, step and path the text does not show.

    ## Why it is bad

    A text is cut, wrapped and translated on its way; which key was missing on which rank can't be asked of it. Where it
    names the first key only, each attempt to load finds the next. A `DCPLoadError` holds every key as a field, and the
    errors of all ranks can be put together.

    ## Bad

    ```python
    import torch


    def load_weights(model, path, rank):
        saved = torch.load(path)
        missing = [key for key in model.state_dict() if key not in saved]
        if missing:
            raise RuntimeError(f"{path} lacks {missing}")
    ```

    ## Good

    ```python
    import torch
    from keepcause import DCPLoadError


    def load_weights(model, path, rank):
        saved = torch.load(path)
        missing = [key for key in model.state_dict() if key not in saved]
        if missing:
            raise DCPLoadError(rank=rank, path=path, missing=list(missing))
    ```

    ## Fix safety

    The error's text is another one afterwards, so the fix is unsafe; `keepcause fix --structured` makes it. Which field
    keys go to is decided by what they were compared with, never by the name of the variable that holds them. There is
    no fix where that can't be seen, where shapes are listed, where the text shows something that the new error has no
    field for, and where another class than `RuntimeError` or `Exception` is raised, which callers may catch. A loop
    has to do nothing but the check, over what can be gone through twice: then its first raise lists all of the keys.

    ## Options

    `checkpoint-error`, such as `"mypkg.errors:LoadError"`, is the class to raise where a project keeps its own.
    `rank-names` are the names that hold a worker's rank.
    """

    code = "KC402"
    name = "unstructured-checkpoint-error"
    message = "the error of a checkpoint that does not fit has its keys in the text only"
    where = Where.EVERYWHERE
    on_by_default = False
    structured = True
    fixes = "unsafe"
    nodes = (ast.Raise,)

    def glance(self, file: Unparsed) -> bool:
        """A file that neither compares keys nor loads a model's state, nor lists what is missing, has none."""
        return any(name.encode() in file.code for name in _MENTIONED)

    def check(self, node: ast.AST, source: Source) -> Iterator[Finding]:
        """Yield a finding for an error that lists keys of a checkpoint."""
        assert isinstance(node, ast.Raise)
        if not isinstance(node.exc, ast.Call) or source.scopes.qualified(node.exc.func) is None:
            return
        shown = [_Shown(value, base, keys(base, source)) for value, base in _values(node.exc)]
        listed = [each for each in shown if not _NO_KEYS.search(each.name)]
        if any(each.keys is not None and (each.keys.field or each.keys.unknown) for each in listed) or (
            _is_about_checkpoints(node, source)
            and any(_LISTED.search(each.name) and not is_text(each.base, source) for each in listed)
        ):
            finding = self.found(node, source, _fix(node, shown, source), f"{self.message}{_lacks(shown, source)}")
            yield replace(finding, note="; ".join(_misnamed(shown)))
        elif (first := first_key(node, source)) is not None and _is_of_a_load(node, first, source):
            if first.names & _names(node.exc.args):
                message = f"{_FIRST}{_lacks(shown, source)}"
                yield self.found(node, source, _fix_of_first(node, first, shown, source), message)
        elif _is_loading(node, source) and len({ast.unparse(each) for each in shapes(node.exc)}) > 1:
            yield self.found(node, source, _SHAPES, f"{self.message}{_lacks(shown, source)}")


@dataclass(frozen=True)
class _Shown:
    """A value that the text shows: as it is written, without what is around it, and which keys it is, if any."""

    value: ast.expr
    base: ast.expr
    keys: Keys | None

    @property
    def name(self) -> str:
        """The name of the variable that holds it."""
        return ast.unparse(self.base) if isinstance(self.base, ast.Name | ast.Attribute) else ""


def _values(call: ast.Call) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What the arguments' text shows, with the value inside of `list()`, `len()`, `join` and their like."""
    pending: list[ast.expr] = [*call.args]
    while pending:
        match pending.pop():
            case ast.JoinedStr(values=parts):
                pending += [part.value for part in parts if isinstance(part, ast.FormattedValue)]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                pending += [left, right]
            case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod(), right=right):
                pending += right.elts if isinstance(right, ast.Tuple) else [right]
            case ast.Call(
                func=ast.Attribute(value=ast.Constant(value=str()), attr="format"), args=args, keywords=named
            ):
                pending += [*args, *(keyword.value for keyword in named)]
            case ast.Constant():
                continue
            case value:
                yield value, _base(value)


def _names(nodes: list[ast.expr]) -> set[str]:
    """The names of what `nodes` show, but of that whose shape they show."""
    shaped = {each.value for node in nodes for each in shapes(node)}
    found = (each for node in nodes for each in ast.walk(node) if each not in shaped)
    return {each.id for each in found if isinstance(each, ast.Name)}


def _base(value: ast.expr) -> ast.expr:
    while True:
        match value:
            case ast.Call(func=ast.Name(id="map"), args=[_, inner]):
                value = inner
            case ast.Call(func=ast.Name(id=name), args=[inner]) if name in (*_AROUND, "len"):
                value = inner
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="join"), args=[inner]):
                value = inner
            case (
                ast.GeneratorExp(generators=[ast.comprehension(iter=inner, ifs=[])])
                | ast.ListComp(generators=[ast.comprehension(iter=inner, ifs=[])])
            ):
                value = inner
            case ast.Subscript(value=inner, slice=ast.Slice()):
                value = inner
            case _:
                return value


def _is_about_checkpoints(node: ast.Raise, source: Source) -> bool:
    return _CHECKPOINT.search(source.scopes.of[node].function.qualname) is not None


def _is_loading(node: ast.Raise, source: Source) -> bool:
    """Whether a function that loads weights, by its name, raises what is no assertion about itself."""
    name = source.scopes.of[node].function.qualname
    return (
        _LOADING.search(name) is not None
        and _WEIGHTS.search(name) is not None
        and not raises(node, source, "AssertionError", "NotImplementedError", "TypeError")
    )


def _lacks(shown: list[_Shown], source: Source) -> str:
    """What the error does not say of where it happened."""
    said = " ".join(ast.unparse(each.value) for each in shown)
    ranks = [name for name in source.structured.rank_names if name in said]
    lacking = [what for what, named in _PLACES.items() if not (named.search(said) or (what == "rank" and ranks))]
    *most, last = lacking or [""]
    return f", and no {', '.join(most)} or {last}" if most else f", and no {last}" if last else ""


def _is_of_a_load(node: ast.Raise, first: FirstKey, source: Source) -> bool:
    return bool(first.keys and first.keys.field) or _is_loading(node, source)


def _misnamed(shown: list[_Shown]) -> Iterator[str]:
    """What is held under the opposite name."""
    for each in shown:
        opposite = _OPPOSITE.get(each.keys.field, "") if each.keys else ""
        if each.keys and opposite and opposite in each.name and each.keys.field not in each.name:
            yield f"`{each.name}` (line {each.keys.line}) holds {_MEANING[each.keys.field]}"


def _fix(node: ast.Raise, shown: list[_Shown], source: Source) -> Fix | str:
    fields: dict[str, str] = {}
    for each in shown:
        if each.keys is not None and each.keys.field:
            if fields.setdefault(each.keys.field, _listed(each.base, source)) != _listed(each.base, source):
                return f"it lists two collections of {each.keys.field} keys"
        elif reason := _unknown(each, source):
            return reason
    return _structured(node, fields, source)


def _fix_of_first(node: ast.Raise, first: FirstKey, shown: list[_Shown], source: Source) -> Fix | str:
    if first.keys is None:
        return _SHAPES
    if not first.all_of_them:
        return first.reason
    if places := first.names & {*_PATHS, *_STEPS, *source.structured.rank_names}:
        return f"by its name, `{min(places)}` is no key"
    for each in shown:
        if not _names([each.base]) <= first.names and (reason := _unknown(each, source)):
            return reason
    return _structured(node, {first.keys.field: first.all_of_them}, source)


def _structured(node: ast.Raise, fields: dict[str, str], source: Source) -> Fix | str:
    """The fix that raises the structured error with these fields' expressions, and what else the scope has."""
    if not raises(node, source, "RuntimeError", "Exception"):
        return "callers may catch the class that is raised, and the new one is a `RuntimeError`"
    of_rank, _, rank = rank_field(node, source).partition("=")
    name, imports = class_name(source.structured.checkpoint_error, node, source)
    given = {
        "rank": rank if of_rank == "rank" else "",
        "checkpoint_step": first_set(_STEPS, node, source),
        "path": first_set(_PATHS, node, source),
        **{field: fields.get(field, "") for field in _MEANING},
    }
    arguments = ", ".join(f"{field}={value}" for field, value in given.items() if value)
    change = Edit(EditKind.REPLACE_CALL, source.span(node), ("exc",), f"{name}({arguments})")
    return fix(node, source, f"Raise `{name}` with the keys", change, imports)


def _unknown(shown: _Shown, source: Source) -> str:
    """Why the new error could not show a value that the text shows; empty where it can."""
    if shown.keys is not None and shown.keys.unknown:
        return shown.keys.unknown
    text = ast.unparse(shown.base)
    if _LISTED.search(shown.name):
        if re.search(r"mismatch|conflict|shape", shown.name):
            return f"`{text}` may list shapes: give `shape_conflicts` a ShapeConflict(key, expected, actual) for each"
        return f"it can't be seen what the keys in `{text}` were compared with"
    counted = isinstance(shown.value, ast.Call) and ast.unparse(shown.value.func) == "len"
    root = shown.base
    while isinstance(root, ast.Attribute) and ast.unparse(root) not in _PATHS:
        root = root.value
    known = (*_PATHS, *_STEPS, *source.structured.rank_names)
    return "" if counted or ast.unparse(root) in known else f"its text shows `{text}`, for which there is no field"


def _listed(base: ast.expr, source: Source) -> str:
    """The keys as a list of their own."""
    if isinstance(base, ast.ListComp):
        return ast.unparse(base)
    text = ast.unparse(base)
    return f"list({text})" if source.scopes.is_builtin("list", base) else f"[*{text}]"
