"""A mission's life: paid once however often it is run, done once it is committed, told in order."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.minds.conftest import Mind
from tests.minds.scripted import LAMP, QUESTION, Script, WaitingBridge, ask, kind, stepping, submit
from tests.waiting import HANG

from batos.image import roots
from batos.image.ids import utc_now
from batos.image.writer import Publisher
from batos.inference.ollama.bridge import ChatRequest
from batos.minds import clock, context_building
from batos.objects.prototype import own_slots
from batos.protocol.brief import as_file
from batos.protocol.errors import BatosError, NotFound, OllamaUnreachable, Refused, StreamCut
from batos.protocol.mission_documents import MissionDocument
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM


def _counted(mind: Mind) -> dict[str, Any]:
    with mind.uvm.image.snapshot() as root:
        return {name: root[roots.STATISTICS].get(name) for name in ("missions", "calls")}


async def _die_at(uvm: UVM, mission: str, state: str) -> None:
    """Run the mission until it has entered this state, then leave it as a process that is killed does."""
    await uvm.image.move(mission, "running")
    async with stepping(uvm, mission) as opened:
        async for entered in opened.machine.steps(opened.cycle):
            if entered == state:
                break
        await uvm.journal.flush(mission)


async def _next_start(uvm: UVM, mission: str) -> None:
    """What the next start does with a mission that was left running."""
    assert await uvm.missions.recover() == [mission]


@pytest.mark.parametrize(
    ("state", "left"), [("DECOMPOSING", 5), ("DELEGATING", 4), ("SYNTHESIZING", 1), ("COMPLETE", 0)]
)
async def test_a_second_attempt_pays_only_for_what_is_left(mind: Mind, state: str, left: int) -> None:
    """After a death in any state the mission is run again: what the journal has is not asked again."""
    mission = await submit(mind.uvm)
    await _die_at(mind.uvm, mission, state)
    paid = len(mind.bridge.history)
    await _next_start(mind.uvm, mission)
    shown = await mind.uvm.missions.run(mission)
    assert shown["status"] == "done"
    assert len(mind.bridge.history) - paid == left
    assert shown["cost"]["calls"] == 5  # in both of its runs
    assert shown["cost"]["from_journal"] == 5 - left
    assert len(shown["provenance"]["journal"]) == 5


async def test_a_budget_holds_over_all_runs(mind: Mind) -> None:
    """What an earlier run has spent is spent: the next one serves what is paid for, and pays for nothing beyond it."""
    mission = await submit(mind.uvm, budget={"calls": 4})
    await _die_at(mind.uvm, mission, "SYNTHESIZING")
    mind.bridge.history.clear()
    await _next_start(mind.uvm, mission)
    with pytest.raises(Refused, match="has spent its 4 calls"):
        await mind.uvm.missions.run(mission)
    assert mind.bridge.history == []
    cost = mind.uvm.readings.mission(mission)["cost"]
    assert (cost["calls"], cost["from_journal"]) == (4, 4)


async def test_what_others_learnt_meanwhile_changes_nothing(mind: Mind) -> None:
    """A second attempt chooses the same evidence although the model's density was measured anew in between."""
    mission = await submit(mind.uvm)
    await _die_at(mind.uvm, mission, "COMPLETE")
    paid = [request.messages for request in mind.bridge.history]

    def denser(root: Any) -> None:
        root[roots.STATISTICS]["measured"] = {request.model: (100, 99) for request in mind.bridge.history}

    await mind.uvm.image.writer.apply(denser)
    await _next_start(mind.uvm, mission)
    shown = await mind.uvm.missions.run(mission)
    assert shown["cost"]["calls"] == len(paid)
    assert [request.messages for request in mind.bridge.history] == paid


async def test_an_ancestors_answers_are_served(mind: Mind) -> None:
    """The same question with `ancestor`, later, by another id: nothing is paid again, and provenance shows it."""
    first = await ask(mind.uvm)
    calls = len(mind.bridge.history)
    again = await ask(mind.uvm, ancestor=first["id"])
    assert len(mind.bridge.history) == calls
    assert again["cost"]["calls"] == 0
    assert again["cost"]["from_journal"] == 5
    assert sorted(again["provenance"]["journal"]) == sorted(first["provenance"]["journal"])
    assert again["answer"] == first["answer"]
    assert again["brief"]["ancestor"] == first["id"]
    grandchild = await ask(mind.uvm, ancestor=again["id"])
    assert grandchild["cost"]["calls"] == 0


async def test_an_ancestor_that_failed_is_gone_on_with(mind: Mind) -> None:
    """What a failed mission paid for is served to the one that names it; only the rest is asked."""
    mind.script.woven, woven = StreamCut("cut"), mind.script.woven
    mission = await submit(mind.uvm)
    with pytest.raises(StreamCut):
        await mind.uvm.missions.run(mission)
    mind.script.woven = woven
    again = await ask(mind.uvm, ancestor=mission)
    assert (again["cost"]["calls"], again["cost"]["from_journal"]) == (1, 4)
    # It reads from the journal why the earlier one failed, and says so.
    (earlier,) = again["provenance"]["earlier"]
    assert (earlier["mission"], earlier["code"], earlier["message"]) == (mission, "stream_cut", "cut")
    assert (await ask(mind.uvm))["provenance"]["earlier"] == []


async def test_another_question_is_not_served_by_an_ancestor(mind: Mind) -> None:
    """A fork with another text has a clock of its own and pays for its calls."""
    first = await ask(mind.uvm)
    again = await ask(mind.uvm, "What time is it, and who carries the oil up into the tower?", ancestor=first["id"])
    assert again["cost"]["from_journal"] == 0
    assert clock.describe(again["accepted_at"]) in "".join(each["content"] for each in mind.bridge.history[-1].messages)


async def test_without_an_ancestor_nothing_is_shared(mind: Mind) -> None:
    """The same question asked twice is paid twice: a mission never sees another's entries."""
    await ask(mind.uvm)
    assert (await ask(mind.uvm))["cost"]["from_journal"] == 0


async def test_a_done_mission_is_not_run_again(mind: Mind) -> None:
    """Running it gives its answer, asks nothing and counts nothing twice."""
    shown = await ask(mind.uvm)
    calls, counted = len(mind.bridge.history), _counted(mind)
    assert await mind.uvm.missions.run(shown["id"]) == shown
    assert len(mind.bridge.history) == calls
    assert _counted(mind) == counted


@pytest.mark.parametrize("word", ["failed", "cancelled", "undone"])
async def test_an_ended_mission_is_refused_and_told_how_to_go_on(mind: Mind, word: Any) -> None:
    """A mission that has ended stays as it ended; `batos retry` uses what it paid for."""
    mission = await submit(mind.uvm)
    await mind.uvm.image.move(mission, word)
    with pytest.raises(Refused) as raised:
        await mind.uvm.missions.run(mission)
    assert f"`batos retry {mission}`" in raised.value.remedy
    assert mind.uvm.readings.mission(mission)["status"] == word
    assert mind.bridge.history == []


async def test_a_mission_is_not_run_twice_at_once(mind: Mind) -> None:
    """A second run of a mission that runs is refused; the first goes on and is answered."""
    bridge = WaitingBridge(Script())
    bridge.rows = mind.bridge.rows
    mind.uvm.readiness.bridge = bridge
    mission = await submit(mind.uvm, effort="reflex")
    running = asyncio.create_task(mind.uvm.missions.run(mission))
    await bridge.arrived(1)
    with pytest.raises(Refused, match="already"):
        await mind.uvm.missions.run(mission)
    assert mind.uvm.readings.mission(mission)["status"] == "running"
    await bridge.let(1)
    assert (await running)["status"] == "done"


async def test_cancelled_during_the_commit_a_mission_is_done(mind: Mind) -> None:
    """A cancellation that comes too late to stop the commit finds the thought whole: it is published and done."""
    mission = await submit(mind.uvm)
    loop, cancelled = asyncio.get_running_loop(), threading.Event()

    def cancel() -> None:
        task.cancel()
        loop.call_soon(cancelled.set)

    def voter(transaction: object) -> None:
        """Runs in the commit thread, while the mission waits for it."""
        loop.call_soon_threadsafe(cancel)
        assert cancelled.wait(HANG)

    mind.uvm.image.voters = (*mind.uvm.image.voters, voter)
    task = asyncio.create_task(mind.uvm.missions.run(mission))
    with pytest.raises(asyncio.CancelledError):
        await task
    shown = mind.uvm.readings.mission(mission)
    assert shown["status"] == "done"
    assert shown["answer"]
    assert _counted(mind)["missions"] == {"BRICK": 1}
    assert [keys["status"] for keys in mind.told("mission.status")][-1] == "done"


async def test_committed_and_not_published_it_is_published_by_the_next_run(mind: Mind) -> None:
    """When folding in fails after the commit the mission is not failed: running it again only publishes it."""
    mission = await submit(mind.uvm)
    runner = (await mind.uvm.readiness.ready()).runner
    publisher = runner.publisher

    def broken(root: Any, mission: str, payload: Any) -> None:
        raise BatosError("the disk was full just then")

    runner.publisher = Publisher(mind.uvm.image.writer, {"statistics": broken}, utc_now)
    with pytest.raises(BatosError, match="just then"):
        await mind.uvm.missions.run(mission)
    assert mind.uvm.readings.mission(mission)["status"] == "running"
    assert mind.told("mission.failed") == []
    calls = len(mind.bridge.history)
    runner.publisher = publisher
    shown = await mind.uvm.missions.run(mission)
    assert shown["status"] == "done"
    assert len(mind.bridge.history) == calls
    assert _counted(mind)["missions"] == {"BRICK": 1}
    assert [keys["status"] for keys in mind.told("mission.status")] == ["running", "done"]
    assert len(mind.told("mission.done")) == 1


async def test_done_is_told_after_it_is_so(mind: Mind) -> None:
    """Who hears `mission.done` and looks finds the mission done, with its answer."""
    seen: list[MissionDocument] = []

    def look(event: str, keys: Any) -> None:
        if event == "mission.done":
            seen.append(mind.uvm.readings.mission(keys["mission"]))

    mind.uvm.events.subscribe(look)
    shown = await ask(mind.uvm)
    assert seen == [shown]
    told = ("mission.routed", "mission.done", "mission.status")
    names = [
        name for name, keys in mind.events if name in told or (name == "txn.commit" and keys["what"] == shown["id"])
    ]
    assert names == ["mission.status", "mission.routed", "txn.commit", "mission.done", "mission.status"]


async def test_the_budget_of_a_brief_ends_a_mission(mind: Mind) -> None:
    """Three calls are allowed: the fourth is refused, and the mission says which limit it met."""
    mission = await submit(mind.uvm, budget={"calls": 3})
    with pytest.raises(Refused) as raised:
        await mind.uvm.missions.run(mission)
    assert raised.value.field == "budget.calls"
    assert mind.uvm.readings.mission(mission)["cost"]["calls"] == 3
    assert mind.uvm.readings.mission(mission)["reason"]["code"] == "refused"
    with pytest.raises(Refused, match=r"has spent its 1 call"):
        await mind.uvm.missions.run(await submit(mind.uvm, budget={"calls": 1}))


async def test_missions_beside_each_other_do_not_conflict(mind: Mind) -> None:
    """Twenty missions at once, eight running: all are answered, each with its own calls, all are counted."""
    conflicts: list[str] = []
    mind.uvm.events.subscribe(lambda event, keys: conflicts.append(event) if event == "txn.conflict" else None)
    conversation = (await ask(mind.uvm, files=(), conversation="new"))["brief"]["conversation"]
    shown = await asyncio.gather(
        *(ask(mind.uvm, f"{QUESTION} ({number})", (), conversation=conversation) for number in range(20))
    )
    assert [each["status"] for each in shown] == ["done"] * 20
    assert conflicts == []
    assert _counted(mind) == {"missions": {"BRICK": 21}, "calls": 105}
    with mind.uvm.image.snapshot() as root:
        turns = list(root[roots.CONVERSATIONS][conversation].turns.values())
    assert sorted(turns[1:]) == sorted(each["id"] for each in shown)


async def test_ollama_stopping_in_the_middle_fails_the_mission(mind: Mind) -> None:
    """The weave finds nobody listening: FAILED with reason and remedy, in status, journal and report."""

    def respond(request: ChatRequest) -> str | BatosError:
        return OllamaUnreachable("nothing listens") if kind(request) == "woven" else mind.script(request)

    mind.bridge.respond = respond
    mission = await submit(mind.uvm)
    with pytest.raises(OllamaUnreachable):
        await mind.uvm.missions.run(mission)
    shown = mind.uvm.readings.mission(mission)
    assert shown["status"] == "failed"
    assert "ollama serve" in shown["reason"]["remedy"]
    notes = mind.uvm.journal.notes(mission)
    assert [note["state"] for note in notes if "state" in note][-1] == "FAILED"
    assert next(note["failed"] for note in notes if "failed" in note)["code"] == "ollama_unreachable"
    with mind.uvm.image.snapshot() as root:
        assert dict(own_slots(root[roots.MISSIONS][mission][2])) == {"mission": mission}


async def test_a_mission_goes_on_in_another_process(tmp_path: Path) -> None:
    """An image in files: the first process dies after the facets, the next one asks only for the weave."""
    first = ScriptedBridge(Script())
    async with scripted_uvm(tmp_path, first, memory=False) as uvm:
        mission = await submit(uvm)
        await _die_at(uvm, mission, "SYNTHESIZING")
    second = ScriptedBridge(Script())
    async with scripted_uvm(tmp_path, second, memory=False) as uvm:
        await _next_start(uvm, mission)
        shown = await uvm.missions.run(mission)
    assert [kind(request) for request in second.history] == ["woven"]
    assert (shown["cost"]["calls"], shown["cost"]["from_journal"]) == (5, 4)


async def test_ancestors_are_read_eldest_first(mind: Mind) -> None:
    """A chain of retries: all of them may be served from, and the clock is the eldest's of the same question."""
    ids: list[str] = []
    for _ in range(3):
        also: dict[str, Any] = {"ancestor": ids[-1]} if ids else {}
        ids.append(await submit(mind.uvm, **also))
        await mind.uvm.missions.run(ids[-1])
    with mind.uvm.image.snapshot() as root:
        record = root[roots.MISSIONS][ids[-1]][0]
        asked = context_building.question_of(root, record)
        eldest = root[roots.MISSIONS][ids[0]][0]
    assert asked.ancestors == tuple(ids[:2])
    assert asked.asked_at == eldest.accepted_at


async def test_an_ancestor_has_ended_and_is_ones_own(mind: Mind) -> None:
    """A mission that still runs would pay for the same; another user's answers are not served."""
    first = await submit(mind.uvm)
    with pytest.raises(Refused, match="has not ended"):
        await submit(mind.uvm, ancestor=first)
    await mind.uvm.missions.run(first)
    with pytest.raises(NotFound, match=r"no mission .* of eve's"):
        await submit(mind.uvm, ancestor=first, user="eve")


async def test_the_journal_keeps_no_notes_of_missions_that_ended(mind: Mind) -> None:
    """COMPLETE and the last IDLE go with a later commit; at the close of the image nothing waits any more."""
    ids = [(await ask(mind.uvm))["id"] for _ in range(3)]
    await mind.uvm.journal.drain()
    for mission in ids:
        entered = [note["state"] for note in mind.uvm.journal.notes(mission) if "state" in note]
        assert entered == ["IDLE", "DECOMPOSING", "DELEGATING", "SYNTHESIZING", "COMPLETE", "IDLE"]


async def test_a_long_file_is_kept_and_read_back(tmp_path: Path) -> None:
    """A file that is too long for a record is a blob, read aside, and cited by its place in the whole."""
    text = "\n\n".join(f"Paragraph {number} tells of the sea." for number in range(4_000)) + f"\n\n{LAMP.data.decode()}"
    bridge = ScriptedBridge(Script())
    async with scripted_uvm(tmp_path, bridge, memory=False) as uvm:
        shown = await ask(uvm, files=(as_file("long.txt", text.encode()),), effort="reflex")
    recalled = shown["provenance"]["recalled"]
    spans = {text[each["start"] : each["start"] + each["length"]] for each in recalled}
    assert any("The keeper winds the clockwork" in span for span in spans)
