"""What has to stay true of the package as a whole, so that code, tests and texts can't drift apart."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import keepcause
from keepcause import cli, testing
from keepcause.lint.finding import Safety
from keepcause.lint.rule import Rule, all_codes, all_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PACKAGE = Path(keepcause.__file__).parent
HEADINGS = ["What it does", "Why it is bad", "Bad", "Good", "Fix safety"]

MAY_IMPORT = {
    "runtime": {"runtime"},
    "lint": {"lint"},
    "codemod": {"lint", "config", "codemod"},
    "report": {"lint", "report"},
    "config": {"lint", "config"},
    "cache": {"lint"},
    "parallel": set(),
    "history": {"lint", "cache"},
    "run": {"lint", "config", "cache", "history", "parallel"},
    "flake8": {"lint", "config"},
    "commands": {"runtime", "lint", "config", "report", "codemod", "cache", "run", "commands"},
    "cli": {"commands"},
    "__main__": {"cli"},
    "__init__": {"runtime", "api"},
    "api": {"lint", "config", "run", "codemod"},
    "testing": {"runtime"},
}
"""Which rooms each room may import: only those below it."""

LINT_MAY_IMPORT = {
    "unparsed": set(),
    "chaining": {"unparsed"},
    "pickling": {"unparsed"},
    "lazy": {"pickling", "unparsed"},
    "structured": {"chaining"},
    "evidence": {"lazy", "unparsed"},
    "rules": {"chaining", "lazy", "pickling", "structured", "unparsed"},
}
"""The same of the linter's own rooms; what stands beside them, any of them may import."""

THIRD_PARTY = {"codemod": {"libcst"}, "flake8": {"flake8"}, "runtime": {"torch"}}
"""What else a room may import; the runtime's only inside of functions."""

each_rule = pytest.mark.parametrize("rule", all_rules(), ids=[rule.code for rule in all_rules()])


def test_codes_are_known_by_the_names_of_modules() -> None:
    assert all_codes() == tuple(rule.code for rule in all_rules())


def table_rows() -> dict[str, list[str]]:
    """The README's table of rules: code -> the row's other cells."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.partition("<!-- rules -->\n")[2].partition("<!-- /rules -->")[0]
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert [header[0], header[1], *header[3:]] == ["code", "name", "default", "fix"]
    links = [re.fullmatch(r"\[(KC\d+)\]\(docs/rules/\1\.md\)", row[0]) for row in rows]
    return {link[1]: row[1:] for link, row in zip(links, rows, strict=True) if link}


@each_rule
def test_a_rule_is_documented(rule: Rule) -> None:
    text = rule.documentation()
    headings = re.findall(r"^## (.*)", text, re.MULTILINE)
    assert headings in (HEADINGS, [*HEADINGS, "Options"])
    assert not text.startswith("#")
    assert all(part.strip() for part in re.split(r"^## .*", text, flags=re.MULTILINE))
    folder = ROOT / "tests" / "fixtures" / rule.code
    assert (folder / "bad.py").is_file()
    assert (folder / "good.py").is_file()
    assert (folder / "bad.fixed.py").is_file() or rule.fixes == "none"
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^- Rule {rule.code} `{rule.name}`[,:] ", changelog, re.MULTILINE)
    file = f"{rule.code.lower()}_{rule.name.replace('-', '_')}.py"
    assert Path(sys.modules[type(rule).__module__].__file__ or "").name == file


def test_the_table_of_rules_is_the_registry() -> None:
    rows = table_rows()
    assert list(rows) == [rule.code for rule in all_rules()]
    for rule in all_rules():
        name, what, default, fix = rows[rule.code]
        assert (name, default, fix) == (rule.name, "on" if rule.on_by_default else "off", rule.fixes)
        assert what


def test_no_two_rules_share_a_name() -> None:
    assert len({rule.name for rule in all_rules()}) == len({rule.code for rule in all_rules()}) == len(all_rules())


def modules() -> Iterator[tuple[str, Path]]:
    """Each module of the package with its room: the first part of its name."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).parts[0].removesuffix(".py"), path


def imported(path: Path, *, outside_of_functions: bool = False) -> Iterator[str]:
    """The absolute names of the modules that a module imports, those for type checkers included."""
    package = ["keepcause", *path.relative_to(PACKAGE).parts[:-1]]
    pending: list[ast.AST] = [ast.parse(path.read_bytes())]
    while pending:
        node = pending.pop()
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = (
                    [*package[: len(package) - level + 1], *([module] if module else [])] if level else [module or ""]
                )
                yield from (".".join([*base, alias.name]) for alias in names)
            case ast.FunctionDef() | ast.AsyncFunctionDef() if outside_of_functions:
                continue
        pending += ast.iter_child_nodes(node)


@pytest.mark.parametrize(
    ("room", "path"), list(modules()), ids=[str(path.relative_to(PACKAGE)) for _, path in modules()]
)
def test_rooms_import_only_downwards(room: str, path: Path) -> None:
    for name in imported(path):
        top, _, rest = name.partition(".")
        if top == "keepcause":
            assert rest.partition(".")[0] in MAY_IMPORT[room], f"{path} imports {name}"
        else:
            allowed = THIRD_PARTY.get(room, set())
            assert top in sys.stdlib_module_names or top in allowed, f"{path} imports {name}"
    if room == "runtime":
        assert all(
            name.split(".")[0] in {*sys.stdlib_module_names, "keepcause"}
            for name in imported(path, outside_of_functions=True)
        )
        assert b"import keepcause" not in path.read_bytes(), "the runtime is a package of its own when it is copied"
        assert b"from keepcause" not in path.read_bytes()


@pytest.mark.parametrize(
    "room", [path.name for path in sorted((PACKAGE / "lint").iterdir()) if (path / "__init__.py").exists()]
)
def test_the_linters_rooms_import_only_downwards(room: str) -> None:
    for path in (PACKAGE / "lint" / room).glob("*.py"):
        for name in imported(path):
            other = name.removeprefix("keepcause.lint.").partition(".")[0]
            assert other not in LINT_MAY_IMPORT or other in {room, *LINT_MAY_IMPORT[room]}, f"{path} imports {name}"


@pytest.mark.parametrize(
    ("statement", "never"),
    [
        ("import keepcause", ["keepcause.lint", "keepcause.cli", "keepcause.codemod", "keepcause.report"]),
        ("import keepcause.flake8", ["libcst", "keepcause.codemod", "keepcause.cli", "keepcause.report"]),
        ("import keepcause.__main__", ["keepcause.lint", "keepcause.cli", "libcst"]),
        ("import keepcause.cli", ["keepcause.lint", "keepcause.config", "keepcause.runtime"]),
        (
            "import keepcause.cli; keepcause.cli._command('check')",
            ["libcst", "keepcause.codemod", "keepcause.runtime", "keepcause.lint.engine", "keepcause.lint.source"],
        ),
        (
            "from keepcause.lint.engine import Settings, looking; looking(b'x = 1', Settings())",
            ["keepcause.lint.evidence.graph", "keepcause.lint.evidence.program"],
        ),
    ],
)
def test_what_an_import_loads(statement: str, never: list[str]) -> None:
    loaded_now = "{module.__name__ for module in list(sys.modules.values())}"
    code = f"import json, sys; before = {loaded_now}; {statement}; print(json.dumps(list({loaded_now} - before)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    loaded = json.loads(done.stdout)
    assert not set(never) & set(loaded)
    assert {name.partition(".")[0] for name in loaded} <= {*sys.stdlib_module_names, "keepcause"}


def test_every_module_says_what_it_is() -> None:
    for _, path in modules():
        docstring = ast.get_docstring(ast.parse(path.read_bytes())) or ""
        assert docstring.partition("\n")[0].endswith((".", ":")), path
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 430, path


def documents() -> dict[Path, str]:
    """The text of each page for users."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    return {page.relative_to(ROOT): page.read_text(encoding="utf-8") for page in pages}


def test_documents_name_no_rule_that_is_not() -> None:
    codes = {rule.code for rule in all_rules()}
    for page, text in documents().items():
        assert set(re.findall(r"\bKC\d{3}\b", text)) <= codes, page


def test_every_option_and_command_is_documented() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    everything = "\n".join(documents().values())
    for name in cli.COMMANDS:
        assert f"`keepcause {name}" in readme, name
        assert f"`keepcause {name}" in changelog, name
        for option in {*cli._options_of(name)} - {"-h", "--help"}:
            assert re.search(rf"(?<![\w-]){option}(?![\w-])", everything), f"keepcause {name} {option}"


def test_every_name_for_users_is_documented() -> None:
    text = "\n".join(text for page, text in documents().items() if page.name != "CHANGELOG.md")
    for name in keepcause.__all__:
        assert re.search(rf"`(?:keepcause\.)?{name}\b", text), name
    assertions = [name for name in vars(testing) if name.startswith(("assert_", "check_"))]
    assert assertions
    assert [name for name in assertions if name not in text] == []


def test_the_version_is_written_once() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    files = [*PACKAGE.rglob("*.py"), *ROOT.glob("docs/**/*.*"), *ROOT.glob("*.y*ml"), ROOT / ".pre-commit-hooks.yaml"]
    for path in [*files, ROOT / "README.md", ROOT / "Makefile"]:
        assert not re.search(rf"(?<![\d.]){re.escape(version)}(?![\d.])", path.read_text(encoding="utf-8")), path


def test_the_readme_names_the_targets_of_make() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / "README.md").read_text(encoding="utf-8"), re.M))
    assert named == targets - {"clean"}


def test_safety_is_told_in_the_words_of_the_table() -> None:
    words = {"none", "safe or unsafe, per case", *Safety}
    assert {rule.fixes for rule in all_rules()} <= words
