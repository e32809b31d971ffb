"""What is fuzzed: each target takes a case, raises where something is wrong, and says in a word what became of it."""

from __future__ import annotations

import ast
import importlib
import json
import os
import pickle
import re
import shutil
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from flake8.processor import FileProcessor  # type: ignore[import-untyped]
from flake8.violation import Violation  # type: ignore[import-untyped]
from fuzz_cases import CHANGES, FIXTURES, Case, mutated, program
from judge import judge
from unscreened import unscreened

from keepcause.codemod.apply import repair
from keepcause.config import FORMATS, KEYS, ConfigError
from keepcause.config.layers import Layers
from keepcause.lint.checked import FileReport, Trouble
from keepcause.lint.engine import Engine, Settings, lint_single_file
from keepcause.lint.finding import Finding, Fix, Grade, Safety, Span, Step, WorkerInit
from keepcause.lint.noqa import Suppressions
from keepcause.lint.rule import all_rules
from keepcause.lint.source import Source, SourceError
from keepcause.run import Run
from keepcause.runtime.inert import load
from keepcause.runtime.machine import InertError
from keepcause.runtime.metadata import DAMAGED, WHOLE, inspect

if TYPE_CHECKING:
    from collections.abc import Callable

CODES = frozenset(rule.code for rule in all_rules())
ALL = Settings(codes=CODES)
REPAIRED = Settings(
    codes=frozenset(rule.code for rule in all_rules() if not rule.reviews),
    evidence=Grade.POSSIBLE,
    single_file=True,
)
"""Rules that review comments are left out: the judge takes no change of a comment."""
CHECKPOINT = FIXTURES / "checkpoints" / "step-7"
BY_HALVES = re.compile(rb"coding[:=][ \t]*(?:utf.?7|punycode|unicode.?escape|iso.?2022|hz)", re.IGNORECASE)
"""Encodings of which Python, which reads line by line, may see half a character."""
STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
TEXTS = [
    *(
        "",
        "worker.py",
        "a b",
        "new\nline",
        "\r",
        "\x1b[31m",
        "\x9b2J",
        "\udcff\ud800",
        "\u202e",
        "\u2028",
        "'\"\\",
        "\t",
    ),
    *(
        "::error::x",
        "%0A::warning file=a,line=1::",
        "%25",
        ",",
        ":",
        "=",
        "]]>",
        "<b>&amp;",
        "機械",
        "é",
        "{}",
        "\0",
        "x" * 3000,
    ),
]


def source(case: Case) -> str:
    """Reading a file: what Python takes is taken, with the same meaning; else there is a reason."""
    data = case.given = mutated(case)
    try:
        expected = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        expected = None
    try:
        read = Source(data)
    except SourceError as error:
        # In comments of a text that is given as bytes Python overlooks what it refuses in a file.
        taken = expected is not None and not error.reason.startswith("not valid utf-8")
        assert not taken or BY_HALVES.search(data), f"Python takes it: {error.reason}"  # noqa: PT017
        return "refused"
    if expected is None:
        assert BY_HALVES.search(data), "Python does not take it"
        return "read by halves"
    try:
        assert ast.dump(read.tree) == ast.dump(expected)
    except RecursionError:
        return "deep"
    for node in ast.walk(read.tree):
        if isinstance(node, ast.Name) and read.text.isascii():
            assert read.text[read.slice(read.span(node))] == node.id or _in_f_string(read, node)
    return "read"


def _in_f_string(read: Source, node: ast.Name) -> bool:
    return any(isinstance(up, ast.JoinedStr) for up in read.ancestors(node))


def linter(case: Case) -> str:
    """All rules, over a program of a few files: with and without the screens the findings are the same."""
    with tempfile.TemporaryDirectory(dir=_memory()) as name:
        folder = Path(name)
        (folder / "setup.py").touch()
        files = [folder / "worker.py", folder / "launcher.py", *map(folder.joinpath, ("tools.py", "models.py"))]
        files = files[: case.random.randrange(1, 5)]
        for path in files:
            path.write_bytes(program(case) if case.random.random() < 0.8 else mutated(case))
        case.given = b"\n# ----\n".join(path.read_bytes() for path in files)
        found = 0
        settings = Settings(CODES, evidence=case.choice([*Grade]), single_file=case.random.random() < 0.5)
        screened = Engine(settings)
        reports = [screened.check(path) for path in files]
        with unscreened():
            all_of_it = Engine(settings)
            for path, report in zip(files, reports, strict=True):
                whole = all_of_it.check(path)
                if isinstance(whole, Trouble):  # a file that the screens drop is not parsed
                    assert report == whole or (isinstance(report, FileReport) and not report.findings)
                    assert "internal" not in whole.reason, whole
                else:
                    assert isinstance(report, FileReport), report
                    assert report.findings == whole.findings
                    found += len(whole.findings)
    return "found" if found else "nothing found"


def codemod(case: Case) -> str:
    """Repairing: the judge takes the result, and repairing it again changes nothing."""
    data = case.given = program(case)
    try:
        before = Source(data, "worker.py")
        findings = lint_single_file(before, REPAIRED)
    except (SourceError, RecursionError):
        return "refused"

    def relint(data: bytes) -> list[Finding]:
        return lint_single_file(Source(data, "worker.py"), REPAIRED)

    allowed = frozenset({*(Safety if case.random.random() < 0.7 else (Safety.SAFE,)), "KC401", "KC402"})
    result = repair(before, findings, allowed=allowed, relint=relint)
    assert result.applied or result.data == data
    if _compiles(data):  # what else is parsed may have scopes that contradict one another
        judge(data, result.data, {edit.statement for each in findings if each.fix for edit in each.fix.edits})
    again = repair(Source(result.data, "worker.py"), relint(result.data), allowed=allowed, relint=relint)
    assert (again.data, again.applied) == (result.data, ())
    if result.failed:
        return "taken back"
    return "repaired" if result.applied else "nothing repaired"


def _compiles(data: bytes) -> bool:
    try:
        compile(data, "worker.py", "exec", dont_inherit=True)
    except (SyntaxError, RecursionError):
        return False
    return True


def configuration(case: Case) -> str:
    """Any pyproject.toml is taken, or there is a reason in one line."""
    lines = ["[tool.keepcause]"]
    keys = case.random.sample(KEYS, case.random.randrange(1, len(KEYS)))
    lines += [f"{key.name} = {key.example if case.random.random() < 0.7 else _value(case, 3)}" for key in keys]
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    for _ in range(case.choice([0, 0, 1, 3])):
        start = case.random.randint(0, len(data))
        piece = case.choice(
            [b"[", b"]", b'"', b"'", b"=", b".", b"*", b"!", b"/", b"[[tool]]\n", b"\xff", b"\n", b"[" * 5000]
        )
        data = data[:start] + piece + data[start + case.random.randrange(3) :]
    case.given = data
    with tempfile.TemporaryDirectory(dir=_memory()) as name:
        path = Path(name, "pyproject.toml")
        path.write_bytes(data)
        for options in ({}, {"file": path}):
            try:
                layers = Layers({}, **options)  # type: ignore[arg-type]
                layers.settings(path.with_name("worker.py"))
                layers.excluded(f"{name}/sub/{case.choice(TEXTS)}".replace("\0", ""), name)
            except ConfigError as error:
                assert "Traceback" not in error.reason  # noqa: PT017
                return "refused"
    return "taken"


def _value(case: Case, depth: int) -> str:
    """A random value as TOML."""
    kind = case.random.randrange(8 if depth else 6)
    if kind < 3:
        return json.dumps(case.choice([*TEXTS, "KC101", "KC", "a/**/b*[!x]", "mod:Class", "**", "[", "!", "../x"]))
    if kind < 6:
        return case.choice(["true", "0", "-1", "1e400", "nan", "2026-01-01", "[]", "{}", '["KC1"]', '"sure"'])
    if kind == 6:
        return "[" + ", ".join(_value(case, depth - 1) for _ in range(case.random.randrange(4))) + "]"
    pairs = (f"{json.dumps(f'{number}*.py')} = {_value(case, depth - 1)}" for number in range(case.random.randrange(4)))
    return "{ " + ", ".join(pairs) + " }"


DIRECTIVES = [
    *(
        "# noqa",
        "#noqa",
        "# NOQA",
        ":",
        " ",
        ",",
        "KC101",
        "KC1",
        "kc101",
        "E501",
        "KC",
        "x",
        "#",
        "\t",
        "\f",
        "\x1c",
        "ß",
    ),
    *("# flake8: noqa", "# flake8:noqa: E1", "# keepcause: noqa", "\u2028", "#" * 99, "KC201,", "\xa0"),
]


def noqa(case: Case) -> str:
    """Comments that keep findings quiet mean what flake8 takes them for."""
    lines = case.file().decode("utf-8", "replace").split("\n")
    for _ in range(case.random.randrange(1, 6)):
        directive = "".join(case.choice(DIRECTIVES) for _ in range(case.random.randrange(1, 7)))
        lines[case.random.randrange(len(lines))] += f"{case.choice(['', ' ', '  # '])}{directive}"
    text = case.choice(["\n", "\n", "\r\n", "\r"]).join(lines)
    case.given = text.encode()
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return "no Python"
    options = Namespace(hang_closing=False, indent_size=4, max_line_length=79, max_doc_length=None, verbose=0)
    options.disable_noqa = False
    with tempfile.TemporaryDirectory(dir=_memory()) as name:
        path = Path(name, "checked.py")
        path.write_bytes(case.given)
        processor = FileProcessor(str(path), options)
        ours = Suppressions(text)
        count = len(processor.lines)
        if processor.should_ignore_file():
            assert all(ours.cover(_at(number)) for number in range(1, count + 1))
            return "whole file"
        if "keepcause: noqa" in text:
            return "ours"
        for number in range(1, count + 1):
            line = processor.noqa_line_for(number)
            theirs = Violation("KC101", str(path), number, 1, "", line).is_inline_ignored(disable_noqa=False)
            assert ours.cover(_at(number)) == theirs, number
    return "by line"


def _at(line: int) -> Finding:
    span = Span(line, 0, line, 5)
    return Finding("KC101", "", span, span)


def reports(case: Case) -> str:
    """Whatever names and texts are, data can be read back, and text does not steer the terminal or add lines."""

    def text() -> str:
        return "".join(case.choice(TEXTS) for _ in range(case.random.randrange(1, 4)))

    def name() -> str:
        return text().replace("\0", "").replace("\ud800", "") or "x"  # as a file system may have it

    def step() -> Step:
        return Step(text(), name(), case.random.randrange(1, 9), text())

    data = "\n".join(re.sub(r"[\0\r\n]", "", text()).encode("utf-8", "replace").decode() for _ in range(9))
    found = []
    for _ in range(case.random.randrange(1, 5)):
        span = Span(case.random.randrange(1, 5), 0, case.random.randrange(5, 9), 0)
        evidence = WorkerInit(case.choice([*Grade]), (step(), step())) if case.random.random() < 0.7 else None
        fix = Fix(case.choice([*Safety]), "Fix it", ()) if case.random.random() < 0.5 else None
        code = case.choice(sorted(CODES))
        found.append(Finding(code, text(), span, span, worker_init=evidence, fix=fix, note=text()))
    path = Path(name())
    case.given = repr((path, data, found)).encode()
    report = FileReport(path, data.encode(), tuple(found))
    for module in FORMATS:
        shown: str = importlib.import_module(f"keepcause.report.{module}").render([report])
        if module in ("json", "gitlab", "sarif"):
            assert json.dumps(json.loads(shown)).count('"KC') >= len(found), module
        elif module in ("concise", "github"):
            assert shown.count("\n") == len(found), module
        assert not STEERING.search(re.sub("\x1b\\[[0-9;]*m", "", shown)), module  # its own colours
        if module == "github":
            assert all(line.startswith("::") for line in shown.rstrip("\n").split("\n")), shown
    return "shown"


OPCODES = [bytes([code]) for code in range(256)]
INSERTED = [
    *(b"\x8c\x02os\x8c\x06system\x93", b"cbuiltins\neval\n", b"\x85R", b"h\x00", b"\x94", b"(", b"}", b"]", b"N", b"."),
    *(
        b"\x8c\x05torch\x8c\x04Size\x93",
        b"K\x01",
        b"s",
        b"u",
        b"e",
        b"a",
        b"b",
        b"R",
        b"\x81",
        b"0",
        b"2",
        b"\x8f",
        b"\x90",
    ),
]


def metadata(case: Case) -> str:
    """A checkpoint's `.metadata`: it is read, or refused with a verdict; never is anything imported or run."""
    data = (CHECKPOINT / ".metadata").read_bytes()
    if case.random.random() < 0.2:
        data = pickle.dumps(_plain(case, 3), case.random.randrange(6))
    for _ in range(case.random.randrange(1, 6)):
        start = case.random.randint(0, len(data))
        new = case.choice([*INSERTED, *OPCODES[:: case.random.randrange(1, 40)]])
        if case.random.random() < 0.2:
            at = case.random.randint(0, len(data))
            new = data[at : at + case.random.randrange(200)] * case.choice([1, 1, 2, 300])
        data = data[:start] + new + data[start + case.random.randrange(3) :]
    case.given = data
    with tempfile.TemporaryDirectory(dir=_memory()) as name:
        Path(name, ".metadata").write_bytes(data)
        found = inspect(name)
        assert found.verdict in {WHOLE, "shards-damaged", *DAMAGED}, found.verdict
        try:
            load(data)
        except InertError as error:
            assert len(str(error)) < 500  # noqa: PT017
            return error.reason
    return "read"


def _plain(case: Case, depth: int) -> object:
    if not depth:
        return case.choice([None, True, 1, -(2**70), 1.5, "a", b"b", (), "x" * 300])
    parts = [_plain(case, depth - 1) for _ in range(case.random.randrange(5))]
    return case.choice([parts, tuple(parts), {str(part)[:20]: part for part in parts}])


def cache(case: Case) -> str:
    """A damaged record of an earlier check is left aside, or what it says can be printed."""
    with tempfile.TemporaryDirectory(dir=_memory()) as name:
        path = Path(name, "worker.py")
        path.write_bytes(case.choice(_FOUND_IN))
        run = Run(Layers({"select": tuple(CODES)}, isolated=True))
        folder = Path(name, "cache")
        list(run.check_all([str(path)], folder))
        (record,) = folder.glob("*.json")
        data = record.read_bytes()
        for _ in range(case.random.randrange(1, 4)):
            start = case.random.randint(0, len(data))
            change = case.choice(
                [b"", b"0", b'"', b"[", b"]", b"null", b"-", b",", b"{}", bytes([case.random.randrange(256)])]
            )
            data = data[:start] + change + data[start + case.random.randrange(3) :]
        case.given = data
        record.write_bytes(data)
        warnings: list[str] = []
        found = list(run.check_all([str(path)], folder, warnings.append))
        reports = [report for report in found if isinstance(report, FileReport)]
        for module in FORMATS:
            importlib.import_module(f"keepcause.report.{module}").render(reports)
    return "left aside" if warnings else "taken"


_FOUND_IN = [(FIXTURES / code / "bad.py").read_bytes() for code in ("KC101", "KC104", "KC202", "KC301")]


def changes(case: Case) -> str:
    """After changes of a program's files a check of some finds the same by what is known of all as without."""
    with tempfile.TemporaryDirectory(dir=_memory()) as name:
        folder = Path(name, "project")
        shutil.copytree(case.choice(_PROJECTS), folder)
        (folder / "setup.py").touch()
        first = {path: path.read_bytes() for path in sorted(folder.rglob("*.py"))}
        files = [*first]
        layers = Layers({"select": tuple(CODES), "evidence": case.choice([*Grade])}, isolated=True)
        found = 0
        for _ in range(4):
            asked = sorted(
                map(str, case.random.sample(files, case.random.choice([len(files), 1, 1 + len(files) // 2])))
            )
            known = list(Run(layers).check_all(asked, Path(name, "cache")))
            assert known == list(Run(layers).check_all(asked))
            found += len(known)
            case.given = b"\n# ----\n".join(path.read_bytes() for path in files)
            inside = Case(case.random, files)
            for path in case.random.sample(files, min(len(files), case.random.randrange(1, 4))):
                # What is taken out and put back is a caller that goes and comes.
                path.write_bytes(case.choice([case.choice(CHANGES)(inside, path.read_bytes()), first[path], b""]))
    return "found" if found else "nothing"


_PROJECTS = sorted((FIXTURES / "projects").iterdir())


def _memory() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


TARGETS: dict[str, Callable[[Case], str]] = {
    target.__name__: target
    for target in (source, linter, codemod, configuration, noqa, reports, metadata, cache, changes)
}
