"""Heads read by hand: what is plain is read as h11 reads it, and everything else is left to it."""

from __future__ import annotations

import asyncio
import re

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.emulator.clients import Client

from batos.emulator.http import heads

BASE = b"POST /api/chat?x=1 HTTP/1.1\r\nHost: localhost\r\nX-More:  a b \r\nContent-Length: 2\r\n\r\n"
LINES = [
    b"Host: localhost",
    b"host:127.0.0.1:11434",
    b"Content-Length: 2",
    b"Content-Length: 02",
    b"Content-Length: +2",
    b"Content-Length: 2, 2",
    b"Content-Length: 99999999999999999999",
    b"Transfer-Encoding: chunked",
    b"Expect: 100-continue",
    b"Connection: close",
    b"Connection: Keep-Alive",
    b"Upgrade: h2c",
    b"X-Bad Name: y",
    b"X-Fold: a",
    b" folded",
    b"X-Zero: a\0b",
    b"X-Latin: caf\xe9",
    b"Accept: */*",
    b": none",
    b"NoColon",
]


def test_a_plain_head() -> None:
    """Names in lower case, values without blanks around them, the path without its query."""
    head = heads.plain(BASE + b"{}")
    assert head is not None
    assert (head.method, head.path, head.length, head.size) == ("POST", "/api/chat", 2, len(BASE))
    assert head.headers == {"host": "localhost", "x-more": "a b", "content-length": "2"}


@pytest.mark.parametrize(
    "data",
    [
        BASE[:-1],
        BASE.replace(b"HTTP/1.1", b"HTTP/1.0"),
        BASE.replace(b"Host: localhost\r\n", b""),
        BASE.replace(b"X-More", b"HOST"),
        BASE.replace(b"X-More:  a b", b"Connection: close"),
        BASE.replace(b"X-More:  a b", b"Transfer-Encoding: chunked"),
        BASE.replace(b"X-More:  a b", b"Expect: 100-continue"),
        BASE.replace(b"Length: 2", b"Length: -2"),
        BASE.replace(b"\r\n", b"\n"),
        BASE.replace(b"POST", b"PATCH"),
        BASE.replace(b"X-More:  a b", b"X-More: " + b"y" * 40_000),
    ],
)
def test_what_is_not_plain(data: bytes) -> None:
    """Half a head, an old version, no host, a header twice, another framing, a sign, bare line feeds, too long."""
    assert heads.plain(data) is None


@given(
    st.sampled_from([b"GET", b"POST", b"HEAD", b"DELETE", b"get", b"OPTIONS"]),
    st.sampled_from([b"/", b"/api/chat", b"/a b", b"*", b"/caf\xe9", b"http://x/"]),
    st.lists(st.sampled_from(LINES), max_size=6),
)
def test_what_is_plain_is_what_h11_reads(method: bytes, target: bytes, lines: list[bytes]) -> None:
    """The same method, target, headers and length; what h11 refuses is never plain."""
    data = b"%b %b HTTP/1.1\r\n%b\r\n" % (method, target, b"".join(line + b"\r\n" for line in lines))
    head = heads.plain(data)
    if head is None:
        return
    wire = h11.Connection(h11.SERVER)
    wire.receive_data(data)
    event = wire.next_event()
    assert isinstance(event, h11.Request)
    assert (event.method.decode(), event.target.decode()) == (head.method, head.path)
    assert {name.decode(): value.decode("latin-1") for name, value in event.headers} == head.headers
    following = wire.next_event()
    assert (following is h11.NEED_DATA) == (head.length > 0)


@pytest.mark.parametrize(
    "request_head",
    [b"GET /api/version", b"HEAD /api/version", b"GET /nowhere", b"HEAD /", b"GET /api/tags", b"DELETE /api/chat"],
)
async def test_both_ways_answer_alike(client: Client, request_head: bytes) -> None:
    """Byte by byte but for the date and the word that the connection ends."""
    host, _, port = client.url.removeprefix("http://").partition(":")
    found = []
    for more in (b"", b"Connection: close\r\n"):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(request_head + b" HTTP/1.1\r\nHost: localhost\r\n" + more + b"\r\n")
        data = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"Content-Length: (\d+)", data)
        if length and not request_head.startswith(b"HEAD"):
            data += await reader.readexactly(int(length[1]))
        elif b"chunked" in data and not request_head.startswith(b"HEAD"):
            data += await reader.readuntil(b"0\r\n\r\n")
        writer.close()
        found.append(re.sub(rb"Date: [^\r]*\r\n", b"", data).replace(b"Connection: close\r\n", b""))
    assert found[0] == found[1]


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
