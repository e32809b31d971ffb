"""A terminal's text as an SVG picture; standard library only."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Iterator

_STYLE = re.compile(r"\x1b\[(?P<codes>[0-9;]*)m")
_CSS = {
    1: "font-weight:bold",
    2: "fill:#8b949e",
    31: "fill:#ff7b72",
    32: "fill:#7ee787",
    33: "fill:#e3b341",
    34: "fill:#79c0ff",
    35: "fill:#d2a8ff",
    36: "fill:#76e3ea",
}
"""What a terminal's style codes look like on the picture's dark ground."""
_ENDS = {0, 22, 39}
"""Codes after which text is plain again."""
_WIDTH, _HEIGHT, _MARGIN = 8.4, 20, 16
"""Of a character, of a line and around the text, in pixels."""


def svg(text: str) -> str:
    """A picture of `text`, whose colours are the terminal's; raises KeyError for a code that has no style here."""
    lines = text.splitlines()
    width = max(len(plain(line)) for line in lines) * _WIDTH + 2 * _MARGIN
    height = len(lines) * _HEIGHT + 2 * _MARGIN
    shown = "\n".join(_line(number, line) for number, line in enumerate(lines) if plain(line))
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}">
<rect width="100%" height="100%" rx="8" fill="#0d1117"/>
<g xml:space="preserve" fill="#e6edf3" font-size="14" font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', \
monospace">
{shown}
</g>
</svg>
"""


def plain(text: str) -> str:
    """`text` without the codes for its colours."""
    return _STYLE.sub("", text)


def _line(number: int, line: str) -> str:
    # The length holds the columns together where a reader's font is wider or narrower than the picture reckons with.
    place = f'x="{_MARGIN}" y="{_MARGIN + 14 + number * _HEIGHT}" textLength="{len(plain(line)) * _WIDTH:.1f}"'
    return f"<text {place}>{''.join(_spans(line))}</text>"


def _spans(line: str) -> Iterator[str]:
    style = ""
    at = 0
    for match in [*_STYLE.finditer(line), None]:
        part = escape(line[at : match.start() if match else None])
        if part:
            yield f'<tspan style="{style}">{part}</tspan>' if style else part
        if match:
            codes = [int(code or 0) for code in match["codes"].split(";")]
            kept = [style] if style and not _ENDS & set(codes) else []
            style = ";".join([*kept, *(_CSS[code] for code in codes if code not in _ENDS)])
            at = match.end()
