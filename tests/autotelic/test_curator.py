"""The curator: what was recalled is not cold, a look changes nothing, and a run has a most of regions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.memory.test_document_store import incoming
from tests.memory.test_fold_store import logs

from batos.autotelic.curator import CurationWish, Curator
from batos.events import Events
from batos.image.ids import utc_now
from batos.memory.document_store import DocumentStore
from batos.memory.fold_store import FoldStore
from batos.protocol.errors import NotFound
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM, Seams

DAY = timedelta(days=1)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


class Days:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = BEGIN

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def days() -> Days:
    """A clock."""
    return Days()


@pytest.fixture
async def uvm(tmp_path: Path, days: Days) -> AsyncIterator[UVM]:
    """A mind that remembers twenty texts since the first of January."""
    async with scripted_uvm(tmp_path, ScriptedBridge(), seams=Seams(clock=days), user="ann") as opened:
        given = [incoming(text, f"/notes/{n}") for n, text in enumerate(logs(20))]
        await opened.document_store.remember(given)
        yield opened


def wish(most: int = 9, cold_days: float = 30, dry_run: bool = False) -> CurationWish:
    """A run over ann's memories."""
    return CurationWish("ann", cold_days, most, dry_run)


async def test_what_nobody_recalled_for_long_is_folded(uvm: UVM, days: Days) -> None:
    """In regions, each told; fresh memories are not; a second run finds nothing."""
    heard: list[str] = []
    uvm.events.subscribe(lambda event, keys: heard.append(event))
    days.now = BEGIN + 29 * DAY
    assert (await uvm.curator.curate(wish()))["regions"] == []
    days.now = BEGIN + 31 * DAY
    looked = await uvm.curator.curate(wish(dry_run=True))
    assert ([len(each["documents"]) for each in looked["regions"]], looked["more"]) == ([16, 4], False)
    assert not heard
    assert uvm.readings.memories(99)["documents"] == 20
    told: list[str] = []
    done = await uvm.curator.curate(wish(), lambda folded: told.append(folded["summary"]))
    assert told == [each["summary"] for each in done["regions"]]
    assert heard.count("memory.folded") == 2
    assert uvm.readings.memories(99)["documents"] == 2
    assert (await uvm.curator.curate(wish()))["regions"] == []
    back = await uvm.curator.undo(told[0], "ann")
    assert len(back["documents"]) == 16
    assert uvm.readings.memories(99)["documents"] == 17
    with pytest.raises(NotFound):
        await uvm.curator.undo(told[1], "bob")


async def test_what_was_recalled_is_not_cold(uvm: UVM, days: Days) -> None:
    """By a mission that was shown it, and by a person who found it."""
    days.now = BEGIN + 20 * DAY
    listed = {each["source"]: each["document"] for each in uvm.readings.memories(99)["memories"]}
    brief = {"text": "Who is keeper7 at Holm, and what of log7?", "user": "ann", "effort": "reflex"}
    done = await uvm.missions.ask(brief)
    assert listed["/notes/7"] in {each.get("memory") for each in done["provenance"]["recalled"]}
    await uvm.mission_memory.write()
    uvm.curator.note_recalled([listed["/notes/3"]])
    days.now = BEGIN + 40 * DAY
    folded = (await uvm.curator.curate(wish()))["regions"]
    sources = {each["source"] for region in folded for each in region["documents"]}
    assert not sources & {"/notes/7", "/notes/3"}
    assert "/notes/4" in sources


async def test_a_run_has_a_most_of_regions(uvm: UVM, days: Days) -> None:
    """The rest is told, and the next run goes on there."""
    days.now = BEGIN + 31 * DAY
    first = await uvm.curator.curate(wish(1))
    assert ([len(each["documents"]) for each in first["regions"]], first["more"]) == ([16], True)
    second = await uvm.curator.curate(wish(1))
    assert ([len(each["documents"]) for each in second["regions"]], second["more"]) == ([4], False)


async def test_recalls_that_were_noted_are_written_at_the_end(tmp_path: Path) -> None:
    """A server that stops loses none of them."""
    async with scripted_uvm(tmp_path, ScriptedBridge(), memory=False, user="ann") as uvm:
        (line,) = (await uvm.document_store.remember([incoming("The lamp burns oil.")]))["remembered"]
        uvm.curator.note_recalled([line["document"]])
    async with scripted_uvm(tmp_path, ScriptedBridge(), memory=False, user="ann") as uvm:
        with uvm.image.snapshot() as root:
            assert [times for times, _ in root["memories"]["recalls"].values()] == [1]
        store = DocumentStore(uvm.image, utc_now)
        folds = FoldStore(uvm.image, store, uvm.readings.recollection.search, utc_now)
        curator = Curator(uvm.image, folds, utc_now, Events(log=False))
        await curator.write_recalls()
        with uvm.image.snapshot() as root:
            assert [times for times, _ in root["memories"]["recalls"].values()] == [1]
