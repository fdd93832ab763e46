"""A question's vector is an entry of the journal, written before it is used and read instead of being paid again."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as some
from tests.inference.counting_bridge import desk
from tests.minds.scripted import QUESTION, Script, stepping

from batos.cli.render.mission_record import prompts_text
from batos.image.ids import utc_now
from batos.inference.cost import cost_of
from batos.inference.embedder import HEAD, Embedder
from batos.protocol.errors import OllamaTimeout
from batos.routing.question_vectors import PATH, JournaledVectors
from batos.testing import ScriptedBridge, scripted_uvm


def _embedder(vector: list[float], digest: str = "d" * 64) -> Embedder:
    return Embedder(ScriptedBridge(Script(), vectors=lambda text: vector), "minilm", digest)


@given(some.lists(some.floats(width=32, allow_nan=False, allow_infinity=False), max_size=20), some.text())
async def test_a_vector_comes_back_as_it_was_paid_for(vector: list[float], text: str) -> None:
    """By text and the embedder's digest; another mission, another text or another digest has none."""
    async with desk() as at:
        mine = JournaledVectors(at.journal, ["m-1"], utc_now)
        assert mine.find(_embedder(vector), text) is None
        assert await mine.pay(_embedder(vector), text, 1.0) == vector
        at.open()
        later = JournaledVectors(at.journal, ["m-2", "m-1"], utc_now)
        assert later.find(_embedder([9.0]), text) == vector
        assert later.find(_embedder(vector, "e" * 64), text) is None
        assert later.find(_embedder(vector), text[:HEAD] + "?") is None
        assert JournaledVectors(at.journal, ["m-2"], utc_now).find(_embedder(vector), text) is None
        assert cost_of(at.records()).as_dict() == cost_of([]).as_dict() | {"embeds": 1}


async def test_a_question_is_embedded_once_whatever_becomes_of_the_embedder(tmp_path: Path) -> None:
    """A mission that dies between the vector and its route finds the vector, also while the embedder is away."""
    bridge = ScriptedBridge(Script(), vectors=lambda text: [1.0, len(text) / 100])
    async with scripted_uvm(tmp_path, bridge) as uvm:
        mission = await uvm.missions.submit({"text": QUESTION})
        await uvm.image.move(mission, "running")
        async with stepping(uvm, mission):
            routed = uvm.journal.sound([mission])
        uvm.journal._notes.clear()
        bridge.vectors = lambda text: OllamaTimeout("reply", 10)
        assert await uvm.missions.recover() == [mission]
        shown = await uvm.missions.run(mission)
        assert shown["cost"]["embeds"] == 1
        assert "by words alone" not in shown["route"]["reason"]
        calls = uvm.readings.prompts(mission)
        assert [record.path for record in routed] == [calls[0]["path"]] == [PATH]
        assert (calls[0]["input"], calls[0]["messages"]) == (QUESTION, [])
        assert f"--- embedded\n{QUESTION}" in prompts_text(calls)
