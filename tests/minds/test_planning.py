"""Missions that show their plan first: nothing is done before a yes, and then exactly what the plan says."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.agency.acting import Acting, acting
from tests.minds.scripted import Script
from tests.minds.tool_boxes import FolderTools

from batos.inference.ollama.bridge import ChatRequest
from batos.protocol.errors import BatosError, BriefError, Refused
from batos.testing import ScriptedBridge
from batos.uvm import Seams

BUILT = "Look up who built the tower of Skagen."
ANSWER = "Jens Holm built the tower of Skagen in 1887."
SUB = ("Who built the tower of Skagen?", "When does the ferry to Laeso leave?", "How many steps has the tower?")


@asynccontextmanager
async def planning(tmp_path: Path, pages: FolderTools) -> AsyncIterator[tuple[Acting, ScriptedBridge]]:
    """A mind with those pages as tools, whose model divides into two questions and answers everything alike."""
    script = Script()

    def answer(request: ChatRequest) -> str | BatosError:
        wanted: Any = (request.schema or {}).get("properties", {})
        if "q1" in wanted:
            return json.dumps({key: SUB[number] for number, key in enumerate(wanted)})
        return script(request) if wanted else ANSWER

    bridge = ScriptedBridge(answer)
    async with acting(tmp_path, bridge=bridge, memory=False, seams=Seams(tools=(lambda context: pages,))) as mind:
        yield mind, bridge


async def plan_of(mind: Acting, text: str, **fields: Any) -> tuple[str, str, list[str]]:
    """Ask for a plan: the mission that waits, its question's id, and the lines without remarks."""
    brief = {"text": text, "effort": "reflex", "persona": "BABS", "user": "tester", "plan": True, **fields}
    told = await mind.uvm.missions.ask(brief)
    assert told["status"] == "waiting"
    reason = told["reason"]
    assert reason is not None
    asked = await mind.ask("approvals", approval=reason["approval"])
    assert asked["object"] == told["id"]
    return told["id"], asked["id"], [each for each in asked["source"].split("\n") if not each.startswith("#")]


async def test_a_plan_waits_and_is_done_exactly(tmp_path: Path, pages: FolderTools) -> None:
    """Nothing is called and no answer is paid for before the yes; the calls of the plan are made then, once."""
    async with planning(tmp_path, pages) as (mind, bridge):
        mission, asked, lines = await plan_of(mind, BUILT)
        assert lines == ['call pages.search_ {"query": "built tower Skagen"}']
        assert (pages.made, bridge.history) == ([], [])
        told = await mind.ask("approve", approvals=[asked])
        assert (told["approved"][0]["id"], told["woken"]) == (asked, [mission])
        done = await mind.uvm.missions.run(mission)
        assert (done["status"], done["answer"]) == ("done", ANSWER)
        assert [name for name, _, _ in pages.made] == ["pages.search_", "pages.fetch_"]
        assert done["provenance"]["tools"][0]["why"] == "the plan has it"
        with pytest.raises(Refused, match="was approved by"):
            await mind.ask("approve", approvals=[asked])
        again = await mind.uvm.missions.ask({"text": BUILT, "user": "tester", "plan": True, "ancestor": mission})
        assert again["status"] == "waiting"  # a yes is for one mission


async def test_a_plan_is_edited_line_by_line(tmp_path: Path, pages: FolderTools) -> None:
    """A person's own lines take the place of those shown; wrong ones are told, and the plan still waits."""
    async with planning(tmp_path, pages) as (mind, _):
        mission, asked, _ = await plan_of(mind, BUILT)
        with pytest.raises(BriefError) as raised:
            await mind.ask("approve", approvals=[asked], plan='call pages.search_ {"q": 1}\ncall pages.serch_ {}')
        assert "line 1: the arguments of pages.search_" in raised.value.message
        assert any("line 2: there is no tool 'pages.serch_'" in each for each in raised.value.also)
        await mind.ask("approve", approvals=[asked], plan='# mine\ncall pages.search_ {"query": "ferry marmalade"}')
        done = await mind.uvm.missions.run(mission)
        assert done["status"] == "done"
        assert pages.made[0][1] == {"query": "ferry marmalade"}
        assert (await mind.ask("approvals", approval=asked))[
            "source"
        ] == 'call pages.search_ {"query": "ferry marmalade"}'
        with pytest.raises(BriefError, match="it is of one approval"):
            await mind.ask("approve", approvals=[asked, asked], plan="")


async def test_a_plan_of_a_cycle_has_its_parts(tmp_path: Path, pages: FolderTools) -> None:
    """Each sub-question stands with its own call; an edited one is what its part is asked."""
    async with planning(tmp_path, pages) as (mind, bridge):
        mission, asked, lines = await plan_of(
            mind, "Who built the tower of Skagen, and when does the ferry to Laeso leave?", effort="cycle"
        )
        assert [each.split()[0] for each in lines].count("part") == 3
        assert 'call pages.search_ {"query": "ferry Laeso leave"}' in lines
        divided = len(bridge.history)
        assert divided == 1
        mine = [
            each.replace(SUB[1], "Where is Laeso?")
            for each in lines
            if not (each.startswith("call") and "Laeso" in each)
        ]
        await mind.ask("approve", approvals=[asked], plan="\n".join(mine))
        done = await mind.uvm.missions.run(mission)
        assert done["status"] == "done"
        assert {SUB[0], "Where is Laeso?"} <= {each["query"] for each in done["voices"]}
        assert all("ferry" not in str(arguments) for name, arguments, _ in pages.made if name == "pages.search_")
        assert not any("q1" in str((each.schema or {}).get("properties")) for each in bridge.history[divided:])


async def test_a_no_ends_the_mission_and_nothing_happened(tmp_path: Path, pages: FolderTools) -> None:
    """The reason is told; no tool was called."""
    async with planning(tmp_path, pages) as (mind, _):
        mission, asked, _ = await plan_of(mind, BUILT)
        await mind.ask("reject", approval=asked, why="too many words")
        with pytest.raises(Refused, match=r"the plan was not approved: .* said no: too many words"):
            await mind.uvm.missions.run(mission)
        assert pages.made == []


@pytest.mark.parametrize("keeps", [True, False])
async def test_the_effect_of_a_plan_has_its_yes_and_goes_with_an_undo(
    tmp_path: Path, pages: FolderTools, keeps: bool
) -> None:
    """An effect with all its arguments is done without a second question; one whose line is taken out is not done."""
    async with planning(tmp_path, pages) as (mind, _):
        mission, asked, lines = await plan_of(
            mind, f"{BUILT} Write it to skagen.txt.", grants=["notes"]
        )  # fmt: skip
        assert lines[-1] == 'effect notes.append_ {"path": "skagen.txt"}'
        mine = [*lines[:-1], *(['effect notes.append_ {"path": "mine.txt", "text": "Jens.\\n"}'] if keeps else [])]
        await mind.ask("approve", approvals=[asked], plan="\n".join(mine))
        await mind.uvm.missions.run(mission)
        effects = (await mind.ask("effects", mission=mission))["effects"]
        assert [each["arguments"] for each in effects] == ([{"path": "mine.txt", "text": "Jens.\n"}] if keeps else [])
        assert await mind.asked() == []
        await mind.ask("undo", mission=mission, user="tester")
        assert (await mind.ask("show", mission=mission))["status"] == "undone"


async def test_the_answer_as_an_effect_asks_again(tmp_path: Path, pages: FolderTools) -> None:
    """Nobody saw the words of an answer that was made from a page, so the plan's yes is none for them."""
    async with planning(tmp_path, pages) as (mind, _):
        mission, asked, _ = await plan_of(mind, f"{BUILT} Write it to skagen.txt.", grants=["notes"])
        await mind.ask("approve", approvals=[asked])
        await mind.uvm.missions.run(mission)
        assert await mind.states(mission=mission) == ["asking"]
        assert len(await mind.asked()) == 1


async def test_a_copy_and_a_message_have_no_plan_of_their_own(tmp_path: Path, pages: FolderTools) -> None:
    """A dream answers, since nothing of it reaches out; a message is sent as it stands."""
    async with planning(tmp_path, pages) as (mind, _):
        dream = await mind.ask("dream_new", brief={"text": BUILT, "effort": "reflex", "user": "tester", "plan": True})
        assert dream["status"] == "done"
        message = {"receiver": "notes", "selector": "append_", "arguments": ["a.txt", "x"]}
        with pytest.raises(BriefError, match="a message is sent as it stands"):
            await mind.uvm.missions.ask({"message": message, "user": "tester", "plan": True})
