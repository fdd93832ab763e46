"""Parts of a mind: they think at once, return data, and a mind goes on with half of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.minds.conftest import Mind
from tests.minds.scripted import (
    GOOD,
    INSPIRATIONS,
    SLOTS,
    Script,
    WaitingBridge,
    ask,
    change,
    facet,
    kind,
    stepping,
    submit,
)
from tests.waiting import until

from batos.events import Events
from batos.inference.ollama.bridge import ChatRequest
from batos.minds.parts import delegate
from batos.minds.results import PartResult, Synthesis
from batos.objects.method import Primitive
from batos.protocol.errors import (
    BatosError,
    ImageError,
    MissionFailed,
    ModelMissing,
    OllamaUnreachable,
    Runaway,
    RunnerDied,
    StreamCut,
    TimedOut,
)
from batos.testing import scripted_uvm

VOLATILE = ("id", "accepted_at", "states", "tid", "cost", "provenance", "brief")


def failing(script: Script, errors: dict[str, BatosError]) -> Any:
    """A script in which the facets after these inspirations fail."""

    def respond(request: ChatRequest) -> str | BatosError:
        if kind(request).endswith("part"):
            return errors.get(facet(request)) or script(request)
        return script(request)

    return respond


async def test_facets_think_at_once(mind: Mind) -> None:
    """All three calls are under way before any of them is answered."""
    bridge = WaitingBridge(Script())
    bridge.rows = mind.bridge.rows
    mind.uvm.readiness.bridge = bridge
    running = asyncio.create_task(ask(mind.uvm))
    await bridge.let(1)
    await bridge.arrived(4)
    assert [len(bridge.history), len(bridge.waiting)] == [1, 4]
    for number in (4, 2, 3, 5):
        await bridge.let(number)
    shown = await running
    assert [voice["facet"] for voice in shown["voices"]] == list(SLOTS)


@given(order=st.permutations([2, 3, 4]))
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_the_order_in_which_facets_answer_changes_nothing(tmp_path: Path, order: list[int]) -> None:
    """Whichever facet answers first, voices, answer, route and every journal key are the same."""
    shown = asyncio.run(_in_order(tmp_path, order))
    straight = asyncio.run(_in_order(tmp_path, [2, 3, 4]))
    assert {**shown, **dict.fromkeys(VOLATILE)} == {**straight, **dict.fromkeys(VOLATILE)}
    for name in ("citations", "gate", "omitted", "unanswered", "models"):
        assert shown["provenance"][name] == straight["provenance"][name]
    assert shown["cost"]["calls"] == straight["cost"]["calls"] == 5


async def _in_order(home: Path, order: list[int]) -> dict[str, Any]:
    def respond(request: ChatRequest) -> str | BatosError:
        if kind(request) == "part":
            return Script(part=facet(request))(request)
        return Script()(request)

    bridge, parts = WaitingBridge(respond), list[str]()
    told = Events(lambda name, keys: parts.append(name) if name == "mission.partial" else None, log=False)
    async with scripted_uvm(home, bridge, events=told) as uvm:
        running = asyncio.create_task(ask(uvm))
        await bridge.let(1)
        await bridge.arrived(4)
        for answered, number in enumerate(order, 1):
            await bridge.let(number)
            await _heard(parts, answered)
        await bridge.let(5)
        return await running


async def _heard(parts: list[str], many: int) -> None:
    await until(lambda: len(parts) == many, "the facet's answer")


@pytest.mark.parametrize("unlucky", INSPIRATIONS)
async def test_a_part_that_fails_leaves_nothing_and_is_named(mind: Mind, unlucky: str) -> None:
    """With two of three the mission goes on: the failed part has its reason, and the answer names it as unanswered."""
    number = INSPIRATIONS.index(unlucky) + 1
    mind.script.woven = GOOD
    mind.bridge.respond = failing(mind.script, {unlucky: RunnerDied("the runner stopped")})
    shown = await ask(mind.uvm)
    assert shown["status"] == "done"
    voice = shown["voices"][number - 1]
    assert voice["failure"]["code"] == "runner_died"
    assert voice["answer"] == ""
    assert [bool(each.get("failure")) for each in shown["voices"]].count(True) == 1
    assert shown["provenance"]["unanswered"] == [number]
    assert shown["provenance"]["gate"]["ok"]
    weave = next(request for request in mind.bridge.history if kind(request) == "woven")
    assert "(no answer)" in weave.messages[-1]["content"]
    assert [keys["known"] for keys in mind.told("mission.partial")].count(False) == 1
    assert {keys["of"] for keys in mind.told("mission.partial")} == {3}


async def test_words_of_no_use_are_no_failure_of_the_mission(mind: Mind) -> None:
    """All facets repeat themselves: a rule quotes the evidence, and each voice has its reason."""
    mind.bridge.respond = failing(mind.script, {each: Runaway("blanks", 9) for each in INSPIRATIONS})
    shown = await ask(mind.uvm)
    assert shown["status"] == "done"
    assert [voice["failure"]["code"] for voice in shown["voices"]] == ["runaway"] * 3
    assert shown["answer"].startswith("> The keeper winds")
    assert shown["provenance"]["combined"]["ruled"] == "no part had an answer"
    assert shown["provenance"]["unanswered"] == [1, 2, 3]


@pytest.mark.parametrize("lucky", INSPIRATIONS)
async def test_with_fewer_than_half_the_mission_fails_with_the_common_reason(mind: Mind, lucky: str) -> None:
    """Two of three failed alike: that reason is the mission's, since it carries the remedy."""
    errors = {each: OllamaUnreachable("nothing listens") for each in INSPIRATIONS if each != lucky}
    mind.bridge.respond = failing(mind.script, dict(errors))
    with pytest.raises(OllamaUnreachable):
        await ask(mind.uvm)


async def test_different_reasons_are_counted_and_the_first_is_told(mind: Mind) -> None:
    """Two of three failed differently: how many, and why the first did."""
    errors: dict[str, BatosError] = {INSPIRATIONS[0]: ModelMissing("llama"), INSPIRATIONS[2]: StreamCut("cut")}
    mind.bridge.respond = failing(mind.script, errors)
    with pytest.raises(MissionFailed, match=r"2 of 3 facets failed; the first: .*llama") as raised:
        await ask(mind.uvm)
    assert "batos genesis" in raised.value.remedy


async def test_half_of_an_even_number_is_enough(mind: Mind) -> None:
    """Of four facets two may fail."""

    def another(root: Any) -> None:
        brick = root["brick_prototype_obj"]
        brick.facets = (*SLOTS, "sage_facet_")
        brick.sage_facet_ = root["robin_prototype_obj"].sage_facet_

    await change(mind.uvm, another)
    mind.script.woven = GOOD
    mind.bridge.respond = failing(mind.script, {each: StreamCut("cut") for each in INSPIRATIONS[:2]})
    shown = await ask(mind.uvm)
    assert shown["status"] == "done"
    assert [bool(voice.get("failure")) for voice in shown["voices"]] == [True, True, False, False]


@pytest.mark.parametrize("error", [ImageError("gone"), TimedOut("the seconds are over")], ids=["image", "time"])
async def test_what_no_other_part_could_mend_ends_the_mission_at_once(mind: Mind, error: BatosError) -> None:
    """One facet meets a failing image or the end of the budget: the others are not waited for."""
    bridge = WaitingBridge(Script())
    bridge.rows = mind.bridge.rows

    def respond(request: ChatRequest) -> str | BatosError:
        return error if kind(request) == "part" and facet(request) == INSPIRATIONS[1] else Script()(request)

    bridge.respond = respond
    mind.uvm.readiness.bridge = bridge
    running = asyncio.create_task(ask(mind.uvm))
    await bridge.let(1)
    await bridge.arrived(4)
    await bridge.let(3)
    with pytest.raises(type(error)):
        await running
    assert not bridge.waiting[2].is_set()


async def test_a_facet_redefined_to_something_else_is_a_failed_part(mind: Mind) -> None:
    """A kernel function that answers no part in a facet's slot fails that part and says what it answered."""
    await change(mind.uvm, lambda root: setattr(root["brick_prototype_obj"], SLOTS[0], Primitive("traits.log")))
    mind.script.woven = GOOD
    shown = await ask(mind.uvm)
    assert "NoneType" in shown["voices"][0]["failure"]["message"]
    assert shown["provenance"]["gate"]["ok"]


async def test_with_enough_parts_are_asked_one_after_another(mind: Mind) -> None:
    """They are asked in order until enough is said; those not asked are not there, and only those asked are paid."""
    async with stepping(mind.uvm, await submit(mind.uvm)) as opened:
        synthesis = Synthesis(queries={slot: f"Why {slot}?" for slot in SLOTS})
        opened.cycle._tmp_synthesis_ = synthesis
        seen: list[int] = []

        def two(answered: Sequence[PartResult]) -> bool:
            seen.append(len(answered))
            return len(answered) == 2

        found = await delegate.delegate(opened.context, opened.interpreter, synthesis, two)
        assert [part.slot for part in found] == list(SLOTS[:2])
        assert seen == [1, 2]
        assert len(mind.bridge.history) == 2
        whole = await delegate.delegate(opened.context, opened.interpreter, synthesis, lambda answered: False)
        assert [part.slot for part in whole] == list(SLOTS)


async def test_with_enough_the_quorum_is_of_those_asked(mind: Mind) -> None:
    """The first of them failed and no more were needed: its reason is the mission's."""
    mind.bridge.respond = failing(mind.script, {INSPIRATIONS[0]: StreamCut("cut")})
    async with stepping(mind.uvm, await submit(mind.uvm)) as opened:
        synthesis = Synthesis(queries={slot: f"Why {slot}?" for slot in SLOTS})
        opened.cycle._tmp_synthesis_ = synthesis
        with pytest.raises(StreamCut):
            await delegate.delegate(opened.context, opened.interpreter, synthesis, lambda answered: True)
