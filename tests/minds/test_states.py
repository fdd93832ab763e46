"""States whose steps were redefined: what is left out is not done, each bound holds, and the order of states stays."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.genesis.sound_steps import behaviours
from tests.minds.conftest import Mind
from tests.minds.parts.test_delegate_council import prefix
from tests.minds.parts.test_protocols import RISKS
from tests.minds.scripted import (
    BAD,
    GOOD,
    INSPIRATIONS,
    LAMP,
    QUESTION,
    SLOTS,
    WINDS,
    DenseBridge,
    Script,
    ask,
    change,
    facet,
    kind,
)
from tests.minds.test_computed_results import FILES
from tests.minds.test_computed_results import QUESTION as COUNTED
from tests.minds.test_context_building_remembered import LAMP as MARO
from tests.minds.test_context_building_remembered import QUESTION as WHO
from tests.minds.test_context_building_remembered import remember

from batos.events import Events
from batos.genesis import state_steps
from batos.genesis.codex.declarations import state_slot
from batos.genesis.state_steps import TABLE, BoundValue, Steps, default_steps, with_bound_value, without_step
from batos.inference.ollama.bridge import ChatRequest
from batos.minds import states
from batos.minds.calls import decisions
from batos.minds.machine import FOLLOWS
from batos.protocol.brief import as_file
from batos.protocol.errors import BatosError, InternalError, ObjectError, StreamCut
from batos.testing import ScriptedBridge, emulated_uvm, scripted_uvm
from batos.uvm import UVM


async def redefine(uvm: UVM, state: str, steps: Steps) -> None:
    """Give a state other steps, as a running system would."""
    await change(uvm, lambda root: state_steps.redefine(root["orchestrator_obj"], state, steps))


async def leave_out(uvm: UVM, state: str, step: str) -> None:
    """Leave a step of a state out."""
    await redefine(uvm, state, without_step(default_steps(state), step))


async def bound(uvm: UVM, state: str, step: str, name: str, value: BoundValue) -> None:
    """Give a bound of a step another value."""
    await redefine(uvm, state, with_bound_value(default_steps(state), step, name, value))


def kinds(mind: Mind) -> list[str]:
    """The kind of every call so far."""
    return [kind(request) for request in mind.bridge.history]


def asked(bridge: ScriptedBridge) -> list[Any]:
    """The messages of every call so far."""
    return [request.messages for request in bridge.history]


def test_each_named_step_is_there() -> None:
    """The table and the kernel name the same steps."""
    named = {state: {each.name for each in steps} for state, steps in TABLE.items()}
    assert {**{state: {*steps} for state, steps in states.WORKING.items()}, "SYNTHESIZING": {
        "combine", *states.FINISHING,
    }} == named  # fmt: skip


# -- IDLE


async def test_a_state_without_steps_works_as_declared(mind: Mind) -> None:
    """An image from before asks the same, byte for byte."""
    shown = await ask(mind.uvm, RISKS)
    before = asked(mind.bridge)

    def forget(root: Any) -> None:
        for state in TABLE:
            delattr(getattr(root["orchestrator_obj"], state_slot(state)), state_steps.STEPS)

    await change(mind.uvm, forget)
    again = await ask(mind.uvm, RISKS)
    assert asked(mind.bridge) == [*before, *before]
    assert again["answer"] == shown["answer"]
    assert "steps" not in again["provenance"]


async def test_what_is_left_uncomputed_is_not_shown(mind: Mind) -> None:
    """Without `compute` no line stands before the question; the record says how the state was redefined."""
    await leave_out(mind.uvm, "IDLE", "compute")
    shown = await ask(mind.uvm, COUNTED, FILES, effort="reflex")
    assert "computed" not in shown["provenance"]
    assert "Computed from" not in str(asked(mind.bridge))
    assert [step for step, _ in shown["provenance"]["steps"]["IDLE"]] == ["recall", "use_tools", "rules"]


async def test_moved_steps_ask_the_same(mind: Mind) -> None:
    """Computing and the rules of an answer do not rest on each other, nor do the two steps after a division."""
    await ask(mind.uvm, COUNTED, FILES)
    before = asked(mind.bridge)
    recall, tools, compute, rules = default_steps("IDLE")
    await redefine(mind.uvm, "IDLE", (recall, rules, compute, tools))
    divide, remembered, tools, for_parts = default_steps("DECOMPOSING")
    await redefine(mind.uvm, "DECOMPOSING", (divide, for_parts, tools, remembered))
    await ask(mind.uvm, COUNTED, FILES)
    assert asked(mind.bridge) == [*before, *before]


@pytest.mark.parametrize("most", [1, 2])
async def test_so_many_parts_are_remembered(tmp_path: Path, most: int) -> None:
    """Of three that match."""
    async with scripted_uvm(tmp_path, ScriptedBridge.saying(MARO)) as uvm:
        for place in "abc":
            await remember(uvm, f"{MARO} So it says on page {place}.", source=f"/{place}", title=place)
        assert len((await ask(uvm, WHO, (), effort="reflex"))["provenance"]["recalled"]) == 3
        await bound(uvm, "IDLE", "recall", "most", most)
        assert len((await ask(uvm, WHO, (), effort="reflex"))["provenance"]["recalled"]) == most


async def test_the_evidence_fills_a_share_of_its_room(mind: Mind) -> None:
    """A file that fits a window is shown in part where a quarter of the room is to be filled, and that is told."""
    long = as_file("long.txt", "\n\n".join(f"{n}. The keeper burns oil. {'So. ' * 20}" for n in range(40)).encode())
    whole = (await ask(mind.uvm, files=(long,)))["provenance"]
    await bound(mind.uvm, "IDLE", "recall", "room", 25)
    share = (await ask(mind.uvm, files=(long,)))["provenance"]
    assert whole["omitted"]["passages"] == 0 < share["omitted"]["passages"]
    assert 0 < len(share["recalled"]) < len(whole["recalled"])


KEEN = "Who wound the brass clockwork of the tall lamp in the north tower?"
TOLD = as_file(
    "tower.txt",
    b"Maro wound the brass clockwork of the tall lamp in the north tower. The brass clockwork of the tall lamp is old."
    b" The north tower has a brass clockwork. A lamp is tall. Gulls cry over the yard all day long.",
)


@pytest.mark.parametrize("focus", [1, 3])
async def test_so_many_sentences_are_in_focus(mind: Mind, focus: int) -> None:
    """A small model is shown the best one, or more of them."""
    mind.bridge.rows = {name: replace(row, parameter_size="135M") for name, row in mind.bridge.rows.items()}
    await bound(mind.uvm, "IDLE", "recall", "focus", focus)
    await ask(mind.uvm, KEEN, (TOLD,), effort="reflex")
    said = str(asked(mind.bridge)[-1])
    assert "Maro wound" in said
    assert ("The north tower has" in said) == (focus == 3)


# -- DECOMPOSING


async def test_a_question_that_is_not_divided_is_asked_of_each_part(mind: Mind) -> None:
    """No call divides it, the parts compete, and a rule says why."""
    await leave_out(mind.uvm, "DECOMPOSING", "divide")
    mind.bridge.respond = _say_of_each
    shown = await ask(mind.uvm)
    assert "decomposition" not in kinds(mind)
    assert [voice["query"] for voice in shown["voices"]] == [QUESTION] * 3
    assert shown["provenance"]["combined"]["mode"] == "select"
    assert shown["provenance"]["combined"]["undivided"] == decisions.LEFT_OUT
    assert [each["why"] for each in shown["provenance"]["rules"]] == [decisions.LEFT_OUT]


def _say_of_each(request: ChatRequest) -> str | BatosError:
    """What each facet says differs."""
    return f"{GOOD} {facet(request)}" if kind(request) == "part" else Script()(request)


@pytest.mark.parametrize("many", [0, 1, 2])
async def test_sub_queries_bring_so_many_parts(tmp_path: Path, many: int) -> None:
    """None where the step is left out, else those of each sub-query's recall that the bound lets in."""
    async with scripted_uvm(tmp_path, ScriptedBridge(Script())) as uvm:
        for place in "abcd":
            await remember(uvm, f"{WINDS} on page {place}, to keep the lamp burning.", source=f"/{place}", title=place)
        if many:
            await bound(uvm, "DECOMPOSING", "recall_for_parts", "most", many)
        else:
            await leave_out(uvm, "DECOMPOSING", "recall_for_parts")
        found = (await ask(uvm, "What is said of it?", persona="BRICK"))["provenance"]["recalled"]
        assert len({each["memory"] for each in found if "memory" in each}) == many


@pytest.mark.parametrize("is_left_out", [False, True])
async def test_what_sub_queries_ask_for_is_computed_unless_it_is_left_out(mind: Mind, is_left_out: bool) -> None:
    """The question itself stays computed: that is a step of another state."""
    script = Script()

    def respond(request: ChatRequest) -> str | BatosError:
        said = script(request)
        return str(said).replace(QUESTION, COUNTED) if kind(request) == "decomposition" else said

    mind.bridge.respond = respond
    if is_left_out:
        await leave_out(mind.uvm, "DECOMPOSING", "compute")
    shown = await ask(mind.uvm, "Which kettles were sold, and how do sales go on?", FILES)
    assert bool(shown["provenance"].get("computed")) != is_left_out


# -- DELEGATING


@pytest.mark.parametrize(
    ("quorum", "failing", "ends"), [(50, 2, False), (33, 2, True), (100, 1, False), (67, 1, False)]
)
async def test_a_quorum_of_parts_must_not_fail(mind: Mind, quorum: int, failing: int, ends: bool) -> None:
    """Of three facets; with too few the mission fails with their reason."""
    failed = INSPIRATIONS[:failing]

    def respond(request: ChatRequest) -> str | BatosError:
        return StreamCut("cut") if kind(request) == "part" and facet(request) in failed else Script()(request)

    mind.bridge.respond = respond
    await bound(mind.uvm, "DELEGATING", "delegate", "quorum", quorum)
    if ends:
        shown = await ask(mind.uvm)
        assert len([each for each in shown["voices"] if "failure" in each]) == failing
    else:
        with pytest.raises(StreamCut):
            await ask(mind.uvm)


@pytest.mark.parametrize(("stop", "calls"), [("when_certain", 2), ("never", 3)])
async def test_votes_stop_when_they_are_certain_or_never(mind: Mind, stop: str, calls: int) -> None:
    """Two of three equal answers are a majority."""
    await bound(mind.uvm, "DELEGATING", "delegate", "stop", stop)
    await ask(mind.uvm, policy={"combine": "vote"})
    assert kinds(mind) == ["part"] * calls


async def test_evidence_that_is_not_fitted_once_is_fitted_by_each_call(tmp_path: Path) -> None:
    """A council is asked all the same, but what its calls are shown differs."""
    long = as_file("long.txt", "\n\n".join(f"{n}. The keeper burns oil. {'So. ' * 20}" for n in range(60)).encode())
    bridge = DenseBridge(Script())
    async with scripted_uvm(tmp_path, bridge) as uvm:
        await leave_out(uvm, "DELEGATING", "fit_evidence")
        assert (await ask(uvm, files=(long,), effort="council"))["status"] == "done"
    assert len({prefix(each.messages) for each in bridge.history[1:]}) > 1


# -- SYNTHESIZING


async def test_the_mode_is_that_of_the_state_where_the_brief_has_none(mind: Mind) -> None:
    """As if it had been asked for; what the brief asks for goes first."""
    mind.bridge.respond = _say_of_each
    await bound(mind.uvm, "SYNTHESIZING", "combine", "mode", "select")
    assert (await ask(mind.uvm))["provenance"]["combined"]["mode"] == "select"
    assert kinds(mind) == ["part"] * 3 + ["choice"] * 2
    assert (await ask(mind.uvm, policy={"combine": "weave"}))["provenance"]["combined"]["mode"] == "weave"


@pytest.mark.parametrize("step", [None, "repair"])
async def test_an_answer_that_is_not_repaired_keeps_its_faults(mind: Mind, step: str | None) -> None:
    """With no revision what can be left out by rule is left out; without the step the verdict names the fault."""
    mind.script.woven = f"{GOOD} {BAD}"
    if step:
        await leave_out(mind.uvm, "SYNTHESIZING", step)
    else:
        await bound(mind.uvm, "SYNTHESIZING", "repair", "revisions", 0)
    shown = await ask(mind.uvm)
    assert shown["answer"] == (f"{GOOD} {BAD}" if step else GOOD)
    assert shown["provenance"]["gate"]["ok"] == (not step)
    mind.script.woven = BAD
    assert (await ask(mind.uvm))["answer"] == BAD
    assert "revised" not in kinds(mind)


async def test_a_protocol_that_is_left_out_makes_no_call(mind: Mind) -> None:
    """A question that a key protocol is meant for is answered without it."""
    await leave_out(mind.uvm, "SYNTHESIZING", "protocol")
    shown = await ask(mind.uvm, RISKS)
    assert "changed" not in kinds(mind)
    assert "protocol" not in shown["provenance"]["gate"]


# -- the whole machine


async def test_unsound_steps_fail_a_mission_before_it_costs_anything(mind: Mind) -> None:
    """The error says which and what to do; genesis does it."""

    def spoil(root: Any) -> None:
        setattr(getattr(root["orchestrator_obj"], state_slot("SYNTHESIZING")), state_steps.STEPS, (("divine", ()),))

    await change(mind.uvm, spoil)
    with pytest.raises(ObjectError, match="divine") as raised:
        await ask(mind.uvm)
    assert "batos genesis" in raised.value.remedy
    assert mind.bridge.history == []
    await mind.uvm.readiness.genesis()
    assert (await ask(mind.uvm))["status"] == "done"


BRIEFS: dict[str, dict[str, Any]] = {
    "reflex": {"effort": "reflex"},
    "cycle": {},
    "protocol": {"text": RISKS},
    "council": {"effort": "council"},
    "counted": {"text": COUNTED, "files": FILES},
    "remembered": {"text": WHO, "files": ()},
    "vote": {"policy": {"combine": "vote"}},
}


@settings(max_examples=24, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    drawn=behaviours(),
    brief=st.sampled_from([*BRIEFS]),
    woven=st.sampled_from([GOOD, BAD, f"{GOOD} {BAD}", ""]),
    failing=st.integers(0, 3),
    is_small=st.booleans(),
)
def test_any_sound_steps_lead_to_an_answer_or_a_clear_error(
    tmp_path: Path, drawn: dict[str, Steps], brief: str, woven: str, failing: int, is_small: bool
) -> None:
    """Whatever is left out, moved and bounded: the order of states stays, and what is left out costs no call."""
    asyncio.run(_run_redefined(tmp_path, drawn, BRIEFS[brief], woven, failing, is_small))


async def _run_redefined(
    home: Path, drawn: dict[str, Steps], brief: dict[str, Any], woven: str, failing: int, is_small: bool
) -> None:
    def respond(request: ChatRequest) -> str | BatosError:
        failed = kind(request) == "part" and any(each in str(request.messages) for each in INSPIRATIONS[:failing])
        return StreamCut("cut") if failed else Script(woven=woven)(request)

    bridge, told = ScriptedBridge(respond), list[tuple[str, str]]()
    if is_small:
        bridge.rows = {name: replace(row, parameter_size="135M") for name, row in bridge.rows.items()}

    def hear(name: str, keys: Any) -> None:
        if name == "mission.state":
            told.append((keys.get("path", ""), keys["state"]))

    async with scripted_uvm(home, bridge, events=Events(hear, log=False)) as uvm:
        await remember(uvm, MARO)
        for state, steps in drawn.items():
            await redefine(uvm, state, steps)
        try:
            shown = await ask(uvm, **brief)
        except BatosError as error:
            assert not isinstance(error, InternalError)
            assert error.message
        else:
            assert shown["answer"]
            assert set(shown["provenance"].get("steps", {})) == {
                state for state, steps in drawn.items() if steps != default_steps(state)
            }
    _check(drawn, told, [kind(request) for request in bridge.history])


def _check(drawn: dict[str, Steps], told: list[tuple[str, str]], calls: list[str]) -> None:
    for path in {each for each, _ in told}:
        passed = [state for each, state in told if each == path]
        assert passed[0] == "IDLE"
        assert all(after == "FAILED" or after in FOLLOWS[before] for before, after in pairwise(passed))
    names = {state: {name for name, _ in steps} for state, steps in drawn.items()}
    assert "divide" in names["DECOMPOSING"] or "decomposition" not in calls
    assert "protocol" in names["SYNTHESIZING"] or "changed" not in calls
    repair = dict(drawn["SYNTHESIZING"]).get("repair", (("revisions", 0),))
    assert calls.count("revised") <= int(dict(repair)["revisions"])


async def test_least_steps_are_enough_for_an_answer_over_the_wire(tmp_path: Path) -> None:
    """With every step that may be left out left out: the facets' calls, and those that choose among their answers."""
    async with emulated_uvm(tmp_path / "home") as (uvm, emulator):
        await uvm.readiness.genesis()
        for state, table in TABLE.items():
            await redefine(
                uvm, state, tuple(e for e in default_steps(state) if {t.name: t for t in table}[e[0]].is_required)
            )
        emulator.requests.clear()
        shown = await ask(uvm, files=(LAMP,))
        bodies = [each["body"] for each in emulator.requests if each["path"] == "/api/chat"]
    assert shown["status"] == "done"
    assert len(SLOTS) <= len(bodies) <= len(SLOTS) + 2
    assert all("q1" not in body["format"]["properties"] for body in bodies if body.get("format"))
