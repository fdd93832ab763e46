"""A process that is killed while it approves: the yes and the method are both there afterwards, or neither is."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from tests.approvals.coder_bridge import BRICK, CYCLE, Coding, waiting, waits
from tests.image.open_image import child, heard

from batos.image import roots
from batos.image.roots import named_objects
from batos.objects.method import Method
from batos.objects.prototype import own_slots
from batos.testing import scripted_uvm
from batos.uvm import UVM


def installed(uvm: UVM) -> dict[str, str]:
    """The sources of BRICK's methods, by selector."""
    with uvm.image.snapshot() as root:
        slots = own_slots(named_objects(root)[BRICK]).items()
        return {selector: value.source for selector, value in slots if isinstance(value, Method)}


def approved(uvm: UVM) -> dict[str, str]:
    """The sources that somebody said yes to, by selector."""
    with uvm.image.snapshot() as root:
        known = [each for each in root[roots.APPROVALS].values() if each.word == "approved"]
        return {each.candidate["selector"]: each.candidate["source"] for each in known}


@pytest.mark.parametrize(("point", "whole"), [("begun", False), ("voted", False), ("finished", True), ("told", True)])
async def test_a_yes_and_its_method_are_one(tmp_path: Path, point: str, whole: bool) -> None:
    """Whatever was reached; the mission that waited goes on in the next process, and nothing is made again."""
    bridge = Coding()
    async with scripted_uvm(tmp_path, bridge, memory=False, install="ask") as uvm:
        mission = await waits(uvm, CYCLE)
    with child("script_approve.py", tmp_path, point) as process:
        assert await heard(process) == "3"
        assert await asyncio.to_thread(process.wait) == -signal.SIGKILL
    async with scripted_uvm(tmp_path, bridge, memory=False, install="ask") as uvm:
        assert installed(uvm) == approved(uvm)
        assert len(installed(uvm)) == (3 if whole else 0)
        assert len(waiting(uvm)) == (0 if whole else 3)
        if not whole:
            assert await uvm.missions.recover() == []
            await uvm.approvals.approve([each["id"] for each in waiting(uvm)], "ada")
        assert await uvm.missions.recover() == [mission]
        await uvm.missions.begin(mission)
        done = await uvm.missions.wait_for_end(mission)
        assert done["status"] == "done"
        assert [each["as"] for each in done["provenance"]["methods"]] == ["method"] * 3
        assert {each["revision"] for each in done["provenance"]["methods"]} == {"1"}
        assert bridge.written == 3
