"""What an exception and its causes are after a trip through pickle, JSON, copy and deepcopy."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import subprocess
import sys
import threading
import time
import traceback
import tracemalloc
import weakref
from pathlib import Path
from typing import Any

import pytest
from faults import CAUSES, MESSAGE, RANK, BrokenInitError, guarded_start
from hypothesis import given
from hypothesis import strategies as st

from keepcause import StandIn, WorkerFailure, WorkerInitError, WorkersFailed, from_json, root_of, to_json
from keepcause.runtime import describe
from keepcause.runtime.chain import dump, load


def raised(cause: BaseException) -> WorkerInitError:
    """Return a WorkerInitError that was raised because of that, which was raised too."""
    try:
        try:
            raise cause
        except BaseException as exc:
            raise WorkerInitError("could not start", rank=RANK, cause=exc) from exc
    except WorkerInitError as error:
        return error


def caught(function: Any, *args: Any) -> BaseException:
    """Return what the call raises."""
    try:
        function(*args)
    except BaseException as exc:
        return exc
    raise AssertionError("nothing was raised")


def trip(exc: BaseException) -> Any:
    """Return the exception after a trip through pickle."""
    return pickle.loads(pickle.dumps(exc))


def printed(exc: BaseException) -> str:
    """Return what an ordinary traceback prints."""
    return "".join(traceback.format_exception(exc))


@pytest.mark.parametrize("way", [trip, lambda exc: trip(trip(exc)), lambda exc: from_json(to_json(exc))])
@pytest.mark.parametrize("cause", CAUSES)
def test_every_cause_arrives(cause: str, way: Any) -> None:
    error = way(caught(guarded_start, cause))
    assert type(error) is WorkerInitError
    assert (error.rank, error.phase, error.context["rank"]) == (3, "load weights", 3)
    assert isinstance(error.root, CAUSES[cause][0])
    assert isinstance(error.root, StandIn) == (cause == "class unknown to the parent")
    assert [type(link).__name__ for link in describe.line_of(error)][:2] == ["WorkerInitError", "KeyError"]
    first_line = str(error).splitlines()[0]
    assert first_line.startswith("rank 3, load weights: ")
    assert type(error.root).__name__ in first_line
    assert MESSAGE in first_line
    text = printed(error)
    assert MESSAGE in text
    assert "in explode" in text
    assert "raise CAUSES[cause][1]()" in text
    assert text.count("in explode") == 1


def test_attributes_come_back_without_init() -> None:
    root = trip(raised(BrokenInitError(5, "x"))).root
    assert (root.code, root.detail, root.args, str(root)) == (5, "x", ("x (5)",), "x (5)")


BUILTINS: list[tuple[BaseException, list[str]]] = [
    (OSError(2, "no such file", "a.bin", None, "b.bin"), ["errno", "strerror", "filename", "filename2"]),
    (ImportError("no torch", name="torch", path="/x"), ["name", "path", "msg"]),
    (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad start"), ["encoding", "object", "start", "end", "reason"]),
    (SystemExit(7), ["code"]),
    (StopIteration(4), ["value"]),
    (SyntaxError("bad", ("a.py", 3, 2, "x y", 3, 4)), ["msg", "filename", "lineno", "offset", "text"]),
    (KeyError(("a", 1)), []),
    (AssertionError(), []),
    (MemoryError("out"), []),
    (ValueError("lone surrogate \udc80", 1.5, None, True, ["a", {"b": 2}]), []),
]


@pytest.mark.parametrize(("exc", "names"), BUILTINS, ids=lambda each: type(each).__name__)
def test_builtin_exceptions_are_the_same(exc: BaseException, names: list[str]) -> None:
    root = trip(raised(exc)).root
    assert (type(root), root.args, str(root)) == (type(exc), exc.args, str(exc))
    assert [getattr(root, name) for name in names] == [getattr(exc, name) for name in names]


class SlotsError(ValueError):
    """Keeps its text in a slot, which pickle forgets."""

    __slots__ = ("where",)

    def __init__(self, where: str) -> None:
        self.where = where

    def __str__(self) -> str:
        return f"at {self.where}"


class ReducedError(ValueError):
    """Pickles by its own rule."""

    def __init__(self, *, where: str) -> None:
        super().__init__(f"at {where}")
        self.where = where

    def __reduce__(self) -> Any:
        return _reduced, (self.where,)


def _reduced(where: str) -> ReducedError:
    return ReducedError(where=where)


class NewError(ValueError):
    """Has a `__new__` of its own."""

    def __new__(cls, first: str, second: str) -> NewError:
        return super().__new__(cls, first, second)

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


class PropertyError(ValueError):
    """Has a property by the name of an entry of its dict."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        vars(self)["where"] = text

    @property
    def where(self) -> str:
        return "from the property"


@pytest.mark.parametrize(
    "exc", [SlotsError("a"), ReducedError(where="a"), NewError("a", "b"), PropertyError("a"), ValueError({1: {2}})]
)
def test_unusual_classes_come_back_whole(exc: BaseException) -> None:
    root = trip(raised(exc)).root
    assert (type(root), str(root), vars(root)) == (type(exc), str(exc), vars(exc) | vars(root))
    assert getattr(root, "where", None) == getattr(exc, "where", None)


class HostileError(ValueError):
    """Raises wherever it is looked at; subclasses choose where."""

    armed = False


def hostile(name: str, problem: type[BaseException] = RuntimeError, kind: Any = lambda trap: trap) -> Any:
    def trap(*args: Any, **kwargs: Any) -> Any:
        raise problem("looked at")

    cls = type(f"Hostile{name.strip('_').title()}{problem.__name__}", (HostileError,), {name: kind(trap)})
    cls.__module__ = __name__
    globals()[cls.__name__] = cls
    return cls


HOSTILE = [
    hostile(name)
    for name in ("__str__", "__repr__", "__reduce__", "__reduce_ex__", "__setattr__", "__eq__", "__getstate__")
] + [
    *(hostile(name) for name in ("__getattribute__", "__hash__", "__bool__", "__setstate__")),
    *(hostile(name, SystemExit) for name in ("__str__", "__reduce_ex__", "__getattribute__", "__eq__", "__setstate__")),
    *(hostile(name, problem, property) for name in ("__class__", "__dict__") for problem in (TypeError, GeneratorExit)),
]


COPIES = [copy.copy, copy.deepcopy]


@pytest.mark.parametrize("cls", HOSTILE)
@pytest.mark.parametrize("way", [trip, lambda exc: from_json(to_json(exc)), *COPIES])
def test_hostile_classes_neither_raise_nor_vanish(cls: type[HostileError], way: Any) -> None:
    error = way(raised(cls("the message")))
    assert issubclass(type(error.__cause__), HostileError)
    assert cls.__name__ in str(error)
    if (
        not {"__str__", "__bool__", "__getattribute__", "__class__"} & vars(cls).keys()
    ):  # what a traceback itself asks for
        assert "the message" in printed(error)


class HidingMeta(type):
    """Won't tell the names of its classes."""

    def __getattribute__(cls, name: str) -> Any:
        if name in ("__module__", "__qualname__", "__str__", "__reduce__", "__mro__", "__dict__"):
            raise SystemExit("looked at")
        return super().__getattribute__(name)

    def __hash__(cls) -> int:
        raise SystemExit("looked at")

    def __eq__(cls, other: object) -> bool:
        raise SystemExit("looked at")


class HidingError(ValueError, metaclass=HidingMeta):
    """Has a hostile metaclass."""


@pytest.mark.parametrize("way", [trip, lambda exc: from_json(to_json(exc)), *COPIES])
def test_a_hostile_metaclass_neither_raises_nor_hides_the_rest(way: Any) -> None:
    error = way(raised(HidingError("the message")))
    assert isinstance(error.__cause__, ValueError)
    assert "HidingError" in str(error)


def test_a_stand_in_says_what_it_stands_for() -> None:
    root = trip(caught(guarded_start, "class unknown to the parent")).root
    assert root.type_name == "faults._local_class.<locals>.LocalError"
    assert type(root).__name__ == "LocalError"
    assert root.bases == []
    assert "not an exception class" in root.why
    assert isinstance(root, LookupError)
    assert printed(root).startswith(f"faults._local_class.<locals>.LocalError: {MESSAGE}")


def test_a_stand_in_becomes_the_real_thing_where_its_class_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    data = dump(raised(BrokenInitError(5, "x")))
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, "faults")
        middle = load(data)
    assert isinstance(root_of(middle), StandIn)
    root = root_of(load(dump(middle)))
    assert type(root) is BrokenInitError
    assert vars(root)["detail"] == "x"


def test_nothing_is_imported_on_arrival() -> None:
    error = raised(BrokenInitError(5, "x"))
    data = dump(error).replace(b"faults", b"this__")
    assert "this__" not in sys.modules
    assert isinstance(root_of(load(data)), StandIn)
    plain = dump(raised(ValueError(Path("a"))))
    sys.modules.pop("antigravity", None)
    load(plain.replace(b"pathlib", b"antigra"))
    assert "antigravity" not in sys.modules


def test_transports_that_set_the_cause_do_not_cut_the_chain() -> None:
    class RemoteTraceback(Exception):
        pass

    error = trip(raised(ValueError(MESSAGE)))
    error.__cause__ = RemoteTraceback("text")
    assert type(error.root) is ValueError
    error.__cause__ = KeyError(MESSAGE)
    assert type(root_of(error)) is KeyError


def test_copies_share_the_chain_and_keep_the_traceback() -> None:
    error = raised(ValueError(MESSAGE))
    error.context["list"] = [1]
    for twin in (copy.copy(error), copy.deepcopy(error)):
        assert type(twin) is WorkerInitError
        assert twin.root is error.root
        assert printed(twin) == printed(error)
        assert vars(twin) == vars(error)
    copy.deepcopy(error).context["list"].append(2)
    assert error.context["list"] == [1]


def test_notes_and_suppression_arrive_once() -> None:
    inner = ValueError("inner")
    inner.add_note("first note")
    outer = KeyError("outer")
    outer.__context__, outer.__suppress_context__ = inner, True
    error = trip(trip(raised(outer)))
    assert error.root is error.__cause__
    assert type(error.root.__context__) is ValueError
    assert error.root.__context__.__notes__ == ["first note"]
    assert "first note" not in printed(error)
    error.root.__suppress_context__ = False
    assert printed(error).count("first note") == 1


def test_frames_of_both_hops_are_kept() -> None:
    first = trip(raised(ValueError(MESSAGE)))

    def reraise() -> None:
        raise first.root

    second = trip(raised(caught(reraise)))
    text = printed(second)
    assert "in raised" in text
    assert "in test_frames_of_both_hops_are_kept.<locals>.reraise" in text


def test_many_and_odd_notes_are_bounded() -> None:
    exc = ValueError(MESSAGE)
    exc.__notes__ = [f"note {number} " + "x" * 20_000 for number in range(100)]
    notes = trip(raised(exc)).root.__notes__
    assert [note.split(" x")[0] for note in notes[:-1]] == [f"note {number}" for number in (0, 1, 2, 3, 96, 97, 98, 99)]
    assert all(len(note) < 9_000 for note in notes)
    exc.__notes__ = 5  # type: ignore[assignment]
    assert trip(raised(exc)).root.__notes__[0] == "5"


def test_long_names_are_cut() -> None:
    cls = type("Long" * 500, (ValueError,), {})
    names: dict[str, Any] = {}
    exec(f"def {'f' * 500}(exc): raise exc", names)
    data = dump(raised(caught(names["f" * 500], cls(MESSAGE))))
    assert len(data) < 4_000
    assert isinstance(root_of(load(data)), ValueError)


def test_a_syntax_error_of_an_unknown_class_keeps_its_text() -> None:
    class LocalSyntaxError(SyntaxError):
        pass

    error = trip(raised(LocalSyntaxError("bad", ("a.py", 3, 2, "x y"))))
    assert "bad (a.py, line 3)" in printed(error)


def test_cycles_end() -> None:
    one, two = ValueError("one"), KeyError("two")
    one.__cause__, two.__cause__ = two, one
    error = trip(raised(one))
    assert error.root.__cause__ is error.__cause__
    assert "one" in printed(error)
    one.__cause__ = one
    assert type(trip(raised(one)).root) is ValueError


def test_a_long_chain_keeps_its_root() -> None:
    link: BaseException = ValueError("the root")
    for number in range(500):
        upper = RuntimeError(f"link {number}")
        upper.__cause__ = link
        link = upper
    error = trip(raised(link))
    assert str(error.root) == "the root"
    assert len(describe.line_of(error)) == describe.LINKS
    assert "exceptions between this one and the one before were left out" in printed(error)


def test_groups_are_rebuilt() -> None:
    inner = BaseExceptionGroup("inner", [BrokenInitError(1, "a"), KeyboardInterrupt()])
    error = trip(raised(BaseExceptionGroup("outer", [inner, ValueError("b")])))
    outer = error.root
    assert type(outer) is BaseExceptionGroup
    assert [type(each) for each in outer.exceptions[0].exceptions] == [BrokenInitError, KeyboardInterrupt]
    assert "b" in printed(error)
    lone = trip(raised(ExceptionGroup("unhandled", [raised(ValueError(MESSAGE))])))
    assert type(lone.root) is ValueError


def test_big_and_unknown_groups_stay_groups() -> None:
    class LocalGroup(ExceptionGroup[Exception]):
        pass

    error = trip(raised(LocalGroup("many", [ValueError(str(number)) for number in range(500)])))
    assert isinstance(error.__cause__, ExceptionGroup)
    assert isinstance(error.__cause__, StandIn)
    assert len(error.__cause__.exceptions) == describe.NODES - 2
    assert "many (500 sub-exceptions)" in printed(error)
    assert len(dump(error)) <= describe.REPORT


def descend(depth: int) -> None:
    if depth:
        descend(depth - 1)
    else:
        raise ValueError(MESSAGE)


def test_ten_thousand_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(20_000)
        error = raised(caught(descend, 10_000))
    finally:
        sys.setrecursionlimit(limit)
    data = pickle.dumps(error)
    assert len(data) < 3_000
    text = printed(pickle.loads(data))
    assert f"[{10_003 - describe.FRAMES} frames left out]" in text
    assert "raise ValueError(MESSAGE)" in text


@pytest.mark.parametrize(
    "value",
    [
        "x" * 40_000_000,
        b"x" * 40_000_000,
        list(range(4_000_000)),
        {"a": "x" * 40_000_000},
        [["x" * 40_000_000] * 3],
    ],
    ids=["str", "bytes", "list", "dict", "nested"],
)
@pytest.mark.parametrize("pair", [False, True])
def test_huge_arguments_cost_little(value: Any, pair: bool) -> None:
    exc = ValueError("head", value) if pair else ValueError(value)
    exc.copy = value  # type: ignore[attr-defined]
    error = raised(exc)
    tracemalloc.start()
    try:
        data = pickle.dumps(error)
        root = pickle.loads(data).root
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(data) <= describe.REPORT
    assert peak < 8_000_000
    assert type(root) is ValueError
    assert len(str(root)) < 100_000


def test_what_does_not_travel_whole_is_named() -> None:
    exc = ValueError("head", "x" * 50_000, {"text": "y"})
    exc.keys = [f"layer.{number}" for number in range(20_000)]  # type: ignore[attr-defined]
    exc.lock = threading.Lock()  # type: ignore[attr-defined]
    for way in (trip, lambda error: from_json(to_json(error))):
        root: Any = root_of(way(raised(exc)))
        assert root.args[0] == "head"
        assert root.args[2] == {"text": "y"}
        assert root.args[1].startswith("xxxx")
        assert 500 < len(root.keys) < 20_000
        assert root.keys == exc.keys[: len(root.keys)]  # type: ignore[attr-defined]
        assert "unlocked" in root.lock
        assert "Not whole here: argument 2, keys, lock" in root.__notes__


def test_many_arguments_and_attributes_cost_little() -> None:
    exc = ValueError(*["x" * 1_000] * 200_000)
    vars(exc).update({f"part_{number}": "y" * 1_000 for number in range(200_000)})
    error = raised(exc)
    begin = time.process_time()
    for way in (trip, lambda error: from_json(to_json(error))):
        assert "('xxxx" in printed(root_of(way(error)))
    assert len(str(error)) < 10_000
    assert time.process_time() - begin < 5
    few = ValueError(*range(describe.PARTS + 5))
    assert "Not whole here: 5 more arguments" in root_of(trip(raised(few))).__notes__


def test_a_proxy_of_something_gone_hides_nothing() -> None:
    gone = weakref.proxy(HostileError())
    exc = ValueError("the engine is gone", gone)
    exc.__notes__ = ["a note", gone]
    root = root_of(trip(raised(exc)))
    assert root.args[0] == "the engine is gone"
    assert "weakproxy" in str(root)
    assert root.__notes__[0] == "a note"
    error = WorkerInitError("no start", context={"engine": gone})
    assert "weakproxy" in error.context["engine"]


def test_an_argument_of_an_unknown_class_becomes_its_text() -> None:
    data = dump(raised(ValueError("head", BrokenInitError(5, "x"))))
    root = root_of(load(data.replace(b"faults", b"this__")))
    assert root.args == ("head", "BrokenInitError('x (5)')")
    assert "Not whole here: UnpicklingError: no module named this__ is imported here" in root.__notes__


class RaisingReprError(ValueError):
    """Its text and its arguments raise what `except Exception` misses."""

    def __str__(self) -> str:
        raise SystemExit


def test_even_system_exit_does_not_stop_a_report() -> None:
    error = trip(raised(RaisingReprError(object())))
    assert type(error.root) is RaisingReprError
    assert "str() raised SystemExit" in str(error)


def test_the_whole_report_is_bounded() -> None:
    link: BaseException | None = None
    for number in range(60):
        exc = caught(descend, 100)
        exc.args = (f"{number} " + "é" * 5_000, b"x" * 20_000)
        exc.add_note("n" * 9_000)
        exc.__context__, exc.__suppress_context__ = link, True
        exc.__cause__ = ExceptionGroup("g", [ValueError("\udfff" * 5_000) for _ in range(5)])
        link = exc
    assert link is not None
    error = raised(link)
    assert len(dump(error)) <= describe.REPORT
    assert len(to_json(error)) <= describe.REPORT
    assert isinstance(from_json(to_json(error)), WorkerInitError)


@pytest.mark.parametrize("way", [trip, lambda exc: load(dump(exc)), lambda exc: from_json(to_json(exc))])
def test_a_chain_of_big_errors_keeps_what_they_say(way: Any) -> None:
    link: BaseException | None = None
    for kind in (KeyError, OSError, ValueError, RuntimeError):
        exc = kind([f"{kind.__name__}.layers.{number}.weight" for number in range(900)])
        exc.__cause__, link = link, exc
    assert link is not None
    error = way(WorkerInitError("no start", rank=RANK, phase="load", context={"big": ["x" * 1_000] * 20}, cause=link))
    assert (error.rank, error.phase, error.device, error.context["rank"]) == (RANK, "load", None, RANK)
    assert str(error).startswith(
        "rank 3, load: no start (root cause: KeyError: ['KeyError.layers.0.weight', 'KeyError."
    )
    for each in describe.line_of(error)[1:]:
        assert str(each).startswith(f"['{type(each).__name__}.layers.0.weight', ")
        assert any(note.startswith("Not whole here: ") for note in each.__notes__)
    again = way(wrapped(error))
    assert (again.ready, again.total, again.rank) == (1, 2, RANK)
    assert "OSError.layers.0" in printed(again)


def wrapped(error: WorkerInitError) -> WorkersFailed:
    """Return what a parent raises for a worker that failed so."""
    return WorkersFailed([WorkerFailure(RANK, "raised", "raised", 1.0, error=error)], 1, 2)


class WatchedError(ValueError):
    """Notes every call of its own code."""

    calls: list[str] = []  # noqa: RUF012 - shared on purpose

    def __init__(self, *args: object) -> None:
        self.calls.append("__init__")
        super().__init__(*args)
        self.detail = 1

    def __setattr__(self, name: str, value: object) -> None:
        self.calls.append("__setattr__")
        super().__setattr__(name, value)

    def __setstate__(self, state: Any) -> None:
        self.calls.append("__setstate__")

    def __reduce__(self) -> Any:
        return WatchedError, (MESSAGE,)

    @property
    def trap(self) -> str:
        return "untouched"

    @trap.setter
    def trap(self, value: str) -> None:
        self.calls.append("setter")


def test_json_runs_nothing() -> None:
    text = to_json(raised(WatchedError(MESSAGE)))
    origin, nodes = json.loads(text)
    nodes[1]["state"]["trap"] = "x"
    nodes[1]["blob"] = "c__builtin__\neval\n"
    WatchedError.calls.clear()
    root = root_of(from_json(json.dumps([origin, nodes])))
    assert type(root) is WatchedError
    assert root.detail == 1
    assert WatchedError.calls == []


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", '["here", [{}]]', '["here", []]', '["here", [1]]', "[1,2,3]"])
def test_json_that_is_no_chain_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_json(text)


NODE_KEYS = [
    "module",
    "name",
    "base",
    "bases",
    "text",
    "args",
    "state",
    "notes",
    "frames",
    "skipped",
    "cause",
    "context",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.sampled_from(NODE_KEYS) | st.text(), each, max_size=3),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys([*NODE_KEYS, "members", "omitted", "whole", "suppress"], JSON)
        | {"module": st.just("builtins") | st.text(), "name": st.sampled_from(["ValueError", "OSError", "eval", "x"])},
    ),
    st.sampled_from(sorted(describe.BUILTIN.values())) | st.text(),
)
def test_json_of_an_enemy_is_an_exception_or_refused(node: dict[str, Any], base: str) -> None:
    good = {"module": "builtins", "name": "ValueError", "base": "ValueError", "text": "x", "cause": 1}
    try:
        exc = from_json(json.dumps(["here", [good, {"module": "m", "name": "N", "base": base, "text": "t"} | node]]))
    except ValueError:
        return
    assert printed(exc)


@given(
    st.integers(1, 12).flatmap(
        lambda count: st.tuples(
            st.just(count),
            st.lists(
                st.tuples(st.integers(0, count - 1), st.integers(0, count - 1), st.booleans()), max_size=3 * count
            ),
        )
    )
)
def test_any_graph_of_exceptions_keeps_its_shape(graph: tuple[int, list[tuple[int, int, bool]]]) -> None:
    count, links = graph
    nodes = [ValueError(number) for number in range(count)]
    for source, target, is_cause in links:
        setattr(nodes[source], "__cause__" if is_cause else "__context__", nodes[target])

    def shape(head: BaseException) -> dict[str, tuple[str, str, bool]]:
        seen: dict[str, tuple[str, str, bool]] = {}
        todo: list[BaseException | None] = [head]
        while todo:
            exc = todo.pop()
            if exc is not None and str(exc) not in seen:
                seen[str(exc)] = str(exc.__cause__), str(exc.__context__), exc.__suppress_context__
                todo += [exc.__cause__, exc.__context__]
        return seen

    assert shape(load(dump(nodes[0]))) == shape(nodes[0])
    assert shape(from_json(to_json(nodes[0]))) == shape(nodes[0])


def test_logging_prints_the_frames_of_the_other_process(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise trip(caught(guarded_start, "broken __init__"))
    except WorkerInitError:
        logging.getLogger("launcher").exception("start failed")
    assert "in explode" in caplog.text
    assert MESSAGE in caplog.text


def test_pytest_prints_the_frames_of_the_other_process(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pickle, sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import faults\n"
        "def test_it():\n"
        "    try:\n"
        "        faults.guarded_start('broken __init__')\n"
        "    except Exception as exc:\n"
        "        data = pickle.dumps(exc)\n"
        "    raise pickle.loads(data)\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stderr
    assert "in explode" in done.stdout
    assert "rank 3, load weights" in done.stdout


def test_threads_can_dump_at_once() -> None:
    error = raised(ValueError(MESSAGE))
    results: list[str] = []
    threads = [threading.Thread(target=lambda: results.append(str(trip(error)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert results == [str(error)] * 8
