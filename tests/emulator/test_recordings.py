"""The emulator against the recordings of a real daemon: status, headers, fields, errors, reasons."""

from __future__ import annotations

from typing import Any

import pytest
from tests.emulator.replaying import Replay

# what a replay without the daemon's processes, clock and registry cannot repeat, and why
_LEFT_OUT = {
    "a client that leaves, told by the runner's state behind it": {437},
    "renders a Go template": {279, 280},
    "a runner that was killed from outside (tests of faults)": {440, 444, 447, 452},
    "a registry on a port of the recording machine": set(range(458, 468)),
    "the OpenAI-shaped routes": set(range(468, 478)),
}
_SKIPPED = frozenset().union(*_LEFT_OUT.values())


def _replayable(exchange: dict[str, Any]) -> bool:
    whole = exchange["response"] is not None and exchange["response"].get("status") is not None
    alone = "group" not in exchange and "cut_by_client_after_lines" not in exchange
    return whole and alone and exchange["n"] not in _SKIPPED


async def test_recorded_exchanges_are_answered_alike(replay: Replay, recorded: list[dict[str, Any]]) -> None:
    """Every recorded exchange that can be repeated, sent in order, gives a reply of its kind: over 400 of 477."""
    sent = [exchange for exchange in recorded if _replayable(exchange)]
    for exchange in sent:
        await replay.send(exchange)
    assert replay.differences == {}
    assert len(sent) > 400


@pytest.mark.parametrize("scenario", ["chat", "create", "names", "load"])
async def test_scenarios_are_in_the_recordings(recorded: list[dict[str, Any]], scenario: str) -> None:
    """The recordings that the comparison above stands on hold each of the large scenarios."""
    assert sum(exchange["scenario"] == scenario and _replayable(exchange) for exchange in recorded) >= 25
