"""What is at a checkpoint path, told without torch and without running anything; imports inert, machine, plain."""

from __future__ import annotations

import contextlib
import gc
import math
import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .inert import load
from .machine import ITEMS, METADATA, PLACE, SIZE, InertError, Record
from .plain import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NAME: Final = ".metadata"
VERSION: Final = "1.0.0"
"""Version of the format that torch 2.13.0 writes; older ones write none."""
WHOLE: Final = "whole"
DAMAGED: Final = frozenset(
    {"shards-damaged", "unfinished", "metadata-truncated", "metadata-foreign", "metadata-refused", "metadata-limit"}
    | {"metadata-unreadable", "rank-metadata", "newer-format"}
)
"""Verdicts on what is, or was to be, a DCP checkpoint and can't be loaded as it is."""

_STEP: Final = re.compile(r"(?:.*(?:step|iter|iteration|ckpt|checkpoint|epoch)[-_=]?)?(\d{1,18})", re.IGNORECASE)
_NAME_IT: Final = "Name the checkpoint's directory."
_BITS: Final = re.compile(r"\D*(\d+)")


@dataclass(frozen=True, slots=True)
class SavedKey:
    """What a checkpoint holds under one key.

    Attributes:
        shape: the whole tensor's, over all its shards; None for an object that is no tensor.
        dtype: name such as "torch.bfloat16"; None for an object.
        bytes: of the whole tensor's values; for an object, of its pickle.
    """

    shape: tuple[int, ...] | None
    dtype: str | None
    bytes: int

    def __str__(self) -> str:
        return "object" if self.shape is None else f"{self.dtype} {list(self.shape)}"


@dataclass(frozen=True)
class ShardFile:
    """A file that the metadata refers to: bytes that it needs, bytes that it has (None: it is missing), and
    how many pieces of tensors, and objects, are in it."""

    name: str
    needed: int
    size: int | None
    pieces: int

    @classmethod
    def at(cls, folder: Path, name: str, needed: int, pieces: int) -> ShardFile:
        """Look at a file; it is not opened."""
        place = folder / name
        try:
            return cls(name, needed, place.stat().st_size if place.is_file() else None, pieces)
        except OSError:
            return cls(name, needed, None, pieces)

    @property
    def damage(self) -> str:
        """What is wrong with it, empty if nothing is."""
        if self.size is None:
            return "missing"
        return f"cut: {self.size:,} of {self.needed:,} bytes" if self.size < self.needed else ""


@dataclass(frozen=True)
class Found:
    """What is at a path.

    Attributes:
        path: as it was given.
        verdict: `whole`, or a code that says what it is instead or what is wrong with it.
        text: the same as a sentence. advice: what to do.
        step: the training step by the path's name, or None.
        keys: what is saved, by full name; empty where the metadata can't be read.
        files: the shard files that the metadata refers to.
    """

    path: str
    verdict: str
    text: str
    advice: str = ""
    step: int | None = None
    keys: Mapping[str, SavedKey] = field(default_factory=dict)
    files: tuple[ShardFile, ...] = ()

    @property
    def has_keys(self) -> bool:
        """Whether the metadata could be read, so that `keys` are all that there are."""
        return self.verdict in (WHOLE, "shards-damaged", "newer-format")

    def __str__(self) -> str:
        return f"{self.verdict}: {self.text}{f' {self.advice}' if self.advice else ''}"


def step_of(path: str | os.PathLike[str]) -> int | None:
    """Return the training step that the path's last part, or the one before it, names: `step-1200`, `iter_0000100`."""
    for part in list(reversed(Path(path).parts))[:2]:
        found = _STEP.fullmatch(part)
        if found:
            return int(found[1])
    return None


def inspect(path: str | os.PathLike[str], *, size: int = SIZE, items: int = ITEMS) -> Found:
    """Tell what is at a local path; reads the metadata and the sizes of the shard files, no tensor.

    Args:
        path: the checkpoint's directory.
        size, items: limits for the metadata, see `inert.load`.
    """
    name = os.fspath(path)
    try:
        verdict, text, advice, keys, files = _look(Path(name), size, items)
    except OSError as error:
        verdict, text, advice = "unreadable", f"{name} can't be read: {error.strerror}.", "Check its permissions."
        keys, files = {}, ()
    return Found(name, verdict, text, advice, step_of(name), keys, files)


_Looked = tuple[str, str, str, "dict[str, SavedKey]", "tuple[ShardFile, ...]"]


def _look(path: Path, size: int, items: int) -> _Looked:
    try:
        path.lstat()
    except PermissionError:
        raise  # something may be there
    except (OSError, ValueError):
        return *_nothing(path), {}, ()
    if not path.is_dir():
        return *_file(path), {}, ()
    entries = sorted(entry.name for entry in os.scandir(path))
    if NAME not in entries:
        return *_directory(path, entries), {}, ()
    where = path / NAME
    try:
        with paused_gc():
            root = load(_content(where, size), size=size, items=items)
            keys, shards, version = _saved(root)
    except InertError as error:
        return *_unread(where, error), {}, ()
    except OSError as error:
        text = f"{where} can't be read: {error.strerror}."
        return "metadata-unreadable", text, "Check its permissions.", {}, ()
    if version is not None and _newer(version):
        text = f"It was saved in version {version} of the format, newer than the {VERSION} known here."
        return "newer-format", text, "Update torch and keepcause, or save it with an older torch.", keys, ()
    files = tuple(ShardFile.at(path, *each) for each in shards)
    damaged = [each for each in files if each.damage]
    if damaged:
        first = "; ".join(f"{each.name} ({counted(each.pieces, 'piece')}) is {each.damage}" for each in damaged[:3])
        text = f"{len(damaged)} of {len(files)} shard files are damaged: {first}{'; ...' if damaged[3:] else ''}."
        return "shards-damaged", text, "Copy it again, or load an earlier step.", keys, files
    text = f"A DCP checkpoint of {counted(len(keys), 'key')} in {counted(len(files), 'shard file')}."
    return WHOLE, text, "", keys, files


def _content(path: Path, size: int) -> bytes:
    """Return the file's bytes, up to one more than the limit: enough to see that it is over it."""
    if not path.is_file():
        raise InertError("foreign", "it is no regular file")
    with path.open("rb") as stream:
        return stream.read(size + 1)


@contextlib.contextmanager
def paused_gc() -> Iterator[None]:
    """Keep the garbage collector from walking over millions of new objects again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _nothing(path: Path) -> tuple[str, str, str]:
    text = f"There is nothing at {path}."
    above = path.parent
    missing = path.name
    while not above.is_dir() and above != above.parent:
        missing, above = above.name, above.parent
    try:
        names = [entry.name for entry in os.scandir(above) if entry.is_dir()]
    except OSError:
        names = []
    if above != path.parent:
        text += f" Its nearest folder that exists is {above}."
    near = _nearest(missing, names)
    return "nothing", text, f"Near it {above} has {', '.join(near)}." if near else "Check the path."


def _nearest(name: str, names: list[str]) -> list[str]:
    """Return up to three names like this one; of names that end in numbers, those with the nearest."""
    number = re.search(r"\d+$", name)
    if number:
        stem = name[: number.start()]
        same = [(abs(int(each[len(stem) :]) - int(number[0])), each) for each in names if _numbered(each, stem)]
        if same:
            return [each for _, each in sorted(same)[:3]]
    import difflib  # only an error that has near names to offer needs it

    return difflib.get_close_matches(name, sorted(names)[:10_000], 3)


def _numbered(name: str, stem: str) -> bool:
    return name.startswith(stem) and name[len(stem) :].isdecimal() and len(name) < 40 + len(stem)


def _file(path: Path) -> tuple[str, str, str]:
    if not path.is_file():
        return "not-a-directory", f"{path} is neither a directory nor a regular file.", _NAME_IT
    with path.open("rb") as stream:
        head = stream.read(64)
    if path.name == NAME or path.suffix == ".distcp":
        return "inside", f"{path} is a file of a DCP checkpoint.", f"Name the directory: {path.parent}."
    if head[:4] == b"PK\x03\x04" and path.suffix != ".zip":
        text = f"{path} is a single file of torch.save, not a DCP directory."
        how = "torch.distributed.checkpoint.format_utils.torch_save_to_dcp"
        return "torch-file", text, f"Load it with torch.load, or convert it with {how}."
    if path.suffix == ".safetensors" or (head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 1 << 32):
        return "safetensors", f"{path} is a safetensors file, not a DCP directory.", "Load it with safetensors."
    if head[:2] in (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"):
        text = f"{path} is a pickle, such as an old torch.save wrote."
        return "torch-file", text, "Load it with torch.load, if you trust it."
    return "file", f"{path} is a file that is no checkpoint; it begins with {head[:16]!r}.", _NAME_IT


def _directory(path: Path, entries: list[str]) -> tuple[str, str, str]:
    """Tell what a directory without a `.metadata` is."""
    if not entries:
        return "empty", f"{path} is an empty directory.", "Nothing was saved there, or it was saved elsewhere."
    shards = [name for name in entries if name.endswith(".distcp")]
    ranks = [name for name in entries if re.fullmatch(r"__\d+\.metadata", name)]
    if ranks:
        text = f"{path} has {counted(len(ranks), 'rank-local metadata file')} ({', '.join(ranks[:3])}) and no {NAME}."
        return "rank-metadata", text, "Each rank saved its own, without collectives: load it on the same ranks."
    if shards or f"{NAME}.tmp" in entries:
        text = f"{path} has {counted(len(shards), 'shard file')} and no {NAME}: the save was not finished."
        return "unfinished", text, "The metadata is written last. Load an earlier step."
    if "latest" in entries or any(name.endswith("_states.pt") for name in entries):
        text = f"{path} has the layout of a DeepSpeed checkpoint."
        return "deepspeed", text, "Load it with DeepSpeed, or convert it."
    if any(re.match(r"mp_rank_\d+", name) for name in entries) or "latest_checkpointed_iteration.txt" in entries:
        text = f"{path} has the layout of a Megatron checkpoint."
        return "megatron", text, "Load it with Megatron, or name its iter_ folder."
    if any(name.endswith(".safetensors") for name in entries):
        text = f"{path} holds safetensors files."
        return "safetensors", text, "Load it with safetensors, or by DCP's HuggingFaceStorageReader."
    inside = [name for name in entries if (path / name / NAME).is_file()]
    if inside:
        inside.sort(key=lambda name: (step_of(name) or -1, name))
        text = f"{path} is no checkpoint itself; {len(inside)} of its folders are."
        return "folder-of-checkpoints", text, f"Name one of them, such as {path / inside[-1]}."
    if any(name.endswith((".pt", ".pth", ".bin")) for name in entries):
        return "torch-files", f"{path} holds files of torch.save, no DCP checkpoint.", "Load them with torch.load."
    shown = ", ".join(entries[:5]) + (", ..." if entries[5:] else "")
    return "unknown", f"{path} holds no {NAME} and no shard files, but {shown}.", "Check the path."


def _unread(path: Path, error: InertError) -> tuple[str, str, str]:
    text = f"{path}: {error}."
    if error.reason == "refused":
        return "metadata-refused", text, "Loading it with torch could run code. Don't, unless you know who wrote it."
    if error.reason == "limit":
        return "metadata-limit", text, "If you trust it, load it with torch, which has no such limit."
    return f"metadata-{error.reason}", text, "Copy it again, or load an earlier step."


def _newer(version: str) -> bool:
    return [int(part) for part in re.findall(r"\d+", version)[:1]] > [int(VERSION.partition(".")[0])]


_Shards = list[tuple[str, int, int]]


def _saved(root: Any) -> tuple[dict[str, SavedKey], _Shards, str | None]:
    """Turn the metadata's records into keys, shard files with bytes and keys, and the format's version.

    Raises:
        InertError: it is not the metadata of a checkpoint.
    """
    if not _is(root, "Metadata") or type(root.get("state_dict_metadata")) is not dict:
        raise InertError("foreign", "it holds something else than a checkpoint's metadata")
    keys, objects = _keys(root.get("state_dict_metadata"))
    files: dict[str, list[int]] = {}
    places = root.get("storage_data")
    for index, place in (places if type(places) is dict else {}).items():
        if type(place) is not Record or place.kind != PLACE:
            continue
        name, offset, length = (place.get(each) for each in ("relative_path", "offset", "length"))
        if not (type(name) is str and type(offset) is int and type(length) is int):
            raise InertError("foreign", "it says nothing of where the keys are stored")
        file = files.setdefault(name, [0, 0])
        file[0] = max(file[0], offset + length)
        file[1] += 1
        fqn = index.get("fqn") if type(index) is Record else index
        if type(fqn) is str and fqn in objects:
            objects[fqn] += length
    for key, size in objects.items():
        keys[key] = replace(keys[key], bytes=size)
    version = root.get("version")
    shards = [(name, needed, count) for name, (needed, count) in sorted(files.items())]
    return keys, shards, version if type(version) is str else None


def _keys(metadata: dict[Any, Any]) -> tuple[dict[str, SavedKey], dict[str, int]]:
    """Return the keys, and 0 for each of those whose bytes only the place tells where they are stored."""
    keys: dict[str, SavedKey] = {}
    objects: dict[str, int] = {}
    known: dict[int, SavedKey] = {}  # what is saved alike is one record
    for key, saved in metadata.items():
        name = str(key)
        found = known.get(id(saved)) or _key(name, saved)
        keys[name] = known[id(saved)] = found
        if found.bytes == 0 and 0 not in (found.shape or ()):
            objects[name] = 0
    return keys, objects


def _is(value: Any, name: str) -> bool:
    return type(value) is Record and value.kind == f"{METADATA}.{name}"


def _key(key: str, saved: Any) -> SavedKey:
    """Return what is saved, with 0 bytes where that can't be reckoned."""
    if _is(saved, "BytesStorageMetadata"):
        return SavedKey(None, None, 0)
    shape = saved.get("size") if _is(saved, "TensorStorageMetadata") else None
    if type(shape) is not tuple or not all(type(each) is int for each in shape):
        raise InertError("foreign", f"it says nothing of what is saved as {key[:200]!r}")
    properties = saved.get("properties")
    first = properties.values[0] if type(properties) is Record and properties.values else None
    dtype = str(first) if isinstance(first, str) else "unknown"
    return SavedKey(shape, dtype, math.prod(shape) * _width(dtype))


def _width(dtype: str) -> int:
    """Return the bytes of one value, 0 if the name doesn't tell."""
    name = dtype.removeprefix("torch.")
    if name == "bool":
        return 1
    bits = _BITS.match(name)
    return max(int(bits[1]) // 8, 1) if bits else 0
