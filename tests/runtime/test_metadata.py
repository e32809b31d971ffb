"""What is at a path, and the reader of its metadata, which runs nothing whatever the bytes are."""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import pickle
import random
import shutil
import struct
import sys
import tempfile
import time
import types
from pathlib import Path
from typing import Any

import pytest

from keepcause.runtime.inert import _Quick, load
from keepcause.runtime.machine import InertError, Machine, Record
from keepcause.runtime.metadata import DAMAGED, WHOLE, inspect, step_of

SAVED = Path(__file__).parents[1] / "fixtures" / "checkpoints" / "step-7"
"""Written by torch 2.13.0 on two ranks, see tests/checkpoints/fixture.py."""
PICKLE = (SAVED / ".metadata").read_bytes()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(SAVED, tmp_path / "step-7"))


def test_a_whole_checkpoint() -> None:
    found = inspect(SAVED)
    assert (found.verdict, found.step) == (WHOLE, 7)
    assert {
        key: (saved.shape, saved.dtype, saved.bytes) for key, saved in found.keys.items() if saved.shape is not None
    } == {
        "net.l0.w": ((4, 3), "torch.float32", 48),
        "net.l0.b": ((4,), "torch.bfloat16", 8),
        "net.l10.w": ((2, 1, 1, 1, 300), "torch.float32", 2400),
        "net.l10.b": ((), "torch.float64", 8),
        "net.l2.mask": ((0, 2), "torch.bool", 0),
        "net.l2.f8": ((3,), "torch.float8_e5m2", 3),
        "moments.0": ((2,), "torch.int64", 16),
        "moments.1": ((70_000, 0), "torch.float32", 0),
    }
    assert found.keys["epoch"].shape is None
    assert found.keys["epoch"].bytes > 0
    assert [(file.name, file.damage, file.needed <= (file.size or 0)) for file in found.files] == [
        ("__0_0.distcp", "", True),
        ("__1_0.distcp", "", True),
    ]
    assert sum(file.pieces for file in found.files) == len(found.keys) + 1, "one tensor has two shards"


@pytest.mark.parametrize(
    ("path", "step"),
    [
        ("/ckpt/step-1200", 1200),
        ("step_1200", 1200),
        ("run/iter_0000100/model", 100),
        ("checkpoint-500/", 500),
        ("global_step7", 7),
        ("1234", 1234),
        ("/ckpt/latest", None),
        ("/data/llama3", None),
        ("/data/v2/last", None),
    ],
)
def test_the_step_is_in_the_path(path: str, step: int | None) -> None:
    assert step_of(path) == step


def test_damaged_shards(copy: Path) -> None:
    size = (copy / "__0_0.distcp").stat().st_size
    os.truncate(copy / "__0_0.distcp", 100)
    (copy / "__1_0.distcp").unlink()
    found = inspect(copy)
    assert found.verdict == "shards-damaged"
    assert found.verdict in DAMAGED
    assert [file.damage for file in found.files] == [f"cut: 100 of {found.files[0].needed:,} bytes", "missing"]
    assert found.files[0].needed <= size
    assert "__1_0.distcp (3 pieces) is missing" in found.text
    assert len(found.keys) == 9


def make(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"PK\x03\x04")
    return folder


def test_other_things_at_the_path(tmp_path: Path, copy: Path) -> None:
    def verdict(path: Path) -> str:
        found = inspect(path)
        assert found.advice
        assert found.text.startswith(str(found.path)) or str(path) in found.text
        return found.verdict

    assert verdict(tmp_path / "step-8") == "nothing"
    assert "step-7" in inspect(tmp_path / "step-8").advice
    assert "step-7" in inspect(tmp_path / "step-9" / "model").advice
    assert "step-7" in inspect(tmp_path / "stepp-7").advice
    (tmp_path / "link").symlink_to("gone")
    assert verdict(tmp_path / "link") == "not-a-directory"
    assert verdict(tmp_path) == "folder-of-checkpoints"
    assert str(copy) in inspect(tmp_path).advice
    (tmp_path / "empty").mkdir()
    assert verdict(tmp_path / "empty") == "empty"
    assert verdict(make(tmp_path / "a", "model.pt") / "model.pt") == "torch-file"
    assert verdict(tmp_path / "a") == "torch-files"
    (tmp_path / "old.pt").write_bytes(pickle.dumps({}, 2))
    assert verdict(tmp_path / "old.pt") == "torch-file"
    (tmp_path / "x.safetensors").write_bytes(struct.pack("<Q", 2) + b"{}")
    assert verdict(tmp_path / "x.safetensors") == "safetensors"
    (tmp_path / "notes.txt").write_text("notes")
    assert verdict(tmp_path / "notes.txt") == "file"
    assert verdict(make(tmp_path / "b", "__0_0.distcp", "__1_0.distcp")) == "unfinished"
    assert verdict(make(tmp_path / "c", ".metadata.tmp")) == "unfinished"
    assert verdict(make(tmp_path / "d", "__0.metadata", "__0_0.distcp")) == "rank-metadata"
    assert "no_dist" not in inspect(tmp_path / "d").advice, "every rank would read what the first one saved"
    assert verdict(make(tmp_path / "e", "model-00001-of-00002.safetensors", "config.json")) == "safetensors"
    assert verdict(make(tmp_path / "f", "latest", "global_step10/mp_rank_00_model_states.pt")) == "deepspeed"
    assert verdict(tmp_path / "f" / "global_step10") == "deepspeed"
    assert verdict(make(tmp_path / "g", "mp_rank_00/model_optim_rng.pt")) == "megatron"
    assert verdict(make(tmp_path / "h", "README")) == "unknown"
    assert verdict(copy / ".metadata") == "inside"
    assert verdict(copy / "__0_0.distcp") == "inside"
    assert verdict(Path("/dev/null")) == "not-a-directory"
    os.mkfifo(tmp_path / "b" / ".metadata")
    assert verdict(tmp_path / "b") == "metadata-foreign"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read(copy: Path) -> None:
    (copy / ".metadata").chmod(0)
    assert inspect(copy).verdict == "metadata-unreadable"
    copy.chmod(0)
    assert inspect(copy).verdict == "unreadable"
    copy.chmod(0o700)


def test_what_lies_in_a_folder_that_may_not_be_entered() -> None:
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        (Path(name) / "closed").mkdir(mode=0)
        os.seteuid(user or 65534)
        try:
            found = inspect(Path(name) / "closed" / "step-7")
        finally:
            os.seteuid(user)
    assert (found.verdict, found.step) == ("unreadable", 7)
    assert found.text.endswith("step-7 can't be read: Permission denied.")


def test_a_newer_format(copy: Path) -> None:
    changed = PICKLE.replace(b"\x8c\x051.0.0", b"\x8c\x052.0.0")
    assert changed != PICKLE
    (copy / ".metadata").write_bytes(changed)
    found = inspect(copy)
    assert found.verdict == "newer-format"
    assert "2.0.0" in found.text


def test_metadata_that_is_something_else(copy: Path) -> None:
    for content, verdict in {
        b"": "metadata-truncated",
        b"<html>": "metadata-foreign",
        PICKLE[:-1]: "metadata-truncated",
        pickle.dumps([1, 2]): "metadata-foreign",
        pickle.dumps({"state_dict_metadata": {}}): "metadata-foreign",
        pickle.dumps(len): "metadata-refused",
    }.items():
        (copy / ".metadata").write_bytes(content)
        found = inspect(copy)
        assert found.verdict == verdict, content
        assert found.verdict in DAMAGED
        assert not found.keys
    assert "builtins.len" in found.text
    assert "could run code" in found.advice


def test_limits(copy: Path) -> None:
    assert inspect(copy, size=100).verdict == "metadata-limit"
    assert inspect(copy, items=20).verdict == "metadata-limit"
    assert "load it with torch" in inspect(copy, items=20).advice, "no command takes other limits"
    assert inspect(copy, size=len(PICKLE)).verdict == WHOLE


def test_cut_at_every_byte() -> None:
    for end in range(len(PICKLE)):
        with pytest.raises(InertError) as caught:
            load(PICKLE[:end])
        assert caught.value.reason == "truncated", (end, caught.value)


def test_changed_at_every_byte(copy: Path) -> None:
    chance = random.Random(7)
    for at in range(len(PICKLE)):
        for value in (0xFF, chance.randrange(256)):
            data = PICKLE[:at] + bytes((value,)) + PICKLE[at + 1 :]
            with contextlib.suppress(InertError):
                load(data)
            if at % 20 == 0:
                (copy / ".metadata").write_bytes(data)
                assert inspect(copy).verdict in {WHOLE, *DAMAGED}


class Runs:
    """Pickles as a call."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.call = function, args

    def __reduce__(self) -> Any:
        return self.call


def op(*parts: bytes) -> bytes:
    return b"\x80\x04" + b"".join(parts) + b"."


def name(module: str, what: str) -> bytes:
    return b"c" + f"{module}\n{what}\n".encode()


RECORD = name("torch.distributed.checkpoint.metadata", "Metadata")
HOSTILE: dict[str, bytes] = {
    "os.system": pickle.dumps(Runs(os.system, "touch /tmp/keepcause-was-here")),
    "eval": pickle.dumps(Runs(eval, "1/0")),
    "exec by protocol 2": pickle.dumps(Runs(exec, "1/0"), 2),
    "getattr chain": pickle.dumps(Runs(getattr, Runs(__import__, "os"), "system")),
    "nested name": op(b"\x8c\x08builtins\x8c\x0beval.__doc__\x93"),
    "torch.load": op(name("torch", "load"), b"\x8c\x01x\x85R"),
    "torch dotted": op(b"\x8c\x05torch\x8c\x0dSize.__init__\x93"),
    "torch.ops": op(name("torch", "ops")),
    "a dtype called": op(name("torch", "float32"), b")R"),
    "a dtype made": op(name("torch", "float32"), b")\x81"),
    "a text called": op(b"\x8c\x0atorch.Size)R"),
    "instance of old": op(b"(", b"ios\nsystem\n"),
    "object of old": op(b"(", RECORD, b"o"),
    "extension": op(b"\x82\x01"),
    "extension, long": op(b"\x84\x01\x00\x00\x00"),
    "persistent": op(b"Pabc\n"),
    "persistent, binary": op(b"NQ"),
    "state on a name": op(RECORD, b"}b"),
    "state on a text": op(b"\x8c\x01a}b"),
    "state of a text": op(RECORD, b")\x81\x8c\x01ab"),
    "state with odd names": op(RECORD, b")\x81}K\x01K\x02sb"),
    "slots state": op(RECORD, b")\x81N}\x8c\x09__class__K\x01s\x86b"),
    "tuple as a key": op(b"}K\x01\x85K\x01s"),
    "list as a key": op(b"}]K\x01s"),
    "dict filled oddly": op(b"}(K\x01u"),
    "update of a list": op(b"](K\x01K\x02u"),
    "append to a dict": op(b"}K\x01a"),
    "size of texts": op(name("torch", "Size"), b"\x8c\x01a\x85\x85R"),
    "size of a size": op(name("torch", "Size"), b"K\x01R"),
    "size of nothing": op(name("torch", "Size"), b")R"),
    "new with odd arguments": op(RECORD, b"K\x01\x81"),
    "no such memo": op(b"h\x05"),
    "memo out of order": op(b"Nr\xff\xff\xff\xff"),
    "memo by text": op(b"Np99999999\n"),
    "empty stack": op(b""),
    "nothing to memoize": op(b"\x94"),
    "no mark": op(b"t"),
    "no pair": op(b"}(u" * 3),
    "not utf-8": op(b"\x8c\x02\xff\xff"),
    "frame beyond the end": op(b"\x95\xff\xff\xff\xff\xff\xff\xff\x7f"),
    "long text beyond the end": op(b"X\xff\xff\xff\xff"),
    "huge text": op(b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7f"),
    "huge bytes": op(b"\x8e\xff\xff\xff\xff\xff\xff\xff\x7f"),
    "huge bytearray": op(b"\x96\xff\xff\xff\xff\xff\xff\xff\x7f"),
    "huge number": op(b"\x8b\xff\xff\xff\x7f"),
    "number of 255 bytes": op(b"\x8a\xff" + bytes(255)),
    "number as text": op(b"L" + b"9" * 100_000 + b"L\n"),
    "marks in marks": op(b"(" * 1_000_000),
    "many values": op(b"N" * 1_000_000),
    "many dicts": op(b"}" * 1_000_000),
    "many numbers": op(b"K\x01" * 1_000_000),
    "many texts": op(b"\x8c\x01a" * 1_000_000),
    "many fetched": op(b"N\x94" + b"h\x00" * 1_000_000),
    "written once, fetched": op(RECORD, b"\x94h\x00)\x81\x94}\x94(h\x02."),
    "size written once, fetched": op(name("torch", "Size"), b"\x94h\x00K\x01\x85\x94\x85\x94R\x94h\x02"),
}


def refusal(data: bytes) -> InertError:
    """What reading it raises."""
    try:
        value = load(data)
    except InertError as error:
        return error
    raise AssertionError(f"it was read as {str(value)[:200]}")


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_pickles_are_refused(what: str, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: object, **options: object) -> None:
        raise AssertionError("something was imported or looked up")

    begin = time.process_time()
    with monkeypatch.context() as patched:
        patched.setattr(builtins, "__import__", never)
        caught = refusal(HOSTILE[what])
    assert time.process_time() - begin < 5
    assert len(str(caught)) < 500
    (copy / ".metadata").write_bytes(HOSTILE[what])
    assert inspect(copy).verdict in DAMAGED


def test_refused_names_are_named() -> None:
    with pytest.raises(InertError, match=r"names 'posix\.system'") as caught:
        load(HOSTILE["os.system"])
    assert (caught.value.reason, caught.value.name) == ("refused", "posix.system")
    with pytest.raises(InertError) as caught:
        load(b"ccodecs\n" + b"\x01" * 1000 + b"\n.")
    assert len(str(caught.value)) < 300


def test_what_is_nested_deeply_does_no_harm(copy: Path) -> None:
    for data in (op(b"N" + b"\x85" * 300_000), op(b"]" * 90_000 + b"a" * 89_999)):
        (copy / ".metadata").write_bytes(data)
        assert inspect(copy).verdict == "metadata-foreign"
    with pytest.raises(InertError, match="fills a dict"):
        load(op(b"}N" + b"\x85" * 300_000 + b"Ns"))


def test_memory_is_bounded_by_items() -> None:
    with pytest.raises(InertError) as caught:
        load(op(b"]" + b"}a" * 200_000), items=100_000)
    assert caught.value.reason == "limit"


def python_pickler(value: Any, protocol: int) -> bytes:
    stream = io.BytesIO()
    pickle._Pickler(stream, protocol).dump(value)
    return stream.getvalue()


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_plain_data_of_every_protocol(protocol: int) -> None:
    shared = ["same"]
    value: dict[Any, Any] = {
        "texts": ["", "a" * 300, "ünï\ud800", "b" * 70_000],
        "numbers": [0, 255, 256, 65_535, 65_536, -1, 2**31 - 1, 2**31, -(2**31), 2**40, 2**63, -(2**40)],
        "others": [None, True, False, 1.5, float("inf"), (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
        "nested": [{"a": {}}, [], [[]], shared, shared, list(range(3_000))],
        7: {str(number): number for number in range(2_500)},
    }
    for data in (pickle.dumps(value, protocol), python_pickler(value, protocol)):
        found = load(data)
        assert found == value
        assert found["nested"][3] is found["nested"][4]


def test_the_shortcuts_mean_what_the_single_steps_mean() -> None:
    assert flat(Machine(PICKLE, 10_000).run()) == flat(load(PICKLE))


def many_keys(monkeypatch: pytest.MonkeyPatch, keys: int) -> bytes:
    """A pickle as torch writes it, of classes that have only the names in common with torch's."""
    names = ("Metadata", "TensorStorageMetadata", "TensorProperties", "ChunkStorageMetadata", "MetadataIndex")
    classes: dict[str, Any] = {}
    torch = types.ModuleType("torch")
    monkeypatch.setitem(sys.modules, "torch", torch)
    for module, held in {"metadata": names, "filesystem": ("_StorageInfo",)}.items():
        full = f"torch.distributed.checkpoint.{module}"
        monkeypatch.setitem(sys.modules, full, types.ModuleType(full))
        for name in held:
            classes[name] = type(name, (), {"__module__": full})
            setattr(sys.modules[full], name, classes[name])
    size = type("Size", (tuple,), {"__module__": "torch", "__reduce__": lambda self: (type(self), (tuple(self),))})
    dtype = type("dtype", (), {"__module__": "torch", "__reduce__": lambda self: "float32"})()
    torch.Size, torch.float32 = size, dtype  # type: ignore[attr-defined]
    classes["TensorProperties"].__getstate__ = lambda self: tuple(vars(self).values())

    def made(kind: str, **state: Any) -> Any:
        value = classes[kind]()
        vars(value).update(state)
        return value

    chance, files = random.Random(keys), ("__0_0.distcp", "__1_0.distcp")
    saved, paths, stored = {}, {}, {}
    for number in range(keys):
        key = f"net.{number // 4}.part{number % 4}" + "x" * chance.choice((0, 0, 0, 300))
        shape = [chance.choice((2, 300, 70_000)) for _ in range(chance.choice((1, 1, 2, 5)))]
        chunk = made("ChunkStorageMetadata", offsets=size([0] * len(shape)), sizes=size(shape))
        flags = dict.fromkeys(("layout", "requires_grad", "memory_format", "pin_memory"), number % 5 == 0)
        properties = made("TensorProperties", dtype=dtype, **flags)
        saved[key] = made("TensorStorageMetadata", properties=properties, size=size(shape), chunks=[chunk])
        paths[key] = (key,) if number % 7 else ("net", number)
        index = made("MetadataIndex", fqn=key, index=chance.choice((None, 0, 0)), offset=size([0] * len(shape)))
        place = made("_StorageInfo", relative_path=files[number % 2], offset=number << 21, length=1 << 21)
        stored[index] = place
    return pickle.dumps(made("Metadata", state_dict_metadata=saved, planner_data=paths, storage_data=stored), 4)


def outcome(machine: Machine) -> Any:
    """What a machine makes of its pickle, or why it refuses it."""
    try:
        return flat(machine.run())
    except InertError as error:
        return error.reason, error.name


def test_the_shortcuts_mean_the_same_over_many_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    data = many_keys(monkeypatch, 2_500)
    whole = outcome(Machine(data, 1_000_000))
    assert len(whole[3][0]) == len(whole[3][2]) == 2_500
    quick = _Quick(data, 1_000_000)
    assert outcome(quick) == whole
    assert quick.stored, "the shortcut was taken"
    assert 0 < len(quick.tensors) < 1_000, "most tensors are like one before"


def test_the_shortcuts_refuse_what_the_single_steps_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    data = many_keys(monkeypatch, 24)
    chance = random.Random(8)
    for _ in range(1_500):
        changed = bytearray(data[: chance.choice((len(data), chance.randrange(len(data))))])
        for _ in range(chance.choice((0, 1, 1, 2))):
            changed[chance.randrange(len(changed))] = chance.choice((chance.randrange(256), *b"hjK.\x94\x8c("))
        quick = outcome(_Quick(bytes(changed), 10_000))
        # What pickle never fetches again the shortcuts don't keep, so they may refuse more, but never less.
        assert quick[0] == "refused" or quick == outcome(Machine(bytes(changed), 10_000)), bytes(changed)


def flat(value: Any) -> Any:
    """Return records as plain data."""
    if isinstance(value, Record):
        return value.kind, flat(value.args), value.names, flat(value.values)
    if isinstance(value, dict):
        return [(flat(key), flat(each)) for key, each in value.items()]
    return type(value)(map(flat, value)) if isinstance(value, list | tuple) else value


def test_reading_imports_no_torch() -> None:
    inspect(SAVED)
    assert "torch" not in sys.modules
