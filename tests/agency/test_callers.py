"""Programs that wait: found by their names, asked until they answer, waited for where they are away."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from batos.agency.callers import Callers, CallerTimes
from batos.protocol.lent_tools import CallReply, LentCallDocument

CALL = LentCallDocument(
    mission="m-1", call="x-1", tool="look", arguments={}, reads=True, from_external=False, is_file=False, seconds=9.0
)
DONE: CallReply = {"outcome": "done", "text": "18"}
#: Long ones, where something else ends the wait.
LONG = 600.0


async def test_an_answer_is_taken_from_the_program_that_was_asked_and_once() -> None:
    """Another one's answer, a second one, and one to a call that nobody makes are late."""
    callers, said = Callers(), list[bool]()

    def tell(_event: str, keys: Mapping[str, object]) -> None:
        said.extend(callers.answer(*each) for each in (("other", "x-1", DONE), ("a", "x-2", DONE), ("a", "x-1", DONE)))
        said.append(callers.answer("a", str(keys["call"]), DONE))

    with callers.attach("a", tell):
        assert await callers.ask("a", CALL, LONG) == DONE
    assert said == [False, False, True, False]
    assert not callers.answer("a", "x-1", DONE)


async def test_a_call_is_asked_for_again_until_it_is_answered() -> None:
    """Also over another connection, by which the program came back."""
    callers, heard = Callers(CallerTimes(again=0.01)), list[str]()

    twice = asyncio.Event()

    def deaf(_event: str, _keys: Mapping[str, object]) -> None:
        heard.append("deaf")
        if len(heard) > 1:
            twice.set()

    def hears(_event: str, _keys: Mapping[str, object]) -> None:
        heard.append("hears")
        callers.answer("a", "x-1", DONE)

    with callers.attach("a", deaf):
        asking = asyncio.ensure_future(callers.ask("a", CALL, LONG))
        await twice.wait()
        with callers.attach("a", hears):
            assert await asking == DONE
    assert heard[:2] == ["deaf", "deaf"]
    assert heard[-1] == "hears"


async def test_a_program_that_is_away_is_waited_for() -> None:
    """It comes back in time, or there is no answer."""
    callers = Callers(CallerTimes(patience=LONG))
    asking = asyncio.ensure_future(callers.ask("a", CALL, LONG))
    await asyncio.sleep(0)

    def answers(_event: str, _keys: Mapping[str, object]) -> None:
        callers.answer("a", "x-1", DONE)

    with callers.attach("b", lambda *_told: None), callers.attach("a", answers):
        assert await asking == DONE
    callers.times = CallerTimes(patience=0.0)
    assert not await callers.is_there("a")
    assert await callers.ask("a", CALL, LONG) is None


async def test_time_is_bounded_though_the_program_is_there() -> None:
    """A program that never answers is given up."""
    callers = Callers(CallerTimes(again=0.01))
    with callers.attach("a", lambda *_told: None), callers.attach(None, lambda *_told: None):
        assert await callers.ask("a", CALL, 0.03) is None
