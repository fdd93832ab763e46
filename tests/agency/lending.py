"""The toolbox of a mission over tools that people wrote, opened beside the mission as its own run opens it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.inference.counting_bridge import PLENTY

from batos.agency.callers import Callers
from batos.agency.written_tools import ToolAsker, WrittenTools, lend_tools
from batos.inference.journal import is_of_model
from batos.inference.outside_calls import OutsideCalls
from batos.inference.session import Session
from batos.protocol.brief import MissionBrief
from batos.uvm import UVM


async def lend(
    uvm: UVM, missions: Sequence[str], *, copied: bool = False, callers: Callers | None = None
) -> WrittenTools:
    """The tools of the last of these missions; those before it are its ancestors."""
    mission = missions[-1]
    with uvm.image.snapshot() as root:
        brief = MissionBrief.from_document(dict(uvm.image.find(root, mission).brief.value))
    earlier = [each for each in uvm.journal.sound(missions) if is_of_model(each)]
    session = Session(mission, uvm.journal, uvm.bridge, {}, PLENTY, uvm.events, earlier)
    outside = OutsideCalls(session, missions, reaches_out=not copied)
    places = replace(uvm.readiness.tool_places, callers=callers or uvm.readiness.tool_places.callers)
    await places.files.list_files()
    tools = lend_tools(places, ToolAsker(brief), outside)
    assert tools is not None
    return tools
