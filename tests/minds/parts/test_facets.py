"""Facets: each with a question and an intent of its own; what it quotes falsely goes no further."""

from __future__ import annotations

import itertools

from tests.minds.conftest import Mind
from tests.minds.scripted import GOOD, INSPIRATIONS, QUESTION, SLOTS, WINDS, ask, kind

from batos.inference.ollama.bridge import ChatRequest
from batos.minds.parts import facets
from batos.testing import ScriptedBridge


async def test_a_facets_false_citation_is_not_carried_on(mind: Mind) -> None:
    """What a facet quotes and the document does not say never reaches the weave or the voices."""
    invented = {"document": 1, "quote": "The keeper sleeps until noon"}
    mind.script.part = "It burns."
    shown = await ask(mind.uvm)
    assert all(voice["citations"] == GOOD["citations"] for voice in shown["voices"])
    weave = next(request for request in mind.bridge.history if kind(request) == "woven")
    assert "sleeps until noon" not in weave.messages[-1]["content"]
    assert WINDS in weave.messages[-1]["content"]


async def test_decomposition_gives_every_pillar_a_question_of_its_own(mind: Mind) -> None:
    """The schema asks for one sub-query a facet by its slot; each facet's prompt has its own."""
    await ask(mind.uvm)
    asked = [request for request in mind.bridge.history if kind(request) == "part"]
    assert [f"{QUESTION} ({key})" in request.messages[-1]["content"] for request, key in _keys(mind.bridge, asked)] == [
        True
    ] * 3
    assert len({request.messages[-1]["content"] for request in asked}) == 3


def _keys(bridge: ScriptedBridge, asked: list[ChatRequest]) -> list[tuple[ChatRequest, str]]:
    schema = bridge.history[0].schema
    assert schema is not None
    return list(zip(asked, schema["properties"], strict=True))


async def test_pillars_are_told_by_slot_name_and_inspiration(mind: Mind) -> None:
    """Decomposition names the intents of a persona; a slot that holds none is left out."""
    with mind.uvm.image.snapshot() as root:
        told = facets.pillars(root["brick_prototype_obj"], (*SLOTS, "core_identity", "nothing_here"))
    assert [slot for slot, _, _ in told] == list(SLOTS)
    assert tuple(inspiration for _, _, inspiration in told) == INSPIRATIONS
    assert len(set(itertools.chain(*told))) == 9
