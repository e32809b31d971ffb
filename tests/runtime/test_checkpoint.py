"""One checkpoint error that names everything, and the comparison that makes it."""

from __future__ import annotations

import copy
import itertools
import pickle
from pathlib import Path
from typing import Any

import pytest

from keepcause import DCPErrorAggregator, DCPLoadError, Findings, ShapeConflict, from_json, precheck_rank, to_json


def make() -> DCPLoadError:
    conflicts = [ShapeConflict("net.l0.w", (4, 9), (4, 8)), ShapeConflict("head.w", (2,), (), "head")]
    missing = (f"net.l{number}.b" for number in range(3))
    return DCPLoadError(3, 1200, Path("/ckpt/step-1200"), missing, {"old.w"}, conflicts, cause=OSError(2, "x"))


@pytest.mark.parametrize(
    "way",
    [
        lambda exc: exc,
        lambda exc: pickle.loads(pickle.dumps(exc)),
        lambda exc: from_json(to_json(exc)),
        copy.copy,
        copy.deepcopy,
    ],
)
def test_every_field_and_the_text_arrive(way: Any) -> None:
    error = way(make())
    assert (error.rank, error.checkpoint_step, error.path) == (3, 1200, "/ckpt/step-1200")
    assert error.missing == ["net.l0.b", "net.l1.b", "net.l2.b"]
    assert error.unexpected == ["old.w"]
    assert error.shape_conflicts == [
        ShapeConflict("head.w", (2,), (), "head"),
        ShapeConflict("net.l0.w", (4, 9), (4, 8), "net.l0"),
    ]
    assert type(error.__cause__) is FileNotFoundError
    text = str(error)
    head, _, counts = text.splitlines()[0].rpartition(": ")
    assert head == "rank 3: could not load the checkpoint of step 1200 at /ckpt/step-1200"
    assert counts == "3 missing, 1 unexpected, 2 with another shape"
    for part in ("net.l0.b", "net.l1.b", "net.l2.b", "old.w", "net.l0.w: expected [4, 9], the checkpoint has [4, 8]"):
        assert part in text


def test_a_step_that_is_not_known_is_not_shown() -> None:
    text = str(DCPLoadError(rank=0, path="/c", missing=["w"]))
    assert text.startswith("rank 0: could not load the checkpoint at /c: 1 missing\n")


def test_all_keys_are_in_the_fields_and_the_text_is_bounded() -> None:
    missing = [f"model.layers.{number}.self_attention.query.weight" for number in range(20_000)]
    error = pickle.loads(pickle.dumps(DCPLoadError(0, 1, "/c", missing)))
    assert error.missing == sorted(missing)
    assert len(str(error)) < 8_000
    assert "more in .missing" in str(error)
    assert "20000 missing" in str(error)


def test_texts_alone_are_kept() -> None:
    assert str(DCPLoadError("one text")) == "one text"
    assert str(DCPLoadError("Long error message", "two")) == "Long error message\ntwo"
    assert isinstance(DCPLoadError(None), RuntimeError)


def test_aggregation_does_not_depend_on_order() -> None:
    errors = [DCPLoadError(rank, 1, "/c", ["a"]) for rank in range(3)] + [DCPLoadError(7, 1, "/c", ["b"]), None]
    texts = set()
    for order in itertools.permutations(errors):
        aggregator = DCPErrorAggregator()
        for error in order:
            aggregator.collect(error)
        texts.add(aggregator.summary())
    (text,) = texts
    assert text.startswith("ranks 0-2 (3): could not load")
    assert "rank 7: could not load" in text
    assert text.count("could not load") == 2
    assert DCPErrorAggregator().summary() == ""


def test_the_same_error_of_all_ranks_is_said_once() -> None:
    error = DCPLoadError(None, 1, "/c", findings=[Findings((rank,), missing=("a",)) for rank in range(4)])
    aggregator = DCPErrorAggregator()
    for each in (error, copy.copy(error), DCPLoadError(9, 1, "/c", ["a"]), ValueError("other")):
        aggregator.collect(each)
    first, *_, last = aggregator.summary().splitlines()
    assert first == "ranks 0-3, 9 (5): could not load the checkpoint of step 1 at /c: 1 missing"
    assert last == "unknown rank: other"


class Tensor:
    """Has a shape."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape


def test_precheck_compares_shapes_and_things_with_shapes() -> None:
    saved = {"a": (1, 2), "b": [3], "c": Tensor(4), "e": ()}
    assert precheck_rank(saved, saved, 0, 1, "/c") is None
    error = precheck_rank({"a": Tensor(1, 2), "b": Tensor(4), "d": (1,), "e": ()}, saved, 2, 9, Path("/c"))
    assert error is not None
    assert (error.rank, error.checkpoint_step, error.path) == (2, 9, "/c")
    assert (error.missing, error.unexpected) == (["d"], ["c"])
    assert error.shape_conflicts == [ShapeConflict("b", (4,), (3,))]
