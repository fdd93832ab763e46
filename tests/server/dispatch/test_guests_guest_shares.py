"""Places for copies of the mind: guests leave one to the home, and do not wait for long."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from batos.protocol.errors import Busy
from batos.server.dispatch.guests import CopyPlaces

#: Seconds until a question without a place is refused, where that is what a test waits for, and where it is not.
#: A place that is free is taken without a wait, so that the shorter one refuses nobody who finds one.
SOON, NEVER = 0.02, 60_000.0


async def test_guests_leave_the_home_a_place() -> None:
    """One place of two is all that guests have, however many they are; the home gets the other."""
    places = CopyPlaces(2, SOON)
    async with places.place("key laptop"):
        for guest in ("key laptop", "key tablet"):
            with pytest.raises(Busy) as refused:
                async with places.place(guest):
                    pass
            assert (bool(refused.value.remedy), refused.value.retry) == (True, True)
        async with places.place(None):
            pass
    async with places.place("key tablet"):
        pass


async def test_the_home_has_every_place_and_waits_for_one() -> None:
    """A user that the home names is no guest, and is not refused where a guest that came later is."""
    places = CopyPlaces(2, SOON)
    async with AsyncExitStack() as held:
        for user in (None, "ada"):
            await held.enter_async_context(places.place(user))
        waiting = asyncio.ensure_future(held.enter_async_context(places.place(None)))
        await asyncio.sleep(0)  # it begins to wait
        with pytest.raises(Busy):
            async with places.place("key laptop"):
                pass
        assert not waiting.done()
        waiting.cancel()


async def test_a_guest_that_was_refused_holds_nothing() -> None:
    """Whether it waited for the guests' place or had that already, the place is free for the next guest."""
    places = CopyPlaces(2, SOON)
    async with places.place(None), places.place(None):
        with pytest.raises(Busy):
            async with places.place("key laptop"):
                pass
    async with places.place("key laptop"):
        pass


async def test_a_place_that_becomes_free_goes_to_whoever_waits() -> None:
    """A question waits for a place as long as it may."""
    places, entered = CopyPlaces(1, NEVER), asyncio.Event()

    async def wait() -> None:
        async with places.place(None):
            entered.set()

    async with places.place(None):
        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0)
        assert not entered.is_set()
    await waiting
    assert entered.is_set()
