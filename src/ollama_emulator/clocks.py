"""Clocks for the emulator: the machine's own, and one that a test moves by hand."""

from __future__ import annotations

import asyncio
import heapq
import time
from typing import Protocol


class Clock(Protocol):
    """A clock that gives the wall time and sleeps."""

    def now_ns(self) -> int:
        """Return the time in nanoseconds since 1970."""

    async def sleep(self, seconds: float) -> None:
        """Wait until `seconds` have passed on this clock."""


class SystemClock:
    """The machine's clock."""

    def now_ns(self) -> int:
        """Return the machine's time in nanoseconds since 1970."""
        return time.time_ns()

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds` of real time."""
        await asyncio.sleep(seconds)


class ManualClock:
    """A clock that stands still until `advance` moves it, and then wakes the tasks whose sleep is over."""

    def __init__(self, start_ns: int = 1_795_271_520_000_000_000) -> None:
        self._now = start_ns
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = 0

    def now_ns(self) -> int:
        """Return the time that was set, in nanoseconds since 1970."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock by `seconds` and wake the tasks that are due."""
        self._now += int(seconds * 10**9)
        while self._sleepers and self._sleepers[0][0] <= self._now:
            future = heapq.heappop(self._sleepers)[2]
            if not future.done():
                future.set_result(None)

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock was moved by `seconds`."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future = asyncio.get_running_loop().create_future()
        self._order += 1
        heapq.heappush(self._sleepers, (self._now + int(seconds * 10**9), self._order, future))
        await future
