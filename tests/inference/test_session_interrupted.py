"""Paid answers that are whole are kept, whatever interrupts the mission or fails beside them."""

from __future__ import annotations

import asyncio

import pytest
from tests.inference.conftest import PATIENT
from tests.inference.counting_bridge import CountedBridge, asked, desk, step, until
from tests.inference.raw_server import DONE, HEAD, HOLD, Script, serving, token
from tests.inference.still_clock import HOUR, on_still_clock, pass_time

from batos.inference.cost import SpendingLimits
from batos.inference.journal import Journal, Record
from batos.inference.ollama.bridge import Bridge
from batos.protocol.errors import BatosError, DiskFull, Refused, TimedOut


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


async def test_a_spent_budget_cuts_no_call_under_way() -> None:
    """Parts that are asked side by side end with the first error: it is raised when the others' answers are kept."""
    async with desk() as at:
        bridge = CountedBridge(gate=asyncio.Event())
        session = at.session(bridge, limits=SpendingLimits(2, 9_999, HOUR))

        async def parts() -> None:
            async with asyncio.TaskGroup() as group:
                for each in ("1", "2", "3"):
                    group.create_task(session.think(asked(each), step(each)))

        asking = asyncio.create_task(parts())
        await until(lambda: sum(bridge.begun.values()) == 2)
        for _ in range(20):
            await asyncio.sleep(0)
        assert bridge.gate is not None
        bridge.gate.set()
        with pytest.raises(ExceptionGroup) as refused:
            await asking
        assert [type(each) for each in refused.value.exceptions] == [Refused]
        assert [record.state for record in at.records()] == ["done", "done"]
        for each in ("1", "2"):
            await session.think(asked(each), step(each))
        assert sum(bridge.begun.values()) == 2


async def test_a_call_that_ends_with_an_error_of_nobody_is_recorded() -> None:
    """A listener that fails ends the call like any other: what came of it was paid for."""

    def fail(piece: str) -> None:
        raise ZeroDivisionError("a fault of ours")

    async with desk() as at:
        session = at.session(CountedBridge())
        with pytest.raises(ZeroDivisionError):
            await session.think(asked(), step(on_token=fail))
        (record,) = at.records()
        assert (record.state, record.partial) == ("cut", "partly")
        assert record.response is not None
        assert record.response["error"]["code"] == "internal"
        assert record.response["error"]["message"] == "ZeroDivisionError: a fault of ours"
        assert session.cost.as_dict()["answer_tokens"] == 1


#: An answer that is whole with its first line, in a stream that the daemon does not end.
OPEN_END: Script = [HEAD + token("one", **DONE), HOLD]


async def test_a_cancellation_behind_the_last_line_does_not_lose_the_answer() -> None:
    """The answer is written before the cancellation goes on; the next who asks pays nothing."""
    async with desk() as at, serving(OPEN_END) as server, Bridge(server.url, deadlines=PATIENT) as bridge:
        session = at.session(bridge)
        task = asyncio.create_task(session.think(asked(), step()))
        await until(lambda: bridge._chats.last)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [record.state for record in at.records()] == ["done"]
        assert (await session.think(asked(), step())).text == "one"
        assert len(server.asked) == 1


@on_still_clock
async def test_a_mission_whose_time_ends_behind_the_last_line_has_the_answer() -> None:
    """The next call is the first that is refused."""
    limits, ticks = SpendingLimits(9, 9_999, HOUR), asyncio.get_running_loop().time
    async with desk() as at, serving(OPEN_END) as server, Bridge(server.url, deadlines=PATIENT) as bridge:
        session = at.session(bridge, limits=limits, ticks=ticks)
        task = asyncio.create_task(session.think(asked(), step()))
        await until(lambda: bridge._chats.last)
        assert not task.done()
        await pass_time(HOUR)
        assert (await task).text == "one"
        assert [record.state for record in at.records()] == ["done"]
        with pytest.raises(TimedOut):
            await session.think(asked("more"), step())
        assert len(server.asked) == 1
