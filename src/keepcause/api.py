"""The linter and the codemod as functions of Python; imports linter and configuration, the codemod only to fix."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, AnyStr, Generic, Literal, TypedDict

from keepcause.config import KEYS, ConfigError
from keepcause.config.layers import Layers
from keepcause.lint.checked import Trouble
from keepcause.lint.finding import Finding
from keepcause.lint.rule import structured_codes
from keepcause.lint.source import SourceError, decode, detect_encoding
from keepcause.run import Run

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias, Unpack

    from keepcause.codemod.apply import Repair
    from keepcause.lint.checked import FileReport
    from keepcause.lint.engine import Engine

    Texts: TypeAlias = "list[str] | tuple[str, ...]"

__all__ = [
    "ConfigError",
    "Finding",
    "FixResult",
    "LintResult",
    "Options",
    "SourceError",
    "Trouble",
    "fix_source",
    "lint_paths",
    "lint_source",
]
_BOM = "\ufeff"


class Options(TypedDict, total=False):
    """The keys of `[tool.keepcause]`, with underscores, over what the file says; and which file that is."""

    config: str | os.PathLike[str]
    """Read this file, not the nearest pyproject.toml."""
    isolated: bool
    """Read no file."""
    select: Texts
    extend_select: Texts
    ignore: Texts
    per_file_ignores: Mapping[str, Texts]
    exclude: Texts
    extend_exclude: Texts
    force_exclude: bool
    evidence: Literal["sure", "likely", "possible"]
    single_file: bool
    worker_init: Texts
    not_worker_init: Texts
    rank_names: Texts
    worker_init_error: str
    checkpoint_error: str
    unsafe_fixes: bool


@dataclass(frozen=True)
class LintResult:
    """What is found in many files: each with findings, and each path that could not be checked, with the reason."""

    findings: Mapping[Path, tuple[Finding, ...]]
    troubles: tuple[Trouble, ...]


@dataclass(frozen=True)
class FixResult(Generic[AnyStr]):
    """A repaired source, text or bytes as it was given; the `no_fix` of what is left says why it is."""

    source: AnyStr
    fixed: tuple[Finding, ...]
    left: tuple[Finding, ...]


def lint_source(
    source: str | bytes, filename: str | os.PathLike[str] | None = None, **options: Unpack[Options]
) -> list[Finding]:
    """The findings in the text of one file, by position.

    With a `filename`, which need not be there, its configuration and its program count, as in `keepcause check`;
    without one nothing but the source and the options does. Lines of a finding count from 1, columns from 0.

    Raises SourceError where the source may hold a finding and is no Python, ConfigError where the configuration can't
    be used, ValueError and TypeError for options that there are not.
    """
    return list(_Text(source, filename, options).report().findings)


def lint_paths(paths: Iterable[str | os.PathLike[str]], **options: Unpack[Options]) -> LintResult:
    """The findings in files and folders, as `keepcause check` reports them.

    Raises ConfigError, ValueError and TypeError as `lint_source` does, but for a file below the paths that configures
    its own folder: that is a trouble.
    """
    if isinstance(paths, str | bytes):
        raise TypeError(f"expected a list of paths, not {paths!r}")
    layers = _layers(options)
    layers.at(Path())
    run = Run(layers)
    findings: dict[Path, tuple[Finding, ...]] = {}
    troubles: dict[Trouble, None] = {}
    for path in run.files(map(Path, paths)):
        found = path if isinstance(path, Trouble) else run.check(path)
        if isinstance(found, Trouble):
            troubles[found] = None
        elif found.findings:
            findings[found.path] = found.findings
    return LintResult(findings, tuple(troubles))


def fix_source(
    source: AnyStr,
    filename: str | os.PathLike[str] | None = None,
    *,
    structured: bool = False,
    **options: Unpack[Options],
) -> FixResult[AnyStr]:
    """Repair the text of one file, as `keepcause fix` does; nothing is written.

    Raises what `lint_source` raises, and ModuleNotFoundError where LibCST, which it needs, is not installed.
    """
    text = _Text(source, filename, options, structured_codes() if structured else ())
    result = text.repaired()
    return FixResult(_as(source, result.data), result.applied, result.remaining)


class _Text:
    """The text of one file, and the engine for it."""

    def __init__(
        self,
        source: str | bytes,
        filename: str | os.PathLike[str] | None,
        options: Options,
        more: tuple[str, ...] = (),
    ) -> None:
        self._more = more
        alone: Options = {} if filename else {"isolated": "config" not in options, "single_file": True}
        layers = _layers({**alone, **options}, more)
        self.path = Path(filename or "<source>")
        self.data = source if isinstance(source, bytes) else _encoded(source)
        self.unsafe_fixes = bool(layers.at(self.path.parent)["unsafe-fixes"])
        self.engine: Engine = Run(layers, {self.path: self.data}).engine(self.path)

    def report(self) -> FileReport:
        """What the engine finds; raises SourceError."""
        report = self.engine.check(self.path)
        if isinstance(report, Trouble):
            raise SourceError(report.reason, report.line)
        return report

    def repaired(self) -> Repair:
        """What becomes of the findings; raises SourceError, and ModuleNotFoundError without LibCST."""
        try:
            from keepcause.codemod.apply import allowed_fixes, repair_file
        except ModuleNotFoundError as error:
            if error.name != "libcst":
                raise
            reason = "keepcause.fix_source needs LibCST: pip install 'keepcause[fix]'"
            raise ModuleNotFoundError(reason, name=error.name) from error
        try:
            return repair_file(self.report(), self.engine, allowed_fixes(unsafe=self.unsafe_fixes, codes=self._more))
        except RecursionError as error:
            raise SourceError("nested too deeply to be repaired") from error


def _layers(options: Options, more: tuple[str, ...] = ()) -> Layers:
    keys = {key.name.replace("-", "_"): key for key in KEYS}
    given: dict[str, object] = {}
    file, isolated = options.get("config"), options.get("isolated", False)
    for name, value in options.items():
        if name in ("config", "isolated"):
            continue
        if name not in Options.__annotations__:
            raise TypeError(f"there is no option {name!r}")
        try:
            given[keys[name].name] = keys[name].kind.read(value, Path.cwd())
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
    return Layers(given, file=None if file is None else Path(file), isolated=isolated, more=more)


def _encoded(text: str) -> bytes:
    """The bytes of a file that holds `text`, in the encoding that it declares."""
    try:
        data = text.encode()
        encoding = detect_encoding(data)
        return data if encoding.startswith("utf-8") else text.encode(encoding)
    except UnicodeEncodeError as error:
        raise SourceError(f"can't be encoded as {error.encoding}: {error.reason}") from error


def _as(given: AnyStr, data: bytes) -> AnyStr:
    """`data` as text or bytes, whichever `given` is, with a byte order mark if that has one."""
    if isinstance(given, bytes):
        return data
    return (_BOM if given.startswith(_BOM) else "") + decode(data)[0]
