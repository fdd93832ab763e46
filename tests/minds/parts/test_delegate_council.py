"""The council: the same machine at both scales, one prefix for all calls, data from its parts and nothing else."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.minds.conftest import Mind
from tests.minds.scripted import (
    BAD,
    GOOD,
    LAMP,
    QUESTION,
    DenseBridge,
    FailingBridge,
    Script,
    WaitingBridge,
    ask,
    begun,
    change,
    kind,
    stepping,
    submit,
)

from batos.genesis.codex.codex import PILLARS
from batos.inference.ollama.bridge import ChatRequest
from batos.minds.machine import begin
from batos.minds.parts import delegate
from batos.objects.method import Primitive
from batos.objects.prototype import own_slots
from batos.protocol.brief import as_file
from batos.protocol.errors import (
    BatosError,
    ImageError,
    MissionFailed,
    ModelMissing,
    ObjectError,
    OllamaUnreachable,
    Refused,
    RunnerDied,
    StreamCut,
    TimedOut,
)
from batos.testing import ScriptedBridge, emulated_uvm, scripted_uvm, shipped_models

MEMBERS = ("BRICK", "ROBIN", "BABS", "ALFRED")
CYCLE = ["IDLE", "DECOMPOSING", "DELEGATING", "SYNTHESIZING", "COMPLETE", "IDLE"]
CALLS = 1 + 4 * 5 + 1

_SPEAKS = re.compile(r"You are (ROBIN|BRICK|BABS|ALFRED)\b")


def speaker(request: ChatRequest) -> str:
    """The persona that a request's own message makes speak."""
    found = next(filter(None, (_SPEAKS.match(message["content"]) for message in request.messages[1:])), None)
    # A division is asked for in nobody's voice, of the persona's own model.
    return found[1] if found else next(each for each in MEMBERS if each.lower() in request.model)


def is_outer(request: ChatRequest) -> bool:
    """Whether it is the council's own call: it decomposes over personas, or weaves the mission's answer."""
    properties = request.schema["properties"] if request.schema else {}
    return list(properties) == ["q1", "q2", "q3", "q4"] or kind(request).endswith(("woven", "revised", "changed"))


async def sit(mind: Mind, **brief: Any) -> dict[str, Any]:
    """A council led by BRICK over the lamp's document, unless told otherwise."""
    return await ask(mind.uvm, **{"effort": "council", **brief})


def paths(mind: Mind, mission: str) -> list[str]:
    """The sample paths of a mission's calls, in order."""
    return [each["path"] for each in mind.uvm.readings.prompts(mission)]


def paths_of(persona: str) -> list[str]:
    """The sample paths of a persona's cycle within a council."""
    facets = (f"delegating/{slot.removesuffix('_facet_')}" for slot in PILLARS[persona])
    return [f"council/{persona.lower()}/{each}#0" for each in ("decomposing", *facets, "synthesizing")]


# -- the same machine


async def test_a_council_is_one_call_each_persona_a_cycle_and_one_call(mind: Mind) -> None:
    """Its paths tell who asked for what; whoever leads decomposes, weaves, and goes first among the personas."""
    shown = await sit(mind)
    assert shown["cost"]["calls"] == CALLS
    expected = [
        "council/decomposing#0",
        *(path for each in MEMBERS for path in paths_of(each)),
        "council/synthesizing#0",
    ]
    assert sorted(paths(mind, shown["id"])) == sorted(expected)
    assert [speaker(request) for request in mind.bridge.history if is_outer(request)] == ["BRICK", "BRICK"]
    assert [voice["persona"] for voice in shown["voices"]] == list(MEMBERS)
    assert [[each["facet"] for each in voice["voices"]] for voice in shown["voices"]] == [
        list(PILLARS[each]) for each in MEMBERS
    ]


async def test_personas_pass_the_same_states_within(mind: Mind) -> None:
    """The report has the outer cycle's states; those within are told with the path of their mind, and journaled."""
    shown = await sit(mind)
    told = mind.told("mission.state")
    assert [each["state"] for each in shown["states"]] == CYCLE
    assert [each["state"] for each in told if "path" not in each] == CYCLE
    for persona in MEMBERS:
        within = [each["state"] for each in told if each.get("path") == f"council/{persona.lower()}"]
        assert within == CYCLE
    noted = [note for note in mind.uvm.journal.notes(shown["id"]) if "path" in note]
    assert Counter(note["path"] for note in noted) == {f"council/{each.lower()}": len(CYCLE) for each in MEMBERS}


async def test_every_persona_is_given_a_question_of_its_own(mind: Mind) -> None:
    """The schema has a sub-query for each, by plain keys; each persona divides its own among its facets."""
    await sit(mind)
    first = mind.bridge.history[0]
    assert first.schema is not None
    keys = list(first.schema["properties"])
    assert keys == ["q1", "q2", "q3", "q4"]
    assert "robin" not in first.messages[-1]["content"].casefold()
    for key, persona in zip(keys, MEMBERS, strict=True):
        (decomposition,) = [
            each
            for each in mind.bridge.history[1:]
            if kind(each) == "decomposition" and speaker(each) == persona and not is_outer(each)
        ]
        assert f"{QUESTION} ({key})" in decomposition.messages[-1]["content"]


async def test_a_redefined_state_acts_within_too(mind: Mind) -> None:
    """A state's prototype changed before the personas begin is what their cycles delegate to."""
    async with stepping(mind.uvm, await submit(mind.uvm, effort="council")) as opened:
        steps = opened.machine.steps(opened.cycle)
        while await anext(steps) != "DELEGATING":
            pass
        opened.transaction.root["orchestrator_obj"].synthesizing_state_obj._process_synthesis_ = Primitive("no.such")
        with pytest.raises(ObjectError, match=r"no\.such"):
            await anext(steps)
        assert opened.transaction.doomed
    within = [each for each in mind.told("mission.state") if each["state"] == "FAILED"]
    assert len([each for each in within if "path" in each]) == len(MEMBERS)


async def test_a_cycle_that_leaves_no_part_is_a_failed_part(mind: Mind) -> None:
    """COMPLETE redefined to do nothing: every persona says what it left, and the quorum is missed for that reason."""
    async with stepping(mind.uvm, await submit(mind.uvm, effort="council")) as opened:
        steps = opened.machine.steps(opened.cycle)
        while await anext(steps) != "DELEGATING":
            pass
        opened.transaction.root["orchestrator_obj"].complete_state_obj._process_synthesis_ = "IDLE"
        with pytest.raises(ObjectError, match="answers no part but a NoneType"):
            await anext(steps)


async def test_a_persona_without_facets_answers_at_once(mind: Mind) -> None:
    """Its cycle has no parts, so it is one call, and the council needs four calls less."""
    await change(mind.uvm, lambda root: setattr(root["babs_prototype_obj"], "facets", ()))
    shown = await sit(mind)
    assert shown["cost"]["calls"] == CALLS - 4
    assert "council/babs/reflex#0" in paths(mind, shown["id"])
    assert shown["voices"][2]["voices"] == []


# -- one prefix


def prefix(messages: Any) -> str:
    """What stands before a request's own message: the first that makes a persona speak, or the last."""
    speaking = (at for at, each in enumerate(messages) if at and _SPEAKS.match(each["content"]))
    own = next(speaking, len(messages) - 1)
    return repr(list(messages[:own]))


async def test_all_calls_of_a_council_share_their_beginning(mind: Mind) -> None:
    """System, evidence and conversation are the same bytes for all personas at both scales."""
    mind.script.woven = BAD
    conversation = await begun(mind.uvm)
    await sit(mind, conversation=conversation)
    mind.bridge.history.clear()
    shown = await sit(mind, text="And what are the risks of carrying oil up at night?", conversation=conversation)
    assert shown["cost"]["calls"] == CALLS + 2, "revised, and finished by a protocol"
    requests = mind.bridge.history
    assert {speaker(each) for each in requests} == set(MEMBERS)
    assert len({prefix(each.messages) for each in requests}) == 1
    roles = [each["role"] for each in requests[0].messages]
    assert roles == ["system", "user", "user", "assistant", "user"]
    assert LAMP.data.decode().strip() in requests[0].messages[1]["content"]


async def test_the_daemon_is_asked_with_one_beginning(tmp_path: Path) -> None:
    """On the wire, as the emulator was asked it: one prefix over all calls, one model, one set of runner options."""
    async with emulated_uvm(tmp_path / "home") as (uvm, emulator):
        await uvm.readiness.genesis()
        emulator.requests.clear()  # genesis asks each base once, to measure it
        await uvm.missions.ask({"text": QUESTION, "effort": "council"}, [LAMP])
        bodies = [each["body"] for each in emulator.requests if each["path"] == "/api/chat"]
    assert len(bodies) >= CALLS - 1, "the last weave is not needed when all say the same"
    assert len({prefix(body["messages"]) for body in bodies}) == 1
    assert len({(body["options"]["num_ctx"], body["keep_alive"]) for body in bodies if "keep_alive" in body}) <= 1


async def test_evidence_leaves_room_for_the_largest_prompt_of_any_mind(mind: Mind) -> None:
    """A file that the window does not hold: what is recalled once fits beside every call, and none compacts it."""
    long = as_file(
        "long.txt", "\n\n".join(f"{n}. The keeper burns oil. {'So it is. ' * 60}" for n in range(60)).encode()
    )
    shown = await sit(mind, files=(long,))
    assert shown["provenance"]["omitted"]["passages"] > 0
    assert shown["provenance"]["recalled"]
    assert len({prefix(each.messages) for each in mind.bridge.history}) == 1


async def test_what_turns_out_too_long_is_shortened_once_for_all(tmp_path: Path) -> None:
    """Text that is denser than was thought: evidence goes before the personas begin, and their calls share the rest."""
    long = as_file("long.txt", "\n\n".join(f"{n}. The keeper burns oil. {'So. ' * 20}" for n in range(60)).encode())
    bridge = DenseBridge(Script())
    async with scripted_uvm(tmp_path / "home", bridge) as uvm:
        await ask(uvm, files=(long,), effort="council")
    first, *others = (prefix(each.messages) for each in bridge.history)
    assert len(set(others)) == 1
    assert len(others[0]) < len(first)


# -- what a persona comes back with


async def test_a_persona_is_judged_and_not_revised(mind: Mind) -> None:
    """A false citation within is a fault told with the voice and not carried on; no call is made to mend it."""
    mind.script.voiced = BAD
    shown = await sit(mind)
    assert shown["cost"]["calls"] == CALLS
    assert [[fault["check"] for fault in voice["faults"]] for voice in shown["voices"]] == [["carried"]] * 4
    assert all(voice["citations"] == [] and not voice["known"] for voice in shown["voices"])


async def test_only_the_missions_own_answer_is_streamed_and_finished(mind: Mind) -> None:
    """Tokens are the outer weave's and its protocol's; the protocols of the personas within stay where they are."""
    shown = await sit(mind, text="What are the risks when the keeper is asleep?")
    assert {each["path"].split("/")[1] for each in mind.told("mission.token")} == {"synthesizing#0", "protocol"}
    assert [path for path in paths(mind, shown["id"]) if "protocol/" in path] == ["council/protocol/rogues_gallery#0"]


async def test_what_stays_open_within_is_no_answer(mind: Mind) -> None:
    """A persona that says only that it found nothing has no answer; where no persona has one, a rule answers."""
    mind.script.voiced = "I cannot say."
    shown = await sit(mind)
    assert [voice["known"] for voice in shown["voices"]] == [False] * 4
    assert shown["provenance"]["unanswered"] == [1, 2, 3, 4]
    assert shown["cost"]["calls"] == CALLS - 1
    assert shown["provenance"]["combined"]["ruled"] == "no part had an answer"
    assert shown["answer"].startswith("> The keeper winds")


async def test_a_persona_thinks_with_its_own_model_and_options(mind: Mind) -> None:
    """Another model within a council is asked by its name, with its persona's options."""
    other = shipped_models()[1]

    def differ(root: Any) -> None:
        babs = root["babs_prototype_obj"]
        babs.persona_model = other
        babs.options = {**babs.options, "temperature": 0.9}

    mission, runner = await submit(mind.uvm, effort="council"), (await mind.uvm.readiness.ready()).runner
    await change(mind.uvm, differ)
    await runner.run(mission)
    shown = mind.uvm.readings.mission(mission)
    divided: list[ChatRequest] = []
    spoken: list[ChatRequest] = []
    for each in mind.bridge.history:
        (divided if kind(each) == "decomposition" else spoken).append(each)
    assert [each.model for each in divided].count(other) == 1
    asked = {(speaker(each), each.model == other, each.options["temperature"] == 0.9) for each in spoken}
    assert asked == {(each, each == "BABS", each == "BABS") for each in MEMBERS}
    assert set(shown["provenance"]["models"]) > {other}


# -- failing


def failing(script: Script, errors: dict[str, tuple[str, Callable[[], BatosError | str]]]) -> Any:
    """A script in which these personas fail within: at their decomposition, at their facets, or at their weave."""

    def respond(request: ChatRequest) -> str | BatosError:
        at, error = errors.get(speaker(request), ("", None))
        if error is not None and not is_outer(request) and kind(request) == at:
            return error()
        return script(request)

    return respond


@pytest.mark.parametrize("at", ["decomposition", "part", "voiced"])
async def test_a_persona_that_fails_leaves_nothing_and_is_named(mind: Mind, at: str) -> None:
    """Wherever it fails within, the council goes on with three: its voice has the reason, the answer a gap."""
    mind.bridge.respond = failing(mind.script, {"ROBIN": (at, lambda: RunnerDied("the runner stopped"))})
    mind.script.woven = GOOD
    shown = await sit(mind)
    assert shown["status"] == "done"
    assert [bool(voice.get("failure")) for voice in shown["voices"]] == [False, True, False, False]
    assert shown["voices"][1]["failure"]["code"] == "runner_died"
    assert shown["voices"][1]["answer"] == ""
    assert shown["provenance"]["unanswered"] == [2]
    assert shown["provenance"]["gate"]["ok"]
    failed = [each.get("path") for each in mind.told("mission.state") if each["state"] == "FAILED"]
    assert failed == ["council/robin"]


@pytest.mark.parametrize("error", [ImageError("gone"), TimedOut("over")], ids=["image", "time"])
async def test_what_no_persona_could_mend_ends_the_council_at_once(mind: Mind, error: BatosError) -> None:
    """One facet of one persona meets it: the mission fails with it, and the weave is never asked for."""
    mind.bridge.respond = failing(mind.script, {"ALFRED": ("part", lambda: error)})
    with pytest.raises(type(error)):
        await sit(mind)
    assert not any(kind(each) == "woven" for each in mind.bridge.history)


async def test_different_reasons_are_counted(mind: Mind) -> None:
    """Three of four failed differently: how many, and why the first did."""
    mind.bridge.respond = failing(
        mind.script,
        {
            "BRICK": ("decomposition", lambda: StreamCut("cut")),
            "BABS": ("voiced", lambda: RunnerDied("died")),
            "ALFRED": ("voiced", lambda: RunnerDied("died")),
        },
    )
    with pytest.raises(MissionFailed, match=r"3 of 4 personas failed; the first: .*cut"):
        await sit(mind)


FAILURES: dict[str, Callable[[], BatosError | str]] = {
    "missing": lambda: ModelMissing("llama"),
    "cut": lambda: StreamCut("cut"),
    "died": lambda: RunnerDied("died"),
}  # no OllamaBusy: a mission that most members end with that waits until the daemon is not busy


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    how=st.dictionaries(
        st.sampled_from(MEMBERS),
        st.tuples(st.sampled_from(["decomposition", "part", "voiced"]), st.sampled_from(sorted(FAILURES))),
        max_size=4,
    ),
    parallel=st.sampled_from([1, 2, 8]),
)
def test_any_parts_may_fail_in_any_way(tmp_path: Path, how: dict[str, tuple[str, str]], parallel: int) -> None:
    """With half of the personas the council answers and says which did not; with fewer nothing is in the image."""
    errors = {persona: (at, FAILURES[name]) for persona, (at, name) in how.items()}
    asyncio.run(_council_with(tmp_path, errors, parallel))


async def _council_with(
    home: Path, errors: dict[str, tuple[str, Callable[[], BatosError | str]]], parallel: int
) -> None:
    open_parts = [number for number, persona in enumerate(MEMBERS, start=1) if persona in errors]
    bridge = ScriptedBridge(failing(Script(woven=GOOD), errors))
    async with scripted_uvm(home, bridge, parallel=parallel) as uvm:
        mission = await submit(uvm, effort="council")
        if len(errors) <= 2:
            shown = await uvm.missions.run(mission)
            assert shown["provenance"]["unanswered"] == open_parts
            assert [number for number, voice in enumerate(shown["voices"], 1) if "failure" in voice] == open_parts
            return
        with pytest.raises(BatosError):
            await uvm.missions.run(mission)
        shown = uvm.readings.mission(mission)
        assert shown["status"] == "failed"
        assert shown["states"][-1]["state"] == "FAILED"
        with uvm.image.snapshot() as root:
            _, _, thought = uvm.image.find(root, mission)
            assert "answer" not in own_slots(thought)
            cycle = begin(root["orchestrator_obj"])
            assert delegate.PART_SLOT not in own_slots(cycle)


# -- order, cost, going on


async def test_one_persona_after_another_on_a_runner_with_one_slot(tmp_path: Path) -> None:
    """The calls of one persona stand together, whoever leads first, so that what they share is read once."""
    bridge = ScriptedBridge(Script())
    async with scripted_uvm(tmp_path / "home", bridge, parallel=1) as uvm:
        await ask(uvm, effort="council")
    speakers = [speaker(each) for each in bridge.history]
    assert speakers == ["BRICK", *(each for each in MEMBERS for _ in range(5)), "BRICK"]


async def test_all_personas_at_once_on_a_runner_with_many_slots(mind: Mind) -> None:
    """All four decompose before any of them is answered."""
    bridge = WaitingBridge(Script())
    bridge.rows = mind.bridge.rows
    mind.uvm.readiness.bridge = bridge
    running = asyncio.create_task(sit(mind))
    await bridge.let(1)
    await bridge.arrived(5)
    assert len(bridge.history) == 1
    for number in range(2, CALLS + 1):
        await bridge.let(number)
    assert (await running)["status"] == "done"


async def test_a_budget_that_cannot_pay_is_refused_before_anything_is_paid(mind: Mind) -> None:
    """The refusal says how many calls it takes; with so many allowed the same council is paid for."""
    with pytest.raises(Refused, match=f"needs {CALLS} calls and the mission may make {CALLS - 1}") as refused:
        await sit(mind, budget={"calls": CALLS - 1})
    assert (refused.value.field, refused.value.exit_code) == ("budget.calls", 4)
    assert str(CALLS) in refused.value.remedy
    assert mind.bridge.history == []
    assert (await sit(mind, budget={"calls": CALLS}))["cost"]["calls"] == CALLS


async def test_a_council_that_votes_needs_no_call_around_its_personas(mind: Mind) -> None:
    """What is asked of all four is all that is needed: nobody decomposes the question or weaves the answers."""
    with pytest.raises(Refused, match=f"needs {CALLS - 2} calls"):
        await sit(mind, budget={"calls": CALLS - 3}, policy={"combine": "vote"})
    shown = await sit(mind, budget={"calls": CALLS - 2}, policy={"combine": "vote"})
    assert shown["cost"]["calls"] <= CALLS - 2
    assert not any(path.startswith("council/decomposing") for path in paths(mind, shown["id"]))


async def test_reasoning_apart_is_counted_into_what_a_council_needs(mind: Mind) -> None:
    """A persona in mode `two_phase` makes two calls of each decision."""

    def apart(root: Any) -> None:
        root["babs_prototype_obj"].options = {**root["babs_prototype_obj"].options, "mode": "two_phase"}

    await change(mind.uvm, apart)
    with pytest.raises(Refused, match=f"needs {CALLS + 5} calls"):
        await sit(mind, budget={"calls": CALLS})


async def test_the_shipped_limits_pay_a_council_with_all_that_may_be_added(mind: Mind) -> None:
    """Revision, protocol and a repair of every fourth call are within the calls, a full window a call in the tokens."""
    configured = mind.uvm.settings
    assert configured.mission_calls >= CALLS + 2 + CALLS // 4
    assert configured.mission_tokens >= (CALLS + 2) * 4096


@pytest.mark.parametrize("at", [2, 4, 12, CALLS])
async def test_a_council_that_failed_is_gone_on_with(mind: Mind, at: int) -> None:
    """What it paid for, at either scale, is served to the one that names it, whose budget need pay only the rest."""
    bridge = FailingBridge(mind.script, at, lambda: OllamaUnreachable("gone"))
    bridge.rows = mind.bridge.rows
    mind.uvm.readiness.bridge = bridge
    (await mind.uvm.readiness.ready()).runner.bridge = bridge
    mission = await submit(mind.uvm, effort="council")
    with pytest.raises(OllamaUnreachable):
        await mind.uvm.missions.run(mission)
    bridge.at = 10_000
    left = CALLS - at + 1
    again = await sit(mind, ancestor=mission, budget={"calls": left})
    assert (again["cost"]["calls"], again["cost"]["from_journal"]) == (left, at - 1)


async def test_a_council_that_is_paused_goes_on_where_it_stood(mind: Mind) -> None:
    """Calls under way at both scales are paid for, no other is made, nothing failed; resumed, only the rest is paid."""
    bridge = WaitingBridge(Script())
    bridge.rows = mind.bridge.rows
    mind.uvm.readiness.bridge = bridge
    mission = await submit(mind.uvm, effort="council")
    await mind.uvm.missions.begin(mission)
    await bridge.let(1)
    await bridge.arrived(5)
    await bridge.let(2)
    await bridge.arrived(8)
    pausing = asyncio.create_task(mind.uvm.missions.pause(mission))
    for number in range(3, 9):
        await bridge.let(number)
    await pausing
    assert (await mind.uvm.missions.wait_for_end(mission))["status"] == "paused"
    assert len(bridge.history) == len(bridge.waiting) == 8
    assert "FAILED" not in [each["state"] for each in mind.told("mission.state") if "path" not in each]
    await mind.uvm.missions.resume(mission)
    for number in range(9, CALLS + 1):
        await bridge.let(number)
    shown = await mind.uvm.missions.wait_for_end(mission)
    assert (shown["status"], shown["cost"]["calls"], shown["cost"]["from_journal"]) == ("done", CALLS, 8)
