"""Uses of the public API, right and wrong, for mypy: wrong ones must be refused, as --strict has every ignore used."""

from __future__ import annotations

from pathlib import Path

import keepcause

with_text: list[keepcause.Finding] = keepcause.lint_source("x = 1\n")
with_bytes: list[keepcause.Finding] = keepcause.lint_source(b"x = 1\n", Path("a.py"), select=["KC101"], evidence="sure")
line: int = with_text[0].span.line
code: str = with_text[0].code

result: keepcause.LintResult = keepcause.lint_paths(["a.py", Path("b")], isolated=True, per_file_ignores={"a": ["KC1"]})
path_findings: dict[Path, tuple[keepcause.Finding, ...]] = dict(result.findings)
reason: str = result.troubles[0].reason

text: str = keepcause.fix_source("x = 1\n").source
data: bytes = keepcause.fix_source(b"x = 1\n", "a.py", unsafe_fixes=True, structured=True).source
fixed: tuple[keepcause.Finding, ...] = keepcause.fix_source("x").fixed

options: keepcause.Options = {"select": ["KC101"], "config": "x.toml"}
unpacked = keepcause.lint_source("x = 1\n", **options)

try:
    keepcause.lint_paths([], config=Path("x.toml"))
except keepcause.ConfigError as config_error:
    where: Path = config_error.path
except keepcause.SourceError as source_error:
    at: int = source_error.line

error = keepcause.WorkerInitError("no device", rank=3)

keepcause.lint_source(1)  # type: ignore[arg-type]
keepcause.lint_source("x", select="KC101")  # type: ignore[arg-type]
keepcause.lint_source("x", evidence="much")  # type: ignore[arg-type]
keepcause.lint_source("x", selct=["KC101"])  # type: ignore[call-arg]
keepcause.lint_source("x", output_format="json")  # type: ignore[call-arg]
keepcause.lint_paths("src")[0]  # type: ignore[index]
keepcause.fix_source("x", structured="yes")  # type: ignore[arg-type]
not_bytes: bytes = keepcause.fix_source("x").source  # type: ignore[assignment]
keepcause.fix_source("x", "a.py", True)  # type: ignore[call-arg]
keepcause.lint_file("a.py")  # type: ignore[attr-defined]
result.findings[Path("a.py")] = ()  # type: ignore[index]
with_text[0].code = "KC101"  # type: ignore[misc]
