"""The door's life: clients that leave, that read nothing, that send half a request; limits; the end of a server."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.server.http.conftest import ASKED, OpenDoor, copied_door
from tests.waiting import HANG, wait_until

from batos.client.keys import Keyring
from batos.protocol.errors import Busy
from batos.server.dispatch.dispatcher import Dispatcher
from batos.server.dispatch.uploads import Uploads
from batos.server.http.citation_marks import LineNumbers
from batos.server.http.client_missions import Following, Inbox, StreamItem
from batos.server.http.connections import DoorLimits
from batos.server.http.http_door import HttpDoor
from ollama_emulator.emulator import Options

SLOW = Options(tok_s=4)
STREAM = {"model": "batos:reflex", "messages": [ASKED], "stream": True}
POSTS = [
    "/v1/chat/completions", "/v1/responses", "/v1/embeddings", "/api/chat", "/api/generate", "/api/show", "/api/embed",
    "/api/embeddings", "/api/pull", "/api/create",
]  # fmt: skip


@pytest.fixture(scope="module")
def slow(grown_door_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenDoor]:
    """A door whose model takes its time."""
    with copied_door(grown_door_home, tmp_path_factory.mktemp("slow"), SLOW) as found:
        yield found


def connect(door: OpenDoor) -> socket.socket:
    host, port = door.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=HANG)


def head(door: OpenDoor, path: str = "/v1/chat/completions", method: str = "POST", **more: object) -> bytes:
    told = {"host": "127.0.0.1", "authorization": f"Bearer {door.token}", **more}
    lines_of = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in told.items())
    return f"{method} {path} HTTP/1.1\r\n{lines_of}\r\n".encode()


def all_of(line: socket.socket) -> bytes:
    reply = b""
    while piece := line.recv(65_536):
        reply += piece
    return reply


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/chat"])
@pytest.mark.parametrize("streams", [True, False])
def test_who_leaves_cancels_the_mission(slow: OpenDoor, path: str, streams: bool) -> None:
    """At the first frame or while a whole reply is waited for: its paid calls stay in the journal."""
    known = {each["id"] for each in slow.missions(limit=100)}

    def begun() -> list[str]:
        return [each["id"] for each in slow.missions(limit=100) if each["id"] not in known]

    body = json.dumps({**STREAM, "stream": streams}).encode()
    with connect(slow) as line:
        line.sendall(head(slow, path, content_length=len(body)) + body)
        (mission,) = wait_until(begun, "the mission")
        if streams:
            assert b"200 OK" in line.recv(4_096)
    wait_until(lambda: slow.mission(mission)["status"] == "cancelled", "the mission's end")


def test_who_leaves_may_have_it_finished(grown_door_home: Path, tmp_path: Path) -> None:
    """By a setting, for those who come back for the answer."""
    with copied_door(grown_door_home, tmp_path, Options(tok_s=200), on_disconnect="finish") as door:
        with door.client() as client, client.stream("POST", "/v1/chat/completions", json=STREAM) as reply:
            mission = reply.headers["x-batos-mission"]
        wait_until(lambda: door.mission(mission)["status"] == "done", "the answer")


def test_fifty_silent_streams_hold_up_no_end(grown_door_home: Path, tmp_path: Path) -> None:
    """Each is told that the server stops, and ends; their missions are kept for the next server."""
    body = json.dumps({**STREAM, "model": "batos"}).encode()
    with copied_door(grown_door_home, tmp_path, Options(tok_s=0.05)) as door:
        lines_open = [connect(door) for _ in range(50)]
        for line in lines_open:
            line.sendall(head(door, content_length=len(body)) + body)
        assert all(b"200 OK" in line.recv(4_096) for line in lines_open)
        mind = door.mind
        door.portal.run(mind.workers.stop)
        began = time.monotonic()
    took = time.monotonic() - began
    told = [all_of(line) for line in lines_open]
    for line in lines_open:
        line.close()
    assert all(b'"code":"no_server"' in each and each.endswith(b"0\r\n\r\n") for each in told)
    assert took < HANG  # how long is measured in bench/faces.py


def test_a_beat_comes_in_silence(grown_door_home: Path, tmp_path: Path) -> None:
    """In each form: a comment, an object without a text; nothing that ends a reader of lines."""

    async def beats() -> list[StreamItem]:
        following = Following(0.01, LineNumbers(door.mind.image))
        following.work = asyncio.get_running_loop().create_future()
        told = []
        async for each in following.follow():
            told.append(each)
            if len(told) == 3:
                following.work.set_result({})
        return told

    with copied_door(grown_door_home, tmp_path) as door:
        assert [each.kind for each in door.portal.run(beats)] == ["beat"] * 3


TOLD = [StreamItem("word", "a"), StreamItem("word", "b"), StreamItem("progress", "p"), StreamItem("retracted")]


@given(st.lists(st.sampled_from(TOLD)))
def test_a_slow_reader_gets_all_words_in_few_pieces(told: list[StreamItem]) -> None:
    """Words in a row are joined, nothing is lost, and the order of the rest stays."""

    async def taken() -> list[StreamItem]:
        inbox = Inbox()
        for each in told:
            inbox.put(each)
        return list(iter(inbox.take, None))

    found = asyncio.run(taken())
    assert "".join(each.text for each in found) == "".join(each.text for each in told)
    assert [each for each in found if each.kind != "word"] == [each for each in told if each.kind != "word"]
    assert all(one.kind != "word" or other.kind != "word" for one, other in pairwise(found))


def test_a_client_that_reads_nothing_stops_nobody(slow: OpenDoor) -> None:
    """Others are answered meanwhile."""
    body = json.dumps(STREAM).encode()
    with connect(slow) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        line.sendall(head(slow, content_length=len(body)) + body)
        with slow.client() as client:
            assert all(client.get("/api/tags").status_code == 200 for _ in range(20))


def test_what_is_too_much_is_refused(door: OpenDoor) -> None:
    """A long body, long heads, ten thousand headers, values and depths, in the form of the path."""
    with door.client() as client:
        assert client.post("/v1/chat/completions", content=b"x" * (2**20 + 1)).status_code == 413
        assert client.post("/api/chat", content=b"[" * 5_000).status_code == 400
        assert client.post("/api/chat", content=b'{"a":[' + b"1," * 30_000 + b"1]}").status_code == 400
    many = b"".join(b"x-%d: 1\r\n" % number for number in range(10_000))
    with connect(door) as line:
        line.sendall(b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n" + many + b"\r\n")
        assert b"431" in all_of(line)[:16]
    with connect(door) as line:
        line.sendall(b"\x00\x01nonsense\r\n\r\n")
        assert b"400" in all_of(line)[:16]
    chunked = head(door, transfer_encoding="chunked") + b"zz\r\n"
    with connect(door) as line:
        line.sendall(chunked)
        assert b"400" in all_of(line)[:16]


def test_half_a_request_is_cut_off(grown_door_home: Path, tmp_path: Path) -> None:
    """So is a connection that never sends one."""

    async def ends(door: OpenDoor) -> list[bytes]:
        mind = door.mind
        limits = DoorLimits(request=0.1, look=0.02)
        dispatcher = Dispatcher(mind, Uploads(door.home / "other", 2**20), works=False)
        other = HttpDoor(dispatcher, Keyring(door.home), mind.settings, limits)
        found = []
        async with other.serving() as url:
            host, port = url.removeprefix("http://").split(":")
            for sent in (b"", b"GET / HT", head(door, content_length=10) + b"abc"):
                reader, writer = await asyncio.open_connection(host, int(port))
                writer.write(sent)
                found.append(await reader.read())
                writer.close()
        return found

    with copied_door(grown_door_home, tmp_path) as door:
        assert door.portal.run(ends, door) == [b"", b"", b""]


def test_a_client_has_so_many_requests_at_once(slow: OpenDoor) -> None:
    """A guest a quarter; then it is told when to come again, and nothing was begun."""
    guest = Keyring(slow.home).new("many", "tcp://127.0.0.1:1").http_key
    body = json.dumps(STREAM).encode()
    streams = [connect(slow) for _ in range(DoorLimits().requests // 4)]
    for line in streams:
        line.sendall(head(slow, content_length=len(body), authorization=f"Bearer {guest}") + body)
    for line in streams:
        assert b"200 OK" in line.recv(4_096)
    refused = slow.chat(ASKED, key=guest)
    for line in streams:
        line.close()
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "2")
    assert refused.json()["error"]["code"] == Busy.code


def test_a_retry_with_a_key_is_the_same_mission(door: OpenDoor) -> None:
    """The header that clients of OpenAI know; an accepted mission's error says not to ask again."""
    with door.client(**{"idempotency-key": "once"}) as client:
        body = {"model": "batos:reflex", "messages": [{"role": "user", "content": "What is hail?"}]}
        names = {client.post("/v1/chat/completions", json=body).json()["batos"]["mission"] for _ in range(2)}
    assert len(names) == 1
    with door.saying("no"):
        form = {"type": "json_schema", "json_schema": {"schema": {"type": "object", "required": ["a"]}}}
        failed = door.chat({"role": "user", "content": "What is sleet?"}, response_format=form)
    assert failed.headers["x-should-retry"] == "false"
    assert failed.status_code >= 400


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
fields = st.sampled_from(
    "model messages stream input prompt options format response_format temperature seed n tools name text think "
    "max_tokens keep_alive previous_response_id background stream_options system suffix instructions".split()
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(POSTS), st.dictionaries(fields, json_values, max_size=5) | json_values)
def test_no_body_is_a_fault_of_ours(door: OpenDoor, path: str, body: Any) -> None:
    """Whatever is sent is answered by what it is: never 500, never a hang, in the form of the path."""
    content = json.dumps(body).encode("utf-8", "surrogatepass")
    with door.client() as client:
        reply = client.post(path, content=content)
    assert reply.status_code < 500, reply.text
    if reply.status_code >= 400:
        assert set(reply.json()) == {"error"}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"]),
    st.text(st.sampled_from("/apiv1mkeytgs%.?#é"), max_size=16),
    st.binary(max_size=40),
)
def test_no_path_is_a_fault_of_ours(door: OpenDoor, method: str, path: str, body: bytes) -> None:
    """With and without a key."""
    for client in (door.client(), httpx.Client(base_url=door.url)):
        with client:
            reply = client.request(method, f"/{path}", content=body)
        assert reply.status_code in {200, 204, 400, 401, 403, 404, 405}, reply.text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.binary(max_size=200))
def test_no_bytes_stop_the_door(door: OpenDoor, data: bytes) -> None:
    """What is no HTTP is refused or cut off."""
    with connect(door) as line:
        line.sendall(data)
        line.shutdown(socket.SHUT_WR)
        all_of(line)
    assert httpx.get(f"{door.url}/healthz").status_code == 200
