"""Retractions: what a memory caused goes out of recall, methods and pins, and comes back as it was."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.image import installing
from tests.memory.test_document_store import incoming
from tests.records.test_memory_lineage import ASKED, LAMP, ask

from batos.image import roots
from batos.memory.corrections import Corrections
from batos.memory.records import memories_set_aside, memory_records, memory_segments, memory_standings
from batos.memory.records.memories_set_aside import Retraction
from batos.objects.method import Intent, Method
from batos.objects.prototype import own_slots
from batos.records import methods
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM

AT = "2026-11-26T10:00:00.000Z"


@pytest.fixture
async def uvm(tmp_path: Path) -> AsyncIterator[UVM]:
    """A mind that remembers a file, pinned, has answered from it, and made a method for that."""
    async with scripted_uvm(tmp_path, ScriptedBridge.saying(LAMP), user="ann") as opened:
        await opened.document_store.remember([incoming(LAMP, "/lamp.md"), incoming("Oil is dear.", "/oil.md")])
        mission = await ask(opened)

        def prepare(root: Any) -> None:
            memory_standings.pin(root, name_of(root), AT)
            root["brick_prototype_obj"].say_ = Intent("Say it.", "say_(self)")
            made = installing.provenance([mission], "external", approval="a-1")
            source = "def say_(self):\n    return 1\n"
            installing.install(root, root["brick_prototype_obj"], "say_", source, provenance=made)

        await opened.image.writer.apply(prepare)
        yield opened


def name_of(root: Any, source: str = "/lamp.md") -> str:
    """The name of a file's document."""
    return str(memory_records.find_document(root, source).name)


async def retract(uvm: UVM, *, cascade: bool) -> Retraction:
    """Retract the file."""
    return await uvm.image.writer.apply(
        lambda root: memories_set_aside.retract(root, [name_of(root)], ("ann", AT), cascade=cascade)
    )


def state(uvm: UVM) -> dict[str, Any]:
    """What a person would see of it all."""
    with uvm.image.snapshot() as root:
        slot = own_slots(root["brick_prototype_obj"])["say_"]
        return {
            "recalled": sorted(each["kind"] for each in uvm.readings.memories(9)["memories"]),
            "pins": list(memory_standings.list_pinned(root, "ann")),
            "method": isinstance(slot, Method),
        }


async def test_a_retraction_alone_takes_the_memory_and_its_pin(uvm: UVM) -> None:
    """What it caused stays."""
    before = state(uvm)
    done = await retract(uvm, cascade=False)
    assert (len(done.memories), done.methods, done.missions) == (1, (), ())
    assert state(uvm) == {**before, "recalled": ["document", "mission"], "pins": []}


async def test_a_cascade_takes_answers_and_methods_and_restoring_brings_them_back(uvm: UVM) -> None:
    """The objects stay as history all the while, and nothing else is touched."""
    before = state(uvm)
    done = await retract(uvm, cascade=True)
    assert state(uvm) == {"recalled": ["document"], "pins": [], "method": False}
    with uvm.image.snapshot() as root:
        assert len(root[roots.DOCUMENTS]) == 3
        assert memories_set_aside.find_retractions(root, done.origins[0]) == [done]
    assert (await uvm.missions.ask({"text": ASKED, "user": "ann", "effort": "reflex"}))["provenance"]["recalled"] == []
    await uvm.image.writer.apply(lambda root: memories_set_aside.restore(root, done, "ann", AT))
    with uvm.image.snapshot() as root:
        assert memories_set_aside.find_retractions(root, done.origins[0]) == []
        lineage = methods.lineage_of(root, root["brick_prototype_obj"], "say_")
        assert lineage is not None
        assert lineage.retired == {}
    after = state(uvm)
    assert (after["pins"], after["method"]) == (before["pins"], before["method"])
    assert set(before["recalled"]) <= set(after["recalled"])


async def test_turns_of_a_conversation_have_a_mark_in_place_of_the_answer(uvm: UVM) -> None:
    """So a later question of the conversation is not answered from it."""
    told = await uvm.missions.ask({"text": ASKED, "user": "ann", "effort": "reflex", "conversation": "new"})
    await retract(uvm, cascade=True)
    with uvm.image.snapshot() as root:
        conversation = roots.mission_record(root, told["id"]).brief.value["conversation"]
    turns = uvm.readings.turns(conversation)["turns"]
    assert [LAMP in str(each) for each in turns] == [False]


async def test_all_documents_of_a_source_are_named(uvm: UVM) -> None:
    """Of its user alone."""
    with uvm.image.snapshot() as root:
        assert memories_set_aside.names_from_source(root, "/oil.md", "ann") == [name_of(root, "/oil.md")]
        assert memories_set_aside.names_from_source(root, "/oil.md", "bob") == []


async def test_what_two_memories_caused_stays_out_until_both_are_back(uvm: UVM) -> None:
    """Whichever is restored first; what only one of them caused comes back with it."""
    both = "Maro winds the lamp. Oil is dear."
    await uvm.document_store.remember([incoming(both, "/both.md")])
    told = await uvm.missions.ask({"text": "Who winds the lamp, and is oil dear?", "user": "ann", "effort": "reflex"})
    await uvm.mission_memory.write()
    assert len(told["provenance"]["recalled"]) > 1
    work = Corrections(uvm.image, uvm.document_store, uvm.clock)

    def standing() -> str:
        with uvm.image.snapshot() as root:
            return str(own_slots(memory_records.find_document(root, told["id"]))["standing"])

    for first, second in (("/lamp.md", "/both.md"), ("/both.md", "/lamp.md")):
        await work.retract([first], "ann", cascade=True)
        await work.retract([second], "ann", cascade=True)
        assert await restored(work, first) >= {first}
        assert standing() == "retracted"
        assert await restored(work, second) >= {second, told["id"]}
        assert standing() == "current"
        assert state(uvm)["method"]


async def restored(work: Corrections, source: str) -> set[str]:
    """Restore a file; the sources of all that came back."""
    return {each["source"] for each in (await work.restore([source], "ann"))["restored"]}


async def test_an_answer_that_was_on_its_way_goes_with_the_cascade(uvm: UVM) -> None:
    """The mission began before the retraction and ended after it: nobody had marked it."""
    told = await uvm.missions.ask({"text": ASKED, "user": "ann", "effort": "reflex"})
    await retract(uvm, cascade=True)

    def unmark(root: Any) -> None:
        thought = roots.mission_record(root, told["id"]).thought
        delattr(thought, memories_set_aside.RETRACTED)
        (key,) = (kept := memory_segments.trees_of(root)["retractions"]).keys()
        kept[key] = {**kept[key], "missions": tuple(each for each in kept[key]["missions"] if each != told["id"])}

    await uvm.image.writer.apply(unmark)
    await uvm.mission_memory.write()
    with uvm.image.snapshot() as root:
        assert own_slots(memory_records.find_document(root, told["id"]))["standing"] == "retracted"
        assert memories_set_aside.RETRACTED in own_slots(roots.mission_record(root, told["id"]).thought)
