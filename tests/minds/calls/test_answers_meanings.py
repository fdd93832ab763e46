"""Meanings: a sentence whose words no document has is compared by vectors, and by nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.minds.scripted import GOOD, LAMP, QUESTION, Script, stepping

from batos.gate.attribution import attribute
from batos.gate.ground import Ground
from batos.memory.evidence import Evidence, Passage
from batos.minds.calls.answers import MOST_EVIDENCE, find_meanings
from batos.testing import ScriptedBridge, scripted_uvm

OTHER_WORDS = "Somebody turns a mechanism again and again."


def alike(text: str) -> list[float]:
    """Vectors in which what says that somebody winds something is one."""
    return [1.0, 0.0] if "winds" in text or "turns a mechanism" in text else [0.0, 1.0]


async def test_a_sentence_in_other_words_is_carried_by_its_meaning(tmp_path: Path) -> None:
    """The gate finds no fault, so that no revision is paid for; the request is told as one embedding."""
    for vectors, calls in ((alike, 5), (None, 6)):
        bridge = ScriptedBridge(Script(woven=OTHER_WORDS, revised=OTHER_WORDS), vectors=vectors)
        async with scripted_uvm(tmp_path / str(calls), bridge) as uvm:
            brief = {"text": QUESTION, "persona": "BRICK", "effort": "cycle"}
            shown = await uvm.missions.ask(brief, [LAMP])
            cited = [each["quote"] for each in shown["provenance"]["citations"]]
            assert (shown["cost"]["calls"], shown["provenance"]["gate"]["ok"]) == (calls, calls == 5)
            assert [quote.startswith("The keeper winds") for quote in cited] == ([True] if calls == 5 else [])
            assert shown["cost"]["embeds"] == (1 if calls == 5 else 0)


async def test_what_words_carry_is_not_embedded(tmp_path: Path) -> None:
    """Only the sentences that words leave alone cost anything, and the evidence is bounded."""
    asked: list[Sequence[str]] = []

    class Recorder:
        """Notes what it is asked for."""

        digest = ""

        async def vectors(self, texts: Sequence[str], path: str) -> Sequence[Sequence[float]] | None:
            asked.append(texts)
            return [[1.0] for _ in texts]

    long = " ".join(f"Gull number {number} cries over the mechanism." for number in range(60))
    ground = Ground(QUESTION, Evidence((Passage(1, "a.txt", "0" * 64, 0, long),)))
    async with scripted_uvm(tmp_path, ScriptedBridge(Script())) as uvm:
        mission = await uvm.missions.submit({"text": QUESTION})
        await uvm.image.move(mission, "running")
        async with stepping(uvm, mission) as step:
            context = replace(step.context, io=replace(step.context.io, meanings=Recorder()))
            for answer in ("Gull number 7 cries over the mechanism.", "Hello!", GOOD):
                found = attribute(answer, QUESTION, ground.index)
                vectors = await find_meanings(context, found, ground)
                assert (vectors is not None) == (answer == GOOD)
            assert [len(texts) for texts in asked] == [1 + MOST_EVIDENCE]
            assert vectors is not None
            assert len(vectors.evidence) == 60
            assert sum(bool(each) for each in vectors.evidence) == MOST_EVIDENCE
