"""Read a request and send its reply over ASGI, framed as by Go's server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from email.utils import formatdate
from functools import lru_cache
from time import time
from typing import TYPE_CHECKING

from ollama_emulator.emulator_errors import Cut
from ollama_emulator.http.go_connection import GoConnection
from ollama_emulator.http.incoming import Answer, Handler, HttpLimits, HttpRequest
from ollama_emulator.replies import HttpReply, HttpStream

if TYPE_CHECKING:
    from uvicorn._types import ASGIReceiveCallable, ASGISendCallable

_LEFT = 499  # the status in the daemon's log for a client that has left
_NO_CONTENT = 204  # a reply without a body has no Content-Length
_LINGER_S = 0.5
_REST_BYTES = 256 * 1024  # Go reads this much of an unread body, to use the connection again
_SIZED_BYTES = 2048  # Go sends the length of a reply up to this size, and longer ones in chunks


@dataclass(slots=True)
class BodyRoom:
    """The memory for the bodies of all requests; `held` bytes of it are in use."""

    limits: HttpLimits
    held: int = 0


@dataclass(slots=True)
class HttpExchange:
    """A request and its reply; `taken` is the size of its body in bytes, part of the shared memory for bodies."""

    request: HttpRequest
    connection: GoConnection
    receive: ASGIReceiveCallable
    send: ASGISendCallable
    room: BodyRoom
    taken: int = 0

    async def run(self, handle: Handler, streams: Callable[[str, str], bool]) -> None:
        """Read the request, call `handle`, and send the answer.

        `streams(method, path)` says if the handler reads the body itself, in pieces. If the handler raises Cut, the
        connection is closed. If the client leaves, the task is cancelled: nothing is sent, and status 499 is logged.
        """
        request = self.request
        upload: Upload | None = None
        try:
            if streams(request.method, request.path):
                self.connection.began = None
                upload = request.upload = Upload(self)
            elif not await self._read():
                return
            answer = await handle(request)
            if isinstance(answer, HttpStream):
                await self._stream(answer)
            elif upload is None or await upload.drain(_REST_BYTES):
                await self._reply(answer)
            else:
                await self._part(answer, upload)
        except Cut:
            self.connection.close()
        except asyncio.CancelledError:
            request.entry.setdefault("status", _LEFT)
        finally:
            self.room.held -= self.taken

    async def piece(self) -> tuple[bytes, bool]:
        """Return the next piece of the body, and whether more follow. Raises: Cut: the client has left."""
        message = await self.receive()
        if message["type"] != "http.request":
            raise Cut
        return message["body"], message["more_body"]

    async def _read(self) -> bool:
        """Read the whole body. Return False after refusing it: with 413 if too large, 503 if memory is short."""
        body, more = bytearray(), True
        while more:
            data, more = await self.piece()
            if len(body) + len(data) > self.room.limits.body:
                self.connection.refuse(413)
                return False
            if self.room.held + len(data) > self.room.limits.bodies:
                self.connection.refuse(503)
                return False
            self.taken += len(data)
            self.room.held += len(data)
            body += data
        self.connection.began = None
        self.request.body = bytes(body)
        return True

    async def _reply(self, reply: HttpReply, *, last: bool = True) -> None:
        """Send a whole reply; without `last` the end of its body is still to be sent."""
        body, headers = reply.body, _headers(reply)
        self.connection.conn.joined = True
        if not body and (self.request.method == "HEAD" or reply.status == _NO_CONTENT):
            self.connection.conn.unframed = True
        elif len(body) <= _SIZED_BYTES and not reply.chunked:
            headers.append((b"Content-Length", b"%d" % len(body)))
        await self._begin(reply.status, headers)
        await self.send({"type": "http.response.body", "body": body, "more_body": not last})

    async def _part(self, reply: HttpReply, upload: Upload) -> None:
        """Send a reply although the body is incomplete, and read on for a while so that the client sees it."""
        await self._reply(replace(reply, headers=(*reply.headers, ("Connection", "close"))), last=False)
        try:
            async with asyncio.timeout(_LINGER_S):
                await upload.drain(self.room.limits.upload)
        except TimeoutError:
            pass  # the client had its time
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _stream(self, stream: HttpStream) -> None:
        """Send a reply in chunks, one for each list of pieces."""
        await self._begin(stream.status, _headers(stream))
        try:
            async for pieces in stream.chunks:
                chunk = b"".join(pieces)
                if chunk:
                    await self.send({"type": "http.response.body", "body": chunk, "more_body": True})
        finally:
            closing = getattr(stream.chunks, "aclose", None)
            if closing is not None:
                await closing()
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _begin(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        await self.send({"type": "http.response.start", "status": status, "headers": headers})


class Upload:
    """The body of a request in pieces, read only as fast as the handler takes them."""

    def __init__(self, exchange: HttpExchange) -> None:
        self._exchange = exchange
        self._left = exchange.room.limits.upload
        self._more = True

    async def drain(self, most: int) -> bool:
        """Read the rest of the body, up to `most` bytes; return whether that was all of it."""
        async for piece in self:
            most -= len(piece)
            if most < 0:
                return False
        return True

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self._more:
            raise StopAsyncIteration
        data, self._more = await self._exchange.piece()
        self._left -= len(data)
        if self._left < 0:
            self._exchange.connection.abort()
            raise Cut
        return data


def _headers(answer: Answer) -> list[tuple[bytes, bytes]]:
    headers = [(b"Content-Type", answer.content_type.encode("latin-1"))] if answer.content_type else []
    headers += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
    return [*headers, (b"Date", _date(int(time())))]


@lru_cache(maxsize=4)
def _date(second: int) -> bytes:
    return formatdate(second, usegmt=True).encode("ascii")
