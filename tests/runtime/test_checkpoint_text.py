"""What a checkpoint error says, and how plain data keep what ranks found."""

from __future__ import annotations

import copy
import json
import pickle
import time
from typing import Any

import pytest

from keepcause import DCPLoadError, Findings, ShapeConflict, TypeConflict, from_json, to_json
from keepcause.runtime.findings import from_plain, grouped, to_plain
from keepcause.testing import assert_checkpoint_error_readable, assert_survives_pickle

FOUND = Findings(
    ranks=(4,),
    missing=("a.b", "a.c"),
    shape_conflicts=(ShapeConflict("s", (1,), ()),),
    dtype_conflicts=(TypeConflict("d", "torch.half", "torch.float"),),
    kind_conflicts=(TypeConflict("k.k", "an object of int", "a tensor"),),
    files=("__0_0.distcp is missing",),
    failure="OSError: x",
    time=5.0,
)


def ranks(*numbers: int, **found: Any) -> list[Findings]:
    return [Findings(ranks=(number,), **found) for number in numbers]


def test_findings_are_plain_and_back() -> None:
    for found in (FOUND, Findings(), Findings(ranks=(0, 1), missing=("a",))):
        plain = to_plain(found)
        assert from_plain(json.loads(json.dumps(plain))) == found
    assert to_plain(Findings()) == {}
    assert not Findings(ranks=(1,))
    assert FOUND


def test_equal_findings_are_grouped_and_the_earliest_failure_is_first() -> None:
    found = [
        *ranks(0, 2, 1, missing=("a",)),
        *ranks(5, failure="late", time=9.0),
        *ranks(6, failure="early", time=8.0),
        *ranks(7, failure="early", time=7.5),
        *ranks(3, failure="no time"),
    ]
    for order in (found, found[::-1]):
        assert [(each.ranks, each.failure, each.time) for each in grouped(order)] == [
            ((6, 7), "early", 7.5),
            ((5,), "late", 9.0),
            ((3,), "no time", 0.0),
            ((0, 1, 2), "", 0.0),
        ]


@pytest.mark.parametrize(
    "way",
    [
        lambda exc: pickle.loads(pickle.dumps(exc)),
        lambda exc: from_json(to_json(exc)),
        copy.copy,
        copy.deepcopy,
    ],
)
def test_the_findings_of_every_rank_arrive(way: Any) -> None:
    error = DCPLoadError(None, 3, "/c", findings=[FOUND, *ranks(7, 8, missing=("a.b",))], unexpected=["u"])
    arrived = way(error)
    assert str(arrived) == str(error)
    assert arrived.findings == error.findings
    assert [each.ranks for each in arrived.findings] == [(4,), (7, 8)]
    assert arrived.rank == 4
    assert arrived.missing == ["a.b", "a.c"]
    assert arrived.dtype_conflicts == list(FOUND.dtype_conflicts)
    assert arrived.kind_conflicts == list(FOUND.kind_conflicts)
    assert arrived.files == ["__0_0.distcp is missing"]
    assert arrived.verdict == ""
    assert_survives_pickle(error)


def test_the_whole_text() -> None:
    error = DCPLoadError(
        None,
        7,
        "/ckpt/step-7",
        unexpected=["net.l0.bias"],
        findings=[
            *ranks(*range(8), missing=("net.l0.b",), dtype_conflicts=(TypeConflict("w", "torch.half", "torch.float"),)),
            *ranks(8, 9, failure="OSError: disk", time=100.0),
            *ranks(12, failure="KeyError: 'x'", time=102.5),
        ],
    )
    head = "ranks 0-9, 12 (11): could not load the checkpoint of step 7 at /ckpt/step-7"
    assert str(error).splitlines() == [
        f"{head}: 1 missing, 1 unexpected, 1 with another dtype, 3 ranks failed",
        "  ranks 8-9 (2) failed first: OSError: disk",
        "  rank 12 failed, 2.5 s later: KeyError: 'x'",
        "  on ranks 0-7 (8):",
        "  missing, wanted by the model and not in the checkpoint (1):",
        "    net.l0.b (did you mean net.l0.bias?)",
        "  with another dtype (1):",
        "    w: expected torch.half, the checkpoint has torch.float",
        "  unexpected, in the checkpoint and not wanted by the model (1):",
        "    net.l0.bias",
    ]


def hints(missing: list[str], unexpected: list[str]) -> str:
    return str(DCPLoadError(0, 1, "/c", missing, unexpected))


@pytest.mark.parametrize(
    ("missing", "unexpected", "near"),
    [
        ("layers.0.attn.qproj.weight", "layers.0.attn.q_proj.weight", True),
        ("net.l0.w", "net.l0.weight", True),
        ("layer.0.attn.w", "layers.0.attn.w", True),
        ("net.w", "net.module.w", True),
        ("layers.3.w", "layers.4.w", False),
        ("layers.3.w", "layers.13.w", False),
        ("layers.0.q", "layers.1.w", False),
        ("encoder.norm", "decoder.head", False),
    ],
)
def test_near_names(missing: str, unexpected: str, near: bool) -> None:
    text = hints([missing, "quite.other"], [unexpected, "zzz"])
    assert (f"{missing} (did you mean {unexpected}?)" in text) is near
    assert text.count("did you mean") == near


def test_prefixes() -> None:
    names = [f"l{number}.w" for number in range(212)]
    more = [f"model.{name}" for name in names]
    assert 'all 212 missing names exist in the checkpoint with the prefix "model."' in hints(names, [*more, "x"])
    assert 'all 212 missing names exist in the checkpoint without the prefix "model."' in hints(more, [*names, "x"])
    assert 'the missing name exists in the checkpoint with the prefix "a.b."' in hints(["w"], ["a.b.w", "a.w.x"])
    assert "prefix" not in hints([*names, "other"], more)
    assert "prefix" not in hints(["w"], ["new"])


def test_hints_among_very_many_names_are_quick() -> None:
    missing = [f"model.layers.{number}.mlp.wight" for number in range(200_000)]
    unexpected = [f"model.layers.{number}.mlp.weight" for number in range(200_000)]
    begin = time.process_time()
    error = DCPLoadError(0, 1, "/c", missing, unexpected)
    assert time.process_time() - begin < 10
    assert "model.layers.0.mlp.wight (did you mean model.layers.0.mlp.weight?)" in str(error)
    assert len(str(error)) < 4_000


def test_the_text_is_bounded_whatever_is_in_it() -> None:
    long = "x" * 100_000
    found = [Findings((rank,), (f"{long}{rank}",), files=(long,), failure=long + str(rank)) for rank in range(500)]
    error = DCPLoadError(None, 1, "/c", unexpected=[long], findings=found)
    assert len(str(error)) <= 12_200
    assert "500 missing" in str(error)
    assert "494 more groups of ranks" in str(error)
    assert len(error.missing) == 500


def test_a_name_is_one_line() -> None:
    text = hints(["a\nb", "c\x1b[31m"], [])
    assert "    a\\nb" in text
    assert "\x1b" not in text


def test_lazy_names_are_listed() -> None:
    error = DCPLoadError(0, 1, "/c", (name for name in ("b", "a")), unexpected=map(str, (2, 1)))
    assert (error.missing, error.unexpected) == (["a", "b"], ["1", "2"])
    assert_checkpoint_error_readable(error)


def test_readable_errors() -> None:
    conflicts = [ShapeConflict(f"k{number:02}", (4, 9), (4, 8)) for number in range(20)]
    error = DCPLoadError(2, 1200, "/ckpt/step-1200", ["a"], (), conflicts)
    assert assert_checkpoint_error_readable(error) is error
    assert_checkpoint_error_readable(RuntimeError("rank 3 can't load step 7 from /ckpt/7: 2 keys missing: a, b"))
    assert_checkpoint_error_readable(RuntimeError("rank=3 step=7 s3://bucket/7"))


def named(text: str, **fields: Any) -> Exception:
    error = RuntimeError(text)
    vars(error).update(fields)
    return error


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (RuntimeError(f"rank 0, step 1, /c: missing {(each for each in [0])}"), "prints <generator object"),
        (RuntimeError(f"rank 0, step 1, /c: missing {map(str, ())}"), "prints <map object"),
        (RuntimeError("step 1, /c: missing a"), "names no rank"),
        (RuntimeError("rank 0, /c: missing a"), "names no step"),
        (RuntimeError("rank 0, step 1: missing a"), "names no path"),
        (named("rank 0, step 1, /other", path="/c"), "names no path"),
        (DCPLoadError(None, 1, "/c", ["a"]), "names no rank"),
        (DCPLoadError(0, None, "/c", ["a"]), "names no step"),
        (
            named("rank 0, step 1, /c: k has [4, 9]", shape_conflicts=[ShapeConflict("k", (4, 9), (4, 8))]),
            "both shapes of k",
        ),
    ],
)
def test_unreadable_errors(error: Exception, what: str) -> None:
    with pytest.raises(AssertionError, match=what):
        assert_checkpoint_error_readable(error)
