"""Long work: shares of all phases, a stop at the next step, and what a server does meanwhile."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.waiting import HANG

from batos.concurrency.threads import LongWork
from batos.protocol.errors import NoServer


async def test_phases_add_up_and_are_told_by_parts_of_the_whole() -> None:
    """A phase that had less than was expected counts whole when the next begins, one that had more no further."""
    told: list[tuple[str, int, int]] = []
    work = LongWork(lambda *keys: told.append(keys), least=0)
    work.expect({"plan": 100, "search": 300})
    work.begin("plan")
    for _ in range(50):
        work.step(1)
    work.begin("search")
    work.step(1_000)
    await asyncio.sleep(0)
    assert told[0] == ("plan", 0, 400)
    assert told[-2:] == [("search", 100, 400), ("search", 400, 400)]
    assert len(told) < 20


async def test_little_work_tells_nothing() -> None:
    """What is over at once is no progress."""
    told: list[str] = []
    work = LongWork(lambda phase, *_: told.append(phase))
    work.expect({"plan": 1_000})
    work.begin("plan")
    work.step(1_000)
    await asyncio.sleep(0)
    assert told == []


async def test_a_stop_is_raised_in_the_thread_that_works() -> None:
    """At its next step, and at each one after it."""
    work = LongWork()
    begun = threading.Event()

    def search() -> None:
        begun.set()
        while True:
            work.step(1)

    searching = asyncio.create_task(work.finish(asyncio.to_thread(search)))
    await asyncio.to_thread(begun.wait, HANG)
    searching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await searching
    with pytest.raises(NoServer):
        work.step(0)


async def test_what_goes_on_is_left_by_nobody_but_a_stop() -> None:
    """Who asked may leave; what is owed goes on."""
    work = LongWork()
    work.owe()
    work.leave()
    work.step(1)
    work.stop()
    with pytest.raises(NoServer):
        work.step(1)


async def test_what_a_server_does_is_awaited_or_left() -> None:
    """A stop does not wait for it; before that its result and its error come back."""
    work, held = LongWork(), threading.Event()

    def fail() -> None:
        raise OSError("no room")

    assert await work.ask_server(lambda: 1) == 1
    with pytest.raises(OSError, match="no room"):
        await work.ask_server(fail)
    waiting = asyncio.create_task(work.ask_server(lambda: held.wait(HANG)))
    await asyncio.sleep(0)
    work.stop()
    with pytest.raises(NoServer):
        await waiting
    held.set()
