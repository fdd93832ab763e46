"""The verbs that correct what is remembered, through the dispatcher: what they answer, and what a guest may not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.memory.test_document_store import incoming
from tests.server.dispatch.test_memory_changes import GUEST, ask

from batos.protocol.errors import BriefError, NotFound, Refused
from batos.server.dispatch.dispatcher import Dispatcher
from batos.server.dispatch.uploads import Uploads
from batos.testing import ScriptedBridge, scripted_uvm

LAMP = "Maro winds the lamp."


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Dispatcher]:
    """A dispatcher over a mind that remembers a file of ann's and one of a guest's."""
    async with scripted_uvm(tmp_path, ScriptedBridge(), user="ann") as uvm:
        await uvm.document_store.remember([incoming(LAMP, "/lamp"), incoming(LAMP, "/mine", "key laptop")])
        yield Dispatcher(uvm, Uploads(tmp_path / "uploads", 2**20))


async def recalled(door: Dispatcher) -> list[str]:
    """The texts that ann's recall finds."""
    return [each["text"] for each in (await ask(door, "recall", query="lamp"))["recalled"]]


async def test_a_memory_is_edited_retracted_restored_and_pinned(door: Dispatcher) -> None:
    """By its source; each answer has the lines of the memories."""
    told = await ask(door, "memories_edit", document="/lamp", text="Anna winds the lamp.")
    assert await recalled(door) == ["Anna winds the lamp."]
    assert (await ask(door, "pin", documents=["/lamp"]))["pinned"]
    (pinned,) = (await ask(door, "memories", pinned=True))["memories"]
    assert pinned["document"] == told["edited"]["document"]
    gone = await ask(door, "memories_retract", source="/lamp", cascade=True)
    assert (len(gone["retracted"]), gone["pins"]) == (1, 1)
    assert await recalled(door) == []
    assert len((await ask(door, "memories_restore", documents=["/lamp"]))["restored"]) == 1
    assert len((await ask(door, "unpin", documents=["/lamp"]))["memories"]) == 1
    assert (await ask(door, "memories", pinned=True))["memories"] == []


async def test_a_retraction_names_documents_or_a_source(door: Dispatcher) -> None:
    """Neither and both are refused."""
    with pytest.raises(BriefError):
        await ask(door, "memories_retract")
    with pytest.raises(BriefError):
        await ask(door, "memories_retract", documents=["/lamp"], source="/lamp")
    assert await recalled(door) == [LAMP]


async def test_a_guest_corrects_their_own_and_causes_nothing_else(door: Dispatcher) -> None:
    """No cascade, and nobody else's memories."""
    with pytest.raises(Refused):
        await ask(door, "memories_retract", GUEST, source="/mine", cascade=True)
    for verb, args in (
        ("memories_edit", {"document": "/lamp", "text": "Mine."}),
        ("memories_retract", {"documents": ["/lamp"]}),
        ("memories_restore", {"documents": ["/lamp"]}),
        ("pin", {"documents": ["/lamp"]}),
        ("unpin", {"documents": ["/lamp"]}),
    ):
        with pytest.raises(NotFound):
            await ask(door, verb, GUEST, **args)
    assert len((await ask(door, "memories_retract", GUEST, documents=["/mine"]))["retracted"]) == 1
    assert len((await ask(door, "memories_restore", GUEST, documents=["/mine"]))["restored"]) == 1
    assert await recalled(door) == [LAMP]


async def test_what_a_guest_does_not_own_is_not_there(door: Dispatcher) -> None:
    """By its id, the beginning of it, or its source: each verb tells a guest the same as of what never was."""
    (lamp,) = (await ask(door, "memories"))["memories"]
    name = lamp["document"]
    for theirs, nobodys in ((name, f"d-{'7' * 26}"), (name[:-2], f"d-{'7' * 24}"), ("/lamp", "/none")):
        for verb, field, more in (
            ("memories", "document", {}),
            ("memories_edit", "document", {"text": "Mine."}),
            ("memories_retract", "documents", {}),
            ("memories_retract", "source", {}),
            ("memories_restore", "documents", {}),
            ("pin", "documents", {}),
            ("unpin", "documents", {}),
            ("forget", "documents", {}),
            ("curate", "undo", {}),
        ):
            told = []
            for each in (theirs, nobodys):
                meant = [each] if field == "documents" else each
                with pytest.raises(NotFound) as missing:
                    await ask(door, verb, GUEST, user="ann", **{field: meant}, **more)
                told.append(missing.value.message.replace(each, "?"))
            assert told[0] == told[1], verb
        found = await ask(door, "recall", GUEST, query="lamp", source=theirs, history=True, user="ann")
        assert found["recalled"] == []
    with pytest.raises(NotFound):
        await ask(door, "remember", GUEST, text="Mine.", key="lamp", supersedes=name, user="ann")
    assert await recalled(door) == [LAMP]
