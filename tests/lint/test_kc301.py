"""Whether exception classes survive pickle: each verdict of the fixtures is confirmed by pickling an instance."""

from __future__ import annotations

import ast
import importlib.util
import pickle
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from screened import may_find

from keepcause.lint.checked import FileReport
from keepcause.lint.engine import Engine, Settings, lint_single_file
from keepcause.lint.rules.kc301_exception_not_picklable import ExceptionNotPicklable
from keepcause.lint.source import Source

if TYPE_CHECKING:
    from types import ModuleType

FIXTURES = Path(__file__).parents[1] / "fixtures" / "KC301"


def methods(file: str) -> list[tuple[str, str]]:
    """Each file with each method of its Worker; a method raises one class."""
    tree = ast.parse((FIXTURES / file).read_text(encoding="utf-8"))
    (worker,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Worker"]
    return [(file, node.name) for node in worker.body if isinstance(node, ast.FunctionDef)]


METHODS = [*methods("bad.py"), *methods("good.py")]


@pytest.fixture(scope="module")
def modules() -> dict[str, ModuleType]:
    """The fixtures as modules in which pickle finds their classes."""
    found = {}
    for file in ("bad.py", "good.py"):
        spec = importlib.util.spec_from_file_location(f"picklable_{Path(file).stem}", FIXTURES / file)
        assert spec is not None
        assert spec.loader is not None
        found[file] = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found[file])
    return found


def reported(code: str) -> set[str]:
    """The names of the classes that the rule reports in the fixtures."""
    found = set()
    for file in ("bad.py", "good.py"):
        source = Source((FIXTURES / file).read_bytes(), "worker.py")
        for finding in lint_single_file(source, Settings(codes=frozenset({code}))):
            found.add(finding.message.split("`")[1])
    return found


@pytest.mark.parametrize(("file", "method"), METHODS)
def test_the_verdict_is_what_pickle_says(modules: dict[str, ModuleType], file: str, method: str) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - each method raises another class
        getattr(modules[file].Worker(), method)()
    error = caught.value
    assert type(error).__module__ == modules[file].__name__
    try:
        again = pickle.loads(pickle.dumps(error))
        survives = type(again) is type(error)
    except Exception:
        survives = False
    for held in vars(error).values():
        getattr(held, "close", object)()  # a file that is collected open warns, in whichever test that happens
    assert survives == (type(error).__name__ not in reported("KC301"))
    assert survives == (file == "good.py")


def test_there_are_enough_classes_half_of_them_fine() -> None:
    bad, good = methods("bad.py"), methods("good.py")
    assert len(bad) + len(good) >= 40
    assert min(len(bad), len(good)) >= 0.45 * len(METHODS)


def test_everywhere_the_verdicts_are_the_same() -> None:
    assert reported("KC309") == reported("KC301")


def codes_at(code: str, *selected: str) -> list[tuple[int, str]]:
    found = lint_single_file(Source(code.encode(), "worker.py"), Settings(codes=frozenset(selected)))
    return [(finding.span.line, finding.code) for finding in found]


RAISED = """\
class StartError(Exception):
    def __init__(self, rank, text):
        super().__init__(text)


class OtherError(Exception):
    def __init__(self, rank, text):
        super().__init__(text)


def init_worker(rank):
    raise StartError(rank, "no device")


def serve(rank):
    raise OtherError(rank, "no request")
"""


def test_only_what_a_worker_that_starts_raises_is_found() -> None:
    assert codes_at(RAISED, "KC301") == [(1, "KC301")]


@pytest.mark.parametrize(
    ("parent", "found"),
    [
        ("def start(rank):\n    multiprocessing.Process(target=print).start()\n    ", []),
        ("def start(rank):\n    server.wait_until_ready()\n    ", []),
        ("def wait_until_ready(rank):\n    ", []),
        ("def start(rank):\n    multiprocessing.Process(target=run).start()\n\ndef run(rank):\n    ", [1]),
        (
            (
                "def start(rank):\n    multiprocessing.Process(target=run).start()\n\n"
                "def run(rank):\n    engine.wait_until_ready()\n    "
            ),
            [1],
        ),
    ],
)
def test_what_a_parent_raises_is_not_pickled(parent: str, found: list[int]) -> None:
    classes, _, _ = RAISED.partition("def init_worker")
    code = f"{classes}import multiprocessing\n\n\n{parent}raise StartError(rank, 'no device')\n"
    assert [line for line, _ in codes_at(code, "KC301")] == found


def test_what_a_worker_raises_too_is_found_behind_a_parent_that_is_nearer() -> None:
    classes, _, _ = RAISED.partition("def init_worker")
    code = f"""{classes}import multiprocessing


def check(rank):
    raise StartError(rank, "no device")


def run(rank):
    enter(rank)


def enter(rank):
    check(rank)


def start(rank):
    multiprocessing.Process(target=run).start()
    check(rank)
"""
    assert codes_at(code, "KC301") == [(1, "KC301")]
    assert codes_at(code.replace("enter(rank)\n\n\ndef enter", "pass\n\n\ndef enter"), "KC301") == []


@pytest.mark.parametrize(("caller", "found"), [("run", [1]), ("start", [])])
def test_a_worker_waits_for_others_too(caller: str, found: list[int]) -> None:
    classes, _, _ = RAISED.partition("def init_worker")
    code = f"""{classes}import multiprocessing


def wait_until_ready(rank):
    raise StartError(rank, "no store")


def run(rank):
    pass


def start(rank):
    multiprocessing.Process(target=run).start()
    pass
"""
    before, name, behind = code.partition(f"def {caller}(rank):\n")
    code = f"{before}{name}{behind.replace('pass', 'wait_until_ready(rank)', 1)}"
    assert [line for line, _ in codes_at(code, "KC301")] == found


def test_a_class_is_reported_once() -> None:
    assert codes_at(RAISED, "KC301", "KC309") == [(1, "KC301"), (6, "KC309")]


@pytest.mark.parametrize(
    "raised",
    [
        "raise StartError",
        "error = StartError(1, '')\n    raise error",
        "raise StartError(1, '') from None",
        "raise (StartError(1, '') if rank else ValueError())",
    ],
)
def test_a_class_may_be_raised_in_many_ways(raised: str) -> None:
    code = RAISED.replace('raise StartError(rank, "no device")', raised)
    assert codes_at(code, "KC301") == [(1, "KC301")]


def test_the_evidence_is_that_of_the_function_that_raises() -> None:
    (finding,) = lint_single_file(Source(RAISED.encode(), "worker.py"), Settings(codes=frozenset({"KC301"})))
    assert finding.worker_init is not None
    assert [step.function for step in finding.worker_init.path] == ["init_worker", "StartError"]
    assert "worker-init: init_worker (start-up by its name) -> StartError" in finding.message


@pytest.mark.parametrize(
    "header",
    [
        "class StartError(Exception):",
        "class StartError(  # what is raised: this\n    Exception\n):",
        "class StartError(\\\n    Exception):",
        "class \\\n  StartError(Exception):",
        "class StartError(Generic[T], Exception):",
        "class StartError(\tException\t):",
    ],
)
def test_a_file_is_not_passed_over(header: str) -> None:
    code = RAISED.replace(
        "class StartError(Exception):", f"from typing import Generic, TypeVar\nT = TypeVar('T')\n{header}"
    )
    assert [code for _, code in codes_at(code, "KC301")] == ["KC301"]
    assert may_find(ExceptionNotPicklable(), code.encode())


@pytest.mark.parametrize("data", [b"", b"class A:\n    def __init__(self): ...\n", b"class E(Exception): pass\n"])
def test_a_file_is_passed_over_where_nothing_can_be_found(data: bytes) -> None:
    assert not may_find(ExceptionNotPicklable(), data)


@pytest.mark.parametrize(
    "code",
    [
        "from lib import Base\nclass E(Base):\n    def __init__(self, a, b):\n        super().__init__(a)\n",
        "class E(make()):\n    def __init__(self, a, b):\n        super().__init__(a)\n",
        "class E(Exception, metaclass=M):\n    def __init__(self, a, b):\n        super().__init__(a)\n",
        "import attr\n@attr.s(auto_exc=True)\nclass E(Exception):\n    a = attr.ib()\n",
        "class E(UnicodeError):\n    def __init__(self, a, b):\n        super().__init__(a)\n",
        "class E(ExceptionGroup):\n    def __init__(self, a, b, c):\n        super().__init__(a)\n",
        "class E(Exception):\n    @wrapped\n    def __init__(self, a, b):\n        super().__init__(a)\n",
        "class E(E):\n    def __init__(self, a, b):\n        super().__init__(a)\n",
        "class E:\n    def __init__(self, a, b):\n        super().__init__(a)\n",
    ],
)
def test_what_is_not_known_is_not_judged(code: str) -> None:
    assert codes_at(code, "KC309") == []


@pytest.mark.parametrize(
    "statement",
    [
        "self.args = both",
        "self.args += both[1:]",
        "self.args = self.all = both",
        "self.args: tuple = both",
        "self.args, self.all = both, both",
        "setattr(self, 'args', both)",
        "match both:\n            case _: self.args = both",
        "try: self.args = both\n        except* OSError: pass",
        "for _ in (): pass\n        else: self.args = both",
        "(lambda: Exception.__init__(self, *both))()",
    ],
)
def test_arguments_may_be_set_in_many_ways(statement: str) -> None:
    code = (
        "class E(Exception):\n    def __init__(self, a, b):\n        both = (a, b)\n"
        f"        super().__init__(a)\n        {statement}\n"
    )
    names: dict[str, type[Exception]] = {}
    exec(code, names)
    assert names["E"](1, 2).args == (1, 2)
    assert codes_at(code, "KC309") == []


ERRORS = """\
class StartError(Exception):
    def __init__(self, rank, text):
        super().__init__(text)


class OtherError(StartError):
    pass
"""


@pytest.mark.parametrize(
    "files",
    [
        {"worker.py": "from pkg.errors import StartError\n\ndef init_worker():\n    raise StartError(1, '')\n"},
        {"worker.py": "from . import errors\n\ndef init_worker():\n    raise errors.StartError(1, '')\n"},
        {
            "api.py": "from .errors import StartError\n",
            "worker.py": "from pkg.api import StartError\n\ndef init_worker():\n    raise StartError(1, '')\n",
        },
        {
            "worker.py": "from .load import load\n\ndef init_worker():\n    load()\n",
            "load.py": "from .errors import StartError\n\ndef load():\n    raise StartError(1, '')\n",
        },
    ],
)
def test_a_class_is_raised_in_another_file(tmp_path: Path, files: dict[str, str]) -> None:
    package = tmp_path / "pkg"
    package.mkdir()
    (tmp_path / "pyproject.toml").touch()
    for name, text in {"__init__.py": "", "errors.py": ERRORS, **files}.items():
        (package / name).write_text(text, encoding="utf-8")
    for single_file, expected in ((False, [1]), (True, [])):
        engine = Engine(Settings(codes=frozenset({"KC301"}), single_file=single_file))
        report = engine.check(package / "errors.py")
        assert isinstance(report, FileReport)
        assert [finding.span.line for finding in report.findings] == expected
        for finding in report.findings:
            assert finding.worker_init is not None
            assert finding.worker_init.path[-1].file == str(package / "errors.py")


def test_prose_does_not_make_the_screen_slow() -> None:
    data = b"def __init__(): ...\n" + b"class # of things # and others [and more] # " * 3000
    started = time.perf_counter()
    may_find(ExceptionNotPicklable(), data)
    assert time.perf_counter() - started < 5
