"""Measuring: each answer has its parts when it is remembered, and a question says what it made of the answer before."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.history.test_as_of_past_questions import Door

from batos.image import roots
from batos.protocol.brief import as_file
from batos.records import outcomes
from batos.testing import ScriptedBridge, plain_reply, scripted_uvm
from batos.uvm import UVM

ASKED = "Who winds the clockwork of the lamp?"
LAMP = as_file("lamp.txt", b"Maro winds the clockwork of the lamp. Gulls cry.")


def winding() -> ScriptedBridge:
    """A bridge that answers by the file."""
    return ScriptedBridge(
        lambda request: plain_reply(request) if request.schema else "Maro winds the clockwork of the lamp."
    )


async def ask(uvm: UVM, text: str, **brief: Any) -> dict[str, Any]:
    """The report of a mission about the lamp that is done and remembered."""
    told = await uvm.missions.ask({"text": text, "user": "tester", "effort": "reflex", **brief}, [LAMP])
    await uvm.mission_memory.write()
    return dict(told)


def acts(uvm: UVM, mission: str) -> list[str]:
    """What people did with an answer."""
    with uvm.image.snapshot() as root:
        return [each["act"] for each in outcomes.list_outcomes(root, mission)]


async def test_an_answer_is_measured_when_it_is_remembered(tmp_path: Path) -> None:
    """A carried answer is relevant; a mission that nothing is to be remembered of leaves no measure."""
    async with scripted_uvm(tmp_path, winding()) as uvm:
        first = await ask(uvm, ASKED)
        await ask(uvm, ASKED, policy={"memory": "none"})
        with uvm.image.snapshot() as root:
            assert list(root[roots.ENTROPY]) == [first["id"]]
            hrel, hcog, hsol, _ = root[roots.ENTROPY][first["id"]]
        assert hrel == pytest.approx(1.0)
        assert (hcog, hsol) == (None, None)


async def test_an_equal_question_has_the_consistency_of_its_answers(tmp_path: Path) -> None:
    """Two answers that differ are worth less than two that say the same."""
    said = iter(["Maro winds the clockwork of the lamp.", "Gulls cry.", "Gulls cry."])
    bridge = ScriptedBridge(lambda request: plain_reply(request) if request.schema else next(said))
    async with scripted_uvm(tmp_path, bridge) as uvm:
        missions = [await ask(uvm, ASKED) for _ in range(3)]
        with uvm.image.snapshot() as root:
            values = [root[roots.ENTROPY][each["id"]][0] or 0.0 for each in missions]
        assert values[1] < values[0]


@pytest.mark.parametrize(
    ("second", "act"),
    [
        ("No, I meant the lamp of the pier.", "corrected"),
        ("Das stimmt nicht.", "corrected"),
        (ASKED, "asked_again"),
        ("And who pays for the oil?", "went_on"),
    ],
)
async def test_a_question_says_what_came_of_the_answer_before(tmp_path: Path, second: str, act: str) -> None:
    """In one conversation, soon after it; another person's question says nothing of it."""
    async with scripted_uvm(tmp_path, winding()) as uvm:
        first = await ask(uvm, ASKED, conversation="new")
        talk = first["brief"]["conversation"]
        await ask(uvm, second, user="bob")
        assert acts(uvm, first["id"]) == []
        await ask(uvm, second, conversation=talk)
        assert acts(uvm, first["id"]) == [act]


async def test_an_answer_that_is_edited_or_retracted_was_not_good(tmp_path: Path) -> None:
    """By whoever corrects what is remembered of it."""
    async with scripted_uvm(tmp_path, winding()) as uvm:
        door, first = Door(uvm), await ask(uvm, ASKED)
        (answer,) = [each for each in uvm.readings.memories(9)["memories"] if each["kind"] == "mission"]
        await door("memories_edit", document=answer["document"], text="Ida winds the clockwork.", user="tester")
        assert acts(uvm, first["id"]) == ["edited"]
        second = await ask(uvm, "Who cries over the harbour?")
        (answer,) = [each for each in uvm.readings.memories(9)["memories"] if each["mission"] == second["id"]]
        await door("memories_retract", documents=[answer["document"]], user="tester")
        assert acts(uvm, second["id"]) == ["retracted"]


async def test_a_measure_and_its_outcomes_are_small(tmp_path: Path) -> None:
    """At most 600 bytes a mission in all."""
    async with scripted_uvm(tmp_path / "home", winding(), memory=False) as uvm:
        for number in range(8):
            await ask(uvm, f"{ASKED} {number}", conversation="new")
        size = await asyncio.to_thread(_bytes_of, uvm)
        assert size <= 8 * 600


def _bytes_of(uvm: UVM) -> int:
    with uvm.image.snapshot() as root:
        connection = roots.connection_of(root)
        return sum(len(connection._storage.load(root[key]._p_oid)[0]) for key in (roots.ENTROPY, roots.OUTCOMES))
