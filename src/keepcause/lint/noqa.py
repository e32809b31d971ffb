"""Comments that keep findings quiet, `# noqa` as flake8 reads it and `# keepcause: noqa`; standard library only."""

from __future__ import annotations

import io
import re
import tokenize
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from keepcause.lint.source import NEWLINE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from keepcause.lint.finding import Finding

_CODES = r"(?P<codes>(?:[A-Z]+[0-9]+(?:[,\s]+)?)+)"
# flake8's grammar, traps included: one blank between `#` and `noqa`; codes that it can't read make the comment a
# blanket one, and codes behind the comment for a file do not count.
_INLINE = re.compile(rf"# noqa(?::\s?{_CODES})?", re.IGNORECASE)
_FLAKE8_FILE = re.compile(r"\s*# flake8[:=]\s*noqa", re.IGNORECASE)
# Ours has none: codes that can't be read mean no rule.
_OWN_FILE = re.compile(rf"#\s*keepcause:\s*noqa\b(?P<listed>\s*:\s*|\s+(?=[A-Z]+[0-9]))?{_CODES}?", re.IGNORECASE)
_CODE = re.compile(r"[^,\s]+")


@dataclass(frozen=True)
class Directive:
    """A comment that names codes: on its line, or for the whole file.

    The comment begins at column `column` (characters, from 0) of line `line`; the directive and its codes are slices of
    the comment's text. `first` and `last` are the lines of a statement that it speaks for, 0 for the whole file.
    """

    line: int
    column: int
    comment: str
    place: slice
    codes_place: slice
    first: int = 0
    last: int = 0

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes that it names, each of which may be a prefix."""
        return tuple(_CODE.findall(self.comment[self.codes_place]))

    def concerns(self, finding: Finding) -> bool:
        """Whether it stands where it can keep the finding quiet."""
        return not self.first or (self.first <= finding.statement.end_line and finding.statement.line <= self.last)


class Suppressions:
    """What the comments of one file, whose text this is, keep quiet."""

    def __init__(self, text: str) -> None:
        self._lines = NEWLINE.split(text)
        self._any = "noqa" in text.lower()
        self._text = text

    def cover(self, finding: Finding) -> bool:
        """Whether a comment covers the finding: one for the file, or one on any line of its statement."""
        if not self._any:
            return False
        if self.whole_file or finding.code.startswith(tuple(self._own)):
            return True
        statement = finding.statement
        places = {self.rows(line) for line in range(statement.line, statement.end_line + 1)}
        return any(covers(self._joined(*place), finding.code) for place in places)

    def rows(self, line: int) -> tuple[int, int]:
        """The first and the last of the lines in which flake8 looks for a comment on `line`.

        Several lines are one where a string or a backslash joins them.
        """
        return self._scanned[0].get(line, (line, line))

    @cached_property
    def whole_file(self) -> bool:
        """Whether a comment leaves out the whole file."""
        return any(_FLAKE8_FILE.match(line) for line in self._lines) or any(
            match["listed"] is None for _, match in self._file_comments
        )

    def directives(self) -> Iterator[Directive]:
        """Every comment that names codes and is read."""
        if self._any:
            for token, match in self._file_comments:
                if match["codes"]:
                    yield _directive(token, match, (0, 0))
            for token in self._comments:
                line, column = token.start
                first, last = self.rows(line)
                read = _INLINE.search(self._joined(first, last))
                before = sum(len(text) + 1 for text in self._lines[first - 1 : line - 1]) + column
                # A string may have said it first: then flake8 does not read the comment.
                if read and read["codes"] and read.start() >= before:
                    yield _directive(token, _INLINE.search(token.string), (first, last))

    def place(self, finding: Finding) -> int:
        """The line at whose end a comment for the finding is read; 0 where there is none.

        It is the first one of those on which flake8 reports the statement, unless a string says `# noqa` there.
        """
        lines = (finding.span.line, *range(finding.statement.line, finding.statement.end_line + 1))
        for first, last in dict.fromkeys(map(self.rows, lines)):
            read = _INLINE.search(self._joined(first, last))
            start = sum(len(text) + 1 for text in self._lines[first - 1 : last - 1])
            comment = self._comment_on(last)
            if read is None or (comment is not None and read.start() >= start + comment.start[1]):
                return last
        return 0

    def end(self, line: int) -> tuple[int, bool]:
        """The column where a comment on `line` goes on or begins, and whether there are codes of `# noqa` before it."""
        comment = self._comment_on(line)
        if comment is None:
            return len(self._lines[line - 1].rstrip()), False
        match = _INLINE.search(comment.string)
        if match is None or match["codes"] is None:
            return comment.start[1] + len(comment.string.rstrip()), False
        return comment.start[1] + match.start("codes") + len(match["codes"].rstrip(", \t\f")), True

    def _comment_on(self, line: int) -> tokenize.TokenInfo | None:
        return next((token for token in self._comments if token.start[0] == line), None)

    def _joined(self, first: int, last: int) -> str:
        return "\n".join(self._lines[first - 1 : last])

    @cached_property
    def _own(self) -> frozenset[str]:
        """The codes that comments of ours name for the whole file."""
        named = (_CODE.findall(match["codes"] or "") for _, match in self._file_comments)
        return frozenset(code.upper() for codes in named for code in codes)

    @cached_property
    def _file_comments(self) -> list[tuple[tokenize.TokenInfo, re.Match[str]]]:
        """The comments of ours that stand on a line of their own."""
        if "keepcause" not in self._text.lower():
            return []
        matches = ((token, _OWN_FILE.match(token.string)) for token in self._comments)
        return [(token, match) for token, match in matches if match and not token.line[: token.start[1]].strip()]

    @property
    def _comments(self) -> list[tokenize.TokenInfo]:
        return self._scanned[1]

    @cached_property
    def _scanned(self) -> tuple[dict[int, tuple[int, int]], list[tokenize.TokenInfo]]:
        """The lines that are joined to others, each with the first and the last of them; and the comments."""
        joined: dict[int, tuple[int, int]] = {}
        comments = []
        rows: list[int] = []
        try:
            for token in tokenize.generate_tokens(io.StringIO(self._text, newline=None).readline):
                if token.type in (tokenize.ENDMARKER, tokenize.DEDENT):
                    continue
                if token.type == tokenize.COMMENT:
                    comments.append(token)
                rows += (token.start[0], token.end[0])
                if token.type in (tokenize.NL, tokenize.NEWLINE):
                    place = min(rows), max(rows)
                    joined.update(dict.fromkeys(range(place[0], place[1] + 1), place))
                    rows = []
        except (tokenize.TokenError, SyntaxError):
            return {}, comments
        return joined, comments


def _directive(token: tokenize.TokenInfo, match: re.Match[str] | None, rows: tuple[int, int]) -> Directive:
    assert match is not None
    return Directive(*token.start, token.string, slice(*match.span()), slice(*match.span("codes")), *rows)


def covers(line: str, code: str) -> bool:
    """Whether a `# noqa` comment on this line covers `code`; as in flake8, prefixes count and case matters."""
    directive = _INLINE.search(line)
    if directive is None:
        return False
    codes = directive["codes"]
    return codes is None or code.startswith(tuple(_CODE.findall(codes)))
