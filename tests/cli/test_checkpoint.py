"""The command `checkpoint`: the tree, the files, the difference, JSON, exit codes."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    Keepcause = Callable[..., subprocess.CompletedProcess[str]]

SAVED = Path(__file__).parents[1] / "fixtures" / "checkpoints" / "step-7"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(SAVED, tmp_path / "step-7"))


def renamed(saved: Path, name: str, *changes: tuple[bytes, bytes]) -> Path:
    """A copy with other metadata."""
    copy = Path(shutil.copytree(saved, saved.with_name(name)))
    content = (copy / ".metadata").read_bytes()
    for old, new in changes:
        assert old in content
        assert len(old) == len(new)
        content = content.replace(old, new)
    (copy / ".metadata").write_bytes(content)
    return copy


def test_a_tree_with_sizes(keepcause: Keepcause, saved: Path) -> None:
    done = keepcause("checkpoint", "step-7")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[:2] == [
        "whole: A DCP checkpoint of 9 keys in 2 shard files.",
        "step 7, 9 keys, 3.7 kB",
    ]
    tree = lines[lines.index("keys:") + 1 : lines.index("shard files:")]
    assert tree[tree.index("  net  (2.5 kB in 6 keys)") :] == [
        "  net  (2.5 kB in 6 keys)",
        "    l0  (56 B in 2 keys)",
        "      b  torch.bfloat16 [4]  8 B",
        "      w  torch.float32 [4, 3]  48 B",
        "    l2  (3 B in 2 keys)",
        "      f8  torch.float8_e5m2 [3]  3 B",
        "      mask  torch.bool [0, 2]  0 B",
        "    l10  (2.4 kB in 2 keys)",
        "      b  torch.float64 []  8 B",
        "      w  torch.float32 [2, 1, 1, 1, 300]  2.4 kB",
    ]
    assert [line.split()[0] for line in lines[lines.index("shard files:") + 1 :]] == ["__0_0.distcp", "__1_0.distcp"]
    assert all(line.endswith(", whole") for line in lines[-2:])


def test_damage(keepcause: Keepcause, saved: Path) -> None:
    os.truncate(saved / "__0_0.distcp", 10)
    (saved / "__1_0.distcp").unlink()
    done = keepcause("checkpoint", saved)
    assert done.returncode == 1
    assert done.stdout.startswith(
        "shards-damaged: 2 of 2 shard files are damaged: __0_0.distcp (7 pieces) is cut: 10 of"
    )
    assert done.stdout.splitlines()[-1] == "  __1_0.distcp  3 pieces, missing"


def test_no_step_and_one_of_a_thing(keepcause: Keepcause, saved: Path) -> None:
    unnumbered = saved.rename(saved.with_name("last"))
    lines = keepcause("checkpoint", unnumbered).stdout.splitlines()
    assert lines[1] == "9 keys, 3.7 kB"
    (unnumbered / ".metadata").unlink()
    (unnumbered / "__1_0.distcp").unlink()
    told = keepcause("checkpoint", unnumbered).stdout
    assert "has 1 shard file and no .metadata" in told


@pytest.mark.parametrize(("name", "verdict"), [("step-8", "nothing"), (".", "folder-of-checkpoints")])
def test_no_checkpoint(keepcause: Keepcause, saved: Path, name: str, verdict: str) -> None:
    done = keepcause("checkpoint", name)
    assert done.returncode == 2
    assert done.stdout.startswith(f"{verdict}: ")
    assert json.loads(keepcause("checkpoint", name, "--json").stdout)["verdict"] == verdict


def test_json(keepcause: Keepcause, saved: Path) -> None:
    done = keepcause("checkpoint", "step-7", "--json")
    assert done.returncode == 0
    found: dict[str, Any] = json.loads(done.stdout)
    assert list(found) == ["verdict", "step", "path", "message", "keys", "files"]
    assert (found["verdict"], found["step"], len(found["keys"])) == ("whole", 7, 9)
    assert found["keys"]["net.l0.w"] == {"shape": [4, 3], "dtype": "torch.float32", "bytes": 48}
    assert found["keys"]["epoch"]["shape"] is None
    assert [(file["name"], file["damage"]) for file in found["files"]] == [("__0_0.distcp", ""), ("__1_0.distcp", "")]
    assert all(file["bytes"] >= file["needed"] > 0 for file in found["files"])


def test_against_another(keepcause: Keepcause, saved: Path) -> None:
    assert keepcause("checkpoint", "step-7", "--against", saved).returncode == 0
    other = renamed(saved, "step-9", (b"net.l2.f8", b"net.l2.f9"), (b"bfloat16", b"qint32xx"))
    done = keepcause("checkpoint", "step-7", "--against", other)
    assert done.returncode == 1
    assert "metadata-refused" not in done.stdout
    other_way = keepcause("checkpoint", other, "--against", "step-7")
    for text, missing, unexpected in ((done.stdout, "f9", "f8"), (other_way.stdout, "f8", "f9")):
        assert "1 missing, 1 unexpected, 1 with another dtype" in text
        assert f"    net.l2.{missing}\n" in text
        assert f"    net.l2.{unexpected}\n" in text
    found = json.loads(keepcause("checkpoint", "step-7", "--against", other, "--json").stdout)
    assert found["difference"] == {
        "missing": ["net.l2.f9"],
        "shape_conflicts": [],
        "dtype_conflicts": [["net.l0.b", "torch.qint32xx", "torch.bfloat16", "net.l0"]],
        "kind_conflicts": [],
        "unexpected": ["net.l2.f8"],
    }
    same = json.loads(keepcause("checkpoint", "step-7", "--against", "step-7", "--json").stdout)
    assert same["difference"] is None


def test_nothing_is_compared_with_what_has_no_keys(keepcause: Keepcause, saved: Path) -> None:
    (saved.parent / "half").mkdir()
    (saved.parent / "half" / ".metadata").write_bytes((saved / ".metadata").read_bytes()[:-9])
    for arguments, code in (
        (["step-7", "--against", "gone"], 2),
        (["gone", "--against", "step-7"], 2),
        (["gone", "--against", "gone"], 2),
        (["step-7", "--against", "half"], 1),
    ):
        done = keepcause("checkpoint", *arguments)
        assert done.returncode == code
        assert done.stdout.splitlines()[1].startswith(f"not compared with {arguments[-1]}, ")
        assert len(done.stdout.splitlines()) == 2
        assert "difference" not in json.loads(keepcause("checkpoint", *arguments, "--json").stdout)


def test_names_do_not_steer_the_terminal(keepcause: Keepcause, saved: Path) -> None:
    odd = renamed(saved, "odd", (b"net.l2.f8", b"net\x1b\n\r\xc2\x9b8"))
    for arguments in ([odd], [odd, "--against", saved], [saved, "--against", odd], [odd, "--json"]):
        done = keepcause("checkpoint", *arguments)
        assert done.returncode in (0, 1)
        assert not set(done.stdout) & {"\x1b", "\r", "\x9b"}
