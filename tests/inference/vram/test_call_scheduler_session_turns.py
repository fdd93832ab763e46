"""A session's calls have their turns at the card: sent when the one before is answered and kept."""

from __future__ import annotations

import asyncio

import pytest
from tests.inference.counting_bridge import DIGEST, CountedBridge, asked, desk, step, until
from tests.inference.still_clock import HOUR, on_still_clock, pass_time

from batos.events import Events
from batos.inference.cost import SpendingLimits
from batos.inference.ollama.catalogue import ModelCard, RunnerRow
from batos.inference.vram.call_scheduler import SharedCard
from batos.protocol.errors import ModelMissing, Refused, TimedOut


class UnknownModels:
    """A daemon that has nothing in memory and knows no model any more."""

    async def ps(self) -> list[RunnerRow]:
        """List nothing."""
        return []

    async def show(self, model: str) -> ModelCard:
        """Raise ModelMissing."""
        raise ModelMissing(model)


def one_at_a_time() -> SharedCard:
    """Return a card whose runners answer one call of a mission at a time."""
    return SharedCard(UnknownModels(), Events(log=False), 1)


async def test_calls_take_turns_as_the_session_is_told() -> None:
    """With one turn the second call is sent when the first is answered and kept; what the journal has needs none."""
    async with desk() as at:
        bridge = CountedBridge(gate=asyncio.Event())
        session = at.session(bridge, card=one_at_a_time())
        both = [asyncio.create_task(session.think(asked(each), step(each))) for each in ("1", "2")]
        await until(lambda: sum(bridge.begun.values()) == 1)
        for _ in range(20):
            await asyncio.sleep(0)
        assert sum(bridge.begun.values()) == 1
        assert bridge.gate is not None
        bridge.gate.set()
        await asyncio.gather(*both)
        assert session.cost.calls == session.paid_count == 2
        assert session.card is not None
        async with session.card.turn(asked("2"), DIGEST, "m-1", 0):
            await session.think(asked("2"), step("2"))


async def test_a_call_whose_turn_comes_too_late_is_not_made() -> None:
    """While it waited another spent the budget: it is refused and costs nothing."""
    async with desk() as at:
        bridge = CountedBridge()
        session = at.session(bridge, card=one_at_a_time(), limits=SpendingLimits(1, 9_999, HOUR))
        first, second = await asyncio.gather(
            *(session.think(asked(each), step(each)) for each in ("1", "2")), return_exceptions=True
        )
        assert not isinstance(first, BaseException)
        assert isinstance(second, Refused)
        assert sum(bridge.begun.values()) == 1


@on_still_clock
async def test_a_mission_whose_time_is_over_waits_for_no_turn() -> None:
    """Another mission's call does not end: whoever waits behind it is told that its time is over, and paid nothing."""
    async with desk() as at:
        bridge, card = CountedBridge(gate=asyncio.Event()), one_at_a_time()
        first = asyncio.create_task(at.session(bridge, card=card).think(asked("1"), step("1")))
        await until(lambda: sum(bridge.begun.values()) == 1)
        limits = SpendingLimits(9, 9_999, HOUR)
        second = asyncio.create_task(at.session(bridge, card=card, limits=limits).think(asked("2"), step("2")))
        await until(lambda: bool(card.scheduler.queue()))
        await pass_time(HOUR)
        with pytest.raises(TimedOut):
            await second
        assert sum(bridge.begun.values()) == 1
        assert not card.scheduler.queue()
        assert bridge.gate is not None
        bridge.gate.set()
        await first
