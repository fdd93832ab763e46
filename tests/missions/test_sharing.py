"""Nodes share the missions of one image: what one cannot begin another takes up, and each is told what became of it."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from BTrees.OOBTree import OOTreeSet
from persistent.mapping import PersistentMapping
from tests.image.lease_clock import LEASE
from tests.image.open_image import child, heard
from tests.image.servers import zeo_server, zeo_uri
from tests.minds.scripted import Script
from tests.missions import script_node_at_work as node_at_work_script
from tests.missions.pace import RacingClock
from tests.missions.script_node_at_work import AT_ONCE, node_at_work
from tests.waiting import until

from batos.events import Events
from batos.image import roots
from batos.image.nodes import claims
from batos.image.nodes.lease import node_name
from batos.inference.ollama.bridge import Answer, ChatRequest
from batos.memory.known_texts import Incoming
from batos.memory.search.chunk_search import RecallQuery
from batos.memory.search.metadata import MemoryReach
from batos.missions.sharing import _Look
from batos.protocol.errors import Busy, DiskFull
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM, Seams
from ollama_emulator.clocks import SystemClock
from ollama_emulator.emulator import Emulator, Options


class HeldBridge(ScriptedBridge):
    """Answers once it may."""

    def __init__(self, *, open: bool = True) -> None:
        super().__init__(Script())
        self.may, self.asked = asyncio.Event(), asyncio.Event()
        if open:
            self.may.set()

    async def think(
        self, request: ChatRequest, on_token: Callable[[str], None] | None = None, *, stream: bool = True
    ) -> Answer:
        """As scripted, once it may."""
        self.asked.set()
        await self.may.wait()
        return await super().think(request, on_token, stream=stream)


class TwoNodes:
    """Two nodes on one ZEO server, each with a home and a daemon of its own; the first publishes."""

    def __init__(self, first: UVM, second: UVM, bridges: list[HeldBridge], heard: list[tuple[str, str]]) -> None:
        self.first, self.second, self.bridges, self.heard = first, second, bridges, heard


@asynccontextmanager
async def two_nodes(folder: Path, *, open: tuple[bool, bool] = (True, True), **also: Any) -> AsyncIterator[TwoNodes]:
    """Open both; each runs one mission at a time, and loses its lease to nobody."""
    bridges, heard = [HeldBridge(open=each) for each in open], list[tuple[str, str]]()

    def hear(event: str, keys: Mapping[str, Any]) -> None:
        if event == "mission.status":
            heard.append((keys["mission"], keys["status"]))

    events = Events(log=False)
    events.subscribe(hear)
    async with AsyncExitStack() as stack:
        image = zeo_uri(stack.enter_context(zeo_server(folder)))
        usual: dict[str, Any] = {"image": image, "memory": False, "missions": 1, "lease": LEASE, **also}
        first = await stack.enter_async_context(scripted_uvm(folder / "first", bridges[0], events=events, **usual))
        second = await stack.enter_async_context(scripted_uvm(folder / "second", bridges[1], **usual))
        async with first.image.publishing.here():
            pass
        yield TwoNodes(first, second, bridges, heard)


async def test_a_free_node_takes_up_what_waits_at_another(tmp_path: Path) -> None:
    """Who asked there is told each status and the end; what was asked is paid for once."""
    async with two_nodes(tmp_path, open=(False, False)) as nodes:
        first, second = nodes.first, nodes.second
        held = await first.missions.submit({"text": "Held?", "effort": "reflex"}, begin=True)
        await nodes.bridges[0].asked.wait()
        asked = asyncio.create_task(first.missions.ask({"text": "Free?", "effort": "reflex"}))
        second.sharing.take_up()
        await until(lambda: {mission for mission, _ in nodes.heard} - {held}, "the news that it runs")
        nodes.bridges[1].may.set()
        found = await asked
        assert found["status"] == "done"
        assert [status for mission, status in nodes.heard if mission == found["id"]] == ["running", "done"]
        assert len(nodes.bridges[1].history) == 1
        nodes.bridges[0].may.set()
        assert (await second.missions.wait_for_end(held))["status"] == "done"  # asked where it does not run
        assert len(nodes.bridges[0].history) == 1
        with second.image.snapshot() as root:
            assert list(root[roots.UNFOLDED]) == list(root[roots.QUEUED]) == []
            assert root[roots.STATISTICS]["calls"] == 2


async def test_a_mission_that_another_node_was_quicker_with_needs_no_worker_here(tmp_path: Path) -> None:
    """Who had it accepted here begins it, finds that it runs there, and waits for its end all the same."""
    async with two_nodes(tmp_path, open=(True, False)) as nodes:
        mission = await nodes.first.missions.submit({"text": "Quick?", "effort": "reflex"})
        nodes.second.sharing.take_up()
        await nodes.bridges[1].asked.wait()
        nodes.first.missions._places.clear()  # as after a repeated submission
        await nodes.first.missions.begin(mission)
        assert not nodes.first.workers.has(mission)
        nodes.bridges[1].may.set()
        assert (await nodes.first.missions.wait_for_end(mission))["status"] == "done"


async def test_what_a_dead_node_left_is_taken_over_once(tmp_path: Path) -> None:
    """A node that settled it at its start, and runs it by now, does not take it from itself on an older look."""
    async with two_nodes(tmp_path, open=(False, True)) as nodes:
        first, dead = nodes.first, 99
        await first.sharing.aclose()  # its own looks would take over what only this test's older look may
        mission = await first.missions.submit({"text": "Left?", "effort": "reflex"})

        def leave(root: Any) -> None:
            node: Any = PersistentMapping(name="dead", ended=True, sessions=1, beat=PersistentMapping(count=0))
            node["claims"] = OOTreeSet([mission])
            root[roots.NODES][dead] = node
            status = roots.mission_record(root, mission).status
            roots.move_tally(root, mission, "queued", "running")
            status.become("running", "now")
            status.claim = dead

        await first.image.writer.apply(leave)
        with first.image.snapshot() as root:
            left = claims.left_by_the_dead(root)
        assert left == {dead: [mission]}
        place = await first.missions.recovery.one(mission)
        assert place is not None
        first.workers.begin(place)
        await nodes.bridges[0].asked.wait()
        await first.sharing._publish(_Look(left=left))
        with first.image.snapshot() as root:
            status = roots.mission_record(root, mission).status
            assert (status.word, status.attempts, claims.left_by_the_dead(root)) == ("running", 2, {})
        nodes.bridges[0].may.set()
        assert (await first.missions.wait_for_end(mission))["status"] == "done"
        assert sum(len(each.history) for each in nodes.bridges) == 1


def is_asked(uvm: UVM, mission: str, word: str) -> bool:
    """Whether a node stops a mission as it was asked to, or has done so."""
    run = uvm.workers._running.get(mission)
    return run is None or run.stop_request.word == word


@pytest.mark.parametrize(("verb", "word"), [("cancel", "cancelled"), ("pause", "paused")])
async def test_a_mission_is_stopped_through_the_image(tmp_path: Path, verb: str, word: str) -> None:
    """Another node than the one that runs it is asked; a cancelled call is broken off, a paused one is paid first."""
    async with two_nodes(tmp_path, open=(False, True)) as nodes:
        brief = {"text": "Too long?", "effort": "cycle"}
        mission = await nodes.first.missions.submit(brief, begin=True)
        await nodes.bridges[0].asked.wait()
        stopping = asyncio.create_task(getattr(nodes.second.missions, verb)(mission))
        if verb == "pause":
            await until(lambda: is_asked(nodes.first, mission, word), "the request")
            nodes.bridges[0].may.set()
        assert (await stopping)["status"] == word
        nodes.bridges[0].may.set()
        if verb == "pause":
            nodes.second.sharing.take_up()
            await nodes.second.missions.resume(mission)
            assert (await nodes.second.missions.wait_for_end(mission))["status"] == "done"


@pytest.mark.parametrize(("verb", "word"), [("cancel", "cancelled"), ("pause", "paused")])
async def test_a_node_that_accepts_no_missions_stops_what_it_runs(tmp_path: Path, verb: str, word: str) -> None:
    """Its disk was full once: it takes up nothing more, and does what another node asks of it."""
    async with two_nodes(tmp_path, open=(False, True)) as nodes:
        mission = await nodes.first.missions.submit({"text": "Too long?", "effort": "cycle"}, begin=True)
        await nodes.bridges[0].asked.wait()
        nodes.first.image.refusing = DiskFull("no room")
        nodes.first.sharing.take_up()
        await nodes.first.sharing.look()
        stopping = asyncio.create_task(getattr(nodes.second.missions, verb)(mission))
        await until(lambda: is_asked(nodes.first, mission, word), "the request")
        nodes.bridges[0].may.set()
        assert (await stopping)["status"] == word
        waits = await nodes.second.missions.submit({"text": "Not there?", "effort": "reflex"})
        for _ in range(3):
            await nodes.first.sharing.look()
        assert nodes.second.readings.mission(waits)["status"] == "queued"


async def test_whoever_asks_a_node_that_does_nothing_is_told_its_name(tmp_path: Path) -> None:
    """A node that lives and stops nothing is waited for some times of its lease, and no longer."""
    seams = Seams(opening=lambda given: replace(given, lease_clock=lambda: 0.0))
    # any pace: by a clock that stands no node falls silent
    async with two_nodes(tmp_path, open=(False, True), lease=0.5, seams=seams) as nodes:
        mission = await nodes.first.missions.submit({"text": "Too long?", "effort": "cycle"}, begin=True)
        await nodes.bridges[0].asked.wait()
        await nodes.first.sharing.aclose()
        with pytest.raises(Busy, match=re.escape(f"in 1.5 s: {node_name()}")) as told:
            await nodes.second.missions.cancel(mission)
        assert "end its process; then ask again" in told.value.remedy
        assert nodes.second.readings.mission(mission)["status"] == "running"
        nodes.bridges[0].may.set()


def recalled(uvm: UVM, text: str) -> list[str]:
    """The texts of the memories that match."""
    found = uvm.readings.recall(RecallQuery(text, None, "text"), 10, MemoryReach("tester"))
    return [each["text"] for each in found["recalled"]]


async def test_a_node_knows_what_another_remembers(tmp_path: Path) -> None:
    """Its indexes follow the image; a change of memories is made where somebody asks for it, one node at a time."""
    async with two_nodes(tmp_path) as nodes:
        pair = nodes.first, nodes.second
        for number in range(4):
            text = f"The lamp of pier {number} is lit at dusk."
            digest = hashlib.sha256(text.encode()).hexdigest()
            given = Incoming("tester", "default", "", f"pier {number}", "text/plain", text, digest, "user")
            await pair[number % 2].document_store.remember([given])
            for uvm in pair:
                assert text in recalled(uvm, f"lamp pier {number}")
        (line,) = (await asyncio.to_thread(nodes.first.readings.memories, 1))["memories"]
        await nodes.second.document_store.forget([line["document"]], "tester")
        assert len(recalled(nodes.first, "lamp dusk")) == len(recalled(nodes.second, "lamp dusk")) == 3


class Gate(SystemClock):
    """The machine's clock, on which nobody has slept enough before it may."""

    def __init__(self) -> None:
        self.may = asyncio.Event()
        self.may.set()

    async def sleep(self, seconds: float) -> None:
        """As any, once it may."""
        await self.may.wait()
        await super().sleep(seconds)


async def test_two_nodes_share_forty_missions_and_one_is_killed(tmp_path: Path, databases: tuple[str, str]) -> None:
    """All are done, and no call is paid twice but those that were in flight at the kill."""
    async with AsyncExitStack() as stack:
        gate, clock = Gate(), RacingClock()
        emulators = [Emulator(Options(latency_ms=50, parallel=8), each) for each in (gate, None)]
        for each in emulators:  # no router has to learn
            each.faults.add({"match": {"path": "/api/embed"}, "do": "status"})
        urls = [await stack.enter_async_context(each.serving()) for each in emulators]
        uvm = await stack.enter_async_context(node_at_work(tmp_path / "first", *databases, urls[0], clock))
        other = stack.enter_context(child(node_at_work_script.__file__, tmp_path / "second", *databases, urls[1]))
        while await heard(other) != "ready":
            pass
        gate.may.clear()
        briefs = [{"text": f"Question {number} of forty?", "effort": "reflex"} for number in range(10, 50)]
        halfway = asyncio.Event()
        ends = itertools.count(1)
        uvm.events.subscribe(
            lambda event, keys: halfway.set() if keys.get("status") == "done" and next(ends) == 15 else None
        )
        asked = [asyncio.create_task(uvm.missions.ask(brief)) for brief in briefs]
        await until(lambda: all(map(paid, emulators)), "the work of both")
        gate.may.set()
        await halfway.wait()
        other.kill()
        await clock.outlive_others(uvm.image)
        assert [each["status"] for each in await asyncio.gather(*asked)] == ["done"] * 40
        times = Counter(text for each in emulators for text in paid(each))
        again = {text for text, count in times.items() if count > 1}
        assert len(times) == 40
        assert max(times.values()) <= 2
        # Those of the killed node alone, and no more than it ran at once.
        assert len(again) <= AT_ONCE
        assert again <= set(paid(emulators[1]))


def paid(emulator: Emulator) -> list[str]:
    """The questions that an emulator was asked, one for each call."""
    asked = [each["body"]["messages"] for each in emulator.requests if each["path"] == "/api/chat"]
    return [found[0] for each in asked if (found := re.findall(r"Question \d+ of forty", json.dumps(each)))]
