"""Why: the path that a sentence, a mission, a slot, a method or a memory came from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.history import lived
from tests.methods.generation.learning import SAID as SAID_OF
from tests.methods.generation.learning import SPEAKS

from batos.agency.lookup import find_object
from batos.image.ownership import owners_after
from batos.image.roots import root_of
from batos.objects.prototype import own_slots
from batos.protocol.brief import as_file
from batos.protocol.errors import NotFound
from batos.protocol.image_documents import WhyNode
from batos.protocol.mission_documents import MissionDocument
from batos.server.dispatch.reads import explain
from batos.testing import ScriptedBridge, author, plain_reply, scripted_uvm
from batos.uvm import UVM

SAID = "Maro winds the clockwork every four hours. The pier was built of oak."
LAMP = b"Maro winds the clockwork every four hours."


def speaker(text: str = SAID) -> ScriptedBridge:
    """A model that says this."""
    return ScriptedBridge(lambda request: plain_reply(request) if request.schema else text)


async def ask(uvm: UVM, text: str, *files: Any, **brief: Any) -> MissionDocument:
    """A mission that is done and remembered."""
    told = await uvm.missions.ask({"text": text, "user": "tester", "effort": "reflex", **brief}, files)
    await uvm.mission_memory.write()
    return told


def walk(node: WhyNode) -> Iterator[WhyNode]:
    """All nodes of a tree."""
    yield node
    for each in node["because"]:
        yield from walk(each)


def kinds(node: WhyNode) -> list[str]:
    """The kinds of what is right behind a node."""
    return [each["kind"] for each in node["because"]]


def the(node: WhyNode, kind: str) -> WhyNode:
    """The first node of a kind."""
    return next(each for each in walk(node) if each["kind"] == kind)


async def test_figures_of_the_mind_itself_are_no_file(tmp_path: Path) -> None:
    """Nobody brought them: they were counted."""
    async with scripted_uvm(tmp_path, speaker()) as uvm:
        await ask(uvm, "Who winds the clockwork?", as_file("lamp.txt", LAMP, 1_000))
        told = await ask(uvm, "How many model calls did that answer cost?")
        found = explain(uvm.readings, told["id"], "tester")
        assert the(found, "figures")["text"].startswith("ledger, counted from")
        assert "file" not in kinds(found)


async def test_a_sentence_leads_to_its_document_its_call_and_its_mission(tmp_path: Path) -> None:
    """Quoted in another case, in part, or in other words; what no document carries is said to have none."""
    async with scripted_uvm(tmp_path, speaker()) as uvm:
        told = await ask(uvm, "Who winds the clockwork?", as_file("lamp.txt", LAMP, 1_000))
        for quoted in (
            "maro winds the CLOCKWORK every four hours",
            "winds the clockwork",
            "Clockwork: Maro winds every hour",
        ):
            found = explain(uvm.readings, quoted, "tester")
            assert (found["kind"], found["ref"], kinds(found)) == (
                "sentence",
                told["id"],
                ["citation", "call", "mission"],
            )
            assert "carried by evidence" in found["text"]
            assert found["text"].startswith("nearest to what was quoted") == (quoted[0] == "C")
            assert "lamp.txt" in the(found, "citation")["text"]
            assert the(found, "file")["ref"] == told["provenance"]["citations"][0]["sha256"]
            assert the(found, "call")["ref"] == uvm.journal.read([told["id"]])[0].key
        found = explain(uvm.readings, "The pier was built of oak.", "tester")
        assert (kinds(found), "no evidence" in found["text"]) == (["call", "mission"], True)
        for other in ("The moon is far.", "Maro winds the clockwork every 3 hours.", "Then Ida winds the clockwork."):
            with pytest.raises(NotFound, match="no answer of yours"):
                explain(uvm.readings, other, "tester")
        with pytest.raises(NotFound):
            explain(uvm.readings, "winds the clockwork", "somebody")


async def test_a_sentence_from_memory_leads_to_who_said_it(tmp_path: Path) -> None:
    """Through the memory to the mission in which it was said; a file's memory to its place."""
    async with scripted_uvm(tmp_path, speaker("Your cat is called Miso.")) as uvm:
        first = await ask(uvm, "My cat is called Miso. What may she eat?")
        await ask(uvm, "What is the name of my cat?")
        found = explain(uvm.readings, "Your cat is called Miso.", "tester")
        memory = the(found, "memory")
        assert the(memory, "mission")["ref"] == first["id"]
        assert the(memory, "commit")["tid"].startswith("tid:0x")
        page = await uvm.document_store.remember([lived.document("a.md", "Oil is dear this winter.")])
        name = page["remembered"][0]["document"]
        found = explain(uvm.readings, name, "tester")
        assert (found["ref"], kinds(found), "/docs/a.md" in found["because"][0]["text"]) == (
            name, ["source", "commit"], True,
        )  # fmt: skip
        await uvm.document_store.edit(name, "Oil is cheap this winter.")
        edited = uvm.readings.memories(1)["memories"][0]["document"]
        assert any(name == each.get("ref") for each in walk(explain(uvm.readings, edited, "tester")))
        with pytest.raises(NotFound):
            explain(uvm.readings, name, "somebody")


async def test_a_mission_leads_to_calls_turns_and_commits(tmp_path: Path) -> None:
    """Each thing is told once; whoever may not see a mission is not told that it is there."""
    async with scripted_uvm(tmp_path, speaker()) as uvm:
        first = await ask(uvm, "What holds a pier?", conversation="new")
        second = await ask(uvm, "And what else?", conversation="last", effort="cycle")
        found = explain(uvm.readings, second["id"], "tester")
        calls = [each for each in found["because"] if each["kind"] == "call"]
        assert [each["ref"] for each in calls] == [each.key for each in uvm.journal.read([second["id"]])]
        assert the(found, "turn")["because"][0]["ref"] == first["id"]
        assert second["tid"] in {each.get("tid") for each in walk(found)}
        assert explain(uvm.readings, "last", "tester") == found
        refs = [each["ref"] for each in walk(found) if each["kind"] == "call"]
        assert len(refs) == len(set(refs))
        with pytest.raises(NotFound):
            explain(uvm.readings, second["id"], "somebody")


async def test_a_slot_leads_to_the_codex_or_to_the_method_and_its_missions(tmp_path: Path) -> None:
    """A method to the calls that wrote it and the mission that it was made for; an inherited slot to its holder."""
    async with scripted_uvm(tmp_path, ScriptedBridge(author(SPEAKS, SAID_OF)), install="now") as uvm:
        slot = explain(uvm.readings, "robin_prototype_obj.core_identity", "tester")
        assert kinds(slot) == ["codex", "commit"]
        inherited = explain(uvm.readings, "robin_prototype_obj.recall_", "tester")
        assert (inherited["ref"], "the kernel's traits.recall" in inherited["text"]) == ("traits_obj.recall_", True)
        told = await ask(uvm, "What holds a pier?", effort="cycle")
        made = uvm.lifecycle.list_methods()
        assert made, told["provenance"]["generated"]
        name = made[0]["method"]
        found = explain(uvm.readings, name, "tester")
        method = the(found, "method")
        assert method["ref"] == name
        assert (the(method, "call")["ref"] != "", the(method, "mission")["ref"]) == (True, told["id"])
        theirs = explain(uvm.readings, name, "somebody")
        other = the(theirs, "mission")
        assert (other["text"], other["because"], "ref" in other) == ("a mission of another user", [], False)
        with pytest.raises(NotFound, match="no slot"):
            explain(uvm.readings, "robin_prototype_obj.nothing", "tester")


async def test_a_slot_leads_to_the_mission_that_wrote_what_this_user_sees(tmp_path: Path) -> None:
    """Another user's mission wrote the same slot after it, and a third one's another slot."""
    async with scripted_uvm(tmp_path, speaker()) as uvm:
        asked: dict[str, str] = {}
        for user in ("ann", "ben"):
            asked[user] = (await ask(uvm, "What holds a pier?", user=user))["id"]
            write(uvm, asked[user], user, "mood", f"of {user}")
        write(uvm, "", "", "weather", "fair")
        for user, mission in asked.items():
            found = explain(uvm.readings, "robin_prototype_obj.mood", user)
            assert f"of {user}" in found["text"]
            assert the(found, "mission")["ref"] == mission
        assert the(explain(uvm.readings, "robin_prototype_obj.mood"), "mission")["ref"] == asked["ben"]


def write(uvm: UVM, mission: str, user: str, slot: str, value: str) -> None:
    """Write a slot of an object, as a mission of this user would."""
    with uvm.image.db.transaction(mission) as connection:
        robin = find_object(root_of(connection), "robin_prototype_obj", user)
        robin.slot_users = owners_after(own_slots(robin), slot, user)
        setattr(robin, slot, value)
