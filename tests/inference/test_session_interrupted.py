"""Paid answers that are whole are kept, whatever interrupts the mission or fails beside them."""

from __future__ import annotations

import asyncio

import pytest
from tests.inference.counting_bridge import CountedBridge, asked, desk, step, until

from batos.errors import BatosError, DiskFull
from batos.inference.journal import Journal, Record


class SlowJournal:
    """A journal whose saves of unfinished answers wait for the test, and then fail if it says so."""

    def __init__(self, journal: Journal, failure: BatosError | None = None) -> None:
        self.saving, self.goes_on = asyncio.Event(), asyncio.Event()
        self._journal, self._failure = journal, failure

    async def write(self, record: Record) -> None:
        """Write what is not open at once."""
        if record.state == "open":
            self.saving.set()
            await self.goes_on.wait()
            if self._failure is not None:
                raise self._failure
        await self._journal.write(record)


async def test_a_cancellation_during_a_save_of_the_unfinished_text_does_not_lose_the_answer() -> None:
    """The save is waited for and the whole answer written; the cancellation goes on then."""
    async with desk() as at:
        bridge, slow = CountedBridge(), SlowJournal(at.journal)
        session = at.session(bridge, journal=slow, partial_every=0.0)
        task = asyncio.create_task(session.think(asked(), step()))
        await until(lambda: bridge.given and slow.saving.is_set())
        task.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
        slow.goes_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [record.state for record in at.records()] == ["done"]
        await session.think(asked(), step())
        assert sum(bridge.begun.values()) == 1


async def test_a_save_of_the_unfinished_text_that_fails_does_not_lose_the_answer() -> None:
    """What is whole is written all the same, and returned."""
    async with desk() as at:
        slow = SlowJournal(at.journal, DiskFull("no space"))
        slow.goes_on.set()
        answer = await at.session(CountedBridge(), journal=slow, partial_every=0.0).think(asked(), step())
        assert slow.saving.is_set()
        assert answer.text == "about Why?"
        assert [record.state for record in at.records()] == ["done"]
