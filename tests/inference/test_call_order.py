"""Turns: so many calls at once, next the one that shares most with the one before it, and none is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from tests.waiting import HANG

from batos.inference.call_order import ALL, CallOrder, common

texts = some.lists(some.sampled_from(["a", "b", "shared prefix", "shared preface", ""]), min_size=1, max_size=4)


def said(*contents: str) -> list[dict[str, str]]:
    """Messages of a user with these contents."""
    return [{"role": "user", "content": content} for content in contents]


async def order(turns: CallOrder, prompts: Sequence[Sequence[str]]) -> list[int]:
    """In which order calls that come together have their turns; each lasts until the loop has been round."""
    had: list[int] = []

    async def call(number: int) -> None:
        async with turns.turn(said(*prompts[number])):
            had.append(number)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for number in range(len(prompts)):
            group.create_task(call(number))
    return had


async def test_the_next_is_the_one_that_shares_most_with_the_last() -> None:
    """Calls of two voices that come mixed up are made voice by voice; the first that came begins."""
    prompts = [("all", "robin 1"), ("all", "brick 1"), ("all", "robin 2"), ("all", "brick 2"), ("all", "robin 1, more")]
    assert await order(CallOrder(1), prompts) == [0, 4, 2, 1, 3]


async def test_among_equals_the_first_that_came_is_next() -> None:
    """Nothing in common with the last, or as much: they go in the order in which they came."""
    assert await order(CallOrder(1), [("x",), ("a",), ("b",), ("c",)]) == [0, 1, 2, 3]


async def test_many_at_once_nobody_waits() -> None:
    """As many calls as are allowed begin in the order in which they come."""
    assert await order(CallOrder(ALL), [(str(number),) for number in range(9)]) == list(range(9))


@given(prompts=some.lists(texts, max_size=9), many=some.integers(1, 4))
def test_everybody_has_one_turn_and_no_more_than_allowed_at_once(prompts: list[list[str]], many: int) -> None:
    """Whatever is asked: each call has its turn, never more than `many` at a time, and the same again the next time."""

    async def crowd() -> tuple[list[int], int]:
        turns, had, most = CallOrder(many), [], 0

        async def call(number: int) -> None:
            nonlocal most
            async with turns.turn(said(*prompts[number])):
                had.append(number)
                most = max(most, turns._going)
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as group:
            for number in range(len(prompts)):
                group.create_task(call(number))
        assert turns._going == 0
        assert turns._waiting == []
        return had, most

    had, most = asyncio.run(crowd())
    assert sorted(had) == list(range(len(prompts)))
    assert most <= many
    assert asyncio.run(crowd()) == (had, most)


@settings(max_examples=30)
@given(cancelled=some.sets(some.integers(0, 5)), failing=some.sets(some.integers(0, 5)), many=some.integers(1, 3))
def test_who_gives_up_leaves_no_turn_behind(cancelled: set[int], failing: set[int], many: int) -> None:
    """Calls that are cancelled while they wait or while they last, or fail, keep nobody else from a turn."""

    async def crowd() -> None:
        turns, had = CallOrder(many), []

        async def call(number: int) -> None:
            async with turns.turn(said(str(number))):
                had.append(number)
                await asyncio.sleep(0)
                if number in failing:
                    raise OSError(str(number))

        tasks = [asyncio.create_task(call(number)) for number in range(6)]
        await asyncio.sleep(0)
        for number in cancelled:
            tasks[number].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert set(range(6)) - cancelled <= set(had)
        async with asyncio.timeout(HANG), turns.turn(()):
            assert turns._going == 1

    asyncio.run(crowd())


async def test_a_call_that_is_cancelled_as_its_turn_comes_hands_it_on() -> None:
    """The turn was given and the task cancelled in the same round of the loop: the next has it."""
    turns, had = CallOrder(1), []

    async def call(name: str) -> None:
        async with turns.turn(said(name)):
            had.append(name)

    async with turns.turn(said("first")):
        waiting = [asyncio.create_task(call(name)) for name in ("given up", "next")]
        await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert had == ["next"]


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ((), ("a",), 0),
        (("same", "abc"), ("same", "abd"), 6),
        (("same",), ("same", "more"), 4),
        (("same", ""), ("same", "x"), 4),
        (("x",), ("y",), 0),
    ],
)
def test_what_two_prompts_share_is_counted_from_their_beginning(
    one: tuple[str, ...], other: tuple[str, ...], shared: int
) -> None:
    """Characters up to the first that differs, over all messages; the order of the two does not matter."""
    assert common(said(*one), said(*other)) == common(said(*other), said(*one)) == shared


def test_another_role_is_another_prompt() -> None:
    """What an assistant said is nothing that a user says."""
    assert common(said("same"), [{"role": "assistant", "content": "same"}]) == 0
