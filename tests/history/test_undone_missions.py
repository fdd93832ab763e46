"""An undo reaches beyond the answer: wordings, questions to a person, methods in the making, slots that were read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.history.test_as_of_past_questions import Door
from tests.history.test_undoing import asked, counted, mind, numbered, visits
from tests.image.installing import install, provenance
from tests.methods.generation.learning import CYCLE, FACETS, MESSAGE, learning
from tests.missions.test_late_methods import HeldCoder, waiting
from tests.waiting import HANG

from batos.image import roots
from batos.image.roots import Root
from batos.inference.ollama.bridge import ChatRequest
from batos.objects.method import Intent, Method
from batos.objects.prototype import own_slots, reference
from batos.protocol.errors import Refused
from batos.testing import ScriptedBridge
from batos.uvm import UVM

BRICK = "brick_prototype_obj"
GUIDE = "guide_facet_"
READS = f"async def {GUIDE}(self, query):\n    return await self.infer_(f'{{self.visits}} came. {{query}}')\n"
READING: dict[str, Any] = {
    "text": "guide",
    "message": {"receiver": BRICK, "selector": GUIDE, "arguments": ["Why is the pier made of granite?"]},
    "user": "tester",
}


def whole_memories(uvm: UVM) -> dict[str, dict[str, Any]]:
    """Every document with its slots and its texts, those of history too."""
    with uvm.image.snapshot() as root:
        names = list(root[roots.DOCUMENTS])
        slots = {name: dict(own_slots(root[roots.DOCUMENTS][name])) for name in names}
    texts = {name: [part["text"] for part in uvm.readings.memory(name, "tester")["parts"]] for name in names}
    return {name: {**slots[name], "chunks": texts[name]} for name in names}


async def test_the_earlier_wordings_of_a_memory_come_back_with_it(tmp_path: Path) -> None:
    """As history, of which each can be restored; nothing of them is there while the mission is undone."""
    async with mind(tmp_path) as (uvm, ask):
        first = await asked(uvm, "My cat is called Miso.")
        (said,) = [name for name, each in whole_memories(uvm).items() if each["source"].endswith("/said")]
        second = (await uvm.document_store.edit(said, "My cat is called Mischa."))["edited"]["document"]
        third = (await uvm.document_store.edit(second, "My cat is called Momo."))["edited"]["document"]
        before = whole_memories(uvm)
        assert [before[each]["standing"] for each in (said, second, third)] == ["edited", "edited", "current"]
        told = await ask("undo", mission=first["id"], user="tester")
        assert len(told["undone"][0]["memories"]) == len(before)
        assert whole_memories(uvm) == {}
        await ask("redo", user="tester")
        assert whole_memories(uvm) == before
        await ask("memories_restore", documents=[said], user="tester")
        now = whole_memories(uvm)
        assert [now[each]["standing"] for each in (said, second, third)] == ["current", "edited", "edited"]


def approvals_of(uvm: UVM) -> list[tuple[str, Any]]:
    """The questions to a person: what became of each, and why."""
    with uvm.image.snapshot() as root:
        return [(each.word, each.why) for each in root[roots.APPROVALS].values()]


async def test_questions_to_a_person_go_and_come_back(tmp_path: Path) -> None:
    """Nobody is asked about a method that an undone mission wanted; one that another mission waits for stays asked."""
    async with learning(tmp_path, install="ask") as found:
        uvm, ask = found.uvm, Door(found.uvm)
        first = await uvm.missions.ask({**MESSAGE, "user": "tester"})
        (name,) = [each["id"] for each in (await ask("approvals"))["approvals"]]
        planned = await ask("undo", mission=first["id"], dry_run=True)
        assert planned["undone"][0]["approvals"] == [f"{name} {BRICK}.{GUIDE}"]
        assert approvals_of(uvm) == [("asked", None)]
        await ask("undo", mission=first["id"])
        assert approvals_of(uvm) == [("outdated", f"undone with {first['id']}")]
        assert (found.names("approval.answered")[-1]["answer"], (await ask("approvals"))["waiting"]) == ("outdated", 0)
        await ask("redo", mission=first["id"])
        assert (await ask("approvals"))["waiting"] == 1
        await ask("approve", approvals=[name], user="tester")
        assert (approvals_of(uvm), found.slot(GUIDE)) == ([("approved", None)], Method)


async def test_an_approval_that_was_kept_counts_for_nothing_undone(tmp_path: Path) -> None:
    """With `--keep-methods` the question stays and may be answered; without, no door installs what it was about."""
    async with learning(tmp_path, install="ask") as found:
        uvm, ask = found.uvm, Door(found.uvm)
        first = await uvm.missions.ask({**MESSAGE, "user": "tester"})
        (name,) = [each["id"] for each in (await ask("approvals"))["approvals"]]
        await ask("undo", mission=first["id"], keep=["methods"])
        await ask("approve", approvals=[name], user="tester")
        assert found.slot(GUIDE) is Method


async def test_a_method_that_is_being_made_is_not_installed(tmp_path: Path) -> None:
    """The undo ends its making; what was paid for serves the redo."""
    held = HeldCoder()
    async with learning(tmp_path, held, install="auto") as found:
        uvm, ask = found.uvm, Door(found.uvm)
        first = await uvm.missions.ask({**MESSAGE, "user": "tester"})
        making = asyncio.ensure_future(uvm.learning.some())
        async with asyncio.timeout(HANG):
            await held.came.wait()
            await ask("undo", mission=first["id"])
            assert await making == {"made": [], "left": 0}
        held.may.set()
        assert (found.slot(GUIDE), waiting(found)) == (Intent, 0)
        await ask("redo", mission=first["id"])
        assert [each["outcome"] for each in (await uvm.learning.some())["made"]] == ["installed"]
        assert found.slot(GUIDE) is Method


async def test_what_was_made_for_undone_missions_alone_is_refused(tmp_path: Path) -> None:
    """Whoever installs it; of two missions that it was made for, both have to be undone."""
    async with mind(tmp_path) as (uvm, ask):
        missions = [(await asked(uvm, f"Who winds lamp {number}?"))["id"] for number in (1, 2)]

        def learn(root: Root) -> None:
            install(root, root["brick_prototype_obj"], GUIDE, READS, provenance=provenance(missions))

        await ask("undo", mission=missions[1], user="tester")
        await uvm.image.writer.apply(learn)
        await ask("undo", mission=missions[0], cascade=True, user="tester")
        with uvm.image.snapshot() as root:
            assert isinstance(own_slots(root["brick_prototype_obj"])[GUIDE], Intent), "it went with the last of them"
        with pytest.raises(Refused, match="which is undone"):
            await uvm.image.writer.apply(learn)


async def test_a_method_names_every_mission_that_waited_for_it(tmp_path: Path) -> None:
    """So that it stays while one of them stands."""
    async with learning(tmp_path, install="now") as found:
        told = await asyncio.gather(*(found.uvm.missions.ask({**CYCLE, "text": f"Why {each}?"}) for each in range(3)))
        missions = sorted(each["id"] for each in told)
        with found.uvm.image.snapshot() as root:
            made = [own_slots(root["brick_prototype_obj"])[facet].provenance["missions"] for facet in FACETS]
        assert made == [missions] * 3


async def learn_reading(uvm: UVM) -> None:
    """Give BRICK a facet that reads the count."""

    def change(root: Root) -> None:
        install(root, root["brick_prototype_obj"], GUIDE, READS)

    await uvm.image.writer.apply(change)


async def test_a_mission_that_read_a_slot_builds_on_the_one_that_wrote_it(tmp_path: Path) -> None:
    """It is listed, and goes only with a cascade. Slots that no method may write are in no provenance."""
    async with mind(tmp_path) as (uvm, ask):
        await learn_reading(uvm)
        first = await counted(uvm)
        second = await uvm.missions.ask(READING)
        with uvm.image.snapshot() as root:
            oid = reference(root["brick_prototype_obj"])
        assert second["provenance"]["read"] == [{"oid": oid, "slot": "visits"}]
        with pytest.raises(Refused) as refused:
            await ask("undo", mission=first, user="tester")
        assert refused.value.also == (f"{second['id']}: it read {BRICK}.visits, which {first} wrote",)
        told = await ask("undo", mission=first, keep=["slots"], dry_run=True, user="tester")
        assert [each["mission"] for each in told["undone"]] == [first]
        told = await ask("undo", mission=first, cascade=True, user="tester")
        assert [each["mission"] for each in told["undone"]] == [second["id"], first]


async def test_a_message_that_reads_a_slot_builds_on_it_too(tmp_path: Path) -> None:
    """With no method between."""
    async with mind(tmp_path) as (uvm, ask):
        first = await counted(uvm)
        message = {"receiver": BRICK, "selector": "visits", "arguments": []}
        second = await uvm.missions.ask({"text": "visits", "message": message, "user": "tester"})
        with pytest.raises(Refused) as refused:
            await ask("undo", mission=first, user="tester")
        assert refused.value.also == (f"{second['id']}: it read {BRICK}.visits, which {first} wrote",)


class InterruptedBridge(ScriptedBridge):
    """A daemon that waits for `meanwhile` once, in the first call whose prompt has `words`."""

    def __init__(self, words: str) -> None:
        whole = numbered()
        super().__init__(whole.respond, vectors=whole.vectors)
        self.words = words
        self.meanwhile: list[Callable[[], Awaitable[object]]] = []

    async def think(self, request: ChatRequest, *args: Any, **named: Any) -> Any:
        """As any."""
        if self.meanwhile and self.words in json.dumps([*map(dict, request.messages)]):
            await self.meanwhile.pop()()
        return await super().think(request, *args, **named)


async def test_a_thought_that_read_a_slot_is_thought_again_where_it_changed(tmp_path: Path) -> None:
    """By an undo, or by another mission: it rests on what stands when it is committed."""
    bridge = InterruptedBridge("came. Why")
    async with mind(tmp_path, bridge) as (uvm, ask):
        await learn_reading(uvm)
        await counted(uvm)
        second = await counted(uvm)
        bridge.meanwhile = [lambda: ask("undo", mission=second, user="tester")]
        third = await uvm.missions.ask(READING)
        said = json.dumps(uvm.readings.prompts(third["id"])[-1]["messages"])
        assert (bridge.meanwhile, visits(uvm), "1 came. Why" in said) == ([], 1, True)


async def test_a_dream_that_read_a_slot_is_not_promoted_where_it_changed(tmp_path: Path) -> None:
    """Its answer would rest on what is not there."""
    async with mind(tmp_path) as (uvm, ask):
        await learn_reading(uvm)
        await counted(uvm)
        dream = await ask("dream_new", brief=READING)
        assert (await ask("dream_diff", dream=dream["id"]))["conflicts"] == []
        await counted(uvm)
        assert (await ask("dream_diff", dream=dream["id"]))["conflicts"] == [f"{BRICK}.visits"]
        with pytest.raises(Refused, match="changed since the dream began"):
            await ask("dream_promote", dream=dream["id"])
