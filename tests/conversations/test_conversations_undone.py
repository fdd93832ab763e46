"""Undone turns: their positions stay free, no summary quotes one, and none is counted as left out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.conversations.test_compaction import compacted, tell, view
from tests.conversations.test_conversations import PLAIN, paused
from tests.conversations.written_turns import exchanges, recording, write_turns
from tests.history.test_as_of_past_questions import Door
from tests.memory.records.test_memories_set_aside_retractions import AT
from tests.memory.test_document_store import incoming
from tests.minds.conftest import Mind
from tests.minds.scripted import ask, change

from batos.conversations import compaction, conversations
from batos.image import roots
from batos.image.roots import Root
from batos.inference.ollama.bridge import ChatRequest
from batos.memory.records import memories_set_aside
from batos.protocol.errors import OllamaUnreachable, Refused


def mission_at(mind: Mind, name: str, position: int) -> str:
    """The mission of a turn."""
    with mind.uvm.image.snapshot() as root:
        return str(root[roots.CONVERSATIONS][name].turns[position])


async def undo(mind: Mind, name: str, position: int) -> str:
    """Undo a turn as a person does; its mission."""
    mission = mission_at(mind, name, position)
    await Door(mind.uvm)("undo", mission=mission, cascade=True, user="tester")
    return mission


async def redo(mind: Mind, mission: str) -> None:
    """Bring it back."""
    await Door(mind.uvm)("redo", mission=mission, user="tester")


def spans_of(mind: Mind, name: str) -> list[tuple[int, int]]:
    """The first and the last position of each summary."""
    return [(first, last) for first, last, _ in view(mind, name)]


async def test_a_conversation_with_an_undone_beginning_is_compacted(mind: Mind) -> None:
    """The first summary stands for the free position too, and the next one begins right behind it."""
    tell(mind)
    name = await write_turns(mind.uvm, exchanges(40, 800))
    await undo(mind, name, 1)
    told = await compacted(mind, name)
    assert (told["left"], len(told["made"]) > 1) == (0, True)
    spans = spans_of(mind, name)
    assert [first for first, _ in spans] == [1, *(last + 1 for _, last in spans[:-1])]
    newest = mind.uvm.readings.newest(1, status="done")[0]["id"]
    with mind.uvm.image.snapshot() as root:
        assert compaction.due(root, newest) is None


async def test_a_free_position_behind_a_summary_is_the_next_one_s(mind: Mind) -> None:
    """Wherever the pieces are cut, the view has no gap."""
    tell(mind)
    name = await write_turns(mind.uvm, exchanges(40, 800))
    await compacted(mind, name)
    behind = spans_of(mind, name)[0][1] + 1
    await undo(mind, name, behind)
    assert spans_of(mind, name) == []
    assert (await compacted(mind, name))["left"] == 0
    spans = spans_of(mind, name)
    assert [first for first, _ in spans] == [1, *(last + 1 for _, last in spans[:-1])]
    assert behind not in [last for _, last in spans]


async def test_an_interrupted_compaction_up_to_an_undone_turn_goes_on_without_it(mind: Mind) -> None:
    """The turn before is the last that is compacted; the one who goes on does not fail for it."""
    mind.bridge.respond = recording(lambda request: OllamaUnreachable("gone"), mind.script)
    name = await write_turns(mind.uvm, exchanges(40, 800))
    newest = mind.uvm.readings.newest(1)[0]["id"]
    with mind.uvm.image.snapshot() as root:
        brief = compaction.due(root, newest)
    assert isinstance(brief, dict)
    with pytest.raises(OllamaUnreachable):
        await mind.uvm.missions.ask(brief)
    mission = mind.uvm.readings.newest(1)[0]["id"]
    (target,) = [note["compacting"] for note in mind.uvm.journal.notes(mission) if "compacting" in note]
    with mind.uvm.image.snapshot() as root:
        last = conversations.count(root[roots.CONVERSATIONS][name])
    for position in range(last, target - 1, -1):
        await undo(mind, name, position)
    tell(mind)
    told = await compacted(mind, name, text=brief["text"], ancestor=mission)
    assert (told["covered"], told["left"]) == (target - 1, 0)


# -- while a compaction runs


async def changed_meanwhile(mind: Mind, name: str, meanwhile: Callable[[], Any], **brief: Any) -> dict[str, Any]:
    """A compaction during whose first call something happens."""
    asked: list[asyncio.Task[Any]] = []
    said = mind.bridge.think

    async def think(request: ChatRequest, *args: Any, **named: Any) -> Any:
        if not asked:
            asked.append(asyncio.create_task(meanwhile()))
            await asked[0]
        return await said(request, *args, **named)

    mind.bridge.think = think  # type: ignore[method-assign]
    tell(mind)
    told = await compacted(mind, name, **brief)
    mind.bridge.think = said  # type: ignore[method-assign]
    return told


async def test_a_turn_that_is_undone_during_a_compaction_is_in_no_summary(mind: Mind) -> None:
    """That mission keeps nothing and says why; the next one makes the view of the turns that stand."""
    name = await write_turns(mind.uvm, exchanges(20))
    told = await changed_meanwhile(mind, name, lambda: undo(mind, name, 3))
    assert (told["made"], view(mind, name)) == ([], [])
    assert "changed meanwhile" in told["note"]
    assert (await compacted(mind, name))["left"] == 0
    assert view(mind, name)


async def test_a_turn_that_comes_back_during_a_compaction_is_in_the_next_view(mind: Mind) -> None:
    """A summary that was made without it is not kept."""
    name = await write_turns(mind.uvm, exchanges(20))
    mission = await undo(mind, name, 3)
    told = await changed_meanwhile(mind, name, lambda: redo(mind, mission))
    assert (told["made"], view(mind, name)) == ([], [])


async def test_an_answer_that_is_retracted_during_a_compaction_is_in_no_summary(mind: Mind) -> None:
    """The summaries of its conversation are dropped also if there is none yet."""
    mind.script.woven = PLAIN
    await mind.uvm.document_store.remember([incoming("Maro winds the lamp.", "/lamp.md")])
    shown = await ask(mind.uvm, "Who winds the lamp?", (), effort="reflex", conversation="new", user="ann")
    name = await write_turns(mind.uvm, exchanges(20), "ann", name=shown["brief"]["conversation"])

    def retract(root: Root) -> None:
        (document,) = memories_set_aside.names_from_source(root, "/lamp.md", "ann")
        done = memories_set_aside.retract(root, [document], ("ann", AT), cascade=True)
        assert done.missions == (shown["id"],)

    told = await changed_meanwhile(mind, name, lambda: change(mind.uvm, retract), user="ann")
    assert (told["made"], view(mind, name)) == ([], [])


# -- what an answer says of its past


async def test_undone_turns_are_not_counted_as_left_out(mind: Mind) -> None:
    """Those that are there were all shown: nothing is said of a lack of room."""
    mind.script.woven = PLAIN
    name = await write_turns(mind.uvm, exchanges(5, 20))
    for position in (4, 1):
        await undo(mind, name, position)
    shown = await ask(mind.uvm, "And now?", (), effort="reflex", conversation=name)
    assert [each.get("turn") for each in shown["provenance"]["recalled"]] == [2, 3, 5]
    assert shown["provenance"]["omitted"]["turns"] == 0


async def test_an_undone_turn_that_is_back_counts_again(mind: Mind) -> None:
    """Of a conversation that does not fit, every turn is shown or counted."""
    mind.script.woven = PLAIN
    name = await write_turns(mind.uvm, exchanges(200, 400))
    mission = await undo(mind, name, 3)

    async def told_of() -> int:
        shown = await ask(mind.uvm, "And now?", (), effort="reflex", conversation=name)
        return len(shown["provenance"]["recalled"]) + int(shown["provenance"]["omitted"]["turns"])

    assert await told_of() == 199
    await redo(mind, mission)
    assert await told_of() == 201


# -- what a later attempt looks back to


async def test_a_later_attempt_uses_no_summary_of_an_undone_turn(mind: Mind) -> None:
    """The noted summaries are still in the image; the present view stands in their place."""
    tell(mind, "Anna Lund sealed jar 1003.")
    mind.script.woven = PLAIN
    name = await write_turns(mind.uvm, exchanges(20))
    await compacted(mind, name)
    mission = await paused(mind, name)
    await undo(mind, name, 3)
    before = len(mind.bridge.history)
    await mind.uvm.missions.resume(mission)
    await mind.uvm.missions.begin(mission)
    shown = await mind.uvm.missions.wait_for_end(mission)
    assert shown["status"] == "done"
    assert not [each for each in shown["provenance"]["recalled"] if "turns" in each]
    assert not [each for each in mind.bridge.history[before:] if "sealed jar 1003." in str(each.messages)]


async def test_a_dream_that_was_shown_a_summary_of_an_undone_turn_is_not_promoted(mind: Mind) -> None:
    """Until the turn is back; a summary that was made without the turn is no reason."""
    tell(mind)
    mind.script.woven = PLAIN
    door = Door(mind.uvm)
    name = await write_turns(mind.uvm, exchanges(20))
    await compacted(mind, name)
    brief = {"text": "And now?", "effort": "reflex", "conversation": name, "user": "tester", "persona": "BRICK"}
    dream = await door("dream_new", brief=brief)
    gone = await undo(mind, name, 3)
    with pytest.raises(Refused, match=f"builds on {gone}, which is undone"):
        await door("dream_promote", dream=dream["id"])
    await compacted(mind, name)
    other = await door("dream_new", brief=brief)
    assert other["provenance"]["recalled"][0]["undone"] == [3]
    await door("dream_promote", dream=other["id"])
    assert mind.uvm.readings.mission(other["id"])["status"] == "done"
