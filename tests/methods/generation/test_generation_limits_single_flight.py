"""Single flight: one piece of work for all who wait, whoever began it and whoever leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field

import pytest

from batos.methods.generation.generation_limits import Abandoned, Flight, SingleFlight
from batos.protocol.errors import GenerationFailed


@dataclass
class Work:
    """Work in steps: each is paid for after its flight was asked whether anyone waits, and takes a turn of the loop."""

    steps: int = 3
    begun: int = 0
    paid: int = 0
    done: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, flight: Flight[str]) -> str:
        self.begun += 1
        for _ in range(self.steps):
            flight.raise_if_abandoned()
            self.paid += 1
            await self.gate.wait()
        self.done += 1
        return f"made {self.begun}"


async def test_who_comes_while_it_is_made_waits_for_it() -> None:
    """Eight who want the same begin it once, and each has what came of it; another key is work of its own."""
    single_flight, work, other = SingleFlight[str](), Work(), Work()
    waiting = [asyncio.ensure_future(single_flight.run_once("guide", work)) for _ in range(8)]
    waiting.append(asyncio.ensure_future(single_flight.run_once("sage", other)))
    await asyncio.sleep(0)
    assert single_flight.flying("guide")
    work.gate.set()
    other.gate.set()
    assert await asyncio.gather(*waiting) == ["made 1"] * 9
    assert (work.begun, other.begun) == (1, 1)
    assert not single_flight.flying("guide")


async def test_it_goes_on_when_the_one_that_began_it_is_cancelled() -> None:
    """The mission that began it may end: as long as another waits, it goes on and is made once."""
    single_flight, work = SingleFlight[str](), Work()
    first = asyncio.ensure_future(single_flight.run_once("guide", work))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(single_flight.run_once("guide", work))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    work.gate.set()
    assert await second == "made 1"
    assert (work.begun, work.paid) == (1, 3)


async def test_where_nobody_waits_nothing_more_is_paid() -> None:
    """The call under way is finished; the next is not begun, and who comes later begins again."""
    single_flight, work = SingleFlight[str](), Work()
    only = asyncio.ensure_future(single_flight.run_once("guide", work))
    await asyncio.sleep(0)
    only.cancel()
    with pytest.raises(asyncio.CancelledError):
        await only
    assert work.paid == 1
    work.gate.set()
    for _ in range(9):  # the call under way is finished, and then it stops
        await asyncio.sleep(0)
    assert not single_flight.flying("guide")
    assert (work.paid, work.done) == (1, 0)
    assert await single_flight.run_once("guide", work) == "made 2"


async def test_who_comes_while_the_last_call_is_finished_is_waited_for() -> None:
    """One that nobody waited for goes on when somebody comes before its next call."""
    single_flight, work = SingleFlight[str](), Work()
    only = asyncio.ensure_future(single_flight.run_once("guide", work))
    await asyncio.sleep(0)
    only.cancel()
    await asyncio.gather(only, return_exceptions=True)
    late = asyncio.ensure_future(single_flight.run_once("guide", work))
    await asyncio.sleep(0)
    work.gate.set()
    assert await late == "made 1"
    assert work.begun == 1


async def test_who_comes_when_it_has_stopped_begins_again() -> None:
    """One that stopped for want of anyone raises nothing to who joined it that moment: it is begun again."""
    single_flight = SingleFlight[str]()
    begun: list[int] = []
    gate = asyncio.Event()

    async def stops(flight: Flight[str]) -> str:
        begun.append(1)
        if len(begun) == 1:
            await gate.wait()
            raise Abandoned
        return "made"

    waiting = asyncio.ensure_future(single_flight.run_once("guide", stops))
    await asyncio.sleep(0)
    gate.set()
    assert await waiting == "made"
    assert len(begun) == 2


async def test_what_it_fails_with_is_told_to_each() -> None:
    """All who wait hear why it failed; the next who comes begins anew."""
    single_flight = SingleFlight[str]()

    async def fails(flight: Flight[str]) -> str:
        await asyncio.sleep(0)
        raise GenerationFailed("nothing came of it")

    found = await asyncio.gather(*(single_flight.run_once("guide", fails) for _ in range(3)), return_exceptions=True)
    assert [type(each) for each in found] == [GenerationFailed] * 3
    assert not single_flight.flying("guide")


async def test_wishes_of_all_who_wait_are_known() -> None:
    """What any of those who wait wants of it can be seen before it ends, whoever began it."""
    single_flight, seen = SingleFlight[str](), set[Hashable]()
    gate = asyncio.Event()

    async def looks(flight: Flight[str]) -> str:
        await gate.wait()
        seen.update(flight.wishes)
        return "made"

    waiting = [asyncio.ensure_future(single_flight.run_once("guide", looks, wish)) for wish in ("ask", "auto")]
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(*waiting)
    assert seen == {"ask", "auto"}


@pytest.mark.parametrize("many", [0, 1, 5])
async def test_closing_ends_what_is_under_way(many: int) -> None:
    """At the end of a process nothing goes on; who waits is cancelled, and each ends before closing returns."""
    single_flight: SingleFlight[str] = SingleFlight()
    ended: list[str] = []

    def waits(name: str) -> Callable[[Flight[str]], Awaitable[str]]:
        async def work(flight: Flight[str]) -> str:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(name)
            return name

        return work

    waiting = [asyncio.ensure_future(single_flight.run_once(name, waits(name))) for name in map(str, range(many))]  # type: ignore[arg-type]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await single_flight.aclose()
    assert sorted(ended) == sorted(map(str, range(many)))
    assert all(
        isinstance(each, asyncio.CancelledError) for each in await asyncio.gather(*waiting, return_exceptions=True)
    )
