"""Gold items go with what they were made of: no byte of them, nor of the missions that made them, is left."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tests.agency.acting import Acting
from tests.care.byte_scan import files_with
from tests.care.secret_mind import SECRET, ask, memory, told_mind

from batos.autotelic import item_store
from batos.autotelic.heartbeat import Allowance
from batos.autotelic.item_makers import QuestionWriter
from batos.autotelic.item_store import ItemStore
from batos.autotelic.model_missions import ModelMissions
from batos.care import verification
from batos.care.erasure_plan import plan_erasure
from batos.image import roots
from batos.inference.ollama.bridge import ChatRequest
from batos.memory.records import memory_records
from batos.objects.prototype import own_slots
from batos.records import gold_items, redaction
from batos.records.erased_words import ErasedWords
from batos.records.gold_items import GoldItem
from batos.testing import ScriptedBridge, plain_reply
from batos.uvm import UVM

SAFE = f"The safe of the old keeper in the hall of Holm Light opens with the long key {SECRET} every night."
OTHER = "The clockwork of the old lamp in the tower of Skarn Light was wound by Maro every four hours."


def bridge() -> ScriptedBridge:
    """A model that asks for the light of a note, and knows what the note says."""

    def respond(request: ChatRequest) -> str:
        said = "\n".join(each["content"] for each in request.messages)
        if request.schema and "question" in request.schema["properties"]:
            return json.dumps({"question": "In which light has the keeper such a safe, or a lamp?"})
        if request.schema:
            return str(plain_reply(request))
        known = [each for each in (SAFE, OTHER) if each in said]
        return f"{known[0]} Maro told so." if known else "I do not know."

    return ScriptedBridge(respond)


async def make(uvm: UVM) -> None:
    """Make all items that can be made, by a heartbeat, as a server does."""
    writer = QuestionWriter(ModelMissions(uvm.missions.ask, uvm.readiness.answers, uvm.readiness.check))
    store = ItemStore(uvm.image, uvm.readings.recollection.search, uvm.clock)
    await item_store.refreshing(store, writer, uvm.clock).work(Allowance())


def items(uvm: UVM, user: str = "tester") -> list[GoldItem]:
    """What there is for a user."""
    with uvm.image.snapshot() as root:
        return gold_items.list_items(root, user)


def has_secret(uvm: UVM) -> bool:
    """Tell whether the record of the items, as it is now, has the secret."""
    with uvm.image.snapshot() as root:
        kept = root[roots.ITEMS]
        oids = {kept._p_oid, kept["kept"]._p_oid}  # so few have no buckets of their own
        return not oids.isdisjoint(redaction.find_holding(root, ErasedWords([SECRET])))


async def told(mind: Acting) -> list[str]:
    """Two memories, and all items that can be made of them."""
    page = await mind.uvm.document_store.remember([memory("safe.md", SAFE), memory("lamp.md", OTHER)])
    await make(mind.uvm)
    kinds = sorted(each.kind for each in items(mind.uvm))
    assert kinds == ["A", "A", "N", "N", "R", "R"]
    assert has_secret(mind.uvm)
    return [each["document"] for each in page["remembered"]]


@pytest.mark.parametrize("meant", ["memory", "source", "words"])
async def test_an_erased_memory_takes_its_items_and_their_missions_along(tmp_path: Path, meant: str) -> None:
    """Named by its id, by where it came from, or by a word of it; what was made of another memory stays."""
    async with told_mind(tmp_path, bridge=bridge()) as (mind, home):
        name, other = await told(mind)
        before = [each for each in items(mind.uvm) if each.source == other]
        missions = {each["id"] for each in mind.uvm.readings.newest()}
        target = {"memory": name, "source": "/docs/safe.md", "words": SECRET}[meant]
        page = await mind.ask("erase", target=target, user="tester")
        assert page["found"] == []
        assert len(page["missions"]) == 3
        assert set(page["missions"]) < missions
        assert await asyncio.to_thread(files_with, home, SECRET.encode()) == set()
        assert items(mind.uvm) == before
        assert verification.find_faults(mind.uvm.image.db) == []


async def test_an_erased_mission_takes_its_items_along(tmp_path: Path) -> None:
    """Those of what its person stated, of its answer, and what a model was asked about both."""
    async with told_mind(tmp_path, bridge=bridge()) as (mind, home):
        mission = await ask(mind, f"{SAFE} Where is the safe?")
        await mind.ask("rate", mission=mission, verdict="good", user="tester")
        await make(mind.uvm)
        assert {each.kind for each in items(mind.uvm)} >= {"R", "A", "U"}
        assert {each.split for each in items(mind.uvm)} == {items(mind.uvm)[0].split}
        page = await mind.ask("erase", target=mission, cascade=True, user="tester")
        assert page["found"] == []
        assert await asyncio.to_thread(files_with, home, SECRET.encode()) == set()
        assert items(mind.uvm) == []


async def test_an_erased_answer_takes_what_trials_asked_of_it_along(tmp_path: Path) -> None:
    """The question whose right answer it was is the mission's; trials ask that in the mission's name."""
    async with told_mind(tmp_path, bridge=bridge()) as (mind, _):
        mission = await ask(mind, f"{SAFE} Where is the safe?")
        await mind.ask("rate", mission=mission, verdict="good", user="tester")
        await make(mind.uvm)
        found = next(each for each in items(mind.uvm) if each.kind == "U")
        with mind.uvm.image.snapshot() as root:
            answer = next(
                own_slots(each)["name"]
                for each in memory_records.documents_of_mission(root, mission)
                if own_slots(each)["kind"] == "mission"
            )
            plan = plan_erasure(root, answer, "memory", "tester", cascade=True)
        assert gold_items.client_of(found.source) in plan.clients


async def test_a_forgotten_memory_takes_its_items_along(tmp_path: Path) -> None:
    """And an approved answer that cites it; those of another user stay."""
    async with told_mind(tmp_path, bridge=bridge()) as (mind, _):
        name, other = await told(mind)
        mission = await ask(mind, "With which long key does the safe of the old keeper open?")
        await mind.ask("rate", mission=mission, verdict="good", user="tester")
        await make(mind.uvm)
        assert "U" in {each.kind for each in items(mind.uvm)}
        await mind.ask("forget", documents=[name], user="tester")
        assert {each.source for each in items(mind.uvm)} == {other}
        assert not has_secret(mind.uvm)
