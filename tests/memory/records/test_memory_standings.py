"""Standings of memories: who gave way to whom, also in a chain of which one goes."""

from __future__ import annotations

import pytest
from tests.image.open_image import open_image
from tests.memory.records.test_memory_records import add, document

from batos.image import roots
from batos.image.roots import Root
from batos.memory.records import memory_claims, memory_records, memory_standings

SINCE = "2026-11-24T00:00:00Z"


def supersede(root: Root, name: str, by: str) -> None:
    """Let a document take the place of another, as claims do."""
    memory_claims.note_marked(root[roots.DOCUMENTS][by], name)
    memory_standings.supersede(root, name, by, SINCE)


def standings(root: Root) -> dict[str, str]:
    """The standing of each document."""
    return {name: memory_standings.standing_of(root, name) for name in root[roots.DOCUMENTS]}


def prepare(root: Root) -> None:
    """Three of which each took the place of the one before."""
    add(root, document("d-1"), document("d-2"), document("d-3"))
    supersede(root, "d-1", "d-2")
    supersede(root, "d-2", "d-3")


@pytest.mark.parametrize("is_forgotten", [True, False])
async def test_the_first_of_a_chain_does_not_hold_again_when_the_second_goes(is_forgotten: bool) -> None:
    """The third is in its place then; once that goes too, it holds."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            prepare(root)
            if is_forgotten:
                memory_records.forget(root, ["d-2"])
            else:
                memory_standings.set_standing(root, "d-2", "retracted")
            assert (standings(root)["d-1"], standings(root)["d-3"]) == ("superseded", "current")
            assert root[roots.DOCUMENTS]["d-1"].superseded_by == "d-3"
            memory_records.forget(root, ["d-3"])
            assert standings(root)["d-1"] == "current"

        await image.writer.apply(change)


async def test_what_gave_way_is_history_again_where_it_comes_back() -> None:
    """Unless that to which it gave way does not hold any more."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            prepare(root)
            memory_standings.set_standing(root, "d-2", "retracted")
            memory_standings.recall_again(root, "d-2")
            assert standings(root) == {"d-1": "superseded", "d-2": "superseded", "d-3": "current"}
            memory_standings.set_standing(root, "d-2", "retracted")
            memory_standings.set_standing(root, "d-3", "retracted")
            memory_standings.recall_again(root, "d-2")
            assert standings(root)["d-2"] == "current"
            memory_standings.recall_again(root, "d-3")
            assert standings(root)["d-2"] == "superseded"

        await image.writer.apply(change)


async def test_a_place_is_taken_by_what_came_from_there_since() -> None:
    """Not by itself, and not by what is not recalled."""
    async with open_image(None) as image:

        def change(root: Root) -> None:
            add(root, document("d-1", "/a"))
            assert not memory_standings.is_place_taken(root, "d-1")
            memory_standings.set_standing(root, "d-1", "retracted")
            add(root, document("d-2", "/a"))
            assert memory_standings.is_place_taken(root, "d-1")
            memory_standings.set_standing(root, "d-2", "retracted")
            assert not memory_standings.is_place_taken(root, "d-1")

        await image.writer.apply(change)
