"""Missions that change the same object: the later is thought again on what the earlier left, and pays nothing twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import transaction
from tests.methods.execution.method_mind import BRICK, MethodMind, open_method_mind
from tests.minds.scripted import Script, WaitingBridge, ask, submit

from batos.minds.stopping import Stopped, StopRequest, cancelled_error
from batos.missions import runner as missions
from batos.protocol.errors import MissionFailed, Refused
from batos.server.dispatch.reads import explain
from batos.uvm import UVM

COUNTING = """
async def tamland_facet_(self, query):
    reply = await self.infer_(query)
    self.asked = self.asked + 1
    self._p_changed = True
    return reply
"""
ADDING = """
def add_(self, amount):
    self.total += amount
    self._p_changed = True
    return self.total
"""


async def test_two_missions_count_in_the_same_slot_and_both_counts_arrive(tmp_path: Path) -> None:
    """The second to commit is thought again: its calls come from the journal, and the slot has both."""
    bridge = WaitingBridge(Script())
    async with open_method_mind(tmp_path / "home", bridge=bridge) as mind:
        await mind.learn(tamland_facet_=COUNTING)
        await mind.write(asked=0)
        both = [asyncio.create_task(ask(mind.uvm)) for _ in range(2)]
        await bridge.arrived(2)  # each sees the slot as it was before the other
        for number in range(1, 11):
            await bridge.let(number)
        shown = [await task for task in both]
        assert [each["status"] for each in shown] == ["done", "done"]
        assert mind.slots()["asked"] == 2
        assert len(bridge.history) == 10
        assert [each["cost"]["calls"] for each in shown] == [5, 5]
        assert sorted(each["cost"]["from_journal"] for each in shown) == [0, 5]
        assert len(mind.told("txn.conflict")) == 1
        first, second = sorted(shown, key=lambda each: each["cost"]["from_journal"])
        (lost,) = (each for each in explain(mind.uvm.readings, second["id"])["because"] if each["kind"] == "conflict")
        assert [each["ref"] for each in lost["because"]] == [first["id"]]
        assert not [each for each in explain(mind.uvm.readings, first["id"])["because"] if each["kind"] == "attempts"]


async def test_a_replayed_attempt_says_so(mind: MethodMind) -> None:
    """What was streamed is taken back, the attempt is the second, and the states are told once."""
    await mind.learn(tamland_facet_=COUNTING)
    await mind.write(asked=0)
    _meddle(mind, 1)
    shown = await ask(mind.uvm)
    assert mind.slots()["asked"] == 11
    assert shown["status"] == "done"
    assert [state["state"] for state in shown["states"]] == [
        "IDLE", "DECOMPOSING", "DELEGATING", "SYNTHESIZING", "COMPLETE", "IDLE",
    ]  # fmt: skip
    running = [each for each in mind.told("mission.status") if each["status"] == "running"]
    assert [each["attempt"] for each in running] == [1, 2]
    assert running[1]["reason"]["message"] == "another mission changed what this one changes"
    assert [each for each in mind.told("mission.retracted") if "path" not in each]
    changed = shown["provenance"]["written"]
    assert [(each["slot"], each["had"], each["former"]) for each in changed] == [("asked", True, 10)]
    found = explain(mind.uvm.readings, shown["id"])
    (lost,) = (each for each in found["because"] if each["kind"] == "conflict")
    assert lost["text"] == "race 1 was lost for brick_prototype_obj"
    assert lost["because"][0]["text"] == "by no mission"
    attempts = [each["text"] for each in found["because"] if each["kind"] == "attempts"]
    assert attempts == ["2 attempts in all made 5 calls, none of them a second time"]


async def test_eight_missions_add_to_one_slot(mind: MethodMind) -> None:
    """Eight messages to the same method at once: every amount arrives, and each answers what the slot was then."""
    await mind.learn(add_=ADDING)
    await mind.write(total=0)
    told = await asyncio.gather(*(mind.sent("add_", amount) for amount in range(1, 9)))
    assert mind.slots()["total"] == sum(range(1, 9)) == max(told)
    assert len(set(told)) == 8
    assert mind.bridge.history == []
    met = Counter(each["what"] for each in mind.told("txn.conflict"))
    assert set(met.values()) <= {1}  # nobody is overtaken twice


async def test_who_lost_thinks_again_once(tmp_path: Path) -> None:
    """Six missions whose prompts tell what the others count: each but the first pays its own call a second time."""
    telling = """
        async def tamland_facet_(self, query):
            reply = await self.infer_(f"{query} ({self.asked})")
            self.asked = self.asked + 1
            self._p_changed = True
            return reply
        """
    bridge = WaitingBridge(Script())
    async with open_method_mind(tmp_path / "home", bridge=bridge) as mind:
        await mind.learn(tamland_facet_=telling)
        await mind.write(asked=0)
        each = [asyncio.create_task(ask(mind.uvm)) for _ in range(6)]
        await bridge.arrived(6)  # each sees the slot as it was before the others
        for number in range(1, 36):
            await bridge.let(number)
        shown = [await task for task in each]
        assert [told["status"] for told in shown] == ["done"] * 6
        assert mind.slots()["asked"] == 6
        assert len(bridge.history) == 6 * 5 + 5


async def test_what_asks_something_else_now_is_paid(mind: MethodMind) -> None:
    """A prompt that holds what the other mission changed is another prompt: it is asked anew, and only it."""
    await mind.learn(
        tamland_facet_="""
        async def tamland_facet_(self, query):
            reply = await self.infer_(f"{query} ({self.asked})")
            self.asked = self.asked + 1
            self._p_changed = True
            return reply
        """
    )
    await mind.write(asked=0)
    _meddle(mind, 1)
    shown = await ask(mind.uvm)
    assert mind.slots()["asked"] == 11
    assert (shown["cost"]["calls"], shown["cost"]["from_journal"]) == (6, 4)


async def test_a_mission_that_meets_others_every_time_fails_with_a_reason(mind: MethodMind) -> None:
    """After so many attempts it says what happened; nothing of it is in the image."""
    await mind.learn(add_=ADDING)
    await mind.write(total=0, asked=0)
    _meddle(mind, missions.MOST_REPLAYS)
    with pytest.raises(MissionFailed, match="each of the 20 times"):
        await mind.send("add_", 7)
    assert (mind.slots()["total"], mind.slots()["asked"]) == (0, 10 * missions.MOST_REPLAYS)
    failed = mind.told("mission.failed")[-1]
    assert failed["reason"]["remedy"]
    assert mind.uvm.readings.mission(failed["mission"])["status"] == "failed"


async def test_a_mission_that_is_to_stop_does_so_between_two_attempts(mind: MethodMind) -> None:
    """It is not thought again: a cancelled mission that met another is cancelled."""
    await mind.learn(add_=ADDING)
    await mind.write(total=0, asked=0)
    mission = await mind.uvm.missions.submit(
        {"text": "add", "message": {"receiver": BRICK, "selector": "add_", "arguments": [7]}}
    )
    stop_request = StopRequest()
    _meddle(mind, 1, lambda: stop_request.request_stop("cancelled", cancelled_error(), force=False))
    with pytest.raises(Stopped):
        await (await mind.uvm.readiness.ready()).runner.run(mission, stop_request)
    assert mind.uvm.readings.mission(mission)["status"] == "cancelled"
    assert mind.slots()["total"] == 0


async def test_only_what_runs_is_begun_again(mind: MethodMind) -> None:
    """An attempt is counted for a mission that runs, and for no other."""
    mission = await submit(mind.uvm)
    with pytest.raises(Refused, match="is queued"):
        await mind.uvm.image.again(mission, cancelled_error())
    await mind.uvm.image.move(mission, "running")
    await mind.uvm.image.again(mission, cancelled_error())
    assert [each.get("attempt") for each in mind.told("mission.status")] == [1, 2]


def _meddle(mind: MethodMind, times: int, also: Callable[[], object] = lambda: None) -> None:
    """So often another mission's commit comes just before a commit."""
    left = times

    def meddle(committing: Any) -> None:
        nonlocal left
        if left:
            left -= 1
            also()
            _add_ten(mind.uvm)

    mind.uvm.image.voters = (*mind.uvm.image.voters, meddle)


def _add_ten(uvm: UVM) -> None:
    """Runs in the commit thread, where a mission's commit is about to."""
    manager = transaction.TransactionManager(explicit=True)
    manager.begin()
    connection = uvm.image.db.open(manager)
    try:
        connection.root()[BRICK].asked += 10
        manager.commit()
    finally:
        connection.close()
