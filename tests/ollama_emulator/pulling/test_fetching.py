"""Bodies of a registry's replies, whose readers may be cancelled at any time."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from tests.waiting import HANG

from ollama_emulator.pulling.fetching import fetch

_HEAD = b"HTTP/1.1 206 Partial Content\r\nContent-Length: 400000\r\n\r\n"


async def _serve(more: asyncio.Event, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send a head, some bytes once they are wanted, and nothing after them."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(_HEAD)
    await more.wait()
    writer.write(b"x" * 1000)
    await reader.read()
    writer.close()


async def _read(port: int, began: asyncio.Event) -> None:
    async with fetch("GET", f"http://127.0.0.1:{port}/", read_s=HANG) as reply:
        began.set()
        async for _ in reply.pieces():
            pass


@pytest.mark.parametrize("turns", range(8))
async def test_a_cancelled_reader_stops_although_bytes_come(turns: int) -> None:
    """The cancellation comes in the same turn of the loop as the bytes, or in one near it."""
    more, began = asyncio.Event(), asyncio.Event()
    async with await asyncio.start_server(partial(_serve, more), "127.0.0.1", 0) as server:
        task = asyncio.create_task(_read(server.sockets[0].getsockname()[1], began))
        await began.wait()
        await asyncio.sleep(0)
        more.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task], timeout=HANG)
        stopped = task.cancelled()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert stopped
