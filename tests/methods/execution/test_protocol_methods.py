"""Key protocols that are methods: the text that one returns takes the answer's place, if the gate agrees."""

from __future__ import annotations

import pytest
from tests.methods.execution.method_mind import MethodMind, methods
from tests.minds.scripted import WINDS, ask

RISKS = "How does the keeper keep the lamp burning, and what could go wrong with it?"
PROTOCOL = "rogues_gallery_protocol_"
THINKING = f"""
async def {PROTOCOL}(self, answer):
    return answer + " " + await self.infer_("Go on: " + answer, system="You write the last sentence.")
"""


def streamed(mind: MethodMind) -> str:
    """What whoever listens has of the answer in the end."""
    text = ""
    for name, keys in mind.events:
        text = "" if name == "mission.retracted" else text + str(keys.get("text", ""))
    return text


async def test_a_protocol_that_is_a_method_changes_the_answer(mind: MethodMind) -> None:
    """What it returns stands and is streamed; its call has the length of an answer, and its place in the cycle."""
    await mind.install(rogues_gallery_protocol_=THINKING)
    shown = await ask(mind.uvm, RISKS)
    assert shown["answer"] == f"{WINDS}. {WINDS}." == streamed(mind)
    assert shown["provenance"]["gate"]["protocol"] == {
        "slot": PROTOCOL,
        "applied": True,
        "share": shown["route"]["protocols"]["BRICK"][PROTOCOL],
        "faults": [],
    }
    assert mind.uvm.readings.prompts(shown["id"])[-1]["path"] == "brick/protocol/rogues_gallery#0"
    assert methods(shown)[-1] == (PROTOCOL, "method")
    assert shown["cost"]["calls"] == 6
    names = [name for name, _ in mind.events]
    assert "mission.citation" in names[max(at for at, name in enumerate(names) if name == "mission.retracted") :]


@pytest.mark.parametrize(
    ("returned", "why"),
    [("None", "is to return a text"), ("answer.nothing", "AttributeError"), ("answer + ' 7,777 times.'", "numbers")],
)
async def test_a_protocol_that_fails_or_invents_leaves_the_answer(mind: MethodMind, returned: str, why: str) -> None:
    """The woven answer stands and is what was streamed last; the mission tells what the protocol did."""
    await mind.install(rogues_gallery_protocol_=f"def {PROTOCOL}(self, answer):\n    return {returned}\n")
    shown = await ask(mind.uvm, RISKS)
    assert shown["answer"] == f"{WINDS}." == streamed(mind)
    told = shown["provenance"]["gate"]["protocol"]
    assert not told["applied"]
    assert why in str(told)


async def test_what_a_protocol_remembers_is_kept_only_if_it_ends_well(mind: MethodMind) -> None:
    """Writes of a protocol that fails are nowhere; those of one that is applied are in the image."""
    source = f"""
    async def {PROTOCOL}(self, answer):
        self.finished = self.finished + [answer]
        self._p_changed = True
        if self.broken:
            raise ValueError("no")
        return answer
    """
    await mind.install(rogues_gallery_protocol_=source)
    await mind.write(finished=[], broken=True)
    await ask(mind.uvm, RISKS)
    assert mind.slots()["finished"] == []
    await mind.write(broken=False)
    await ask(mind.uvm, RISKS)
    assert mind.slots()["finished"] == [f"{WINDS}."]
