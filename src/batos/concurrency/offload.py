"""Runs heavy work on plain data in a thread, so that the loop stays free; light work runs at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from batos.concurrency.commit_thread import finish_despite_cancel

T = TypeVar("T")

#: Characters (or bytes) of text up to which work on them is light: a few milliseconds.
LIGHT = 48 * 1024


async def offload(size: int, work: Callable[[], T]) -> T:
    """Return `work()`, run in a thread if `size` is more than LIGHT.

    Waits for the thread even when cancelled, because the caller then closes the connection that the work reads.
    """
    if size <= LIGHT:
        return work()
    return await finish_despite_cancel(asyncio.ensure_future(asyncio.to_thread(work)))
