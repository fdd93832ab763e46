"""Questions to the past: answered as a stopped image answers, and kept in the journal alone."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.history import lived
from tests.methods.generation.learning import CYCLE, learning
from tests.waiting import a_moment, until

from batos.config import Settings
from batos.events import Events
from batos.image import roots
from batos.image.ids import tid_text
from batos.image.past import newest_commit
from batos.protocol.errors import BatosError, BriefError, Busy, NotFound, OllamaUnreachable, PackedAway, TimedOut
from batos.server.dispatch.dispatcher import Dispatcher
from batos.server.dispatch.guests import CopyPlaces
from batos.server.dispatch.uploads import Uploads
from batos.testing import ScriptedBridge, plain_reply, scripted_uvm
from batos.uvm import UVM, Seams, open_uvm

#: What differs between two missions that were asked the same.
_OWN = ("id", "accepted_at", "states", "tid", "as_of", "cost")


class Door:
    """What asks one thing of the mind as a door does; `told` are the events, `accepted` the missions."""

    def __init__(self, uvm: UVM, places: CopyPlaces | None = None) -> None:
        uploads = Uploads(uvm.settings.place / "uploads", 10_000)
        self.dispatcher = Dispatcher(uvm, uploads, works=False, places=places)
        self.told, self.accepted = list[str](), list[str]()

    async def __call__(self, verb: str, **args: Any) -> dict[str, Any]:
        """The result of a verb."""
        return await self.dispatcher.handle(
            verb,
            args,
            lambda event, keys: self.told.append(event),
            lambda keys: self.accepted.append(str(keys["mission"])),
        )


def said_in(bridge: ScriptedBridge) -> list[list[dict[str, str]]]:
    """The prompts of all calls so far; the list is emptied."""
    found = [list(each.messages) for each in bridge.history]
    bridge.history.clear()
    return found


def comparable(mission: Mapping[str, Any]) -> dict[str, Any]:
    """A mission's document without what each mission has of its own."""
    found = {key: value for key, value in mission.items() if key not in _OWN}
    found["provenance"] = {k: v for k, v in found["provenance"].items() if k not in ("read_at", "journal")}
    found["brief"] = {k: v for k, v in found["brief"].items() if k != "id"}
    return found


class SlowBridge(ScriptedBridge):
    """A daemon that answers a question about `slowly` when it may go."""

    def __init__(self) -> None:
        super().__init__()
        self.came, self.go = asyncio.Event(), asyncio.Event()

    async def think(self, request: Any, *args: Any, **named: Any) -> Any:
        """As any."""
        if "slowly" in request.messages[-1]["content"]:
            self.came.set()
            await self.go.wait()
        return await super().think(request, *args, **named)

    async def begin(self, ask: Door, verb: str, **args: Any) -> tuple[asyncio.Task[Any], str]:
        """Ask a slow question by a verb; returned with its id when it is at the daemon."""
        self.came.clear()
        brief = {"text": "What holds slowly?", "effort": "reflex", "user": "tester", **args.pop("brief", {})}
        asking = asyncio.create_task(ask(verb, brief=brief, follow=True, **args))
        await self.came.wait()
        return asking, ask.accepted[-1]


@asynccontextmanager
async def slow_mind(home: Path) -> AsyncIterator[tuple[UVM, SlowBridge]]:
    """A mind and its slow daemon."""
    slow = SlowBridge()
    async with scripted_uvm(home, slow) as uvm:
        yield uvm, slow


async def test_the_past_answers_as_an_image_that_was_stopped_there(tmp_path: Path) -> None:
    """At random commits of a run: the same prompts, memories and answer, and no byte of the image is written.

    But for moments at which statements waited to be remembered: an image that goes on remembers them first.
    """
    bridge = ScriptedBridge(
        lambda request: plain_reply(request) if request.schema else "Maro winds the clockwork.", vectors=lived.meaning
    )
    async with scripted_uvm(tmp_path / "home", bridge, memory=False) as uvm:
        begun = newest_commit(uvm.image.db)
        await lived.live(uvm, 3)
        await uvm.mission_memory.write()
        await uvm.counters.flush()  # else some seconds later, which a slow machine needs for the rest
        size = uvm.image.sizes()["bytes"]
        made = [tid for tid in lived.commits(tmp_path / "home" / "live_image.fs") if tid >= begun]
        ask, recalled, compared = Door(uvm), set(), list[bytes]()
        random.Random(3).shuffle(made)
        while len(compared) < 5:
            tid = made.pop()
            copy = await asyncio.to_thread(lived.stopped, tmp_path / "home", tmp_path / tid.hex(), tid)
            brief = {"text": "Who winds the clockwork of the lamp?", "effort": "cycle", "user": "tester"}
            said_in(bridge)
            found = await ask("submit", brief=brief, follow=True, as_of=tid_text(tid))
            prompts = said_in(bridge)
            settings = Settings(home=copy, user="tester", parallel=8, install="never")
            async with open_uvm(settings, Events(log=False), Seams(bridge=bridge)) as stopped:
                with stopped.image.snapshot() as root:
                    if root[roots.UNREMEMBERED]:
                        continue
                expected = await stopped.missions.ask(brief)
            compared.append(tid)
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
    async with slow_mind(tmp_path) as (uvm, slow):
        ask = Door(uvm)
        moment = tid_text(newest_commit(uvm.image.db))
        asking, mission = await slow.begin(ask, "submit", as_of=moment)
        assert (await ask("show", mission=mission))["status"] == "running"
        assert (await ask("cancel", mission=mission))["status"] == "cancelled"
        assert (await asking)["status"] == "cancelled"
        asking, mission = await slow.begin(ask, "submit", as_of=moment)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        left = await ask("show", mission=mission)
        assert (left["status"], "whoever asked left" in left["reason"]["message"]) == ("cancelled", True)
        asking, mission = await slow.begin(ask, "submit", as_of=moment)
        await ask.dispatcher.wait_until_settled()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert [each.state for each in uvm.journal.read([mission])] == ["failed"]


@pytest.mark.parametrize("verb", ["submit", "dream_new"])
async def test_a_running_question_is_waited_for(tmp_path: Path, verb: str) -> None:
    """By anybody of its user, by the beginning of its id too: its events are told until its end, then its answer."""
    async with slow_mind(tmp_path) as (uvm, slow):
        ask, other, left = Door(uvm), Door(uvm), Door(uvm)
        other.dispatcher = left.dispatcher = ask.dispatcher
        as_of = {"as_of": tid_text(newest_commit(uvm.image.db))} if verb == "submit" else {}
        asking, mission = await slow.begin(ask, verb, **as_of)
        shown = await ask("show", mission=mission)
        assert (shown["status"], shown.get("dream", False)) == ("running", verb == "dream_new")
        with pytest.raises(TimedOut, match=f"{mission} has not ended after 0.05 s"):
            await other("wait", mission=mission, seconds=0.05)
        with pytest.raises(NotFound):
            await other("wait", mission=mission, user="somebody")
        assert other.told == []
        waiting = asyncio.create_task(other("wait", mission=mission[:-1], user="tester", follow=True))
        leaving = asyncio.create_task(left("wait", mission=mission))
        await until(lambda: other.accepted and left.accepted, "the beginning of both waits")
        await a_moment()
        assert (waiting.done(), leaving.done()) == (False, False)
        leaving.cancel()
        slow.go.set()
        told, waited = await asking, await waiting
        assert (waited["status"], waited["answer"], waited["as_of"]) == ("done", told["answer"], told["as_of"])
        assert (set(other.accepted), "mission.done" in other.told) == ({mission}, True)
        assert waited == await ask("show", mission=mission)


async def test_whoever_waits_is_told_that_the_question_was_left(tmp_path: Path) -> None:
    """With its document: nobody answers it any more."""
    async with slow_mind(tmp_path) as (uvm, slow):
        ask = Door(uvm)
        asking, mission = await slow.begin(ask, "dream_new")
        waiting = asyncio.create_task(ask("wait", mission=mission))
        await until(lambda: len(ask.accepted) == 2, "the beginning of the wait")
        asking.cancel()
        reason = (await waiting)["reason"]
        assert ("whoever asked left" in reason["message"], reason["remedy"]) == (True, "Ask again.")


@pytest.mark.parametrize("verb", ["submit", "dream_new"])
async def test_a_deadline_that_passes_names_no_ancestor(tmp_path: Path, verb: str) -> None:
    """The image has no such mission, whose calls another could reuse."""
    async with slow_mind(tmp_path) as (uvm, _):
        ask = Door(uvm)
        as_of = {"as_of": tid_text(newest_commit(uvm.image.db))} if verb == "submit" else {}
        # Any pace: it fails alike if its deadline has passed before it begins.
        deadline = (datetime.now(UTC) + timedelta(seconds=0.5)).isoformat()
        brief = {"text": "What holds slowly?", "effort": "reflex", "deadline": deadline}
        told = await ask(verb, brief=brief, follow=True, **as_of)
        assert (told["status"], told["reason"]["code"]) == ("failed", "timed_out")
        assert told["reason"]["remedy"] == "Ask again with a later deadline."
        assert (await ask("show", mission=told["id"])) == told


async def test_what_would_wait_for_a_person_names_options_that_there_are(tmp_path: Path) -> None:
    """They are those of a brief's policy."""
    async with learning(tmp_path, install="ask", interpret="never") as found:
        ask, brief = Door(found.uvm), {**CYCLE, "text": "What holds a pier?"}
        told = await ask("dream_new", brief=brief)
        assert (told["status"], "waits for nobody" in told["reason"]["message"]) == ("cancelled", True)
        words = told["reason"]["remedy"].removesuffix(".").split()
        policy = {"install": words[words.index("--install") + 1], "interpret": words[words.index("--interpret") + 1]}
        assert (await ask("dream_new", brief={**brief, "policy": policy}))["status"] == "done"


async def test_a_running_question_is_cancelled_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    """By its user; one that is over is cancelled by no name."""
    async with slow_mind(tmp_path) as (uvm, slow):
        ask = Door(uvm)
        asking, mission = await slow.begin(ask, "dream_new")
        with pytest.raises(NotFound):
            await ask("cancel", mission=mission[:-1], user="somebody")
        assert (await ask("cancel", mission=mission[:-1], user="tester"))["status"] == "cancelled"
        assert (await asking)["status"] == "cancelled"
        with pytest.raises(NotFound):
            await ask("cancel", mission=mission[:-1], user="tester")


async def test_guests_leave_the_home_a_copy_of_the_mind(tmp_path: Path) -> None:
    """While a guest's question is answered another one of a guest is told busy, and the home is answered."""
    async with slow_mind(tmp_path) as (uvm, slow):
        ask = Door(uvm, CopyPlaces(seconds=0.05))
        moment = tid_text(newest_commit(uvm.image.db))
        asking, _ = await slow.begin(ask, "submit", as_of=moment, user="key laptop")
        brief = {"text": "What holds a pier?", "effort": "reflex"}
        with pytest.raises(Busy):
            await ask("dream_new", brief={**brief, "user": "key laptop"}, user="key laptop", follow=True)
        assert (await ask("dream_new", brief=brief, follow=True))["status"] == "done"
        slow.go.set()
        assert (await asking)["status"] == "done"


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
