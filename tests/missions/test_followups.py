"""After a turn: the compaction that it makes due is begun in the background, once, and never fails the turn."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.conversations.written_turns import exchanges, is_record, recording, write_turns
from tests.minds.conftest import Mind
from tests.minds.scripted import Script, WaitingBridge, ask, change

from batos.conversations import compaction, conversations
from batos.image import roots
from batos.inference.ollama.bridge import ChatRequest
from batos.protocol.errors import BatosError, OllamaUnfit
from batos.testing import ScriptedBridge, plain_reply, scripted_uvm

PLAIN = "It is so."


async def turned(mind: Mind, name: str) -> str:
    """A turn of the conversation, answered; its mission."""
    mind.script.woven = PLAIN
    return str((await ask(mind.uvm, "And now?", (), effort="reflex", conversation=name))["id"])


def covered(mind: Mind, name: str) -> int:
    """The last turn that the view stands for."""
    with mind.uvm.image.snapshot() as root:
        view = conversations.nodes(root[roots.CONVERSATIONS][name])
        return view[-1].last if view else 0


async def ended(mind: Mind, number: int) -> None:
    """Wait until so many missions have been told as done."""
    enough = asyncio.Event()

    def told(*_event: Any) -> None:
        if len(mind.told("mission.done")) >= number:
            enough.set()

    leave = mind.uvm.events.subscribe(told)
    told()
    await enough.wait()
    leave()


async def test_a_turn_begins_what_it_makes_due(mind: Mind) -> None:
    """The compaction is a mission of its own, low in the queue, and by the time it ends the view is there."""
    mind.bridge.respond = recording(lambda request: "Anna Lund sealed jars.", mind.script)
    name = await write_turns(mind.uvm, exchanges(20))
    turn = await turned(mind, name)
    begun = await mind.uvm.follow_ups.begin(turn)
    assert begun is not None
    told = await mind.uvm.missions.wait_for_end(begun)
    assert (told["status"], told["brief"]["origin"]["door"], told["brief"]["priority"]) == ("done", "kernel", -9)
    assert covered(mind, name) > 0
    assert await mind.uvm.follow_ups.begin(begun) is None
    assert await mind.uvm.follow_ups.begin(turn) is None
    assert mind.uvm.readings.turns(name)["count"] == 21


async def test_a_process_that_works_sees_to_every_turn(mind: Mind) -> None:
    """Once it keeps house nobody has to ask; a turn that makes nothing due leads to nothing."""
    mind.bridge.respond = recording(lambda request: "Anna Lund sealed jars.", mind.script)
    mind.uvm.follow_ups.keep()
    name = await write_turns(mind.uvm, exchanges(20))
    await turned(mind, name)
    await ended(mind, 2)
    assert covered(mind, name) > 0
    calls = len([request for request in mind.bridge.history if is_record(request)])
    await turned(mind, name)
    await ended(mind, 3)
    assert len([request for request in mind.bridge.history if is_record(request)]) == calls
    assert len(mind.told("mission.done")) == 3


async def test_two_turns_at_once_make_one_compaction(mind: Mind) -> None:
    """Whoever looks second finds the first one's mission, and it runs once."""
    mind.bridge.respond = recording(lambda request: "Anna Lund sealed jars.", mind.script)
    name = await write_turns(mind.uvm, exchanges(20))
    turns = [await turned(mind, name) for _ in range(3)]
    begun = await asyncio.gather(*(mind.uvm.follow_ups.begin(turn) for turn in turns))
    for each in {mission for mission in begun if mission is not None}:
        await mind.uvm.missions.wait_for_end(each)
    paths = [path["path"] for path in mind.told("inference.start") if path["path"].startswith("compaction")]
    assert len(paths) == len(set(paths)) == len([each for each in mind.bridge.history if is_record(each)])


async def test_turns_on_a_busy_machine_make_one_compaction(tmp_path: Path) -> None:
    """While it waits for a worker behind what people ask, further turns add none to the queue."""
    script = Script(woven=PLAIN)
    bridge = WaitingBridge(recording(lambda request: "Anna Lund sealed jars.", script))
    async with scripted_uvm(tmp_path, bridge, missions=1) as uvm:
        mind = Mind(uvm, bridge, script, [])
        name = await write_turns(uvm, exchanges(20))
        turns: list[str] = []
        for number in (1, 2, 3):
            turn = asyncio.ensure_future(turned(mind, name))
            await bridge.let(number)
            turns.append(await turn)
        busy = await uvm.missions.submit({"text": "Why?", "effort": "reflex", "persona": "BRICK"})
        await uvm.missions.begin(busy)
        await bridge.arrived(4)
        begun = {await uvm.follow_ups.begin(turn) for turn in turns}
        assert len(begun) == 1
        assert len(uvm.readings.newest(status="queued")) == 1
        await uvm.missions.cancel(str(begun.pop()))
        again = await uvm.follow_ups.begin(turns[0])
        assert [each["id"] for each in uvm.readings.newest(status="queued")] == [again]


async def test_a_compaction_that_never_ran_is_gone_on_with_by_the_next_process(tmp_path: Path) -> None:
    """What was queued when a process ended is no second mission of the next one."""
    bridge = ScriptedBridge(recording(lambda request: "Anna Lund sealed jars.", plain_reply))
    async with scripted_uvm(tmp_path, bridge, memory=False) as uvm:
        name = await write_turns(uvm, exchanges(20))
        turn = str(uvm.readings.turns(name, -1, 1)["turns"][0]["mission"])
        with uvm.image.snapshot() as root:
            due = compaction.due(root, turn)
        assert isinstance(due, dict)
        left = await uvm.missions.submit(due)
    async with scripted_uvm(tmp_path, bridge, memory=False) as uvm:
        assert await uvm.follow_ups.begin(turn) == left
        assert (await uvm.missions.wait_for_end(left))["status"] == "done"


async def test_a_compaction_that_fails_leaves_the_turn_done_and_is_tried_again(mind: Mind) -> None:
    """The turn stands, later turns count what does not fit; the next one continues it."""
    mind.bridge.respond = recording(lambda request: OllamaUnfit("no"), mind.script)
    name = await write_turns(mind.uvm, exchanges(45))
    turn = await turned(mind, name)
    first = await mind.uvm.follow_ups.begin(turn)
    assert first is not None
    assert (await mind.uvm.missions.wait_for_end(first))["status"] == "failed"
    assert mind.uvm.readings.mission(turn)["status"] == "done"
    again = await turned(mind, name)
    assert mind.uvm.readings.mission(again)["provenance"]["omitted"]["turns"] > 0
    mind.bridge.respond = recording(lambda request: "Anna Lund sealed jars.", mind.script)
    second = await mind.uvm.follow_ups.begin(again)
    assert second is not None
    told = await mind.uvm.missions.wait_for_end(second)
    assert told["brief"]["ancestor"] == first
    assert (told["status"], covered(mind, name) > 0) == ("done", True)


@pytest.mark.parametrize("how", ["cancelled", "paused"])
async def test_what_was_paid_for_is_not_paid_again(mind: Mind, how: str) -> None:
    """A compaction that is stopped between two pieces goes on behind the last one, whoever goes on with it."""
    stopped = asyncio.Event()

    def record(request: ChatRequest) -> str | BatosError:
        if len([each for each in mind.bridge.history if is_record(each)]) == 3 and not stopped.is_set():
            stopped.set()
        return "Anna Lund sealed jars."

    mind.bridge.respond = recording(record, mind.script)
    name = await write_turns(mind.uvm, exchanges(80, 800))
    begun = await mind.uvm.follow_ups.begin(await turned(mind, name))
    assert begun is not None
    await stopped.wait()
    await (mind.uvm.missions.cancel(begun) if how == "cancelled" else mind.uvm.missions.pause(begun))
    if how == "paused":
        await mind.uvm.missions.resume(begun)
        assert (await mind.uvm.missions.wait_for_end(begun))["status"] == "done"
    else:
        again = await mind.uvm.follow_ups.begin(await turned(mind, name))
        assert again is not None
        assert (await mind.uvm.missions.wait_for_end(again))["status"] == "done"
    asked = [request.messages[-1]["content"] for request in mind.bridge.history if is_record(request)]
    assert len(asked) == len(set(asked))


async def test_what_is_paid_and_not_kept_is_served_from_the_journal(mind: Mind) -> None:
    """A process that dies between a reply and its piece: the mission that continues it pays nothing for that piece."""
    mind.bridge.respond = recording(lambda request: "Anna Lund sealed jars.", mind.script)
    name = await write_turns(mind.uvm, exchanges(60, 800))
    brief = {"text": f"Compact {name}.", "message": {"receiver": name, "selector": "compact_"}}
    first = await mind.uvm.missions.ask(brief)
    whole = covered(mind, name)

    def forgotten(root: Any) -> None:
        conversation = root[roots.CONVERSATIONS][name]
        conversation.view = conversation.view[:-1]

    await change(mind.uvm, forgotten)
    assert covered(mind, name) < whole
    again = await mind.uvm.missions.ask({**brief, "ancestor": first["id"]})
    assert (again["cost"]["calls"], again["cost"]["from_journal"]) == (0, 1)
    assert covered(mind, name) == whole


async def test_a_restart_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """The process ends in the middle of a piece; the next one runs the same mission on, behind what stands."""
    first = WaitingBridge(recording(lambda request: "Anna Lund sealed jars.", plain_reply))
    async with scripted_uvm(tmp_path / "home", first, memory=False) as uvm:
        name = await write_turns(uvm, exchanges(60, 800))
        brief = {"text": f"Compact {name}.", "message": {"receiver": name, "selector": "compact_"}}
        mission = await uvm.missions.submit(brief)
        await uvm.missions.begin(mission)
        await first.let(1)
        await first.let(2)
        await first.arrived(3)
    second = ScriptedBridge(recording(lambda request: "Anna Lund sealed jars.", plain_reply))
    async with scripted_uvm(tmp_path / "home", second, memory=False) as uvm:
        assert len(uvm.readings.turns(name)["compactions"]) == 2
        assert await uvm.missions.recover() == [mission]
        await uvm.missions.begin(mission)
        assert (await uvm.missions.wait_for_end(mission))["status"] == "done"
        spans = [each["turns"] for each in uvm.readings.turns(name)["compactions"]]
    assert [start for start, _ in spans] == [1, *(last + 1 for _, last in spans[:-1])]
    paid = [each.messages for each in first.history[:2]]
    assert not [each for each in second.history if each.messages in paid]
