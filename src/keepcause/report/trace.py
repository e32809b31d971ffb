"""`keepcause trace`: why functions are on a worker-init path or not, and a program's launch sites."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from keepcause.lint.source import Source, SourceError
from keepcause.report.text import printable, shown_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.graph import Graph, Verdict
    from keepcause.lint.summary import Function

_PLACE = re.compile(r"(?P<path>.+):(?P<line>[0-9]+)")


def target(text: str, whole: bool) -> tuple[Path, int]:
    """A file and a line of `FILE:LINE`; line 0 where none is named, or the text is a path as it is."""
    place = None if whole or os.path.lexists(text) else _PLACE.fullmatch(text)
    return (Path(place["path"]), int(place["line"])) if place else (Path(text), 0)


def functions(graph: Graph, path: Path, line: int) -> Iterator[str]:
    """A paragraph for the function around `line`, or for each function of the file; raises SourceError."""
    name = _name(graph, path)
    summary = graph.program.summary(name)
    if summary is None:
        Source((graph.program.root / name).read_bytes(), name)
        raise SourceError("nested too deeply to be checked")
    chosen = [graph.at(name, line)] if line else sorted(summary.functions, key=lambda function: function.line)
    for function in chosen:
        if function is not None and (line or function.line):
            yield from _function(graph, name, function)


def _function(graph: Graph, path: str, function: Function) -> Iterator[str]:
    yield f"{_place(graph, path, function.line)}: {printable(function.qualname)}\n"
    evidence = graph.evidence(path, function.line)
    verdict = graph.verdict(path, function)
    if evidence is None:
        yield f"  not worker-init: {printable(verdict.why)}\n"
    else:
        yield f"  worker-init ({evidence.grade}):\n"
        for step in evidence.path:
            yield f"    {printable(step.function)}  {_place(graph, step.file, step.line)}  {printable(step.why)}\n"
    if verdict.depth is None and verdict.callers:
        yield "  its callers:\n"
        for caller in verdict.callers:
            judged = graph.verdict(caller.path, caller.function)
            place = _place(graph, caller.path, caller.line)
            yield f"    {printable(caller.function.qualname)}  {place}  {_judgement(judged, caller.line)}\n"
    yield "\n"


def _judgement(verdict: Verdict, line: int) -> str:
    if verdict.depth is None:
        return f"not worker-init: {printable(verdict.why)}"
    if line < verdict.since:
        return f"calls it before it {printable(verdict.why)}"
    return f"worker-init: {printable(verdict.why)}"


def roots(graph: Graph, path: Path) -> Iterator[str]:
    """A line for each launch site at or below `path`: where it is, how it was recognised, what it runs."""
    top = Path(os.path.abspath(path))
    for name in graph.program.paths:
        if name not in graph.program.launchers or not (graph.program.root / name).is_relative_to(top):
            continue
        summary = graph.program.summary(name)
        for function in summary.functions if summary else ():
            for site in function.launches:
                found = [where for reference in site.targets for where in graph.resolver.resolve(name, reference)]
                runs = ", ".join(f"{d.what.qualname} ({_place(graph, d.path, d.what.line)})" for d in found)
                yield f"{_place(graph, name, site.line)}: {printable(site.how)} -> {printable(runs) or 'unknown'}\n"


def _name(graph: Graph, path: Path) -> str:
    return Path(os.path.abspath(path)).relative_to(graph.program.root).as_posix()


def _place(graph: Graph, path: str, line: int) -> str:
    return f"{shown_path(graph.program.root / path)}:{line}"
