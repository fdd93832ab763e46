"""Turns of commits: one mission at a time has an object's, in the order in which they came, and none waits for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.waiting import HANG

from batos.missions.commits import CommitTurns

ONE, TWO = b"1" * 8, b"2" * 8
OBJECTS = st.lists(st.lists(st.sampled_from([bytes([n]) * 8 for n in range(4)]), max_size=3), min_size=1, max_size=4)


async def test_the_first_that_came_is_the_first_that_goes() -> None:
    """Three missions want the same object: the second has its turn when the first has ended, then the third."""
    turns, order = CommitTurns(), list[str]()
    first_has, first_may = asyncio.Event(), asyncio.Event()

    async def first() -> None:
        with turns.place() as place:
            await place.take([ONE])
            first_has.set()
            await first_may.wait()
            order.append("first")

    async def another(name: str) -> None:
        with turns.place() as place:
            await place.take([ONE])
            order.append(name)

    begun = asyncio.create_task(first())
    await first_has.wait()
    waiting = [asyncio.create_task(another("second")), asyncio.create_task(another("third"))]
    await asyncio.sleep(0)
    first_may.set()
    await asyncio.gather(begun, *waiting)
    assert order == ["first", "second", "third"]
    assert len(turns) == 0


async def test_others_are_not_kept_waiting() -> None:
    """Who changes another object, or none, waits for nobody."""
    turns = CommitTurns()
    with turns.place() as place, turns.place() as other:
        await place.take([ONE])
        await asyncio.wait_for(other.take([TWO]), HANG)
        await asyncio.wait_for(other.take([]), HANG)


async def test_who_stops_waiting_leaves_nothing() -> None:
    """A mission that is cancelled while it waits has no turn, and keeps nobody from one."""
    turns = CommitTurns()
    with turns.place() as holder:
        await holder.take([TWO])

        async def wait() -> None:
            with turns.place() as place:
                await place.take([ONE, TWO])

        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0)
        assert len(turns) == 2
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert len(turns) == 1
    assert len(turns) == 0


@given(st.lists(OBJECTS, min_size=2, max_size=6))
def test_any_order_of_wants_comes_to_an_end(wants: Sequence[Sequence[Sequence[bytes]]]) -> None:
    """Missions that want more and more objects, in any order: no two have one at once, and all end."""
    turns, held = CommitTurns(), dict[bytes, int]()

    async def mission(number: int, steps: Sequence[Sequence[bytes]]) -> None:
        with turns.place() as place:
            mine: set[bytes] = set()
            for objects in steps:
                for oid in mine:
                    held.pop(oid, None)
                await place.take(objects)
                mine |= set(objects)
                for oid in mine:
                    assert held.setdefault(oid, number) == number
                await asyncio.sleep(0)
            for oid in mine:
                held.pop(oid, None)

    async def all_of_them() -> None:
        await asyncio.wait_for(asyncio.gather(*(mission(*each) for each in enumerate(wants))), HANG)

    asyncio.run(all_of_them())
    assert len(turns) == 0
