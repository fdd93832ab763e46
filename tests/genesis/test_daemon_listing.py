"""Ollama is asked twice at most, and an older one than the wire is refused."""

from __future__ import annotations

import pytest
from tests.genesis.conftest import HandDaemon

from batos.genesis.daemon_listing import look
from batos.protocol.errors import OllamaUnfit


async def test_two_requests(daemon: HandDaemon) -> None:
    """The version and the list; the version is not asked for where it is known."""
    assert (await look(daemon)).version == "0.33.0"
    assert daemon.asked == ["version", "list"]
    daemon.asked.clear()
    assert (await look(daemon, "0.34.0")).version == "0.34.0"
    assert daemon.asked == ["list"]


async def test_names_as_the_daemon_compares_them(daemon: HandDaemon) -> None:
    """Without case, and with the tag `latest` where none is written."""
    daemon.has("All-MiniLM:latest")
    listed = await look(daemon)
    row = listed.row("all-minilm")
    assert row is not None
    assert row.name == "All-MiniLM:latest"
    assert listed.row("all-minilm:l6") is None


@pytest.mark.parametrize("version", ["0.29.99", "0.1.0", "v0.9.2-rc3"])
async def test_too_old(daemon: HandDaemon, version: str) -> None:
    """It is refused by its version before anything else is asked."""
    daemon.speaks = version
    with pytest.raises(OllamaUnfit, match=version):
        await look(daemon)
    assert daemon.asked == ["version"]
