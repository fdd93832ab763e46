"""The client for other programs: calls, files, a server that restarts in the middle, and one that is not there."""

from __future__ import annotations

import asyncio
import hashlib
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import zmq
import zmq.asyncio
from tests.cli.wire_server import ANY, HASTY, ScriptedUvm, eventually, note_of, wire_server
from tests.waiting import HANG

from batos.client import addresses
from batos.client.clients import AsyncClient
from batos.client.keys import Credentials
from batos.client.line import Patience
from batos.client.server_connection import ServerConnection
from batos.config import Settings
from batos.protocol.brief import as_file
from batos.protocol.errors import BriefError, NoServer, NotFound, ProtocolError, TimedOut, Unauthorised
from batos.protocol.event_payloads import MISSION_TOKEN, MissionToken


def played(home: Path, **more: Any) -> ScriptedUvm:
    return ScriptedUvm(Settings(home=home, user="tester", attachment_bytes=2**22), **more)


async def test_asking_gives_the_mission_and_what_happened(tmp_path: Path) -> None:
    """`ask` acknowledges, tells events, and gives the mission at its end."""
    told: list[str] = []
    accepted: list[Mapping[str, Any]] = []
    async with wire_server(tmp_path) as wire, wire.client() as client:
        mission = await client.ask("why?", lambda event, keys: told.append(event), accepted.append)
        assert (mission["status"], accepted) == ("done", [{"mission": mission["id"]}])
        assert told == ["mission.accepted", "mission.status", "mission.status"]


async def test_every_verb_has_its_method(tmp_path: Path) -> None:
    """Submitting, waiting, listing, showing, looking, sending, steering."""
    async with wire_server(tmp_path) as wire, wire.client() as client:
        assert "submit" in (await client.hello())["verbs"]
        mission = await client.submit("why?")
        assert (await client.wait(mission))["status"] == "done"
        assert [each["id"] for each in await client.missions(status="done")] == [mission]
        assert (await client.show("last", prompts=True))["prompts"]
        assert await client.inspect() == {"objects": ["traits_obj"]}
        assert await client.inspect("traits_obj") == {"object": "traits_obj"}
        assert (await client.turns("c-1", -3, 2))["start"] == -3
        assert (await client.send("traits_obj", "name"))["brief"]["message"]["selector"] == "name"
        assert (await client.pause(mission))["status"] == "paused"
        assert (await client.resume(mission))["status"] == "queued"
        assert (await client.cancel(mission))["status"] == "cancelled"
        assert (await client.status())["queue"]["waiting"] == 0


async def test_an_error_comes_as_what_it_is(tmp_path: Path) -> None:
    """The server's error, by its code, with its field and remedy; the connection goes on."""
    async with wire_server(tmp_path) as wire, wire.client() as client:
        with pytest.raises(NotFound) as missing:
            await client.show("m-none")
        assert missing.value.field == "mission"
        with pytest.raises(BriefError) as empty:
            await client.submit("")
        assert empty.value.field == "text"
        with pytest.raises(ProtocolError):
            await client.call("moo")
        with pytest.raises(ProtocolError, match="bytes"):
            await client.submit("x" * 2**20)
        assert (await client.hello())["pid"]


async def test_calls_are_made_concurrently(tmp_path: Path) -> None:
    """A hundred at once over one connection, each with its own result, although 64 may be under way."""
    async with wire_server(tmp_path, played(tmp_path, prompt=False)) as wire, wire.client() as client:
        asked = [asyncio.create_task(client.ask(f"question {number}")) for number in range(20)]
        await eventually(lambda: len(wire.mind.found) == 20)
        assert (await client.hello())["pid"]
        for mission in reversed(wire.mind.found):
            wire.mind.finish(mission)
        assert [each["brief"]["text"] for each in await asyncio.gather(*asked)] == [f"question {n}" for n in range(20)]


async def test_waiting_has_an_end(tmp_path: Path) -> None:
    """At the server by `seconds` of `wait`, at the client by that of `call`; the mission goes on."""
    async with wire_server(tmp_path, played(tmp_path, prompt=False)) as wire, wire.client() as client:
        mission = await client.submit("why?")
        with pytest.raises(TimedOut, match="has not ended"):
            await client.wait(mission, seconds=0.01)
        with pytest.raises(TimedOut, match="no result"):
            await client.call("wait", {"mission": mission}, seconds=0.01)
        assert wire.mind.found[mission]["status"] == "running"


async def test_a_listener_that_fails_is_its_callers_own_affair(tmp_path: Path) -> None:
    """What `on_event` raises comes out of the call, and the client goes on."""

    def on_event(event: str, keys: Mapping[str, Any]) -> None:
        raise ZeroDivisionError(event)

    async with wire_server(tmp_path) as wire, wire.client() as client:
        with pytest.raises(ZeroDivisionError):
            await client.ask("why?", on_event)
        assert (await client.hello())["pid"]


async def test_a_stream_tells_what_came_of_asking(tmp_path: Path) -> None:
    """A question that cannot be asked raises where its tokens are read; one that was left has none any more."""
    async with wire_server(tmp_path) as wire, wire.client() as client:
        with pytest.raises(BriefError):
            async for _ in client.stream(""):
                pass
        async with client.stream("why?") as stream:
            assert [token async for token in stream] == []
            assert (await stream.mission()).done
        assert [token async for token in stream] == []
        left = client.stream("and then?")
        await left.close()
        assert [token async for token in left] == []


# -- files


async def test_a_file_is_sent_in_pieces_once(tmp_path: Path) -> None:
    """Three pieces arrive as one file; what the server has by then is not sent again."""
    file = as_file("long.txt", b"0123456789abcdef" * (80 * 1024))
    async with wire_server(tmp_path, played(tmp_path)) as wire, wire.client() as client:
        mission = await client.ask("what is in it?", files=[file])
        assert mission["brief"]["attachments"] == [file.ref.model_dump()]
        assert wire.mind.attachments == {file.ref.sha256: file.data}
        assert not list((tmp_path / "uploads").iterdir())
        assert await client.attach([file]) == [file.ref.model_dump()]
        assert not list((tmp_path / "uploads").iterdir())


async def test_a_file_that_was_begun_goes_on_where_it_broke_off(tmp_path: Path) -> None:
    """What came before the connection was lost is not sent again; what came damaged is."""
    data = b"0123456789abcdef" * (80 * 1024)
    file = as_file("long.txt", data)
    async with wire_server(tmp_path, played(tmp_path)) as wire:
        await wire.dispatcher.uploads.add(file.ref.sha256, 0, "MDEyMw==")  # "0123"
        async with wire.client() as client:
            await client.attach([file])
        assert await wire.dispatcher.uploads.content(file.ref.sha256) == data
        other = as_file("other.txt", data + b"!")
        await wire.dispatcher.uploads.add(other.ref.sha256, 0, "WFhYWA==")  # "XXXX"
        async with wire.client() as client:
            await client.attach([other])
        assert await wire.dispatcher.uploads.content(other.ref.sha256) == other.data


async def test_a_brief_whose_file_was_not_sent_says_so(tmp_path: Path) -> None:
    """A digest that nobody sent is refused with what to do, and nothing is accepted."""
    ref = {"name": "a.txt", "media_type": "text/plain", "sha256": hashlib.sha256(b"x").hexdigest()}
    async with wire_server(tmp_path) as wire, wire.client() as client:
        with pytest.raises(BriefError, match="was not sent") as refused:
            await client.call("submit", {"brief": {"text": "why?", "attachments": [ref]}})
        assert "attach" in refused.value.remedy
        assert not wire.mind.found


# -- a server that comes and goes


async def test_a_server_that_restarts_in_the_middle_is_waited_for(tmp_path: Path) -> None:
    """The asker is told, waits, finds the same mission again, and gets its answer: nothing is accepted twice."""
    mind, told = played(tmp_path, prompt=False), list[str]()
    async with wire_server(tmp_path, mind) as wire:
        at = str(wire.places.bind)
        client = wire.client()
        await client.__aenter__()
        asked = asyncio.create_task(client.ask("why?", lambda event, keys: told.append(event)))
        await eventually(lambda: mind.found and mind.found[next(iter(mind.found))]["status"] == "running")
        mission = next(iter(mind.found))
        mind.events.emit(MISSION_TOKEN, MissionToken(mission=mission, path="weave", text="half an ans"))
        await eventually(lambda: "mission.token" in told)
    await eventually(lambda: "connection.lost" in told)
    mind.found[mission]["status"] = "queued"
    async with wire_server(tmp_path, mind, bind=at):
        await eventually(lambda: "connection.restored" in told)
        await eventually(lambda: mind.found[mission]["status"] == "running")
        mind.finish(mission)
        assert (await asked)["id"] == mission
        assert list(mind.found) == [mission]
        assert told.index("mission.retracted") < told.index("connection.restored")
        await client.close()


async def test_a_server_that_does_not_come_back_fails_what_waits(tmp_path: Path) -> None:
    """After the patience of its client: NoServer, and later calls say so too."""
    hasty = Patience(connect=HANG, refused=0.1, reconnect=0.2, silence=HANG)
    mind = played(tmp_path, prompt=False)
    async with wire_server(tmp_path, mind) as wire:
        client = wire.client(hasty)
        await client.__aenter__()
        asked = asyncio.create_task(client.ask("why?"))
        await eventually(lambda: mind.calls[1:])
    with pytest.raises(NoServer):
        await asked
    with pytest.raises(NoServer):
        await client.hello()
    await client.close()


async def test_a_client_finds_its_server_by_the_home(tmp_path: Path) -> None:
    """The note says where, the token file is what is shown; without a note, or with a stale one, there is none."""
    with pytest.raises(NoServer):
        async with AsyncClient(tmp_path):
            pass
    async with wire_server(tmp_path) as wire:
        addresses.write_record(tmp_path, note_of(wire, addresses.birth_time(1) and "1"))
        with pytest.raises(NoServer):
            async with AsyncClient(tmp_path):
                pass
        addresses.write_record(tmp_path, note_of(wire))
        async with AsyncClient(tmp_path) as client:
            assert (await client.hello())["batos"]
        async with AsyncClient(tmp_path, server=str(wire.places.bind)) as client:
            assert (await client.hello())["batos"]


async def test_watching_tells_what_happens(tmp_path: Path) -> None:
    """Notices of the topics that begin as asked; when the server ends, that is said."""
    async with wire_server(tmp_path) as wire:
        addresses.write_record(tmp_path, note_of(wire))
        async with AsyncClient(tmp_path, patience=HASTY) as client:
            seen: list[str] = []

            async def watch() -> None:
                async for notice in client.watch(["mission."]):
                    seen.append(notice["event"])  # noqa: PERF401 - it never ends by itself

            watching = asyncio.create_task(watch())
            while not seen and not watching.done():
                await client.submit("why?")
            assert set(seen) <= {"mission.accepted", "mission.status"}
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


async def test_who_watches_is_told_that_the_client_was_closed(tmp_path: Path) -> None:
    """An error of ours, not the library's; what was closed may be closed again."""
    async with wire_server(tmp_path) as wire:
        addresses.write_record(tmp_path, note_of(wire))
        client = AsyncClient(tmp_path, patience=HASTY)
        async with client:
            watching = asyncio.ensure_future(anext(client.watch([""])))
            await eventually(lambda: client._line._watching)
        with pytest.raises(NoServer, match="was closed"):
            await watching
        await client.close()


async def test_nothing_that_listens_is_no_server(tmp_path: Path) -> None:
    """A port where nothing is, and one where something else is: told after the patience of the client."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        at = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(NoServer, match="no server at"):
            async with AsyncClient.by(at, Credentials(token="x"), Patience(connect=0.2, refused=0.1)):
                pass
    with pytest.raises(NoServer, match="nothing listens"):
        async with AsyncClient.by("tcp://127.0.0.1:9", Credentials(token="x"), Patience(connect=HANG, refused=0.1)):
            pass


async def test_what_listens_and_says_nothing_is_told_as_that() -> None:
    """It took the connection, and was greeted: the client says that something is there."""
    context = zmq.asyncio.Context()
    with socket.create_server(("127.0.0.1", 0)) as silent, ExitStack() as until_end:
        silent.settimeout(HANG)
        at = f"tcp://127.0.0.1:{silent.getsockname()[1]}"

        def meet(wire: zmq.asyncio.Socket) -> None:
            wire.connect(at)
            met = until_end.enter_context(silent.accept()[0])
            met.settimeout(HANG)
            assert met.recv(1)

        with pytest.raises(NoServer, match="what listens there does not answer as one"):
            # Any pace: that it was met is known before its time begins.
            await ServerConnection.open(context, zmq.DEALER, at, Credentials(token="x"), 0.05, meet)
    context.term()


async def test_a_wrong_token_is_told_at_once(tmp_path: Path) -> None:
    """No endless wait: Unauthorised, with what to do."""
    async with wire_server(tmp_path, bind=ANY) as wire:
        with pytest.raises(Unauthorised) as refused:
            async with AsyncClient.by(str(wire.places.bind), Credentials(token="wrong"), HASTY):
                pass
        assert refused.value.remedy
