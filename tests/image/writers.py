"""Everybody who commits to an image: each is given a change that nobody may commit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from tests.image.open_image import answer, brief, thought_in

from batos.image.ids import utc_now
from batos.image.image import LivingImage
from batos.image.writer import Publisher

Change: TypeAlias = Callable[[Any], object]


async def start_mission(image: LivingImage) -> str:
    """A mission that is running."""
    mission = await image.accept(brief())
    await image.move(mission, "running")
    return mission


async def by_the_writer(image: LivingImage, mission: str, change: Change) -> None:
    """As genesis, approvals, installs, corrections and promotions commit."""
    await image.writer.apply(change)


async def by_the_publisher(image: LivingImage, mission: str, change: Change) -> None:
    """As what a mission contributed is folded in."""
    with image.transaction(mission) as thinking:
        thought = answer(thought_in(image, thinking, mission))
        thought.contributions = [("bell", None)]
        await thinking.commit(thought)
    appliers = {"bell": lambda root, mission, payload: (change(root), ())[1]}
    await Publisher(image.writer, appliers, utc_now).fold(mission)


async def by_a_thought(image: LivingImage, mission: str, change: Change) -> None:
    """As a mission commits, asked by no voter."""
    image.voters = ()
    with image.transaction(mission) as thinking:
        change(thinking.root)
        await thinking.commit(answer(thought_in(image, thinking, mission)))


async def by_any_connection(image: LivingImage, mission: str, change: Change) -> None:
    """As code would that knows none of the others."""
    with image.db.transaction() as connection:
        change(connection.root())


WRITERS: dict[str, Callable[[LivingImage, str, Change], Awaitable[None]]] = {
    "the writer": by_the_writer,
    "the publisher": by_the_publisher,
    "a thought": by_a_thought,
    "any connection": by_any_connection,
}
