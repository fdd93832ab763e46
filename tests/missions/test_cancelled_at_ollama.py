"""Cancelling and pausing while a daemon answers: its inference stops or is waited for, and no trace is left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.image.open_image import dump
from tests.missions.pace import PATIENT, MovedClock
from tests.waiting import HANG, until

from batos.config import Settings
from batos.events import Events
from batos.image import roots
from batos.uvm import UVM, Seams, open_uvm
from ollama_emulator.emulator import Emulator, Options

#: A daemon whose answers have no end: forty tokens a second, after a load of a second.
ENDLESS = Options(endless=True, tok_s=40.0, load_s=1.0)


class EventLog:
    """The events so far, and what is waited for."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Mapping[str, Any]]] = []
        self._changed = asyncio.Event()

    def __call__(self, event: str, keys: Mapping[str, Any]) -> None:
        """Take an event."""
        self.told.append((event, keys))
        self._changed.set()

    async def until(self, is_so: Callable[[str, Mapping[str, Any]], bool]) -> None:
        """Wait for an event."""
        async with asyncio.timeout(HANG):
            while not any(is_so(*each) for each in self.told):
                self._changed.clear()
                await self._changed.wait()


@asynccontextmanager
async def answering(home: Path, seams: Seams | None = None) -> AsyncIterator[tuple[UVM, Emulator, EventLog]]:
    """A mind that thinks with such a daemon."""
    heard = EventLog()
    emulator = Emulator(ENDLESS)
    emulator.faults.add({"match": {"path": "/api/embed"}, "do": "status", "status": 501, "error": "no embeddings"})
    async with emulator.serving() as url:
        usual: dict[str, Any] = {"user": "tester", "image": "memory://endless", "install": "never", **PATIENT}
        async with open_uvm(Settings(home=home, ollama_host=url, **usual), Events(heard, log=False), seams) as uvm:
            await uvm.readiness.genesis()
            await uvm.readiness.check()
            yield uvm, emulator, heard


def records_of(uvm: UVM, mission: str) -> set[bytes]:
    """A mission's three records, and the trees in which they stand."""
    with uvm.image.snapshot() as root:
        trees = [root[name] for name in (roots.MISSIONS, roots.UNFOLDED, roots.TALLY)]
        return {each._p_oid or b"" for each in (*root[roots.MISSIONS][mission], *trees)}


def answered_by(emulator: Emulator) -> int:
    """How many requests the daemon answers now."""
    return sum(runner.refs for runner in emulator.scheduler.runners.values())


async def answers_nobody(emulator: Emulator) -> None:
    """Wait until the daemon has seen that whoever asked is gone."""
    await until(lambda: not answered_by(emulator), "the end of all answers")


async def test_cancelling_stops_the_inference_and_leaves_no_trace(tmp_path: Path) -> None:
    """The daemon answers nobody any more, the image has the mission's status and nothing else, and its cost is told."""
    async with answering(tmp_path) as (uvm, emulator, heard):
        before = dump(uvm.image)
        mission = await uvm.missions.submit({"text": "How do I build a bridge?", "effort": "reflex"})
        await uvm.missions.begin(mission)
        await heard.until(lambda event, keys: event == "mission.token")
        assert answered_by(emulator) == 1
        told = await uvm.missions.cancel(mission)
        await answers_nobody(emulator)
        assert (told["status"], told["cost"]["calls"]) == ("cancelled", 1)
        assert told["reason"]["message"] == "the mission was cancelled"
        assert all(told["cost"][name] > 0 for name in ("seconds", "prompt_tokens", "answer_tokens", "wasted"))
        assert "answer" not in told
        after = dump(uvm.image)
        changed = {oid for oid in before.keys() | after.keys() if before.get(oid) != after.get(oid)}
        assert changed <= records_of(uvm, mission)
        (record,) = uvm.journal.read([mission])
        assert (record.state, bool(record.partial)) == ("cut", True)


async def test_a_deadline_stops_the_inference_too(tmp_path: Path) -> None:
    """The mission ends as failed, timed out, and says what it cost."""
    clock = MovedClock()
    async with answering(tmp_path, Seams(clock=clock)) as (uvm, emulator, heard):
        mission = await uvm.missions.submit({"text": "How?", "effort": "council", "deadline": clock.deadline})
        await uvm.missions.begin(mission)
        await heard.until(lambda event, keys: event == "inference.start")
        clock.ring(uvm, mission)
        told = await uvm.missions.wait_for_end(mission)
        await answers_nobody(emulator)
        assert (told["status"], told["reason"]["code"], told["cost"]["calls"] > 0) == ("failed", "timed_out", True)


async def test_a_pause_pays_for_the_call_that_is_under_way(tmp_path: Path) -> None:
    """Afterwards the daemon is asked nothing; the mission goes on from the journal, and makes no call twice."""
    async with answering(tmp_path) as (uvm, emulator, heard):
        mission = await uvm.missions.submit({"text": "How do I build a house?", "effort": "cycle", "persona": "BRICK"})
        await uvm.missions.begin(mission)
        await heard.until(lambda event, keys: event == "inference.first_token")
        told = await uvm.missions.pause(mission)
        assert (told["status"], answered_by(emulator)) == ("paused", 0)
        paid = [record.key for record in uvm.journal.read([mission]) if record.state == "done"]
        assert paid
        asked = len(emulator.requests)
        await uvm.missions.resume(mission)
        await heard.until(lambda event, keys: len(emulator.requests) > asked)
        await uvm.missions.cancel(mission)
        await answers_nobody(emulator)
        again = [record.key for record in uvm.journal.read([mission])]
        assert [again.count(key) for key in paid] == [1] * len(paid)
