"""Two voices: the question for both, a call each and one that joins them; who is asked for speaks alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.minds.conftest import Mind
from tests.minds.duets import OIL, WINDING, Voices, is_join, paths, speak
from tests.minds.scripted import QUESTION, ask, stepping, submit

from batos.minds.parts import delegate

CYCLE = ["IDLE", "DELEGATING", "SYNTHESIZING", "COMPLETE", "IDLE"]


async def test_a_cycle_of_two_is_a_call_each_and_one_that_joins_them(duet: tuple[Mind, Voices]) -> None:
    """Three calls; nothing is decomposed, and the question itself is put to both, the leader first."""
    mind, _ = duet
    shown = await speak(mind)
    first, second = shown["route"]["personas"]
    assert shown["status"] == "done"
    assert shown["cost"]["calls"] == 3
    assert [each["state"] for each in shown["states"]] == CYCLE
    assert sorted(paths(mind, shown["id"])) == sorted(
        ["duet/synthesizing#0", *(f"duet/delegating/{name.lower()}#0" for name in (first, second))]
    )
    assert [voice["persona"] for voice in shown["voices"]] == [first, second]
    assert {voice["query"] for voice in shown["voices"]} == {QUESTION}
    assert shown["answer"] == f"{WINDING} {OIL}"
    assert shown["provenance"]["combined"] == {"mode": "weave", "decomposed": False}
    assert {each["quote"] for each in shown["provenance"]["citations"]}


async def test_each_voice_is_its_own_and_the_join_names_both(duet: tuple[Mind, Voices]) -> None:
    """A voice's prompt says nothing of the other; the prompt of the call that joins them names both."""
    mind, _ = duet
    shown = await speak(mind)
    first, second = shown["route"]["personas"]
    for request in mind.bridge.history:
        asked = request.messages[-1]["content"]
        if is_join(request):
            assert asked.startswith(f"You are {first}")
            assert f"Beside you {second} answers" in asked
        else:
            assert not (f"You are {first}" in asked and second in asked)


async def test_both_are_told_everywhere(duet: tuple[Mind, Voices]) -> None:
    """In the route with the reason, in the events, and in what each call changed."""
    mind, _ = duet
    shown = await speak(mind)
    first, second = shown["route"]["personas"]
    assert f"{second} is as near" in shown["route"]["reason"]
    assert mind.told("mission.routed")[-1]["personas"] == [first, second]
    assert [(each["persona"], each["of"]) for each in mind.told("mission.partial")] == [(first, 2), (second, 2)]
    assert [each["path"] for each in mind.told("mission.partial")] == [
        f"duet/delegating/{name.lower()}#0" for name in (first, second)
    ]
    assert mind.told("mission.done")[-1]["personas"] == [first, second]
    assert shown["provenance"]["personas"] == [first, second]
    changes = shown["provenance"]["changes"]
    assert [each["did"] for each in changes] == ["voice", "voice", "weaving"]
    assert all(each["changed"] for each in changes)


async def test_a_reflex_stays_one_call_of_one_voice(duet: tuple[Mind, Voices]) -> None:
    """The first persona speaks alone, under its own path."""
    mind, _ = duet
    shown = await speak(mind, effort="reflex")
    (first,) = shown["route"]["personas"]
    assert shown["cost"]["calls"] == 1
    assert paths(mind, shown["id"]) == [f"{first.lower()}/reflex#0"]
    (request,) = mind.bridge.history
    assert "and a finder of facts" not in request.messages[-1]["content"]
    assert shown["voices"] == []
    assert shown["provenance"]["personas"] == [first]


async def test_a_small_models_line_names_both(duet: tuple[Mind, Voices]) -> None:
    """In lean form the one line has the manner of both in the call that joins; each voice alone has its own."""
    mind, _ = duet
    mind.bridge.rows = {name: replace(row, parameter_size="135M") for name, row in mind.bridge.rows.items()}
    await mind.uvm.readiness.genesis()
    shown = await speak(mind)
    first, second = shown["route"]["personas"]
    lines = [request.messages[0]["content"] for request in mind.bridge.history]
    assert len(lines) == 3
    (joining,) = (request.messages[0]["content"] for request in mind.bridge.history if is_join(request))
    assert joining.startswith("Be warm and kind, and a finder of facts.")
    assert [" and a finder" in line for line in lines] == [line is joining for line in lines]
    assert not any(name in joining for name in (first, second))


async def test_a_persona_that_was_asked_for_speaks_alone(duet: tuple[Mind, Voices]) -> None:
    """Also within the margin; and a council has all four."""
    mind, _ = duet
    assert (await speak(mind, persona="BRICK"))["route"]["personas"] == ["BRICK"]
    assert len((await speak(mind, effort="council"))["route"]["personas"]) == 4


async def test_without_a_margin_there_is_one_voice(mind: Mind) -> None:
    """The shipped margin leaves a clear question to one persona."""
    shown = await ask(mind.uvm, "How do I fix a TypeError in my Python function?", persona=None)
    assert shown["route"]["personas"] == ["BRICK"]
    assert shown["cost"]["calls"] == 5


@pytest.mark.parametrize(
    ("brief", "calls"),
    [
        ({}, 3),
        ({"effort": "reflex"}, 1),
        ({"persona": "BRICK"}, 5),
        ({"effort": "council"}, 22),
        ({"policy": {"combine": "select"}}, 4),
    ],
)
async def test_the_least_number_of_calls_is_known_before(
    duet: tuple[Mind, Voices], brief: dict[str, Any], calls: int
) -> None:
    """The arithmetic of a mission's calls is right for each of its forms."""
    mind, _ = duet
    mission = await submit(mind.uvm, **{"persona": None, **brief})
    async with stepping(mind.uvm, mission) as opened:
        assert delegate.council_calls(opened.context) == calls
