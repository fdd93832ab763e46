"""A mind whose missions run methods in real cells."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.methods.execution.method_mind import MethodMind, open_method_mind


@pytest.fixture
async def mind(tmp_path: Path) -> AsyncIterator[MethodMind]:
    """A mind with a cell of two workers."""
    async with open_method_mind(tmp_path / "home") as found:
        yield found
