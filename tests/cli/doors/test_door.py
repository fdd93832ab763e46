"""Both doors: the same calls give the same results, events and errors; and which door a verb is given."""

from __future__ import annotations

import asyncio
import io
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.cli.doors.serving import Waiting, client_of, serving
from tests.waiting import until

from batos.cli.doors.choosing import open_door
from batos.cli.doors.door import Door
from batos.cli.verb_options import VerbCall
from batos.client import addresses
from batos.config import LoadedSettings, Settings
from batos.protocol.brief import as_file
from batos.protocol.errors import BriefError, MessageNotUnderstood, NoServer, NotFound, ProtocolError, Refused
from batos.server.dispatch.dispatcher import Dispatcher
from batos.server.dispatch.uploads import Uploads
from batos.terminal.console import Console
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM

REFLEX = {"text": "Why do I worry?", "effort": "reflex", "persona": "ROBIN", "user": "ada"}
CYCLE = {"text": "How do I build a shed?", "effort": "cycle", "persona": "BRICK", "user": "ada"}


@dataclass(slots=True)
class CallRecord:
    """What came of a call beside its result."""

    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)

    def on_event(self, event: str, keys: Mapping[str, Any]) -> None:
        """An event."""
        self.events.append((event, dict(keys)))

    def acknowledge(self, told: Mapping[str, Any]) -> None:
        """An acknowledgement."""
        self.accepted.append(str(told["mission"]))

    def states(self) -> list[str]:
        """The states that were told."""
        return [keys["state"] for event, keys in self.events if event == "mission.state"]

    def said(self) -> str:
        """The tokens that stand at the end."""
        said = ""
        for event, keys in self.events:
            said = "" if event == "mission.retracted" else said + keys.get("text", "") if "token" in event else said
        return said


class Doors(ABC):
    """What every door does."""

    #: The one that was opened last.
    uvm: UVM

    @abstractmethod
    def through(self, uvm: UVM) -> AbstractAsyncContextManager[Door]:
        """The door to an open UVM."""

    @asynccontextmanager
    async def opened(self, home: Path, bridge: ScriptedBridge | None = None) -> AsyncIterator[Door]:
        """The door to a scripted UVM whose genesis is done."""
        async with scripted_uvm(home, bridge) as uvm, self.through(uvm) as way:
            self.uvm = uvm
            yield way

    def is_asked_to_pause(self, mission: str) -> bool:
        """Whether a mission that runs has heard that it is to pause, which it does before its next call."""
        return self.uvm.workers._running[mission].stop_request.word == "paused"

    async def test_a_question(self, tmp_path: Path) -> None:
        """It is acknowledged before it is run, its states and tokens are told in order, and its end is its report."""
        heard = CallRecord()
        async with self.opened(tmp_path) as way:
            found = await way.call("submit", {"brief": CYCLE, "follow": True}, heard.on_event, heard.acknowledge)
            shown = await way.call("show", {"mission": found["id"]})
        assert (found, heard.accepted) == (shown, [found["id"]])
        assert found["status"] == "done"
        assert heard.states() == [step["state"] for step in found["states"]]
        assert heard.said() == found["answer"]
        assert [keys["mission"] for event, keys in heard.events if event.startswith("mission.")] == [
            found["id"] for event, _ in heard.events if event.startswith("mission.")
        ]
        names = [event for event, _ in heard.events]
        assert names.index("mission.accepted") < names.index("mission.routed") < names.index("mission.done")

    async def test_a_question_that_fails(self, tmp_path: Path) -> None:
        """Its failure is no error of the call: the report says why."""
        async with self.opened(tmp_path) as way:
            brief = {**CYCLE, "budget": {"calls": 2}}
            found = await way.call("submit", {"brief": brief, "follow": True})
        assert (found["status"], found["reason"]["code"]) == ("failed", "refused")

    async def test_what_is_no_question(self, tmp_path: Path) -> None:
        """A wrong brief names its field, and nothing is acknowledged."""
        heard = CallRecord()
        async with self.opened(tmp_path) as way:
            with pytest.raises(BriefError) as caught:
                await way.call("submit", {"brief": {**REFLEX, "text": " "}, "follow": True}, None, heard.acknowledge)
            assert caught.value.field == "text"
            with pytest.raises(NotFound) as absent:
                await way.call("submit", {"brief": {**REFLEX, "conversation": "last"}})
            assert absent.value.field == "conversation"
            assert (await way.call("missions"))["missions"] == []
        assert heard.accepted == []

    async def test_what_is_no_call(self, tmp_path: Path) -> None:
        """Unknown verbs and wrong arguments are named."""
        async with self.opened(tmp_path) as way:
            for verb, args, named in (
                ("dance", {}, "verb"),
                ("show", {}, "args.mission"),
                ("missions", {"limit": "many"}, "args.limit"),
                ("status", {"loud": True}, "args.loud"),
            ):
                with pytest.raises(ProtocolError) as caught:
                    await way.call(verb, args)
                assert caught.value.field == named

    async def test_files(self, tmp_path: Path) -> None:
        """Their bytes go first; the same file again is not sent again; what was not sent is refused by name."""
        files = [as_file("a.txt", b"The pier broke.\n" * 40_000), as_file("b.txt", b"It was closed.")]
        async with self.opened(tmp_path) as way:
            refs = await way.attach(files)
            assert refs == [file.ref.model_dump() for file in files] == await way.attach(files)
            found = await way.call("submit", {"brief": {**REFLEX, "attachments": refs}, "follow": True})
            again = await way.call("submit", {"brief": {**REFLEX, "attachments": refs}, "follow": True})
            other = as_file("c.txt", b"Nobody sent this.").ref.model_dump()
            with pytest.raises(BriefError, match=r"c\.txt"):
                await way.call("submit", {"brief": {**REFLEX, "attachments": [other]}})
        for mission in (found, again):
            assert {each["name"] for each in mission["brief"]["attachments"]} == {"a.txt", "b.txt"}
            assert mission["status"] == "done"

    async def test_lists(self, tmp_path: Path) -> None:
        """The newest first, by status and by user, no more than were asked for; `last` is the user's newest."""
        async with self.opened(tmp_path) as way:
            ids = []
            for user in ("ada", "bob"):
                told = await way.call("submit", {"brief": {**REFLEX, "user": user}, "follow": True})
                ids.append(told["id"])
            listed = (await way.call("missions"))["missions"]
            assert [line["id"] for line in listed] == ids[::-1]
            assert [line["id"] for line in (await way.call("missions", {"user": "ada"}))["missions"]] == ids[:1]
            assert (await way.call("missions", {"status": "failed"}))["missions"] == []
            assert len((await way.call("missions", {"limit": 1}))["missions"]) == 1
            assert (await way.call("show", {"mission": "last", "user": "ada"}))["id"] == ids[0]
            with pytest.raises(NotFound):
                await way.call("show", {"mission": "last", "user": "nobody"})

    async def test_prompts(self, tmp_path: Path) -> None:
        """They are told only when they are asked for."""
        async with self.opened(tmp_path) as way:
            found = await way.call("submit", {"brief": REFLEX, "follow": True})
            assert "prompts" not in await way.call("show", {"mission": found["id"]})
            prompts = (await way.call("show", {"mission": found["id"], "prompts": True}))["prompts"]
        assert [call["path"] for call in prompts] == ["robin/reflex#0"]

    async def test_objects(self, tmp_path: Path) -> None:
        """The root's names, an object, a slot; what is not there is not found."""
        async with self.opened(tmp_path) as way:
            names = (await way.call("inspect"))["objects"]
            assert {"genesis_obj", "brick_prototype_obj"} <= set(names)
            assert (await way.call("inspect", {"object": "brick_prototype_obj"}))["object"] == "brick_prototype_obj"
            assert (await way.call("inspect", {"object": "orchestrator_obj.charter"}))["slot"] == "charter"
            with pytest.raises(NotFound) as caught:
                await way.call("inspect", {"object": "nobody"})
        assert caught.value.field == "object"

    async def test_a_message(self, tmp_path: Path) -> None:
        """Sending one is a mission; what nobody understands is refused before it is one."""
        heard = CallRecord()
        async with self.opened(tmp_path) as way:
            args = {"receiver": "genesis_obj", "selector": "nothing_", "arguments": [1, "a"], "follow": True}
            with pytest.raises(MessageNotUnderstood):
                await way.call("send", args, heard.on_event, heard.acknowledge)
            assert heard.accepted == []
            args = {"receiver": "traits_obj", "selector": "log_", "arguments": ["a"], "follow": True}
            found = await way.call("send", args, heard.on_event, heard.acknowledge)
        assert found["brief"]["message"] == {"receiver": "traits_obj", "selector": "log_", "arguments": ["a"]}
        assert heard.accepted == [found["id"]]

    async def test_cancel(self, tmp_path: Path) -> None:
        """A mission that runs ends cancelled at once, for whoever waits for it too; one that ended is refused."""
        bridge, heard = Waiting(), CallRecord()
        async with self.opened(tmp_path, bridge) as way:
            asked = asyncio.create_task(
                way.call("submit", {"brief": CYCLE, "follow": True}, heard.on_event, heard.acknowledge)
            )
            await bridge.asked.wait()
            [mission] = await until(lambda: heard.accepted, "the acknowledgement")
            told = await way.call("cancel", {"mission": mission})
            found = await asked
            with pytest.raises(Refused):
                await way.call("cancel", {"mission": mission})
        assert (told["id"], told["status"], found["status"]) == (mission, "cancelled", "cancelled")

    async def test_pause_and_resume(self, tmp_path: Path) -> None:
        """A paused mission stands still for whoever waits; resumed it ends, and what was paid is not paid again."""
        bridge, heard = Waiting(), CallRecord()
        async with self.opened(tmp_path, bridge) as way:
            asked = asyncio.create_task(
                way.call("submit", {"brief": CYCLE, "follow": True}, heard.on_event, heard.acknowledge)
            )
            await bridge.asked.wait()
            [mission] = await until(lambda: heard.accepted, "the acknowledgement")
            held = asyncio.create_task(way.call("pause", {"mission": mission}))
            await until(lambda: self.is_asked_to_pause(mission), "the pause")
            bridge.may.set()
            assert (await held)["status"] == (await asked)["status"] == "paused"
            await way.call("resume", {"mission": mission})
            await way.begin(mission)
            done = await way.call("wait", {"mission": mission, "follow": True})
        assert (done["status"], done["cost"]["from_journal"]) == ("done", 1)
        assert len(bridge.history) == done["cost"]["calls"]

    async def test_genesis(self, tmp_path: Path) -> None:
        """A plan is shown with what it takes of the card; a run tells its steps and ends with the audit."""
        heard = CallRecord()
        async with self.opened(tmp_path) as way:
            planned = await way.call("genesis", {"plan": True})
            report = await way.call("genesis", {}, heard.on_event)
        assert (planned["steps"], planned["budget"]["lines"][-1][:4]) == ([], "left")
        assert all(finding["ok"] for finding in report["audit"])
        assert {event for event, _ in heard.events} <= {"genesis.step"}

    async def test_adapters(self, tmp_path: Path) -> None:
        """A persona goes back to its bare base; what it does not have is not found."""
        async with self.opened(tmp_path) as way:
            told = await way.call("adapters_use", {"persona": "robin", "name": "none"})
            assert told == {"persona": "ROBIN", "adapter": None, "changed": True, "notes": []}
            again = await way.call("adapters_use", {"persona": "ROBIN", "name": "none"})
            assert again == {**told, "changed": False}
            with pytest.raises(NotFound):
                await way.call("adapters_use", {"persona": "robin", "name": "lute"})


class TestLocal(Doors):
    """The image in this process."""

    @asynccontextmanager
    async def through(self, uvm: UVM) -> AsyncIterator[Door]:
        """A dispatcher that begins only what is followed."""
        yield Door(Dispatcher(uvm, Uploads(uvm.settings.home / "up", 2**20), works=False).handle, uvm=uvm)

    async def test_what_is_submitted_waits(self, tmp_path: Path) -> None:
        """Nobody runs it, and waiting for it is refused; begun here it can be waited for."""
        async with self.opened(tmp_path) as way:
            told = await way.call("submit", {"brief": REFLEX})
            assert told["status"] == "queued"
            with pytest.raises(NoServer):
                await way.call("wait", {"mission": told["mission"]})
            assert await way.left_behind() == [told["mission"]]
            await way.begin(told["mission"])
            assert (await way.call("wait", {"mission": told["mission"], "follow": True}))["status"] == "done"

    async def test_the_status(self, tmp_path: Path) -> None:
        """It says that no server tells it."""
        async with self.opened(tmp_path) as way:
            assert (await way.call("status"))["server"] is None
            assert not way.served


class TestThroughServer(Doors):
    """A server in this process, over the wire."""

    @asynccontextmanager
    async def through(self, uvm: UVM) -> AsyncIterator[Door]:
        """A client of a server."""
        async with serving(uvm), client_of(uvm) as client:
            yield Door(client.call, client.watch)

    async def test_what_is_submitted_is_run(self, tmp_path: Path) -> None:
        """It ends by itself, and status counts it."""
        async with self.opened(tmp_path) as way:
            told = await way.call("submit", {"brief": REFLEX})
            assert (await way.call("wait", {"mission": told["mission"]}))["status"] == "done"
            assert (await way.call("status"))["missions"]["done"] == 1
            assert way.served
            assert await way.left_behind() == []


def called(home: Path, said: io.StringIO | None = None, **sources: str) -> VerbCall:
    """How a verb was called, with values for settings that came from flags."""
    settings = Settings(home=home, user="ada", **sources)  # type: ignore[arg-type]  # texts, as flags are
    return VerbCall(
        LoadedSettings(settings, dict.fromkeys(sources, "flag")), _console(said or io.StringIO()), quiet=False
    )


def _console(said: io.StringIO) -> Console:
    return Console(said, said, as_json=False, has_colour=False)


def left(home: Path, pid: int, born: str) -> None:
    """A server's note."""
    where = "tcp://127.0.0.1:9"
    addresses.write_record(
        home, addresses.ServerRecord(pid, born, "2026-01-01T00:00:00Z", where, where, "plain", "plain", "0")
    )


def test_no_server(tmp_path: Path) -> None:
    """Where one is required and none is noted, that is said before anything is opened."""
    with pytest.raises(NoServer):
        open_door(called(tmp_path), required=True)
    assert not (tmp_path / "live_image.fs").exists()


def test_a_stale_note_is_no_obstacle(tmp_path: Path) -> None:
    """That of a process that has ended, or of another one by now, is ignored, and that is said."""
    for pid, born in ((2**22 + 1, "1"), (os.getpid(), "1")):
        left(tmp_path, pid, born)
        said = io.StringIO()
        with pytest.raises(NoServer):
            open_door(called(tmp_path, said), required=True)
        assert f"The server (process {pid}) has ended" in said.getvalue()


async def test_an_image_that_is_named_goes_past_the_server(tmp_path: Path) -> None:
    """The home's server may hold another one."""
    left(tmp_path, os.getpid(), addresses.birth_time(os.getpid()) or "")
    with pytest.raises(NoServer):
        open_door(called(tmp_path, image="memory://other"), required=True)
    async with open_door(called(tmp_path, image="memory://other")) as way:
        assert not way.served


async def test_a_server_that_is_named(tmp_path: Path) -> None:
    """It is the one, whatever the home says; where nothing listens there is no server, and no image is opened."""
    opened = open_door(called(tmp_path, server="tcp://127.0.0.1:9"))
    with pytest.raises(NoServer, match="nothing listens"):
        async with opened:
            pass
    assert not (tmp_path / "live_image.fs").exists()
