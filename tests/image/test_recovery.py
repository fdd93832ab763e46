"""What a process leaves behind when it dies, and what the next one makes of it."""

from __future__ import annotations

import asyncio
import json
import random
import signal
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.image.missions import thinking
from tests.image.open_image import answer, brief, child, open_image, thought_in
from tests.minds.scripted import Script

from batos.image import roots
from batos.image.ids import tid_text
from batos.image.transactions import MissionTransaction
from batos.inference.canonical import canonical
from batos.inference.ollama.bridge import ChatRequest
from batos.protocol.errors import BatosError, Refused, StreamCut
from batos.testing import ScriptedBridge
from batos.uvm import UVM

MISSIONS = 2


async def left(home: Path, *, committed: bool, kind: str = "statistics") -> str:
    """A mission whose process ended while it ran: after its commit, or before."""
    async with open_image(home) as image:
        mission = await image.accept(brief())
        await image.move(mission, "running")
        if committed:
            with image.transaction(mission) as transaction:
                thought = answer(thought_in(image, transaction, mission))
                thought.contributions = [(kind, {"persona": "ROBIN", "calls": 3, "measured": {"m": (9, 2)}})]
                await transaction.commit(thought)
    return mission


async def test_a_committed_thought_is_folded_in_by_the_next_process(tmp_path: Path) -> None:
    """It is done, with its commit's id, its contributions counted once; nothing of it waits or is paid for again."""
    mission = await left(tmp_path, committed=True)
    bridge = ScriptedBridge()
    async with thinking(tmp_path, bridge) as uvm:
        assert await uvm.missions.recover() == []
        assert await uvm.missions.recover() == []
        found = uvm.readings.mission(mission)
        assert found["status"] == "done"
        assert found["answer"]
        with uvm.image.snapshot() as root:
            _, status, thought = uvm.image.find(root, mission)
            thought._p_activate()
            assert (status.tid, status.published) == (tid_text(thought._p_serial), True)
            assert root[roots.STATISTICS]["calls"] == 3
    assert bridge.history == []


async def test_one_that_cannot_be_folded_in_keeps_no_other_from_it(tmp_path: Path) -> None:
    """It is logged with the reason and stays as it is; those after it are settled."""
    broken = await left(tmp_path, committed=True, kind="nonsense")
    sound = await left(tmp_path, committed=True)
    waits = await left(tmp_path, committed=False)
    async with thinking(tmp_path) as uvm:
        with capture_logs() as logs:
            assert await uvm.missions.recover() == [waits]
        told = [each for each in logs if each["event"] == "mission.unsettled"]
        assert [(each["mission"], each["reason"]["code"]) for each in told] == [(broken, "internal")]
        assert uvm.readings.mission(sound)["status"] == "done"
        assert set(uvm.image.unfolded_missions()) == {broken, waits}


async def test_a_mission_that_was_running_waits_again(tmp_path: Path) -> None:
    """It is queued with a reason and a remedy, then runs to its end; both attempts are counted."""
    mission = await left(tmp_path, committed=False)
    async with thinking(tmp_path) as uvm:
        assert await uvm.missions.recover() == [mission]
        found = uvm.readings.mission(mission)
        assert found["status"] == "queued"
        assert "ended" in found["reason"]["message"]
        assert "resume" in found["reason"]["remedy"]
        done = await uvm.missions.run(mission)
        assert done["status"] == "done"
        assert "reason" not in done
        with uvm.image.snapshot() as root:
            assert uvm.image.find(root, mission)[1].attempts == 2


async def test_without_recovery_a_running_mission_is_not_run(tmp_path: Path) -> None:
    """Whoever finds it running cannot know that its process is gone; the refusal says what can."""
    mission = await left(tmp_path, committed=False)
    async with thinking(tmp_path) as uvm:
        with pytest.raises(Refused) as refused:
            await uvm.missions.run(mission)
        assert "resume" in refused.value.remedy
        assert await uvm.missions.recover() == [mission]


async def test_a_mission_that_is_run_twice_at_once_runs_once(tmp_path: Path) -> None:
    """The second is refused and changes nothing; the first ends as it would have."""
    async with thinking(tmp_path) as uvm:
        mission = await uvm.missions.submit({"text": "Why?", "effort": "cycle"})
        both: list[Any] = await asyncio.gather(*(uvm.missions.run(mission) for _ in range(2)), return_exceptions=True)
        first, second = both
        assert isinstance(second, Refused)
        assert isinstance(first, dict)
        assert first["status"] == "done"
        with uvm.image.snapshot() as root:
            assert uvm.image.find(root, mission)[1].attempts == 1


async def test_a_cancellation_during_the_last_commit_comes_too_late(tmp_path: Path) -> None:
    """Whoever waits is cancelled, and the mission is done: its thought is whole and folded in."""
    asked: list[asyncio.Task[Any]] = []

    def too_late(transaction: MissionTransaction) -> None:
        loop.call_soon_threadsafe(asked[0].cancel)

    loop = asyncio.get_running_loop()
    async with thinking(tmp_path) as uvm:
        uvm.image.voters = (*uvm.image.voters, too_late)
        mission = await uvm.missions.submit({"text": "Why?", "effort": "cycle"})
        asked.append(asyncio.create_task(uvm.missions.run(mission)))
        with pytest.raises(asyncio.CancelledError):
            await asked[0]
        found = uvm.readings.mission(mission)
        assert found["status"] == "done"
        assert uvm.image.unfolded_missions() == []
        with uvm.image.snapshot() as root:
            assert sum(root[roots.STATISTICS]["missions"].values()) == 1


async def test_a_cancellation_before_the_commit_cancels(tmp_path: Path) -> None:
    """The mission is cancelled, with its cost; its thought has nothing."""
    started = asyncio.Event()

    class Slow(ScriptedBridge):
        async def think(self, *given: Any, **also: Any) -> Any:
            started.set()
            await asyncio.Event().wait()

    async with thinking(tmp_path, Slow()) as uvm:
        mission = await uvm.missions.submit({"text": "Why?", "effort": "cycle"})
        task = asyncio.create_task(uvm.missions.run(mission))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        found = uvm.readings.mission(mission)
        assert (found["status"], found["reason"]["code"], found["cost"]["calls"]) == ("cancelled", "error", 1)
        assert "answer" not in found
        assert uvm.image.unfolded_missions() == []


async def paid(uvm: UVM) -> set[str]:
    """What the journal has an answer for."""
    missions = [line["id"] for line in uvm.readings.newest(10_000)]
    return {
        canonical(record.request["messages"]).decode()
        for record in uvm.journal.read(missions)
        if record.state == "done"
    }


async def test_what_was_paid_for_is_not_paid_again_after_a_kill(tmp_path: Path) -> None:
    """Killed at random in the middle of a council and of cycles, restarted until all are done: none is paid again."""
    chance = random.Random(3)
    ledger = tmp_path / "ledger"
    home = tmp_path / "home"
    rounds = 0
    known: set[str] = set()
    called: list[str] = []
    while True:
        with child("script_pay.py", home, ledger, MISSIONS) as process:
            # It is killed when so many calls are begun, perhaps before any of them is answered, or when so many are
            # kept, so that rounds of this kind bring all to an end. So many may be answered, and no more: however late
            # the kill comes, it comes in the middle.
            word, number = chance.choice(["called", "kept"]), chance.randrange(6, 14)
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("\n" * number)
            process.stdin.flush()
            line = word
            while number and line:
                line = (await asyncio.to_thread(process.stdout.readline)).strip()
                number -= line == word
            if line == "":
                assert await asyncio.to_thread(process.wait) == 0
            process.send_signal(signal.SIGKILL)
        rounds += 1
        before, called = len(called), [json.loads(line) for line in ledger.read_text().splitlines()]
        repeated = known & set(called[before:])
        assert not repeated, f"paid again after {rounds} kills"
        async with thinking(home) as uvm:
            known = await paid(uvm)
            if line == "":
                assert {each["status"] for each in uvm.readings.newest(99)} == {"done"}
                assert uvm.image.unfolded_missions() == []
                break
    assert rounds > 2
    assert len(set(called)) >= 22 + (MISSIONS - 1) * 5


async def test_a_mission_run_again_is_served_from_the_journal(tmp_path: Path) -> None:
    """When its last call failed, asking again after it pays for that call alone, also in another process."""
    answered = 0

    def cut_at_last(request: ChatRequest) -> str | BatosError:
        nonlocal answered
        answered += 1
        return StreamCut("cut") if answered > 4 else Script()(request)

    async with thinking(tmp_path, ScriptedBridge(cut_at_last)) as uvm:
        mission = await uvm.missions.submit({"text": "Why is the sea salt?", "effort": "cycle"})
        with pytest.raises(StreamCut):
            await uvm.missions.run(mission)
        failed = uvm.readings.mission(mission)
        assert (failed["status"], failed["reason"]["code"]) == ("failed", "stream_cut")
        assert "answer" not in failed
    bridge = ScriptedBridge(Script())
    async with thinking(tmp_path, bridge) as uvm:
        with pytest.raises(Refused) as refused:
            await uvm.missions.run(mission)
        assert f"batos retry {mission}" in refused.value.remedy
        done = await uvm.missions.ask({"text": "Why is the sea salt?", "effort": "cycle", "ancestor": mission})
        assert done["status"] == "done"
        assert done["cost"]["from_journal"] == 4
        assert done["cost"]["calls"] == len(bridge.history) > 0
