"""Undo and redo: what a mission left goes whole, what others left stays, and all of it can come back."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.history import lived
from tests.history.test_as_of_past_questions import Door
from tests.history.test_dreams import BRICK, BRIEF, COUNTS, FACET
from tests.image.installing import install, provenance

from batos.image import roots
from batos.image.roots import Root
from batos.inference.ollama.bridge import ChatRequest
from batos.memory.search.chunk_search import RecallQuery
from batos.memory.search.metadata import MemoryReach
from batos.objects.prototype import own_slots
from batos.protocol.errors import NotFound, Refused
from batos.records import outcomes
from batos.records.methods import lineage_of
from batos.server.dispatch.guests import limit_guest
from batos.testing import ScriptedBridge, plain_reply, scripted_uvm
from batos.uvm import UVM


def numbered() -> ScriptedBridge:
    """A bridge whose every answer is another."""
    numbers = itertools.count(1)

    def respond(request: ChatRequest) -> str:
        return str(plain_reply(request)) if request.schema else f"Lantern{next(numbers):04d} holds the pier of Orm."

    return ScriptedBridge(respond, vectors=lived.meaning)


@asynccontextmanager
async def mind(home: Path, bridge: ScriptedBridge | None = None) -> AsyncIterator[tuple[UVM, Door]]:
    """A mind in which a facet of BRICK counts its uses in a slot, and a door to it."""
    async with scripted_uvm(home, bridge or numbered(), method_control=0) as uvm:

        def change(root: Root) -> None:
            install(root, root["brick_prototype_obj"], FACET, COUNTS)

        await uvm.image.writer.apply(change)
        yield uvm, Door(uvm)


async def asked(uvm: UVM, text: str, **fields: Any) -> dict[str, Any]:
    """A mission that is answered and remembered."""
    told = await uvm.missions.ask({"text": text, "effort": "reflex", "user": "tester", **fields})
    assert told["status"] == "done"
    await uvm.mission_memory.write()
    return dict(told)


async def counted(uvm: UVM) -> str:
    """A mission that ran the facet."""
    return str((await asked(uvm, **BRIEF))["id"])


async def learn_for(uvm: UVM, mission: str) -> None:
    """Give the facet a revision that counts in tens, made for a mission."""
    source, made = COUNTS.replace("+ 1", "+ 10"), provenance([mission])
    await uvm.image.writer.apply(
        lambda root: install(root, root["brick_prototype_obj"], FACET, source, provenance=made)
    )


def visits(uvm: UVM) -> int:
    """What the facet counted."""
    with uvm.image.snapshot() as root:
        return int(own_slots(root["brick_prototype_obj"]).get("visits", 0))


async def said_by_all_doors(uvm: UVM) -> dict[str, str]:
    """Every answer that reading the mind gives, as text."""
    said = await asyncio.to_thread(lived.all_that_is_said, uvm.readings)
    return {key: json.dumps(value, default=str) for key, value in said.items()}


async def said_by_every_verb(uvm: UVM, ask: Door) -> dict[str, str]:
    """The same, with every verb that reads, and every object of the storage by its number."""
    said = await said_by_all_doors(uvm)
    for mission in [key.removeprefix("show ") for key in said if key.startswith("show ")]:
        said[f"why {mission}"] = json.dumps(await ask("why", what=mission))
        said[f"effects {mission}"] = json.dumps(await ask("effects", mission=mission))
    for dream in [each["dream"] for each in (await ask("dream_list"))["dreams"]]:
        said[f"dream_diff {dream}"] = json.dumps(await ask("dream_diff", dream=dream))
    for verb in ("missions", "approvals", "tools", "grants", "effects", "dream_list", "status", "memories"):
        said[verb] = json.dumps(await ask(verb))
    with uvm.image.snapshot() as root:
        newest = max(int.from_bytes(oid, "big") for oid in roots.connection_of(root).db().storage._data)
    for number in range(newest + 1):
        with suppress(NotFound):
            said[f"inspect {number:#x}"] = json.dumps(await ask("inspect", object=f"oid:{number:#x}"))
    return said


def last_line(answer: str) -> str:
    """What a model wrote, behind the line about memory."""
    return answer.rpartition("\n")[2]


async def test_nothing_of_an_undone_mission_is_reachable(tmp_path: Path) -> None:
    """Its answer, its person's words, its turn and its prompts; its question is given back for editing."""
    async with mind(tmp_path) as (uvm, ask):
        await asked(uvm, "Who mended the pier?", conversation="new")
        gone = await asked(uvm, "My cat is called Miso. Who winds the lamp?", conversation="last")
        kept = await asked(uvm, "What does the Velda yard do?")
        told = await ask("undo", mission=gone["id"], user="tester")
        assert (told["prompt"], told["dry_run"]) == (gone["brief"]["text"], False)
        assert [(each["mission"], each["turn"]) for each in told["undone"]] == [(gone["id"], 2)]
        after = await said_by_every_verb(uvm, ask)
        for key, text in after.items():
            assert last_line(gone["answer"]) not in text, key
        assert any(last_line(kept["answer"]) in text for text in after.values())
        assert not recalled(uvm, "My cat Miso")
        shown = uvm.readings.mission(gone["id"])
        assert (shown["status"], "answer" in shown) == ("undone", False)
        assert f"batos redo {gone['id']}" in shown["reason"]["remedy"]
        assert (await ask("show", mission=gone["id"], prompts=True))["prompts"] == []
        with uvm.image.snapshot() as root:
            assert dict(own_slots(roots.mission_record(root, gone["id"]).thought)) == {"mission": gone["id"]}
            present = {word: count for word, count in root[roots.TALLY].items() if count}
            assert present == roots.count_by_status(root)


def recalled(uvm: UVM, text: str) -> list[Any]:
    """The memories that have these words."""
    found = uvm.readings.recall(RecallQuery(text, None, "text"), 10, MemoryReach("tester"))
    return [each for each in found["recalled"] if "Miso" in json.dumps(each)]


async def test_a_redo_brings_all_back_after_a_pack_too(tmp_path: Path) -> None:
    """Each door says what it said before, but for the moments."""
    async with mind(tmp_path) as (uvm, ask):
        first = await asked(uvm, "My cat is called Miso. Who winds the lamp?", conversation="new")
        await counted(uvm)
        await ask("pin", documents=[uvm.readings.memories(9)["memories"][-1]["document"]], user="tester")
        before = await said_by_all_doors(uvm)
        await ask("undo", mission=first["id"], user="tester")
        assert (await said_by_all_doors(uvm)).keys() != before.keys()
        await asyncio.to_thread(uvm.image.db.pack)
        told = await ask("redo", user="tester")
        assert (told["mission"], told["redone"], told["left"]) == (first["id"], [first["id"]], [])
        after = await said_by_all_doors(uvm)
        assert {key for key in before if before[key] != after.get(key)} <= volatile(before, first["id"])
        assert uvm.readings.mission(first["id"])["answer"] == first["answer"]
        with pytest.raises(NotFound, match="no mission is undone"):
            await ask("redo", user="tester")
        with pytest.raises(Refused, match="not undone"):
            await ask("redo", mission=first["id"], user="tester")


def volatile(said: dict[str, str], mission: str) -> set[str]:
    """What tells of moments, of commits, or of the numbers of parts, and of them alone."""
    return {
        key
        for key in said
        if key in ("lines", f"show {mission}", "names", "memories")
        or key.startswith(("recall", "memory", "inspect"))
    }  # fmt: skip


async def test_what_builds_on_it_is_listed_and_goes_only_with_a_cascade(tmp_path: Path) -> None:
    """A reply, a turn that was shown it, and what was shown that; an independent one stays."""
    async with mind(tmp_path) as (uvm, ask):
        origin = await asked(uvm, "Who winds the lamp?", conversation="new")
        shown = await asked(uvm, "And who else winds it?", conversation="last")
        reply = await asked(uvm, "Is that sure?", in_reply_to=shown["id"])
        alone = await asked(uvm, "What is a sluice?", policy={"memory": "none"})
        before = await said_by_all_doors(uvm)
        with pytest.raises(Refused, match="2 later missions build on") as refused:
            await ask("undo", mission=origin["id"], user="tester")
        assert [each.partition(":")[0] for each in refused.value.also] == [shown["id"], reply["id"]]
        assert "--cascade" in refused.value.remedy
        assert await said_by_all_doors(uvm) == before
        planned = await ask("undo", mission=origin["id"], dry_run=True, user="tester")
        assert await said_by_all_doors(uvm) == before
        told = await ask("undo", mission=origin["id"], cascade=True, user="tester")
        assert [each["mission"] for each in told["undone"]] == [reply["id"], shown["id"], origin["id"]]
        assert {**told, "dry_run": True} == planned
        assert uvm.readings.mission(alone["id"])["status"] == "done"
        with pytest.raises(Refused, match=f"{reply['id']} builds on {shown['id']}"):
            await ask("redo", mission=reply["id"], user="tester")
        again = await ask("redo", mission=origin["id"], cascade=True, user="tester")
        assert again["redone"] == [origin["id"], shown["id"], reply["id"]]
        turns = uvm.readings.turns("last", user="tester")["turns"]
        assert [(each["position"], each["mission"]) for each in turns] == [(1, origin["id"]), (2, shown["id"])]


async def test_redo_upon_redo_brings_a_cascade_back(tmp_path: Path) -> None:
    """The mission that was named comes first, then the oldest that went with it, then what was undone before."""
    async with mind(tmp_path) as (uvm, ask):
        before = await asked(uvm, "What is a sluice?", policy={"memory": "none"})
        origin = await asked(uvm, "Who winds the lamp?", conversation="new")
        shown = await asked(uvm, "And who else winds it?", conversation="last")
        reply = await asked(uvm, "Is that sure?", in_reply_to=shown["id"])
        await ask("undo", mission=before["id"], user="tester")
        await ask("undo", mission=origin["id"], cascade=True, user="tester")
        back = [(await ask("redo", user="tester"))["redone"] for _ in range(4)]
        assert back == [[each["id"]] for each in (origin, shown, reply, before)]
        with pytest.raises(NotFound, match="no mission is undone"):
            await ask("redo", user="tester")


async def test_a_redo_without_a_name_means_an_undo_of_one_s_own_missions(tmp_path: Path) -> None:
    """Of missions of another user that went with them, each comes back by its name alone."""
    async with mind(tmp_path) as (uvm, ask):
        first = await counted(uvm)
        await learn_for(uvm, first)
        theirs = await asked(uvm, **{**BRIEF, "user": "somebody"})
        await ask("undo", mission=first, cascade=True, user="tester")
        await ask("redo", user="tester")
        for user in ("tester", "somebody"):
            with pytest.raises(NotFound, match="no mission is undone"):
                await ask("redo", user=user)
        assert (await ask("redo", mission=theirs["id"], user="somebody"))["redone"] == [theirs["id"]]


async def test_an_undone_turn_s_position_is_given_to_no_other(tmp_path: Path) -> None:
    """So that it comes back to its own place; a page has no gap."""
    async with mind(tmp_path) as (uvm, ask):
        first = await asked(uvm, "Who winds the lamp?", conversation="new")
        await ask("undo", mission=first["id"], user="tester")
        second = await asked(uvm, "What is a sluice?", conversation="last")
        places = [(each["position"], each["mission"]) for each in uvm.readings.turns("last")["turns"]]
        assert places == [(2, second["id"])]
        await ask("redo", user="tester")
        page = uvm.readings.turns("last", 1, 1)
        assert ([each["position"] for each in page["turns"]], page["next"]) == ([1], 2)
        assert [each["position"] for each in uvm.readings.turns("last", 2, 1)["turns"]] == [2]


async def test_slots_get_their_former_values_back(tmp_path: Path) -> None:
    """Of the last writer alone; an earlier one is undone with it, or not at all."""
    async with mind(tmp_path) as (uvm, ask):
        first, second = await counted(uvm), await counted(uvm)
        assert visits(uvm) == 2
        with pytest.raises(Refused) as refused:
            await ask("undo", mission=first, user="tester")
        assert refused.value.also == (f"{second}: it wrote {BRICK}.visits, as {first} did before",)
        await ask("undo", mission=second, user="tester")
        assert visits(uvm) == 1
        await ask("undo", mission=first, user="tester")
        with uvm.image.snapshot() as root:
            assert "visits" not in own_slots(root["brick_prototype_obj"])
        with pytest.raises(Refused) as again:
            await ask("undo", mission=first, user="tester")
        assert f"batos redo {first}" in again.value.remedy
        await ask("redo", mission=first, user="tester")
        await ask("redo", mission=second, user="tester")
        assert visits(uvm) == 2


async def test_a_slot_that_was_changed_since_stays_changed_and_is_named(tmp_path: Path) -> None:
    """Nobody's later work is written over by a redo."""
    async with mind(tmp_path) as (uvm, ask):
        first = await counted(uvm)
        await ask("undo", mission=first, user="tester")
        await counted(uvm)
        await counted(uvm)
        told = await ask("redo", mission=first, user="tester")
        assert (told["left"], visits(uvm)) == ([f"{first}: {BRICK}.visits"], 2)


async def test_kinds_of_traces_can_stay(tmp_path: Path) -> None:
    """Memories and slots, as the person says; the answer goes all the same."""
    async with mind(tmp_path) as (uvm, ask):
        first = await asked(uvm, **{**BRIEF, "text": "My cat is called Miso. What holds a pier?"})
        told = await ask("undo", mission=first["id"], keep=["memories", "slots"], user="tester")
        assert (told["kept"], visits(uvm)) == (["memories", "slots"], 1)
        assert recalled(uvm, "My cat Miso")
        assert "answer" not in uvm.readings.mission(first["id"])


async def test_a_method_that_was_made_for_it_goes_and_its_ledger_tells(tmp_path: Path) -> None:
    """The revision before it is active again; it is no reason to make no other. A redo brings the revision back."""
    async with mind(tmp_path) as (uvm, ask):
        first = await counted(uvm)
        await learn_for(uvm, first)
        second = await counted(uvm)
        with pytest.raises(Refused) as refused:
            await ask("undo", mission=first, keep=["slots"], user="tester")
        assert refused.value.also == (f"{second}: it ran {BRICK}.{FACET}, which was made for {first}",)
        await ask("undo", mission=first, cascade=True, user="tester")
        method = uvm.readings.lifecycle.describe(f"{BRICK}.{FACET}")
        assert (method["active"], method["barred"], method["ledger"]["undone"]) == (1, None, 1)
        retired = uvm.readings.lifecycle.describe(f"{BRICK}.{FACET}", 2)["retired"]
        assert retired is not None
        assert retired["reason"] == f"undone with {first}"
        assert visits(uvm) == 0
        await ask("redo", mission=first, cascade=True, user="tester")
        assert (uvm.readings.lifecycle.describe(f"{BRICK}.{FACET}")["active"], visits(uvm)) == (2, 11)
        with uvm.image.snapshot() as root:
            lineage = lineage_of(root, root["brick_prototype_obj"], FACET)
            assert lineage is not None
            assert dict(lineage.totals) == outcomes.totals_of(outcomes.entries(lineage.ledger))
            assert lineage.totals[1]["method"]["undone"] == 0


async def test_a_mission_that_is_not_remembered_yet_is_never_remembered(tmp_path: Path) -> None:
    """Nor one that is undone while its memory is being written."""
    async with mind(tmp_path) as (uvm, ask):
        async with uvm.mission_memory._writing:
            told = await uvm.missions.ask({"text": "My cat is called Miso.", "effort": "reflex", "user": "tester"})
            batch = await asyncio.to_thread(uvm.mission_memory._read_batch)
            assert (batch.missions, bool(batch.documents)) == ([told["id"]], True)
            await ask("undo", mission=told["id"], user="tester")
        await uvm.document_store.add(batch.documents, partial(uvm.mission_memory._note, batch=batch))
        await uvm.mission_memory.write()
        assert uvm.readings.memories(9)["documents"] == 0
        await ask("redo", user="tester")
        await uvm.mission_memory.write()
        assert uvm.readings.memories(9)["documents"] > 0


async def test_what_is_not_done_is_not_undone(tmp_path: Path) -> None:
    """The remedy says what to do instead; a mission of another user is not there."""
    async with mind(tmp_path) as (uvm, ask):
        queued = await uvm.missions.submit({"text": "Who?", "user": "tester"}, begin=False)
        with pytest.raises(Refused, match="is queued") as refused:
            await ask("undo", mission=queued, user="tester")
        assert f"batos cancel {queued}" in refused.value.remedy
        await ask("cancel", mission=queued, user="tester")
        with pytest.raises(Refused, match="is cancelled"):
            await ask("undo", mission=queued, user="tester")
        with pytest.raises(NotFound):
            await ask("undo", mission=queued, user="somebody")


async def test_a_thought_that_was_shown_what_is_undone_meanwhile_is_thought_again(tmp_path: Path) -> None:
    """The undo lands between its reading and its commit: it answers without it, and is not refused."""
    bridge = numbered()
    async with mind(tmp_path, bridge) as (uvm, ask):
        first = await asked(uvm, "My cat is called Miso. Who winds the lamp?", conversation="new")
        think, undone = bridge.think, list[dict[str, Any]]()

        async def interrupted(request: ChatRequest, *args: Any, **named: Any) -> Any:
            if not undone and not request.schema:
                undone.append(await ask("undo", mission=first["id"], user="tester"))
            return await think(request, *args, **named)

        bridge.think = interrupted  # type: ignore[method-assign]
        second = await asked(uvm, "What is my cat called?", conversation=first["brief"]["conversation"])
        assert undone
        shown = [each.get("mission") for each in second["provenance"]["recalled"]]
        assert first["id"] not in shown
        assert "Miso" not in json.dumps(uvm.readings.prompts(second["id"])[-1]["messages"])


@pytest.mark.parametrize("seed", [1, 2])
async def test_any_mission_of_a_life_can_be_undone_and_brought_back(tmp_path: Path, seed: int) -> None:
    """In any order: what is undone is nowhere, the books stay true, and at the end all answers are as they were."""
    dice = random.Random(seed)
    async with mind(tmp_path) as (uvm, ask):
        missions = await lived.live(uvm, seed)
        await uvm.mission_memory.write()
        answers = {each: uvm.readings.mission(each)["answer"] for each in missions}
        whole, memories = await said_by_all_doors(uvm), memories_of(uvm)
        for _ in range(3):
            chosen = dice.choice(missions)
            if uvm.readings.mission(chosen)["status"] != "done":
                continue
            told = await ask("undo", mission=chosen, cascade=True)
            gone = [each["mission"] for each in told["undone"]]
            others = {answers[each] for each in missions if each not in gone}
            for key, text in (await said_by_all_doors(uvm)).items():
                for each in gone:
                    assert answers[each] in others or answers[each] not in text, (key, each)
            with uvm.image.snapshot() as root:
                assert {w: n for w, n in root[roots.TALLY].items() if n} == roots.count_by_status(root)
        with uvm.image.snapshot() as root:
            acts = sorted({(kept["at"], kept["origin"]) for kept in root[roots.UNDONE].values()}, reverse=True)
        for _, origin in acts:
            if uvm.readings.mission(origin)["status"] == "undone":
                assert (await ask("redo", mission=origin, cascade=True))["left"] == []
        assert {each: uvm.readings.mission(each)["answer"] for each in missions} == answers
        assert memories_of(uvm) == memories
        back = await said_by_all_doors(uvm)
        for key in whole:
            if key.startswith(("turns", "method ")):
                assert back[key] == whole[key] or key.startswith("method "), key


def memories_of(uvm: UVM) -> set[tuple[str, str]]:
    """The memories by name and text."""
    found = (uvm.readings.memory(each["document"]) for each in uvm.readings.memories(1_000)["memories"])
    return {(each["document"], json.dumps([part["text"] for part in each["parts"]])) for each in found}


def test_a_guest_s_undo_leaves_methods_and_takes_nothing_else_along() -> None:
    """What others' missions run is not a guest's to take away."""
    meant = limit_guest("undo", {"mission": "last", "keep": ["slots"]}, "key laptop 0a1b")
    assert (meant["keep"], meant["user"]) == (["methods", "slots"], "key laptop")
    for verb in ("undo", "redo"):
        with pytest.raises(Refused):
            limit_guest(verb, {"mission": "last", "cascade": True}, "key laptop 0a1b")
