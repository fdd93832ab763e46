"""A process that is killed while it begins what is due: each moment has one mission, which is answered."""

from __future__ import annotations

import asyncio
import signal
from datetime import timedelta
from pathlib import Path

import pytest
from tests.agency.test_schedules import HOUR, START, World
from tests.image.open_image import child, heard

from batos.testing import scripted_uvm
from batos.uvm import Seams


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("point", ["begun", "voted", "finished"])
async def test_a_kill_loses_no_moment_and_doubles_none(tmp_path: Path, point: str, number: int) -> None:
    """Whichever commit it was: the one that accepts, the one that begins, or that of the answer."""
    told = World()
    seams = Seams(clock=lambda: told.now)
    async with scripted_uvm(tmp_path, told.bridge, memory=False, user="ann", seams=seams) as told.uvm:
        name = await told.add()
    moment = START + HOUR
    with child(Path(__file__).parent / "script_schedule.py", tmp_path, point, number, moment.isoformat()) as process:
        assert await heard(process) == "begins"
        assert await asyncio.to_thread(process.wait) == -signal.SIGKILL
    told.now = moment + timedelta(seconds=5)
    async with scripted_uvm(tmp_path, told.bridge, memory=False, user="ann", seams=seams) as told.uvm:
        for mission in await told.uvm.missions.recover():
            await told.uvm.missions.begin(mission)
        await told.at(told.now)
        for mission in told.missions():
            await told.uvm.missions.wait_for_end(mission)
        assert list(told.missions().values()) == ["done"]
        (entry,) = told.inbox()
        found = told.schedule(name)
        assert (found["runs"], found["skipped"], found["mission"]) == (1, 0, entry["mission"])
