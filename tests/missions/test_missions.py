"""What doors ask of missions: each is begun, waited for, cancelled, paused and resumed, and nothing is paid twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.minds.scripted import Script, WaitingBridge, ask, submit
from tests.missions.pace import MovedClock

from batos.image import roots
from batos.image.ids import iso, utc_now
from batos.image.transactions import MissionTransaction
from batos.image.writer import Publisher
from batos.protocol.errors import BatosError, BriefError, Busy, NotFound, Refused, TimedOut
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM, Seams

#: Calls of a cycle without a revision or a protocol: decomposed, three facets, woven.
CALLS = 5


def messages(bridge: ScriptedBridge) -> list[str]:
    """What the daemon was asked, a text a call."""
    return [str(request.messages) for request in bridge.history]


async def flying(bridge: WaitingBridge) -> None:
    """The decomposition is answered, and the three facets' calls are under way."""
    await bridge.let(1)
    await bridge.arrived(4)


async def test_a_mission_that_is_begun_is_waited_for(tmp_path: Path) -> None:
    """`begin` returns at once, `ended` with the answer, for as many as wait; beginning twice begins once."""
    bridge = WaitingBridge(Script())
    async with scripted_uvm(tmp_path, bridge) as uvm:
        mission = await submit(uvm, effort="reflex")
        waiting = [asyncio.create_task(uvm.missions.wait_for_end(mission)) for _ in range(3)]
        await uvm.missions.begin(mission)
        await uvm.missions.begin(mission)
        await bridge.let(1)
        assert {each["status"] for each in await asyncio.gather(*waiting)} == {"done"}
        assert (await uvm.missions.wait_for_end(mission))["answer"]
        await uvm.missions.begin(mission)
        assert len(bridge.history) == 1


async def test_a_failure_is_no_error_of_who_waits(tmp_path: Path) -> None:
    """`ended` answers with the failed mission; `run` raises why."""
    bridge = ScriptedBridge(lambda request: BatosError("no"))
    async with scripted_uvm(tmp_path, bridge) as uvm:
        mission = await submit(uvm)
        await uvm.missions.begin(mission)
        found = await uvm.missions.wait_for_end(mission)
        assert (found["status"], found["reason"]["message"]) == ("failed", "no")
        with pytest.raises(BatosError, match="no"):
            await ask(uvm)


async def test_what_is_not_there_is_not_found(tmp_path: Path) -> None:
    """Nothing can be said to a mission that nobody accepted."""
    async with scripted_uvm(tmp_path) as uvm:
        for say in (
            uvm.missions.begin,
            uvm.missions.wait_for_end,
            uvm.missions.run,
            uvm.missions.cancel,
            uvm.missions.pause,
            uvm.missions.resume,
        ):
            with pytest.raises(NotFound):
                await say("m-01ARZ3NDEKTSV4RRFFQ69G5FAV")


async def test_a_queued_mission_is_cancelled_at_once(tmp_path: Path) -> None:
    """Whether it waits for a worker or was never begun: nothing is asked of the daemon, and who waits is told."""
    bridge = WaitingBridge(Script())
    async with scripted_uvm(tmp_path, bridge, missions=1) as uvm:
        first, second, third = [await submit(uvm, f"{number}?") for number in range(3)]
        await uvm.missions.begin(first)
        await uvm.missions.begin(second)
        waiting = asyncio.create_task(uvm.missions.wait_for_end(second))
        await bridge.arrived(1)
        for mission in (second, third):
            found = await uvm.missions.cancel(mission)
            assert (found["status"], found["cost"]["calls"]) == ("cancelled", 0)
        assert (await waiting)["status"] == "cancelled"
        assert len(bridge.waiting) == 1
        assert uvm.image.unfolded_missions() == [first]
        await uvm.missions.cancel(first)


async def test_a_running_mission_is_cancelled_and_its_cost_told(tmp_path: Path) -> None:
    """Its call is broken off, what was paid stays in the journal, nothing of the thought remains."""
    bridge = WaitingBridge(Script())
    async with scripted_uvm(tmp_path, bridge) as uvm:
        mission = await submit(uvm)
        await uvm.missions.begin(mission)
        await flying(bridge)
        found = await uvm.missions.cancel(mission)
        assert (found["status"], found["cost"]["calls"]) == ("cancelled", 4)
        assert [record.state for record in uvm.journal.read([mission])].count("done") == 1
        assert "answer" not in found
        assert mission not in uvm.image.unfolded_missions()
        assert uvm.workers.running == ()


async def test_what_was_committed_is_done_whoever_cancels(tmp_path: Path) -> None:
    """A cancellation that comes while the commit is under way comes too late, and the answer says so."""
    cancelling: list[asyncio.Task[Any]] = []

    def too_late(transaction: MissionTransaction) -> None:
        loop.call_soon_threadsafe(lambda: cancelling.append(asyncio.ensure_future(uvm.missions.cancel(mission))))

    loop = asyncio.get_running_loop()
    async with scripted_uvm(tmp_path, ScriptedBridge(Script())) as uvm:
        uvm.image.voters = (*uvm.image.voters, too_late)
        mission = await submit(uvm)
        await uvm.missions.begin(mission)
        assert (await uvm.missions.wait_for_end(mission))["status"] == "done"
        found = await cancelling[0]
        assert found["status"] == "done"
        assert found["answer"]


@pytest.mark.parametrize("said", ["ended", "cancel", "pause", "recover"])
async def test_what_was_committed_and_not_folded_in_is_folded_in(tmp_path: Path, said: str) -> None:
    """It stays running until somebody looks: then it is done, told once, and neither paid again nor ended otherwise."""

    def broken(root: Any, mission: str, payload: Any) -> None:
        raise BatosError("the disk was full just then")

    done: list[str] = []
    bridge = ScriptedBridge(Script())
    async with scripted_uvm(tmp_path, bridge) as uvm:
        uvm.events.subscribe(lambda event, keys: done.append(str(keys["mission"])) if event == "mission.done" else None)
        runner = (await uvm.readiness.ready()).runner
        runner.publisher = Publisher(uvm.image.writer, {"statistics": broken}, uvm.clock)
        mission = await submit(uvm)
        with pytest.raises(BatosError, match="just then"):
            await uvm.missions.run(mission)
        assert (uvm.readings.mission(mission)["status"], done) == ("running", [])
        with pytest.raises(Refused, match="can no longer change"):
            await uvm.image.move(mission, "failed")
        if said == "ended":
            await asyncio.gather(uvm.missions.wait_for_end(mission), uvm.missions.wait_for_end(mission))
        elif said == "recover":
            assert await uvm.missions.recover() == []
        else:
            with pytest.raises(Refused, match="ended with status done"):
                await getattr(uvm.missions, said)(mission)
        shown = await uvm.missions.wait_for_end(mission)
        assert (shown["status"], done, uvm.image.unfolded_missions()) == ("done", [mission], [])
        assert len(bridge.history) == CALLS


@pytest.mark.parametrize("word", ["done", "failed", "cancelled"])
async def test_what_has_ended_is_not_steered(tmp_path: Path, word: str) -> None:
    """Cancelling, pausing, resuming and (unless it is done) beginning it are refused with its status and a remedy."""
    bridge = ScriptedBridge(Script())
    async with scripted_uvm(tmp_path, bridge) as uvm:
        mission = await submit(uvm)
        if word == "cancelled":
            await uvm.missions.cancel(mission)
        else:
            bridge.respond = Script() if word == "done" else lambda request: BatosError("no")
            await uvm.missions.begin(mission)
            await uvm.missions.wait_for_end(mission)
        steered: list[Callable[[str], Awaitable[Any]]] = [uvm.missions.cancel, uvm.missions.pause, uvm.missions.resume]
        steered += [] if word == "done" else [uvm.missions.begin, uvm.missions.run]
        for say in steered:
            with pytest.raises(Refused, match=f"ended with status {word}") as raised:
                await say(mission)
            assert f"`batos retry {mission}`" in raised.value.remedy
        assert uvm.readings.mission(mission)["status"] == word


async def test_a_queued_mission_pauses_and_goes_on(tmp_path: Path) -> None:
    """Paused, it is not begun whoever says so; resumed, it runs to its end."""
    bridge = ScriptedBridge(Script())
    async with scripted_uvm(tmp_path, bridge) as uvm:
        mission = await submit(uvm)
        assert (await uvm.missions.pause(mission))["status"] == "paused"
        assert (await uvm.missions.pause(mission))["status"] == "paused"
        assert (await uvm.missions.wait_for_end(mission))["status"] == "paused"
        with pytest.raises(Refused, match="paused and does not wait"):
            await uvm.missions.begin(mission)
        assert (await uvm.missions.resume(mission))["status"] in ("queued", "running")
        assert (await uvm.missions.wait_for_end(mission))["status"] == "done"
        assert len(bridge.history) == CALLS


async def test_resumed_by_two_at_once_it_goes_on(tmp_path: Path) -> None:
    """Neither is refused, and it runs once."""
    bridge = ScriptedBridge(Script())
    async with scripted_uvm(tmp_path, bridge) as uvm:
        mission = await submit(uvm)
        await uvm.missions.pause(mission)
        both = await asyncio.gather(uvm.missions.resume(mission), uvm.missions.resume(mission))
        assert {each["status"] for each in both} <= {"queued", "running"}
        assert (await uvm.missions.wait_for_end(mission))["status"] == "done"
        assert len(bridge.history) == CALLS


async def test_a_running_mission_pauses_when_its_calls_are_paid(tmp_path: Path) -> None:
    """Three calls under way are paid and journaled, no fourth is made; resumed, the daemon is asked nothing twice."""
    bridge = WaitingBridge(Script())
    async with scripted_uvm(tmp_path, bridge) as uvm:
        mission = await submit(uvm)
        await uvm.missions.begin(mission)
        await flying(bridge)
        pausing = asyncio.create_task(uvm.missions.pause(mission))
        await asyncio.sleep(0)
        for number in (3, 2, 4):
            await bridge.let(number)
        found = await pausing
        assert found["status"] == "paused"
        assert found["cost"]["calls"] == 4
        assert [record.state for record in uvm.journal.read([mission])] == ["done"] * 4
        assert "answer" not in found
        assert uvm.workers.running == ()
        await uvm.missions.resume(mission)
        await bridge.let(5)
        done = await uvm.missions.wait_for_end(mission)
        assert done["status"] == "done"
        assert done["cost"]["from_journal"] == 4
    assert len(messages(bridge)) == len(set(messages(bridge))) == CALLS


async def test_a_call_that_was_about_to_be_made_is_not(tmp_path: Path) -> None:
    """Paused while one of two facets is under way and another has not asked yet: the first is paid, the other not."""
    bridge = WaitingBridge(Script())
    async with scripted_uvm(tmp_path, bridge) as uvm:
        mission = await submit(uvm)
        await uvm.missions.begin(mission)
        await bridge.arrived(1)
        pausing = asyncio.create_task(uvm.missions.pause(mission))
        await asyncio.sleep(0)
        await bridge.let(1)
        assert (await pausing)["status"] == "paused"
        assert len(bridge.history) == 1


async def test_a_pause_that_has_not_come_about_is_taken_back(tmp_path: Path) -> None:
    """Resumed before its call was answered, it goes on as if nothing had been said."""
    bridge = WaitingBridge(Script())
    async with scripted_uvm(tmp_path, bridge) as uvm:
        mission = await submit(uvm)
        await uvm.missions.begin(mission)
        await bridge.arrived(1)
        pausing = asyncio.create_task(uvm.missions.pause(mission))
        await asyncio.sleep(0)
        assert (await uvm.missions.resume(mission))["status"] == "running"
        for number in range(1, CALLS + 1):
            await bridge.let(number)
        assert (await uvm.missions.wait_for_end(mission))["status"] == (await pausing)["status"] == "done"
        assert uvm.readings.mission(mission)["cost"]["from_journal"] == 0


async def test_resumed_on_its_way_out_it_runs_again(tmp_path: Path) -> None:
    """When it was told to stand still and is about to, resuming waits for that and begins it once more."""
    bridge = WaitingBridge(Script())
    async with scripted_uvm(tmp_path, bridge) as uvm:
        mission = await submit(uvm)
        await uvm.missions.begin(mission)
        await bridge.arrived(1)
        pausing = asyncio.create_task(uvm.missions.pause(mission))
        await asyncio.sleep(0)
        resuming: list[asyncio.Task[Any]] = []
        # Told, and its worker has not put it down yet.
        becomes(uvm, mission, "paused").add_done_callback(
            lambda told: resuming.append(asyncio.ensure_future(uvm.missions.resume(mission)))
        )
        await bridge.let(1)
        await pausing
        await resuming[0]
        for number in range(2, CALLS + 1):
            await bridge.let(number)
        done = await uvm.missions.wait_for_end(mission)
        assert (done["status"], done["cost"]["from_journal"]) == ("done", 1)


async def test_a_pause_does_not_hide_a_failure(tmp_path: Path) -> None:
    """When the call under way fails, the mission has failed, whatever it was told."""
    bridge = WaitingBridge(lambda request: BatosError("no"))
    async with scripted_uvm(tmp_path, bridge) as uvm:
        mission = await submit(uvm)
        await uvm.missions.begin(mission)
        await bridge.arrived(1)
        pausing = asyncio.create_task(uvm.missions.pause(mission))
        await asyncio.sleep(0)
        await bridge.let(1)
        assert (await pausing)["status"] == "failed"


async def test_a_paused_mission_is_cancelled(tmp_path: Path) -> None:
    """And one that was to pause is, if it is told both."""
    bridge = WaitingBridge(Script())
    async with scripted_uvm(tmp_path, bridge) as uvm:
        mission = await submit(uvm)
        await uvm.missions.pause(mission)
        assert (await uvm.missions.cancel(mission))["status"] == "cancelled"
        both = await submit(uvm)
        await uvm.missions.begin(both)
        await bridge.arrived(1)
        pausing = asyncio.create_task(uvm.missions.pause(both))
        await asyncio.sleep(0)
        assert (await uvm.missions.cancel(both))["status"] == "cancelled"
        assert (await pausing)["status"] == "cancelled"


async def test_what_is_said_at_once_leaves_one_status(tmp_path: Path) -> None:
    """Cancelled, paused and cancelled again in one breath: one is served, the others are told what it is."""
    async with scripted_uvm(tmp_path) as uvm:
        mission = await submit(uvm)
        said = [
            uvm.missions.cancel(mission),
            uvm.missions.pause(mission),
            uvm.missions.cancel(mission),
            uvm.missions.resume(mission),
        ]
        found: list[Any] = await asyncio.gather(*said, return_exceptions=True)
        assert found[0]["status"] == "cancelled"
        assert all(isinstance(each, Refused) or each["status"] == "cancelled" for each in found[1:])
        assert uvm.readings.mission(mission)["status"] == "cancelled"
        assert mission not in uvm.image.unfolded_missions()


async def test_the_same_key_is_the_same_mission(tmp_path: Path) -> None:
    """Asked again with an idempotency key it is the first mission, also when it has ended; another user's is not."""
    async with scripted_uvm(tmp_path, ScriptedBridge(Script())) as uvm:
        asked = {"text": "Why?", "effort": "reflex", "conversation": "new", "idempotency_key": "k"}
        first = await uvm.missions.submit(asked)
        assert await uvm.missions.submit({**asked, "origin": {"door": "zmq"}}) == first
        await uvm.missions.run(first)
        assert await uvm.missions.submit(asked) == first
        other = await uvm.missions.submit({**asked, "user": "another"})
        assert other != first
        assert len(uvm.readings.newest()) == 2
        # A user and a key that together read like another's are not theirs.
        assert await uvm.missions.submit(
            {"text": "Why?", "user": "a", "idempotency_key": "bc"}
        ) != await uvm.missions.submit({"text": "Why?", "user": "ab", "idempotency_key": "c"})


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("text", {"text": "Why not?"}),
        ("effort", {"effort": "cycle"}),
        ("priority", {"priority": 1}),
        ("conversation", {"conversation": None}),
        ("policy", {"policy": {"combine": "vote"}}),
    ],
)
async def test_a_key_is_of_one_question(tmp_path: Path, field: str, change: dict[str, Any]) -> None:
    """The key of another brief is refused, with the field in which they differ, and nothing is written."""
    async with scripted_uvm(tmp_path) as uvm:
        asked = {"text": "Why?", "effort": "reflex", "conversation": "new", "idempotency_key": "k"}
        first = await uvm.missions.submit(asked)
        with pytest.raises(BriefError, match=f"{first}, whose `{field}`") as raised:
            await uvm.missions.submit({key: value for key, value in {**asked, **change}.items() if value is not None})
        assert raised.value.field == "idempotency_key"
        assert len(uvm.readings.newest()) == 1


async def test_the_same_key_at_once_is_one_mission(tmp_path: Path) -> None:
    """Of twenty that come together with one key, one is accepted; a different one among them is refused."""
    async with scripted_uvm(tmp_path) as uvm:
        asked = {"text": "Why?", "idempotency_key": "k"}
        briefs = [asked] * 20 + [{**asked, "text": "Why not?"}]
        found: list[Any] = await asyncio.gather(*(uvm.missions.submit(each) for each in briefs), return_exceptions=True)
        assert isinstance(found.pop(), BriefError)
        assert len(set(found)) == 1
        assert len(uvm.readings.newest()) == 1


async def test_beyond_the_limit_is_busy(tmp_path: Path) -> None:
    """Of fifty that come at once to a queue of ten, ten are accepted; a key that is known is served all the same."""
    async with scripted_uvm(tmp_path, queue=10) as uvm:
        known = await uvm.missions.submit({"text": "Why?", "idempotency_key": "k"})
        asked = (uvm.missions.submit({"text": f"{number}?"}) for number in range(49))
        found: list[Any] = await asyncio.gather(*asked, return_exceptions=True)
        refused = [each for each in found if isinstance(each, Busy)]
        assert len(refused) == 40
        assert (refused[0].code, refused[0].retry, refused[0].exit_code) == ("busy", True, 4)
        assert len(uvm.readings.newest(100)) == uvm.status()["queue"]["waiting"] == 10
        assert await uvm.missions.submit({"text": "Why?", "idempotency_key": "k"}) == known


async def test_there_is_room_again(tmp_path: Path) -> None:
    """What begins, ends or pauses gives its place in the queue away."""
    bridge = WaitingBridge(Script())
    async with scripted_uvm(tmp_path, bridge, queue=1, missions=1) as uvm:
        first = await submit(uvm)
        with pytest.raises(Busy):
            await submit(uvm)
        await uvm.missions.begin(first)
        await bridge.arrived(1)
        second = await submit(uvm)
        with pytest.raises(Busy):
            await submit(uvm)
        await uvm.missions.pause(second)
        third = await submit(uvm)
        await uvm.missions.cancel(third)
        await submit(uvm)
        await uvm.missions.cancel(first)


def becomes(uvm: UVM, mission: str, word: str) -> asyncio.Future[None]:
    """Done when the mission is told to have that status."""
    told: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_event(event: str, keys: Mapping[str, Any]) -> None:
        if event == "mission.status" and (keys["mission"], keys["status"]) == (mission, word) and not told.done():
            told.set_result(None)

    uvm.events.subscribe(on_event)
    return told


async def ends_in_time(uvm: UVM, mission: str) -> None:
    """It has failed, timed out, with what to do."""
    found = await uvm.missions.wait_for_end(mission)
    assert (found["status"], found["reason"]["code"]) == ("failed", "timed_out")
    assert f"--ancestor {mission}" in found["reason"]["remedy"]
    assert mission not in uvm.image.unfolded_missions()


async def test_a_deadline_ends_what_runs_waits_or_stands(tmp_path: Path) -> None:
    """Running, queued behind it, paused, and with a deadline that had passed before: each has failed, timed out."""
    bridge, clock = WaitingBridge(Script()), MovedClock()
    async with scripted_uvm(tmp_path, bridge, missions=1, seams=Seams(clock=clock)) as uvm:
        late = await submit(uvm, deadline=iso(utc_now() - timedelta(seconds=1)))
        with pytest.raises(TimedOut):
            await uvm.missions.run(late)
        await uvm.readiness.ready()
        missions = [await submit(uvm, deadline=clock.deadline) for _ in range(3)]
        for mission in missions:
            await uvm.missions.begin(mission)
        await uvm.missions.pause(missions[2])
        failed = becomes(uvm, missions[2], "failed")
        await bridge.arrived(1)
        clock.ring(uvm, *missions)
        for mission in missions[:2]:
            await ends_in_time(uvm, mission)
        await failed
        await ends_in_time(uvm, missions[2])
        assert len(bridge.waiting) == 1


async def test_a_deadline_that_is_kept_ends_nothing(tmp_path: Path) -> None:
    """A mission that has its answer in time is done, and its timer is gone."""
    async with scripted_uvm(tmp_path, ScriptedBridge(Script())) as uvm:
        done = await ask(uvm, deadline=iso(utc_now() + timedelta(hours=1)))
        assert done["status"] == "done"
        assert len(uvm.workers.alarms) == 0


async def test_a_tally_is_a_scan(tmp_path: Path) -> None:
    """Whatever became of missions, how many have each status is counted as they are."""
    bridge = ScriptedBridge(Script())
    async with scripted_uvm(tmp_path, bridge) as uvm:
        done, failed, stopped, still, waits = [await submit(uvm, f"{number}?", effort="reflex") for number in range(5)]
        await uvm.missions.run(done)
        await uvm.missions.cancel(stopped)
        await uvm.missions.pause(still)
        bridge.respond = lambda request: BatosError("no")
        with pytest.raises(BatosError):
            await uvm.missions.run(failed)
        with uvm.image.snapshot() as root:
            assert roots.count_by_status(root) == {word: count for word, count in root[roots.TALLY].items() if count}
        assert uvm.status()["missions"] == {"done": 1, "failed": 1, "cancelled": 1, "paused": 1, "queued": 1}
        assert uvm.readings.mission(waits)["status"] == "queued"
