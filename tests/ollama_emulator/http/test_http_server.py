"""The server's bounds: what is no HTTP, what is too large, who leaves, what is kept alive."""

from __future__ import annotations

import asyncio
import hashlib
import json
from contextlib import suppress

import pytest
from tests.ollama_emulator.clients import CHAT_MODEL, Client, Start
from tests.waiting import HANG, a_moment, until

from ollama_emulator.http.incoming import HttpLimits


async def _raw(client: Client, data: bytes) -> bytes:
    """Everything that comes back for these bytes, until the server closes."""
    host, _, port = client.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data)
    try:
        async with asyncio.timeout(HANG):
            return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


@pytest.mark.parametrize(
    "data",
    [
        b"what is this\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST /api/chat HTTP/1.1\r\nHost: x\r\nContent-Length: many\r\n\r\n",
        b"POST /api/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
        b"POST /api/chat HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)
async def test_what_is_not_http_is_refused(client: Client, data: bytes) -> None:
    """400 and the end of the connection; the next client is served."""
    assert (await _raw(client, data + b"\r\n\r\n")).startswith(b"HTTP/1.1 400 ")
    assert (await client.http.get("/")).text == "Ollama is running"


async def test_headers_are_bounded(client: Client) -> None:
    """A request head without end is refused, not stored."""
    reply = await _raw(client, b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X-More: y\r\n" * 10_000)
    assert reply.startswith(b"HTTP/1.1 431 ")


async def test_bodies_are_bounded(start: Start) -> None:
    """A JSON body over the limit is refused with 413."""
    async with start(limits=HttpLimits(body=1000)) as client:
        assert (await client.http.post("/api/chat", content=b" " * 1001)).status_code == 413
        assert (await client.http.post("/api/chat", content=b"{}")).status_code == 400


async def test_connections_are_bounded(start: Start) -> None:
    """One more than allowed is dropped; when one leaves there is room again."""
    async with start(limits=HttpLimits(connections=1)) as client:
        await client.http.get("/")
        assert await _raw(client, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") == b""
        await client.http.aclose()
        await until(lambda: not client.emulator.connections)
        assert b"running" in await _raw(client, b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")


async def test_a_request_that_is_never_finished_is_dropped(start: Start) -> None:
    """Who begins a request has to send it within a time."""
    async with start(limits=HttpLimits(request_seconds=0.2)) as client:  # any pace: the request never ends
        assert await _raw(client, b"POST /api/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{") == b""


async def test_requests_sent_ahead_are_answered_in_order(client: Client) -> None:
    """Three requests in one packet, the last closing the connection."""
    one = b"GET /api/version HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    reply = await _raw(client, one + one + last)
    assert reply.count(b"HTTP/1.1 200 OK") == 3
    assert reply.endswith(b"Ollama is running")


async def test_who_expects_to_be_told_is_told_to_continue(client: Client) -> None:
    """Expect: 100-continue gets its 100 before the body."""
    head = b"POST /api/show HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nConnection: close\r\n"
    reply = await _raw(client, head + b"Expect: 100-continue\r\n\r\n{}")
    assert reply.startswith(b"HTTP/1.1 100 ")
    assert b"HTTP/1.1 400 Bad Request" in reply


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("localhost", 200), ("127.0.0.1:80", 200), ("[::1]:11434", 200), ("10.1.2.3", 200), ("box.local", 200),
        ("evil.example.com", 403), ("93.184.216.34", 403),
    ],
)  # fmt: skip
async def test_only_a_local_host_is_answered(client: Client, host: str, code: int) -> None:
    """A name from elsewhere (a page that rebinds its name to this machine) gets an empty 403."""
    reply = await client.http.get("/api/tags", headers={"host": host})
    assert reply.status_code == code
    assert code == 200 or reply.content == b""


async def test_a_client_that_leaves_frees_its_request(start: Start) -> None:
    """The handler of a stalled stream ends when its connection does."""
    async with start(control=True) as client:
        client.emulator.faults.add({"do": "stall", "seconds": 600})
        asked = asyncio.create_task(client.chat())
        await until(lambda: any(runner.refs for runner in client.emulator.scheduler.runners.values()) or asked.done())
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        await until(lambda: not any(runner.refs for runner in client.emulator.scheduler.runners.values()))


async def test_many_clients_at_once(client: Client) -> None:
    """Sixty-four questions on one runner are all answered, none with another's answer."""
    texts = [f"Where is lighthouse number {number}?" for number in range(64)]
    replies = await asyncio.gather(*(client.chat(text) for text in texts))
    assert all(text in reply["message"]["content"] for text, reply in zip(texts, replies, strict=True))


async def test_a_reply_of_many_bytes_arrives_whole(client: Client) -> None:
    """Replies over two kilobytes go in chunks, as the daemon sends them."""
    small = await client.post("/api/show", model=CHAT_MODEL)
    assert int(small.headers["content-length"]) == len(small.content) <= 2048
    await client.lines("/api/create", model="long", **{"from": CHAT_MODEL, "system": "long " * 1000})
    large = await client.post("/api/show", model="long")
    assert large.headers["transfer-encoding"] == "chunked"
    assert json.loads(large.content)["system"] == "long " * 1000


async def test_all_bodies_share_one_room(start: Start) -> None:
    """Half-sent bodies of many clients are held up to a bound, beyond it there is 503; who leaves makes room."""
    head = b"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n"
    async with start(limits=HttpLimits(bodies=1500)) as client:
        host, _, port = client.url.removeprefix("http://").partition(":")
        _, half = await asyncio.open_connection(host, int(port))
        half.write(head + b" " * 900)
        await until(lambda: client.emulator.body_bytes == 900)
        assert (await client.http.post("/api/chat", content=b" " * 601)).status_code == 503
        assert (await client.http.post("/api/chat", content=b" " * 600)).status_code == 400
        half.close()
        await until(lambda: client.emulator.body_bytes == 0)
        assert (await client.http.post("/api/chat", content=b" " * 1500)).status_code == 400
        assert client.emulator.body_bytes == 0


@pytest.mark.parametrize("number", [b"9" * 5000, b"-" + b"9" * 5000, b"1e400", b"1" + b"0" * 400])
async def test_numbers_beyond_gos_are_refused(client: Client, number: bytes) -> None:
    """What no float64 holds is a 400 in Go's words."""
    body = b'{"model":"llama3.2:3b","messages":[],"options":{"num_ctx":' + number + b"}}"
    reply = await client.http.post("/api/chat", content=body)
    assert reply.status_code == 400
    assert reply.json()["error"].startswith("json: cannot unmarshal number ")


@pytest.mark.parametrize(("more", "kept"), [(200_000, True), (2_000_000, False)])
async def test_a_body_that_nobody_wants_is_read_to_its_end_or_ends_the_connection(
    client: Client, more: int, kept: bool
) -> None:
    """Of an upload that is there already the rest is read, if it is not long; else the client is told of the end."""
    data = b"here already"
    path = f"/api/blobs/sha256:{hashlib.sha256(data).hexdigest()}"
    assert (await client.http.post(path, content=data)).status_code == 201
    host, _, port = client.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {more}\r\n\r\n".encode())
    writer.write(b"x" * (more // 2))
    if kept:
        await writer.drain()
        await a_moment()
        writer.write(b"x" * (more - more // 2) + b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert (b"connection: close" in head.lower()) != kept
    if kept:
        assert (await reader.readuntil(b"Ollama is running")).startswith(b"HTTP/1.1 200 ")
    else:
        with suppress(ConnectionResetError):  # what is on its way when the server closes is reset
            assert await reader.read() == b""
    writer.close()


@pytest.mark.parametrize("size", [1, 7, 60, 10_000])
async def test_a_request_may_come_in_pieces(client: Client, size: int) -> None:
    """Wherever it is cut, three requests in a row are answered in order."""
    body = b'{"model": "llama3.2:3b"}'
    one = b"POST /api/show HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    last = b"GET /api/version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    host, _, port = client.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    data = one + one + last
    for at in range(0, len(data), size):
        writer.write(data[at : at + size])
        await writer.drain()
        await asyncio.sleep(0)
    reply = await reader.read()
    writer.close()
    assert reply.count(b"HTTP/1.1 200 OK") == 3
    assert reply.endswith(b'{"version":"0.33.0"}')


async def _bytes(client: Client, request: str) -> bytes:
    """Everything that comes back for a request without a body, on a connection that ends with it."""
    host, _, port = client.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    data = await reader.read()
    writer.close()
    return data


@pytest.mark.parametrize(
    ("request_line", "length"),
    [("GET /api/version", b"20"), ("HEAD /api/version", b"20"), ("GET /nowhere", b"18"), ("HEAD /api/show", b"22")],
)
async def test_a_short_reply_names_its_length(client: Client, request_line: str, length: bytes) -> None:
    """A HEAD is told the length of what a GET would get, and gets no body."""
    head, _, body = (await _bytes(client, request_line)).partition(b"\r\n\r\n")
    assert b"Content-Length: " + length in head
    assert b"Transfer-Encoding" not in head
    assert len(body) == (0 if request_line.startswith("HEAD") else int(length))


async def test_a_head_of_nothing_has_no_framing(client: Client) -> None:
    """Go names neither a length nor chunks where the reply to a HEAD is empty."""
    data = b"a blob"
    path = f"/api/blobs/sha256:{hashlib.sha256(data).hexdigest()}"
    assert (await client.http.post(path, content=data)).status_code == 201
    head, _, body = (await _bytes(client, f"HEAD {path}")).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"content-length" not in head.lower()
    assert b"transfer-encoding" not in head.lower()
    assert body == b""
