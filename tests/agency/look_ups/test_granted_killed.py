"""A read of the world whose process is killed behind it: the next run answers from the journal and asks nobody."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from tests.agency import script_reading
from tests.image.open_image import child
from tests.methods.execution.stub_api import serving
from tests.waiting import HANG

from batos.testing import ScriptedBridge, scripted_uvm

FARE = {"island": "Skarv", "adult": 9.75, "car": 29.0}


@pytest.mark.parametrize("point", ["read", "asked", "committed"])
async def test_what_was_read_before_a_kill_is_not_asked_for_again(own_home: Path, point: str) -> None:
    """The service counts one request over both processes; the answer rests on its reply, with the same time."""
    with serving({"/v1/fares/Skarv": (200, FARE)}) as service:
        async with scripted_uvm(own_home, ScriptedBridge(), memory=False, install="now") as uvm:
            await service.grant(uvm)
            message = {"receiver": "ferries", "selector": "fares_", "arguments": ["Skarv"]}
            await uvm.missions.ask({"message": message})  # the tool is made
        service.asked.clear()
        script = Path(script_reading.__file__)
        with child(script, own_home, point) as process:
            code = await asyncio.to_thread(process.wait, HANG)
            assert code == -signal.SIGKILL
        assert service.asked == ["/v1/fares/Skarv"]
        bridge = ScriptedBridge(script_reading.said)
        async with scripted_uvm(own_home, bridge, memory=False, install="now") as uvm:
            for mission in await uvm.missions.recover():
                await uvm.missions.run(mission)
            shown = uvm.readings.mission(uvm.readings.resolve_mission("last"))
        assert (shown["status"], shown["answer"]) == ("done", script_reading.ANSWER)
        assert [(each["tool"], len(each["texts"])) for each in shown["provenance"]["tools"]] == [("ferries.fares_", 1)]
        assert service.asked == ["/v1/fares/Skarv"]
