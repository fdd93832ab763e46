"""Undone missions and the tools that they forged: one that another mission wished for too stays declared."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.history.test_as_of_past_questions import Door
from tests.minds.parts.test_protocols_toolmaking import QUESTION, Abreast, Mind, answered, brief, made, slot

from batos.image import roots
from batos.objects.method import Intent, Method
from batos.objects.prototype import own_slots
from batos.testing import scripted_uvm
from batos.uvm import UVM

TOOL = "seconds_of_"


async def undo(uvm: UVM, mission: str) -> list[str]:
    """Undo a mission with what builds on it; the tools that went."""
    told = await Door(uvm)("undo", mission=mission, cascade=True)
    return [tool for line in told["undone"] for tool in line["tools"]]


async def asked(uvm: UVM, text: str = QUESTION) -> str:
    """A mission that forged the tool."""
    return str((await answered(uvm, brief(text) | {"policy": {"interpret": "allow", "memory": "none"}}))["id"])


def purpose(uvm: UVM) -> str:
    """What the declared tool is for."""
    with uvm.image.snapshot() as root:
        return str(own_slots(root[roots.TOOLS])[TOOL].text)


async def test_a_tool_that_another_mission_wished_for_too_stays_declared(tmp_path: Path) -> None:
    """Whichever of them is undone first; it goes with the last, and comes back with it."""
    async with scripted_uvm(tmp_path, Mind().bridge, install="now") as uvm:
        for first in (0, 1):
            missions = [await asked(uvm), await asked(uvm)]
            assert (await undo(uvm, missions.pop(first)), slot(uvm)) == ([], Intent)
            assert (await undo(uvm, missions[0]), slot(uvm)) == ([TOOL], type(None))
        await Door(uvm)("redo", mission=missions[0])
        assert slot(uvm) is Intent


async def test_a_question_about_such_a_tool_stays_asked(tmp_path: Path) -> None:
    """The yes of a person makes it, as the mission that stands says."""
    async with scripted_uvm(tmp_path, Mind().bridge, install="ask") as uvm:
        await asked(uvm)
        (tool,) = (await uvm.learning.some())["made"]
        await undo(uvm, await asked(uvm))
        await uvm.approvals.approve([tool["approval"]], "ada")
        assert slot(uvm) is Method


async def test_a_wish_for_something_else_leaves_the_tool_of_that_name(tmp_path: Path) -> None:
    """A mission whose tool was not declared, since another had its name, takes nothing along."""
    async with scripted_uvm(tmp_path, Abreast().bridge, install="now") as uvm:
        missions: dict[str, Any] = {}
        for each in await asyncio.gather(answered(uvm, brief()), answered(uvm, brief(f"{QUESTION} Please."))):
            with uvm.image.snapshot() as root:
                contributions = own_slots(roots.mission_record(root, each["id"]).thought)["contributions"]
            (wish,) = [told for kind, told in contributions if kind == "tool"]
            missions[wish["intent"]["text"]] = each["id"]
        standing = purpose(uvm)
        (other,) = [mission for text, mission in missions.items() if text != standing]
        assert (await undo(uvm, other), purpose(uvm)) == ([], standing)
        assert (await undo(uvm, missions[standing]), slot(uvm)) == ([TOOL], type(None))


async def test_a_tool_that_was_made_meanwhile_stays_made(tmp_path: Path) -> None:
    """A redo puts no declaration in the place of a method that was made of the same wish."""
    async with scripted_uvm(tmp_path, Mind().bridge, install="now") as uvm:
        first = await asked(uvm)
        await undo(uvm, first)
        await asked(uvm)
        assert (await made(uvm), slot(uvm)) == (["installed"], Method)
        assert (await Door(uvm)("redo", mission=first))["left"] == []
        assert slot(uvm) is Method
