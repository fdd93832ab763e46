"""Erasure while copies of the mind think and methods are made: none of what they had read comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.care.byte_scan import files_with
from tests.care.secret_mind import OTHER, SECRET, ask, bridge, memory, told_mind
from tests.history.test_as_of_past_questions import Door
from tests.methods.generation.learning import MESSAGE, SAID, SPEAKS, learning
from tests.waiting import HANG

from batos.care.erasure import Erasure, ErasureParts, ErasureRequest
from batos.cli.doctor import home_checks
from batos.concurrency.threads import LongWork
from batos.history import dreams, promotion, record_chain
from batos.image import roots
from batos.image.readable import open_read_only
from batos.image.roots import Root
from batos.image.transactions import snapshot
from batos.inference import erasure_mark
from batos.inference.ollama.bridge import ChatRequest
from batos.inference.ollama.chat import Answer
from batos.objects.method import Intent
from batos.objects.prototype import own_slots
from batos.protocol.errors import NotFound, Refused, WordsErased
from batos.server.dispatch.erasing import finish_one
from batos.server.dispatch.history_changes import promotion_parts
from batos.testing import ScriptedBridge, author
from batos.uvm import UVM

NEEDLE = SECRET.encode()
QUESTION = {"text": "What opens the safe in the hall?", "effort": "reflex", "user": "tester"}


class HeldBridge(ScriptedBridge):
    """A daemon that does not answer a prompt with the secret until it is let."""

    def __init__(self, respond: Callable[[ChatRequest], Any], vectors: Any = None) -> None:
        super().__init__(respond, vectors=vectors)
        self.came, self.may = asyncio.Event(), asyncio.Event()

    async def think(
        self, request: ChatRequest, on_token: Callable[[str], None] | None = None, *, stream: bool = True
    ) -> Answer:
        """As any, once it may."""
        if any(SECRET in each["content"] for each in request.messages):
            self.came.set()
            await self.may.wait()
        return await super().think(request, on_token, stream=stream)


def held() -> HeldBridge:
    """A daemon that says what that of a told mind says."""
    usual = bridge()
    return HeldBridge(usual.respond, usual.vectors)


def parts_elsewhere(uvm: UVM) -> ErasureParts:
    """The parts of an erasure as another node has them: it ends no copy here, and no method in the making."""
    home = uvm.settings.home
    return ErasureParts(
        uvm.image, uvm.journal, uvm.document_store, uvm.packer, uvm.events, uvm.clock, home, f"file://{home}/journal.fs"
    )


def chain_faults(uvm: UVM) -> list[str]:
    """What an audit of the calls finds wrong."""
    with snapshot(uvm.image.journal_db) as root:
        return record_chain.read_calls(root).find_faults()


async def begin(mind: Any, kind: str) -> asyncio.Task[Any]:
    """A dream, or a question to the past, that was shown a memory with the secret and whose call is under way."""
    key = memory("key.md", f"The safe opens with {SECRET}. It stands in the hall.")
    await mind.uvm.document_store.remember([key])
    await mind.uvm.backfill.wait(lambda state: None)
    with mind.uvm.image.snapshot() as root:
        newest = roots.connection_of(root).db().lastTransaction()
    how: dict[str, Any] = {"as_of": f"tid:0x{newest.hex()}", "follow": True} if kind == "submit" else {}
    asking = asyncio.create_task(mind.ask(kind, brief=QUESTION, **how))
    async with asyncio.timeout(HANG):
        await mind.uvm.bridge.came.wait()
    return asking


@pytest.mark.parametrize("kind", ["dream_new", "submit"])
async def test_a_copy_that_thinks_is_ended_by_an_erasure(tmp_path: Path, kind: str) -> None:
    """Who asked is told why and what to do; no file has the secret, and no dream is kept."""
    daemon = held()
    async with told_mind(tmp_path, bridge=daemon) as (mind, home):
        asking = await begin(mind, kind)
        told = await mind.ask("erase", target=SECRET, words=True, user="tester")
        with pytest.raises(WordsErased, match="something was erased") as ended:
            await asyncio.wait_for(asking, HANG)  # its call is never answered
        assert "Ask again" in ended.value.remedy
        assert told["found"] == []
        assert await asyncio.to_thread(files_with, home, NEEDLE) == set()
        assert (await mind.ask("dream_list", user="tester"))["dreams"] == []
        assert chain_faults(mind.uvm) == []
        assert (await mind.ask("dream_new", brief={**QUESTION, "text": OTHER}))["status"] == "done"


@pytest.mark.parametrize("kind", ["dream_new", "submit"])
async def test_a_copy_at_another_node_keeps_no_words_when_it_ends(tmp_path: Path, kind: str) -> None:
    """Nothing stops it there: its call is answered, and the journal takes the digests."""
    daemon = held()
    async with told_mind(tmp_path, bridge=daemon) as (mind, home):
        asking = await begin(mind, kind)
        request = ErasureRequest(SECRET, "tester", "tester", as_words=True)
        assert (await Erasure(parts_elsewhere(mind.uvm)).erase(request, LongWork()))["found"] == []
        daemon.may.set()
        with pytest.raises(WordsErased):
            await asking
        assert await asyncio.to_thread(files_with, home, NEEDLE) == set()
        assert (await mind.ask("dream_list", user="tester"))["dreams"] == []
        assert chain_faults(mind.uvm) == []


async def test_no_copy_is_made_while_an_erasure_is_under_way(tmp_path: Path) -> None:
    """Nor where its process was killed behind its last commit: the next one that finishes erasures finds its mark."""
    async with told_mind(tmp_path) as (mind, _):
        await ask(mind, OTHER)
        await mind.uvm.image.journal_writer.apply(erasure_mark.begin)
        with pytest.raises(WordsErased, match="something was erased"):
            await mind.ask("dream_new", brief=QUESTION)
        assert await finish_one(mind.uvm)
        assert (await mind.ask("dream_new", brief=QUESTION))["status"] == "done"


async def test_a_refused_erasure_leaves_no_mark(tmp_path: Path) -> None:
    """The journal keeps words as before."""
    async with told_mind(tmp_path) as (mind, _):
        first = await ask(mind, OTHER, conversation="new")
        await ask(mind, "What did I say before?", conversation="last")
        with pytest.raises(Refused, match="builds on"):
            await mind.ask("erase", target=first, user="tester")
        with snapshot(mind.uvm.image.journal_db) as root:
            assert not erasure_mark.is_under_way(root)


async def test_an_erased_dream_is_promoted_by_nobody(tmp_path: Path) -> None:
    """Also by who had read it before."""
    async with told_mind(tmp_path) as (mind, home):
        told = await mind.ask("dream_new", brief={**QUESTION, "text": f"Keep {SECRET}."})
        dream = dreams.read(mind.uvm.image, told["id"])
        await mind.ask("erase", target=SECRET, words=True, user="tester")
        with pytest.raises(NotFound):
            await promotion.promote(promotion_parts(mind.uvm), dream)
        assert await asyncio.to_thread(files_with, home, NEEDLE) == set()


async def test_an_erased_dream_is_no_mission_that_the_image_lacks(tmp_path: Path) -> None:
    """The doctor finds image and journal of one moment."""
    async with told_mind(tmp_path) as (mind, home):
        told = await mind.ask("dream_new", brief=QUESTION)
        await mind.ask("erase", target=told["id"], user="tester")
    with open_read_only(f"file://{home}/live_image.fs", f"file://{home}/journal.fs") as pair, pair.root() as root:
        assert {each.id: each.ok for each in home_checks.consistency_findings(pair, root)}["image.moment"]


def wish_for_the_secret(root: Root) -> None:
    """Put the secret into what a method is made from."""
    before = own_slots(root["brick_prototype_obj"])["guide_facet_"]
    root["brick_prototype_obj"].guide_facet_ = Intent(**{**before.as_dict(), "text": f"Guide to {SECRET}."})


@pytest.mark.parametrize("where", ["here", "elsewhere"])
async def test_a_method_in_the_making_brings_no_words_back(tmp_path: Path, where: str) -> None:
    """Its call is ended by an erasure here; one at another node is waited for, as any mission that runs."""
    daemon = HeldBridge(author(SPEAKS, SAID))
    async with learning(tmp_path, daemon, install="auto", memory=False) as mind:
        await mind.uvm.image.writer.apply(wish_for_the_secret)
        asking = asyncio.create_task(mind.uvm.missions.ask(MESSAGE))
        await daemon.came.wait()
        daemon.may.set()
        assert (await asking)["status"] == "done"
        daemon.came.clear()
        daemon.may.clear()
        making = asyncio.create_task(mind.uvm.learning.some())
        async with asyncio.timeout(HANG):
            await daemon.came.wait()
        if where == "here":
            told = await Door(mind.uvm)("erase", target=SECRET, words=True, user="tester")
        else:
            erasure = Erasure(parts_elsewhere(mind.uvm))
            request = ErasureRequest(SECRET, None, "tester", as_words=True)
            with pytest.raises(Refused, match="has not ended"):
                await erasure.erase(request, LongWork())
            await mind.uvm.missions.cancel(mind.uvm.workers.running[0])
            told = dict(await erasure.erase(request, LongWork()))
        daemon.may.set()
        await making
        assert told["found"] == []
        assert await asyncio.to_thread(files_with, tmp_path, NEEDLE) == set()
        assert mind.slot("guide_facet_") is Intent
        assert chain_faults(mind.uvm) == []
