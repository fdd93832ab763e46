"""The map step: what asks for all of a text that fits no prompt is asked of each share of it."""

from __future__ import annotations

import re
from typing import Any

from tests.minds.conftest import Mind
from tests.minds.scripted import ask

from batos.inference.ollama.bridge import ChatRequest
from batos.minds.parts import mapping
from batos.protocol.brief import File, as_file

FILLER = "The weather was mild and nothing was said of it that day. "
LIST = "List all decisions of the minutes."


def minutes(decisions: int) -> File:
    """Minutes of so many decisions, each in a section of its own with much beside it."""
    sections = (f"## Meeting {at}\n\n{FILLER * 18}\n\nDecision {at}: gate {at} is painted." for at in range(decisions))
    return as_file("minutes.md", "\n\n".join(sections).encode())


def listing(request: ChatRequest) -> str:
    """A model that lists every decision which it is shown, and without one says so."""
    shown = "\n".join(message["content"] for message in request.messages)
    found = re.findall(r"Decision \d+: gate \d+ is painted\.", shown)
    return "\n".join(f"- {each}" for each in dict.fromkeys(found)) or "There is nothing about that in the text."


async def asked(mind: Mind, question: str, file: File, **fields: Any) -> dict[str, Any]:
    """The mission's document."""
    mind.bridge.respond = listing
    return await ask(mind.uvm, question, (file,), **{"effort": "auto", **fields})


async def test_a_list_has_what_stands_in_every_share(mind: Mind) -> None:
    """Each decision once and in order, in as many calls as were told before the first of them."""
    shown = await asked(mind, LIST, minutes(24))
    assert shown["answer"].splitlines() == [f"- Decision {at}: gate {at} is painted." for at in range(24)]
    calls = shown["cost"]["calls"]
    assert 1 < calls <= mapping.MOST_CALLS["reflex"]
    (rule,) = [each for each in mind.told("mission.rule") if each["decision"] == mapping.DECISION]
    assert f"it takes {calls} calls" in rule["why"]
    events = [name for name, _ in mind.events]
    assert events.index("mission.rule") < events.index("inference.start")
    assert shown["provenance"]["omitted"]["passages"] == 0
    assert len(mind.told("mission.partial")) == calls
    assert shown["provenance"]["gate"]["ok"]


async def test_no_more_calls_than_allowed_are_made_and_what_is_left_out_is_told(mind: Mind) -> None:
    """Of a text that fills more prompts the best matches are asked; more by a higher effort."""
    file = minutes(90)
    shown = await asked(mind, LIST, file)
    assert shown["cost"]["calls"] == mapping.MOST_CALLS["reflex"]
    assert shown["provenance"]["omitted"]["passages"] > 0
    (rule,) = [each for each in mind.told("mission.rule") if each["decision"] == mapping.DECISION]
    assert "left out" in rule["why"]
    more = await asked(mind, LIST, file, effort="cycle")
    assert more["cost"]["calls"] > shown["cost"]["calls"]
    assert more["provenance"]["omitted"]["passages"] < shown["provenance"]["omitted"]["passages"]


async def test_summaries_are_joined_by_a_last_call(mind: Mind) -> None:
    """It is shown what was said of each share, and not the text again."""
    shown = await asked(mind, "Summarise the minutes.", minutes(24))
    last = mind.bridge.history[-1].messages[-1]["content"]
    assert "Decision 0:" in last
    assert "Decision 23:" in last
    assert FILLER not in last
    assert shown["cost"]["calls"] == len(mind.told("mission.partial")) + 1


async def test_one_call_where_all_fits_or_one_was_asked_for(mind: Mind) -> None:
    """A short text, a question of one fact, and a reflex that the asker named are one call."""
    assert (await asked(mind, LIST, minutes(2)))["cost"]["calls"] == 1
    assert (await asked(mind, "When was gate 7 painted?", minutes(24)))["cost"]["calls"] == 1
    assert (await asked(mind, LIST, minutes(24), effort="reflex"))["cost"]["calls"] == 1


async def test_a_second_attempt_pays_for_nothing_again(mind: Mind) -> None:
    """The shares are the same, and so are their calls."""
    first = await asked(mind, LIST, minutes(24))
    again = await asked(mind, LIST, minutes(24), ancestor=first["id"])
    assert again["answer"] == first["answer"]
    assert again["cost"]["calls"] == 0
