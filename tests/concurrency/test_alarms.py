"""Deadlines ring once, by the clock that is given, and not when nobody waits for them any more."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from batos.concurrency.alarms import Alarms
from batos.image.ids import iso, utc_now


def soon(seconds: float) -> str:
    """A deadline."""
    return iso(utc_now() + timedelta(seconds=seconds))


async def test_each_rings_once_in_the_order_of_the_deadlines() -> None:
    """Set in any order, also for a moment that has passed; one that is dropped or set anew does not ring for before."""
    rung: asyncio.Queue[str] = asyncio.Queue()
    alarms = Alarms(utc_now, rung.put_nowait)
    for mission, seconds in {"late": 0.15, "past": -5.0, "early": 0.05, "dropped": 0.01, "moved": 0.01}.items():
        alarms.set(mission, soon(seconds))
    alarms.drop("dropped")
    alarms.drop("nobody")
    alarms.set("moved", soon(0.1))
    assert [await rung.get() for _ in range(4)] == ["past", "early", "moved", "late"]
    assert len(alarms) == 0
    assert rung.empty()


async def test_a_clock_that_is_set_back_is_believed() -> None:
    """The timer runs out and the moment has not come: it rings when the clock says so."""
    now = datetime(2026, 11, 21, 9, tzinfo=UTC)
    rung: asyncio.Queue[str] = asyncio.Queue()
    alarms = Alarms(lambda: now, rung.put_nowait)
    alarms.set("m-1", iso(now + timedelta(milliseconds=10)))
    await asyncio.sleep(0.05)
    assert rung.empty()
    now += timedelta(milliseconds=10)
    assert await rung.get() == "m-1"


async def test_a_clock_that_jumps_forward_is_noticed() -> None:
    """As after a machine's sleep, in which no timer counted: at the next look it rings."""
    now = datetime(2026, 11, 21, 9, tzinfo=UTC)
    rung: asyncio.Queue[str] = asyncio.Queue()
    alarms = Alarms(lambda: now, rung.put_nowait, look=0.01)
    alarms.set("m-1", iso(now + timedelta(hours=8)))
    await asyncio.sleep(0.05)
    assert (rung.empty(), len(alarms)) == (True, 1)
    now += timedelta(hours=9)
    assert await rung.get() == "m-1"


async def test_what_is_cleared_does_not_ring() -> None:
    """Nobody is told after the end."""
    rung: asyncio.Queue[str] = asyncio.Queue()
    alarms = Alarms(utc_now, rung.put_nowait)
    for number in range(3):
        alarms.set(f"m-{number}", soon(0.0))
    alarms.clear()
    await asyncio.sleep(0.01)
    assert (rung.empty(), len(alarms)) == (True, 0)
