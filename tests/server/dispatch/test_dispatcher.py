"""The dispatcher over a real UVM: every verb does through it what the UVM does, and what is half done is finished."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.cli.wire_server import ScriptedUvm

from batos.config import Settings
from batos.missions.missions import Missions
from batos.missions.readings import Readings
from batos.protocol.brief import as_file
from batos.protocol.errors import BriefError, NoServer, NotFound, ProtocolError
from batos.protocol.event_payloads import EVENTS
from batos.server.dispatch.dispatcher import Dispatcher
from batos.server.dispatch.uploads import Uploads
from batos.testing import ScriptedBridge, scripted_uvm
from batos.uvm import UVM
from batos.verbs.all_verbs import VERBS

ReplyHead = list[tuple[str, Mapping[str, Any]]]


@pytest.fixture
async def door(tmp_path: Path) -> AsyncIterator[Dispatcher]:
    """A dispatcher over a mind in memory, whose bridge is scripted."""
    async with scripted_uvm(tmp_path, ScriptedBridge()) as uvm:
        yield Dispatcher(uvm, Uploads(tmp_path / "uploads", 2**20))


async def ask(door: Dispatcher, verb: str, told: ReplyHead | None = None, **args: Any) -> dict[str, Any]:
    """One request; events and acknowledgements come into `told`."""
    heard: ReplyHead = [] if told is None else told
    return await door.handle(
        verb, args, lambda event, keys: heard.append((event, keys)), lambda keys: heard.append(("ack", keys))
    )


async def test_a_followed_mission_tells_all_of_itself(door: Dispatcher) -> None:
    """Acknowledged before anything is told of it; every state, then the report."""
    told: ReplyHead = []
    found = await ask(door, "submit", told, brief={"text": "why?", "effort": "reflex"}, follow=True)
    assert found["status"] == "done"
    assert told[0] == ("ack", {"mission": found["id"]})
    assert next(keys["state"] for event, keys in told if event == "mission.state") == "IDLE"
    for event, keys in told[1:]:
        assert set(EVENTS[event].keys) <= set(keys), event
    assert all(keys.get("mission", found["id"]) == found["id"] for _, keys in told)


async def test_without_following_it_is_begun_all_the_same(door: Dispatcher) -> None:
    """The result comes at once; the mission comes to its end by itself, and waiting for it gives the same report."""
    first = await ask(door, "submit", brief={"text": "why?"})
    assert first.keys() == {"mission", "status"}
    waited = await ask(door, "wait", mission=first["mission"], follow=True)
    assert waited == await ask(door, "show", mission="last")
    assert (await ask(door, "show", mission="last", prompts=True))["prompts"]


async def test_missions_are_named_by_a_beginning_or_counted_back(door: Dispatcher) -> None:
    """At every verb that takes one, and in a brief; what is the beginning of several, or is not there, is said."""
    one, two = [
        (await ask(door, "submit", brief={"text": each, "effort": "reflex", "conversation": "new"}, follow=True))["id"]
        for each in ("why?", "how?")
    ]
    assert (await ask(door, "show", mission="last-1"))["id"] == one
    assert (await ask(door, "show", mission=two[:-1].lower()))["id"] == two
    assert (await ask(door, "wait", mission=one[:-1]))["id"] == one
    assert (await ask(door, "inspect", object=f"{one[:-1]}.answer"))["slot"] == "answer"
    brief = {
        "text": "and?",
        "effort": "reflex",
        "ancestor": "last-1",
        "in_reply_to": two[:-1],
        "conversation": "last-1",
    }
    third = (await ask(door, "submit", brief=brief, follow=True))["brief"]
    assert (third["ancestor"], third["in_reply_to"]) == (one, two)
    assert third["conversation"] == (await ask(door, "show", mission=one))["brief"]["conversation"]
    assert (await ask(door, "turns", conversation=third["conversation"][:-1]))["count"] == 2
    with pytest.raises(BriefError, match="m-0 is the beginning of 3 missions"):
        await ask(door, "cancel", mission="m-0")
    with pytest.raises(NotFound, match="you asked fewer"):
        await ask(door, "show", mission="last-3")
    with pytest.raises(NotFound, match="you had fewer"):
        await ask(door, "turns", conversation="last-2")


async def test_a_key_names_its_mission_again(door: Dispatcher) -> None:
    """Asked a second time by the same key: the same mission, not begun twice, told its end."""
    brief = {"text": "why?", "idempotency_key": "k", "conversation": "new"}
    first = await ask(door, "submit", brief=brief, follow=True)
    told: ReplyHead = []
    again = await ask(door, "submit", told, brief=brief, follow=True)
    assert (again["id"], again["cost"]) == (first["id"], first["cost"])
    assert told == [("ack", {"mission": first["id"]})]
    assert len((await ask(door, "missions"))["missions"]) == 1


async def test_a_file_is_attached_or_in_the_image(door: Dispatcher) -> None:
    """Its bytes go first; once the image has them, a reference is enough, and nothing need be sent."""
    file = as_file("a.txt", b"The keeper winds the clockwork.")
    refs = [file.ref.model_dump()]
    with pytest.raises(BriefError, match="was not sent"):
        await ask(door, "submit", brief={"text": "why?", "attachments": refs})
    assert (await ask(door, "attach", sha256=file.ref.sha256))["have"] == 0
    data = base64.b64encode(file.data).decode()
    assert (await ask(door, "attach", sha256=file.ref.sha256, offset=0, data=data))["size"] == len(file.data)
    found = await ask(door, "submit", brief={"text": "why?", "attachments": refs}, follow=True)
    assert found["brief"]["attachments"] == refs
    assert (await ask(door, "attach", sha256=file.ref.sha256))["size"] == len(file.data)
    assert (await ask(door, "submit", brief={"text": "again?", "attachments": refs}))["mission"] != found["id"]


async def test_files_are_a_conversations_until_they_are_dropped(door: Dispatcher) -> None:
    """A later brief has them, a repeated one is the same mission still, and nobody else drops them."""
    file = as_file("a.txt", b"the first")
    data = base64.b64encode(file.data).decode()
    await ask(door, "attach", sha256=file.ref.sha256, data=data)
    brief = {"text": "why?", "effort": "reflex"}
    first = {**brief, "conversation": "new", "attachments": [file.ref.model_dump()]}
    await ask(door, "submit", brief=first, follow=True)
    again = {**brief, "conversation": "last", "idempotency_key": "k"}
    found = await ask(door, "submit", brief=again, follow=True)
    assert [each["name"] for each in found["brief"]["attachments"]] == ["a.txt"]
    assert (await ask(door, "submit", brief=again, follow=True))["id"] == found["id"]
    for wrong in ({"names": ["b.txt"]}, {"names": ["a.txt"], "user": "ada"}):
        with pytest.raises(NotFound):
            await ask(door, "drop_files", conversation="last", **wrong)
    assert (await ask(door, "drop_files", conversation="last", names=["a.txt"]))["files"] == []
    found = await ask(door, "submit", brief={**brief, "conversation": "last"}, follow=True)
    assert found["brief"]["attachments"] == []


async def test_a_conversation_has_as_many_files_as_a_brief(door: Dispatcher) -> None:
    """One more is refused, and what helps is named."""
    files = [as_file(f"{number}.txt", b"%d" % number) for number in range(33)]
    for file in files:
        await ask(door, "attach", sha256=file.ref.sha256, data=base64.b64encode(file.data).decode())
    refs = [file.ref.model_dump() for file in files]
    brief = {"text": "why?", "effort": "reflex"}
    await ask(door, "submit", brief={**brief, "conversation": "new", "attachments": refs[:32]}, follow=True)
    with pytest.raises(BriefError, match="with those of the conversation there are 33") as caught:
        await ask(door, "submit", brief={**brief, "conversation": "last", "attachments": refs[32:]}, follow=True)
    assert "/drop" in caught.value.remedy


@pytest.mark.parametrize("refs", ["a", [1], [{"name": "a"}], {"name": "a"}, [{"name": "a", "sha256": "x"}]])
async def test_what_is_no_reference_is_a_wrong_brief(door: Dispatcher, refs: Any) -> None:
    """The field is named, and nothing is accepted."""
    with pytest.raises(BriefError) as refused:
        await ask(door, "submit", brief={"text": "why?", "attachments": refs})
    assert str(refused.value.field).startswith("attachments")
    assert (await ask(door, "missions"))["missions"] == []


async def attach(door: Dispatcher, name: str, data: bytes) -> dict[str, Any]:
    """Send a file, and return the reference that a brief has to it."""
    ref = as_file(name, data).ref.model_dump()
    await ask(door, "attach", sha256=ref["sha256"], data=base64.b64encode(data).decode())
    return ref


async def test_what_is_attached_must_hold_a_text(door: Dispatcher) -> None:
    """The rules of files hold for bytes that came over the wire too."""
    ref = await attach(door, "a.txt", bytes(range(1, 256)))
    with pytest.raises(BriefError, match="its encoding is not known") as caught:
        await ask(door, "submit", brief={"text": "why?", "attachments": [ref]})
    assert caught.value.field == "attachments"


async def test_a_file_is_read_as_what_it_is(door: Dispatcher) -> None:
    """A page, a mailbox and a text with a broken byte: the mission has the text, and says what it lacks."""
    page = await attach(door, "a.html", b"<html><body><nav>Home</nav><p>The lamp burns oil.")
    mail = (
        b"From x@y.z Wed May  1 12:00:00 2024\nFrom: Maro\nDate: Wed, 01 May 2024 12:00:00 +0000\nSubject: %s\n\n%s\n\n"
    )
    box = await attach(door, "a.mbox", mail % (b"Oil", b"It is dear.") + mail % (b"Gas", b"It is cheap."))
    text = await attach(door, "a.txt", "Zoë pays 12 € ".encode() + b"\xff")
    told = await ask(door, "submit", brief={"text": "why?", "attachments": [page, box, text]}, follow=True)
    kept = told["brief"]["attachments"]
    assert [each.get("left_out", ()) for each in kept[:2]] == [(), ()]
    assert kept[2]["left_out"] == ["1 place is not UTF-8, the first at byte 17: \ufffd stands there"]
    files = {each["name"]: await ask(door, "attach", sha256=each["sha256"]) for each in kept}
    above = "## Maro, 2024-05-01\n\nFrom: Maro\nDate: Wed, 01 May 2024 12:00:00 +0000\nSubject: "
    texts = {
        "a.html": "The lamp burns oil.",
        "a.mbox": f"{above}Oil\n\nIt is dear.\n\n{above}Gas\n\nIt is cheap.",
        "a.txt": "Zoë pays 12 € \ufffd",
    }
    assert {name: found["size"] for name, found in files.items()} == {
        name: len(each.encode()) for name, each in texts.items()
    }
    assert {each["name"]: each["sha256"] for each in kept} == {
        name: hashlib.sha256(each.encode()).hexdigest() for name, each in texts.items()
    }


async def test_a_file_that_was_read_is_the_same_mission_again(door: Dispatcher) -> None:
    """Its text is always the same one, so a question that is sent again with its key finds the first."""
    ref = await attach(door, "a.html", b"<html><body><p>The lamp burns oil.")
    brief = {"text": "why?", "attachments": [ref], "idempotency_key": "k"}
    first = await ask(door, "submit", brief=brief, follow=True)
    assert (await ask(door, "submit", brief=brief, follow=True))["id"] == first["id"]


async def test_last_is_the_users_newest(door: Dispatcher) -> None:
    """Of the user who is named, else of the server's own; where there is none, that is said."""
    with pytest.raises(NotFound, match="no mission yet"):
        await ask(door, "show", mission="last")
    ours = await ask(door, "submit", brief={"text": "why?"}, follow=True)
    hers = await ask(door, "submit", brief={"text": "how?", "user": "ada"}, follow=True)
    assert (await ask(door, "show", mission="last"))["id"] == ours["id"]
    assert (await ask(door, "show", mission="last", user="ada"))["id"] == hers["id"]
    assert [each["id"] for each in (await ask(door, "missions", user="ada"))["missions"]] == [hers["id"]]
    retried = await ask(door, "submit", brief={"text": "how?", "user": "ada", "ancestor": "last"}, follow=True)
    assert retried["brief"]["ancestor"] == hers["id"]


async def test_looking_sending_and_standing(door: Dispatcher) -> None:
    """Inspect, turns, status, hello and send."""
    assert await ask(door, "inspect")
    assert await ask(door, "inspect", object="brick_prototype_obj")
    talk = await ask(door, "submit", brief={"text": "why?", "conversation": "new"}, follow=True)
    turns = await ask(door, "turns", conversation=talk["brief"]["conversation"])
    assert turns["turns"][0]["question"] == "why?"
    assert (await ask(door, "status"))["queue"]["waiting"] == 0
    assert (await ask(door, "hello"))["verbs"] == list(VERBS)
    sent = await ask(door, "send", receiver="brick_prototype_obj", selector="name", follow=True)
    assert sent["brief"]["message"]["selector"] == "name"


async def test_genesis_is_planned_and_done(door: Dispatcher) -> None:
    """What it would do with its budget; what it did, told step by step."""
    assert "budget" in await ask(door, "genesis", plan=True)
    told: ReplyHead = []
    assert (await ask(door, "genesis", told))["plan"]["profile"] == "default"
    assert {event for event, _ in told} <= {"genesis.step"}
    chosen = await ask(door, "adapters_use", persona="brick", name="none")
    assert (chosen["persona"], chosen["adapter"]) == ("BRICK", None)


async def test_a_door_that_does_not_work_leaves_what_is_not_followed(tmp_path: Path) -> None:
    """In a process that ends at once, a submitted mission waits for one that stays; a followed one is run."""
    mind = ScriptedUvm(Settings(home=tmp_path, user="tester"))
    door = Dispatcher(mind, Uploads(tmp_path / "uploads", 10), works=False)  # type: ignore[arg-type]  # it is played
    left = await ask(door, "submit", brief={"text": "why?"})
    assert left["status"] == "queued"
    assert (await ask(door, "submit", brief={"text": "why?"}, follow=True))["status"] == "done"
    with pytest.raises(NoServer, match="no process runs"):
        await ask(door, "wait", mission=left["mission"], seconds=0.01)


async def test_an_asker_who_leaves_leaves_nothing_half_done(tmp_path: Path) -> None:
    """Gone between the acceptance and the beginning: the mission is begun all the same."""
    mind = ScriptedUvm(Settings(home=tmp_path, user="tester"), prompt=False)
    door = Dispatcher(mind, Uploads(tmp_path / "uploads", 10))  # type: ignore[arg-type]  # it is played
    for steps in range(12):
        asked = asyncio.create_task(ask(door, "submit", brief={"text": f"question {steps}"}, follow=True))
        for _ in range(steps):
            await asyncio.sleep(0)
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        await door.wait_until_settled()
    assert {each["status"] for each in mind.found.values()} == {"running"}


async def test_every_verb_is_served(door: Dispatcher) -> None:
    """What the protocol names the dispatcher does, and nothing else."""
    assert set(door._verbs) == set(VERBS)
    with pytest.raises(ProtocolError):
        await ask(door, "moo")


def test_the_uvm_is_what_the_dispatcher_takes() -> None:
    """The played mind of these tests has what the dispatcher asks of each part of a UVM."""
    asked = {
        UVM: ("missions", "readings", "approvals", "follow_ups", "learning", "status", "standing"),
        Missions: ("submit", "begin", "enqueue", "wait_for_end", "cancel", "pause", "resume"),
        Readings: ("newest", "mission", "resolve_mission", "prompts", "turns", "inspect"),
    }
    for part, names in asked.items():
        assert all(hasattr(part, name) and hasattr(ScriptedUvm, name) for name in names), part
