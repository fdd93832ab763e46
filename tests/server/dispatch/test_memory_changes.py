"""Remember and forget through the dispatcher: files that were sent, texts, whose they are, and what is refused."""

from __future__ import annotations

import base64
import hashlib
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from batos.protocol.errors import BatosError, BriefError, NotFound, ProtocolError
from batos.server.dispatch.dispatcher import Dispatcher
from batos.server.dispatch.guests import limit_guest
from batos.server.dispatch.uploads import Uploads
from batos.testing import ScriptedBridge, scripted_uvm
from batos.verbs.all_verbs import VERBS

GUEST = "key laptop 0a1b"


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Dispatcher]:
    """A dispatcher over a mind in memory."""
    async with scripted_uvm(tmp_path, ScriptedBridge()) as uvm:
        yield Dispatcher(uvm, Uploads(tmp_path / "uploads", 2**20))


async def ask(door: Dispatcher, verb: str, came_in: str = "token 0a1b", **args: Any) -> dict[str, Any]:
    """One request of a client."""
    return await door.handle(verb, limit_guest(verb, args, came_in), lambda *_: None, lambda *_: None)


async def send(door: Dispatcher, data: bytes, came_in: str = "token 0a1b", **about: Any) -> dict[str, Any]:
    """Send a file, and return how `remember` names it."""
    digest = hashlib.sha256(data).hexdigest()
    await ask(door, "attach", came_in, sha256=digest, data=base64.b64encode(data).decode())
    return {"name": "lamp.md", "media_type": "text/markdown", "sha256": digest, "source": "/lamp.md", **about}


async def test_files_are_remembered_shown_and_forgotten(door: Dispatcher) -> None:
    """By their title; a text of its own too, which is its user's word."""
    file = await send(door, b"# The lamp\n\nIt burns oil.\n")
    (line,) = (await ask(door, "remember", files=[file]))["remembered"]
    assert (line["title"], line["state"], line["source"]) == ("The lamp", "new", "/lamp.md")
    (text,) = (await ask(door, "remember", text="Oil is dear this winter."))["remembered"]
    found = (await ask(door, "recall", query="oil"))["recalled"]
    assert {each["trust"] for each in found} == {"external", "user"}
    listed = await ask(door, "memories")
    assert [each["document"] for each in listed["memories"]] == [text["document"], line["document"]]
    assert (await ask(door, "memories", sha256=[file["sha256"]]))["memories"] == listed["memories"][1:]
    whole = await ask(door, "memories", document="/lamp.md")
    assert [each["text"] for each in whole["parts"]] == ["# The lamp\n\nIt burns oil."]
    told = await ask(door, "forget", documents=["/lamp.md", text["document"]])
    assert len(told["forgotten"]) == 2
    assert (await ask(door, "recall", query="oil")) == {"recalled": [], "of": 0}


async def test_what_cannot_be_remembered_is_refused(door: Dispatcher) -> None:
    """Both or neither, blanks, what was not sent, what is no text; and nothing is stored then."""
    file = await send(door, b"It burns.")
    for args in ({}, {"text": "a b", "files": [file]}, {"text": " \n"}):
        with pytest.raises(BriefError):
            await ask(door, "remember", **args)
    with pytest.raises(BriefError, match="was not sent"):
        await ask(door, "remember", files=[file, {**file, "sha256": "0" * 64}])
    with pytest.raises(BriefError, match="not"):
        await ask(door, "remember", files=[await send(door, b"\xff\xfe\x00")])
    for wrong in ({"text": ""}, {"text": "a", "scope": ""}, {"text": "a", "mood": 1}):
        with pytest.raises(ProtocolError):
            await ask(door, "remember", **wrong)
    assert (await ask(door, "memories"))["documents"] == 0


async def test_a_guest_has_memories_of_its_own(door: Dispatcher) -> None:
    """A guest remembers for nobody else, and neither sees nor forgets what is another's."""
    await ask(door, "remember", text="The oil of the home.")
    await ask(door, "remember", text="The oil of Bob.", owner="bob")
    file = await send(door, b"The oil of the guest.", GUEST)
    (line,) = (await ask(door, "remember", GUEST, files=[file], owner="bob"))["remembered"]
    found = [
        *(await ask(door, "recall", GUEST, query="oil"))["recalled"],
        *(await ask(door, "memories", GUEST))["memories"],
    ]
    assert [each["document"] for each in found] == 2 * [line["document"]]
    assert [each["user"] for each in (await ask(door, "memories", user="bob"))["memories"]] == ["bob"]
    (home,) = (await ask(door, "memories"))["memories"]
    with pytest.raises(NotFound):
        await ask(door, "forget", GUEST, documents=[home["document"]])
    with pytest.raises(NotFound):
        await ask(door, "memories", GUEST, document=home["document"])
    with pytest.raises(NotFound):
        await ask(door, "inspect", GUEST, object=f"documents.{home['document']}")


async def test_a_recall_without_vectors_says_so(door: Dispatcher) -> None:
    """By vectors alone it is refused; a moment without a zone is none."""
    await ask(door, "remember", text="The oil of the home.")
    assert len((await ask(door, "recall", query="oil", since="2020-01-01T00:00:00Z"))["recalled"]) == 1
    with pytest.raises(BriefError, match="by vectors"):
        await ask(door, "recall", query="oil", mode="vectors")
    for wrong in ({"since": "2020-01-01"}, {"until": "soon"}, {"mode": "dream"}, {"type": "dream"}):
        with pytest.raises(ProtocolError):
            await ask(door, "recall", query="oil", **wrong)


async def test_a_fact_that_was_to_give_way_and_is_not_there_is_told(door: Dispatcher) -> None:
    """Also if the older value of the key gives way; said again there is nothing to tell."""
    told = []
    for text, key in (("15 March", "start"), ("18 March", "start"), ("18 March", "start"), ("Ulm", "town")):
        told.append(await ask(door, "remember", text=text, key=key, supersedes="town"))
    told.append(await ask(door, "remember", text="20 March", key="start", supersedes="Town"))
    assert [each.get("not_found", []) for each in told] == [["town"], ["town"], [], ["town"], []]
    assert [len(each["remembered"][0]["superseded"]) for each in told] == [0, 1, 0, 0, 2]


async def test_facts_supersede_by_key_and_by_id(door: Dispatcher) -> None:
    """The older one is told; a fact without a text, and a text without a key that supersedes, are refused."""
    (old,) = (await ask(door, "remember", text="15 March", key="launch_date"))["remembered"]
    (new,) = (await ask(door, "remember", text="18 March", key="start", supersedes=old["document"]))["remembered"]
    assert new["superseded"] == [old["document"]]
    await ask(door, "remember", text="We leave on 17 March.", key="leave", depends_on=["start"])
    (newer,) = (await ask(door, "remember", text="20 March", key="start"))["remembered"]
    assert (newer["superseded"], len(newer["flagged"])) == ([new["document"]], 1)
    found = (await ask(door, "recall", query="march", history=True))["recalled"]
    assert sorted(each["standing"] for each in found) == ["current", "current", "superseded", "superseded"]
    (strict,) = (await ask(door, "recall", query="march", strict=True))["recalled"]
    assert strict["text"] == "20 March"
    (plain,) = (await ask(door, "remember", text="The lamp burns."))["remembered"]
    refused: list[dict[str, Any]] = [
        {"text": "a", "supersedes": "b"}, {"text": "a", "depends_on": ["b"]}, {"key": "k"},
        {"text": "a", "key": "k", "supersedes": plain["document"]},
    ]  # fmt: skip
    for args in refused:
        with pytest.raises(BriefError):
            await ask(door, "remember", **args)
    with pytest.raises(BriefError, match="history"):
        await ask(door, "recall", query="march", strict=True, history=True)


#: Values that no field of a verb of memory is meant for.
STRANGE: list[Any] = [
    None, True, -1, 2**70, 1.5, float("nan"), "", "\ud800", "\0", "\u202e", "a" * 30_000, "9" * 5_000, "*", "../..",
    [], [[]], [None], ["d-"] * 1_000, ["d-"] * 2_000, ["\ud800"], ["\0"], {}, {"a": {"b": []}}, "2026-13-45T00:00:00Z",
]  # fmt: skip


async def test_no_message_does_anything_but_be_refused(door: Dispatcher) -> None:
    """Whatever stands in the fields of the verbs of memory, the answer is an error that is meant, or harmless."""
    await ask(door, "remember", text="The oil of the home.")
    before = (await ask(door, "memories"))["memories"]
    chance = random.Random(7)
    verbs = ("recall", "memories", "forget", "memories_edit", "memories_retract", "memories_restore", "pin", "unpin")
    for _ in range(400):
        verb = chance.choice(verbs)
        fields = chance.sample([*VERBS[verb].args.model_fields, "mood"], chance.randint(1, 3))
        args = {field: chance.choice(STRANGE) for field in fields}
        try:
            await ask(door, verb, chance.choice(("token 0a1b", GUEST)), **args)
        except BatosError as error:
            assert len(error.message) < 5_000
    assert (await ask(door, "memories"))["memories"] == before


async def test_a_mailbox_is_listed_by_its_path(door: Dispatcher) -> None:
    """It is no document itself: its mails are, each under the path and its own id."""
    mail = "From x@y.z Wed May  1 12:00:00 2024\nFrom: Maro\nSubject: {0}\nMessage-ID: <{0}@x>\n\nIt is {0}.\n\n"
    data = (mail.format("dear") + mail.format("cheap")).encode()
    digest = hashlib.sha256(data).hexdigest()
    await ask(door, "attach", sha256=digest, data=base64.b64encode(data).decode())
    file = {"name": "a.mbox", "media_type": "application/mbox", "sha256": digest, "source": "/mail/a.mbox"}
    await ask(door, "remember", files=[file])
    listed = await ask(door, "memories", document="/mail/a.mbox")
    assert {each["source"] for each in listed["memories"]} == {"/mail/a.mbox#<dear@x>", "/mail/a.mbox#<cheap@x>"}
    with pytest.raises(NotFound):
        await ask(door, "memories", document="/mail/b.mbox")
