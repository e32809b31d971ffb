"""Generator functions of other modules of the program, as the command line sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from keepcause.lint.checked import FileReport
from keepcause.lint.engine import Engine, Settings

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = Settings(codes=frozenset({"KC201"}))
NAMES = """
import contextlib

def names():
    yield 1

async def later():
    yield 1

@contextlib.contextmanager
def managed():
    yield 1

def wrapped():
    yield 1

wrapped = contextlib.contextmanager(wrapped)

def listed():
    def inner():
        yield 1
    return list(inner())

def later_on():
    return lambda: (yield 1)

class Names:
    def names(self):
        yield 1
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "pkg"
    folder.mkdir()
    (tmp_path / "pyproject.toml").touch()
    (folder / "__init__.py").write_text("from pkg.names import names as exported\n")
    (folder / "names.py").write_text(NAMES)
    return folder


def messages(path: Path, settings: Settings = SETTINGS) -> list[str]:
    report = Engine(settings).check(path)
    assert isinstance(report, FileReport)
    return [finding.message for finding in report.findings]


@pytest.mark.parametrize(
    ("statement", "call", "what"),
    [
        ("from pkg.names import names", "names()", "the generator function `names`"),
        ("from .names import names as all_names", "all_names()", "the generator function `names`"),
        ("import pkg.names", "pkg.names.names()", "the generator function `names`"),
        ("from pkg import names as module", "module.names()", "the generator function `names`"),
        ("from .names import later", "later()", "the asynchronous generator `later`"),
    ],
)
def test_generator_functions_are_found(package: Path, statement: str, call: str, what: str) -> None:
    path = package / "check.py"
    path.write_text(f"{statement}\nraise ValueError(f'{{{call}}}')\n")
    [message] = messages(path)
    assert f"`{call}` is what {what} gives" in message
    assert messages(path, Settings(codes=SETTINGS.codes, single_file=True)) == []


@pytest.mark.parametrize(
    ("statement", "call"),
    [
        ("from pkg.names import managed", "managed()"),
        ("from pkg.names import wrapped", "wrapped()"),
        ("from pkg.names import listed", "listed()"),
        ("from pkg.names import later_on", "later_on()"),
        ("from pkg.names import Names", "Names().names()"),
        ("from elsewhere import names", "names()"),
        ("from pkg.names import names\nnames = wrap(names)", "names()"),
        ("try:\n    from pkg.names import names\nexcept ImportError:\n    names = None", "names()"),
    ],
)
def test_other_functions_are_not(package: Path, statement: str, call: str) -> None:
    path = package / "check.py"
    path.write_text(f"{statement}\nraise ValueError(f'{{{call}}}')\n")
    assert messages(path) == []
