"""The pages of the documentation: worked through, made from the code, and linked."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from typing import TYPE_CHECKING

import picture
import pytest
import write_pages

from keepcause.lint.rule import all_rules
from walk import ROOT, Reader

if TYPE_CHECKING:
    from pathlib import Path

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "page", ["docs/api.md", "docs/b904.md", "docs/flake8.md", "docs/pre-commit.md", "docs/tutorial.md"]
)
def test_a_page_does_what_it_says(page: str, reader: Reader, tmp_path: Path) -> None:
    reader.environment["PRE_COMMIT_HOME"] = str(tmp_path)
    reader.work_through(page)


def test_pages_of_rules_say_what_the_rules_say() -> None:
    pages = write_pages.rule_pages()
    assert {path: path.read_text(encoding="utf-8") for path in write_pages.RULES.iterdir()} == pages
    assert {path.stem for path in pages} == {"README", *(rule.code for rule in all_rules())}


def test_the_picture_shows_what_the_command_prints() -> None:
    assert write_pages.PICTURE.read_text(encoding="utf-8") == write_pages.picture()
    lines = ElementTree.parse(write_pages.PICTURE).iter("{http://www.w3.org/2000/svg}text")
    shown = ["".join(line.itertext()) for line in lines]
    assert shown == [line for line in write_pages.check("NO_COLOR").splitlines() if line]


def test_a_picture_has_the_terminals_colours() -> None:
    drawn = picture.svg("\x1b[1;31mKC101\x1b[0m <\x1b[36m&\x1b[39m>")
    (line,) = ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")
    assert [(span.get("style"), span.text, span.tail) for span in line] == [
        ("font-weight:bold;fill:#ff7b72", "KC101", " <"),
        ("fill:#76e3ea", "&", ">"),
    ]


def targets(page: Path) -> set[str]:
    """What the page links to, but for other sites."""
    found = LINK.findall(CODE.sub("", page.read_text(encoding="utf-8")))
    return {target for target in found if not target.startswith(("https://", "http://"))}


def anchors(page: Path) -> set[str]:
    """The names that the page's headings can be linked by, as GitHub and GitLab make them."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    for target in targets(page):
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), f"{page} links to {target}"
        assert path.is_relative_to(ROOT)
        if anchor:
            assert anchor in anchors(path), f"{page} links to {target}"


def test_every_page_is_reached_from_the_readme() -> None:
    reached, pending = set(), {ROOT / "README.md"}
    while pending:
        page = pending.pop()
        reached.add(page)
        if page.suffix == ".md":
            linked = {(page.parent / target.partition("#")[0]).resolve() for target in targets(page)}
            pending |= linked - reached
    assert {page for page in PAGES if page.is_relative_to(ROOT / "docs")} <= reached
