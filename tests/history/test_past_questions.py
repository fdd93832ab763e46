"""Questions to the past: answered as a stopped image answers, and kept in the journal alone."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from tests.history import lived

from batos.config import Settings
from batos.errors import BatosError, BriefError, NotFound, OllamaUnreachable, PackedAway
from batos.events import Events
from batos.image.ids import tid_text
from batos.image.past import newest_commit
from batos.server.dispatch.dispatcher import Dispatcher
from batos.server.dispatch.uploads import Uploads
from batos.testing import ScriptedBridge, plain_reply, scripted_uvm
from batos.uvm import UVM, Seams, open_uvm

#: What differs between two missions that were asked the same.
_OWN = ("id", "accepted_at", "states", "tid", "as_of", "cost")


class Door:
    """What asks one thing of the mind as a door does; `told` are the events, `accepted` the missions."""

    def __init__(self, uvm: UVM) -> None:
        self.dispatcher = Dispatcher(uvm, Uploads(uvm.settings.place / "uploads", 10_000), works=False)
        self.told, self.accepted = list[str](), list[str]()

    async def __call__(self, verb: str, **args: Any) -> dict[str, Any]:
        """The result of a verb."""
        return await self.dispatcher.handle(
            verb, args, lambda event, keys: self.told.append(event), lambda keys: self.accepted.append(keys["mission"])
        )


def said_in(bridge: ScriptedBridge) -> list[list[dict[str, str]]]:
    """The prompts of all calls so far; the list is emptied."""
    found = [list(each.messages) for each in bridge.history]
    bridge.history.clear()
    return found


def comparable(mission: dict[str, Any]) -> dict[str, Any]:
    """A mission's document without what each mission has of its own."""
    found = {key: value for key, value in mission.items() if key not in _OWN}
    found["provenance"] = {k: v for k, v in found["provenance"].items() if k not in ("read_at", "journal")}
    found["brief"] = {k: v for k, v in found["brief"].items() if k != "id"}
    return found


async def test_the_past_answers_as_an_image_that_was_stopped_there(tmp_path: Path) -> None:
    """At random commits of a run: the same prompts, memories and answer, and no byte of the image is written."""
    bridge = ScriptedBridge(
        lambda request: plain_reply(request) if request.schema else "Maro winds the clockwork.", vectors=lived.meaning
    )
    async with scripted_uvm(tmp_path / "home", bridge, memory=False) as uvm:
        begun = newest_commit(uvm.image.db)
        await lived.live(uvm, 3)
        await uvm.mission_memory.write()
        size = uvm.image.sizes()["bytes"]
        made = [tid for tid in lived.commits(tmp_path / "home" / "live_image.fs") if tid >= begun]
        ask, recalled = Door(uvm), set()
        for tid in random.Random(3).sample(made, 5):
            copy = await asyncio.to_thread(lived.stopped, tmp_path / "home", tmp_path / tid.hex(), tid)
            brief = {"text": "Who winds the clockwork of the lamp?", "effort": "cycle", "user": "tester"}
            said_in(bridge)
            found = await ask("submit", brief=brief, follow=True, as_of=tid_text(tid))
            prompts = said_in(bridge)
            settings = Settings(home=copy, user="tester", parallel=8, install="never")
            async with open_uvm(settings, Events(log=False), Seams(bridge=bridge)) as stopped:
                expected = await stopped.missions.ask(brief)
            assert prompts == said_in(bridge)
            assert comparable(found) == comparable(expected)
            recalled.add(len(found["provenance"]["recalled"]))
        assert len(recalled) > 1, "the chosen moments are to differ"
        assert uvm.image.sizes()["bytes"] == size


async def test_a_question_to_the_past_is_shown_from_the_journal(tmp_path: Path) -> None:
    """By its id, to its user, with its prompts; it is in no list, and no later question finds it."""
    async with scripted_uvm(tmp_path) as uvm:
        ask = Door(uvm)
        first = await ask("submit", brief={"text": "What holds a pier?"}, follow=True)
        await ask("submit", brief={"text": "What else?"}, follow=True)
        asked = await ask("submit", brief={"text": "What was asked?"}, follow=True, as_of=first["id"])
        assert (asked["status"], asked["as_of"]["mission"]) == ("done", first["id"])
        mission = asked["id"]
        assert (ask.accepted[-1], "mission.done" in ask.told) == (mission, True)
        lines = (await ask("missions"))["missions"]
        assert [each["text"] for each in lines] == ["What else?", "What holds a pier?"]
        shown = await ask("show", mission=mission, user="tester", prompts=True)
        assert (shown["answer"], shown["as_of"]) == (asked["answer"], asked["as_of"])
        assert any("What was asked?" in each["content"] for each in shown["prompts"][-1]["messages"])
        assert (await ask("wait", mission=mission[:-2]))["answer"] == asked["answer"]
        with pytest.raises(NotFound):
            await ask("show", mission=mission, user="somebody")
        with pytest.raises(NotFound):
            await ask("cancel", mission=mission)
        for wrong, error in ((mission, NotFound), ("2001-01-01T00:00Z", PackedAway)):
            with pytest.raises(error):
                await ask("submit", brief={"text": "What?"}, follow=True, as_of=wrong)
        with pytest.raises(BriefError, match="waited for"):
            await ask("submit", brief={"text": "What?"}, as_of=first["id"])


async def test_a_call_to_the_past_is_paid_and_kept_if_its_asker_leaves(tmp_path: Path) -> None:
    """Cancelled with its call at the daemon, or left: the journal says so, and has what came until then."""
    at_daemon, go = asyncio.Event(), asyncio.Event()

    class Slow(ScriptedBridge):
        async def think(self, request: Any, on_token: Any = None, *, stream: bool = True) -> Any:
            if "slowly" in request.messages[-1]["content"]:
                at_daemon.set()
                await go.wait()
            return await super().think(request, on_token, stream=stream)

    async with scripted_uvm(tmp_path, Slow()) as uvm:
        ask = Door(uvm)
        moment = tid_text(newest_commit(uvm.image.db))

        async def begin() -> tuple[asyncio.Task[Any], str]:
            at_daemon.clear()
            brief = {"text": "What holds slowly?", "effort": "reflex"}
            asking = asyncio.create_task(ask("submit", brief=brief, follow=True, as_of=moment))
            await at_daemon.wait()
            return asking, ask.accepted[-1]

        asking, mission = await begin()
        assert (await ask("show", mission=mission))["status"] == "running"
        assert (await ask("cancel", mission=mission))["status"] == "cancelled"
        assert (await asking)["status"] == "cancelled"
        asking, mission = await begin()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        left = await ask("show", mission=mission)
        assert (left["status"], "whoever asked left" in left["reason"]["message"]) == ("cancelled", True)
        asking, mission = await begin()
        await ask.dispatcher.wait_until_settled()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert [each.state for each in uvm.journal.read([mission])] == ["failed"]


async def test_a_failure_in_the_past_is_one_of_that_mission(tmp_path: Path) -> None:
    """It is reported, and kept."""

    def respond(request: Any) -> str | BatosError:
        return OllamaUnreachable("gone") if "fails" in request.messages[-1]["content"] else plain_reply(request)

    async with scripted_uvm(tmp_path, ScriptedBridge(respond)) as uvm:
        ask = Door(uvm)
        brief = {"text": "What fails?", "effort": "reflex"}
        told = await ask("submit", brief=brief, follow=True, as_of=tid_text(newest_commit(uvm.image.db)))
        assert told["status"] == "failed"
        assert (await ask("show", mission=told["id"]))["reason"] == told["reason"]
