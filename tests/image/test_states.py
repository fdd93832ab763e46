"""A process may die at any write of a mission: the next one ends it as it would have ended, and pays nothing twice."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from tests.image.missions import thinking
from tests.image.states import States
from tests.minds.scripted import Script

from batos.image import roots
from batos.inference.canonical import canonical
from batos.testing import ScriptedBridge
from batos.uvm import UVM


def paid(uvm: UVM) -> set[str]:
    """The messages of each call that the journal has an answer for."""
    missions = [line["id"] for line in uvm.readings.newest(99)]
    records = uvm.journal.read(missions)
    return {canonical(record.request["messages"]).decode() for record in records if record.state == "done"}


async def goes_on(home: Path, accepted: bool) -> bool:
    """Recover and run what waits; everything ends well, once. Answers whether the mission was there."""
    bridge = ScriptedBridge(Script())
    async with thinking(home, bridge) as uvm:
        known = paid(uvm)
        for mission in await uvm.missions.recover():
            await uvm.missions.run(mission)
        shown = [uvm.readings.mission(line["id"]) for line in uvm.readings.newest(99)]
        assert [each["status"] for each in shown] == ["done"] * len(shown)
        assert all(each["answer"] for each in shown)
        assert uvm.image.unfolded_missions() == []
        assert not known & {canonical(list(each.messages)).decode() for each in bridge.history}
        with uvm.image.snapshot() as root:
            assert root[roots.STATISTICS].get("calls", 0) == sum(each["cost"]["calls"] for each in shown)
    assert shown or not accepted, "a mission that was accepted is lost"
    return bool(shown)


async def test_killed_at_any_write_of_a_mission(tmp_path: Path, subtests: pytest.Subtests) -> None:
    """Before each write of image and journal, in its midst, when it stands there, and when it counts."""
    home = tmp_path / "home"
    states = States((home,), tmp_path / "states")
    async with thinking(home) as uvm:
        await uvm.readiness.check()  # what the router learns of the codex is written once, and is no part of a mission
    image, journal = (states.storage(home, name) for name in ("live_image", "journal"))
    async with thinking(home, image_factory=image, journal_factory=journal) as uvm:
        mission = await uvm.missions.submit({"text": "Why is the sea salt?", "effort": "cycle"})
        before = len(states.found)
        await uvm.missions.run(mission)
    assert before > 2
    assert len(states.found) > 24
    for number, folder in enumerate(states.found):
        with subtests.test(f"state {number}"):
            await goes_on(folder / "home", number >= before)
        await asyncio.to_thread(shutil.rmtree, folder)
