"""Time as the emulator sees it: the machine's, or one that a test moves by hand."""

from __future__ import annotations

import asyncio
import heapq
import time
from typing import Protocol


class Clock(Protocol):
    """Wall time in nanoseconds since 1970, and a way to wait."""

    def now_ns(self) -> int:
        """Return the time in nanoseconds since 1970."""

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds."""


class SystemClock:
    """The machine's clock."""

    def now_ns(self) -> int:
        """Return the machine's time in nanoseconds since 1970."""
        return time.time_ns()

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds of real time."""
        await asyncio.sleep(seconds)


class ManualClock:
    """A clock that stands still until it is moved; who sleeps on it wakes when it has been moved far enough."""

    def __init__(self, start_ns: int = 1_795_271_520_000_000_000) -> None:
        self._now = start_ns
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = 0

    def now_ns(self) -> int:
        """Return the time that was set, in nanoseconds since 1970."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock and wake those whose time has come."""
        self._now += int(seconds * 10**9)
        while self._sleepers and self._sleepers[0][0] <= self._now:
            future = heapq.heappop(self._sleepers)[2]
            if not future.done():
                future.set_result(None)

    async def sleep(self, seconds: float) -> None:
        """Wait until the time was moved on by so many seconds."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future = asyncio.get_running_loop().create_future()
        self._order += 1
        heapq.heappush(self._sleepers, (self._now + int(seconds * 10**9), self._order, future))
        await future
