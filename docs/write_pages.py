"""Write the pages that are made from the code: rules and their index, configuration, and the picture of the output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from configuration_page import configuration_page
from picture import svg

from keepcause.lint.rule import all_rules

DOCS = Path(__file__).resolve().parent
RULES = DOCS / "rules"
CONFIGURATION = DOCS / "configuration.md"
PICTURE = DOCS / "check.svg"
SERVICE = DOCS.parent / "examples" / "service"
_INDEX = """\
# Rules

Each rule's page says what it finds, why that is bad, and when its fix is safe. `keepcause rule CODE` prints the
same, `keepcause rule --all` prints all of them.

{}
"""


def rule_pages() -> dict[Path, str]:
    """The text of each file in the folder `rules`."""
    rules = all_rules()
    pages = {RULES / f"{rule.code}.md": rule.page() for rule in rules}
    lines = [f"- [{rule.code} `{rule.name}`]({rule.code}.md): {rule.page().splitlines()[2]}" for rule in rules]
    return {RULES / "README.md": _INDEX.format("\n".join(lines)), **pages}


def check(colour: str) -> str:
    """The command that the picture shows, and what it prints where the variable `colour` is set."""
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    done = subprocess.run(
        [sys.executable, "-m", "keepcause", "check"],
        cwd=SERVICE,
        env={**environment, colour: "1"},
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    return f"$ keepcause check\n{done.stdout}"


def picture() -> str:
    """The picture of the command's output in a terminal."""
    return svg(check("FORCE_COLOR"))


def main() -> None:
    """Write every page, and remove those of rules that are no more."""
    pages = rule_pages()
    RULES.mkdir(exist_ok=True)
    for stale in set(RULES.iterdir()) - pages.keys():
        stale.unlink()
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")
    CONFIGURATION.write_text(configuration_page(), encoding="utf-8")
    PICTURE.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
