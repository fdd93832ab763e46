"""Who may speak: the token on loopback, keys elsewhere, and what revoking does to those who are connected."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import zmq
from tests.cli.wire_server import ANY, HASTY, WireServer, eventually, wire_server
from tests.waiting import HANG

from batos.client.clients import AsyncClient
from batos.client.keys import Credentials, KeyFile, setting_address
from batos.client.server_connection import ServerConnection
from batos.protocol.errors import Busy, NoServer, Unauthorised
from batos.protocol.event_payloads import TXN_COMMIT, TransactionCommit
from batos.server.zmq.server import ServerLimits

#: Beyond loopback, as far as the server can know; this machine reaches it all the same.
EVERYWHERE = "tcp://0.0.0.0:*"


def key_of(wire: WireServer, name: str) -> KeyFile:
    return wire.ring.new(name, wire.places.bind.near)


def by(key: KeyFile) -> AsyncClient:
    return AsyncClient.by(key.endpoint, key.credentials, HASTY)


async def test_a_key_lets_its_client_in_through_a_file(tmp_path: Path) -> None:
    """Beyond loopback the key file is all that a client needs: addresses, the server's key, its own."""
    async with wire_server(tmp_path, bind=EVERYWHERE, events=EVERYWHERE) as wire:
        assert (wire.places.bind_by, wire.places.events_by) == ("curve", "curve")
        file = tmp_path / "laptop.json"
        file.write_text(key_of(wire, "laptop").text(), encoding="utf-8")
        assert setting_address(str(file), tmp_path).endpoint == wire.places.bind.near
        async with AsyncClient(tmp_path, patience=HASTY, server=str(file)) as client:
            assert (await client.ask("why?"))["status"] == "done"


@pytest.mark.parametrize("bind", [ANY, EVERYWHERE])
@pytest.mark.parametrize("kind", ["nothing", "token", "wrong token", "other key", "other server"])
async def test_nobody_else_comes_in(tmp_path: Path, bind: str, kind: str) -> None:
    """Without what the socket asks for there is an error at once, on either kind of socket."""
    async with wire_server(tmp_path, bind=bind) as wire:
        other = wire.ring.new("other", "")
        wire.ring.revoke("other")
        known = key_of(wire, "known")
        shown = {
            "nothing": None,
            "token": wire.credentials if bind == EVERYWHERE else Credentials(token="x"),
            "wrong token": Credentials(token="x" * 200),
            "other key": other.credentials,
            "other server": Credentials(pair=known.credentials.pair, server=other.public),
        }[kind]
        if shown is None:
            await _bare(wire)
            return
        with pytest.raises(Unauthorised) as refused:
            async with AsyncClient.by(wire.places.bind.near, shown, HASTY):
                pass
        assert refused.value.remedy


async def _bare(wire: WireServer) -> None:
    """The server breaks off the handshake of whoever shows nothing, and answers nothing."""
    context = zmq.asyncio.Context()
    with context.socket(zmq.DEALER) as socket:
        socket.linger = 0
        monitor = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL)
        socket.connect(wire.places.bind.near)
        await socket.send(b'{"v":1,"id":"1","verb":"hello"}')
        assert await asyncio.wait_for(monitor.recv_multipart(), HANG)
        assert not await socket.poll(0)
        socket.disable_monitor()
        monitor.close(linger=0)
    context.term()


async def test_a_revoked_key_is_shut_out_at_once(tmp_path: Path) -> None:
    """Who is connected by it is refused at the next request, and what it follows ends; others notice nothing."""
    async with wire_server(tmp_path, bind=EVERYWHERE, events=EVERYWHERE) as wire:
        wire.mind.prompt = False
        out, stays = key_of(wire, "out"), key_of(wire, "stays")
        async with by(out) as revoked, by(stays) as kept:
            asked = asyncio.create_task(revoked.ask("why?"))
            await eventually(lambda: wire.mind.found)
            waits = asyncio.create_task(kept.ask("and why?"))
            await eventually(lambda: wire.server.under_way == 2)
            wire.ring.revoke("out")
            with pytest.raises(Unauthorised):
                await revoked.hello()
            await eventually(lambda: wire.server.under_way == 1)
            for mission in wire.mind.found:
                wire.mind.finish(mission)
            assert (await waits)["status"] == "done"
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
        with pytest.raises(Unauthorised):
            async with by(out):
                pass


async def test_a_guest_keeps_nobody_out_over_many_connections(tmp_path: Path) -> None:
    """Beyond its share the guest is busy on a new connection too, and the home is answered."""
    limits = ServerLimits(total=8, look=0.005)
    async with wire_server(tmp_path, bind=EVERYWHERE, limits=limits) as wire, AsyncExitStack() as until_end:
        wire.mind.prompt = False
        own = Credentials(pair=wire.ring.own(), server=wire.ring.server().public)
        key = key_of(wire, "laptop")
        guests = [await until_end.enter_async_context(by(key)) for _ in range(3)]
        asked = [asyncio.create_task(each.ask("why?")) for each in guests[:2]]
        await eventually(lambda: wire.server.under_way == 2)
        with pytest.raises(Busy):
            await guests[2].hello()
        async with AsyncClient.by(wire.places.bind.near, own, HASTY) as home:
            assert (await home.hello())["batos"]
        for mission in wire.mind.found:
            wire.mind.finish(mission)
        assert {(await each)["status"] for each in asked} == {"done"}
        assert (await guests[2].hello())["batos"]


@asynccontextmanager
async def watched(at: str, credentials: Credentials) -> AsyncIterator[list[bytes]]:
    """Topics that a bare watcher of everything has heard so far."""
    heard: list[bytes] = []

    async def watch() -> None:
        while True:
            heard.append((await socket.recv_multipart())[0])

    context = zmq.asyncio.Context()
    with context.socket(zmq.SUB) as socket:
        socket.linger = 0
        credentials.apply(socket)
        socket.subscribe(b"")
        socket.connect(at)
        watching = asyncio.create_task(watch())
        try:
            yield heard
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
    context.term()


def tell(wire: WireServer, heard: list[bytes], more: int = 1) -> Callable[[], bool]:
    """A condition that lets things happen until so much more was heard."""
    wanted = len(heard) + more

    def told() -> bool:
        wire.mind.events.emit(TXN_COMMIT, TransactionCommit(what="image", seconds=0.1))
        return len(heard) >= wanted

    return told


async def test_a_watcher_by_an_old_token_hears_nothing_more(tmp_path: Path) -> None:
    """Watchers have to come in anew when the token was renewed; those who show the new one hear."""
    async with wire_server(tmp_path) as wire, watched(str(wire.places.events), wire.credentials) as out:
        await eventually(tell(wire, out))
        wire.ring.renew_token()
        async with watched(str(wire.places.events), wire.credentials) as stays, asyncio.timeout(HANG):
            while True:
                before = len(out)
                await eventually(tell(wire, stays, 3))
                if len(out) == before:
                    break


async def test_only_the_home_watches(tmp_path: Path) -> None:
    """By a guest's key nobody comes in where everybody's missions are told, nor as a bare socket; the home does."""
    async with wire_server(tmp_path, bind=EVERYWHERE, events=EVERYWHERE) as wire:
        own = Credentials(pair=wire.ring.own(), server=wire.ring.server().public)
        guest, at = key_of(wire, "laptop").credentials, wire.places.events.near
        async with watched(at, guest) as shut_out, watched(at, own) as heard:
            await eventually(tell(wire, heard, 20))
            assert not shut_out
        context = zmq.asyncio.Context()
        with pytest.raises(Unauthorised):
            await ServerConnection.open(context, zmq.SUB, at, guest, HANG, lambda socket: socket.subscribe(b""))
        context.term()


async def test_a_new_token_shuts_out_the_old_one(tmp_path: Path) -> None:
    """Who came in by the old one is refused; the home's clients read the new one."""
    async with wire_server(tmp_path) as wire:
        old = wire.credentials
        async with wire.client() as client:
            wire.ring.renew_token()
            with pytest.raises(Unauthorised):
                await client.hello()
        with pytest.raises(Unauthorised):
            async with AsyncClient.by(str(wire.places.bind), old, HASTY):
                pass
        async with wire.client() as client:
            assert (await client.hello())["batos"]


async def test_the_gate_outlives_broken_key_files(tmp_path: Path) -> None:
    """A file in the keys' folder that is none lets nobody in and keeps nobody out."""
    async with wire_server(tmp_path, bind=EVERYWHERE) as wire:
        key = key_of(wire, "good")
        for name, text in (("broken", "{"), ("list", "[]"), ("half", '{"public": 3}')):
            (tmp_path / "keys" / "clients" / f"{name}.json").write_text(text, encoding="utf-8")
        async with by(key) as client:
            assert (await client.hello())["batos"]


async def test_the_server_of_another_home_is_not_ours(tmp_path: Path) -> None:
    """Its token is another one, and nothing is told to it but that."""
    async with wire_server(tmp_path / "a") as wire, wire_server(tmp_path / "b") as other:
        with pytest.raises((Unauthorised, NoServer)):
            async with AsyncClient.by(str(wire.places.bind), other.credentials, HASTY):
                pass
