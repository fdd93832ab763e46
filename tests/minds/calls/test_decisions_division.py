"""Dividing a question: a short request, plain keys, and a reply that is checked."""

from __future__ import annotations

import json

from tests.minds.conftest import Mind
from tests.minds.scripted import QUESTION, ask, kind

from batos.inference.ollama.bridge import ChatRequest
from batos.minds.calls import decisions
from batos.protocol.errors import BatosError


async def test_the_request_is_short_and_names_nobody(mind: Mind) -> None:
    """The last message is the task and the question, with no name, time or key; the keys are plain."""
    await ask(mind.uvm)
    first = mind.bridge.history[0]
    assert first.schema is not None
    assert list(first.schema["properties"]) == ["q1", "q2", "q3"]
    said = first.messages[-1]["content"]
    assert said.endswith(QUESTION)
    assert len(said) < 200
    for word in ("BRICK", "facet", "q1", "Asked at", "characters", "Tamland"):
        assert word not in said


async def test_a_useless_division_is_asked_for_once_more_and_not_shown(mind: Mind) -> None:
    """The second reply divides the question; the first is waste, and nothing is told of a rule."""
    useless = iter([json.dumps({"q1": "Brick Tamland", "q2": "The Guide", "q3": "q3"})])

    def respond(request: ChatRequest) -> str | BatosError:
        found = next(useless, None) if kind(request) == "decomposition" else None
        return found or mind.script(request)

    mind.bridge.respond = respond
    shown = await ask(mind.uvm)
    asked = [each for each in mind.bridge.history if kind(each) == "decomposition"]
    assert len(asked) == 2
    assert asked[0].messages == asked[1].messages
    assert [voice["query"] for voice in shown["voices"]] == [f"{QUESTION} (q{number})" for number in (1, 2, 3)]
    assert shown["cost"]["wasted"] > 0
    assert "undivided" not in shown["provenance"]["combined"]
    assert mind.told("mission.rule") == []


async def test_a_retry_pays_for_neither_reply_again(mind: Mind) -> None:
    """Both replies of a question that cannot be divided have keys of their own in the journal."""
    mind.bridge.respond = lambda request: "none" if kind(request) == "decomposition" else mind.script(request)
    first = await ask(mind.uvm)
    again = await ask(mind.uvm, ancestor=first["id"])
    assert again["cost"]["calls"] == 0
    assert again["cost"]["from_journal"] == first["cost"]["calls"]
    paths = [each["path"] for each in mind.uvm.readings.prompts(first["id"])]
    assert paths[:2] == ["brick/decomposing#0", "brick/decomposing#0/again1"]


async def test_what_is_no_question_is_not_divided(mind: Mind) -> None:
    """A feeling or an order goes to each part as it is, and the rule is told."""
    shown = await ask(mind.uvm, "I failed my driving test today and feel awful.")
    assert "decomposition" not in [kind(each) for each in mind.bridge.history]
    assert {voice["query"] for voice in shown["voices"]} == {"I failed my driving test today and feel awful."}
    assert shown["provenance"]["combined"]["undivided"] == decisions.NO_QUESTION


async def test_a_sub_query_keeps_what_it_asks_about(mind: Mind) -> None:
    """One that names nothing of the question is followed by it."""
    queries = {"q1": f"{QUESTION} Who?", "q2": "Within what time?", "q3": f"Why? {QUESTION}"}
    mind.bridge.respond = lambda request: (
        json.dumps(queries) if kind(request) == "decomposition" else mind.script(request)
    )
    shown = await ask(mind.uvm)
    assert [voice["query"] for voice in shown["voices"]] == [
        queries["q1"],
        f"Within what time? ({QUESTION})",
        queries["q3"],
    ]
