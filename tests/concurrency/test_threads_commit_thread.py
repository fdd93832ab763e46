"""A wait for a commit lasts until its end, whoever cancels it, and tells how it ended."""

from __future__ import annotations

import asyncio

import pytest

from batos.concurrency.threads import finish_despite_cancel


@pytest.mark.parametrize("failure", [None, ValueError("no room")])
async def test_a_wait_that_is_cancelled_lasts_until_the_end(failure: ValueError | None) -> None:
    """However often it is cancelled; then the cancellation is raised, from the failure if there was one."""
    work: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(finish_despite_cancel(work))
    for _ in range(3):
        await asyncio.sleep(0)
        waiting.cancel()
    await asyncio.sleep(0)
    assert not waiting.done()
    if failure is None:
        work.set_result(1)
    else:
        work.set_exception(failure)
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await waiting
    assert cancelled.value.__cause__ is failure


@pytest.mark.parametrize("at_once", [True, False])
async def test_the_end_is_told(at_once: bool) -> None:
    """A result is returned and an error raised, whether it was there before or came later; nothing is left behind."""
    loop = asyncio.get_running_loop()
    good: asyncio.Future[int] = loop.create_future()
    bad: asyncio.Future[int] = loop.create_future()

    def end() -> None:
        good.set_result(1)
        bad.set_exception(ValueError("no room"))

    if at_once:
        end()
    else:
        loop.call_soon(end)
    assert await finish_despite_cancel(good) == 1
    with pytest.raises(ValueError, match="no room"):
        await finish_despite_cancel(bad)
