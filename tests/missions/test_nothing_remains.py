"""A failed mission leaves nothing: every object of the image is looked at before and after."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.image.open_image import dump
from tests.minds.conftest import Mind
from tests.minds.scripted import BAD, LAMP, FailingBridge, Script, WaitingBridge, ask, submit

from batos.image import roots
from batos.minds.results import Synthesis
from batos.objects.prototype import own_slots
from batos.protocol.errors import DiskFull, ImageError, MissionFailed, OllamaUnreachable, Refused, StreamCut
from batos.testing import ScriptedBridge
from batos.uvm import UVM

CALLS = 6


def _allowed(uvm: UVM, mission: str) -> set[bytes]:
    """What accepting and failing a mission writes: its three records, the trees they hang in, its attachment."""
    with uvm.image.snapshot() as root:
        parts = root[roots.MISSIONS][mission]
        attachment = root[roots.ATTACHMENTS][LAMP.ref.sha256]
        trees = [root[name] for name in (roots.MISSIONS, roots.UNFOLDED, roots.QUEUED, roots.ATTACHMENTS, roots.TALLY)]
        return {each._p_oid or b"" for each in (*parts, attachment, *trees)}


@contextmanager
def nothing_but_the_failure(uvm: UVM, word: str) -> Iterator[Callable[[str], None]]:
    """Every record outside of what a failure may write is byte for byte as before; call it with the mission's id."""
    before = dump(uvm.image)
    ran: list[str] = []
    yield ran.append
    mission = ran[0]
    after = dump(uvm.image)
    allowed = _allowed(uvm, mission)
    changed = {oid for oid in before.keys() | after.keys() if before.get(oid) != after.get(oid)}
    assert changed <= allowed, f"{len(changed - allowed)} objects changed beside the mission's own"
    with uvm.image.snapshot() as root:
        _, status, thought = root[roots.MISSIONS][mission]
        assert status.word == word
        assert dict(own_slots(thought)) == {"mission": mission}
        assert mission not in root[roots.UNFOLDED]
        assert not any(isinstance(value, Synthesis) for value in own_slots(thought).values())


async def _replace_bridge(mind: Mind, bridge: ScriptedBridge) -> None:
    bridge.rows = mind.bridge.rows
    mind.uvm.readiness.bridge = bridge
    await mind.uvm.readiness.check()  # the router learns the codex: that is written aside from every mission


@pytest.mark.parametrize("at", [1, 2, 5, 13, 22])
async def test_ollama_stopping_in_a_council_leaves_nothing(mind: Mind, at: int) -> None:
    """The same where the parts are personas: in the first decomposition, within the personas, or at the last weave."""
    await _replace_bridge(mind, FailingBridge(Script(), at, lambda: OllamaUnreachable("nothing listens")))
    mission = await submit(mind.uvm, effort="council")
    with nothing_but_the_failure(mind.uvm, "failed") as ran:
        ran(mission)
        with pytest.raises(OllamaUnreachable):
            await mind.uvm.missions.run(mission)
    assert mind.uvm.readings.mission(mission)["states"][-1]["state"] == "FAILED"
    assert len([record for record in mind.uvm.journal.read([mission]) if record.state == "done"]) == at - 1


@pytest.mark.parametrize("at", range(1, CALLS + 1))
async def test_ollama_stopping_at_any_call_leaves_nothing(mind: Mind, at: int) -> None:
    """From the given call on nothing listens: the mission is FAILED with a remedy, and no object shows that it ran."""
    script = Script(woven=BAD)
    await _replace_bridge(mind, FailingBridge(script, at, lambda: OllamaUnreachable("nothing listens")))
    mission = await submit(mind.uvm)
    with nothing_but_the_failure(mind.uvm, "failed") as ran:
        ran(mission)
        with pytest.raises(OllamaUnreachable):
            await mind.uvm.missions.run(mission)
    shown = mind.uvm.readings.mission(mission)
    assert shown["reason"]["code"] == "ollama_unreachable"
    assert shown["reason"]["remedy"]
    assert shown["states"][-1]["state"] == "FAILED"
    assert "answer" not in shown
    paid = [record for record in mind.uvm.journal.read([mission]) if record.state == "done"]
    assert len(paid) == at - 1
    assert any("failed" in note for note in mind.uvm.journal.notes(mission))


@pytest.mark.parametrize("at", range(1, CALLS + 1))
async def test_cancelling_at_any_call_leaves_nothing(mind: Mind, at: int) -> None:
    """A mission that is cancelled while a call is under way is `cancelled`, and no object shows that it ran."""
    bridge = WaitingBridge(Script(woven=BAD))
    await _replace_bridge(mind, bridge)
    mission = await submit(mind.uvm)
    with nothing_but_the_failure(mind.uvm, "cancelled") as ran:
        ran(mission)
        running = asyncio.create_task(mind.uvm.missions.run(mission))
        for number in range(1, at):
            await bridge.let(number)
        await bridge.arrived(at)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    shown = mind.uvm.readings.mission(mission)
    assert shown["status"] == "cancelled"
    assert shown["states"][-1]["state"] == "FAILED"


async def test_cancelling_twice_still_records_it(mind: Mind) -> None:
    """A second cancellation while the first is being recorded changes nothing: the status is `cancelled`."""
    bridge = WaitingBridge(Script())
    await _replace_bridge(mind, bridge)
    mission = await submit(mind.uvm)
    with nothing_but_the_failure(mind.uvm, "cancelled") as ran:
        ran(mission)
        running = asyncio.create_task(mind.uvm.missions.run(mission))
        await bridge.arrived(1)
        running.cancel()
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("a bug"),
        ImageError("the disk is odd"),
        Refused("no budget"),
        MissionFailed("no"),
        StreamCut("cut"),
        KeyError("x"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_any_kind_of_error_leaves_nothing(mind: Mind, error: Exception) -> None:
    """Ours or a bug: the reason is told and nothing else remains."""
    await _replace_bridge(mind, FailingBridge(Script(), 1, lambda: error))
    mission = await submit(mind.uvm)
    with nothing_but_the_failure(mind.uvm, "failed") as ran:
        ran(mission)
        with pytest.raises(type(error)):
            await mind.uvm.missions.run(mission)
    assert mind.uvm.readings.mission(mission)["reason"]["message"]


async def test_a_veto_at_the_commit_is_failed_from_outside_the_machine(mind: Mind) -> None:
    """A voter that refuses leaves nothing of a thought that was complete, and the last state is FAILED."""

    def veto(transaction: Any) -> None:
        raise Refused("not this thought")

    await mind.uvm.readiness.check()
    mind.uvm.image.voters = (*mind.uvm.image.voters, veto)
    mission = await submit(mind.uvm)
    with nothing_but_the_failure(mind.uvm, "failed") as ran:
        ran(mission)
        with pytest.raises(Refused, match="not this thought"):
            await mind.uvm.missions.run(mission)
    assert [each["state"] for each in mind.uvm.readings.mission(mission)["states"]][-3:] == [
        "COMPLETE",
        "IDLE",
        "FAILED",
    ]
    assert [keys["state"] for keys in mind.told("mission.state")][-1] == "FAILED"


async def test_a_full_disk_at_the_commit_is_a_failure_like_any_other(mind: Mind) -> None:
    """What the storage raises at the commit fails the mission with its own remedy."""

    def full(transaction: Any) -> None:
        raise DiskFull("no room to write")

    await mind.uvm.readiness.check()
    mind.uvm.image.voters = (full,)
    mission = await submit(mind.uvm)
    with nothing_but_the_failure(mind.uvm, "failed") as ran:
        ran(mission)
        with pytest.raises(DiskFull):
            await mind.uvm.missions.run(mission)
    assert mind.uvm.readings.mission(mission)["reason"]["remedy"].startswith("Free some space")


async def test_a_failure_beside_an_answer_harms_only_itself(mind: Mind) -> None:
    """Of two missions at once one fails and one is answered: the answered one is whole, and published."""
    script = mind.script
    script.woven = BAD

    def respond(request: Any) -> Any:
        return StreamCut("cut") if "the unlucky one" in request.messages[-1]["content"] else script(request)

    mind.bridge.respond = respond
    both: list[Any] = await asyncio.gather(
        ask(mind.uvm), ask(mind.uvm, "Which is the unlucky one here, of all of these?"), return_exceptions=True
    )
    good, bad = both
    assert isinstance(bad, StreamCut)
    assert isinstance(good, dict)
    assert good["status"] == "done"
    with mind.uvm.image.snapshot() as root:
        assert root[roots.STATISTICS]["missions"] == {"BRICK": 1}
        assert len(root[roots.UNFOLDED]) == 0
