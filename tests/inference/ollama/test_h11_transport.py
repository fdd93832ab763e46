"""Our HTTP/1.1 under the client, against written-down bytes cut at every place."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from warnings import catch_warnings, simplefilter

import httpx
import pytest
from tests.inference.raw_server import CLOSE, HOLD, RESET, RawServer, Step, reply, serving, streamed
from tests.waiting import HANG, until

from batos.inference.ollama.h11_transport import H11Transport


@pytest.fixture
async def lanes() -> AsyncIterator[H11Transport]:
    """Lanes, closed behind the test."""
    made = H11Transport()
    yield made
    await made.aclose()


async def _get(lanes: H11Transport, server: RawServer, method: str = "GET", body: bytes = b"") -> bytes:
    request = httpx.Request(method, server.url, content=body or None, extensions={"timeout": {"connect": HANG}})
    response = await lanes.handle_async_request(request)
    return await response.aread()


async def _read(lanes: H11Transport, server: RawServer) -> bytes:
    request = httpx.Request("GET", server.url, extensions={"timeout": {"connect": HANG}})
    response = await lanes.handle_async_request(request)
    try:
        return await response.aread()
    finally:
        await response.aclose()


async def _all_idle_ended(lanes: H11Transport) -> None:
    """Wait until every connection at rest has heard that it is over."""
    await until(lambda: all(lane._over for lane in lanes._idle), "the end of idle connections")


async def test_a_reply_may_be_cut_anywhere(lanes: H11Transport) -> None:
    """Head, chunk sizes and body arrive byte by byte or in two parts, and the body is the same."""
    raw = streamed("a", "b")
    whole = b"".join(part for part in raw.partition(b"\r\n\r\n")[2].split(b"\r\n") if part.startswith(b"{"))
    scripts: list[list[Step]] = [[raw[:cut], 0.0, raw[cut:]] for cut in range(1, len(raw), 7)]
    scripts.append([raw[at : at + 1] for at in range(len(raw))])
    async with serving(*scripts) as server:
        for _ in scripts:
            assert await _read(lanes, server) == whole
    assert server.connections == 1


async def test_bodies_by_length_by_close_and_none(lanes: H11Transport) -> None:
    """A body ends by its length, by the connection's end where no length is given, and a HEAD has none."""
    by_close = b"HTTP/1.1 200 OK\r\n\r\nuntil the end"
    informed = b"HTTP/1.1 103 Early\r\n\r\n" + reply(b"late")
    headless = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"
    async with serving(reply(b"counted"), informed, headless, reply(b""), [by_close, CLOSE]) as server:
        assert await _get(lanes, server) == b"counted"
        assert await _get(lanes, server) == b"late"
        assert await _get(lanes, server, "HEAD") == b""
        assert await _get(lanes, server) == b""
        assert await _get(lanes, server) == b"until the end"


async def test_a_connection_closed_while_idle_is_not_used(lanes: H11Transport) -> None:
    """When the server closed an idle connection, or wants it closed, the next request makes another."""
    closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx"
    async with serving([reply(b"x"), CLOSE], closing, reply(b"x")) as server:
        for _ in range(2):
            assert await _get(lanes, server) == b"x"
            await _all_idle_ended(lanes)
        assert await _get(lanes, server) == b"x"
    assert server.connections == 3


async def test_bytes_that_nobody_asked_for_end_a_connection(lanes: H11Transport) -> None:
    """A second reply behind the first is never taken for the answer of the next request."""
    async with serving(reply(b"mine") + reply(b"whose?"), reply(b"next")) as server:
        assert await _get(lanes, server) == b"mine"
        await _all_idle_ended(lanes)
        assert await _get(lanes, server) == b"next"


async def test_a_response_not_read_to_its_end_closes_its_connection(lanes: H11Transport) -> None:
    """The server sees it close."""
    async with serving([streamed("a")[:-20], HOLD]) as server:
        response = await lanes.handle_async_request(httpx.Request("GET", server.url))
        await response.aclose()
        await server.was_left()


async def test_a_refusal_in_the_middle_of_an_upload_is_read(lanes: H11Transport) -> None:
    """A server that answers before it has read the body is heard, and its connection is not used again."""

    class Rude(RawServer):
        async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(reply(b"no", 400))
            await writer.drain()
            await reader.read(100_000)
            writer.close()

    rude = Rude([])
    server = await asyncio.start_server(rude.serve, "127.0.0.1", 0)
    rude.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def body() -> AsyncIterator[bytes]:
        for _ in range(400):
            yield b"x" * 10_000

    request = httpx.Request("POST", rude.url, content=body(), headers={"Content-Length": "4000000"})
    try:
        response = await lanes.handle_async_request(request)
        assert (response.status_code, await response.aread()) == (400, b"no")
    except (httpx.ReadError, httpx.RemoteProtocolError):
        pass  # a reset may overtake the answer; what matters is that the call ends
    server.close()


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ([CLOSE], httpx.RemoteProtocolError),
        ([RESET], (httpx.ReadError, httpx.RemoteProtocolError)),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nxx", CLOSE], httpx.RemoteProtocolError),
        ([b"no http at all\r\n\r\n", CLOSE], httpx.RemoteProtocolError),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", CLOSE], httpx.RemoteProtocolError),
    ],
)
async def test_breaks_are_httpx_errors(
    lanes: H11Transport, script: list[Step], kind: type[Exception] | tuple[type[Exception], ...]
) -> None:
    """What goes wrong on the wire is an error of httpx, as the client expects of a transport."""
    async with serving(script) as server:
        with pytest.raises(kind):
            await _read(lanes, server)


async def test_connecting_fails_as_httpx_says_it(lanes: H11Transport) -> None:
    """Nothing listens, or the name is unknown: ConnectError."""
    for url in ("http://127.0.0.1:1", "http://no-such-host.invalid:1"):
        with pytest.raises(httpx.ConnectError):
            await lanes.handle_async_request(httpx.Request("GET", url))


async def test_a_call_cancelled_while_it_connects_leaves_no_socket(lanes: H11Transport) -> None:
    """At whatever turn of the loop the cancellation comes; an open socket would be a warning, which fails."""
    async with serving([HOLD]) as server:
        for turns in range(16):
            task = asyncio.create_task(lanes.handle_async_request(httpx.Request("GET", server.url)))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            del task
            with catch_warnings(record=True) as left:
                simplefilter("always")
                gc.collect()
            assert not [str(warning.message) for warning in left if warning.category is ResourceWarning]


async def test_closing_ends_idle_and_busy_connections() -> None:
    """After aclose the server has no connection left."""
    lanes = H11Transport()
    async with serving(reply(b"x"), [streamed("a")[:-20], HOLD]) as server:
        await _get(lanes, server)
        response = await lanes.handle_async_request(httpx.Request("GET", server.url))
        await lanes.aclose()
        await server.was_left()
        with pytest.raises(httpx.HTTPError):
            await response.aread()
        await response.aclose()


async def test_many_at_once_and_few_kept(lanes: H11Transport) -> None:
    """Requests at the same time each have a connection; afterwards those are used again."""
    async with serving(reply(b"x")) as server:
        for _ in range(2):
            assert set(await asyncio.gather(*(_get(lanes, server) for _ in range(20)))) == {b"x"}
    assert server.connections == 20
