"""Restatements: another value marks the older one, whatever lies between; files must speak of one thing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.image.open_image import open_image
from tests.memory.claims.test_restatements_hearing import recall, turn
from tests.memory.test_document_store import incoming, store_of

from batos.memory.known_texts import Incoming
from batos.memory.search.recollection import RecallView


def file(text: str, title: str, at: str = "") -> Incoming:
    """A file of a title, from outside."""
    return replace(incoming(text, f"/{title}/{at}"), title=title, said_at=at)


async def test_a_value_gives_way_over_any_distance() -> None:
    """Without a word of correction; the later moment decides, not the order."""
    async with open_image(None) as image:
        store = store_of(image)
        await store.remember([turn("The price is 12 euros.", "2026-11-02T00:00:00Z")])
        await store.remember([turn(f"Note number{n} on oil.", f"2026-11-03T00:00:{n:02}Z") for n in range(60)])
        (line,) = (await store.remember([turn("The price is 9 euros.", "2026-11-01T00:00:00Z")]))["remembered"]
        old = "[superseded since 2026-11-02] The price is 9 euros."
        assert sorted(recall(image, "price", RecallView())) == ["The price is 12 euros.", old]
        assert line["flagged"] == []


@pytest.mark.parametrize(
    ("first", "second", "gives_way"),
    [
        (("The price is 9 euros.", "offer v1"), ("The price is 12 euros.", "Offer v2"), True),
        (("The price is 9 euros.", "lamps"), ("The price is 12 euros.", "keels"), False),
        (("The budget of Orion is 9 euros.", "lamps"), ("The budget of Orion is 12 euros.", "keels"), True),
        (("The keeper of Orion is Maro.", "lamps"), ("The keeper of Orion is Anna.", "keels"), False),
    ],
)
async def test_files_speak_of_one_thing_by_title_or_name(
    first: tuple[str, str], second: tuple[str, str], gives_way: bool
) -> None:
    """Files about different things may say different things of a price."""
    async with open_image(None) as image:
        store = store_of(image)
        await store.remember([file(*first)])
        (line,) = (await store.remember([file(*second, at="2026-11-25T00:00:00Z")]))["remembered"]
        assert len(line["flagged"]) == gives_way


async def test_a_file_does_not_overrule_a_person() -> None:
    """The word of a person gives way to that of a person."""
    async with open_image(None) as image:
        store = store_of(image)
        await store.remember([turn("The budget of Orion is 9 euros.")])
        await store.remember([file("The budget of Orion is 12 euros.", "orion")])
        assert sorted(recall(image, "budget", RecallView("strict"))) == [
            "The budget of Orion is 12 euros.",
            "The budget of Orion is 9 euros.",
        ]


async def test_forgetting_restores_and_long_documents_are_left_alone() -> None:
    """And no mark is left of what is gone."""
    async with open_image(None) as image:
        store = store_of(image)
        await store.remember([file("The price is 9 euros.", "offer")])
        (line,) = (await store.remember([file("The price is 12 euros.", "offer", "2026-11-25T00:00:00Z")]))[
            "remembered"
        ]
        await store.forget([line["document"]], "ann")
        assert recall(image, "price", RecallView("strict")) == ["The price is 9 euros."]
        long = file("The price is 15 euros.\n\n" + "Oil is dear. " * 400, "offer", "2026-11-26T00:00:00Z")
        assert (await store.remember([long]))["remembered"][0]["flagged"] == []
