"""An emulator to talk to."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.ollama_emulator.clients import Client, Start, started


@pytest.fixture
def start() -> Start:
    """Starts an emulator: `async with start(vram=0) as client`; a 3B chat model and an embedder are there."""
    return started


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """An emulator as it comes."""
    async with started(control=True) as client:
        yield client
