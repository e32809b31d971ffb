"""The command `fix`: repair what `check` finds, or print the changes; imports the codemod and session."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from keepcause.commands import CommandError, session
from keepcause.commands.inputs import inputs
from keepcause.lint.attempt import attempt
from keepcause.lint.checked import Trouble
from keepcause.lint.rule import all_rules, structured_codes
from keepcause.report.text import printable, shown_path

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import TextIO

    from keepcause.codemod.outcome import Outcome

_UNDECLARED = (
    "{}: imports keepcause, but declares no dependency on it: declare it, or copy the runtime by `keepcause vendor "
    "DIR` and name the copy's classes in [tool.keepcause], worker-init-error and checkpoint-error."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options to its parser."""
    session.add_options(parser)
    parser.add_argument("--diff", action="store_true", help="print the changes as a unified diff, change nothing")
    parser.add_argument(
        "--structured", action="store_true", help=f"turn on {', '.join(structured_codes())} and make their repairs"
    )
    parser.add_argument("--show-fixes", action="store_true", help="list what is repaired in which file")
    parser.add_argument(
        "--exit-non-zero-on-fix", action="store_true", help="end with exit code 1 also where all was repaired"
    )


def run(options: argparse.Namespace) -> int:
    """Repair what is found; returns 1 where something is left or a diff is not empty, 2 where there was trouble."""
    try:
        from keepcause.codemod.apply import allowed_fixes
        from keepcause.codemod.outcome import Outcome
        from keepcause.codemod.write import WriteError, diff, write
    except ModuleNotFoundError as error:
        if error.name != "libcst":
            raise
        raise CommandError("`keepcause fix` needs LibCST: pip install 'keepcause[fix]'") from error
    asked = inputs(options)
    this = session.Session(options, asked.given)
    codes = structured_codes() if options.structured else ()
    outcome = Outcome(allowed_fixes(unsafe=this.here["unsafe-fixes"], codes=codes))
    text = b"".join((asked.given or {}).values())
    for engine, report in this.reports_one_by_one(asked.paths):
        result = attempt(report.path, partial(outcome.add, engine, report), "repaired")
        if isinstance(result, Trouble):
            this.complain(result)
        elif options.diff:
            patch = diff(report.path, report.data, result)
            sys.stdout.buffer.write(_shown(patch) if sys.stdout.isatty() else patch)
            sys.stdout.flush()
        elif asked.given is not None:
            text = result
        elif result != report.data:
            try:
                write(report.path, report.data, result)
            except WriteError as error:
                outcome.take_back(report.path, str(error))
                this.complain(Trouble(str(report.path), f"not repaired: {error}"))
    if not options.diff:
        sys.stdout.buffer.write(text)
        this.print(outcome.left, sys.stdout if asked.given is None else sys.stderr)
    if not options.quiet:
        changes_on_stdout = options.diff or asked.given is not None
        beside = sys.stderr if changes_on_stdout or not this.for_people else sys.stdout
        _tell(outcome, options, beside, this.nothing_found())
    counts = options.diff or options.exit_non_zero_on_fix
    return this.exit_code(bool(outcome.left) or (counts and bool(outcome.repaired)))


def _shown(patch: bytes) -> bytes:
    """A patch for people: what would steer their terminal is shown as escapes."""
    lines = patch.decode("utf-8", "surrogateescape").split("\n")
    return "\n".join(printable(line.removesuffix("\r")) for line in lines).encode()


def _tell(outcome: Outcome, options: argparse.Namespace, stream: TextIO, nothing: str) -> None:
    repaired = "can be repaired" if options.diff else "repaired"
    if options.show_fixes:
        stream.writelines(_fixes(outcome.repaired, repaired))
    print(outcome.summary(repaired) or nothing, file=stream)
    for root in outcome.undeclared():
        print(_UNDECLARED.format(printable(str(root))), file=stream)


def _fixes(counts: Mapping[Path, Mapping[str, int]], repaired: str) -> Iterator[str]:
    """The lines that name each file with the rules of which something is repaired in it."""
    names = {rule.code: rule.name for rule in all_rules()}
    for path, codes in counts.items():
        yield f"{shown_path(path)}:\n"
        yield from (f"  {count} {repaired}: {code} {names[code]}\n" for code, count in sorted(codes.items()))
