"""The Prototypal State Machine: order, delegation, failure and redefinition."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.minds.conftest import Mind
from tests.minds.scripted import Script, WaitingBridge, ask, change, stepping, submit

from batos.genesis.codex import declarations
from batos.minds import states
from batos.minds.machine import FOLLOWS, begin, state_of
from batos.minds.results import Synthesis
from batos.minds.stopping import Stopped
from batos.objects.method import Primitive
from batos.objects.prototype import own_slots, parents_of
from batos.protocol.errors import BatosError, InternalError, ObjectError

CYCLE = ["IDLE", "DECOMPOSING", "DELEGATING", "SYNTHESIZING", "COMPLETE", "IDLE"]


def _names(shown: dict[str, Any]) -> list[str]:
    return [each["state"] for each in shown["states"]]


async def test_a_cycle_is_a_clone_whose_state_is_its_first_parent(mind: Mind) -> None:
    """A new cycle has slots of its own and delegates to IDLE's prototype, through which it answers its name."""
    with mind.uvm.image.snapshot() as root:
        orchestrator = root["orchestrator_obj"]
        cycle, other = begin(orchestrator), begin(orchestrator)
        assert cycle is not other
        assert parents_of(cycle)[0] is orchestrator.idle_state_obj
        assert state_of(cycle) == cycle.name == "IDLE"
        cycle.mark = 1
        assert "mark" not in own_slots(other)


async def test_a_cycle_passes_the_six_states_in_order(mind: Mind) -> None:
    """The report of an answered mission has every state entered, and the cycle ends where it began."""
    shown = await ask(mind.uvm)
    assert _names(shown) == CYCLE
    assert [keys["state"] for keys in mind.told("mission.state")] == CYCLE


async def test_a_reflex_skips_to_synthesizing(mind: Mind) -> None:
    """At effort reflex IDLE names SYNTHESIZING, and one call is made whatever the gate finds."""
    mind.script.woven = "Nobody cited anything."
    shown = await ask(mind.uvm, effort="reflex")
    assert _names(shown) == ["IDLE", "SYNTHESIZING", "COMPLETE", "IDLE"]
    assert shown["cost"]["calls"] == len(mind.bridge.history) == 1
    assert not shown["provenance"]["gate"]["ok"]
    assert not shown["provenance"]["gate"]["revised"]


async def test_a_persona_without_facets_answers_at_once(mind: Mind) -> None:
    """With nothing to delegate to there is nothing to decompose."""
    await change(mind.uvm, lambda root: setattr(root["brick_prototype_obj"], "facets", ()))
    assert _names(await ask(mind.uvm)) == ["IDLE", "SYNTHESIZING", "COMPLETE", "IDLE"]


async def test_the_machine_is_stepped_by_hand(mind: Mind) -> None:
    """Between two states nothing runs: the cycle stands where its first parent says, with what it has so far."""
    mission = await submit(mind.uvm)
    async with stepping(mind.uvm, mission) as opened:
        steps = opened.machine.steps(opened.cycle)
        assert await anext(steps) == "IDLE"
        assert mind.bridge.history == []
        assert await anext(steps) == "DECOMPOSING"
        assert state_of(opened.cycle) == "DECOMPOSING"
        assert isinstance(getattr(opened.cycle, states.WORK_SLOT), Synthesis)
        assert mind.bridge.history == []
        assert await anext(steps) == "DELEGATING"
        assert len(mind.bridge.history) == 1
        await steps.aclose()
        assert state_of(opened.cycle) == "DELEGATING"
        assert not opened.transaction.doomed


async def test_the_synthesis_is_dropped_when_the_cycle_is_complete(mind: Mind) -> None:
    """`_tmp_synthesis_` is a slot of the cycle from IDLE to COMPLETE and of nothing after."""
    mission = await submit(mind.uvm)
    async with stepping(mind.uvm, mission) as opened:
        await opened.machine.run(opened.cycle)
        assert states.WORK_SLOT not in own_slots(opened.cycle)
        assert "answer" in own_slots(opened.context.mission.thought)
        assert state_of(opened.cycle) == "IDLE"


def _behave(state: str, behaviour: object) -> Callable[[Any], None]:
    """A change of the image: what the state answers to its message."""

    def redefine(root: Any) -> None:
        prototype = getattr(root["orchestrator_obj"], declarations.state_slot(state))
        setattr(prototype, declarations.STATES[state], behaviour)

    return redefine


@pytest.mark.parametrize("state", [*FOLLOWS])
async def test_an_exception_in_any_state_ends_in_failed(mind: Mind, state: str) -> None:
    """Whatever state raises, the cycle enters FAILED, its transaction is doomed, and the exception comes out."""
    await change(mind.uvm, _behave(state, Primitive("no.such.work")))
    async with stepping(mind.uvm, await submit(mind.uvm)) as opened:
        with pytest.raises(ObjectError, match=r"no\.such\.work"):
            await opened.machine.run(opened.cycle)
        assert state_of(opened.cycle) == "FAILED"
        assert opened.transaction.doomed
        assert [each["state"] for each in opened.attempt.states][-2:] == [state, "FAILED"]


async def test_cancellation_in_a_state_ends_in_failed_too(mind: Mind) -> None:
    """CancelledError is an exception like any other: doomed, and raised."""
    bridge = WaitingBridge(Script())
    bridge.rows = mind.bridge.rows
    mind.uvm.readiness.bridge = bridge
    async with stepping(mind.uvm, await submit(mind.uvm)) as opened:
        running = asyncio.create_task(opened.machine.run(opened.cycle))
        await bridge.let(1)
        await bridge.arrived(4)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert state_of(opened.cycle) == "FAILED"
        assert opened.transaction.doomed


async def test_a_held_cycle_stands_where_it_stood(mind: Mind) -> None:
    """Held between two states nothing failed: the thought is doomed, the state is the one that was entered last."""
    async with stepping(mind.uvm, await submit(mind.uvm)) as opened:
        steps = opened.machine.steps(opened.cycle)
        while await anext(steps) != "DELEGATING":
            pass
        opened.attempt.stop_request.request_stop("paused", BatosError("told so"), force=False)
        with pytest.raises(Stopped):
            await anext(steps)
        assert state_of(opened.cycle) == "DELEGATING"
        assert opened.transaction.doomed
        assert len(mind.bridge.history) == 1
        assert "FAILED" not in [each["state"] for each in mind.told("mission.state")]


async def test_a_doomed_thought_cannot_be_committed(mind: Mind) -> None:
    """After FAILED the commit is refused, even if someone asks for it."""
    await change(mind.uvm, _behave("COMPLETE", Primitive("no.such.work")))
    async with stepping(mind.uvm, await submit(mind.uvm)) as opened:
        with pytest.raises(ObjectError):
            await opened.machine.run(opened.cycle)
        with pytest.raises(InternalError):
            await opened.transaction.commit(opened.context.mission.thought)


@pytest.mark.parametrize("named", ["COMPLETE", "IDLE", "FAILED", "NOWHERE", None, 7, ["DELEGATING"]])
async def test_a_wrong_next_state_is_refused(mind: Mind, named: object) -> None:
    """DECOMPOSING may be followed by DELEGATING alone: what else it names fails the mission."""
    await change(mind.uvm, _behave("DECOMPOSING", named))
    async with stepping(mind.uvm, await submit(mind.uvm)) as opened:
        with pytest.raises(InternalError, match="DECOMPOSING"):
            await opened.machine.run(opened.cycle)
        assert state_of(opened.cycle) == "FAILED"


async def test_a_state_is_redefined_in_the_image(mind: Mind) -> None:
    """Another primitive in a state's slot acts from the next mission on: DECOMPOSING that weaves names COMPLETE."""
    await change(mind.uvm, _behave("DECOMPOSING", Primitive("psm.synthesizing")))
    with pytest.raises(InternalError, match="'COMPLETE'"):
        await ask(mind.uvm)
    assert len(mind.bridge.history) == 1


async def test_a_redefined_state_may_do_nothing(mind: Mind) -> None:
    """A plain value in the place of behaviour is what the state answers: DELEGATING without facets."""
    await change(mind.uvm, _behave("DELEGATING", "SYNTHESIZING"))
    shown = await ask(mind.uvm)
    assert _names(shown) == CYCLE
    assert shown["voices"] == []
    assert shown["cost"]["calls"] == 2


async def test_a_failed_state_that_fails_itself_still_dooms(mind: Mind) -> None:
    """The doom does not hang on the redefinable behaviour of FAILED."""
    for state in ("FAILED", "DECOMPOSING"):
        await change(mind.uvm, _behave(state, Primitive("no.such.work")))
    async with stepping(mind.uvm, await submit(mind.uvm)) as opened:
        with pytest.raises(ObjectError):
            await opened.machine.run(opened.cycle)
        assert opened.transaction.doomed


async def test_a_state_that_is_no_object_fails_the_mission(mind: Mind) -> None:
    """A state's prototype replaced by a plain value is refused with a remedy, and the thought is doomed."""
    await change(
        mind.uvm, lambda root: setattr(root["orchestrator_obj"], declarations.state_slot("DELEGATING"), "gone")
    )
    async with stepping(mind.uvm, await submit(mind.uvm)) as opened:
        with pytest.raises(ObjectError, match="DELEGATING") as raised:
            await opened.machine.run(opened.cycle)
        assert raised.value.remedy
        assert opened.transaction.doomed
