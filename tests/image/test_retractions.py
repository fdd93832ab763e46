"""Retractions: what a memory caused goes out of recall, methods and pins, and comes back as it was."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.image import installing
from tests.image.test_memory_lineage import ASKED, LAMP, ask
from tests.memory.test_document_store import incoming

from batos.image import memory_pins, memory_records, methods, retractions, roots
from batos.image.retractions import Retraction
from batos.memory.indexes import kinds
from batos.objects.method import Intent, Method
from batos.objects.prototype import own_slots
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
            memory_pins.pin(root, name_of(root), AT)
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
        lambda root: retractions.retract(root, [name_of(root)], ("ann", AT), kinds.without, cascade=cascade)
    )


def state(uvm: UVM) -> dict[str, Any]:
    """What a person would see of it all."""
    with uvm.image.snapshot() as root:
        slot = own_slots(root["brick_prototype_obj"])["say_"]
        return {
            "recalled": sorted(each["kind"] for each in uvm.readings.memories(9)["memories"]),
            "pins": list(memory_pins.list_all_pinned(root, "ann")),
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
        assert retractions.find_all(root, done.origins[0]) == [done]
    assert (await uvm.missions.ask({"text": ASKED, "user": "ann", "effort": "reflex"}))["provenance"]["recalled"] == []
    await uvm.image.writer.apply(lambda root: retractions.restore(root, done, "ann", AT))
    with uvm.image.snapshot() as root:
        assert retractions.find_all(root, done.origins[0]) == []
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
        assert retractions.names_from_source(root, "/oil.md", "ann") == [name_of(root, "/oil.md")]
        assert retractions.names_from_source(root, "/oil.md", "bob") == []
