"""The verb `curate` through the dispatcher: whose memories, what is only looked at, and what is undone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.memory.test_document_store import incoming
from tests.memory.test_fold_store import logs
from tests.server.dispatch.test_memory_changes import GUEST, ask

from batos.protocol.errors import BriefError, NotFound, ProtocolError
from batos.server.dispatch.dispatcher import Dispatcher
from batos.server.dispatch.uploads import Uploads
from batos.testing import ScriptedBridge, scripted_uvm


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Dispatcher]:
    """A dispatcher over a mind that remembers what ann and a guest noted."""
    async with scripted_uvm(tmp_path, ScriptedBridge(), user="ann") as uvm:
        for user in ("ann", "key laptop"):
            given = [incoming(text, f"/notes/{n}", user) for n, text in enumerate(logs(3))]
            await uvm.document_store.remember(given)
        yield Dispatcher(uvm, Uploads(tmp_path / "uploads", 2**20))


def owners(found: dict[str, Any]) -> set[str]:
    """The users of all documents of regions."""
    return {each["user"] for region in found["regions"] for each in region["documents"]}


async def test_each_curates_only_what_is_their_own(door: Dispatcher) -> None:
    """A guest neither folds nor brings back what is another's."""
    assert (await ask(door, "curate"))["regions"] == []  # nothing is cold yet
    looked = await ask(door, "curate", dry_run=True, cold_days=0)
    assert (owners(looked), looked["dry_run"], looked["regions"][0]["summary"]) == ({"ann"}, True, "")
    own = await ask(door, "curate", cold_days=0)
    assert owners(await ask(door, "curate", GUEST, cold_days=0)) == {"key laptop"}
    with pytest.raises(NotFound):
        await ask(door, "curate", GUEST, undo=own["regions"][0]["summary"])
    back = await ask(door, "curate", undo=own["regions"][0]["summary"])
    assert len(back["documents"]) == 3


async def test_a_summary_tells_what_it_stands_for(door: Dispatcher) -> None:
    """And each of these its summary, with its own words; `recall` finds them where it is asked to."""
    (line,) = (await ask(door, "curate", cold_days=0))["regions"]
    whole = await ask(door, "memories", document=line["summary"])
    assert (whole["kind"], whole["trust"], len(whole["stands_for"])) == ("summary", "external", 3)
    part = await ask(door, "memories", document="/notes/1")
    assert (part["standing"], part["summarised_by"]) == ("summarised", line["summary"])
    assert part["parts"][0]["text"] == logs(3)[1]
    found = (await ask(door, "recall", query="log1 keeper1"))["recalled"]
    assert [each["kind"] for each in found] == ["summary"]
    found = (await ask(door, "recall", query="log1 keeper1", summarised=True))["recalled"]
    assert [(each["kind"], each["summarised_by"]) for each in found][:1] == [("document", line["summary"])]
    found = (await ask(door, "recall", query="log1 keeper1", history=True))["recalled"]
    assert {"document", "summary"} == {each["kind"] for each in found}
    assert (await ask(door, "recall", query="log1", summarised=True, type="summary"))["of"] == 1


async def test_what_makes_no_sense_is_refused(door: Dispatcher) -> None:
    """Undoing to look, days before the beginning, a memory that is no summary."""
    with pytest.raises(BriefError):
        await ask(door, "curate", undo="/notes/1", dry_run=True)
    with pytest.raises(ProtocolError):
        await ask(door, "curate", cold_days=-1)
    with pytest.raises(NotFound, match="no summary"):
        await ask(door, "curate", undo="/notes/1")
