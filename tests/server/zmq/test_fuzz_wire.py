"""Whatever comes over the wire harms nothing: one live server, hundreds of wrong, rude and vanishing peers."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import zmq
from hypothesis import HealthCheck, settings
from hypothesis import given as given_
from hypothesis import strategies as st
from tests.waiting import HANG, wait_until

from batos.client.addresses import parse_listening
from batos.client.keys import Credentials, Keyring
from batos.loopwatch import WatchedLoop
from batos.server.dispatch.dispatcher import Dispatcher
from batos.server.dispatch.uploads import Uploads
from batos.server.zmq.server import Server, ServerLimits
from batos.testing import ScriptedBridge, scripted_uvm
from batos.verbs.all_verbs import VERBS

ANY = "tcp://127.0.0.1:*"
LIMITS = ServerLimits(beat=0.2, look=0.02)
#: Growth of the process that no leak explains: an image in memory keeps every mission that is accepted.
SPARE, A_MISSION = 64 * 2**20, 128 * 2**10


class Live:
    """A server in a thread of this process, and one good client of it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.loop = WatchedLoop()
        self.server: Server
        self.endpoint = ""
        self._up, self._stop = threading.Event(), asyncio.Event()
        self._thread = threading.Thread(target=self._run)
        self._context = zmq.Context()
        self._count = 0

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        async with scripted_uvm(self.home, ScriptedBridge()) as uvm:
            dispatcher = Dispatcher(uvm, Uploads(self.home / "uploads", 2**20))
            self.server = Server(dispatcher, Keyring(self.home), LIMITS)
            async with self.server.serving(parse_listening(ANY, "bind"), parse_listening(ANY, "events")) as places:
                self.endpoint = str(places.bind)
                self._up.set()
                await self._stop.wait()
                await uvm.workers.stop()

    def __enter__(self) -> Live:
        self._thread.start()
        wait_until(lambda: self._up.is_set() or not self._thread.is_alive(), "the server")
        assert self._up.is_set(), "the server's thread has ended; its error is on stderr"
        self.good = self.connected(self.token)
        return self

    def __exit__(self, *_: object) -> None:
        self.good.close(linger=0)
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(HANG)
        assert not self._thread.is_alive(), "the server does not end"
        self._context.destroy(linger=0)

    @property
    def token(self) -> str:
        return Keyring(self.home).token()

    def connected(self, token: str, kind: int = zmq.DEALER) -> zmq.Socket[bytes]:
        wire = self._context.socket(kind)
        wire.linger, wire.rcvtimeo, wire.sndtimeo = 0, round(1000 * HANG), round(1000 * HANG)
        Credentials(token=token).apply(wire)
        wire.connect(self.endpoint)
        return wire

    @contextmanager
    def peer(self, kind: int = zmq.DEALER) -> Iterator[zmq.Socket[bytes]]:
        with closing(self.connected(self.token, kind)) as wire:
            yield wire

    def answers(self, verb: str = "missions", args: Any = None) -> dict[str, Any]:
        """A good request is answered."""
        self._count += 1
        name = f"good {self._count}"
        self.good.send(request(verb, {"limit": 1} if args is None else args, name))
        while True:
            reply = json.loads(self.good.recv())
            if reply["id"] == name and reply["kind"] != "event":
                assert reply["kind"] == "result", reply
                found: dict[str, Any] = reply["data"]
                return found


def request(verb: Any, args: Any, name: Any = "1", version: Any = 1) -> bytes:
    return json.dumps({"v": version, "id": name, "verb": verb, "args": args}).encode()


def nested(depth: int) -> bytes:
    """A request whose arguments nest so deep."""
    return request("submit", {}).replace(b"{}", b'{"a":' * depth + b"1" + b"}" * depth)


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


# -- what peers do: each act is a function of the live server

Act = Callable[[Live], None]

anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
verbs = st.sampled_from([*VERBS]) | st.text(max_size=12)
fields = st.sampled_from(sorted({name for verb in VERBS.values() for name in verb.args.model_fields}))
arguments = st.dictionaries(fields, anything | st.sampled_from(["last", 1, "0" * 64, {"text": "x"}]), max_size=4)


def says(frames: list[bytes], kind: int = zmq.DEALER) -> Act:
    """Send frames and read what comes at once, if anything does."""

    def act(live: Live) -> None:
        with live.peer(kind) as wire:
            wire.send_multipart(frames)
            if wire.poll(5):
                wire.recv_multipart()

    return act


def vanishes(frames: list[bytes], times: int) -> Act:
    """Send the same again and again, read nothing, and be gone."""

    def act(live: Live) -> None:
        with live.peer() as wire:
            wire.rcvhwm = 1
            for number in range(times):
                wire.send_multipart([*frames[:-1], frames[-1].replace(b'"1"', f'"{number}"'.encode(), 1)])
            wire.poll(2)

    return act


def breaks_off(data: bytes) -> Act:
    """Speak bytes over a bare connection, and break off."""

    def act(live: Live) -> None:
        host, _, port = live.endpoint.removeprefix("tcp://").rpartition(":")
        with socket.create_connection((host, int(port)), HANG) as wire:
            wire.sendall(data)

    return act


def is_nobody(token: str) -> Act:
    """Show a token that is none, and ask."""

    def act(live: Live) -> None:
        with closing(live.connected(token)) as wire:
            with suppress(zmq.Again):  # it may have been turned away already
                wire.send(request("hello", {}), zmq.DONTWAIT)
            assert not wire.poll(10), "a peer without the token was answered"

    return act


greeting = b"\xff" + b"\0" * 8 + b"\x7f\x03\x01" + b"PLAIN".ljust(20, b"\0") + b"\0" * 32
hello = b"\x04\x14\x05HELLO\x05batos\x07nothing"
wait = request("wait", {"mission": "last", "follow": True})
show = request("show", {"mission": "last", "prompts": True})
follow = request("submit", {"brief": {"text": "why?"}, "follow": True})
some_bytes = st.lists(st.binary(max_size=60), min_size=1, max_size=6)
sizes = st.sampled_from([2**20 - 2, 2**20, 2**20 + 1, 2**21, 2**21 + 1, 2**22])
acts: st.SearchStrategy[Act] = st.one_of(
    some_bytes.map(says),
    some_bytes.map(lambda frames: says(frames, zmq.REQ)),
    st.builds(request, verbs, anything | arguments, anything, st.just(1) | anything).map(lambda data: says([data])),
    st.builds(request, verbs, arguments).map(lambda data: says([b"", data])),
    st.builds(request, st.sampled_from([*VERBS]), arguments).map(lambda data: says([data], zmq.REQ)),
    st.integers(1, 2_000).map(lambda depth: says([b"[" * depth + b"]" * depth])),
    st.integers(1, 300).map(
        lambda depth: says([request("submit", {}).replace(b"{}", b'{"a":' * depth + b"1" + b"}" * depth)])
    ),
    sizes.map(lambda size: says([b'"' + b"x" * size + b'"'])),
    st.integers(1, 40_000).map(lambda count: says([b"[" + b"{}," * count + b"{}]"])),
    st.builds(vanishes, st.just([follow]), st.integers(1, 4)),
    st.builds(vanishes, st.just([wait]), st.integers(1, 100)),
    st.builds(vanishes, st.just([show]), st.integers(1, 80)),
    st.builds(vanishes, st.just([b"{"]), st.integers(1, 200)),
    st.integers(0, len(greeting + hello)).map(lambda cut: breaks_off((greeting + hello)[:cut])),
    st.binary(max_size=200).map(breaks_off),
    st.binary(max_size=100).map(lambda rest: breaks_off(greeting + rest)),
    st.text(st.characters(codec="ascii"), min_size=1, max_size=60).map(is_nobody),
)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """One server for all examples."""
    home = tmp_path_factory.mktemp("fuzz") / "home"
    home.mkdir()
    with Live(home) as running:
        yield running


def test_nothing_that_comes_over_the_wire_harms_the_server(live: Live) -> None:
    """After whatever peers do, a good request is answered, nothing stays under way, memory does not grow."""

    @settings(
        max_examples=max(200, settings.default.max_examples if settings.default else 0),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given_(st.lists(acts, min_size=1, max_size=2))
    def harmless(what: list[Act]) -> None:
        for act in what:
            act(live)
        live.answers()

    # What is the most that is under way at once takes its room for good; that is no growth.
    for warming in (vanishes([follow], 4), vanishes([wait], 100), vanishes([show], 80), says([b"x" * 2**22])) * 10:
        warming(live)
    live.answers()
    before = resident()
    harmless()
    tally = live.answers("status", {})["missions"]
    grown = resident() - before
    assert grown < SPARE + A_MISSION * sum(tally.values()), f"{grown} bytes after {tally}"
    _settled(live)
    assert not live.loop.blocked, live.loop.blocked


def _settled(live: Live) -> None:
    """Peers that vanished are forgotten within a few beats."""
    wait_until(lambda: live.server.under_way == 0 and live.server.waiting_bytes == 0, "the end of all requests")
