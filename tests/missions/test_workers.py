"""The workers: so many at once, a crash is its mission's alone, patience with the daemon, a stop that loses nothing."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.minds.scripted import FailingBridge, Script, WaitingBridge, ask, submit
from tests.waiting import HANG, until

from batos.image import roots
from batos.image.records import StatusWord
from batos.image.transactions import MissionTransaction
from batos.inference.ollama.bridge import Answer, ChatRequest
from batos.protocol.errors import BatosError, OllamaBusy, OllamaTimeout, OllamaUnreachable, StreamCut
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM, Seams

#: Looks for the daemon at once, again and again.
IMPATIENT = Seams(pauses=(0.001,))


class Fickle(ScriptedBridge):
    """A daemon that is away until it is `back`; `looked` counts who asked whether it is there."""

    def __init__(self, error: Callable[[], BatosError] = lambda: OllamaUnreachable("nothing listens")) -> None:
        super().__init__(Script())
        self.error = error
        self.back = True
        self.looked = 0
        self.often = asyncio.Event()
        self.tried = 0

    async def version(self) -> str:
        """The daemon's, if it is there."""
        self.looked += 1
        if self.looked == 20:
            self.often.set()
        if not self.back:
            raise OllamaUnreachable("nothing listens")
        return await super().version()

    async def think(
        self, request: ChatRequest, on_token: Callable[[str], None] | None = None, *, stream: bool = True
    ) -> Answer:
        """As scripted, if it is there."""
        if not self.back:
            self.tried += 1
            raise self.error()
        return await super().think(request, on_token, stream=stream)


async def begun(uvm: UVM, *texts: str, **brief: Any) -> list[str]:
    """Missions that the workers have."""
    missions = [await submit(uvm, text, **brief) for text in texts]
    for mission in missions:
        await uvm.missions.begin(mission)
    return missions


async def statuses(uvm: UVM, missions: list[str]) -> list[str]:
    """Of each, when it has ended."""
    return [(await uvm.missions.wait_for_end(mission))["status"] for mission in missions]


async def test_priority_goes_first_then_age(tmp_path: Path) -> None:
    """With one worker, the highest priority begins next, and among equals who was accepted first."""
    bridge = WaitingBridge(Script())
    async with scripted_uvm(tmp_path, bridge, missions=1) as uvm:
        await begun(uvm, "first", effort="reflex")
        await bridge.arrived(1)
        asked = {"low": -3, "old": 0, "high": 9, "new": None, "middle": 4}
        for text, priority in asked.items():
            also = {} if priority is None else {"priority": priority}
            await begun(uvm, text, effort="reflex", **also)
        for number in range(1, 7):
            await bridge.let(number)
        await statuses(uvm, [line["id"] for line in uvm.readings.newest()])
        order = [request.messages[-1]["content"] for request in bridge.history]
    at = [next(text for text in (*asked, "first") if said.endswith(f"\n{text}")) for said in order]
    assert at == ["first", "high", "middle", "old", "new", "low"]


async def test_a_council_keeps_no_reflex_from_the_other_workers(tmp_path: Path) -> None:
    """While a long mission holds one of two workers, the other answers one reflex after the other."""
    bridge = WaitingBridge(Script())
    async with scripted_uvm(tmp_path, bridge, missions=2) as uvm:
        (council,) = await begun(uvm, "The long way?")
        await bridge.arrived(1)
        reflexes = await begun(uvm, *(f"{number}?" for number in range(5)), effort="reflex")
        for number in range(2, 7):
            await bridge.let(number)
        assert await statuses(uvm, reflexes) == ["done"] * 5
        assert uvm.workers.running == (council,)
        await uvm.missions.cancel(council)


@pytest.mark.parametrize("crash", [RuntimeError, MemoryError, RecursionError, KeyError, asyncio.CancelledError])
async def test_a_crash_is_its_missions_alone(tmp_path: Path, crash: type[BaseException]) -> None:
    """Whatever is raised under one mission, that one is failed (or cancelled), the others are done, and more follow."""
    script = Script()

    def respond(request: ChatRequest) -> str | BatosError:
        if "Crash?" in str(request.messages):
            raise crash("it broke")
        return script(request)

    async with scripted_uvm(tmp_path, ScriptedBridge(respond), missions=2) as uvm:
        missions = await begun(uvm, "One?", "Crash?", "Two?", "Three?", effort="reflex")
        ended = await statuses(uvm, missions)
        assert ended == ["done", "cancelled" if crash is asyncio.CancelledError else "failed", "done", "done"]
        assert (await ask(uvm))["status"] == "done"
        assert uvm.image.unfolded_missions() == []


async def test_a_runner_that_cannot_be_made_fails_the_mission(tmp_path: Path) -> None:
    """What goes wrong before a mission begins to run is told by it too, and the workers go on."""
    async with scripted_uvm(tmp_path, ScriptedBridge(Script())) as uvm:
        mind = uvm.settings.home / "codex" / "mind.toml"
        sound = mind.read_text(encoding="utf-8")
        mind.write_text("charter = 7\n", encoding="utf-8")
        (mission,) = await begun(uvm, "Why?")
        found = await uvm.missions.wait_for_end(mission)
        assert (found["status"], found["reason"]["code"]) == ("failed", "codex")
        mind.write_text(sound, encoding="utf-8")
        assert (await ask(uvm))["status"] == "done"


async def test_an_impatient_mission_fails_without_the_daemon(tmp_path: Path) -> None:
    """Unless its brief says that it waits, it is failed with the remedy."""
    bridge = Fickle()
    async with scripted_uvm(tmp_path, bridge, seams=IMPATIENT) as uvm:
        bridge.back = False
        (mission,) = await begun(uvm, "Why?")
        found = await uvm.missions.wait_for_end(mission)
        assert (found["status"], found["reason"]["code"]) == ("failed", "ollama_unreachable")
        assert "ollama serve" in found["reason"]["remedy"]


def away() -> list[Callable[[], BatosError]]:
    """Every way in which a daemon says that it is not there for now."""
    return [
        lambda: OllamaUnreachable("nothing listens"),
        lambda: OllamaBusy("its queue is full"),
        lambda: OllamaTimeout("connect", 5.0),
        lambda: StreamCut("it was cut"),
    ]


@pytest.mark.parametrize("error", away())
async def test_a_patient_mission_waits_for_the_daemon(tmp_path: Path, error: Callable[[], BatosError]) -> None:
    """It waits, its worker free for others, until the daemon answers; then it is done, with what was paid before."""
    bridge = Fickle(error)
    told: list[tuple[str, Any]] = []
    async with scripted_uvm(tmp_path, bridge, seams=IMPATIENT, missions=1) as uvm:
        uvm.events.subscribe(lambda event, keys: told.append((event, dict(keys))))
        waits = asyncio.Event()
        uvm.events.subscribe(lambda event, keys: waits.set() if keys.get("status") == "waiting" else None)
        bridge.back = False
        (mission,) = await begun(uvm, "Why?", policy={"wait_ollama": True})
        ended = asyncio.create_task(uvm.missions.wait_for_end(mission))
        await waits.wait()
        found = uvm.readings.mission(mission)
        assert (found["status"], found["reason"]["code"]) == ("waiting", error().code)
        assert uvm.status()["queue"]["waiting"] == 1
        bridge.looked = 0
        await bridge.often.wait()
        assert not (await uvm.standing(uvm.status()))["ollama"]["answers"]
        assert bridge.tried == 1
        assert not ended.done()
        bridge.back = True
        assert (await ended)["status"] == "done"
    words = [keys["status"] for event, keys in told if event == "mission.status"]
    assert words == ["running", "waiting", "queued", "running", "done"]
    assert [keys["attempt"] for event, keys in told if keys.get("status") == "running"] == [1, 2]


async def test_who_asked_for_no_patience_waits_where_the_daemons_queue_is_full(tmp_path: Path) -> None:
    """A queue that is full is no absence: what was accepted waits for its turn, and is done."""
    bridge = Fickle(lambda: OllamaBusy("its queue is full"))
    async with scripted_uvm(tmp_path, bridge, seams=IMPATIENT) as uvm:
        waits = asyncio.Event()
        uvm.events.subscribe(lambda event, keys: waits.set() if keys.get("status") == "waiting" else None)
        bridge.back = False
        (mission,) = await begun(uvm, "Why?")
        ended = asyncio.create_task(uvm.missions.wait_for_end(mission))
        await waits.wait()
        assert uvm.readings.mission(mission)["reason"]["code"] == "ollama_busy"
        bridge.back = True
        assert (await ended)["status"] == "done"


async def test_patience_begins_anew_once_the_daemon_was_well(tmp_path: Path) -> None:
    """Looks come less and less often while it is away; after an answer it is looked for at once again."""
    bridge = Fickle()
    async with scripted_uvm(tmp_path, bridge, seams=Seams(pauses=(0.2, 3_600.0))) as uvm:
        waited: list[str] = []

        def come_back(event: str, keys: Any) -> None:
            """The daemon is there again before the first look for it."""
            if keys.get("status") == "waiting":
                waited.append(keys["mission"])
                bridge.back = True

        uvm.events.subscribe(come_back)
        for text in ("One?", "Two?"):
            bridge.back = False
            (mission,) = await begun(uvm, text, policy={"wait_ollama": True})
            async with asyncio.timeout(HANG):
                assert await statuses(uvm, [mission]) == ["done"]
            assert waited[-1] == mission


async def test_patience_is_with_an_absent_daemon_alone(tmp_path: Path) -> None:
    """An answer that is cut by a daemon that is there is a failure of the mission like any other."""
    bridge = FailingBridge(Script(), 1, lambda: StreamCut("it was cut"))
    async with scripted_uvm(tmp_path, bridge, seams=IMPATIENT) as uvm:
        (mission,) = await begun(uvm, "Why?", policy={"wait_ollama": True})
        assert (await uvm.missions.wait_for_end(mission))["reason"]["code"] == "stream_cut"


async def waiting(uvm: UVM, bridge: Fickle, **brief: Any) -> str:
    """A mission that waits for a daemon that has gone."""
    waits = asyncio.Event()
    leave = uvm.events.subscribe(lambda event, keys: waits.set() if keys.get("status") == "waiting" else None)
    bridge.back = False
    (mission,) = await begun(uvm, "Why?", policy={"wait_ollama": True}, **brief)
    await waits.wait()
    leave()
    return mission


async def test_who_waits_for_the_daemon_can_be_ended(tmp_path: Path) -> None:
    """Cancelled, paused, or out of time, it waits no more."""
    bridge = Fickle()
    async with scripted_uvm(tmp_path, bridge, seams=Seams(pauses=(60.0,))) as uvm:
        assert (await uvm.missions.cancel(await waiting(uvm, bridge)))["status"] == "cancelled"
        mission = await waiting(uvm, bridge)
        assert (await uvm.missions.pause(mission))["status"] == "paused"
        bridge.back = True
        await uvm.missions.resume(mission)
        assert (await uvm.missions.wait_for_end(mission))["status"] == "done"


async def test_who_waits_for_the_daemon_waits_over_a_restart(tmp_path: Path) -> None:
    """It is found waiting by the next process, begun, and done when the daemon is there."""
    bridge = Fickle()
    async with scripted_uvm(tmp_path, bridge, memory=False, seams=Seams(pauses=(60.0,))) as uvm:
        mission = await waiting(uvm, bridge)
    bridge.back = True
    async with scripted_uvm(tmp_path, bridge, memory=False) as uvm:
        assert uvm.readings.mission(mission)["status"] == "waiting"
        assert await uvm.missions.recover() == [mission]
        await uvm.missions.begin(mission)
        assert (await uvm.missions.wait_for_end(mission))["status"] == "done"


async def test_a_stop_sends_what_runs_back(tmp_path: Path) -> None:
    """Running missions are queued with the reason, those that waited wait; the next process pays for the rest alone."""
    bridge = WaitingBridge(Script())
    async with scripted_uvm(tmp_path, bridge, memory=False, missions=1) as uvm:
        first, second = await begun(uvm, "One?", "Two?")
        third = await submit(uvm, "Three?")
        await bridge.let(1)
        await bridge.arrived(4)
        waiters = [asyncio.create_task(uvm.missions.wait_for_end(mission)) for mission in (first, second, third)]
        await asyncio.sleep(0)
        await uvm.workers.stop()
        await uvm.workers.stop()
        assert {each["status"] for each in await asyncio.gather(*waiters)} == {"queued"}
        assert "stopped" in uvm.readings.mission(first)["reason"]["message"]
        await uvm.missions.begin(third)
        assert uvm.workers.running == ()
        assert len(bridge.waiting) == 4
    again = ScriptedBridge(Script())
    async with scripted_uvm(tmp_path, again, memory=False) as uvm:
        assert await uvm.missions.recover() == [first, second, third]
        for mission in (first, second, third):
            await uvm.missions.begin(mission)
        assert await statuses(uvm, [first, second, third]) == ["done"] * 3
        # Its decomposition was paid for; the three calls that the stop broke off were not.
        assert uvm.readings.mission(first)["cost"]["from_journal"] == 1
        with uvm.image.snapshot() as root:
            assert uvm.image.find(root, first)[1].deaths == 0


async def test_a_closing_image_stops_first(tmp_path: Path) -> None:
    """Whoever leaves the UVM, also by an error, leaves running missions queued; the error is raised as it is."""
    missions: list[str] = []

    async def leaving() -> None:
        bridge = WaitingBridge(Script())
        async with scripted_uvm(tmp_path, bridge, memory=False) as uvm:
            missions.extend(await begun(uvm, "Why?"))
            await bridge.arrived(1)
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await leaving()
    async with scripted_uvm(tmp_path, memory=False) as uvm:
        assert uvm.readings.mission(missions[0])["status"] == "queued"


async def test_a_stop_tears_no_commit(tmp_path: Path) -> None:
    """A mission whose commit is under way when all stops is done, and a cancelled stop changes nothing of it."""
    stopping: list[asyncio.Task[None]] = []

    def stop_now(transaction: MissionTransaction) -> None:
        loop.call_soon_threadsafe(begin_to_stop)

    def begin_to_stop() -> None:
        stopping.append(asyncio.ensure_future(uvm.workers.stop()))
        loop.call_soon(stopping[0].cancel)

    loop = asyncio.get_running_loop()
    async with scripted_uvm(tmp_path, ScriptedBridge(Script()), memory=False) as uvm:
        uvm.image.voters = (*uvm.image.voters, stop_now)
        (mission,) = await begun(uvm, "Why?")
        assert (await uvm.missions.wait_for_end(mission))["status"] == "done"
        with pytest.raises(asyncio.CancelledError):
            await stopping[0]
    async with scripted_uvm(tmp_path, memory=False) as uvm:
        assert uvm.readings.mission(mission)["answer"]
        with uvm.image.snapshot() as root:
            assert list(root[roots.UNFOLDED]) == []


async def test_an_end_is_told_though_the_mission_is_cancelled_behind_its_commit(tmp_path: Path) -> None:
    """While its contributions are published it is done already: who watches hears that, and nobody sees it run on."""
    told: list[str] = []
    cancelling: list[asyncio.Task[Any]] = []

    def hear(event: str, keys: Any) -> None:
        if event == "txn.commit" and str(keys["what"]).startswith("m-"):
            loop.call_soon(lambda: cancelling.append(loop.create_task(uvm.missions.cancel(keys["what"]))))
        if event in ("mission.done", "mission.failed"):
            told.append(event)

    loop = asyncio.get_running_loop()
    async with scripted_uvm(tmp_path, ScriptedBridge(Script())) as uvm:
        uvm.events.subscribe(hear)
        (mission,) = await begun(uvm, "Why?")
        assert (await uvm.missions.wait_for_end(mission))["status"] == "done"
        assert (await cancelling[0])["status"] == "done"
        assert (told, uvm.status()["running"]) == (["mission.done"], [])


async def test_a_pause_that_meets_a_stop_is_a_pause(tmp_path: Path) -> None:
    """A person has said that it stands still: the stop only makes that sooner."""
    bridge = WaitingBridge(Script())
    async with scripted_uvm(tmp_path, bridge, memory=False) as uvm:
        (mission,) = await begun(uvm, "Why?")
        await bridge.arrived(1)
        pausing = asyncio.create_task(uvm.missions.pause(mission))
        await asyncio.sleep(0)
        await uvm.workers.stop()
        assert (await pausing)["status"] == "paused"
    async with scripted_uvm(tmp_path, memory=False) as uvm:
        assert uvm.readings.mission(mission)["status"] == "paused"
        assert await uvm.missions.recover() == []


@pytest.mark.parametrize(("word", "then"), [("failed", "failed"), ("paused", "cancelled")])
async def test_a_cancellation_meets_what_is_being_written_down(tmp_path: Path, word: StatusWord, then: str) -> None:
    """It waits for that, and the worker is free again; what has not ended by it is cancelled after all."""
    async with scripted_uvm(tmp_path, ScriptedBridge(Script()), missions=1) as uvm:
        mission = await submit(uvm, "Why?")
        uvm.missions.enqueue(mission)
        stop_request = uvm.workers._running[mission].stop_request
        assert stop_request.request_stop(word, OllamaUnreachable("nothing listens"), force=False)
        while not uvm.image.writer._flushing:  # noqa: ASYNC110 - what it came to, as ordered
            await asyncio.sleep(0)
        async with asyncio.timeout(HANG):
            assert (await uvm.missions.cancel(mission))["status"] == then
        assert uvm.workers.running == ()
        assert (await ask(uvm, "Why not?"))["status"] == "done"


async def test_who_leaves_as_the_daemon_comes_back_ends_nobody_else(tmp_path: Path) -> None:
    """A mission is cancelled in the very moment in which those who waited for the daemon begin again: they do."""
    bridge = Fickle()
    back = asyncio.Event()

    async def answers() -> bool:
        await back.wait()
        return True

    async with scripted_uvm(tmp_path, bridge) as uvm:
        uvm.workers._deps = replace(uvm.workers._deps, answers=answers, pauses=(0.0,))
        bridge.back = False
        missions = await begun(uvm, "One?", "Two?", policy={"wait_ollama": True})
        await until(lambda: {uvm.readings.mission(mission)["status"] for mission in missions} == {"waiting"})
        bridge.back = True
        back.set()
        leaving = asyncio.ensure_future(uvm.missions.cancel(missions[0]))
        assert await statuses(uvm, missions) == ["cancelled", "done"]
        assert (await leaving)["status"] == "cancelled"


async def test_what_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    """A cancellation and a pause that the disk refuses are told so, and their missions wait on and are run."""

    def full(batch: Any) -> None:
        raise OSError(errno.EIO, "just then")

    bridge = WaitingBridge(Script())
    async with scripted_uvm(tmp_path, bridge, missions=1) as uvm:
        missions = await begun(uvm, "One?", "Two?", "Three?", effort="reflex")
        await bridge.arrived(1)
        writer, commit = uvm.image.writer, uvm.image.writer._commit
        writer._commit = full  # type: ignore[method-assign]
        with pytest.raises(BatosError, match="just then"):
            await uvm.missions.cancel(missions[1])
        with pytest.raises(BatosError, match="just then"):
            await uvm.missions.pause(missions[2])
        writer._commit = commit  # type: ignore[method-assign]
        for number in (1, 2, 3):
            await bridge.let(number)
        assert await statuses(uvm, missions) == ["done"] * 3


async def test_who_leaves_while_it_is_written_has_said_it(tmp_path: Path) -> None:
    """A cancellation that is itself cancelled in the middle of its commit cancels, and who waits for the end has it."""
    bridge = WaitingBridge(Script())
    async with scripted_uvm(tmp_path, bridge, missions=1) as uvm:
        missions = await begun(uvm, "One?", "Two?", effort="reflex")
        await bridge.arrived(1)
        waiting = asyncio.ensure_future(uvm.missions.wait_for_end(missions[1]))
        leaving = asyncio.ensure_future(uvm.missions.cancel(missions[1]))
        while not uvm.image.writer._flushing:  # noqa: ASYNC110 - it is being written
            await asyncio.sleep(0)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        async with asyncio.timeout(HANG):
            assert (await waiting)["status"] == "cancelled"
        await bridge.let(1)
        assert await statuses(uvm, missions) == ["done", "cancelled"]
