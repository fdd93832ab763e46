"""Runs a coroutine on a clock that jumps to the next moment at which anything happens: hours take milliseconds."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Jumping(selectors.SelectSelector):
    """A selector that never waits: the time for which it is to wait has passed when it returns."""

    passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("nothing will ever happen again: what is waited for does not come")
        self.passed += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop of virtual seconds, for code that waits for nothing but the loop."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the virtual seconds that have passed."""
        return self._jumping.passed


class VirtualClock:
    """The clock of an emulated daemon on such a loop."""

    def now_ns(self) -> int:
        """Return the virtual nanoseconds since 1970."""
        return 1_795_271_520_000_000_000 + int(asyncio.get_running_loop().time() * 10**9)

    async def sleep(self, seconds: float) -> None:
        """Wait for virtual seconds."""
        await asyncio.sleep(seconds)


def run_virtually(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, and return what it returns."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(main)
    finally:
        loop.close()
