"""The body of an upload in pieces, as fast as its handler takes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

QUEUED_BYTES = 1 << 20  # that the handler has not read yet


class Upload:
    """The body of a request in pieces; reading from the socket pauses while too much waits to be used."""

    def __init__(self, transport: asyncio.Transport | None) -> None:
        self._transport = transport
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._waiting = 0

    def put(self, data: bytes | None) -> None:
        """One more piece, or None at the end."""
        self._pieces.put_nowait(data)
        self._waiting += len(data or b"")
        if self._waiting > QUEUED_BYTES and self._transport is not None:
            self._transport.pause_reading()

    async def drain(self, most: int) -> bool:
        """Read what is left, up to so many bytes; whether that was all."""
        async for piece in self:
            most -= len(piece)
            if most < 0:
                return False
        return True

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        data = await self._pieces.get()
        if data is None:
            raise StopAsyncIteration
        self._waiting -= len(data)
        if self._waiting <= QUEUED_BYTES and self._transport is not None:
            self._transport.resume_reading()
        return data
