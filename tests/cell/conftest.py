"""One pool of workers for a test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.cell.hosting import PATIENT

from batos.cell.cell import Cell


@pytest.fixture
async def cell() -> AsyncIterator[Cell]:
    """A cell with two workers and the limits that ship, but that no time ends."""
    made = Cell(2, PATIENT)
    yield made
    await made.aclose()
