"""Guests: who came in by a key asks and reads as the user of that key, governs nothing, and sees nobody else's."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.wire_server import HASTY, wire_server
from tests.server.zmq.test_auth import EVERYWHERE, by, key_of

from batos import AsyncClient
from batos.cli.verb_options import own_folder
from batos.client.addresses import parse_listening
from batos.client.keys import Credentials, Keyring
from batos.protocol.errors import BatosError, BriefError, NotFound, Refused
from batos.server.dispatch.dispatcher import Dispatcher
from batos.server.dispatch.guests import limit_guest
from batos.server.dispatch.uploads import Uploads
from batos.server.zmq.server import Server
from batos.testing import ScriptedBridge, scripted_uvm
from batos.verbs.all_verbs import VERBS

GUEST, OWNER, HOME = "key laptop 0a1b", "token 0a1b", "key home 0a1b"
#: Verbs that change what the mind is made of.
OWNERS = frozenset({"genesis", "adapters_use", "method_redefine", "method_reparent", "method_rollback",
                    "grants_add", "grants_revoke",
                    "effects_settle", "pack", "heartbeat_resume", "heartbeat_pause",
                    "heartbeat_now", "trials_try", "trials_keep", "trials_undo", "slot_redefine",
                    "slot_rollback", "trials_audit", "schedule_add", "schedule_pause", "schedule_resume",
                    "schedule_run", "schedule_remove", "inbox_read"})  # fmt: skip
SECRET = "the blue heron nests at noon"


def test_the_verbs_that_govern_are_said_here() -> None:
    """What a guest may not do is written twice, so that a new verb is thought about."""
    assert {name for name, declared in VERBS.items() if declared.governs} == OWNERS


@pytest.mark.parametrize("verb", sorted(OWNERS))
def test_only_the_home_governs(verb: str) -> None:
    """A guest is refused and told where to do it; the token and the home's own key are the home."""
    args: dict[str, Any] = {"prune": True}
    with pytest.raises(Refused, match="laptop") as refused:
        limit_guest(verb, args, GUEST)
    assert "where the home is" in refused.value.remedy
    assert limit_guest(verb, args, OWNER) == limit_guest(verb, args, HOME) == args


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_a_guest_answers_by_its_key(verb: str) -> None:
    """Whoever it says that it is, and for its own missions; the home's own say who they are."""
    said = {"user": "root", "mine": False}
    assert limit_guest(verb, said, GUEST) == {"user": "key laptop", "mine": True}
    assert limit_guest(verb, said, OWNER) == said


@given(st.sampled_from(sorted(VERBS)), st.dictionaries(st.text(max_size=8), st.text(max_size=8)), st.text())
def test_no_request_of_a_guest_names_another(verb: str, more: dict[str, str], user: str) -> None:
    """Wherever a verb takes a user, and in a brief, it is the key's; the plan of a genesis changes nothing."""
    args = {**more, "user": user, "brief": {"text": "why?", "user": user}, "plan": True}
    if verb in OWNERS - {"genesis"}:
        return
    meant = limit_guest(verb, args, GUEST)
    if "user" in VERBS[verb].args.model_fields:
        assert (meant["user"], meant["brief"]["user"]) == ("key laptop", "key laptop")
    else:
        assert meant == args
    assert limit_guest(verb, args, OWNER) == args


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_that_tells_of_missions_takes_a_user(verb: str) -> None:
    """What takes none is said here, so that a new verb is thought about."""
    of_none = {
        "hello",
        "genesis",
        "heartbeat_now",
        "adapters_use",
        "embed_memories",
        "method_make",
        "slot_show",
        "slots",
        "trials",
        "pack",
        "tool_result",
    }
    assert ("user" in VERBS[verb].args.model_fields) != (verb in of_none)


async def test_a_key_governs_nothing_over_the_wire(tmp_path: Path) -> None:
    """The server asks the gate who it is that asks; a guest's client says so before it watches."""
    async with wire_server(tmp_path, bind=EVERYWHERE, events=EVERYWHERE) as wire:
        file = tmp_path / "laptop.json"
        file.write_text(key_of(wire, "laptop").text(), encoding="utf-8")
        async with AsyncClient(tmp_path, patience=HASTY, server=str(file)) as client:
            with pytest.raises(Refused, match="guest"):
                await client.call("genesis", {"prune": True})
            with pytest.raises(Refused, match="guest") as refused:
                await anext(client.watch())
            assert "batos wait" in refused.value.remedy
            assert (await client.ask("why?"))["status"] == "done"


@dataclass(frozen=True)
class Two:
    """Two guests of one real mind, and the home itself."""

    ann: AsyncClient
    bob: AsyncClient
    home: AsyncClient


@asynccontextmanager
async def two_guests(home: Path) -> AsyncIterator[Two]:
    own_folder(home)
    async with scripted_uvm(home, ScriptedBridge()) as uvm:
        ring, uploads = Keyring(home), Uploads(home / "uploads", 2**20)
        server = Server(Dispatcher(uvm, uploads), ring)
        async with server.serving(parse_listening(EVERYWHERE, "bind"), parse_listening(EVERYWHERE, "events")) as places:
            keys = [ring.new(name, places.bind.near) for name in ("ann", "bob")]
            own = Credentials(pair=ring.own(), server=ring.server().public)
            async with by(keys[0]) as ann, by(keys[1]) as bob, AsyncClient.by(places.bind.near, own, HASTY) as owner:
                yield Two(ann, bob, owner)
        await uploads.close()


async def asked(client: AsyncClient, text: str, **more: Any) -> dict[str, Any]:
    """A mission to its end."""
    return await client.call("submit", {"brief": {"text": text, "effort": "reflex", **more}, "follow": True})


async def test_a_guest_is_shown_its_own_alone(tmp_path: Path) -> None:
    """Through no verb, whatever user, id or oid it names, does another's question come; the home sees both."""
    async with two_guests(tmp_path) as two:
        theirs = await asked(two.ann, SECRET, conversation="new")
        mine = await asked(two.bob, "what is a tide?", user="key ann", conversation="new")
        assert (theirs["brief"]["user"], mine["brief"]["user"]) == ("key ann", "key bob")
        mission, conversation = theirs["id"], theirs["brief"]["conversation"]
        thought = (await two.home.call("inspect", {"object": mission}))["oid"]
        attacks = [
            *((verb, {"mission": mission}) for verb in ("show", "wait", "cancel", "pause", "resume")),
            ("show", {"mission": "last", "prompts": True}),
            ("missions", {}),
            ("status", {}),
            ("status", {"rates": True}),
            ("approvals", {}),
            ("turns", {"conversation": conversation}),
            ("turns", {"conversation": "last"}),
            ("drop_files", {"conversation": conversation, "names": ["a.txt"]}),
            *(("inspect", {"object": each}) for each in (mission, f"{mission}.answer", conversation, thought)),
            *(("send", {"receiver": each, "selector": "text", "follow": True}) for each in (mission, conversation)),
            ("submit", {"brief": {"text": "and?", "conversation": conversation}, "follow": True}),
            ("submit", {"brief": {"text": "and?", "in_reply_to": mission}, "follow": True}),
            ("submit", {"brief": {"text": "and?", "ancestor": mission}, "follow": True}),
        ]
        for verb, args in attacks:
            for user in ({}, {"user": "key ann"}, {"user": "tester"}):
                told = await told_of(
                    two.bob, verb, {**args, **user} if "user" in VERBS[verb].args.model_fields else args
                )
                assert SECRET not in told, (verb, args)
        rates = (await two.bob.call("status", {"rates": True, "user": "key ann"}))["rates"]
        whole = (await two.home.call("status", {"rates": True}))["rates"]
        counts = [(each["windows"]["all"]["missions"], "counted" in each["windows"]["all"]) for each in (rates, whole)]
        assert counts == [({"done": 1}, False), ({"done": 2}, True)]
        assert [each["id"] for each in (await two.ann.call("missions", {}))["missions"]] == [mission]
        assert (await two.ann.call("show", {"mission": "last"}))["id"] == mission
        everybody = {each["user"] for each in (await two.home.call("missions", {}))["missions"]}
        assert everybody == {"key ann", "key bob"}


async def told_of(client: AsyncClient, verb: str, args: dict[str, Any]) -> str:
    try:
        return json.dumps(await client.call(verb, args))
    except BatosError as error:
        return json.dumps(error.as_dict())


async def test_a_mission_is_followed_and_steered_by_its_guest_alone(tmp_path: Path) -> None:
    """Another is told that it is not there, and it goes on."""
    async with two_guests(tmp_path) as two:
        theirs = (await asked(two.ann, SECRET))["id"]
        for verb in ("show", "wait", "cancel", "pause", "resume"):
            with pytest.raises(NotFound):
                await two.bob.call(verb, {"mission": theirs})
        heard: list[str] = []
        found = await two.ann.call("wait", {"mission": theirs, "follow": True}, lambda event, _: heard.append(event))
        assert (found["id"], found["status"]) == (theirs, "done")


async def test_a_file_is_named_by_who_sent_it(tmp_path: Path) -> None:
    """The digest of another's file gets nothing, on its way or kept, and does not tell that it is here."""
    data = SECRET.encode()
    sha256 = hashlib.sha256(data).hexdigest()
    piece = {"sha256": sha256, "data": base64.b64encode(data).decode()}
    files = [{"name": "a.txt", "media_type": "text/plain", "sha256": sha256}]
    async with two_guests(tmp_path) as two:

        async def refused(client: AsyncClient) -> None:
            assert await client.call("attach", {"sha256": sha256}) == {"sha256": sha256, "have": 0}
            with pytest.raises(BriefError, match="was not sent"):
                await asked(client, "what is in it?", attachments=files)

        await two.ann.call("attach", piece)
        await refused(two.bob)
        await asked(two.ann, "what is in it?", attachments=files)
        await refused(two.bob)
        again = await two.ann.call("attach", {"sha256": sha256})
        assert again["size"] == len(data)
        kept = await asyncio.gather(*(asked(each, "again?", attachments=files) for each in (two.ann, two.home)))
        assert [each["status"] for each in kept] == ["done", "done"]
        await two.bob.call("attach", piece)
        assert (await asked(two.bob, "and mine?", attachments=files))["status"] == "done"


def by_mission(name: str) -> list[tuple[str, dict[str, Any]]]:
    """Every request that names a mission."""
    return [
        *((verb, {"mission": name}) for verb in ("show", "wait", "cancel", "pause", "resume")),
        ("show", {"mission": name, "prompts": True}),
        ("why", {"what": name}),
        ("show", {"mission": "last", "as_of": name}),
        ("submit", {"brief": {"text": "and?"}, "as_of": name, "follow": True}),
        *(
            ("submit", {"brief": {"text": "and?", field: name}, "follow": True})
            for field in ("in_reply_to", "ancestor")
        ),
        *by_object(name),
    ]


def by_conversation(name: str) -> list[tuple[str, dict[str, Any]]]:
    """Every request that names a conversation."""
    return [
        ("turns", {"conversation": name}),
        ("drop_files", {"conversation": name, "names": ["a.txt"]}),
        ("submit", {"brief": {"text": "and?", "conversation": name}, "follow": True}),
        *by_object(name),
    ]


def by_object(name: str) -> list[tuple[str, dict[str, Any]]]:
    """Every request that names an object."""
    return [
        *(("inspect", {"object": each}) for each in (name, f"{name}.text")),
        ("method_list", {"object": name}),
        ("why", {"what": f"{name}.text"}),
        *((verb, {"method": f"{name}.text_"}) for verb in ("method_show", "method_history")),
    ]


async def test_what_is_anothers_is_what_is_not_there(tmp_path: Path) -> None:
    """By an id, its beginning, or one that several have, a guest is told the same as of what never was."""
    async with two_guests(tmp_path) as two:
        first, second = [await asked(two.ann, each, conversation="new") for each in (SECRET, "and again?")]
        mission, conversation = first["id"], first["brief"]["conversation"]
        oid = (await two.home.call("inspect", {"object": mission}))["oid"]
        of_two = [
            shared_by([mission, second["id"]]),
            shared_by([conversation, second["brief"]["conversation"]]),
        ]
        for pairs, requests in (
            ([(each, absent(each)) for each in (mission, mission[:-2], of_two[0])], by_mission),
            ([(each, absent(each)) for each in (conversation, conversation[:-2], of_two[1])], by_conversation),
            ([(oid, absent(oid))], by_object),
        ):
            for theirs, nobodys in pairs:
                for (verb, args), (_, others) in zip(requests(theirs), requests(nobodys), strict=True):
                    told = await told_of(two.bob, verb, args)
                    assert '"error"' in told or '"not_found"' in told, (verb, args, told)
                    assert told.replace(theirs, "?") == (await told_of(two.bob, verb, others)).replace(nobodys, "?")
        for theirs in (mission, conversation, oid):
            refused = [
                await told_of(two.bob, "send", {"receiver": each, "selector": "text", "follow": True})
                for each in (theirs, absent(theirs))
            ]
            assert '"not_found"' in refused[0]
            assert refused[0].replace(theirs, "?") == refused[1].replace(absent(theirs), "?")


def shared_by(names: list[str]) -> str:
    """The beginning that two ids share."""
    one, other = names
    return one[: next(at for at, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1])]


def absent(name: str) -> str:
    """An id, or the beginning of one, that nothing has."""
    if name.startswith("oid:0x"):
        return "oid:0x777777777777"  # a small number may be another object's
    return f"{name[:2]}{'7' * (len(name) - 2)}"


async def test_a_beginning_means_ones_own(tmp_path: Path) -> None:
    """A beginning that others have too is the one that the guest has; of several it is told its own alone."""
    async with two_guests(tmp_path) as two:
        theirs = await asked(two.ann, SECRET, conversation="new")
        mine = await asked(two.bob, "what is a tide?", conversation="new")
        shared = shared_by([theirs["id"], mine["id"]])
        assert (await two.bob.call("show", {"mission": shared}))["id"] == mine["id"]
        assert (await two.bob.call("inspect", {"object": shared}))["object"] == shared
        both = shared_by([each["brief"]["conversation"] for each in (theirs, mine)])
        (turn,) = (await two.bob.call("turns", {"conversation": both}))["turns"]
        assert turn["mission"] == mine["id"]
        also = await asked(two.bob, "and the wind?")
        with pytest.raises(BriefError, match="beginning of 2 missions") as several:
            await two.bob.call("cancel", {"mission": shared[:4]})
        assert mine["id"] in several.value.message
        assert also["id"] in several.value.message
        assert theirs["id"] not in several.value.message
        with pytest.raises(BriefError, match="beginning of 3 missions"):
            await two.home.call("show", {"mission": shared[:4]})


async def test_the_reasons_of_a_memory_name_no_memory_of_another(tmp_path: Path) -> None:
    """A guest who says that a fact of its own holds only with another's is not told what that is."""
    async with two_guests(tmp_path) as two:
        theirs = await two.ann.call("remember", {"text": "It nests at noon.", "key": "heron.secret"})
        named = theirs["remembered"][0]["document"]
        mine = await two.bob.call("remember", {"text": "A tide.", "key": "my.fact", "depends_on": [named]})
        why = {"what": mine["remembered"][0]["document"]}
        told, seen = await two.bob.call("why", why), await two.home.call("why", why)
        assert "holds only with a memory of another user" in json.dumps(told)
        assert "heron" not in json.dumps(told)
        assert "key ann" not in json.dumps(told)
        assert "holds only with heron.secret" in json.dumps(seen)
