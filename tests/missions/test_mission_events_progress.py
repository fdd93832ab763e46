"""What runs just now: a line a mission from its first event as a running one to the first as another."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.minds.scripted import QUESTION, Script, WaitingBridge, submit

from batos.image.ids import utc_now
from batos.missions.mission_events import RunningMissions
from batos.testing import scripted_uvm


async def test_a_running_mission_is_on_one_line(tmp_path: Path) -> None:
    """With its state, persona, calls, question and asker; it leaves when it ends, and another process's never came."""
    bridge = WaitingBridge(Script())
    async with scripted_uvm(tmp_path, bridge) as uvm:
        mission = await submit(uvm)
        assert uvm.status()["running"] == []
        await uvm.missions.begin(mission)
        await bridge.let(1)
        await bridge.arrived(4)
        # As a door asks, in a thread of its own.
        (line,) = (await asyncio.to_thread(uvm.status))["running"]
        assert (line["id"], line["state"], line["personas"], line["effort"]) == (
            mission,
            "DELEGATING",
            ["BRICK"],
            "cycle",
        )
        assert (line["calls"], line["attempt"], line["text"], line["user"]) == (4, 1, QUESTION, "tester")
        await uvm.missions.cancel(mission)
        assert uvm.status()["running"] == []


def test_what_a_mind_within_says_is_not_the_missions() -> None:
    """A state with a path is an inner mind's; events of missions that are not in the table change nothing."""
    running_missions = RunningMissions(utc_now)
    running_missions.on_event("mission.state", {"mission": "m-1", "state": "IDLE"})
    running_missions.on_event("mission.status", {"mission": "m-1", "status": "running", "attempt": 2})
    running_missions.on_event("mission.state", {"mission": "m-1", "state": "DELEGATING"})
    running_missions.on_event("mission.state", {"mission": "m-1", "state": "COMPLETE", "path": "council/brick"})
    running_missions.on_event("txn.commit", {"what": "image"})
    (line,) = running_missions.snapshot()
    assert (line["state"], line["attempt"], line["calls"]) == ("DELEGATING", 2, 0)
    running_missions.on_event("mission.status", {"mission": "m-1", "status": "waiting"})
    assert running_missions.snapshot() == []


@pytest.mark.parametrize("event", ["mission.done", "mission.failed"])
def test_what_ended_runs_no_more_although_its_status_was_not_written(event: str) -> None:
    """On a full disk no status is told, and the end is: another attempt of it would be told as a running one."""
    running_missions = RunningMissions(utc_now)
    for mission in ("m-1", "m-2"):
        running_missions.on_event("mission.status", {"mission": mission, "status": "running"})
    running_missions.on_event("mission.state", {"mission": "m-1", "state": "FAILED"})
    running_missions.on_event(event, {"mission": "m-1"})
    assert [each["id"] for each in running_missions.snapshot()] == ["m-2"]
