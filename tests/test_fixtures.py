"""Each rule's fixture folder, and the examples of its docstring, through the real engine and the real repair.

A comment `# KC101` or `# KC101: some text` in `bad.py` expects a finding that starts on its line, or on the next line
where the comment stands alone; the text is part of the finding's message, its fix's title, or the reason for no fix.
"""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from keepcause.codemod.apply import Repair, repair_file
from keepcause.lint.checked import FileReport
from keepcause.lint.engine import Engine, Settings
from keepcause.lint.finding import Safety
from keepcause.lint.rule import all_rules

if TYPE_CHECKING:
    from keepcause.lint.finding import Finding
    from keepcause.lint.rule import Rule

FIXTURES = Path(__file__).parent / "fixtures"
FOLDERS = sorted(FIXTURES.glob("KC*"))
EXPECTATION = re.compile(r"#\s*(?P<code>KC\d+)(?:: (?P<text>.+))?")
SAFE = frozenset({Safety.SAFE})
EVERYTHING = frozenset(Safety)
REVIEWING = {rule.code for rule in all_rules() if rule.reviews}

each_folder = pytest.mark.parametrize("folder", FOLDERS, ids=[folder.name for folder in FOLDERS])
each_rule = pytest.mark.parametrize("rule", all_rules(), ids=[rule.code for rule in all_rules()])


class Checked:
    """One file checked for one rule, where no folder's name makes it a test."""

    def __init__(self, folder: Path, code: str, data: bytes) -> None:
        (folder / "pyproject.toml").touch()
        self.path = folder / "checked.py"
        self.path.write_bytes(data)
        # What looks at the comments of other rules needs these, and the whole program.
        codes = {rule.code for rule in all_rules()} if code in REVIEWING else {code}
        self._engine = Engine(Settings(codes=frozenset(codes), single_file=code not in REVIEWING))
        report = self._engine.check(self.path)
        assert isinstance(report, FileReport), report
        self.report = report

    def repaired(self, allowed: frozenset[Safety]) -> Repair:
        """The file after its fixes, as `keepcause fix` makes them."""
        return repair_file(self.report, self._engine, allowed)


def expectations(data: bytes) -> list[tuple[int, str, str]]:
    """Line, code and text of each inline expectation."""
    found = []
    for token in tokenize.tokenize(io.BytesIO(data).readline):
        if token.type == tokenize.COMMENT and (match := EXPECTATION.fullmatch(token.string)):
            alone = token.line.lstrip().startswith("#")
            found.append((token.start[0] + alone, match["code"], match["text"] or ""))
    return found


def said(finding: Finding) -> str:
    """All that a finding tells its reader."""
    return "\n".join([finding.message, finding.fix.title if finding.fix else "", finding.no_fix])


@each_folder
def test_bad_has_the_expected_findings(folder: Path, tmp_path: Path) -> None:
    data = (folder / "bad.py").read_bytes()
    findings = Checked(tmp_path, folder.name, data).report.findings
    expected = expectations(data)
    assert expected
    assert [(finding.span.line, finding.code) for finding in findings] == [(line, code) for line, code, _ in expected]
    for finding, (line, _, text) in zip(findings, expected, strict=True):
        assert text in said(finding), f"line {line}: {said(finding)}"


@each_folder
def test_good_has_none(folder: Path, tmp_path: Path) -> None:
    assert Checked(tmp_path, folder.name, (folder / "good.py").read_bytes()).report.findings == ()


@each_folder
@pytest.mark.parametrize(("allowed", "result"), [(SAFE, "bad.fixed.py"), (EVERYTHING, "bad.unsafe.py")])
def test_bad_is_repaired(folder: Path, tmp_path: Path, allowed: frozenset[Safety], result: str) -> None:
    bad = Checked(tmp_path, folder.name, (folder / "bad.py").read_bytes())
    expected = folder / result if (folder / result).exists() else folder / "bad.fixed.py"
    if not expected.exists():
        assert all(finding.fix is None for finding in bad.report.findings)
        return
    repaired = bad.repaired(allowed)
    assert repaired.failed == ()
    assert repaired.data.decode() == expected.read_text(encoding="utf-8")
    again = Checked(tmp_path, folder.name, repaired.data)
    assert len(again.report.findings) == len(repaired.left)
    assert again.repaired(allowed).data == repaired.data


@each_rule
def test_examples_of_the_docstring(rule: Rule, tmp_path: Path) -> None:
    code = rule.code
    bad, good = (example(rule, heading).encode() for heading in ("Bad", "Good"))
    checked = Checked(tmp_path, code, bad)
    assert {finding.code for finding in checked.report.findings} == {code}
    if any(finding.fix for finding in checked.report.findings):
        assert checked.repaired(EVERYTHING).data.decode() == good.decode()
    assert Checked(tmp_path, code, good).report.findings == ()


def example(rule: Rule, heading: str) -> str:
    """The code block below a heading of a rule's docstring."""
    (block,) = re.findall(rf"^## {heading}\n\n```python\n(.*?)^```", rule.documentation(), re.MULTILINE | re.DOTALL)
    return str(block)
