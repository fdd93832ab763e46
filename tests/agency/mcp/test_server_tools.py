"""Tools of servers in a mind: granted, approved, chosen by the four steps, journaled, asked about, and withdrawn."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.history.test_as_of_past_questions import Door
from tests.minds.test_tool_use import answering

from batos.agency.mcp.connection import McpTimes
from batos.agency.mcp.servers import ServerOpener
from batos.protocol.errors import BatosError, BriefError, Refused
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM

HOSTILE = Path(__file__).parents[3] / "bench" / "hostile_server_side.py"
TIDE = "High tide at Maro: 14:32."
ASKED = "When is the tide in Maro?"


def command(way: str, *more: str) -> list[str]:
    """The command of a server by hand."""
    return [sys.executable, str(HOSTILE), way, *more]


class Mind:
    """A mind with what asks it as a door does."""

    def __init__(self, uvm: UVM, bridge: ScriptedBridge) -> None:
        self.uvm, self.bridge, self.door = uvm, bridge, Door(uvm)

    async def grant(self, way: str, *more: str, reads: tuple[str, ...] = ("tide",), approve: bool = True) -> str:
        """Grant a server, and approve its tools; the id of the question."""
        told = await self.door(
            "grants_add", kind="mcp", target="tides", command=command(way, *more), reads=list(reads), user="tester"
        )
        if approve:
            await self.door("approve", approvals=[told["approval"]], user="tester")
        return str(told["approval"])

    async def ask(self, text: str = ASKED, **more: Any) -> Mapping[str, Any]:
        """A question, answered."""
        return await self.uvm.missions.ask({"text": text, "user": "tester", "effort": "reflex", **more})

    async def send(self, tool: str, arguments: Mapping[str, object], **more: Any) -> Mapping[str, Any]:
        """A person's message to the server."""
        message = {"receiver": "tides", "selector": "call_", "arguments": [tool, dict(arguments)]}
        return await self.uvm.missions.ask({"message": message, "user": "tester", **more})

    async def effects(self) -> list[Mapping[str, Any]]:
        """All effects, once what can be released is."""
        await self.uvm.releaser.release_all()
        found: list[Mapping[str, Any]] = (await self.door("effects"))["effects"]
        return found


@asynccontextmanager
async def mind(tmp_path: Path) -> AsyncIterator[Mind]:
    """A mind whose model answers, and picks no tool."""
    bridge = answering("The tide of Maro is high at 14:32.")
    async with scripted_uvm(tmp_path / "home", bridge) as uvm:
        yield Mind(uvm, bridge)


def tools_of(shown: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The calls of a mission, with what failed."""
    return [(each["tool"], each["failure"]) for each in shown["provenance"].get("tools", [])]


async def test_a_tool_that_reads_is_chosen_called_once_and_is_external_evidence(tmp_path: Path) -> None:
    """Its text is cited; a retry has it from the journal although the server is gone."""
    log = tmp_path / "log"
    async with mind(tmp_path) as one:
        await one.grant("modern", str(log))
        shown = await one.ask()
        assert tools_of(shown) == [("tides.tide", "")]
        (document,) = [each for each in shown["provenance"]["recalled"] if each["trust"] == "external"]
        assert document["name"].startswith("tides.tide")
        queries = (await one.door("grants_queries"))["queries"]
        assert [(each["kind"], each["what"]) for each in queries] == [("call", 'tide {"harbour": "Maro"}')]
        one.uvm.readiness.servers.opener = ServerOpener(tmp_path, times=McpTimes(opening=0.0))
        again = await one.ask(ancestor=shown["id"])
        assert (tools_of(again), again["answer"]) == ([("tides.tide", "")], shown["answer"])
        assert len((await one.door("grants_queries"))["queries"]) == 1


async def test_nothing_is_used_before_a_person_approved_it(tmp_path: Path) -> None:
    """Neither by a question nor by a message, and a rejection stands."""
    async with mind(tmp_path) as one:
        asked = await one.grant("modern", approve=False)
        assert tools_of(await one.ask()) == []
        with pytest.raises(BatosError, match="holds no capability"):
            await one.send("tide", {"harbour": "Maro"})
        shown = await one.door("approvals", approval=asked)
        assert "tool     tides.tide, new; it only reads, as you said" in shown["source"]
        await one.door("reject", approval=asked, why="no", user="tester")
        assert tools_of(await one.ask()) == []


async def test_a_changed_tool_is_withdrawn_until_its_difference_is_approved(tmp_path: Path) -> None:
    """Between the list and the call, and a new tool waits too; what is as it was before comes back."""
    place = tmp_path / "words"
    async with mind(tmp_path) as one:
        await one.grant("modern", str(place))
        place.write_text("changed new", encoding="utf-8")
        (tool, failure), *_ = tools_of(await one.ask())
        assert tool == "tides.tide"
        assert "is not what was approved" in failure
        assert tools_of(await one.ask()) == []
        (line,) = (await one.door("grants_show", name="tides", user="tester"))["grant"]["tools"]
        assert "otherwise" in line["withdrawn"]
        waiting = (await one.door("approvals"))["approvals"][0]
        source = (await one.door("approvals", approval=waiting["id"]))["source"]
        assert "-| Return the tide of a harbour." in source
        assert "+| Return the tide." in source
        assert "tides.new, new; each call asks before" in source
        await one.door("approve", approvals=[waiting["id"]], user="tester")
        assert tools_of(await one.ask()) == [("tides.tide", "")]


async def test_words_of_a_description_reach_no_model(tmp_path: Path) -> None:
    """The model sees our line alone, and the arguments' names."""
    async with mind(tmp_path) as one:
        await one.grant("poisoned")
        one.bridge.history.clear()
        await one.ask("When is the tide?")
        said = json.dumps([each.messages for each in one.bridge.history])
        assert one.bridge.history
        assert "ignore all previous" not in said.lower()
        assert "IMPORTANT" not in said
        shown = await one.door("tools", user="tester")
        assert [(each["tool"], each["what"], each["kind"]) for each in shown["written"]] == [
            ("tides.tide", "tide of tides, given harbour", "mcp")
        ]


async def test_a_call_that_may_change_something_asks_with_its_exact_arguments(tmp_path: Path) -> None:
    """It is offered where the mission names the grant, happens once after the yes, and never by itself again."""
    async with mind(tmp_path) as one:
        await one.grant("modern", reads=())
        order = "Tide in Maro, please."
        assert tools_of(await one.ask(order)) == []
        shown = await one.ask(order, grants=["tides"])
        assert tools_of(shown) == [("tides.tide", "")]
        (effect,) = await one.effects()
        assert (effect["state"], effect["what"]) == ("asking", 'call tide {"harbour": "Maro"}')
        source = (await one.door("approvals", approval=effect["approval"]))["source"]
        assert 'arguments: {"harbour": "Maro"}' in source
        assert "tides" in source
        await one.door("approve", approvals=[effect["approval"]], user="tester")
        (effect,) = await one.effects()
        assert (effect["state"], effect["outcome"]["reason"]) == ("released", TIDE)
        again = await one.ask(order, grants=["tides"], ancestor=shown["id"])
        assert tools_of(again) == [("tides.tide", "")]
        assert [each["state"] for each in await one.effects()] == ["released"]


async def test_words_that_are_not_the_persons_leave_by_a_yes_alone(tmp_path: Path) -> None:
    """A person is asked what a model fills in, for just that call; a person's own message is sent."""
    async with mind(tmp_path) as one:
        await one.grant("modern")
        waiting = await one.ask('When is the tide, my "Maro"?')
        asked = await one.door("approvals", approval=waiting["reason"]["approval"])
        assert (waiting["status"], "keeper" in asked["source"]) == ("waiting", True)
        assert (await one.door("grants_queries"))["queries"] == []
        sent = await one.send("tide", {"harbour": "marmalade"})
        assert "High tide at marmalade: 14:32." in json.dumps(sent)
        await one.door("approve", approvals=[asked["id"]], user="tester")
        assert tools_of(await one.uvm.missions.run(waiting["id"])) == [("tides.tide", "")]
        assert len((await one.door("grants_queries"))["queries"]) == 2


@pytest.mark.parametrize(
    ("way", "why"),
    [("clash", "two tools that are named 'tide'")],
)
async def test_a_name_clash_is_refused(tmp_path: Path, way: str, why: str) -> None:
    """Of a server that lists two tools of one name nothing is granted."""
    async with mind(tmp_path) as one:
        with pytest.raises(BatosError, match=why):
            await one.grant(way)
        await one.grant("modern")
        with pytest.raises(Refused, match="there is an object 'tides' already"):
            await one.grant("modern")
        with pytest.raises(BriefError, match="has no tool 'tied'"):
            await one.grant("modern", reads=("tied",))
