"""The effects of a memory: missions, their memories and turns, and methods; nothing of what came before or beside."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.image import installing
from tests.memory.test_document_store import incoming

from batos.image import roots
from batos.objects.method import Intent
from batos.protocol.brief import as_file
from batos.records import memory_lineage
from batos.records.memory_lineage import MemoryEffects
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM

LAMP = "Maro winds the clockwork of the lamp."
ASKED = "Who winds the clockwork of the lamp?"


@pytest.fixture
async def uvm(tmp_path: Path) -> AsyncIterator[UVM]:
    """A mind that remembers a file."""
    async with scripted_uvm(tmp_path, ScriptedBridge.saying(LAMP), user="ann", method_control=0) as opened:
        await opened.document_store.remember([incoming(LAMP, "/lamp.md")])
        yield opened


async def ask(uvm: UVM, text: str = ASKED, *files: Any, **brief: Any) -> str:
    """The id of a mission that is done and remembered."""
    told = await uvm.missions.ask({"text": text, "user": "ann", "effort": "reflex", **brief}, files)
    await uvm.mission_memory.write()
    return str(told["id"])


def caused(uvm: UVM, source: str = "/lamp.md") -> MemoryEffects:
    """What came of the file."""
    with uvm.image.snapshot() as root:
        name = next(name for name, each in root[roots.DOCUMENTS].items() if each.source == source)
        return memory_lineage.find_caused(root, [name])


async def test_a_mission_that_was_shown_it_was_caused_with_its_memories(uvm: UVM) -> None:
    """And a later one that was shown the answer as a turn; one about something else was not."""
    other = await ask(uvm, "Is it cold in winter?", policy={"memory": "none"})
    first = await ask(uvm, conversation="new")
    with uvm.image.snapshot() as root:
        conversation = roots.mission_record(root, first).brief.value["conversation"]
    later = await ask(uvm, "And what else?", conversation=conversation, policy={"memory": "none"})
    found = caused(uvm)
    assert list(found.missions) == [first, later]
    assert other not in found.missions
    with uvm.image.snapshot() as root:
        assert {root[roots.DOCUMENTS][name].mission for name in found.memories} == {first}


async def test_the_same_text_as_a_file_counts(uvm: UVM) -> None:
    """A mission that was given the file itself was caused by its text too; another user's was not."""
    first = await ask(uvm, ASKED, as_file("x.txt", LAMP.encode()), policy={"memory": "none"})
    bob = await ask(uvm, ASKED, as_file("x.txt", LAMP.encode()), policy={"memory": "none"}, user="bob")
    assert list(caused(uvm).missions) == [first]
    assert bob not in caused(uvm).missions


async def test_methods_that_were_made_of_evidence_for_such_a_mission(uvm: UVM) -> None:
    """One of a mission that was not caused, or made of a person's wish alone, is not among them."""
    first = await ask(uvm)

    def install(root: Any) -> None:
        for selector, missions, trust in (
            ("a_", [first], "external"),
            ("b_", ["m-other"], "external"),
            ("c_", [first], "user"),
        ):
            setattr(root["brick_prototype_obj"], selector, Intent("Say it.", f"{selector}(self)"))
            made = installing.provenance(missions, trust, approval="a-1")
            source = f"def {selector}(self):\n    return 1\n"
            installing.install(root, root["brick_prototype_obj"], selector, source, provenance=made)

    await uvm.image.writer.apply(install)
    with uvm.image.snapshot() as root:
        (key,) = (key for key, each in root[roots.METHODS].items() if each.selector == "a_")
    assert list(caused(uvm).methods) == [(key, 1)]


async def test_a_mission_that_ran_such_a_method_was_caused_too(uvm: UVM) -> None:
    """It was shown nothing of the memory itself."""
    first, facet = await ask(uvm), "tamland_facet_"

    def install(root: Any) -> None:
        made = installing.provenance([first], "external", approval="a-1")
        source = f"async def {facet}(self, query):\n    return await self.infer_(query)\n"
        installing.install(root, root["brick_prototype_obj"], facet, source, provenance=made)

    await uvm.image.writer.apply(install)
    ran = await ask(uvm, "Is it cold?", policy={"memory": "none"}, persona="BRICK", effort="cycle")
    assert list(caused(uvm).missions) == [first, ran]
