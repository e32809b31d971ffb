"""The pages on output formats and suppressions, worked through as their reader does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from walk import Reader

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("page", ["docs/output-formats.md", "docs/suppressions.md"])
def test_a_reader_sees_what_the_page_says(page: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    Reader(tmp_path, tmp_path).work_through(page)
