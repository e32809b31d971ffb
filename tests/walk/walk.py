"""A page of the documentation as its reader works through it: files are written and commands run, in their order."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]

_BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_SESSION = re.compile(r"^\$ (?P<command>.*)\n(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE)
_NAMED = re.compile(r"# (?P<name>[\w./-]+\.\w+)\n")
_IDENTITY = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")


class Session(NamedTuple):
    """A command at the prompt and what it prints."""

    command: str
    output: str


class File(NamedTuple):
    """A file by the name that its first line, a comment, gives."""

    name: str
    text: str


def page(path: str) -> list[Session | File]:
    """What a reader of the page does: the commands of its `console` blocks and the files of the others."""
    steps: list[Session | File] = []
    for block in _BLOCK.finditer((ROOT / path).read_text(encoding="utf-8")):
        if block["kind"] == "console":
            steps += [Session(*match.group("command", "output")) for match in _SESSION.finditer(block["text"])]
        elif match := _NAMED.match(block["text"]):
            steps.append(File(match["name"], block["text"]))
    return steps


class Reader:
    """Somebody at a shell in `folder`, with this environment's commands and nobody's settings."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("GIT", "PYTHON", "TOX"))},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PRE_COMMIT_HOME": str(home),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "NO_COLOR": "1",
            **dict.fromkeys(_IDENTITY, "nobody@localhost"),
        }

    def ends(self, command: str) -> tuple[int, str]:
        """The exit code of a shell command and what it prints, errors included."""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=240,
        )
        return done.returncode, done.stdout

    def run(self, command: str, expect: int = 0) -> str:
        """What a shell command prints; it has to end with the exit code `expect`."""
        code, output = self.ends(command)
        assert code == expect, f"{command} ended with {code}:\n{output}"
        return output

    def write(self, file: File) -> None:
        """Write a file of a page."""
        path = self.folder / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, encoding="utf-8")

    def see(self, session: Session) -> None:
        """Run the command of a session; it has to print what the page says, where `...` stands for any text."""
        _, output = self.ends(session.command)
        same = doctest.OutputChecker().check_output(session.output, output, doctest.ELLIPSIS)
        assert same, f"$ {session.command}\n{output}\ninstead of\n{session.output}"

    def work_through(self, path: str) -> None:
        """Do all that the page says."""
        for step in page(path):
            if isinstance(step, File):
                self.write(step)
            else:
                self.see(step)
