"""`keepcause trace`: why functions are on a worker-init path or not, and a program's launch sites."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from keepcause.lint.files import read
from keepcause.lint.finding import Grade
from keepcause.lint.source import Source, SourceError
from keepcause.report.text import printable, shown_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.evidence.graph import Graph
    from keepcause.lint.evidence.summary import Function, Summary

_PLACE = re.compile(r"(?P<path>.+):(?P<line>[0-9]+)")


def target(text: str) -> tuple[Path, int | None]:
    """A file and a line of `FILE:LINE` or, as findings say it, `FILE:LINE:COLUMN`; no line where none is named, or
    where the whole text is a path.
    """
    place = None if os.path.lexists(text) else _PLACE.fullmatch(text)
    if place and not os.path.lexists(place["path"]):
        place = _PLACE.fullmatch(place["path"]) or place
    return (Path(place["path"]), int(place["line"])) if place else (Path(text), None)


def functions(graph: Graph, path: Path, line: int | None) -> Iterator[str]:
    """A paragraph for the function around `line`, or for each function of the file; raises SourceError."""
    name, summary = _name(graph, path), _summary(graph, path)
    count = len(graph.program.data(name).splitlines())
    if line is not None and not 1 <= line <= count:
        raise SourceError(f"has no line {line}: " + (f"its lines are 1 to {count}" if count else "it is empty"))
    chosen = [graph.at(name, line)] if line else summary.functions()
    for function in chosen:
        if function is not None and (line or function.line):
            yield from _function(graph, name, function, line if line and line > function.line else 0)


def _function(graph: Graph, path: str, function: Function, at: int) -> Iterator[str]:
    yield f"{_place(graph, path, function.line)}: {printable(function.qualname)}\n"
    evidence = graph.evidence(path, function.line, at, Grade.POSSIBLE)
    verdict = graph.verdict(path, function, at)
    if evidence is None:
        yield f"  not worker-init: {printable(verdict.why)}\n"
    else:
        yield f"  worker-init ({evidence.grade}):\n"
        for step in evidence.path:
            yield f"    {printable(step.function)}  {_place(graph, step.file, step.line)}  {printable(step.why)}\n"
    if verdict.depth is None and verdict.callers:
        yield "  its callers:\n"
        for caller in verdict.callers:
            judged = graph.verdict(caller.path, caller.function, caller.line)
            place = _place(graph, caller.path, caller.line)
            answer = "not worker-init" if judged.depth is None else "worker-init"
            yield f"    {printable(caller.function.qualname)}  {place}  {answer}: {printable(judged.why)}\n"
    yield "\n"


def roots(graph: Graph, path: Path) -> Iterator[str]:
    """A line for each launch site of a file: where it is, how it was recognised, what it runs; raises SourceError."""
    name = _name(graph, path)
    if not graph.program.may_launch(name):
        return
    for function in _summary(graph, path).functions():
        for site in graph.roots.sites(name, function):
            found = [where for reference in site.targets for where in graph.resolver.resolve(name, reference)]
            runs = ", ".join(f"{d.what.qualname} ({_place(graph, d.path, d.what.line)})" for d in found)
            yield f"{_place(graph, name, site.line)}: {printable(site.how)} -> {printable(runs) or 'unknown'}\n"


def _name(graph: Graph, path: Path) -> str:
    """The file's name in its program."""
    return Path(os.path.abspath(path)).relative_to(graph.program.root).as_posix()


def _summary(graph: Graph, path: Path) -> Summary:
    """The file's summary; raises SourceError where it can't be read as Python."""
    name = _name(graph, path)
    try:
        data = read(path)
    except OSError as error:
        raise SourceError(f"can't be read: {error.strerror or error}") from error
    summary = graph.program.summary(name)
    if summary is None:
        Source(data, name)
        raise SourceError("nested too deeply to be checked")
    return summary


def _place(graph: Graph, path: str, line: int) -> str:
    return f"{shown_path(graph.program.root / path)}:{line or 1}"  # 0 is the module itself
