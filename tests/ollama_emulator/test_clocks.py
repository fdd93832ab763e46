"""Both clocks: time stands still or goes forward, and whoever sleeps wakes when the time has passed."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

import pytest
from tests.inference.still_clock import on_still_clock, pass_time

from ollama_emulator.clocks import Clock, ManualClock, SystemClock

#: A time that tests wait for, in seconds, on a loop whose clock stands still.
SHORT = 60.0


class Clocks(ABC):
    """What every clock does."""

    @abstractmethod
    def clock(self) -> Clock:
        """A new clock."""

    async def pass_time(self, clock: Clock, seconds: float) -> None:
        """Let a time pass on a clock: the machine's is the loop's."""
        await asyncio.sleep(0)  # whoever is to sleep falls asleep first
        if isinstance(clock, ManualClock):
            clock.advance(seconds)
        await pass_time(seconds)

    def test_its_time_is_in_nanoseconds(self) -> None:
        """It says a time of this century."""
        assert 1_700_000_000 < self.clock().now_ns() / 10**9 < 4_000_000_000

    @on_still_clock
    async def test_a_sleeper_wakes_when_the_time_has_passed(self) -> None:
        """Nothing else has to happen."""
        clock = self.clock()
        sleeping = asyncio.ensure_future(clock.sleep(SHORT))
        await self.pass_time(clock, SHORT)
        await sleeping

    @on_still_clock
    async def test_the_shorter_sleep_ends_first(self) -> None:
        """In whatever order they began."""
        clock, woken = self.clock(), []

        async def sleep(seconds: float) -> None:
            await clock.sleep(seconds)
            woken.append(seconds)

        sleeping = [asyncio.ensure_future(sleep(seconds)) for seconds in (5 * SHORT, SHORT)]
        await self.pass_time(clock, SHORT)
        await self.pass_time(clock, 5 * SHORT)
        await asyncio.gather(*sleeping)
        assert woken == [SHORT, 5 * SHORT]

    @pytest.mark.parametrize("seconds", [0, -1])
    async def test_no_time_is_no_wait_but_lets_others_run(self, seconds: float) -> None:
        """A sleep of nothing ends by itself, after whoever was ready before."""
        ran: list[str] = []
        asyncio.get_running_loop().call_soon(ran.append, "another")
        await self.clock().sleep(seconds)
        assert ran == ["another"]

    @on_still_clock
    async def test_who_is_cancelled_disturbs_nobody(self) -> None:
        """A sleeper that was cancelled leaves the others asleep, and they wake."""
        clock = self.clock()
        gone, stays = (asyncio.ensure_future(clock.sleep(SHORT)) for _ in range(2))
        await asyncio.sleep(0)
        gone.cancel()
        await self.pass_time(clock, SHORT)
        await stays
        assert gone.cancelled()


class TestSystemClock(Clocks):
    """The machine's own."""

    def clock(self) -> Clock:
        """The machine's clock."""
        return SystemClock()


class TestManualClock(Clocks):
    """The one that is moved by hand."""

    def clock(self) -> Clock:
        """A clock that stands still."""
        return ManualClock()

    async def test_it_stands_still_until_it_is_moved(self) -> None:
        """Whoever sleeps until then sleeps on."""
        clock = ManualClock(start_ns=5)
        sleeping = asyncio.ensure_future(clock.sleep(10))  # any pace: of a clock that is moved by hand
        await asyncio.sleep(0)
        clock.advance(9.5)
        await asyncio.sleep(0)
        assert (clock.now_ns(), sleeping.done()) == (5 + 95 * 10**8, False)
        clock.advance(0.5)
        await sleeping
