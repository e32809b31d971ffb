"""Cheap tests on a file's bytes: can a rule find anything in it at all? Standard library only.

A pattern must be sound: a file in which it is not found has no finding of its rule, in any legal spelling.
"""

from __future__ import annotations

import re

FROM_NONE = re.compile(rb"from(?:[\s\\(]++|#[^\r\n]*+)*+None")
"""`from None`, with parentheses, continuations and comments between the two words."""
