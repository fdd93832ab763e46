"""HTTP/1.1 to one daemon: h11 over asyncio, one request at a time for each connection, idle connections reused.

httpx's own transport was measured first. That transport searches its whole pool on every request (with 48 calls at once
two thirds of all CPU), and on every lock tries to import a package that is not installed. The transport here avoids
both. There are no proxies, no redirects, no HTTP/2, and no retries, because a call that was sent may have been paid.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator
from ipaddress import ip_address
from typing import TypeAlias

import h11
import httpx

from batos.inference.ollama.transport import stream_of
from batos.protocol.errors import InternalError

_IDLE_SECONDS = 60.0
_IDLE_MOST = 128
_HEAD_START_S = 0.25
_AHEAD_BYTES = 256 * 1024  # what may come before it is read: beyond it the daemon has to wait
_INFORMED_MOST = 8  # heads with a status of 1xx before the real one
_EVENTS_AT_ONCE = 256  # events out of bytes that lie ready; then others have their turn
_SILENT = "Server disconnected without sending a response."

Event: TypeAlias = h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]


class H11Connection(asyncio.Protocol):
    """A connection and the state of its protocol."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._http = h11.Connection(h11.CLIENT)
        self._waiter: asyncio.Future[None] | None = None  # the one task that reads or writes
        self._over = False
        self._lost: Exception | None = None
        self._full = False  # the transport takes no more for now
        self._unread = 0  # bytes that came since all were read
        self._held = False  # reading is paused: too many wait
        self._at_once = 0
        self._idle = False
        self.idle_since = 0.0
        self._transport: asyncio.Transport  # there when the loop says that the connection is made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport of the new connection."""
        if not isinstance(transport, asyncio.Transport):
            raise InternalError(f"a connection to the daemon has a {type(transport).__name__}, which carries no bytes")
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take received bytes. Bytes that nobody asked for end the connection."""
        if self._idle:
            self.close()
        else:
            self._http.receive_data(data)
            self._unread += len(data)
            if self._unread > _AHEAD_BYTES and not self._held:
                self._held = True
                self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """Note that the daemon sends no more; the transport closes itself."""
        self._over = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the connection is gone."""
        if not self._over:
            self._lost = exc
        self._over = True
        self._wake()

    def pause_writing(self) -> None:
        """Stop writing: the transport's buffer is full."""
        self._full = True

    def resume_writing(self) -> None:
        """Continue writing: the transport's buffer has space again."""
        self._full = False
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _wait(self) -> None:
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    async def send(self, request: httpx.Request) -> None:
        """Send head and body. A daemon that refuses in the middle of a body is not written to any more."""
        head = h11.Request(method=request.method, target=request.url.raw_path, headers=request.headers.raw)
        parts = [self._http.send(head) or b""]
        async for chunk in stream_of(request):
            parts.append(self._http.send(h11.Data(data=chunk)) or b"")
            self._transport.write(b"".join(parts))
            parts.clear()
            while self._full and not self._over:
                await self._wait()
            if self._over:
                self._http.send_failed()
                return
        parts.append(self._http.send(h11.EndOfMessage()) or b"")
        self._transport.write(b"".join(parts))

    async def head(self) -> h11.Response:
        """Return the head of the response.

        Raises: RemoteProtocolError: the connection ended before, or sent too many informational responses.
        """
        for _ in range(_INFORMED_MOST + 1):
            event = await self._event()
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse):
                raise httpx.RemoteProtocolError(_SILENT)
        raise httpx.RemoteProtocolError(f"more than {_INFORMED_MOST} informational responses and no other")

    async def body(self) -> AsyncIterator[bytes]:
        """Yield the body in chunks as they arrive."""
        while True:
            event = await self._event()
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, (h11.EndOfMessage, h11.PAUSED)):
                return

    async def _event(self) -> Event:
        while True:
            try:
                event: Event = self._http.next_event()
            except h11.RemoteProtocolError as raw:
                raise httpx.RemoteProtocolError(str(raw)) from raw
            if event is not h11.NEED_DATA:
                self._at_once += 1
                if self._at_once >= _EVENTS_AT_ONCE:
                    self._at_once = 0
                    await asyncio.sleep(0)
                return event
            self._read_on()
            if not self._over:
                await self._wait()
            elif self._lost is not None:
                raise httpx.ReadError(str(self._lost)) from self._lost
            elif self._http.their_state is h11.SEND_RESPONSE:
                raise httpx.RemoteProtocolError(_SILENT)
            else:
                self._http.receive_data(b"")

    def _read_on(self) -> None:
        """Resume reading, because everything received has been used."""
        self._unread = self._at_once = 0
        if self._held:
            self._held = False
            self._transport.resume_reading()

    def rest(self) -> bool:
        """Make ready for another request; whether that is possible."""
        if self._over or self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        if self._http.trailing_data != (b"", False):
            return False
        self._http.start_next_cycle()
        self._read_on()
        self._idle = True
        self.idle_since = self._loop.time()
        return True

    def resume(self) -> bool:
        """Leave rest; whether the connection still stands and has not rested too long."""
        self._idle = False
        fresh = self._loop.time() - self.idle_since < _IDLE_SECONDS
        return fresh and not self._over and not self._transport.is_closing()

    def close(self) -> None:
        """Close at once: the daemon notices and stops what it does for us."""
        self._transport.abort()


class _Body(httpx.AsyncByteStream):
    def __init__(self, lanes: H11Transport, lane: H11Connection) -> None:
        self._lanes = lanes
        self._lane = lane

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._lane.body()

    async def aclose(self) -> None:
        self._lanes.give_back(self._lane)


class H11Transport(httpx.AsyncBaseTransport):
    """The connections to one daemon."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._idle: deque[H11Connection] = deque()
        self._busy: set[H11Connection] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request on an idle or new connection and wait for the head of its response."""
        lane = self._take() or await self._connect(request)
        self._busy.add(lane)
        try:
            await lane.send(request)
            head = await lane.head()
        except BaseException as raw:
            self._drop(lane)
            if isinstance(raw, h11.LocalProtocolError):
                raise httpx.LocalProtocolError(str(raw)) from raw
            raise
        return httpx.Response(head.status_code, headers=head.headers.raw_items(), stream=_Body(self, lane))

    def _take(self) -> H11Connection | None:
        while self._idle:
            lane = self._idle.pop()
            if lane.resume():
                return lane
            lane.close()
        return None

    async def _connect(self, request: httpx.Request) -> H11Connection:
        url = request.url
        port = url.port or (443 if url.scheme == "https" else 80)
        seconds = request.extensions.get("timeout", {}).get("connect")
        try:
            async with asyncio.timeout(seconds):
                loop = asyncio.get_running_loop()
                made = await loop.create_connection(
                    H11Connection, url.host, port, ssl=self._tls, happy_eyeballs_delay=_head_start(url.host)
                )
                return made[1]
        except TimeoutError as raw:
            raise httpx.ConnectTimeout(f"no connection in {seconds} s") from raw
        except (OSError, UnicodeError) as raw:
            raise httpx.ConnectError(str(raw)) from raw

    def give_back(self, lane: H11Connection) -> None:
        """Take back a lane whose response was read or given up."""
        if lane not in self._busy:
            return
        if len(self._idle) < _IDLE_MOST and lane.rest():
            self._busy.discard(lane)
            self._idle.append(lane)
        else:
            self._drop(lane)

    def _drop(self, lane: H11Connection) -> None:
        self._busy.discard(lane)
        lane.close()

    async def aclose(self) -> None:
        """Close every connection, also those that are being read."""
        for lane in (*self._idle, *self._busy):
            lane.close()
        self._idle.clear()
        self._busy.clear()
        await asyncio.sleep(0)  # the loop closes the sockets in its next round, and may have no other


def _head_start(host: str) -> float | None:
    """Return the seconds that a host's first address has before the next is tried too, None for one after another.

    asyncio's race of addresses leaves a socket open where the call is cancelled in the moment that it connects. An
    address needs no race, nor does this machine, which refuses at once.
    """
    if host == "localhost":
        return None
    try:
        ip_address(host)
    except ValueError:
        return _HEAD_START_S
    return None


def network(url: str) -> httpx.AsyncBaseTransport:
    """Return the transport to an address."""
    # Building a TLS context takes longer than many calls: only where it is needed.
    return H11Transport(ssl.create_default_context() if url.startswith("https:") else None)
