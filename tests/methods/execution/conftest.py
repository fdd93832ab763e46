"""A mind whose missions run methods in real cells."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.methods.execution.crafted import Crafted, crafted


@pytest.fixture
async def mind(tmp_path: Path) -> AsyncIterator[Crafted]:
    """A mind with a cell of two workers."""
    async with crafted(tmp_path / "home") as found:
        yield found
