"""The command line: `check`, `fix` and `rule`; imports every other room, the codemod only for `fix`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from keepcause import checkpoint, config
from keepcause.lint.engine import Engine, FileReport, Settings, Trouble, expand
from keepcause.lint.files import program_root
from keepcause.lint.finding import Finding, Grade, Safety
from keepcause.lint.rule import all_rules, structured_codes
from keepcause.lint.source import SourceError
from keepcause.report.progress import Progress
from keepcause.report.text import printable, shown_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

CLEAN, FOUND, TROUBLE = 0, 1, 2
_UNDECLARED = (
    "{}: imports keepcause, but declares no dependency on it: declare it, or copy the runtime by `keepcause vendor "
    "DIR` and name the copy's classes in [tool.keepcause], worker-init-error and checkpoint-error."
)


def main(arguments: Sequence[str]) -> int:
    """Run one command; returns 0 where nothing is found, 1 where something is, 2 where there was trouble."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except config.ConfigError as error:
        _complain(str(error))
        return TROUBLE
    except OSError as error:
        # The output can't be written. Python's own flush at exit must not fail for the same reason.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            _complain(f"stopped: {error}")
        return TROUBLE
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="keepcause", description="Keep the root cause of a failure visible.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and stop")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    check = commands.add_parser("check", help="find code that hides why something failed")
    _add_check_options(check)
    check.set_defaults(run=_check)

    fix = commands.add_parser("fix", help="repair what `check` finds")
    _add_check_options(fix)
    fix.add_argument("--diff", action="store_true", help="print the changes as a unified diff, change nothing")
    fix.add_argument("--unsafe-fixes", action="store_true", help="make unsafe repairs as well")
    fix.add_argument(
        "--structured", action="store_true", help=f"turn on {', '.join(structured_codes())} and make their repairs"
    )
    fix.add_argument("--show-fixes", action="store_true", help="list what is repaired in which file")
    fix.add_argument(
        "--exit-non-zero-on-fix", action="store_true", help="end with exit code 1 also where all was repaired"
    )
    fix.set_defaults(run=_fix)

    trace = commands.add_parser("trace", help="tell whether a function is on a worker-init path, and why")
    trace.add_argument("paths", nargs="+", metavar="FILE[:LINE]", help="with --roots: files and folders")
    trace.add_argument("--roots", action="store_true", help="list the launch sites of the programs instead")
    trace.add_argument("--isolated", action="store_true", help="read no configuration file")
    trace.set_defaults(run=_trace)

    checkpoint.add_options(commands.add_parser("checkpoint", help="tell what is at a checkpoint path"))

    vendor = commands.add_parser("vendor", help="copy the runtime into a project that can't depend on keepcause")
    vendor.add_argument("folder", type=Path, metavar="DIR", help="the package that the copy becomes")
    vendor.set_defaults(run=_vendor)

    rule = commands.add_parser("rule", help="explain a rule")
    rule.add_argument("code", nargs="?", metavar="CODE", help="the rule's code; without it, all rules are listed")
    rule.add_argument("--all", action="store_true", help="explain every rule")
    rule.set_defaults(run=_rule)
    return parser


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"keepcause {version('keepcause')}")
        parser.exit()


def _add_check_options(parser: argparse.ArgumentParser) -> None:
    keys = {key.name: key.help for key in config.KEYS}
    parser.add_argument("paths", nargs="*", type=Path, default=[Path()], metavar="PATH", help="files and folders")
    parser.add_argument("--select", type=_codes, metavar="CODES", help=keys["select"])
    parser.add_argument("--ignore", type=_codes, metavar="CODES", help=keys["ignore"])
    parser.add_argument("--evidence", choices=[grade.value for grade in Grade], help=keys["evidence"])
    parser.add_argument("--single-file", action="store_true", default=None, help=keys["single-file"])
    parser.add_argument("--isolated", action="store_true", help="read no configuration file")
    parser.add_argument("--output-format", choices=config.FORMATS, help=keys["output-format"])
    parser.add_argument("-q", "--quiet", action="store_true", help="print findings only")


def _codes(text: str) -> tuple[str, ...]:
    try:
        return config.codes([code for code in text.replace(",", " ").split() if code])
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


class _Session:
    """The files that one `check` or `fix` looks at, and the trouble that it met on the way."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self._complaints: set[str] = set()
        self._engines: dict[Settings, Engine] = {}
        self._progress = Progress(0)
        self._here = self._configured(Path())

    @property
    def output_format(self) -> str:
        """How findings are printed."""
        return str(self._here["output-format"])

    def reports(self) -> Iterator[tuple[Engine, FileReport]]:
        """Every file that could be checked, with the engine that did it."""
        paths = list(expand(self.options.paths))
        self._progress = Progress(len(paths))
        for path in paths:
            self._progress.advance()
            if isinstance(path, Trouble):
                self.complain(path)
                continue
            try:
                engine = self.engine(path.parent)
            except config.ConfigError as error:
                self.complain(error)
                continue
            report = engine.check(path)
            if isinstance(report, Trouble):
                self.complain(report)
            else:
                if report.findings:
                    self._progress.clear()
                yield engine, report
        self._progress.clear()

    @property
    def troubled(self) -> bool:
        """Whether something could not be checked or repaired."""
        return bool(self._complaints)

    def complain(self, trouble: Trouble | config.ConfigError) -> None:
        """Say what is wrong with a path, on the error stream and once."""
        text = str(trouble)
        if text not in self._complaints:
            self._complaints.add(text)
            self._progress.clear()
            _complain(text)

    def exit_code(self, found: bool) -> int:
        """The command's exit code; `found` says whether anything is left to do."""
        return TROUBLE if self.troubled else FOUND if found else CLEAN

    def _configured(self, folder: Path) -> config.Config:
        found = config.defaults() if self.options.isolated else config.nearest(Path(os.path.abspath(folder)))
        given = {key: getattr(self.options, key.replace("-", "_"), None) for key in found}
        configured = config.overridden(found, {key: value for key, value in given.items() if value is not None})
        if getattr(self.options, "structured", False):
            configured["select"] = (*configured["select"], *structured_codes())
        return configured

    def engine(self, folder: Path) -> Engine:
        """The engine for the files of `folder`; raises ConfigError."""
        settings = config.settings(self._configured(folder))
        return self._engines.setdefault(settings, Engine(settings))


def _check(options: argparse.Namespace) -> int:
    session = _Session(options)
    reports = [report for _, report in session.reports() if report.findings]
    _print(reports, session.output_format)
    findings = [finding for report in reports for finding in report.findings]
    if session.output_format != "json" and not options.quiet:
        print(_summary(findings, session.troubled))
    return session.exit_code(bool(findings))


def _summary(findings: Sequence[Finding], troubled: bool) -> str:
    if not findings:
        return "Nothing found in what could be checked." if troubled else "Nothing found."
    safety = Counter(finding.fix.safety for finding in findings if finding.fix is not None)
    safe, unsafe = safety[Safety.SAFE], safety[Safety.UNSAFE]
    text = f"Found {_count(len(findings), 'finding')}."
    if safe:
        text += f" `keepcause fix` repairs {safe}."
    if unsafe:
        text += f" `keepcause fix --unsafe-fixes` repairs {unsafe}{' more' if safe else ''}."
    return text


def _fix(options: argparse.Namespace) -> int:
    try:
        from keepcause.codemod.apply import WriteError, diff, write
        from keepcause.codemod.outcome import Outcome
    except ModuleNotFoundError as error:
        if error.name != "libcst":
            raise
        _complain("`keepcause fix` needs LibCST: pip install 'keepcause[fix]'")
        return TROUBLE
    session = _Session(options)
    safeties = Safety if options.unsafe_fixes else (Safety.SAFE,)
    outcome = Outcome(frozenset({*safeties, *(structured_codes() if options.structured else ())}))
    for engine, report in session.reports():
        try:
            result = outcome.add(engine, report) if report.findings else report.data
            if options.diff:
                sys.stdout.buffer.write(diff(report.path, report.data, result))
                sys.stdout.flush()
            elif result != report.data:
                write(report.path, report.data, result)
        except RecursionError:
            session.complain(Trouble(str(report.path), "nested too deeply to be repaired"))
        except WriteError as error:
            outcome.take_back(report.path, str(error))
            session.complain(Trouble(str(report.path), f"not repaired: {error}"))
    if not options.diff:
        _print(outcome.left, session.output_format)
    if not options.quiet:
        beside = sys.stderr if options.diff or session.output_format == "json" else sys.stdout
        repaired = "can be repaired" if options.diff else "repaired"
        if options.show_fixes:
            beside.writelines(_fixes(outcome.repaired, repaired))
        print(outcome.summary(repaired), file=beside)
        for root in outcome.undeclared():
            print(_UNDECLARED.format(printable(str(root))), file=beside)
    counts = options.diff or options.exit_non_zero_on_fix
    return session.exit_code(bool(outcome.left) or (counts and bool(outcome.repaired)))


def _fixes(counts: Mapping[Path, Mapping[str, int]], repaired: str) -> Iterator[str]:
    """The lines that name each file with the rules of which something is repaired in it."""
    names = {rule.code: rule.name for rule in all_rules()}
    for path, codes in counts.items():
        yield f"{shown_path(path)}:\n"
        yield from (f"  {count} {repaired}: {code} {names[code]}\n" for code, count in sorted(codes.items()))


def _trace(options: argparse.Namespace) -> int:
    from keepcause.report import trace

    session = _Session(options)
    for place in _places(options):
        if isinstance(place, Trouble):
            session.complain(place)
            continue
        path, line = place
        try:
            graph = session.engine(path.parent).graph(program_root(Path(os.path.abspath(path))))
            sys.stdout.writelines(trace.roots(graph, path) if options.roots else trace.functions(graph, path, line))
        except SourceError as error:
            session.complain(Trouble(str(path), error.reason, error.line))
    return session.exit_code(False)


def _places(options: argparse.Namespace) -> Iterator[tuple[Path, int | None] | Trouble]:
    """What `trace` is asked about: with --roots every file that the paths name, else each path with its line."""
    if options.roots:
        for found in expand(map(Path, options.paths)):
            yield found if isinstance(found, Trouble) else (found, None)
        return
    from keepcause.report import trace

    for text in options.paths:
        path, line = trace.target(text)
        if os.path.isdir(path):
            yield Trouble(text, "is a folder; name a file, or list the launch sites in it by --roots")
        elif not os.path.lexists(path):
            yield Trouble(str(path), "does not exist")
        else:
            yield path, line


def _vendor(options: argparse.Namespace) -> int:
    from keepcause.vendor import VendorError, vendor

    try:
        print(vendor(options.folder))
    except VendorError as error:
        _complain(str(error))
        return TROUBLE
    return CLEAN


def _rule(options: argparse.Namespace) -> int:
    rules = all_rules()
    if options.code is None and not options.all:
        for rule in rules:
            print(f"{rule.code} {rule.name}{'' if rule.on_by_default else ' (off by default)'}")
        return CLEAN
    chosen = [rule for rule in rules if options.all or rule.code == options.code.upper()]
    if not chosen:
        _complain(f"no rule has the code {options.code!r}; there are {', '.join(rule.code for rule in rules)}")
        return TROUBLE
    print("\n".join(rule.page() for rule in chosen), end="")
    return CLEAN


def _print(reports: Sequence[FileReport], output_format: str) -> None:
    render = importlib.import_module(f"keepcause.report.{output_format}").render
    sys.stdout.write(render(reports))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _complain(text: str) -> None:
    sys.stdout.flush()
    print(f"keepcause: {printable(text)}", file=sys.stderr)
