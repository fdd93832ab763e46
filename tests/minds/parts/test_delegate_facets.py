"""Facets: each with a question and an intent of its own, and citations that are computed from its answer."""

from __future__ import annotations

import itertools

from tests.minds.conftest import Mind
from tests.minds.scripted import BAD, DOCUMENT, INSPIRATIONS, QUESTION, SLOTS, WINDS, ask, kind

from batos.inference.ollama.bridge import ChatRequest
from batos.minds.parts import delegate
from batos.testing import ScriptedBridge


async def test_a_facets_citations_are_computed(mind: Mind) -> None:
    """The sentence of the document that carries the answer is cited; what nothing carries has none."""
    mind.script.part = f"{WINDS}. {BAD}"
    shown = await ask(mind.uvm)
    (cited,) = shown["voices"][0]["citations"]
    start, end = cited["span"]
    assert DOCUMENT[start:end] == cited["quote"]
    assert cited["sentence"] == f"{WINDS}."
    assert shown["voices"][0]["known"]
    mind.script.part = BAD
    shown = await ask(mind.uvm)
    assert (shown["voices"][0]["citations"], shown["voices"][0]["known"]) == ([], False)


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
        told = delegate.pillars(root["brick_prototype_obj"], (*SLOTS, "core_identity", "nothing_here"))
    assert [slot for slot, _, _ in told] == list(SLOTS)
    assert tuple(inspiration for _, _, inspiration in told) == INSPIRATIONS
    assert len(set(itertools.chain(*told))) == 9
