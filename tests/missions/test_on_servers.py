"""A mind on a real database server: questions side by side, the answers after a restart, and a node that is killed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.history.test_as_of_past_questions import Door
from tests.image.lease_clock import LEASE
from tests.image.open_image import child, heard, open_image
from tests.image.servers import zeo_server, zeo_uri
from tests.minds.scripted import Script, kind
from tests.missions.pace import RacingClock
from tests.waiting import HANG

from batos.history.as_of import find_moment
from batos.image import roots
from batos.objects.prototype import own_slots
from batos.server.dispatch.reads import explain
from batos.testing import ScriptedBridge, scripted_uvm

NOWHERE = {"memory": "none"}


@pytest.fixture(params=["zeo", "postgres"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Two storages of a ZEO server, or two databases of PostgreSQL."""
    cache = f"blob_dir={tmp_path / 'cache'}"
    if request.param == "zeo":
        with zeo_server(tmp_path) as port:
            yield {"image": zeo_uri(port, cache), "journal": ""}
        return
    image, journal = request.getfixturevalue("databases")
    yield {"image": f"{image}?{cache}&connect_timeout={HANG:.0f}", "journal": journal}


async def test_a_mind_lives_on_a_server(tmp_path: Path, places: dict[str, Any]) -> None:
    """Four questions at a time are answered, and the answers are there when it is opened again."""
    async with scripted_uvm(tmp_path / "home", memory=False, missions=4, **places) as uvm:
        asked = [uvm.missions.ask({"text": f"Question {number}?", "effort": "reflex"}) for number in range(4)]
        answers = {one["id"]: one["answer"] for one in await asyncio.gather(*asked)}
        assert all(answers.values())
    async with scripted_uvm(tmp_path / "home", memory=False, missions=4, **places) as uvm:
        with uvm.image.snapshot() as root:
            kept = {mission: own_slots(uvm.image.find(root, mission)[2])["answer"] for mission in answers}
        assert kept == answers


async def test_the_past_of_a_mind_on_a_server(tmp_path: Path, places: dict[str, Any]) -> None:
    """A mission is undone and comes back after a pack; the past is asked; a dream is promoted, a mission replayed."""
    async with scripted_uvm(tmp_path / "home", memory=False, **places) as uvm:
        ask = Door(uvm)
        brief = {"text": "My cat is called Miso.", "effort": "reflex", "user": "tester"}
        first = await ask("submit", brief=brief, follow=True)
        moment = (await ask("memories", as_of=first["id"]))["as_of"]
        assert (await ask("show", mission="last", as_of=first["id"]))["id"] == first["id"]
        second = await ask("submit", brief={**brief, "text": "What is a sluice?", "policy": NOWHERE}, follow=True)
        told = await ask("undo", mission=first["id"], user="tester")
        assert len(told["undone"]) == 1
        assert {each["mission"] for each in (await ask("memories"))["memories"]} <= {second["id"]}
        assert (await ask("show", mission=first["id"], as_of=moment["tid"]))["answer"] == first["answer"]
        assert (await ask("submit", brief=brief, follow=True, as_of=moment["tid"]))["status"] == "done"
        dream = await ask("dream_new", brief={**brief, "text": "What if it were a dog?"})
        assert (await ask("dream_promote", dream=dream["id"]))["answer"] == dream["answer"]
        again = await ask("replay", mission=second["id"])
        assert (again["replay"]["made"], again["answer"]) == ([], second["answer"])
        await asyncio.to_thread(uvm.image.db.pack)
        assert (await ask("redo", user="tester"))["redone"] == [first["id"]]
        assert (await ask("show", mission=first["id"]))["answer"] == first["answer"]
        with uvm.image.snapshot() as root:
            assert {word: n for word, n in root[roots.TALLY].items() if n} == roots.count_by_status(root)


async def test_why_knows_a_mission_that_came_after_the_last_question(tmp_path: Path, places: dict[str, Any]) -> None:
    """Its commits are told, the newer one's too; and its moment can be asked about."""
    async with scripted_uvm(tmp_path / "home", memory=False, **places) as uvm:
        for text in ("What is a weir?", "What is a sluice?"):
            told = await uvm.missions.ask({"text": text, "effort": "reflex", "user": "tester"})
            found = await asyncio.to_thread(explain, uvm.readings, told["id"], "tester")
            assert [each["text"] for each in found["because"] if each["kind"] == "commit"] == [
                "read the mind", "committed the thought", "published what it contributes",
            ]  # fmt: skip
            moment = await asyncio.to_thread(find_moment, uvm.readings, told["id"], "tester")
            assert moment.mission == told["id"]


async def test_another_node_finishes_what_a_killed_one_began(tmp_path: Path, places: dict[str, Any]) -> None:
    """It has a home of its own, takes over when the lease has ended, and pays for no call again."""
    script = Path(__file__).with_name("script_node_killed.py")
    with child(script, tmp_path / "first", places["image"], places["journal"]) as process:
        while not (mission := await heard(process)).startswith("m-"):  # a line of the log
            pass
        await asyncio.to_thread(process.wait)
        clock = RacingClock()
        async with open_image(None, **places, lease=LEASE, lease_clock=clock) as image:
            await clock.outlive_others(image)
        bridge = ScriptedBridge(Script())
        async with scripted_uvm(tmp_path / "second", bridge, memory=False, **places, lease=LEASE) as uvm:
            uvm.sharing.take_up()
            assert (await uvm.missions.wait_for_end(mission))["status"] == "done"
    assert bridge.history
    assert [request for request in bridge.history if kind(request) == "decomposition"] == []
