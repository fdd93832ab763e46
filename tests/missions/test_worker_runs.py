"""A worker that is reserved for a mission while it is accepted: one commit, and no place that is kept by nobody."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.image.missions import thinking
from tests.image.open_image import child
from tests.minds.scripted import Script, WaitingBridge
from tests.waiting import HANG

from batos.inference.ollama import catalogue
from batos.protocol.errors import Busy
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM

QUESTION = {"text": "Why?", "effort": "reflex"}
#: More than the turns of the loop that an acceptance takes here; a later leaving meets the run.
MOST_TURNS = 12


class Listing(ScriptedBridge):
    """A daemon that notes when its models are listed."""

    def __init__(self) -> None:
        super().__init__()
        self.listed = asyncio.Event()

    async def list(self) -> Sequence[catalogue.ModelRow]:
        """As scripted."""
        self.listed.set()
        return await super().list()


def statuses(uvm: UVM) -> list[tuple[str, int]]:
    """The status of each mission of the image, and how often it began."""
    with uvm.image.snapshot() as root:
        found = [uvm.image.find(root, each["id"])[1] for each in uvm.readings.newest(99)]
        return [(status.word, status.attempts) for status in found]


async def test_a_free_worker_begins_with_the_commit_of_the_acceptance(tmp_path: Path) -> None:
    """The mission is never queued: the commit that accepts it has it running, in its first attempt."""
    bridge = WaitingBridge(Script())
    told: list[tuple[str, Any]] = []
    async with scripted_uvm(tmp_path, bridge) as uvm:
        before = uvm.image.writer.commits
        uvm.events.subscribe(lambda event, keys: told.append((event, keys.get("status"))))
        mission = await uvm.missions.submit(QUESTION, begin=True)
        assert uvm.image.writer.commits == before + 1
        assert statuses(uvm) == [("running", 1)]
        assert [each for each in told if each[0].startswith("mission.")] == [
            ("mission.accepted", None),
            ("mission.status", "running"),
        ]
        assert uvm.workers.running == (mission,)
        await uvm.missions.cancel(mission)


async def test_without_a_free_worker_it_is_accepted_and_waits_to_be_begun(tmp_path: Path) -> None:
    """The second of two waits where one may run; begun, it runs when the first has left."""
    async with scripted_uvm(tmp_path, WaitingBridge(Script()), missions=1) as uvm:
        first = await uvm.missions.submit(QUESTION, begin=True)
        second = await uvm.missions.submit(QUESTION, begin=True)
        assert (uvm.workers.running, uvm.workers.has(second)) == ((first,), False)
        assert sorted(statuses(uvm)) == [("queued", 0), ("running", 1)]
        await uvm.missions.begin(second)
        await uvm.missions.cancel(first)
        assert uvm.workers.running == (second,)
        await uvm.missions.cancel(second)


async def test_what_is_refused_gives_its_worker_back(tmp_path: Path) -> None:
    """A full queue refuses as before; the only worker is free for the next."""
    async with scripted_uvm(tmp_path, missions=1, queue=1) as uvm:
        waits = await uvm.missions.submit(QUESTION)
        with pytest.raises(Busy):
            await uvm.missions.submit(QUESTION, begin=True)
        assert uvm.workers.is_idle()
        assert (await uvm.missions.run(waits))["status"] == "done"
        assert (await uvm.missions.ask(QUESTION))["status"] == "done"


async def test_the_models_are_looked_at_while_the_mission_is_accepted(tmp_path: Path) -> None:
    """The request is made before the acceptance is on the disk; no mission of the image is needed for it."""
    bridge, gate = Listing(), threading.Event()
    async with scripted_uvm(tmp_path, bridge) as uvm:
        bridge.listed.clear()
        uvm.image.thread.submit(gate.wait)
        asked = asyncio.create_task(uvm.missions.ask(QUESTION))
        async with asyncio.timeout(HANG):
            await bridge.listed.wait()
        assert statuses(uvm) == []
        gate.set()
        assert (await asked)["status"] == "done"


@given(turns=st.integers(0, MOST_TURNS), stops=st.booleans())
def test_who_leaves_while_it_is_accepted_leaves_nothing_running(turns: int, stops: bool) -> None:
    """Cancelled or stopped after any number of the loop's turns, the mission is not there, or waits, or has ended."""

    async def leaving() -> None:
        async with scripted_uvm(home, missions=1) as uvm:
            asked = asyncio.create_task(uvm.missions.ask(QUESTION))
            for _ in range(turns):
                await asyncio.sleep(0)
            if stops:
                await uvm.workers.stop()
            else:
                asked.cancel()
            with suppress(asyncio.CancelledError):
                await asked
            rested = asyncio.Event()
            uvm.workers.rested.call(rested.set)
            if not (stops or uvm.workers.is_idle()):
                await rested.wait()
            assert all(word in {"queued", "cancelled", "done"} for word, _ in statuses(uvm))
            assert uvm.workers.running == ()
            if not stops:
                assert (await uvm.missions.ask(QUESTION))["status"] == "done"

    with TemporaryDirectory() as name:
        home = Path(name)
        asyncio.run(leaving())


@pytest.mark.parametrize(("moment", "there"), [("before", []), ("after", [("running", 1)])])
async def test_a_kill_leaves_it_whole_or_not_at_all(tmp_path: Path, moment: str, there: list[tuple[str, int]]) -> None:
    """After SIGKILL the mission is not there, or was running: the next process queues it again, and it ends."""
    with child(Path(__file__).parent / "script_begin.py", tmp_path, moment) as process:
        assert await asyncio.to_thread(process.wait) == -signal.SIGKILL
    async with thinking(tmp_path) as uvm:
        assert statuses(uvm) == there
        for mission in await uvm.missions.recover():
            assert (await uvm.missions.run(mission))["status"] == "done"
        assert [word for word, _ in statuses(uvm)] == ["done"] * len(there)
        assert uvm.image.unfolded_missions() == []
