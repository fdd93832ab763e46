"""Heavy work on plain data goes to a thread, so that the loop stays free; light work is done where it stands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from batos.concurrency.commit_thread import settled

T = TypeVar("T")

#: Characters (or bytes) of text up to which work on them is light: a few milliseconds.
LIGHT = 48 * 1024


async def aside(size: int, work: Callable[[], T]) -> T:
    """What `work` gives; in a thread if `size` is more than LIGHT.

    Its end is waited for even while cancelled: what it reads (a mission's connection) is closed after.
    """
    if size <= LIGHT:
        return work()
    return await settled(asyncio.ensure_future(asyncio.to_thread(work)))
