"""A call that needs a yes waits for a person: exactly that call, for one mission, and not for guests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.agency.acting import Acting, acting

from batos.testing import ScriptedBridge

ASK = {"text": "Switch the lamp on.", "effort": "reflex", "user": "tester"}
TOOLS = '''
from pathlib import Path

import batos


@batos.tool
def switch_lamp(on: bool = True) -> str:
    """Switch the lamp on."""
    with Path("lamp.log").open("a") as file:
        file.write("on\\n")
    return "The lamp is on."
'''


@asynccontextmanager
async def with_lamp(tmp_path: Path) -> AsyncIterator[tuple[Acting, Path]]:
    """A mind whose home has a tool that changes something, and the log of its calls."""
    folder = tmp_path / "home" / "tools"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "lamp.py").write_text(TOOLS)
    (folder / "lamp.py").chmod(0o600)
    async with acting(tmp_path, bridge=ScriptedBridge.saying("The lamp is on."), memory=False) as mind:
        await mind.uvm.readiness.tool_places.files.list_files()
        yield mind, folder / "lamp.log"


def called(log: Path) -> int:
    """How often the lamp was switched."""
    return len(log.read_text().splitlines()) if log.exists() else 0


async def waits_for(mind: Acting, **fields: Any) -> tuple[str, str]:
    """A mission that waits, and the id of its question."""
    told = await mind.uvm.missions.ask({**ASK, **fields})
    reason = told["reason"]
    assert reason is not None
    return told["id"], str(reason["approval"])


@pytest.mark.parametrize("origin", ["cli", "schedule"])
async def test_a_yes_makes_exactly_this_call_once(tmp_path: Path, origin: str) -> None:
    """Nothing happens before it, also where nobody watches; a mission of its own, as a retry is, asks anew."""
    async with with_lamp(tmp_path) as (mind, log):
        mission, asked = await waits_for(mind, origin={"door": origin, "client": "a test"})
        shown = await mind.ask("approvals", approval=asked)
        assert shown["source"] == "# It asks since it may change something.\ncall switch_lamp {}"
        assert (shown["object"], shown["selector"], called(log)) == (mission, "call_", 0)
        await mind.ask("approve", approvals=[asked])
        done = await mind.uvm.missions.run(mission)
        assert (done["status"], called(log)) == ("done", 1)
        assert [each["failure"] for each in done["provenance"]["tools"]] == [""]
        assert [each["state"] for each in (await mind.ask("effects", mission=mission))["effects"]] == ["released"]
        await waits_for(mind)
        assert called(log) == 1


async def test_a_no_is_told_and_the_mission_answers_without_the_call(tmp_path: Path) -> None:
    """The reason stands in its provenance; a call that nobody answered in time is as one that was refused."""
    async with with_lamp(tmp_path) as (mind, log):
        mission, asked = await waits_for(mind)
        await mind.ask("reject", approval=asked, why="it is day")
        done = await mind.uvm.missions.run(mission)
        (use,) = done["provenance"]["tools"]
        assert use["failure"].startswith("switch_lamp was not called: ")
        assert "said no: it is day" in use["failure"]
        assert called(log) == 0


async def test_an_undo_takes_the_question_back(tmp_path: Path) -> None:
    """Of a mission that is cancelled while it waits, no later yes makes the call."""
    async with with_lamp(tmp_path) as (mind, log):
        mission, asked = await waits_for(mind)
        await mind.ask("cancel", mission=mission)
        await mind.ask("approve", approvals=[asked])
        assert ((await mind.ask("show", mission=mission))["status"], called(log)) == ("cancelled", 0)


async def test_a_guest_is_refused_and_never_asked(tmp_path: Path) -> None:
    """A guest has no tools of files, and no question is made for one."""
    async with with_lamp(tmp_path) as (mind, log):
        done = await mind.uvm.missions.ask({**ASK, "user": "key laptop"})
        assert (done["status"], called(log)) == ("done", 0)
        assert (await mind.ask("approvals"))["approvals"] == []
