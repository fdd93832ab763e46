"""Later texts: what took the place of a statement is evidence beside it, whatever words it has."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.image.open_image import open_image
from tests.memory.test_document_store import incoming, store_of

from batos.memory.search.chunk_search import RecallQuery
from batos.memory.search.later_texts import INSTEAD
from batos.memory.search.metadata import MemoryReach
from batos.memory.search.recollection import Recollection


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Where does my sister Eva live?", ("My sister Eva lives in Bremen.", "My sister Eva has moved to Hamburg.")),
        (
            "Where does my father live?",
            ("My father lives in Kiel.", "My father has moved to Ulm.", "My father has moved to Genoa."),
        ),
        ("Wo wohnt meine Tante?", ("Meine Tante wohnt in Husum.", "Meine Tante wohnt jetzt in Lyon.")),
    ],
)
async def test_what_took_the_place_of_a_statement_stands_beside_it(question: str, said: tuple[str, ...]) -> None:
    """The question has the words of the first text alone; the last one is there, and holds."""
    async with open_image(None) as image:
        store, recollection = store_of(image), Recollection()
        for at, text in enumerate(said, 1):
            await store.remember([replace(incoming(text), kind="turn", said_at=f"2026-01-{at:02}T10:00:00.000Z")])
        await store.remember([incoming(f"The oar of the {each} is there.") for each in ("mill", "quay", "hut")])
        with image.snapshot() as root:
            passages = recollection.find_passages(root, RecallQuery(question), MemoryReach("ann"), 1)
            reach = MemoryReach("ann", scopes=frozenset({"elsewhere"}))
            assert recollection.find_passages(root, RecallQuery(question), reach, 1) == ()
    assert [each.text for each in passages if not each.standing] == [said[-1]]
    assert [each.why for each in passages if not each.standing] == [INSTEAD]
