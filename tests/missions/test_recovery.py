"""What a process leaves behind: deaths are counted where nothing was gained, and what ends every process is parked."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest
from BTrees.IOBTree import IOBTree
from persistent.mapping import PersistentMapping
from tests.image.missions import thinking
from tests.image.open_image import child
from tests.image.script_killed_mission import DEADLY, INNOCENT
from tests.minds.scripted import Script, WaitingBridge, submit
from tests.missions.pace import MovedClock
from tests.waiting import HANG

from batos.image import roots
from batos.image.nodes.claims import DEATHS
from batos.inference.journal import Record
from batos.methods.generation import generation_limits
from batos.protocol.errors import Refused
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM, Seams


def counted(uvm: UVM, mission: str) -> tuple[str, int]:
    """A mission's status and the deaths that count against it."""
    with uvm.image.snapshot() as root:
        status = uvm.image.find(root, mission)[1]
        return status.word, status.deaths


async def dies(uvm: UVM, mission: str) -> None:
    """It runs as the workers would begin it, and the next process finds it so."""
    with uvm.image.snapshot() as root:
        alone = uvm.image.find(root, mission)[1].deaths >= DEATHS
    await uvm.image.move(mission, "running", None, None, alone=alone)
    await uvm.missions.recover()


async def paid(uvm: UVM, mission: str, number: int) -> None:
    """One answer more in the journal."""
    request: dict[str, Any] = {
        "messages": [{"role": "user", "content": "?"}],
        "format": None,
        "think": False,
        "options": {},
    }
    await uvm.journal.write(Record(f"k{number}", mission, f"brick/{number}", "m", "d", request, "done", "now", "now"))


async def test_a_death_where_the_last_one_was_counts(tmp_path: Path) -> None:
    """The first counts nothing, two more at the same step count, then it runs alone; five more alone park it."""
    async with scripted_uvm(tmp_path) as uvm:
        mission = await submit(uvm)
        seen = []
        for _ in range(8):
            await dies(uvm, mission)
            seen.append(counted(uvm, mission))
        assert seen == [*(("queued", number) for number in range(7)), ("parked", 7)]
        found = uvm.readings.mission(mission)
        assert "resume" in found["reason"]["remedy"]
        assert await uvm.missions.recover() == []
        with pytest.raises(Refused, match="parked"):
            await uvm.missions.begin(mission)


async def test_a_death_with_something_gained_does_not_count(tmp_path: Path) -> None:
    """Every process that leaves one answer more in the journal clears the count: such a mission is never parked."""
    async with scripted_uvm(tmp_path) as uvm:
        mission = await submit(uvm)
        for number in range(6):
            await dies(uvm, mission)
            if number % 2:
                await paid(uvm, mission, number)
        assert counted(uvm, mission)[0] == "queued"
        assert counted(uvm, mission)[1] <= 1


async def test_what_a_coder_answered_for_it_is_progress(tmp_path: Path) -> None:
    """A mission that waits for a method gains by every answer of the coder, though its own log stands still."""
    async with scripted_uvm(tmp_path) as uvm:
        mission = await submit(uvm)
        await generation_limits.record_wait(uvm.journal, mission, "g-1")
        await generation_limits.record_wait(uvm.journal, mission, "g-1")
        assert generation_limits.awaited_logs(uvm.journal.notes(mission)) == ["g-1"]
        for number in range(6):
            await dies(uvm, mission)
            await paid(uvm, "g-1", number)
            assert counted(uvm, mission) == ("queued", 0)
        for _ in range(8):
            await dies(uvm, mission)
        assert counted(uvm, mission)[0] == "parked"


async def test_a_parked_mission_is_resumed_afresh(tmp_path: Path) -> None:
    """Somebody has looked into it: it begins with a clean count, beside others, and ends as any other."""
    bridge = ScriptedBridge(Script())
    async with scripted_uvm(tmp_path, bridge) as uvm:
        mission = await submit(uvm)
        for _ in range(8):
            await dies(uvm, mission)
        await uvm.missions.resume(mission)
        assert (await uvm.missions.wait_for_end(mission))["status"] == "done"
        assert counted(uvm, mission) == ("done", 0)


async def test_what_ends_every_process_is_parked_and_harms_no_other(tmp_path: Path) -> None:
    """A mission kills a real process eight times; the one beside it, counted too, is done by the fifth."""
    async with thinking(tmp_path) as uvm:
        deadly, innocent = [await submit(uvm, text) for text in (DEADLY, INNOCENT)]
    began = []
    for _ in range(11):
        with child("script_killed_mission.py", tmp_path) as process:
            out, _ = await asyncio.to_thread(process.communicate)
        began.append([word for word in out.split() if word.startswith("m-")])
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
    # Three times it may have begun beside the other; then alone, and the other, which has fewer deaths, before it.
    assert [deadly in each for each in began] == [True] * 8 + [False]
    assert all(each[-1] == deadly for each in began[3:8])
    assert all(each == [deadly] for each in began[5:8])
    async with thinking(tmp_path) as uvm:
        assert counted(uvm, deadly) == ("parked", 7)
        assert uvm.readings.mission(innocent)["status"] == "done"
        # Each attempt paid for its decomposition once, in the first process.
        states = [record.state for record in uvm.journal.read([deadly])]
        assert states.count("done") == 1


async def test_a_mission_that_was_cancelled_meanwhile_is_not_queued_again(tmp_path: Path) -> None:
    """Two nodes may find it left by a third: one cancels it, and the other does not undo that."""
    async with scripted_uvm(tmp_path) as uvm:
        mission = await submit(uvm)
        await uvm.image.move(mission, "running", None, None)
        recovery = uvm.missions.recovery
        settling = asyncio.ensure_future(recovery.one(mission))
        await uvm.image.move(mission, "cancelled", None, {"running"})
        assert await settling is None
        assert uvm.readings.mission(mission)["status"] == "cancelled"


async def test_a_mission_that_has_begun_anew_is_not_settled_again(tmp_path: Path) -> None:
    """Who looked at it before found an earlier attempt, which somebody has settled meanwhile."""
    async with scripted_uvm(tmp_path) as uvm:
        mission = await submit(uvm)
        await dies(uvm, mission)
        await uvm.image.move(mission, "running", None, None)
        assert await uvm.missions.recovery._count(mission, 1) is None
        assert uvm.readings.mission(mission)["status"] == "running"
        assert await uvm.missions.recovery._count(mission, 2) is not None


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_mission_of_a_node_of_the_server_that_a_file_was_copied_from_is_no_other_nodes(
    tmp_path: Path, *, is_cancelled: bool
) -> None:
    """Nobody ended that node's record in the copy, and it never works on it: the mission is queued, or cancelled."""
    async with scripted_uvm(tmp_path) as uvm:
        mission = await submit(uvm)
        await uvm.image.move(mission, "running", None, None)

        def copy_from_server(root: Any) -> None:
            root[roots.NODES] = IOBTree({7: PersistentMapping(name="elsewhere", ended=False)})
            roots.mission_record(root, mission).status.claim = 7

        await uvm.image.writer.apply(copy_from_server)
        if is_cancelled:
            async with asyncio.timeout(HANG):
                assert (await uvm.missions.cancel(mission))["status"] == "cancelled"
        else:
            await uvm.missions.recover()
            assert counted(uvm, mission) == ("queued", 0)


async def suspect(uvm: UVM) -> str:
    """A mission that runs alone: three processes ended at the same step of it."""
    mission = await submit(uvm)
    for _ in range(3):
        await dies(uvm, mission)
    assert counted(uvm, mission) == ("queued", DEATHS)
    return mission


async def test_a_suspect_begins_in_a_process_that_has_lived(tmp_path: Path) -> None:
    """Where nothing else is there to do, it begins after the quiet seconds."""
    async with scripted_uvm(tmp_path, ScriptedBridge(Script()), seams=Seams(quiet=0.2)) as uvm:
        mission = await suspect(uvm)
        await uvm.missions.begin(mission)
        assert uvm.workers.running == ()
        assert (await uvm.missions.wait_for_end(mission))["status"] == "done"


async def test_a_suspect_waits_and_hinders_nobody(tmp_path: Path) -> None:
    """Others are begun at once while it is held back; it begins when one of them has ended, not before."""
    bridge = WaitingBridge(Script())
    async with scripted_uvm(tmp_path, bridge, seams=Seams(quiet=600), missions=2) as uvm:
        mission = await suspect(uvm)
        await uvm.missions.begin(mission)
        assert (uvm.workers.running, uvm.workers.free_workers()) == ((), 2)
        other = await uvm.missions.submit({"text": "Why?", "user": "tester", "effort": "reflex"}, begin=True)
        assert uvm.workers.running == (other,)
        await bridge.let(1)
        assert (await uvm.missions.wait_for_end(other))["status"] == "done"
        assert uvm.workers.running == (mission,)
    async with scripted_uvm(tmp_path, seams=Seams(quiet=600)) as uvm:  # a stop does not wait for it
        await uvm.missions.begin(await suspect(uvm))


async def test_alone_means_alone(tmp_path: Path) -> None:
    """While it runs, no other begins; others go before it, side by side, until one of them has ended."""
    at_work: list[frozenset[str]] = []
    async with scripted_uvm(tmp_path, ScriptedBridge(Script())) as uvm:
        missions = [await submit(uvm, f"{number}?", priority=3 - number) for number in range(4)]
        for _ in range(3):
            await dies(uvm, missions[1])
        uvm.events.subscribe(lambda event, keys: at_work.append(frozenset(uvm.workers.running)))
        for mission in missions:
            await uvm.missions.begin(mission)
        for mission in missions:
            assert (await uvm.missions.wait_for_end(mission))["status"] == "done"
    assert {missions[1]} in at_work
    assert all(len(each) == 1 for each in at_work if missions[1] in each)
    assert any({missions[2], missions[3]} <= each for each in at_work)


async def test_a_deadline_that_passed_meanwhile_ends_what_was_left(tmp_path: Path) -> None:
    """Whether it was queued or paused when its process ended; what is in time waits to be begun."""
    clock = MovedClock()
    deadlines = (clock.deadline, clock.deadline, "2126-01-01T00:00:00Z")
    async with scripted_uvm(tmp_path, memory=False, seams=Seams(clock=clock)) as uvm:
        late, still, fine = [await submit(uvm, deadline=each) for each in deadlines]
        await uvm.missions.pause(still)
    clock.pass_deadline()
    async with scripted_uvm(tmp_path, memory=False, seams=Seams(clock=clock)) as uvm:
        assert await uvm.missions.recover() == [fine]
        for mission in (late, still):
            assert uvm.readings.mission(mission)["reason"]["code"] == "timed_out"


async def test_thousands_that_wait_are_found_without_blocking(tmp_path: Path) -> None:
    """They are read aside and once; then each begins without its brief being read again."""
    async with scripted_uvm(tmp_path, WaitingBridge(Script()), queue=100_000, missions=4) as uvm:
        many = {"text": "Why?", "user": "tester", "attachments": [], "effort": "reflex"}
        for _ in range(40):
            await asyncio.gather(*(uvm.image.accept(many) for _ in range(100)))
        waiting = await uvm.missions.recover()
        assert len(waiting) == 4_000
        # Whose brief could not be read any more is begun all the same.
        await uvm.image.writer.apply(lambda root: root[roots.MISSIONS].pop(waiting[-1]))
        for mission in waiting:
            await uvm.missions.begin(mission)
        assert (len(uvm.workers), len(uvm.workers.running)) == (3_996, 4)
        await uvm.image.writer.apply(lambda root: root[roots.UNFOLDED].remove(waiting[-1]))
