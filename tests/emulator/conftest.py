"""An emulator to talk to, and the recordings of a real daemon to hold it against."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.emulator.clients import Client, Start, started
from tests.emulator.replaying import Replay


@pytest.fixture
def start() -> Start:
    """Starts an emulator: `async with start(vram=0) as client`; a 3B chat model and an embedder are there."""
    return started


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """An emulator as it comes."""
    async with started(control=True) as client:
        yield client


@pytest.fixture
def recorded(corpus: Path) -> list[dict[str, Any]]:
    """The exchanges with a real daemon, in order."""
    text = (corpus / "ollama-wire" / "exchanges.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
async def replay(corpus: Path, start: Start) -> AsyncIterator[Replay]:
    """A replay onto an empty emulator of the recorded version, without a GPU."""
    async with start(models=(), vram=0, version="0.33.0-rc2", endless=True) as client:
        client.emulator.daemon.registry.offline = True
        yield Replay(client, corpus / "ollama-wire" / "models")
