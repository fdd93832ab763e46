"""Servers at an address that ask, redirect, never end or want a secret: each ends in a line that says so."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.agency.mcp.connection_laws import ask

from batos.agency.mcp.connection import McpTimes
from batos.agency.mcp.server_records import McpServer
from batos.agency.mcp.servers import ServerOpener
from batos.protocol.errors import LookUpFailed

EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """A piece of a stream."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(message: dict[str, Any]) -> bytes:
    """A message as an event of a stream."""
    return chunk(b"data: " + json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n\n")


@asynccontextmanager
async def serving(way: str) -> AsyncIterator[tuple[McpServer, list[str]]]:
    """A server of the newer era that behaves so, and the heads of what it was asked."""
    heads: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            heads.append(head)
            size = next(int(line[16:]) for line in head.split("\r\n") if line.startswith("content-length: "))
            number = json.loads(await reader.readexactly(size))["id"]
            if "mcp-method: tools/call" not in head:
                body = event({"id": number, "result": {"supportedVersions": ["2026-07-28"]}})
                writer.write(b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n" if way == "locked" else EVENTS + body)
            elif way == "asks":
                writer.write(EVENTS + event({"id": 7, "method": "sampling/createMessage", "params": {}}))
            elif way == "leads":
                writer.write(b"HTTP/1.1 307 There\r\nLocation: http://127.0.0.1:1/\r\n\r\n")
            elif way == "endless":
                writer.write(EVENTS)
                while True:
                    writer.write(chunk(b": x\n" * 4_000))
                    await writer.drain()
            elif way == "open":  # the answer is there, and the stream goes on
                writer.write(EVENTS + event({"id": number, "result": {"content": [{"type": "text", "text": "14:32"}]}}))
            await writer.drain()
            await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield McpServer("tides", "tester", url=f"http://127.0.0.1:{port}/mcp"), heads
        server.close()


@pytest.mark.parametrize(
    ("way", "why"),
    [
        ("asks", "asks for sampling/createMessage, which is refused"), ("leads", "leads from one address to the next"),
        ("endless", "has more than 8,388,608 bytes"), ("silent", "did not answer"),
    ],
)  # fmt: skip
async def test_what_has_no_end_or_asks_for_more_ends_the_call(tmp_path: Path, way: str, why: str) -> None:
    """No redirection is followed, and no request of a server is answered."""
    async with serving(way) as (server, heads):
        times = McpTimes(20.0, 20.0, call=0.5 if way == "silent" else 20.0)
        async with ServerOpener(tmp_path, times).open(server) as found:
            with pytest.raises(LookUpFailed, match=why):
                await ask(found, "tide", {"harbour": "Maro"})
        assert len(heads) == 2


async def test_an_answer_is_taken_although_the_stream_stays_open(tmp_path: Path) -> None:
    """With the name of the tool, and a marked argument, in headers."""
    async with serving("open") as (server, heads), ServerOpener(tmp_path).open(server) as found:
        answer = await found.call("tide", {"harbour": "Märo"}, {"harbour": "Place"}, lambda: None)
    assert answer.text == "14:32"
    assert "mcp-name: tide\r\n" in heads[1]
    assert "mcp-param-place: =?base64?" in heads[1]


async def test_a_server_that_wants_a_secret_says_so(tmp_path: Path) -> None:
    """The secret is read from the home, and sent in the header that was named."""
    async with serving("locked") as (server, _):
        with pytest.raises(LookUpFailed, match="answered 401") as caught:
            async with ServerOpener(tmp_path).open(server):
                pass
    assert "--secret-header" in caught.value.remedy
