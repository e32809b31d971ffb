"""SARIF 2.1.0, which code scanning reads; imports the linter's data and registry.

The format: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import json
import os
from importlib.metadata import version
from typing import TYPE_CHECKING
from urllib.parse import quote

from keepcause.lint.rule import all_rules
from keepcause.report.location import fingerprinted, repository, within
from keepcause.report.text import printable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from keepcause.lint.checked import FileReport
    from keepcause.lint.finding import Finding, Span, Step, WorkerInit
    from keepcause.lint.rule import Rule

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVEL = "error"
_ROOT = "%SRCROOT%"


def render(reports: Sequence[FileReport]) -> str:
    """One run with every rule; a worker-init path is a code flow with a location for each of its steps."""
    root = repository()
    rules = all_rules()
    index = {rule.code: number for number, rule in enumerate(rules)}
    driver = {"name": "keepcause", "version": version("keepcause"), "rules": [_rule(rule) for rule in rules]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"uri": f"file://{quote(os.fsencode(root)).rstrip('/')}/"}},
        "results": [
            {
                "ruleId": finding.code,
                "ruleIndex": index[finding.code],
                "level": _LEVEL,
                "message": {"text": printable(finding.message)},
                "locations": [_location(root, report.path, _region(finding.span))],
                "partialFingerprints": {"keepcause/v1": fingerprint},
                **_flow(root, finding),
            }
            for report, finding, fingerprint in fingerprinted(root, reports)
        ],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(rule: Rule) -> dict[str, object]:
    summary = {"text": " ".join(rule.documentation().partition("\n\n")[0].split())}
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": summary,
        "fullDescription": summary,
        "help": {"text": rule.page(), "markdown": rule.page()},
        "defaultConfiguration": {"enabled": rule.on_by_default, "level": _LEVEL},
    }


def _region(span: Span) -> dict[str, int]:
    return {
        "startLine": span.line,
        "startColumn": span.column + 1,
        "endLine": span.end_line,
        "endColumn": span.end_column + 1,
    }


def _location(root: Path, path: Path | str, region: dict[str, int]) -> dict[str, object]:
    name = within(root, path)
    artifact = {"uri": f"file://{quote(os.fsencode(os.path.abspath(path)))}"}
    if name is not None:
        artifact = {"uri": quote(name), "uriBaseId": _ROOT}
    return {"physicalLocation": {"artifactLocation": artifact, "region": region}}


def _flow(root: Path, finding: Finding) -> dict[str, object]:
    evidence: WorkerInit | None = finding.worker_init
    if evidence is None:
        return {}
    steps = [{"location": _step(root, step), "nestingLevel": depth} for depth, step in enumerate(evidence.path)]
    said = f"This is how it runs while a worker starts ({evidence.grade})"
    return {"codeFlows": [{"message": {"text": said}, "threadFlows": [{"locations": steps}]}]}


def _step(root: Path, step: Step) -> dict[str, object]:
    said = {"text": f"{printable(step.function)}: {printable(step.why)}"}
    return {**_location(root, step.file, {"startLine": max(step.line, 1)}), "message": said}
