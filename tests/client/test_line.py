"""The connection under both clients: how many requests it has under way, and when silence is the end."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.wire_server import HASTY, QUICK, ScriptedUvm, eventually, note_of, wire_server
from tests.waiting import HANG

from batos.client import addresses
from batos.client.keys import ServerAddress
from batos.client.line import UNDER_WAY, WAITING, Line
from batos.config import Settings
from batos.protocol.errors import NoServer, ProtocolError
from batos.server.zmq.server import ServerLimits


def played(home: Path) -> ScriptedUvm:
    return ScriptedUvm(Settings(home=home, user="tester"), prompt=False)


async def test_more_than_a_server_takes_wait_at_the_client(tmp_path: Path) -> None:
    """Three hundred submits at once: each is accepted, none is told `busy`."""
    async with wire_server(tmp_path, played(tmp_path)) as wire, wire.client() as client:
        ids = await asyncio.gather(*(client.submit(f"question {number}") for number in range(300)))
        assert len(set(ids)) == len(wire.mind.found) == 300


async def test_a_mission_can_be_cancelled_whatever_is_waited_for(tmp_path: Path) -> None:
    """With more waiting than may wait at once, what does not wait has room all the same."""
    async with wire_server(tmp_path, played(tmp_path)) as wire, wire.client() as client:
        asked = [asyncio.create_task(client.ask(f"question {number}")) for number in range(WAITING + 20)]
        await eventually(lambda: len(wire.mind.found) == WAITING)
        for mission in list(wire.mind.found):
            await client.cancel(mission)
            wire.mind.finish(mission)
        await eventually(lambda: len(wire.mind.found) == WAITING + 20)
        for mission in list(wire.mind.found)[WAITING:]:
            wire.mind.finish(mission)
        assert len({mission.id for mission in await asyncio.gather(*asked)}) == WAITING + 20


def test_a_client_keeps_below_what_a_server_takes() -> None:
    """A place is free at the server only after its reply has gone out, so that a few are left over."""
    assert WAITING < UNDER_WAY < ServerLimits().peer


async def test_a_connection_that_was_idle_is_no_lost_one(tmp_path: Path) -> None:
    """A server says nothing to a client that asks nothing: its patience begins with the question."""
    async with wire_server(tmp_path, limits=QUICK) as wire, wire.client(replace(HASTY, silence=HANG)) as client:
        await client.hello()
        client._line._heard -= 2 * HANG  # as if it had heard nothing for longer than it would wait in silence
        assert (await client.hello())["pid"]


class Forgetting(ScriptedUvm):
    """A mind that forgets only once its server stops, and first tells no status until then."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.stopping = asyncio.Event()

    @property
    def document_store(self) -> Forgetting:
        return self

    async def forget(self, _named: object, _user: object) -> dict[str, Any]:
        self.calls.append("forget")
        await self.stopping.wait()  # done to its end, also by a server that stops
        return {"forgotten": [], "note": ""}

    async def standing(self, found: dict[str, Any]) -> dict[str, Any]:
        self.calls.append("status")
        if "forget" in self.calls and self.calls.count("status") == 1:
            try:
                await asyncio.Event().wait()
            finally:
                self.stopping.set()
        return await super().standing(found)


async def test_an_idle_client_waits_for_a_server_that_comes_back(tmp_path: Path) -> None:
    """As one does that has something under way; one that never had a server is told at once that there is none."""
    there: list[ServerAddress] = []

    def find() -> ServerAddress:
        if not there:
            raise NoServer("no server runs")
        return there[-1]

    line = Line(find, HASTY)
    with pytest.raises(NoServer):
        await line.call("hello")
    async with wire_server(tmp_path / "one") as wire:
        there.append(ServerAddress(str(wire.places.bind), "", wire.credentials, wire.credentials))
        await line.call("hello")
    there.clear()
    await eventually(lambda: line._connection is None)
    asked = asyncio.ensure_future(line.call("hello"))
    async with wire_server(tmp_path / "two") as wire:
        assert not asked.done()
        there.append(ServerAddress(str(wire.places.bind), "", wire.credentials, wire.credentials))
        assert "limits" in await asyncio.wait_for(asked, HANG)
    await line.close()


async def test_a_change_that_may_have_been_made_is_not_asked_again(tmp_path: Path) -> None:
    """The server is lost while it forgets: who asked is told so. Reading is asked again."""
    mind = Forgetting(Settings(home=tmp_path, user="tester"))
    async with wire_server(tmp_path, mind) as wire:
        at = str(wire.places.bind)
        client = wire.client()
        await client.__aenter__()
        forgetting = asyncio.create_task(client.call("forget", {"documents": ["d-1"]}))
        await eventually(lambda: "forget" in mind.calls)
        asked = asyncio.create_task(client.call("status"))
        await eventually(lambda: "status" in mind.calls)
    with pytest.raises(NoServer, match="forget, which may have been done"):
        await forgetting
    async with wire_server(tmp_path, mind, bind=at):
        assert (await asked)["ready"]
        assert [each for each in mind.calls if each != "keep"] == ["forget", "status", "status"]
        await client.close()


async def test_a_closed_client_stays_closed(tmp_path: Path) -> None:
    """What is asked of it later says so, and does not connect again."""
    async with wire_server(tmp_path) as wire:
        async with wire.client() as client:
            await client.hello()
        with pytest.raises(NoServer, match="was closed"):
            await client.hello()


async def test_a_message_that_no_server_reads_is_refused_at_once(tmp_path: Path) -> None:
    """A number that is none, too deep, too many values: the client says so, instead of waiting for an answer."""
    deep: list[object] = []
    for _ in range(200):
        deep = [deep]
    async with wire_server(tmp_path) as wire, wire.client() as client:
        for value in (float("nan"), float("inf"), deep, [0] * 30_000):
            async with asyncio.timeout(HANG):
                with pytest.raises(ProtocolError):
                    await client.call("recall", {"query": value})
        assert (await client.hello())["pid"]


async def test_a_client_that_nobody_closed_ends_with_its_program(tmp_path: Path) -> None:
    """Nothing is written on stderr when the interpreter closes it."""
    program = (
        "import sys; from batos import Client; from batos.client.line import Patience;"
        f" client = Client(sys.argv[1], patience=Patience(*[{HANG}] * 4)); client.hello()"
    )
    async with wire_server(tmp_path) as wire:
        addresses.write_record(tmp_path, note_of(wire))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, str(tmp_path), stderr=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(HANG):
            _, told = await process.communicate()
        assert (process.returncode, told.decode()) == (0, "")
