"""The note of suspected missions: written once, dropped at the end, and read after a death."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.minds.scripted import submit
from tests.missions.test_recovery import counted, dies

from batos.image.nodes.claims import DEATHS
from batos.testing import scripted_uvm
from batos.uvm import UVM, Seams


def noted(uvm: UVM) -> dict[str, Any]:
    """The notes in the image."""
    with uvm.image.snapshot() as root:
        return dict(root.get("suspected") or {})


async def test_a_process_that_dies_while_one_waits_acquits_it(tmp_path: Path) -> None:
    """A suspected mission that has died alone four times begins its count anew; a clean end leaves no note."""
    async with scripted_uvm(tmp_path, seams=Seams(quiet=600)) as uvm:
        mission = await submit(uvm)
        for _ in range(DEATHS + 4):
            await dies(uvm, mission)
        assert counted(uvm, mission) == ("queued", DEATHS + 3)
        await uvm.missions.begin(mission)
        await asyncio.sleep(0)
        await uvm.image.writer.apply(lambda root: None)  # behind the note
        assert noted(uvm) == {"0": (mission,)}
        await uvm.missions.recover()
        assert (counted(uvm, mission), noted(uvm)) == (("queued", DEATHS), {})


async def test_a_clean_end_drops_the_note(tmp_path: Path) -> None:
    """What is left behind is by a process that died."""
    async with scripted_uvm(tmp_path, memory=False, seams=Seams(quiet=600)) as uvm:
        mission = await submit(uvm)
        for _ in range(DEATHS + 4):
            await dies(uvm, mission)
        await uvm.missions.begin(mission)
    async with scripted_uvm(tmp_path, memory=False) as uvm:
        assert noted(uvm) == {}
        await uvm.missions.recover()
        assert counted(uvm, mission) == ("queued", DEATHS + 3)


async def test_a_note_that_cannot_be_written_ends_no_server(tmp_path: Path) -> None:
    """As in a damaged image, where a mission is queued that is not there; questions are answered all the same."""
    async with scripted_uvm(tmp_path, memory=False, seams=Seams(quiet=600)) as uvm:
        mission = await submit(uvm)
        for _ in range(DEATHS + 4):
            await dies(uvm, mission)
        await uvm.image.writer.apply(lambda root: root["queued"].insert("m-0"))
        await uvm.missions.begin(mission)
        await asyncio.sleep(0)
        await uvm.image.writer.apply(lambda root: root["queued"].remove("m-0"))  # behind the note
        assert noted(uvm) == {}
        assert uvm.readings.mission(await submit(uvm))["status"] == "queued"
