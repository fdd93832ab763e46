"""Deadlines ring once, by the clock that is given, and not when nobody waits for them any more."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from tests.waiting import until

from batos.concurrency.jobs import Alarms
from batos.image.ids import iso


class Clock:
    """A clock that stands still until it is put forward, and counts how often it is looked at."""

    def __init__(self) -> None:
        self.now, self.looks = datetime(2026, 11, 21, 9, tzinfo=UTC), 0

    def __call__(self) -> datetime:
        self.looks += 1
        return self.now

    def after(self, seconds: float) -> str:
        """A deadline so many seconds from now."""
        return iso(self.now + timedelta(seconds=seconds))

    async def until_looked_at(self, times: int) -> None:
        """Wait until it was looked at so often from now on."""
        wanted = self.looks + times
        await until(lambda: self.looks >= wanted, "a look at the clock")


async def test_each_rings_once_in_the_order_of_the_deadlines() -> None:
    """Set in any order, also for a moment that has passed; one that is dropped or set anew does not ring for before."""
    rung: asyncio.Queue[str] = asyncio.Queue()
    clock = Clock()
    alarms = Alarms(clock, rung.put_nowait, look=0.01)
    for mission, seconds in {"late": 15.0, "past": -5.0, "early": 5.0, "dropped": 1.0, "moved": 1.0}.items():
        alarms.set(mission, clock.after(seconds))
    alarms.drop("dropped")
    alarms.drop("nobody")
    alarms.set("moved", clock.after(10.0))
    assert await rung.get() == "past"
    for mission in ("early", "moved", "late"):
        await clock.until_looked_at(10)
        assert rung.empty()
        clock.now += timedelta(seconds=5)
        assert await rung.get() == mission
    assert len(alarms) == 0
    assert rung.empty()


async def test_a_clock_that_is_set_back_is_believed() -> None:
    """The timer runs out and the moment has not come: it rings when the clock says so."""
    rung: asyncio.Queue[str] = asyncio.Queue()
    clock = Clock()
    alarms = Alarms(clock, rung.put_nowait)
    alarms.set("m-1", clock.after(0.01))
    await clock.until_looked_at(2)  # once as the timer runs out, and again as it is set anew
    assert rung.empty()
    clock.now += timedelta(milliseconds=10)
    assert await rung.get() == "m-1"


async def test_a_clock_that_jumps_forward_is_noticed() -> None:
    """As after a machine's sleep, in which no timer counted: at the next look it rings."""
    rung: asyncio.Queue[str] = asyncio.Queue()
    clock = Clock()
    alarms = Alarms(clock, rung.put_nowait, look=0.01)
    alarms.set("m-1", clock.after(8 * 3600))
    await clock.until_looked_at(6)
    assert (rung.empty(), len(alarms)) == (True, 1)
    clock.now += timedelta(hours=9)
    assert await rung.get() == "m-1"


async def test_what_is_cleared_does_not_ring() -> None:
    """Nobody is told after the end."""
    rung: asyncio.Queue[str] = asyncio.Queue()
    clock = Clock()
    alarms = Alarms(clock, rung.put_nowait)
    for number in range(3):
        alarms.set(f"m-{number}", clock.after(0.0))
    alarms.clear()
    alarms.set("later", clock.after(0.0))  # its timer runs out behind those
    assert await rung.get() == "later"
    assert (rung.empty(), len(alarms)) == (True, 0)
