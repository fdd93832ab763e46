"""Key protocols: chosen by meaning, at most one, and kept only if the gate agrees."""

from __future__ import annotations

from typing import Any

import pytest
from tests.minds.conftest import Mind
from tests.minds.scripted import BAD, GOOD, WINDS, ask, change, kind

from batos.genesis import persona_models
from batos.inference.ollama.bridge import ChatRequest
from batos.objects.method import Primitive
from batos.protocol.errors import StreamCut

RISKS = "How does the keeper keep the lamp burning, and what could go wrong with it?"
SLOT = "rogues_gallery_protocol_"


def _kinds(mind: Mind) -> list[str]:
    return [kind(request) for request in mind.bridge.history]


async def test_a_protocol_whose_conditions_hold_is_applied(mind: Mind) -> None:
    """One more call, whose answer stands and is recorded; it is told the answer and its intent."""
    shown = await ask(mind.uvm, RISKS)
    assert _kinds(mind)[-1] == "changed"
    assert shown["answer"] == f"{WINDS}. So be it."
    assert shown["provenance"]["gate"]["protocol"] == {
        "slot": SLOT,
        "applied": True,
        "share": shown["route"]["protocols"]["BRICK"][SLOT],
        "faults": [],
    }
    assert shown["cost"]["calls"] == 6
    last = mind.bridge.history[-1].messages[-1]["content"]
    assert f"{WINDS}." in last
    assert "two to four rogues" in last
    assert mind.uvm.readings.prompts(shown["id"])[-1]["path"] == "brick/protocol/rogues_gallery#0"
    assert shown["provenance"]["methods"][-1]["selector"] == SLOT


async def test_without_its_conditions_no_call_is_spent(mind: Mind) -> None:
    """The choice is computed: an ordinary question costs nothing more."""
    shown = await ask(mind.uvm)
    assert "changed" not in _kinds(mind)
    assert "protocol" not in shown["provenance"]["gate"]


async def test_a_reflex_has_no_protocol(mind: Mind) -> None:
    """A reflex is one call."""
    await ask(mind.uvm, RISKS, effort="reflex")
    assert _kinds(mind) == ["woven"]


async def test_at_most_one_protocol_is_applied(mind: Mind) -> None:
    """Of two whose words occur, the first of the codex."""
    await ask(mind.uvm, f"{RISKS} Brainstorm something unusual.")
    assert _kinds(mind).count("changed") == 1
    assert (
        mind.uvm.readings.prompts(mind.uvm.readings.newest(1)[0]["id"])[-1]["path"]
        == "brick/protocol/absurd_synthesis#0"
    )


async def test_a_change_with_more_faults_than_before_is_dropped(mind: Mind) -> None:
    """An invented number is no improvement: the woven answer stands, and what was streamed is it."""
    mind.script.changed = f"{WINDS}, 7,777 times."
    shown = await ask(mind.uvm, RISKS)
    assert shown["answer"] == f"{WINDS}."
    told = shown["provenance"]["gate"]["protocol"]
    assert not told["applied"]
    assert [fault["check"] for fault in told["faults"]] == ["numbers"]
    assert shown["provenance"]["gate"]["ok"]
    streamed = ""
    for name, keys in mind.events:
        streamed = "" if name == "mission.retracted" else streamed + str(keys.get("text", ""))
    assert streamed == shown["answer"]


async def test_a_protocol_that_fails_leaves_the_answer(mind: Mind) -> None:
    """Its call is cut: the answer stands as it was woven, and the failure is told."""
    mind.script.changed = StreamCut("cut")
    shown = await ask(mind.uvm, RISKS)
    assert shown["status"] == "done"
    assert shown["answer"] == f"{WINDS}."
    assert shown["provenance"]["gate"]["protocol"]["failure"]["code"] == "stream_cut"


async def test_a_budget_that_pays_a_cycle_pays_no_protocol_and_the_answer_stands(mind: Mind) -> None:
    """The sixth call is refused, and the five before it have their answer."""
    shown = await ask(mind.uvm, RISKS, budget={"calls": 5})
    assert (shown["status"], shown["answer"], shown["cost"]["calls"]) == ("done", f"{WINDS}.", 5)
    assert shown["provenance"]["gate"]["protocol"]["failure"]["field"] == "budget.calls"


async def test_it_comes_after_the_revision(mind: Mind) -> None:
    """A faulty weave is revised first; the protocol is applied to what stands then."""
    mind.script.woven = BAD
    shown = await ask(mind.uvm, RISKS)
    assert _kinds(mind)[-3:] == ["woven", "revised", "changed"]
    assert shown["cost"]["calls"] == 7
    assert shown["provenance"]["gate"]["revised"]
    assert shown["provenance"]["gate"]["protocol"]["applied"]


async def test_a_protocol_that_is_no_intent_is_not_chosen(mind: Mind) -> None:
    """Conditions belong to an intent: what replaced it in the slot has none, and the answer stands."""

    def redefine(root: Any) -> None:
        root["brick_prototype_obj"].rogues_gallery_protocol_ = Primitive("traits.log")

    await change(mind.uvm, redefine)
    shown = await ask(mind.uvm, RISKS)
    assert "protocol" not in shown["provenance"]["gate"]


async def test_a_change_that_its_bound_cuts_is_dropped(mind: Mind) -> None:
    """An answer without a whole sentence is cut in the middle: what stood before it stands."""
    mind.script.changed = "and-so-on-" * 190
    shown = await ask(mind.uvm, RISKS)
    assert [fault["check"] for fault in shown["provenance"]["gate"]["protocol"]["faults"]] == ["schema"]
    assert shown["answer"] == f"{WINDS}."


async def test_parts_without_an_answer_do_not_count(mind: Mind) -> None:
    """A protocol that needs two views is not applied to one: two facets had nothing to say."""
    asked = "Am I wrong to let the keeper sleep?"
    await ask(mind.uvm, asked, persona="ROBIN")
    assert _kinds(mind).count("changed") == 1
    replies = iter([f"{WINDS}.", "The documents do not say it.", "I do not know."])

    def respond(request: ChatRequest) -> Any:
        if kind(request) == "part":
            mind.script.part = next(replies)
        return mind.script(request)

    mind.bridge.respond = respond
    mind.script.woven = GOOD
    shown = await ask(mind.uvm, asked, persona="ROBIN")
    assert _kinds(mind).count("changed") == 1
    assert "protocol" not in shown["provenance"]["gate"]


async def test_the_leader_of_a_council_applies_its_own(mind: Mind) -> None:
    """Once, to the council's answer, at the outermost mind alone: its personas' answers are parts."""
    shown = await ask(mind.uvm, RISKS, effort="council", budget={"calls": 60})
    assert _kinds(mind).count("changed") == 1
    assert _kinds(mind)[-1] == "changed"
    assert shown["provenance"]["gate"]["protocol"] == {
        "slot": SLOT,
        "applied": True,
        "share": shown["route"]["protocols"]["BRICK"][SLOT],
        "faults": [],
    }
    assert mind.uvm.readings.prompts(shown["id"])[-1]["path"] == "council/protocol/rogues_gallery#0"
    assert shown["answer"] == f"{WINDS}. So be it."


async def test_in_a_council_too_a_worse_change_is_dropped(mind: Mind) -> None:
    """The answer that stands is streamed again after it was taken back, and nothing of an inner mind ever is."""
    mind.script.changed = f"{WINDS}, 7,777 times."
    shown = await ask(mind.uvm, RISKS, effort="council", budget={"calls": 60})
    assert not shown["provenance"]["gate"]["protocol"]["applied"]
    streamed = ""
    for name, keys in mind.events:
        streamed = "" if name == "mission.retracted" else streamed + str(keys.get("text", ""))
    assert streamed == shown["answer"] == f"{WINDS}."
    paths = {keys["path"] for keys in mind.told("mission.token")}
    assert paths == {"council/synthesizing#0", "council/protocol/rogues_gallery#0"}


@pytest.mark.parametrize("combine", ["select", "vote"])
async def test_what_was_selected_or_voted_has_its_protocol_too(mind: Mind, combine: str) -> None:
    """However the parts became one answer, the persona may finish it."""
    shown = await ask(mind.uvm, RISKS, policy={"combine": combine})
    assert shown["provenance"]["gate"]["protocol"]["applied"]
    assert shown["answer"] == f"{WINDS}. So be it."


async def test_an_audit_is_told_what_was_found(mind: Mind) -> None:
    """The findings of the last audit stand behind the task, count as ground, and are kept with the answer."""
    wrong = {"id": "model.ROBIN", "ok": False, "what": "its digest is another", "remedy": "Run `batos genesis`."}
    found = [wrong, {"id": "image.root", "ok": True, "what": "complete", "remedy": ""}]
    await change(mind.uvm, lambda root: persona_models.keep_audit(root, found, "2031-05-06T07:08:09Z"))
    mind.script.changed = f"{WINDS}. 1 of 2 checks hold since 2031."
    shown = await ask(mind.uvm, f"{RISKS} What does the integrity audit say?", persona="ALFRED")
    last = mind.bridge.history[-1].messages[-1]["content"]
    assert "- 1 of 2 checks hold\n- model.ROBIN: its digest is another. Run `batos genesis`." in last
    told = shown["provenance"]["gate"]["protocol"]
    assert (told["slot"], told["applied"], told["faults"]) == ("system_integrity_audit_protocol_", True, [])
    assert told["given"] in last
    assert "complete" not in told["given"], "what is well is counted"


async def test_the_costs_are_told_and_again_the_same(mind: Mind) -> None:
    """Calls and tokens of the thought so far; who asks again is served from the journal, also by this call."""
    asked = f"{RISKS} Add an efficiency audit of the answer."
    shown = await ask(mind.uvm, asked, persona="ALFRED")
    told = shown["provenance"]["gate"]["protocol"]
    assert told["slot"] == "cognitive_efficiency_audit_protocol_"
    assert f"- calls: {shown['cost']['calls'] - 1}\n" in told["given"]
    again = await ask(mind.uvm, asked, persona="ALFRED", ancestor=shown["id"])
    assert (again["cost"]["calls"], again["provenance"]["gate"]["protocol"]["given"]) == (0, told["given"])
