"""The verbs of motion at a door: a verdict is kept with its mission, and the heartbeat says what it did."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.autotelic.test_answer_measures import ASKED, acts, ask, winding
from tests.history.test_as_of_past_questions import Door
from tests.memory.test_document_store import incoming
from tests.memory.test_fold_store import logs

from batos.autotelic.heartbeat import Allowance, Duty
from batos.autotelic.model_missions import MissionTask
from batos.protocol.errors import BriefError, NotFound, Refused
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import Seams


async def test_a_person_rates_an_answer_and_changes_their_mind(tmp_path: Path) -> None:
    """The newest verdict is shown with the mission, and an undo beside it; nothing is rated that has no answer."""
    async with scripted_uvm(tmp_path, winding()) as uvm:
        door, first = Door(uvm), await ask(uvm, ASKED)
        await door("rate", mission=first["id"], verdict="good")
        rated = await door("rate", mission=first["id"], verdict="bad", why="It names the wrong man.")
        assert (rated["outcome"], [each["act"] for each in rated["outcomes"]]) == (-1.0, ["rated_bad"])
        shown = await door("show", mission=first["id"])
        assert shown["outcomes"][0]["why"] == "It names the wrong man."
        await door("undo", mission=first["id"])
        assert acts(uvm, first["id"]) == ["rated_bad", "undone"]
        await door("redo", mission=first["id"])
        assert acts(uvm, first["id"]) == ["rated_bad"]
        with pytest.raises(BriefError, match="good or bad"):
            await door("rate", mission=first["id"])
        failing = await uvm.missions.submit({"text": ASKED, "user": "tester"}, begin=False)
        with pytest.raises(Refused, match="there is no answer"):
            await door("rate", mission=failing, verdict="good")


async def test_the_last_question_is_a_persons(tmp_path: Path) -> None:
    """Missions that the mind asks itself in this user's name come after it; each is found by its id."""
    async with scripted_uvm(tmp_path, ScriptedBridge(), user="ann") as uvm:
        door = Door(uvm)
        mine = await uvm.missions.ask({"text": ASKED, "user": "ann"})
        brief, files = MissionTask("Who winds it?", "ann", "items d-1", "Maro winds it.").brief()
        own = await uvm.missions.ask(brief, files)
        assert (await door("rate", mission="last", verdict="good"))["mission"] == mine["id"]
        assert (await door("show", mission=own["id"]))["id"] == own["id"]
        for user in ("ann", None):
            assert list((await door("erase", target="last", user=user, dry_run=True))["missions"]) == [mine["id"]]
        with pytest.raises(NotFound, match="you asked fewer"):
            await door("show", mission="last-1")


async def test_memories_that_say_the_same_are_folded_by_a_beat(tmp_path: Path) -> None:
    """Without a model; `status` and `heartbeat` tell what was done."""
    clock = Clock()
    async with scripted_uvm(tmp_path, ScriptedBridge(), seams=Seams(clock=clock), user="ann") as uvm:
        given = [incoming(text, f"/notes/{n}") for n, text in enumerate(logs(20))]
        await uvm.document_store.remember(given)
        clock.now += timedelta(days=60)
        door = Door(uvm)
        assert (await door("heartbeat"))["on"] is False
        told = await door("heartbeat_now")
        assert "regions of memories folded" in told["did"][0]
        assert (await door("status"))["heartbeat"]["did"] == told["did"]
        again = await door("heartbeat_now")
        assert again["did"][:5] == [
            f"{name}: nothing to do" for name in ("curator", "weights", "alarms", "items", "sealed")
        ]
        assert again["did"][5].endswith("of the 60 questions that a trial needs")


async def test_a_server_that_stops_waits_for_one_step_of_a_beat(tmp_path: Path) -> None:
    """A person asked for the beat, and its duty would go on for as long as nobody asks anything."""
    steps = asyncio.Event()

    async def toil(allowance: Allowance) -> str:
        while allowance.go_on():
            steps.set()
            await asyncio.sleep(0)
        return "a part"

    async with scripted_uvm(tmp_path, ScriptedBridge()) as uvm:
        door = Door(uvm)
        uvm.heartbeat.add(Duty("toiling", lambda root: "", toil))
        beating = asyncio.ensure_future(door("heartbeat_now"))
        await steps.wait()
        await door.dispatcher.wait_until_settled()
        assert "toiling: a part" in (await beating)["did"]


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now
