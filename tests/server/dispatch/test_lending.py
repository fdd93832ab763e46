"""Programs that lend tools to their missions, over a real wire: who is asked, who may answer, and what is listed."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.agency.lending import lend
from tests.agency.test_file_tools import GOOD, folder_with
from tests.server.dispatch.test_guests_guest_rights import two_guests

from batos import Client, always, read
from batos.agency.toolbox import ToolResult
from batos.cli.verb_options import own_folder
from batos.cli.verbs.serve import open_server
from batos.client.clients import AsyncClient
from batos.client.tool_functions import ToolUse, declare
from batos.config import Settings
from batos.inference.ollama.bridge import Answer, ChatRequest
from batos.protocol.errors import BriefError, UsageError
from batos.pytest_plugin import FakedTools
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM, Seams
from ollama_emulator.emulator import Emulator

PAGE = Path(__file__).resolve().parents[3] / "docs" / "tools.md"
ASK: Any = {"effort": "reflex"}


class LentBridge(ScriptedBridge):
    """A model whose answers wait for calls of the asker's tools."""

    uvm: UVM

    def __init__(self, *calls: tuple[str, dict[str, object]]) -> None:
        super().__init__()
        self.calls, self.results = calls, list[ToolResult]()
        self.may_go = asyncio.Event()

    async def think(
        self, request: ChatRequest, on_token: Callable[[str], None] | None = None, *, stream: bool = True
    ) -> Answer:
        """Make the calls."""
        await self.may_go.wait()
        (mission,) = self.uvm.image.unfolded_missions()
        tools = await lend(self.uvm, [mission])
        for number, (name, arguments) in enumerate(self.calls):
            self.results.append(await tools.call(name, arguments, f"babs/tools#{number}"))
        return await super().think(request, on_token, stream=stream)

    @property
    def said(self) -> list[str]:
        """What came of the calls."""
        return [each.failure or each.texts[0].text for each in self.results]


@asynccontextmanager
async def served(home: Path, bridge: LentBridge, *, waits: bool = False) -> AsyncIterator[AsyncClient]:
    """A client of a server whose missions call tools."""
    async with scripted_uvm(home, bridge, memory=False):
        pass  # genesis is done
    anywhere = "tcp://127.0.0.1:*"
    settings = Settings(home=home, user="tester", bind=anywhere, events=anywhere, install="never")
    async with open_server(settings, Seams(bridge=bridge)) as (uvm, _), AsyncClient(home, starts=False) as client:
        bridge.uvm = uvm
        if not waits:
            bridge.may_go.set()
        yield client


@read
def look(city: str) -> dict[str, object]:
    """Look at a city."""
    return {"city": city, "thread": threading.current_thread() is threading.main_thread()}


async def fire(city: str) -> str:
    """Fire at a city."""
    return f"fired at {city}"


async def test_functions_of_a_program_run_where_the_program_is(own_home: Path) -> None:
    """One that is not asynchronous in a thread, another one awaited; both are told by events of this asker alone."""
    bridge = LentBridge(("look", {"city": "Rome"}), ("fire", {"city": "Rome"}), ("look", {"city": "Rome", "x": 1}))
    seen: list[ToolUse] = []
    told: list[str] = []

    async def approve(call: ToolUse) -> bool:
        seen.append(call)
        return True

    async with served(own_home, bridge) as client:
        mission = await client.ask(
            "Who fires at Rome?", lambda event, _: told.append(event), tools=[look, fire], approve=approve, **ASK
        )
        assert mission.done
        assert bridge.said[:2] == ['{"city":"Rome","thread":false}', "fired at Rome"]
        assert "Additional properties" in bridge.said[2]
        assert seen == [ToolUse("fire", {"city": "Rome"}, reads=False, from_external=False)]
        assert told.count("mission.tool_call") == 2
        assert [each["state"] for each in (await client.effects())["effects"]] == ["released"]


async def test_a_program_without_tools_may_decide_about_those_of_files(own_home: Path) -> None:
    """It runs nothing, and is asked with the arguments."""
    bridge, seen = LentBridge(("switch_lamp", {"on": True}), ("switch_lamp", {"on": False})), list[ToolUse]()

    def approve(use: ToolUse) -> bool:
        seen.append(use)
        return use.arguments["on"] is True

    async with served(own_home, bridge) as client:
        folder_with(own_home, lamp=GOOD)
        await client.ask("Who is there?", approve=approve, **ASK)
    assert bridge.said[0] == "the lamp is on"
    assert bridge.said[1].startswith("switch_lamp was not called: the person who was asked said no.")
    assert [each.tool for each in seen] == ["switch_lamp", "switch_lamp"]


async def test_a_synchronous_program_lends_too_and_by_its_stream(own_home: Path) -> None:
    """Without approve= a function that reads is not called with foreign words."""
    bridge = LentBridge(("look", {"city": "Rome"}), ("look", {"city": "Bonn"}))

    def ask() -> str:
        with Client(own_home) as client, client.stream("Look at Rome?", tools=[look], **ASK) as stream:
            return "".join(stream)

    async with served(own_home, bridge):
        assert await asyncio.to_thread(ask) == "A scripted sentence."
    assert bridge.said[0].startswith('{"city":"Rome"')
    assert bridge.said[1].startswith("look was not called: it needs a yes")


async def test_a_second_answer_and_a_strangers_are_late(own_home: Path) -> None:
    """A result is taken once, and from the program that was asked."""
    bridge = LentBridge(("look", {"city": "Rome"}))
    keys: dict[str, Any] = {}
    async with served(own_home, bridge) as client:

        def heard(event: str, told: Any) -> None:
            if event == "mission.tool_call":
                keys.update(told)

        await client.ask("Look at Rome?", heard, tools=[look], **ASK)
        result = {"caller": "0" * 32, "call": keys["call"], "outcome": "done", "text": "forged"}
        assert await client.call("tool_result", result) == {"call": keys["call"], "late": True}


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"follow": False}, "while it follows its mission"),
        ({"follow": True, "caller": None}, "`caller` names the program"),
        ({"follow": True, "as_of": "2026-11-30"}, "a question to the past calls nothing"),
    ],
)
async def test_tools_are_for_who_waits_for_the_end(own_home: Path, args: dict[str, Any], why: str) -> None:
    """Else nobody would run them."""
    brief = {"text": "Look?", "tools": [declare(look).declaration.model_dump()], "caller": "0" * 32}
    async with served(own_home, LentBridge()) as client:
        if "caller" in args:
            brief["caller"] = args.pop("caller")
        with pytest.raises(BriefError, match=why) as wrong:
            await client.call("submit", {"brief": brief, **args})
        assert wrong.value.field == "tools"
        with pytest.raises(UsageError, match="while the program waits"):
            await client.submit("Look?", tools=[look])
        with pytest.raises(BriefError, match="two tools are named 'look'"):
            await client.ask("Look?", tools=[look, look])


async def test_the_list_has_every_kind_with_who_wrote_it(own_home: Path) -> None:
    """Functions as long as their mission runs; files, broken ones too, and none for a guest."""
    bridge = LentBridge()
    async with served(own_home, bridge, waits=True) as client:
        folder_with(own_home, lamp=GOOD, broken="def look(:")
        asking = asyncio.ensure_future(client.ask("Look at Rome?", tools=[look], **ASK))
        while not (found := (await client.call("tools"))["written"]) or found[0]["kind"] != "program":
            pass
        program, broken, *files = found
        assert (program["tool"], program["by"], program["what"]) == ("look", "tester", "Look at a city.")
        assert program["place"].startswith("m-")
        assert (broken["tool"], "SyntaxError" in broken["error"]) == ("broken.py", True)
        assert [(each["tool"], each["reads"], each["by"]) for each in files] == [
            ("surroundings", True, "the home"), ("switch_lamp", False, "the home"),
        ]  # fmt: skip
        assert (await client.call("tools", {"user": "key laptop"}))["written"] == []
        bridge.may_go.set()
        await asking
        assert {each["kind"] for each in (await client.call("tools"))["written"]} == {"file"}


async def test_a_guest_lends_its_own_tools_and_sees_no_others(own_home: Path) -> None:
    """Its key asks as its user; the home's files are none of its."""
    async with two_guests(own_home) as two:
        asked = await two.ann.ask("Look at Rome?", tools=[look], **ASK)
        assert (asked["brief"]["user"], asked["brief"]["tools"][0]["name"]) == ("key ann", "look")
        assert (await two.bob.call("tools"))["written"] == []


async def test_the_examples_of_the_page_do_what_it_says(own_home: Path) -> None:
    """Against the emulator: a program that lends two functions and asks its person, and a file of the home."""
    program, file = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    anywhere = "tcp://127.0.0.1:*"
    own_folder(own_home)
    folder_with(own_home, disk=file)
    async with Emulator().serving() as url:
        settings = Settings(
            home=own_home, user="tester", bind=anywhere, events=anywhere, install="never", ollama_host=url
        )
        async with open_server(settings) as (uvm, _), AsyncClient(own_home, starts=False) as client:
            await uvm.readiness.genesis()
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", program, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
            )
            said, _ = await process.communicate(b"y\n")
            space = await client.ask("How much room is left on the disk of the folder /tmp?", effort="reflex")
            effects = (await client.effects())["effects"]
    assert "['The next high tide of Maro is at 14:32.']" in said.decode()
    assert "ring_bell {'times': 2}? [y/N] " in said.decode()
    assert "['The bell was rung 2 times.']" in said.decode()
    assert [(each["tool"], each["arguments"], each["failure"]) for each in space["provenance"]["tools"]] == [
        ("free_space", {"folder": "/tmp"}, ""),
    ]  # fmt: skip
    assert [(each["state"], each["what"]) for each in effects] == [("released", 'call ring_bell {"times": 2}')]


async def test_a_test_declares_what_tools_bring_and_sees_their_calls(own_home: Path) -> None:
    """As the fixture `batos_server` lets it; a tool of which nothing is declared is called."""
    calls: list[tuple[str, dict[str, object]]] = [(name, {"city": "Rome"}) for name in ("look", "fire", "look")]
    faked, bridge = FakedTools(), LentBridge(*calls)
    async with served(own_home, bridge) as client:
        bridge.uvm.readiness.tool_places.stand_ins.append(faked.answer)
        faked.returns("look", {"degrees": 18})
        await client.ask("Look at Rome?", tools=[look, fire], approve=always, **ASK)
        faked.fails("look", "no net")
        await client.ask("Look at Rome?", tools=[look, fire], approve=always, **ASK)
    assert bridge.said == ['{"degrees":18}', "fired at Rome", '{"degrees":18}', "no net", "fired at Rome", "no net"]
    assert faked.calls == calls * 2
