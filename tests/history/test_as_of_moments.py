"""Moments as people name them: a time, a mission, a commit; and what is no moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.history.test_as_of_past_questions import Door
from tests.waiting import until

from batos.history.as_of import PastReadings, find_moment
from batos.image import roots
from batos.image.ids import iso, tid_text
from batos.image.past import moment_of, newest_commit
from batos.protocol.errors import BatosError, BriefError, NotFound, PackedAway, Refused
from batos.testing import scripted_uvm
from batos.uvm import UVM


async def test_a_moment_is_found_by_each_of_its_names(tmp_path: Path) -> None:
    """A mission's is right after it was published; a time between two commits sees the first."""
    async with scripted_uvm(tmp_path) as uvm:
        mission = (await uvm.missions.ask({"text": "What holds?", "effort": "reflex"}))["id"]
        moment = find_moment(uvm.readings, mission)
        assert moment.mission == mission
        assert find_moment(uvm.readings, "last", "tester") == moment
        assert find_moment(uvm.readings, tid_text(moment.tid)).tid == moment.tid
        at = moment_of(moment.tid)
        assert moment.as_dict() == {"at": iso(at), "tid": tid_text(moment.tid), "mission": mission}
        soon = at + timedelta(milliseconds=5)
        await until(lambda: datetime.now(UTC) > soon)
        later = find_moment(uvm.readings, soon.isoformat())
        assert moment.tid < later.tid


async def test_a_mission_is_remembered_at_its_own_moment(tmp_path: Path) -> None:
    """Not before that commit, and nothing later is there; one that was undone first has the moment of its publication.

    A door that may write remembers it first.
    """
    async with scripted_uvm(tmp_path) as uvm:
        ask = Door(uvm)
        async with uvm.mission_memory._writing:
            missions = [str((await asked(uvm, f"The pier has {count} posts."))["id"]) for count in (3, 4)]
            waits = find_moment(uvm.readings, missions[0])
            assert waits.waits
        found = await ask("memories", as_of=missions[0])
        told = [each["mission"] for each in found["memories"]]
        assert set(told) == set(missions), "both were remembered in one commit"
        moment = find_moment(uvm.readings, missions[0])
        assert (moment.waits, moment.tid > waits.tid, moment.tid) == (False, True, newest_commit(uvm.image.db))
        assert found["as_of"] == moment.as_dict()
        before = find_moment(uvm.readings, tid_text((int.from_bytes(moment.tid, "big") - 1).to_bytes(8, "big")))
        assert PastReadings(uvm.readings).readings(before).memories(9)["memories"] == []
        async with uvm.mission_memory._writing:
            third = str((await asked(uvm, "The pier has 5 posts."))["id"])
            at = find_moment(uvm.readings, third).tid
            await ask("undo", mission=third, user="tester")
            assert find_moment(uvm.readings, third).tid == at
        assert find_moment(uvm.readings, missions[0]) == moment


async def asked(uvm: UVM, text: str) -> dict[str, Any]:
    """A mission that is answered, and not yet remembered."""
    return dict(await uvm.missions.ask({"text": text, "effort": "reflex", "user": "tester"}))


async def test_what_is_no_moment_is_refused(tmp_path: Path) -> None:
    """With the reason and what to do."""
    async with scripted_uvm(tmp_path) as uvm:
        waits = await uvm.missions.submit({"text": "What holds?", "user": "other"})
        newest = newest_commit(uvm.image.db)
        named: dict[str, tuple[type[BatosError], str]] = {
            "soon": (BriefError, "no moment"),
            "2026-11-21T09:30": (BriefError, "no time zone"),
            iso(datetime.now(UTC) + timedelta(days=1)): (BriefError, "future"),
            tid_text((int.from_bytes(newest, "big") + 1).to_bytes(8, "big")): (BriefError, "future"),
            "m-01M8BVJEEHFT62WSFMARE9S869": (NotFound, "no mission"),
            waits: (Refused, "nothing of it has been published"),
        }
        for name, (error, said) in named.items():
            with pytest.raises(error, match=said):
                find_moment(uvm.readings, name)
        with pytest.raises(NotFound):
            find_moment(uvm.readings, waits, "tester")


async def test_a_mission_whose_commit_is_packed_away_names_the_oldest_moment(tmp_path: Path) -> None:
    """Where its status has changed since it was published."""
    async with scripted_uvm(tmp_path, memory=False) as uvm:
        mission = (await uvm.missions.ask({"text": "What holds?", "effort": "reflex"}))["id"]
        await uvm.image.writer.apply(lambda root: roots.mission_record(root, mission).status.become("undone", ""))
        uvm.image.db.pack()
        with pytest.raises(PackedAway):
            find_moment(uvm.readings, mission)
