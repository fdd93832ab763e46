"""A bounded HTTP/1.1 server on asyncio: one task a request, cancelled when its client leaves.

Requests of the plainest kind are read and answered by hand (`heads`), which costs a tenth; the first of another kind
hands its connection to h11 for good.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from functools import lru_cache
from time import time
from typing import Any

import h11

from batos.emulator.errors import Cut
from batos.emulator.http import heads
from batos.emulator.http.uploads import Upload
from batos.emulator.replies import TEXT, Reply, Stream

AHEAD_BYTES = 64 * 1024  # what a client may send beyond the request that is being answered
Answer = Reply | Stream
_LEFT = 499  # what the daemon answers to a client that has gone: nobody reads it but the log
_NO_CONTENT = 204  # has no length, not even that of nothing
_LINGER_S = 0.5
_REST_BYTES = 256 * 1024  # what Go reads of a body that its handler left, so that the connection can be used again
_SIZED_BYTES = 2048  # Go names the length of a reply up to this size and sends longer ones in chunks


@dataclass(slots=True)
class Request:
    """One request; `body` is whole, or empty where `upload` gives it in pieces; `entry` is what the log says of it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""
    upload: AsyncIterator[bytes] | None = None
    entry: dict[str, Any] = field(default_factory=dict)


Handler = Callable[[Request], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much clients may ask of the server.

    Bytes of one JSON body, of all that are held at once (503 beyond), of an upload; connections at once; the seconds
    in which a request has to be sent.
    """

    body: int = 64 << 20
    bodies: int = 128 << 20
    upload: int = 1 << 40
    connections: int = 1024
    request_seconds: float = 60.0


@dataclass(slots=True)
class Server:
    """What every connection shares: the handler, the limits and the open connections."""

    handle: Handler
    streams: Callable[[str, str], bool]
    limits: Limits = field(default_factory=Limits)
    open: set[Connection] = field(default_factory=set)
    listener: asyncio.Server | None = None
    held: int = 0  # bytes of bodies that are being sent or answered
    _sweeper: asyncio.Task[None] | None = None

    async def listen(self, host: str, port: int) -> int:
        """Start accepting; answers the port in use. OSError when it is taken."""
        loop = asyncio.get_running_loop()
        self.listener = await loop.create_server(lambda: Connection(self), host, port, backlog=512)
        self._sweeper = asyncio.create_task(self._sweep())
        return int(self.listener.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop accepting and cut what is open, as the daemon does; returns when every handler has ended."""
        if self.listener is not None:
            self.listener.close()
        if self._sweeper is not None:
            self._sweeper.cancel()
        tasks = [connection.task for connection in self.open if connection.task is not None]
        for connection in list(self.open):
            connection.abort()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _sweep(self) -> None:
        """Close connections that take too long to send a request that they began."""
        while True:
            await asyncio.sleep(self.limits.request_seconds / 4)
            latest = asyncio.get_running_loop().time() - self.limits.request_seconds
            for connection in list(self.open):
                if connection.began is not None and connection.began < latest:
                    connection.abort()


class Connection(asyncio.Protocol):
    """One client: requests are answered one after the other, in order."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.task: asyncio.Task[None] | None = None
        self.began: float | None = None
        self._wire: h11.Connection | None = None
        self._ahead = bytearray()
        self._wanted = 0  # bytes that a plain request's body still lacks
        self._transport: asyncio.Transport | None = None
        self._request: Request | None = None
        self._body = bytearray()
        self._held = 0
        self._size = 0
        self._upload: Upload | None = None
        self._writable: asyncio.Future[None] | None = None

    # what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if len(self.server.open) >= self.server.limits.connections:
            transport.abort()
            return
        self.server.open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.server.open.discard(self)
        self._release()
        self.began = None
        if self._writable is not None and not self._writable.done():
            self._writable.cancel()
        if self.task is not None:
            self.task.cancel()

    def data_received(self, data: bytes) -> None:
        if self.began is None and self.task is None:
            self.began = asyncio.get_running_loop().time()
        if self._wire is not None:
            self._parse(self._wire, data)
        elif self.task is not None:
            self._ahead += data
            if len(self._ahead) > AHEAD_BYTES:
                self.abort()
        elif self._wanted:
            self._fill(data)
        else:
            self._read_plain(data)

    def pause_writing(self) -> None:
        if self._writable is None:
            self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self._writable is not None:
            if not self._writable.done():
                self._writable.set_result(None)
            self._writable = None

    # requests

    def abort(self) -> None:
        """Drop the connection without a word."""
        if self._transport is not None:
            self._transport.abort()

    def _read_plain(self, data: bytes) -> None:
        """Begin a request of the plain kind, or hand the connection to h11."""
        head = heads.plain(data)
        if head is None or head.length > self.server.limits.body or self.server.streams(head.method, head.path):
            self._wire = h11.Connection(h11.SERVER, max_incomplete_event_size=heads.HEADER_BYTES)
            self._parse(self._wire, data)
            return
        self._request = Request(head.method, head.path, head.headers)
        self._body.clear()
        self._size, self._wanted = 0, head.length
        self._fill(data[head.size :])

    def _fill(self, data: bytes) -> None:
        """More of a plain request's body, and what its client sent ahead."""
        body = data[: self._wanted]
        self._wanted -= len(body)
        if body:
            self._take(body)
        if not self._wanted and self._transport is not None and not self._transport.is_closing():
            self._ahead += data[len(body) :]
            self._end()

    def _parse(self, wire: h11.Connection, data: bytes) -> None:
        """The same by h11, for what is not plain."""
        try:
            wire.receive_data(data)
            if self.task is not None and self._upload is None:
                if len(wire.trailing_data[0]) > AHEAD_BYTES:
                    self.abort()
                return
            self._read(wire)
        except h11.RemoteProtocolError as fault:
            self._refuse(fault.error_status_hint)

    def _read(self, wire: h11.Connection) -> None:
        while True:
            event = wire.next_event()
            if isinstance(event, h11.Request):
                self._begin(wire, event)
            elif isinstance(event, h11.Data):
                self._take(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                self._end()
                return
            else:  # NEED_DATA, PAUSED or ConnectionClosed
                return
            if self._transport is None or self._transport.is_closing():
                return

    def _begin(self, wire: h11.Connection, event: h11.Request) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
        method = event.method.decode("latin-1")
        path = event.target.decode("latin-1").partition("?")[0]
        self._request = Request(method, path, headers)
        self._body.clear()
        self._size = 0
        if wire.they_are_waiting_for_100_continue:
            self._write(wire.send(h11.InformationalResponse(status_code=100, headers=[])))
        if self.server.streams(method, path):
            self._upload = self._request.upload = Upload(self._transport)
            self.began = None
            self._start(self._request)

    def _take(self, data: bytes) -> None:
        self._size += len(data)
        if self._upload is not None:
            if self._size > self.server.limits.upload:
                self.abort()
            self._upload.put(data)
        elif self._size > self.server.limits.body:
            self._refuse(413)
        elif self.server.held + len(data) > self.server.limits.bodies:
            self._refuse(503)
        else:
            self._held += len(data)
            self.server.held += len(data)
            self._body += data

    def _end(self) -> None:
        self.began = None
        if self._upload is not None:
            self._upload.put(None)
            self._upload = None
        elif self._request is not None:
            self._request.body = bytes(self._body)
            self._body.clear()
            self._start(self._request)

    def _start(self, request: Request) -> None:
        self.task = asyncio.get_running_loop().create_task(self._serve(request))

    def _refuse(self, status: int) -> None:
        """A request that is not HTTP, is too large, or one too many: its status in plain words, and the end."""
        self.began = None
        self._release()
        if self.task is not None:
            self.abort()
        elif self._transport is not None and not self._transport.is_closing():
            words = {
                413: b"413 Request Entity Too Large",
                431: b"431 Request Header Fields Too Large",
                503: b"503 Service Unavailable",
            }
            text = words.get(status, b"400 Bad Request")
            head = b"HTTP/1.1 %b\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n%b"
            self._transport.write(head % (text, text))
            self._transport.close()

    def _release(self) -> None:
        """Give back the share of the server's room for bodies."""
        self.server.held -= self._held
        self._held = 0
        self._body.clear()

    # replies

    async def _serve(self, request: Request) -> None:
        try:
            answer = await self.server.handle(request)
            if isinstance(answer, Reply):
                if self._upload is not None and not await self._upload.drain(_REST_BYTES):
                    answer = replace(answer, headers=(*answer.headers, ("Connection", "close")))
                self._whole(request, answer)
            else:
                await self._stream(request, answer)
        except Cut:
            if self._transport is not None:
                self._transport.close()
            return
        except asyncio.CancelledError:
            request.entry.setdefault("status", _LEFT)
            raise
        except Exception:  # a defect of ours: the client is not left waiting, and the loop reports it
            self.task = None
            self.abort()
            raise
        finally:
            self.task = None
            self._release()
        self._next()

    def _whole(self, request: Request, reply: Reply) -> None:
        headers = self._headers(reply)
        sized = len(reply.body) <= _SIZED_BYTES and not reply.chunked
        if sized:
            headers.append(("Content-Length", str(len(reply.body))))
        else:
            headers.append(("Transfer-Encoding", "chunked"))
        out = self._opened(reply.status, headers)
        if not reply.body and (request.method == "HEAD" or reply.status == _NO_CONTENT):
            out = out.replace(b"Content-Length: 0\r\n", b"")
        self._write(
            out + self._rest(reply.body if request.method != "HEAD" else b"", sized or request.method == "HEAD")
        )

    def _opened(self, status: int, headers: list[tuple[str, str]]) -> bytes:
        """The head of a reply."""
        if self._wire is None:
            return heads.reply(status, headers)
        response = h11.Response(status_code=status, reason=heads.reason(status), headers=headers)
        return self._wire.send(response) or b""

    def _rest(self, body: bytes, sized: bool) -> bytes:
        """A body, or its last part, as it stands on the wire, and its end."""
        if self._wire is not None:
            out = (self._wire.send(h11.Data(data=body)) or b"") if body else b""
            return out + (self._wire.send(h11.EndOfMessage()) or b"")
        if sized:
            return body
        return (_chunk(body) if body else b"") + b"0\r\n\r\n"

    async def _stream(self, request: Request, stream: Stream) -> None:
        headers = [*self._headers(stream), ("Transfer-Encoding", "chunked")]
        self._write(self._opened(stream.status, headers))
        try:
            async for pieces in stream.chunks:
                # a chunk costs h11 10 us; its frame is fixed, so it is written here and h11 ends the body
                self._write(b"".join([_chunk(piece) for piece in pieces if piece]))
                if self._writable is not None:
                    await self._writable
        finally:
            closing = getattr(stream.chunks, "aclose", None)
            if closing is not None:
                await closing()
        self._write(self._rest(b"", sized=False))

    def _headers(self, answer: Answer) -> list[tuple[str, str]]:
        headers = [("Content-Type", answer.content_type)] if answer.content_type else []
        return [*headers, *answer.headers, ("Date", _date(int(time())))]

    def _write(self, data: bytes | None) -> None:
        if data and self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def _next(self) -> None:
        """Ready for the client's next request, unless it or the last one means to close."""
        if self._transport is None or self._transport.is_closing():
            return
        wire = self._wire
        if wire is None:
            if self._ahead:
                data = bytes(self._ahead)
                self._ahead.clear()
                self.began = asyncio.get_running_loop().time()
                self._read_plain(data)
        elif wire.our_state is h11.DONE and wire.their_state is h11.DONE:
            wire.start_next_cycle()
            try:
                self._read(wire)
            except h11.RemoteProtocolError as fault:
                self._refuse(fault.error_status_hint)
        elif self._upload is not None:  # more comes than was read: the client shall see the reply before it is cut off
            asyncio.get_running_loop().call_later(_LINGER_S, self._transport.close)
        else:
            self._transport.close()


def _chunk(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)


@lru_cache(maxsize=4)
def _date(second: int) -> str:
    return formatdate(second, usegmt=True)


def plain(status: int, text: str, *headers: tuple[str, str]) -> Reply:
    """A reply in plain text, as the daemon's router gives for unknown paths and methods."""
    return Reply(status, text.encode(), TEXT, headers)
