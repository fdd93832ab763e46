"""Summaries by a model: what the memories carry is kept, what nobody said is not, and else a rule writes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.memory.test_document_store import incoming

from batos.autotelic.curator import CurationWish, ModelSummaries, carried_sentences
from batos.autotelic.model_missions import PATIENCE
from batos.memory.fold_store import FoldStore, ReadRegion, WrittenSummary
from batos.protocol.brief import File
from batos.protocol.errors import OllamaUnreachable
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM

LATER = datetime(2100, 1, 1, tzinfo=UTC)
NOTES = (
    "The lamp of Holm Light burns colza oil. Its keeper Maro winds the clockwork every four hours.",
    "The pier of Skarn was built of granite in 1848. Storms of that winter took the crane away.",
    "Gulls nest on the north cliff since the cats left. Nobody counts them.",
)
ANSWER = (
    "The lamp of Holm Light burns colza oil. The pier of Skarn was built of granite in 1848."
    " The harbour master sold the island to a bank in Oslo."
)


@pytest.fixture
async def uvm(tmp_path: Path) -> AsyncIterator[UVM]:
    """A mind that remembers three notes."""
    async with scripted_uvm(tmp_path, ScriptedBridge.saying(ANSWER), user="ann") as opened:
        await opened.document_store.remember([incoming(text, f"/notes/{n}") for n, text in enumerate(NOTES)])
        yield opened


def read(uvm: UVM) -> tuple[ReadRegion, WrittenSummary]:
    """The only region, with the summary of the rule."""
    folds = FoldStore(uvm.image, uvm.document_store, uvm.readings.recollection.search, uvm.clock)
    ((region, by_rule),) = folds.survey(None, LATER)
    return region, by_rule


async def test_what_the_memories_carry_is_kept(uvm: UVM) -> None:
    """By the memory that carries it; what nobody wrote is left out, and a memory without a sentence has the rule's."""
    region, _ = read(uvm)
    carried = carried_sentences(region, ANSWER)
    assert [carried.get(each.name, []) for each in region.texts] == [[ANSWER[:39]], [ANSWER[40:87]], []]
    done = await uvm.curator.curate(CurationWish("ann", 0, 9))
    (line,) = done["regions"]
    assert line["written_by"] == "model"
    assert "colza oil" in line["text"]
    assert "granite in 1848" in line["text"]
    assert "Gulls nest" in line["text"]
    assert "Oslo" not in line["text"]


async def test_the_mission_leaves_no_memory(uvm: UVM) -> None:
    """Nothing is remembered of it; the summary names it, and is trusted as the notes are."""
    done = await uvm.curator.curate(CurationWish("ann", 0, 9))
    await uvm.mission_memory.write()
    (listed,) = uvm.readings.memories(9)["memories"]
    assert (listed["document"], listed["trust"]) == (done["regions"][0]["summary"], "external")
    (mission,) = uvm.readings.newest()
    with uvm.image.snapshot() as root:
        assert root["documents"][listed["document"]].written_in == mission["id"]


async def test_a_region_is_paid_for_once(uvm: UVM) -> None:
    """What was unfolded, or killed before it was folded, finds the answer of the first mission."""
    assert isinstance(uvm.bridge, ScriptedBridge)
    first = await uvm.curator.curate(CurationWish("ann", 0, 9))
    await uvm.curator.undo(first["regions"][0]["summary"], "ann")
    calls = len(uvm.bridge.history)
    assert calls > 0
    again = await uvm.curator.curate(CurationWish("ann", 0, 9))
    assert again["regions"][0]["text"] == first["regions"][0]["text"]
    assert len(uvm.bridge.history) == calls


@pytest.mark.parametrize("said", ["The harbour master sold the island to a bank in Oslo.", "Nothing."])
async def test_what_nothing_carries_is_no_summary(uvm: UVM, said: str) -> None:
    """The rule writes it then; so it does if it is asked to."""
    region, by_rule = read(uvm)

    async def ask(_brief: Mapping[str, Any], _files: Sequence[File]) -> Mapping[str, Any]:
        return {"id": "m-1", "answer": said}

    writer = ModelSummaries(ask, uvm.readiness.answers, uvm.readiness.check)
    assert await writer.write(region, by_rule) is None
    done = await uvm.curator.curate(CurationWish("ann", 0, 9, by_rule=True))
    assert done["regions"][0]["written_by"] == "rule"


async def test_a_daemon_that_is_away_is_not_asked_again_and_again(uvm: UVM) -> None:
    """After some failures the run goes on by the rule; the next one asks again."""
    region, by_rule = read(uvm)
    asked: list[Mapping[str, Any]] = []

    async def ask(brief: Mapping[str, Any], _files: Sequence[File]) -> Mapping[str, Any]:
        asked.append(brief)
        raise OllamaUnreachable("it is away")

    async def away() -> bool:
        return False

    async def check() -> None:
        raise OllamaUnreachable("it is away")

    writer = ModelSummaries(ask, uvm.readiness.answers, uvm.readiness.check)
    assert await writer.can_write()
    assert [await writer.write(region, by_rule) for _ in range(5)] == [None] * 5
    assert len(asked) == PATIENCE
    assert {each["policy"]["memory"] for each in asked} == {"none"}
    assert not await ModelSummaries(ask, away, check).can_write()
    assert not await ModelSummaries(ask, uvm.readiness.answers, check).can_write()
