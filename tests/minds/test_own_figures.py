"""The figures of the mind's own work: who is told of them, what an answer to them may say, and what stays as it was."""

from __future__ import annotations

import json
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.minds.conftest import Mind
from tests.minds.scripted import LAMP, change
from tests.minds.test_trace_choices import died

from batos.autotelic.model_missions import MissionTask
from batos.genesis.codex import codex as codices
from batos.minds import own_figures
from batos.minds.own_sentences import OwnSentence
from batos.objects.method import Intent
from batos.objects.prototype import own_slots
from batos.testing import emulated_uvm

COST = "How many model calls did that answer cost?"
RATE = "Report your error rate for this week."


async def reflex(mind: Mind, text: str, files: Any = (), **brief: Any) -> dict[str, Any]:
    """Ask in one call, of whomever the router chooses."""
    return dict(await mind.uvm.missions.ask({"text": text, "effort": "reflex", **brief}, files))


async def test_a_question_about_the_last_answer_is_told_its_figures(mind: Mind) -> None:
    """The sentence is evidence with an id and a name, and carries the answer that says it."""
    await reflex(mind, "Who winds the clockwork?", (LAMP,), persona="BRICK")
    mind.script.woven = "The last answer took 1 model call."
    found = await reflex(mind, COST)
    known = found["provenance"]
    assert found["route"]["personas"] == ["ALFRED"]
    assert found["answer"] == "The last answer took 1 model call."
    (recalled,) = known["recalled"]
    assert (recalled["name"], recalled["trust"]) == ("ledger", "tool")
    assert known["sentences"][0]["state"] == "carried"
    assert known["citations"][0]["sha256"] == recalled["sha256"]
    assert known["gate"]["faults"] == []
    assert "ledger" in mind.bridge.history[-1].messages[1]["content"]


async def test_a_wrong_figure_is_replaced_by_the_computed_sentence(mind: Mind) -> None:
    """The answer, what was streamed and the record have the right one; a rule says so."""
    await reflex(mind, "Who winds the clockwork?", (LAMP,), persona="BRICK")
    mind.script.woven = "It took 512 model calls."
    found = await reflex(mind, COST)
    assert found["answer"] == "The last answer took 1 model call."
    assert [each["decision"] for each in found["provenance"]["rules"]] == ["result"]
    assert mind.told("mission.token")[-1]["text"] == found["answer"]


async def test_the_conversation_comes_before_what_was_asked_elsewhere(mind: Mind) -> None:
    """`That answer` is the newest of the same conversation, else of the same user, and never another's."""
    mind.script.woven = "I cannot tell."
    assert (await reflex(mind, COST))["answer"] == "No figure for that has been recorded."
    first = await reflex(mind, "Who winds it?", (LAMP,), persona="BRICK", conversation="new")
    await reflex(mind, "How is the lamp kept?", (LAMP,), persona="BRICK", effort="cycle")
    talk = first["brief"]["conversation"]
    assert (await reflex(mind, COST, conversation=talk))["answer"] == "The last answer took 1 model call."
    assert (await reflex(mind, COST, user="key ann"))["answer"] == "No figure for that has been recorded."


async def test_a_guest_is_told_of_no_other(mind: Mind) -> None:
    """The rates of a guest are those of the guest's own missions."""
    mind.script.woven = "I cannot tell."
    await reflex(mind, "Who winds it?", (LAMP,), persona="BRICK")
    own = await reflex(mind, "How many missions have you finished so far?", persona="ALFRED", user="key ann")
    assert own["answer"] == "In all 0 missions were answered."
    all_of_it = await reflex(mind, "How many missions have you finished so far?", persona="ALFRED")
    assert all_of_it["answer"] == "In all 2 missions were answered."
    calls = await reflex(mind, "How many model calls have you made today?", persona="ALFRED", user="key ann")
    assert calls["answer"] == "No figure for that has been recorded."


@pytest.mark.parametrize(
    ("text", "brief", "files"),
    [
        ("How many calls did the branch in Lyon take this week?", {"persona": "ALFRED"}, ()),
        (COST, {"persona": "BRICK"}, ()),
        (COST, {"persona": "ALFRED"}, (LAMP,)),
        ("Which assumptions am I making here that I haven't noticed?", {}, ()),
    ],
)
async def test_any_other_prompt_is_what_it_was(mind: Mind, text: str, brief: dict[str, Any], files: Any) -> None:
    """Byte for byte: the same question to a mind that knows nothing of itself has the same messages and notes."""
    found = await reflex(mind, text, files, **brief)
    runner = (await mind.uvm.readiness.ready()).runner
    assert runner.rates is not None
    runner.rates = None
    again = await reflex(mind, text, files, policy={"memory": "none"}, **brief)
    one, other = (next(e for e in reversed(mind.uvm.readings.prompts(each["id"]))) for each in (found, again))
    assert one["messages"] == other["messages"]
    assert all(own_figures.NOTE not in note for note in mind.uvm.journal.notes(found["id"]))


def test_no_exemplar_of_another_persona_asks_for_a_figure() -> None:
    """The words are those of questions to the mind about itself."""
    for name, text in codices.read_shipped().items():
        told = tomllib.loads(text)
        exemplars = [
            *told.get("exemplars", ()),
            *(e for p in told.get("protocols", ()) for e in p.get("exemplars", ())),
        ]
        asked = [each for each in exemplars if own_figures.choose(each)]
        assert name == "alfred.toml" or asked == []


async def test_the_last_answer_is_one_that_a_person_asked_for(mind: Mind) -> None:
    """A mission of the mind's own came between, in the same user's name; this one took two calls, say."""
    first = await reflex(mind, "Who winds it?", (LAMP,), persona="BRICK")

    def spend(root: Any) -> None:
        thought = root["missions"][first["id"]][2]
        thought.cost = {**thought.cost, "calls": 7}

    await change(mind.uvm, spend)
    brief, files = MissionTask("Who winds it?", first["brief"]["user"], "items d-1", "Maro winds it.").brief()
    await mind.uvm.missions.ask(brief, files)
    shown = await reflex(mind, COST, persona="ALFRED")
    assert "7 model calls" in shown["answer"]


async def test_a_mission_that_is_killed_is_told_the_same_again(mind: Mind) -> None:
    """The counters went on meanwhile; the paid answer is used, since the prompt is what it was."""
    await reflex(mind, "Who winds it?", (LAMP,), persona="BRICK")
    mission = await mind.uvm.missions.submit({"text": RATE, "effort": "reflex", "persona": "ALFRED"})
    assert await died(mind.uvm, mission, "COMPLETE")
    await reflex(mind, "Who trims it?", (LAMP,), persona="BRICK")
    before = len(mind.bridge.history)
    await mind.uvm.missions.recover()
    shown = await mind.uvm.missions.run(mission)
    assert len(mind.bridge.history) == before
    assert shown["answer"] == "In the last 7 days 0 % of 1 mission failed."


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("ledger", "The last answer took 1 model call."),
        ("counters", "ALFRED thinks with the model"),
        ("cem", "nothing yet"),
    ],
)
async def test_a_protocol_is_given_the_figures_it_declares(mind: Mind, source: str, told: str) -> None:
    """They stand behind its task, count as ground, are kept with the answer, and are the same again."""
    slot = "cognitive_efficiency_audit_protocol_"

    def declare(root: Any) -> None:
        persona = root["alfred_prototype_obj"]
        intent: Intent = own_slots(persona)[slot]
        setattr(persona, slot, Intent(**{**intent.as_dict(), "given": source}))

    await reflex(mind, "Who winds it?", (LAMP,), persona="BRICK")
    await change(mind.uvm, declare)
    asked = {
        "text": "How is the lamp kept? Add an efficiency audit of the answer.",
        "persona": "ALFRED",
        "effort": "cycle",
    }
    shown = await mind.uvm.missions.ask(asked, (LAMP,))
    given_ = shown["provenance"]["gate"]["protocol"]["given"]
    assert given_.startswith(f"Measured ({source}):\n- ")
    assert told in given_
    again = await mind.uvm.missions.ask({**asked, "ancestor": shown["id"]}, (LAMP,))
    assert (again["cost"]["calls"], again["provenance"]["gate"]["protocol"]["given"]) == (0, given_)


def sentence(calls: int, tokens: int) -> OwnSentence:
    """What the last answer took."""
    lead = f"The last answer took {calls} model calls. The last answer took {tokens} tokens."
    return OwnSentence("", lead, lead, figures=(str(calls), str(tokens)))


@given(st.integers(2, 9_999), st.integers(2, 9_999), st.integers(2, 9_999))
def test_only_an_answer_with_the_right_figures_stands(calls: int, tokens: int, other: int) -> None:
    """In other words too; not with another number, not with two that changed places, and not without one of them."""
    told = sentence(calls, tokens)
    for good in (told.lead, f"I made {calls} calls and used {tokens} tokens for it."):
        assert told.lead_answer("", good) == good
    if other not in (calls, tokens):
        assert told.lead_answer("", f"{told.lead} It waited {other} seconds.") == told.lead
        assert told.lead_answer("", f"I made {other} calls and used {tokens} tokens.") == told.lead
    if calls != tokens:
        assert told.lead_answer("", f"I made {tokens} calls and used {calls} tokens.") == told.lead
        assert told.lead_answer("", f"I made {calls} calls.") == told.lead
    assert told.lead_answer("", "I cannot know that.") == told.lead


def test_a_number_in_words_counts() -> None:
    """A wrong one is as wrong as in digits."""
    told = OwnSentence("", "The last answer took 2 model calls.", "The last answer took 2 model calls.", figures=("2",))
    assert told.lead_answer("", "It took two calls.") == "It took two calls."
    assert told.lead_answer("", "It took 2 calls, not seven.") == told.lead


@pytest.mark.parametrize(
    ("question", "facts", "span"),
    [
        ("How many missions failed today?", ("failed",), "day"),
        ("Wie viele Missionen sind heute gescheitert?", ("failed",), "day"),
        ("Was hat die letzte Antwort gekostet?", ("last_calls", "last_tokens", "last_seconds"), "week"),
        ("Combien a coûté la dernière réponse ?", ("last_calls", "last_tokens", "last_seconds"), "week"),
        ("¿Cuánto costó la última respuesta?", ("last_calls", "last_tokens", "last_seconds"), "week"),
    ],
)
def test_a_question_need_not_say_you(question: str, facts: tuple[str, ...], span: str) -> None:
    """The last answer, and what failed today, are the mind's own also without a word for it."""
    found = own_figures.choose(question)
    assert found is not None
    assert (found.facts, found.span) == (facts, span)
    assert own_figures.choose("How many missions failed in 1969?") is None


def test_every_language_has_the_same_figures_in_a_fact() -> None:
    """A sentence of another language than English has the fact's figure first, and its places are known ones."""
    table = own_figures._table()
    english = table["English"]["facts"]
    for told in table.values():
        assert {"own", "last", "day", "all", "when_day", "when_week", "when_all", "missing"} <= told.keys()
        for name, (text, *cues) in told["facts"].items():
            places = {found[1] for found in own_figures._PLACE.finditer(text)}
            assert places == {found[1] for found in own_figures._PLACE.finditer(english[name][0])}
            assert all(cue == cue.casefold() and cue for cue in cues)
            own_figures._fill("ledger", text, dict.fromkeys(places, Decimal(3)), "English")


async def test_over_the_wire_no_figure_is_invented(tmp_path: Path) -> None:
    """The emulator's words are noise: the answers that stand have the figures of the records."""
    async with emulated_uvm(tmp_path) as (uvm, _):
        await uvm.readiness.genesis()
        first = await uvm.missions.ask({"text": "What is a tide?", "effort": "reflex"})
        found = await uvm.missions.ask(
            {"text": "How many tokens did that answer cost?", "effort": "reflex", "persona": "ALFRED"}
        )
        tokens = first["cost"]["prompt_tokens"] + first["cost"]["answer_tokens"]
        assert f"took {tokens} tokens" in found["answer"]
        assert found["provenance"]["gate"]["ok"]
        assert json.dumps(found["provenance"]["computed"])
