"""A request and its reply over ASGI, framed as Go's server frames them."""

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

_LEFT = 499  # what the daemon answers to a client that has gone: nobody reads it but the log
_NO_CONTENT = 204  # has no length, not even that of nothing
_LINGER_S = 0.5
_REST_BYTES = 256 * 1024  # what Go reads of a body that its handler left, so that the connection can be used again
_SIZED_BYTES = 2048  # Go names the length of a reply up to this size and sends longer ones in chunks


@dataclass(slots=True)
class BodyRoom:
    """The memory that all requests share for their bodies: `held` bytes are in use."""

    limits: HttpLimits
    held: int = 0


@dataclass(slots=True)
class HttpExchange:
    """A request that is served; `taken` is its share of the room for bodies, in bytes."""

    request: HttpRequest
    connection: GoConnection
    receive: ASGIReceiveCallable
    send: ASGISendCallable
    room: BodyRoom
    taken: int = 0

    async def run(self, handle: Handler, streams: Callable[[str, str], bool]) -> None:
        """Read the request, let `handle` answer it, and send the answer.

        `streams` says of a method and a path that the handler reads the body itself. A handler that raises Cut closes
        the connection. A client that leaves cancels the task: nothing is sent, and the log has status 499.
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
        """Return the next piece of the body, and whether there are more.

        Raises: Cut: the client has left.
        """
        message = await self.receive()
        if message["type"] != "http.request":
            raise Cut
        return message["body"], message["more_body"]

    async def _read(self) -> bool:
        """Read the whole body; False where it was refused, since it is too large or one too many."""
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
        """Send a whole reply. Without `last` its end is not said yet."""
        body, headers = reply.body, _headers(reply)
        self.connection.conn.joined = True
        if not body and (self.request.method == "HEAD" or reply.status == _NO_CONTENT):
            self.connection.conn.unframed = True
        elif len(body) <= _SIZED_BYTES and not reply.chunked:
            headers.append((b"Content-Length", b"%d" % len(body)))
        await self._begin(reply.status, headers)
        await self.send({"type": "http.response.body", "body": body, "more_body": not last})

    async def _part(self, reply: HttpReply, upload: Upload) -> None:
        """Send a whole reply to a client that goes on sending: it shall see the reply before it is cut off."""
        await self._reply(replace(reply, headers=(*reply.headers, ("Connection", "close"))), last=False)
        try:
            async with asyncio.timeout(_LINGER_S):
                await upload.drain(self.room.limits.upload)
        except TimeoutError:
            pass  # it had its time
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _stream(self, stream: HttpStream) -> None:
        """Send a reply in chunks; pieces that came together are one chunk."""
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
    """The body of a request in pieces, as fast as its handler takes them."""

    def __init__(self, exchange: HttpExchange) -> None:
        self._exchange = exchange
        self._left = exchange.room.limits.upload
        self._more = True

    async def drain(self, most: int) -> bool:
        """Read what is left, up to `most` bytes, and return whether that was all."""
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
