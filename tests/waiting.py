"""How tests wait: for what must come, with a bound that only a hang meets, and a moment in which nothing may come."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: Seconds within which whatever a test waits for has come, also on a machine that does ten other things.
HANG = 240.0
#: Seconds between two looks at what is waited for: thrice as many as a look takes, within these bounds.
_LEAST, _MOST = 0.005, 0.25
#: Seconds in which nothing may happen. On a slow machine they show less; they never fail what is right.
MOMENT = 0.1


def _look(come: Callable[[], T], what: str, end: float) -> tuple[T, float]:
    """Look once, and return the seconds to the next look too: what is waited for needs the machine more.

    Raises AssertionError when it has not come by the `end`.
    """
    began = time.monotonic()
    found, now = come(), time.monotonic()
    assert found or now < end, f"{what} did not come within {HANG:.0f} s"  # any pace: only a hang meets it
    return found, min(max(_LEAST, 3 * (now - began)), _MOST)


async def until(come: Callable[[], T], what: str = "it") -> T:
    """Look again and again, and return the first thing that is true. Raises AssertionError after HANG seconds."""
    end = time.monotonic() + HANG
    found, pause = _look(come, what, end)
    while not found:
        await asyncio.sleep(pause)
        found, pause = _look(come, what, end)
    return found


def wait_until(come: Callable[[], T], what: str = "it") -> T:
    """Do the same as `until` without an event loop."""
    end = time.monotonic() + HANG
    found, pause = _look(come, what, end)
    while not found:
        time.sleep(pause)
        found, pause = _look(come, what, end)
    return found


async def a_moment() -> None:
    """Give what must not happen the time to happen. Where there is an event to wait for, wait for that instead."""
    await asyncio.sleep(MOMENT)  # any pace: a slow machine only shows less of what must not be
