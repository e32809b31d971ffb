"""The command `check`: print findings and sum them up; imports linter, report, cache and session."""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from keepcause.commands import CommandError, session
from keepcause.commands.inputs import inputs
from keepcause.lint.files import CACHE_FOLDER, program_root
from keepcause.lint.finding import Safety
from keepcause.report.text import counted, shown_path

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Sequence

    from keepcause.lint.finding import Finding


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options to its parser."""
    session.add_options(parser)
    parser.add_argument("-o", "--output-file", type=Path, metavar="FILE", help="write the findings to a file")
    parser.add_argument("-e", "--exit-zero", action="store_true", help="exit with 0 also where something is found")
    parser.add_argument("--cache-dir", type=Path, metavar="DIR", help=f"keep what was found in DIR, not {CACHE_FOLDER}")
    parser.add_argument("-n", "--no-cache", action="store_true", help="check every file anew and keep nothing")
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="say why a file was not looked into, and which pyproject.toml counts",
    )
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--statistics", action="store_true", help="count the findings of each rule instead")
    instead.add_argument("--show-files", action="store_true", help="list the files that would be checked instead")
    instead.add_argument("--add-noqa", action="store_true", help="add `# noqa` comments to all findings instead")


def run(options: argparse.Namespace) -> int:
    """Print what is found; returns 1 where something is, 2 where there was trouble."""
    asked = inputs(options)
    this = session.Session(options, asked.given)
    _refuse_contradictions(options, this.output_format, from_stdin=asked.given is not None)
    if options.show_files:
        return _show_files(this, asked.paths, verbose=options.verbose)
    folder = None if options.no_cache else _cache_folder(options.cache_dir)
    if options.verbose:
        from keepcause.commands.verbose import told

        reports = [report for report in told(this, asked.paths) if report.findings]
    elif options.add_noqa:  # by the bytes that were checked, which `reports` does not keep
        reports = [report for _, report in this.reports_one_by_one(asked.paths) if report.findings]
    else:
        reports = list(this.reports(asked.paths, cache=folder))
    if options.add_noqa:
        from keepcause.commands.add_noqa import add_noqa

        return add_noqa(this, reports, quiet=options.quiet)
    findings = [finding for report in reports for finding in report.findings]
    with _output(options.output_file) as stream:
        if options.statistics:
            from keepcause.report import statistics

            stream.write((statistics.table if this.for_people else statistics.as_json)(findings))
        else:
            this.print(reports, stream)
    if not options.quiet and (this.for_people or options.output_file):
        print(_summary(findings, this.here["unsafe-fixes"]) if findings else this.nothing_found())
    return this.exit_code(bool(findings) and not options.exit_zero)


def _refuse_contradictions(options: argparse.Namespace, output_format: str, *, from_stdin: bool) -> None:
    """Raise CommandError where one option leaves nothing to do for another."""
    if options.statistics and output_format not in ("full", "concise", "json"):
        raise CommandError(f"--statistics has no output format {output_format}; there are full, concise, json")
    if options.add_noqa and from_stdin:
        raise CommandError("--add-noqa changes files, and standard input is none")
    if options.output_file and (options.show_files or options.add_noqa):
        raise CommandError("--output-file takes findings, and --show-files and --add-noqa print none")
    if options.output_file and options.output_file.suffix in (".py", ".pyi"):
        raise CommandError(f"{options.output_file}: is called like a Python file, which the findings would replace")


def _cache_folder(named: Path | None) -> Path | None:
    """The folder for what was found: the one that is named, else one in the root of the project around.

    None where a link stands in its place: it may have come with the checked code, and lead anywhere.
    """
    if named is None:
        folder = program_root(Path.cwd() / "_") / CACHE_FOLDER
        return None if os.path.islink(folder) else folder
    from keepcause.cache import CacheError, check_folder  # here, as not every run needs it

    try:
        check_folder(named)
    except (CacheError, OSError) as error:
        raise CommandError(f"--cache-dir: {error}") from error
    return named


def _show_files(this: session.Session, paths: Iterable[Path], *, verbose: bool) -> int:
    if verbose:
        from keepcause.commands.verbose import listed
    for path in listed(this, paths) if verbose else this.files(paths):
        print(shown_path(path))
    return this.exit_code(False)


@contextlib.contextmanager
def _output(path: Path | None) -> Iterator[TextIO]:
    """Where findings go: a file, with the folders that it needs, or standard output."""
    if path is None:
        yield sys.stdout
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as stream:
            yield stream
    except OSError as error:
        raise CommandError(f"{path}: can't be written: {error.strerror or error}") from error


def _summary(findings: Sequence[Finding], unsafe_too: bool) -> str:
    safety = Counter(finding.fix.safety for finding in findings if finding.fix is not None)
    safe, unsafe = safety[Safety.SAFE], safety[Safety.UNSAFE]
    if unsafe_too:
        safe, unsafe = safe + unsafe, 0
    text = f"Found {counted(len(findings), 'finding')}."
    if safe:
        text += f" `keepcause fix` repairs {safe}."
    if unsafe:
        text += f" `keepcause fix --unsafe-fixes` repairs {unsafe}{' more' if safe else ''}."
    return text
