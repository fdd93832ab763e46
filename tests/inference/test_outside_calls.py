"""Calls to the world: recorded before they are used, made once in a lineage, and never sent twice."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.inference.counting_bridge import CountedBridge, Desk, desk

from batos.history import record_chain
from batos.image.transactions import snapshot
from batos.inference.cost import cost_of
from batos.inference.journal import MISSIONS
from batos.inference.outside_calls import (
    MOST_RESULT,
    Doing,
    OutsideCall,
    OutsideCalls,
    Result,
    call_id,
    find_unknown,
    settle,
)
from batos.protocol.errors import NoServer, OutcomeUnknown, Refused

#: When a person settles a call.
AT = "2026-11-30T09:00:00.000Z"


class World:
    """Answers with the number of the call, or raises; it counts what reached it."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.ids: list[str] = []
        self.error = error

    async def __call__(self, call: str) -> Result:
        """One call."""
        self.ids.append(call)
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return {"number": len(self.ids)}


def calls(at: Desk, missions: Sequence[str] = ("m-1",), *, reaches_out: bool = True) -> OutsideCalls:
    """The calls of the last of these missions."""
    return OutsideCalls(at.session(CountedBridge(), (), mission=missions[-1]), missions, reaches_out=reaches_out)


def call(path: str = "babs/tools#0", doing: Doing = "read", query: str = "tides") -> OutsideCall:
    """A call."""
    return OutsideCall(path, "search", {"query": query}, doing)


@pytest.mark.parametrize("doing", ["read", "send"])
async def test_a_call_is_made_once_in_a_lineage_and_its_result_is_kept(doing: Doing) -> None:
    """The same place asked again, in a retry, a fork or a copy of the mind, has the recorded result."""
    world = World()
    async with desk() as at:
        first = calls(at)
        assert await first.perform(call(doing=doing), world) == {"number": 1}
        assert await first.perform(call(doing=doing), world) == {"number": 1}
        at.open()
        retry = calls(at, ("m-1", "m-2"), reaches_out=False)
        assert await retry.perform(call(doing=doing), world) == {"number": 1}
        assert len(world.ids) == 1
        (record,) = at.records()
        assert (record.state, record.path, call_id(record)) == ("done", "babs/tools#0", world.ids[0])
        assert cost_of(at.records()).as_dict()["calls"] == 0
        assert at.journal.models(["m-1"]) == frozenset()
        with snapshot(at.db) as root:
            assert record_chain.read_calls(root).find_faults() == []


async def test_another_place_or_question_is_another_call() -> None:
    """Path and request are the key."""
    world = World()
    async with desk() as at:
        found = calls(at)
        several = [call(), call(path="babs/tools#1"), call(query="moon")]
        assert [await found.perform(each, world) for each in several] == [{"number": each} for each in (1, 2, 3)]
        assert len(set(world.ids)) == 3


async def test_equal_calls_at_once_are_one() -> None:
    """The second waits for the first."""
    world = World()
    async with desk() as at:
        found = calls(at)
        assert await asyncio.gather(*(found.perform(call(), world) for _ in range(5))) == [{"number": 1}] * 5


async def test_a_copy_of_the_mind_reaches_nothing() -> None:
    """What is not recorded is refused, and nothing is written."""
    world = World()
    async with desk() as at:
        with pytest.raises(Refused, match="reaches nothing outside"):
            await calls(at, reaches_out=False).perform(call(), world)
        assert (world.ids, at.records()) == ([], [])


async def test_a_read_that_failed_is_made_again() -> None:
    """Its error is recorded, and is the error that the caller sees."""
    async with desk() as at:
        found = calls(at)
        with pytest.raises(NoServer):
            await found.perform(call(), World(NoServer("nothing listens")))
        assert await found.perform(call(), World()) == {"number": 1}
        assert [each.state for each in at.records()] == ["failed", "done"]


async def test_a_send_is_written_before_it_is_sent() -> None:
    """The journal has it open while the receiver works."""
    async with desk() as at:

        async def look(name: str) -> Result:
            (record,) = at.records()
            assert (record.state, call_id(record)) == ("open", name)
            return {}

        await calls(at).perform(call(doing="send"), look)


@pytest.mark.parametrize("error", [NoServer("it vanished"), RuntimeError("?"), asyncio.CancelledError()])
async def test_a_send_without_an_answer_is_never_sent_again(error: BaseException) -> None:
    """Nobody knows what came of it: each later attempt is told its id, until a person settles it."""
    world = World(error)
    async with desk() as at:
        with pytest.raises(asyncio.CancelledError if isinstance(error, asyncio.CancelledError) else OutcomeUnknown):
            await calls(at).perform(call(doing="send"), world)
        for missions in (("m-1",), ("m-1", "m-2")):
            with pytest.raises(OutcomeUnknown) as told:
                await calls(at, missions).perform(call(doing="send"), world)
            assert world.ids[0] in told.value.message
        assert len(world.ids) == 1
        assert [call_id(each) for each in find_unknown(at.journal, "m-1")] == world.ids
        assert not await settle(at.journal, "m-1", "x-other", {}, AT)
        assert await settle(at.journal, "m-1", world.ids[0], {"number": 9}, AT)
        assert find_unknown(at.journal, "m-1") == []
        assert await calls(at, ("m-1", "m-2")).perform(call(doing="send"), world) == {"number": 9}
        with snapshot(at.db) as root:
            assert record_chain.read_calls(root).find_faults() == []


async def test_a_send_that_did_not_happen_may_be_sent() -> None:
    """Because its receiver refused it before, or because a person says so."""
    async with desk() as at:
        with pytest.raises(Refused):
            await calls(at).perform(call(doing="send"), World(Refused("not granted")))
        world = World(NoServer("gone"))
        with pytest.raises(OutcomeUnknown):
            await calls(at).perform(call(doing="send"), world)
        await settle(at.journal, "m-1", world.ids[0], None, AT)
        assert await calls(at).perform(call(doing="send"), World()) == {"number": 1}


async def test_the_words_of_a_sent_call_are_erased_and_it_is_not_sent_again() -> None:
    """A read is made again, as an inference is."""
    async with desk() as at:
        for path, doing in (("a#0", "send"), ("b#0", "read")):
            await calls(at).perform(call(path, "send" if doing == "send" else "read"), World())
        await at.writer.apply(lambda root: root[MISSIONS]["m-1"].erase_words())
        world = World()
        with pytest.raises(Refused, match="erased"):
            await calls(at).perform(call("a#0", "send"), world)
        await calls(at).perform(call("b#0"), world)
        assert len(world.ids) == 1


async def test_a_long_result_is_refused_and_not_used() -> None:
    """The journal takes 8 MiB of a call."""

    async def bring(call: str) -> Result:
        return {"text": "x" * MOST_RESULT}

    async with desk() as at:
        with pytest.raises(Refused, match="at most"):
            await calls(at).perform(call(), bring)
        assert [each.state for each in at.records()] == ["failed"]


@given(some.lists(some.tuples(some.sampled_from(["a#0", "b#0"]), some.sampled_from([0, 1, 2])), max_size=8))
def test_no_order_of_failures_and_restarts_sends_twice_what_was_received(steps: list[tuple[str, int]]) -> None:
    """0: it works, 1: the receiver refuses before it does anything, 2: the answer is lost."""

    async def live() -> None:
        received: dict[str, int] = {}
        async with desk() as at:
            for path, how in steps:

                async def act(name: str, path: str = path, how: int = how) -> Result:
                    if how == 1:
                        raise Refused("no")
                    received[path] = received.get(path, 0) + 1
                    if how == 2:
                        raise NoServer("lost")
                    return {}

                try:
                    await calls(at).perform(call(path, "send"), act)
                except (Refused, OutcomeUnknown):
                    pass
                at.open()
        assert all(count == 1 for count in received.values())

    asyncio.run(live())
