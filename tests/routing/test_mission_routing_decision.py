"""One decision a turn: noted at the first attempt, used again by later ones, and paid for once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.minds.scripted import QUESTION, Script, stepping

from batos.autotelic import slot_values
from batos.image.roots import Root
from batos.protocol.errors import BatosError, ModelMissing, OllamaTimeout
from batos.records.redefinitions import ChangeOrigin
from batos.routing.mission_routing import ROUTE_NOTE
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM


def meaning(text: str) -> list[float]:
    """A vector of a text: what matters is that there is one."""
    return [1.0, len(text) / 100, float("?" in text)]


async def test_the_questions_vector_is_counted(tmp_path: Path) -> None:
    """A mission embeds its question once, apart from its calls; a persona that was named needs no vector."""
    bridge = ScriptedBridge(Script(), vectors=meaning)
    async with scripted_uvm(tmp_path, bridge) as uvm:
        first = await uvm.missions.ask({"text": QUESTION})
        assert first["cost"]["embeds"] == 1
        learnt = len(bridge.embedded)
        second = await uvm.missions.ask({"text": QUESTION})
        assert second["cost"]["embeds"] == 1
        assert bridge.embedded[learnt:] == [QUESTION]
        named = await uvm.missions.ask({"text": QUESTION, "persona": "BABS"})
        assert named["cost"]["embeds"] == 0
        assert named["route"]["personas"] == ["BABS"]


async def test_what_was_embedded_for_a_route_is_not_embedded_again(tmp_path: Path) -> None:
    """A process that dies right after a mission was routed leaves its route to the next, and what it cost."""
    bridge = ScriptedBridge(Script(), vectors=meaning)
    async with scripted_uvm(tmp_path, bridge) as uvm:
        mission = await uvm.missions.submit({"text": QUESTION})
        await uvm.image.move(mission, "running")
        async with stepping(uvm, mission):
            embedded = len(bridge.embedded)
        uvm.journal._notes.clear()
        assert await uvm.missions.recover() == [mission]
        shown = await uvm.missions.run(mission)
        assert len(bridge.embedded) == embedded
        assert shown["cost"]["embeds"] == 1


async def test_a_retry_goes_the_way_that_was_noted(tmp_path: Path) -> None:
    """The same question with `ancestor` takes the ancestor's route, embeds nothing, and finds every paid answer."""
    bridge = ScriptedBridge(Script(), vectors=meaning)
    async with scripted_uvm(tmp_path, bridge) as uvm:
        first = await uvm.missions.ask({"text": QUESTION})
        assert any(ROUTE_NOTE in note for note in uvm.journal.notes(first["id"]))
        bridge.vectors = lambda text: OllamaTimeout("reply", 10)
        asked, embedded = len(bridge.history), len(bridge.embedded)
        again = await uvm.missions.ask({"text": QUESTION, "ancestor": first["id"]})
        assert again["route"] == first["route"]
        assert again["cost"]["embeds"] == 0
        assert again["cost"]["calls"] == 0
        assert (len(bridge.history), len(bridge.embedded)) == (asked, embedded)
        forced = await uvm.missions.ask({"text": QUESTION, "ancestor": first["id"], "persona": "ROBIN"})
        assert forced["route"]["personas"] == ["ROBIN"]


async def test_another_question_is_routed_anew(tmp_path: Path) -> None:
    """An ancestor that asked something else is no retry."""
    bridge = ScriptedBridge(Script(), vectors=meaning)
    async with scripted_uvm(tmp_path, bridge) as uvm:
        first = await uvm.missions.ask({"text": "My loop raises a TypeError, how do I debug it?"})
        again = await uvm.missions.ask({"text": QUESTION, "ancestor": first["id"]})
        assert again["cost"]["embeds"] == 1


@pytest.mark.parametrize("failure", [OllamaTimeout("reply", 10), ModelMissing("all-minilm:latest")])
async def test_a_failing_embedder_fails_no_mission(tmp_path: Path, failure: BatosError) -> None:
    """Words alone decide, and the route's reason says so."""
    bridge = ScriptedBridge(Script(), vectors=lambda text: failure)
    async with scripted_uvm(tmp_path, bridge) as uvm:
        shown = await uvm.missions.ask({"text": QUESTION})
        assert shown["status"] == "done"
        assert shown["cost"]["embeds"] == 0
        assert "by words alone (all-minilm:latest: " in shown["route"]["reason"]


async def test_a_follow_up_stays_with_who_answered(tmp_path: Path) -> None:
    """In a conversation, what is too short to tell goes to the persona of the turn before."""
    async with scripted_uvm(tmp_path, ScriptedBridge(Script())) as uvm:
        first = await uvm.missions.ask({"text": QUESTION, "persona": "BABS", "conversation": "new"})
        conversation = first["brief"]["conversation"]
        then = await uvm.missions.ask({"text": "and then?", "conversation": conversation})
        assert then["route"]["personas"][0] == "BABS"
        reply = await uvm.missions.ask({"text": "and then?", "conversation": conversation, "in_reply_to": first["id"]})
        assert reply["route"]["personas"][0] == "BABS"


async def give(uvm: UVM, slot: str, *more: str) -> None:
    """Add to the facets or the protocols that act."""
    origin = ChangeOrigin("ann", "2026-11-30T12:00:00.000Z", "it is better")

    def change(root: Root) -> None:
        acting = slot_values.find_place(root, slot).read()
        assert isinstance(acting, tuple)
        slot_values.redefine(root, slot, (*acting, *more), origin)

    await uvm.image.shared.apply(change)


async def test_a_protocol_that_is_switched_on_is_meant_from_the_next_mission_on(tmp_path: Path) -> None:
    """By its exemplars; nothing is learnt anew, so that no exemplar is embedded again."""
    bridge = ScriptedBridge(Script(), vectors=meaning)
    text = "Just the number, please: how many steps has the tower?"
    async with scripted_uvm(tmp_path, bridge) as uvm:
        before = await uvm.missions.ask({"text": text, "effort": "reflex"})
        assert "bare_value_protocol_" not in before["route"].get("protocols", {}).get("BABS", {})
        embedded = len(bridge.embedded)
        await give(uvm, "BABS.protocols", "bare_value_protocol_")
        after = await uvm.missions.ask({"text": text, "persona": "BABS"})
        assert after["route"]["protocols"]["BABS"]["bare_value_protocol_"] > 0.6
        assert len(bridge.embedded) == embedded


async def test_a_facet_that_is_switched_on_thinks_from_the_next_mission_on(tmp_path: Path) -> None:
    """A cycle of the persona has a part more."""
    bridge = ScriptedBridge(Script())
    asked = {"text": QUESTION, "persona": "BABS", "effort": "cycle"}
    async with scripted_uvm(tmp_path, bridge) as uvm:
        before = await uvm.missions.ask(asked)
        await give(uvm, "BABS.facets", "second_reading_facet_")
        after = await uvm.missions.ask(asked)
        assert after["cost"]["calls"] == before["cost"]["calls"] + 1


async def test_a_question_is_thought_through_where_its_words_say_so(tmp_path: Path) -> None:
    """The slot acts from the next mission on, for who gave no effort."""
    async with scripted_uvm(tmp_path, ScriptedBridge(Script())) as uvm:
        await uvm.image.shared.apply(
            lambda root: slot_values.redefine(root, "mind.cycle_from", 3, ChangeOrigin("ann", "2026-11-30"))
        )
        assert (await uvm.missions.ask({"text": QUESTION}))["route"]["effort"] == "cycle"
        assert (await uvm.missions.ask({"text": QUESTION, "effort": "reflex"}))["route"]["effort"] == "reflex"
