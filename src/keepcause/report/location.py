"""What names a finding to other programs: its file within the repository, and a fingerprint; imports linter's data."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from keepcause.lint.checked import FileReport
    from keepcause.lint.finding import Finding


def repository() -> Path:
    """The root of the repository around the working directory; the working directory itself where there is none."""
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if os.path.exists(folder / ".git")), here)


def within(root: Path, path: Path | str) -> bytes | None:
    """The path's name below `root`, with forward slashes; None where it lies elsewhere."""
    absolute = Path(os.path.abspath(path))
    return os.fsencode(absolute.relative_to(root).as_posix()) if absolute.is_relative_to(root) else None


def named(root: Path, path: Path | str) -> bytes:
    """The path's name below `root`; where it lies elsewhere, the absolute one."""
    return within(root, path) or os.fsencode(os.path.abspath(path))


def text(name: bytes) -> str:
    """A file's name for a format that holds Unicode only: bytes that are none are shown as escapes."""
    return name.decode("utf-8", "backslashreplace")


def fingerprinted(root: Path, reports: Sequence[FileReport]) -> Iterator[tuple[FileReport, Finding, str]]:
    """Each finding with a fingerprint that stays when lines move, and that no other finding has.

    It is made of the code, the file's name and the text of the statement's lines; of findings that agree in these the
    number counts.
    """
    seen: Counter[bytes] = Counter()
    for report in reports:
        lines = report.lines if report.findings else []
        name = named(root, report.path)
        for finding in report.findings:
            span = finding.span
            shown = " ".join(line.strip() for line in lines[span.line - 1 : span.end_line])
            key = b"\0".join((finding.code.encode(), name, shown.encode("utf-8", "surrogatepass")))
            seen[key] += 1
            yield report, finding, hashlib.sha256(b"%s\0%d" % (key, seen[key])).hexdigest()[:32]
