"""Facets that are methods: they run in a cell, think under their persona's voice, and their answers are parts."""

from __future__ import annotations

from tests.cognition.methods.crafted import Crafted, methods
from tests.cognition.minds import GOOD, SLOTS, WINDS, ask

TAMLAND, GUIDE, ROGUES = SLOTS


async def test_a_facet_that_is_a_method_answers_its_sub_query(mind: Crafted) -> None:
    """What it returns is its voice; the citations that the model gave it are kept beside the answer."""
    await mind.learn(
        tamland_facet_="""
        async def tamland_facet_(self, query):
            reply = await self.infer_(query)
            return reply
        """
    )
    shown = await ask(mind.uvm)
    voice = shown["voices"][0]
    assert (voice["facet"], voice["answer"], voice["known"]) == (TAMLAND, f"{WINDS}.", True)
    assert voice["citations"] == GOOD["citations"]
    assert shown["cost"]["calls"] == 5
    assert methods(shown)[0] == (TAMLAND, "method")
    assert shown["provenance"]["methods"][0]["path"] == "brick/delegating/tamland"
