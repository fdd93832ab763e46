"""Packing: old states go, the present stays, and nothing goes that an open mission still reads."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.care.test_verification import bridge
from tests.history import lived
from tests.history.test_as_of_past_questions import Door
from tests.history.test_undoing import asked

from batos.care import verification
from batos.care.packing import Packer, PackerParts
from batos.concurrency.threads import LongWork
from batos.history import record_chain
from batos.image import roots
from batos.image.transactions import snapshot
from batos.protocol.errors import DiskFull, PackedAway
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM


@dataclass
class Clock:
    """A clock that is set ahead."""

    ahead: timedelta = field(default_factory=timedelta)

    def __call__(self) -> datetime:
        """The time."""
        return datetime.now(UTC) + self.ahead


@asynccontextmanager
async def packed(
    home: Path, model: ScriptedBridge | None = None, **parts: Any
) -> AsyncIterator[tuple[UVM, Packer, Clock]]:
    """A mind in files, and a packer that keeps nothing beside the present unless told otherwise."""
    clock, model = Clock(), model or bridge()
    async with scripted_uvm(home, model, memory=False, method_control=0) as uvm:
        given = {"days": 0.0, "least_kept": timedelta(), **parts}
        packer = Packer(PackerParts(uvm.image, uvm.events, clock, uvm.workers.is_idle, **given))
        yield uvm, packer, clock
        await packer.aclose()


async def test_a_pack_frees_what_is_old_and_changes_nothing_that_is_said(tmp_path: Path) -> None:
    """Every answer is the same, the image is sound, the chains hold; the past before it is gone, and says so."""
    async with packed(tmp_path) as (uvm, packer, _):
        missions = await lived.live(uvm, 2)
        await uvm.mission_memory.write()  # else in the background, between the two looks
        moment = uvm.readings.mission(missions[0])["tid"]
        before = await asyncio.to_thread(lived.all_that_is_said, uvm.readings)
        told = await packer.pack()
        assert told["after"]["bytes"] < told["before"]["bytes"]
        assert told["after"]["journal_bytes"] <= told["before"]["journal_bytes"]
        assert await asyncio.to_thread(lambda: list(tmp_path.glob("*.old"))) == []
        after = await asyncio.to_thread(lived.all_that_is_said, uvm.readings)
        assert {key for key in before if after.get(key) != before[key]} <= {"names"}  # the pack itself is noted
        assert await asyncio.to_thread(verification.find_faults, uvm.image.db) == []
        with snapshot(uvm.image.journal_db) as journal:
            assert record_chain.read_calls(journal).find_faults() == []
        with pytest.raises(PackedAway):
            await Door(uvm)("show", mission=missions[0], as_of=moment)
        assert (await asked(uvm, "What is a sluice?"))["status"] == "done"


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("to_now", [False, True])
async def test_a_pack_without_room_changes_nothing(tmp_path: Path, *, to_now: bool) -> None:
    """The error says what is needed, missions go on, and with room it is packed."""
    async with packed(tmp_path) as (uvm, packer, _):
        await lived.live(uvm, 2)
        await uvm.mission_memory.write()  # else in the background, on the full disk
        before = uvm.image.sizes()
        with full_disk(10_000), pytest.raises(DiskFull, match=f"for {before['bytes']:,} bytes") as full:
            await (packer.pack_to_now(1, LongWork()) if to_now else packer.pack())
        assert "live_image.fs" in str(full.value)
        assert (uvm.image.sizes(), uvm.image.refusing) == (before, None)
        assert await asyncio.to_thread(lambda: list(tmp_path.glob("*.pack"))) == []
        assert (await asked(uvm, "What is a sluice?"))["status"] == "done"
        assert (await packer.pack())["after"]["bytes"] < before["bytes"]


async def test_an_open_mission_holds_a_pack_back(tmp_path: Path) -> None:
    """It commits on the state that it began with; the pack says which one held it."""
    async with packed(tmp_path) as (uvm, packer, _):
        await asked(uvm, "Who winds the lamp?")
        mission = await uvm.missions.submit({"text": "What holds a pier?", "user": "tester", "effort": "reflex"})
        with uvm.image.transaction(mission) as transaction:
            for number in range(5):
                await uvm.document_store.remember([lived.document(f"{number}.md", lived.FACTS[number % 4])])
            told = await packer.pack()
            assert told["held_by"] == mission
            assert len(transaction.root[roots.DOCUMENTS]) < 5
            list(transaction.root[roots.MISSIONS].items())
        assert (await uvm.missions.run(mission))["status"] == "done"
        assert (await packer.pack())["held_by"] == ""


class ThinkingSlowly(ScriptedBridge):
    """A model that takes its time, in which something else is done."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def think(self, request: Any, on_token: Any = None, *, stream: bool = True) -> Any:
        """Think, but for a slow question do the other thing first."""
        if self.meanwhile is not None and "slowly" in request.messages[-1]["content"]:
            await self.meanwhile()
        return await super().think(request, on_token, stream=stream)


async def test_a_question_to_the_past_holds_a_pack_back(tmp_path: Path) -> None:
    """It is answered from the state that it was asked about; then that may go."""
    model = ThinkingSlowly(vectors=lived.meaning)
    async with packed(tmp_path, model) as (uvm, packer, _):
        missions = await lived.live(uvm, 2)
        told = []

        async def pack() -> None:
            told.append((await packer.pack())["held_by"])

        model.meanwhile = pack
        door = Door(replace(uvm, packer=packer))
        brief = {"text": "What holds, slowly?", "effort": "cycle"}
        found = await door("submit", brief=brief, follow=True, as_of=missions[0])
        assert found["status"] == "done"
        assert set(told) == {f"a question as of {found['as_of']['at']}"}
        assert (await packer.pack())["held_by"] == ""
        with pytest.raises(PackedAway):
            await door("submit", brief=brief, follow=True, as_of=missions[0])


async def test_missions_go_on_while_a_pack_runs(tmp_path: Path) -> None:
    """Nothing of them is lost."""
    async with packed(tmp_path) as (uvm, packer, _):
        for number in range(20):
            await asked(uvm, f"What is a sluice of {number}?")
        asking = [asyncio.ensure_future(uvm.missions.ask({"text": f"Why {n}?", "effort": "reflex"})) for n in range(12)]
        for _ in range(3):
            await packer.pack()
        done = await asyncio.gather(*asking)
        assert {each["status"] for each in done} == {"done"}
        assert len(uvm.readings.newest(99)) == 32
        assert await asyncio.to_thread(verification.find_faults, uvm.image.db) == []


async def test_the_last_hour_stays_whatever_is_asked(tmp_path: Path) -> None:
    """A question to the past may be under way."""
    async with packed(tmp_path, least_kept=timedelta(hours=1)) as (uvm, packer, _):
        told = await asked(uvm, "Who winds the lamp?")
        await packer.pack(0)
        assert (await Door(uvm)("show", mission=told["id"], as_of=told["tid"]))["id"] == told["id"]


async def test_it_packs_by_itself_once_a_day_when_there_is_a_day_to_pack(tmp_path: Path) -> None:
    """Not while a mission runs, not twice, and not before there is anything."""
    async with packed(tmp_path, days=10.0) as (uvm, packer, clock):
        assert not await packer.pack_if_due()
        await asked(uvm, "Who winds the lamp?")
        assert not await packer.pack_if_due()
        clock.ahead = timedelta(days=12)
        waiting = await uvm.missions.submit({"text": "Why?", "user": "tester"})
        await uvm.missions.run(waiting)
        assert await packer.pack_if_due()
        assert not await packer.pack_if_due()
        clock.ahead = timedelta(days=12, hours=23)
        assert not await packer.pack_if_due()
        clock.ahead = timedelta(days=14)
        assert await packer.pack_if_due()
