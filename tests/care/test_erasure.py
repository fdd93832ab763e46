"""Erasure: a secret that was told in every way is nowhere afterwards, and what did not have it stays."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
import structlog
from tests.agency.acting import FACET
from tests.care.byte_scan import files_with, has
from tests.care.secret_mind import OTHER, SECRET, ask, memory, tell, told_mind
from tests.history import lived
from tests.history.test_as_of_past_questions import Door
from tests.image.installing import install

from batos.autotelic.curator import CurationWish
from batos.care import verification
from batos.care.erasure import Erasure, ErasureParts, ErasureRequest
from batos.care.packing import Packer
from batos.concurrency.threads import LongWork
from batos.history import record_chain
from batos.image import roots
from batos.image.roots import Root
from batos.image.transactions import snapshot
from batos.inference.ollama.bridge import ChatRequest
from batos.memory.records import memory_segments
from batos.objects.prototype import own_slots
from batos.protocol.errors import BatosError, BriefError, NotFound, OllamaError, Refused
from batos.server.dispatch.guests import limit_guest
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM
from batos.verbs.server_verbs import erased_text

NEEDLE = SECRET.encode()


def places(home: Path) -> set[str]:
    """Where the home has the secret."""
    return files_with(home, NEEDLE)


def in_indexes(uvm: UVM) -> bool:
    """Tell whether a segment of an index has the secret."""
    with uvm.image.snapshot() as root:
        return any(has(row.segment.data, NEEDLE) for _, row in memory_segments.segments_of(root))


def faults(uvm: UVM) -> list[str]:
    """What the audit finds wrong."""
    with snapshot(uvm.image.journal_db) as journal:
        found = record_chain.read_calls(journal).find_faults()
    with uvm.image.snapshot() as root:
        return [*found, *record_chain.read_effects(root).find_faults()]


async def test_words_are_erased_from_every_place(tmp_path: Path) -> None:
    """Image, journal, blobs, indexes, the log and what was typed; others' answers stay, and the audit verifies."""
    async with told_mind(tmp_path) as (mind, home):
        missions = await tell(mind, home)
        with snapshot(mind.uvm.image.journal_db) as journal:
            head, calls = record_chain.read_calls(journal).head, len(record_chain.read_calls(journal).links)
        before = await asyncio.to_thread(places, home)
        assert {"live_image.fs", "journal.fs", "logs/batos.log", "chat_history"} <= before
        assert any(each.startswith("blobs") for each in before)
        assert await asyncio.to_thread(in_indexes, mind.uvm)
        told = await mind.ask("erase", target=SECRET, user="tester")
        assert set(told["missions"]) >= {missions["said"], missions["file"]}
        assert {missions["other"]}.isdisjoint(told["missions"])
        assert (told["kind"], told["found"], told["lines"]) == ("words", [], 2)
        assert told["calls"] > 0
        assert await asyncio.to_thread(places, home) == set()
        assert any("notes" in each["place"] for each in told["left"])
        assert faults(mind.uvm) == []
        assert verification.find_faults(mind.uvm.image.db) == []
        with snapshot(mind.uvm.image.journal_db) as journal:
            chain = record_chain.read_calls(journal)
            assert (chain.has(head), len(chain.links)) == (True, calls)
        assert mind.uvm.readings.mission(missions["other"])["answer"] == "Maro winds the clockwork."
        shown = mind.uvm.readings.mission(missions["said"])
        assert (shown["status"], shown["brief"]["text"], "answer" in shown) == ("undone", "[erased]", False)
        for verb in ("undo", "redo"):
            with pytest.raises(Refused, match="is erased") as refused:
                await mind.ask(verb, mission=missions["said"])
            assert refused.value.remedy.startswith("Nothing brings it back")
        with pytest.raises(NotFound):
            await mind.ask("erase", target=SECRET, user="tester")
        assert (await mind.ask("recall", query="pier of Orm", user="tester"))["recalled"]
        await ask(mind, OTHER)
    async with told_mind(tmp_path) as (mind, home):
        assert mind.uvm.readings.mission(missions["said"])["status"] == "undone"
        assert await asyncio.to_thread(places, home) == set()


async def test_a_mission_goes_with_all_that_builds_on_it(tmp_path: Path) -> None:
    """Without `--cascade` it is refused and named; with it the secret is nowhere, and other missions stay."""
    async with told_mind(tmp_path) as (mind, home):
        other = await ask(mind, OTHER, conversation="new")
        said = await ask(mind, f"My key is {SECRET}. Keep it.", conversation="last")
        later = await ask(mind, "What did I say before?", conversation="last")
        failed = await mind.uvm.missions.submit({"text": "Why?", "user": "tester", "conversation": "last"})
        with pytest.raises(Refused, match="has not ended"):
            await mind.ask("erase", target=said, cascade=True, user="tester")
        planned = await mind.ask("erase", target=said, dry_run=True, user="tester")
        assert (said in planned["missions"], [each["place"] for each in planned["left"]]) == (True, [failed])
        assert f"left     {failed}: has not ended" in erased_text(cast("Any", planned))
        await mind.ask("cancel", mission=failed)
        with pytest.raises(Refused, match="1 other mission builds on") as refused:
            await mind.ask("erase", target=said, user="tester")
        assert refused.value.also[0].startswith(later)
        planned = await mind.ask("erase", target=said, dry_run=True, user="tester")
        assert (list(planned["missions"]), planned["left"]) == ([said, later], [])
        assert "journal.fs" in await asyncio.to_thread(places, home)
        with pytest.raises(NotFound):
            await mind.ask("erase", target=said, user="somebody")
        told = await mind.ask("erase", target=said[:12].lower(), cascade=True, user="tester")
        assert (told["kind"], told["found"]) == ("mission", [])
        assert await asyncio.to_thread(places, home) == set()
        assert (faults(mind.uvm), verification.find_faults(mind.uvm.image.db)) == ([], [])
        turns = await mind.ask("turns", conversation="last", user="tester")
        assert [each["mission"] for each in turns["turns"]] == [other]
        again = await mind.ask("erase", target=said, user="tester")
        assert (list(again["missions"]), again["calls"]) == ([said], 0)


async def test_a_conversation_goes_whole(tmp_path: Path) -> None:
    """With each of its missions and its object; others stay."""
    async with told_mind(tmp_path) as (mind, home):
        other = await ask(mind, OTHER, conversation="new")
        said = await ask(mind, f"My key is {SECRET}. Keep it.", conversation="new")
        await ask(mind, "What did I say before?", conversation="last")
        name = mind.uvm.readings.mission(said)["brief"]["conversation"]
        told = await mind.ask("erase", target=name, user="tester")
        assert (told["conversations"], len(told["missions"]), told["found"]) == ([name], 2, [])
        assert await asyncio.to_thread(places, home) == set()
        assert verification.find_faults(mind.uvm.image.db) == []
        with mind.uvm.image.snapshot() as root:
            assert name not in root[roots.CONVERSATIONS]
        assert mind.uvm.readings.mission(other)["status"] == "done"


async def test_a_memory_goes_with_the_answers_that_quote_it(tmp_path: Path) -> None:
    """Also one whose parts a summary stands for; the prompts that showed it go from the journal."""
    async with told_mind(tmp_path) as (mind, home):
        texts = [f"Log{n} of keeper{n} at Holm. Thing{n} was there. The safe of {n} is shut." for n in range(20)]
        texts[3] = f"{texts[3]} It opens with {SECRET}."
        await mind.uvm.document_store.remember([memory(f"{n}.md", text) for n, text in enumerate(texts)])
        shown = await ask(mind, "How does the safe of keeper3 at Holm open?")
        curated = await mind.uvm.curator.curate(CurationWish("tester", 0, 99, by_rule=True))
        assert curated["regions"]
        assert {"live_image.fs", "journal.fs"} <= await asyncio.to_thread(places, home)
        told = await mind.ask("erase", target="/docs/3.md", cascade=True, user="tester")
        assert (told["kind"], told["found"]) == ("memory", [])
        assert await asyncio.to_thread(places, home) == set()
        assert verification.find_faults(mind.uvm.image.db) == []
        assert mind.uvm.readings.mission(shown)["id"] == shown


async def test_a_slot_goes_with_its_former_values(tmp_path: Path) -> None:
    """Those of history, and those that missions wrote down; what the codex declares is refused."""
    async with told_mind(tmp_path) as (mind, home):

        def write(value: object, root: Root) -> None:
            root["tools_obj"].note = value

        await mind.uvm.image.writer.apply(partial(write, {"key": SECRET}))
        await mind.uvm.image.writer.apply(partial(write, {"key": f"now {SECRET}"}))
        with pytest.raises(Refused, match="declared by the codex"):
            await mind.ask("erase", target="robin_prototype_obj.core_identity", user="tester")
        told = await mind.ask("erase", target="tools_obj.note", user="tester")
        assert (told["kind"], told["slots"]) == ("object", ["tools_obj.note"])
        assert await asyncio.to_thread(places, home) == set()
        with mind.uvm.image.snapshot() as root:
            assert "note" not in own_slots(root["tools_obj"])


async def test_words_of_others_stay_unless_they_are_meant(tmp_path: Path) -> None:
    """A user erases what is his, and is told that others have it; a guest erases no words, and takes nobody along."""
    async with told_mind(tmp_path) as (mind, home):
        await ask(mind, f"My key is {SECRET}. Keep it.", user="ann")
        await ask(mind, f"Her key is {SECRET}. Keep it.")
        told = await mind.ask("erase", target=SECRET, user="tester")
        assert len(told["missions"]) == 1
        assert told["found"]
        assert told["left"][0]["place"] == "this home"
        guest = limit_guest("erase", {"target": SECRET, "user": "ann"}, "key laptop 0a1b")
        with pytest.raises(NotFound):
            await mind.ask("erase", **guest)
        with pytest.raises(Refused, match="only for the home"):
            limit_guest("erase", {"target": "m-1", "cascade": True}, "key laptop 0a1b")
        told = await mind.ask("erase", target=SECRET)
        assert told["found"] == []
        assert await asyncio.to_thread(places, home) == set()
        with pytest.raises(BriefError, match="at least 6"):
            await mind.ask("erase", target="a b")
        with pytest.raises(Refused, match="the codex has these words"):
            await mind.ask("erase", target="Swanson", words=True)


async def test_what_only_the_journal_knows_is_erased_too(tmp_path: Path) -> None:
    """A dream, and a question to the past; the image is left as it is."""
    async with told_mind(tmp_path) as (mind, home):
        moment = mind.uvm.readings.mission(await ask(mind, OTHER))["tid"]
        brief = {"text": f"My key is {SECRET}. Keep it.", "effort": "reflex", "user": "tester"}
        dream = await mind.ask("dream_new", brief=brief)
        asked = await mind.ask("submit", brief=brief, as_of=moment, follow=True)
        assert await asyncio.to_thread(places, home) == {"journal.fs"}
        for each in (dream["id"], asked["id"]):
            told = await mind.ask("erase", target=each, user="tester")
            assert list(told["missions"]) == [each]
        assert await asyncio.to_thread(places, home) == set()
        assert faults(mind.uvm) == []
        assert (await mind.ask("dream_list", user="tester"))["dreams"] == []


class _BrokenPacker:
    """A packer that fails, as a killed process would."""

    async def pack_to_now(self, times: int, work: LongWork) -> Any:
        """Fail."""
        raise OSError("killed")


@pytest.mark.parametrize("meant", ["words", "mission"])
async def test_an_erasure_that_was_interrupted_is_finished_by_the_next(tmp_path: Path, meant: str) -> None:
    """Whatever had been done: what is left is found by its words, and a mission by its id."""
    async with told_mind(tmp_path) as (mind, home):
        said = await ask(mind, f"My key is {SECRET}. Keep it.")
        uvm = mind.uvm
        broken = cast("Packer", _BrokenPacker())
        parts = ErasureParts(
            uvm.image, uvm.journal, uvm.document_store, broken, uvm.events, uvm.clock, home, f"file://{home}/journal.fs"
        )
        request = ErasureRequest(SECRET if meant == "words" else said, "tester", "tester")
        with pytest.raises(OSError, match="killed"):
            await Erasure(parts).erase(request, LongWork())
        assert await asyncio.to_thread(places, home) == {"live_image.fs", "journal.fs"}
        told = await Erasure(replace(parts, packer=uvm.packer)).erase(request, LongWork())
        assert told["found"] == []
        assert await asyncio.to_thread(places, home) == set()


@pytest.mark.parametrize("seed", [1, 4])
async def test_missions_of_a_life_are_erased_one_after_the_other(tmp_path: Path, seed: int) -> None:
    """After each the image is sound, the chains verify, and no file of the home has its question."""
    async with told_mind(tmp_path) as (mind, home):
        missions = await lived.live(mind.uvm, seed)
        await mind.uvm.mission_memory.write()
        dice = random.Random(seed)
        for mission in dice.sample(missions, 3):
            text = mind.uvm.readings.mission(mission)["brief"]["text"]
            await mind.ask("erase", target=mission, cascade=True, user="tester")
            if "Miso" in text:  # the other questions are asked more than once
                assert await asyncio.to_thread(files_with, home, text.encode()) == set()
            assert verification.find_faults(mind.uvm.image.db) == []
            assert faults(mind.uvm) == []


async def test_a_guest_erases_its_own_and_nothing_that_is_shared(tmp_path: Path) -> None:
    """Also where it said the same as a method, a line of the log, or a mission of the home."""
    async with told_mind(tmp_path) as (mind, home):
        line = "async def tamland_facet_(self, query): return 'The lamp is wound by Maro.'"

        def learn(root: Root) -> None:
            install(root, root["brick_prototype_obj"], FACET, f"{line}\n")

        await mind.uvm.image.writer.apply(learn)
        structlog.get_logger("batos").info("method.note", text=line)
        ours = await ask(mind, line)
        theirs = await ask(mind, f"{line} {SECRET}", user="key laptop")
        args = {"target": theirs, "user": "somebody else"}
        with pytest.raises(NotFound):
            await mind.ask("erase", **limit_guest("erase", {"target": ours}, "key laptop 0a1b"))
        told = await mind.ask("erase", **limit_guest("erase", args, "key laptop 0a1b"))
        assert (list(told["missions"]), told["methods"], told["lines"]) == ([theirs], [], 0)
        assert await asyncio.to_thread(places, home) == set()
        assert line in (home / "logs" / "batos.log").read_text(encoding="utf-8")
        assert mind.uvm.readings.mission(ours)["answer"]
        assert all(each["response"] for each in mind.uvm.readings.prompts(ours))
        with mind.uvm.image.snapshot() as root:
            assert own_slots(root["brick_prototype_obj"])[FACET].source == f"{line}\n"


async def test_a_failed_mission_is_erased_with_what_it_had_paid_for(tmp_path: Path) -> None:
    """Its status and the digests of its calls stay; the reason, which may quote it, goes."""
    async with told_mind(tmp_path) as (mind, home):
        failing = cast("ScriptedBridge", mind.uvm.bridge)
        former = failing.respond

        def respond(request: ChatRequest) -> str | BatosError:
            said = " ".join(each["content"] for each in request.messages)
            return OllamaError(f"no end of {SECRET}") if SECRET in said and not request.schema else former(request)

        failing.respond = respond
        brief = {"text": f"My key is {SECRET}. Keep it.", "user": "tester", "effort": "reflex"}
        mission = await mind.uvm.missions.submit(brief)
        with pytest.raises(OllamaError, match="no end"):
            await mind.uvm.missions.run(mission)
        assert {"live_image.fs", "journal.fs"} <= await asyncio.to_thread(places, home)
        erased = await mind.ask("erase", target=mission, user="tester")
        assert erased["found"] == []
        assert await asyncio.to_thread(places, home) == set()
        shown = mind.uvm.readings.mission(mission)
        assert (shown["status"], shown["reason"]["message"]) == ("failed", "erased by tester")
        assert faults(mind.uvm) == []
        await mind.uvm.counters.flush()  # which had the failure in hand
        (failure,) = mind.uvm.status()["failures"]
        assert failure["reason"]["message"] == "erased by tester"
        assert await asyncio.to_thread(places, home) == set()


@pytest.mark.parametrize("words", ["unfolded", "accepted_at", "attempts", "fingerprint", "2026-", "running"])
async def test_words_that_are_names_of_the_program_leave_the_mind_whole(tmp_path: Path, words: str) -> None:
    """A careless user's: the fields of records, the trees of the image, statuses and times are no words of anybody."""
    for _ in range(2):
        async with scripted_uvm(tmp_path / "home", memory=False, method_control=0) as uvm:
            told = await uvm.missions.ask({"text": "What is salt?", "user": "tester"})
            with suppress(NotFound, Refused, BriefError):
                await Door(uvm)("erase", target=words, words=True)
            assert verification.find_faults(uvm.image.db) == []
            assert (await Door(uvm)("show", mission=told["id"]))["status"] in ("done", "undone")
