"""A source with some characters replaced -> its bytes, others as they were; imports the linter's data and `verify`."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, TypeAlias

from keepcause.codemod.verify import RefusedError
from keepcause.lint.source import SourceError, decode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from keepcause.lint.source import Source

Splice: TypeAlias = tuple[int, int, str]
"""Start and end of what is replaced, as offsets into the source's text, and the new text."""


def spliced(source: Source, splices: Iterable[Splice]) -> bytes:
    """The source's bytes with each (start, end, text) in place of these characters; all others stay byte for byte.

    `splices` stand in their order. Raises RefusedError where two overlap or the encoding can't hold the result.
    """
    encoding = source.encoding
    text, data = "", source.data[: _byte_offset(source, 0)]
    done = 0
    try:
        for start, end, new in (*splices, (len(source.text), len(source.text), "")):
            if start < done:
                raise RefusedError("another fix changes the same place")
            text += source.text[done:start] + new
            data += source.data[_byte_offset(source, done) : _byte_offset(source, start)]
            data += new.encode("utf-8" if encoding == "utf-8-sig" else encoding)
            done = end
        if decode(data) == (text, encoding):
            return data
    except (UnicodeEncodeError, SourceError):
        pass
    raise RefusedError(f"the result can't be written in {encoding}")


def _byte_offset(source: Source, count: int) -> int:
    """How many bytes hold the first `count` characters, a byte order mark included."""
    head = source.text[:count].encode(source.encoding)
    if source.data.startswith(head):
        return len(head)
    # Some encodings have several bytes for one character, so only reading tells.
    decoder = codecs.getincrementaldecoder(source.encoding)()
    for offset in range(len(source.data)):
        if count <= 0:
            return offset
        count -= len(decoder.decode(source.data[offset : offset + 1]))
    return len(source.data)
