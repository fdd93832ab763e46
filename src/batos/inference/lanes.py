"""HTTP/1.1 to one daemon: h11 over asyncio streams, one request a connection at a time, idle ones used again.

httpx's own transport was measured first. It searches its whole pool on every request (with 48 calls at once that was
two thirds of all CPU), and it tries to import a package that is not installed on every lock. This one does neither,
and nothing more: no proxies, no redirects, no HTTP/2, and no retries, because a call that was sent may have been paid.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator
from typing import TypeAlias

import h11
import httpx

_READ = 1 << 16
_IDLE_SECONDS = 60.0
_IDLE_MOST = 128
_SILENT = "Server disconnected without sending a response."

Event: TypeAlias = h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]


class Lane:
    """One connection and where its protocol stands."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._http = h11.Connection(h11.CLIENT)
        self.idle_since = 0.0

    @property
    def usable(self) -> bool:
        """Whether another request may go out: nothing was closed, and nothing came that nobody asked for."""
        return not (self._reader.at_eof() or self._writer.is_closing() or self._http.their_state is not h11.IDLE)

    async def send(self, request: httpx.Request) -> None:
        """Send head and body."""
        head = h11.Request(method=request.method, target=request.url.raw_path, headers=request.headers.raw)
        parts = [self._http.send(head) or b""]
        try:
            assert isinstance(request.stream, httpx.AsyncByteStream)
            async for chunk in request.stream:
                parts.append(self._http.send(h11.Data(data=chunk)) or b"")
                self._writer.write(b"".join(parts))
                parts.clear()
                await self._writer.drain()
            parts.append(self._http.send(h11.EndOfMessage()) or b"")
            self._writer.write(b"".join(parts))
            await self._writer.drain()
        except OSError:
            # The daemon may refuse in the middle of an upload: its answer is read and says why.
            self._http.send_failed()

    async def head(self) -> h11.Response:
        """The head of the response."""
        while True:
            event = await self._event()
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse):
                raise httpx.RemoteProtocolError(_SILENT)

    async def body(self) -> AsyncIterator[bytes]:
        """The body, in chunks as they come."""
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
                return event
            try:
                data = await self._reader.read(_READ)
            except OSError as raw:
                raise httpx.ReadError(str(raw)) from raw
            if not data and self._http.their_state is h11.SEND_RESPONSE:
                raise httpx.RemoteProtocolError(_SILENT)
            self._http.receive_data(data)

    def renew(self) -> bool:
        """Make ready for another request; whether that is possible."""
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True

    def close(self) -> None:
        """Close at once: the daemon notices and stops what it does for us."""
        self._writer.transport.abort()


class _Body(httpx.AsyncByteStream):
    def __init__(self, lanes: Lanes, lane: Lane) -> None:
        self._lanes = lanes
        self._lane = lane

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._lane.body()

    async def aclose(self) -> None:
        self._lanes.give_back(self._lane)


class Lanes(httpx.AsyncBaseTransport):
    """The connections to one daemon."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._idle: deque[Lane] = deque()
        self._busy: set[Lane] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request on an idle or new connection and wait for the head of its response."""
        lane = self._take() or await self._connect(request)
        self._busy.add(lane)
        try:
            await lane.send(request)
            head = await lane.head()
        except h11.LocalProtocolError as raw:
            self._drop(lane)
            raise httpx.LocalProtocolError(str(raw)) from raw
        except BaseException:
            self._drop(lane)
            raise
        return httpx.Response(head.status_code, headers=head.headers.raw_items(), stream=_Body(self, lane))

    def _take(self) -> Lane | None:
        while self._idle:
            lane = self._idle.pop()
            if lane.usable and asyncio.get_running_loop().time() - lane.idle_since < _IDLE_SECONDS:
                return lane
            lane.close()
        return None

    async def _connect(self, request: httpx.Request) -> Lane:
        url = request.url
        port = url.port or (443 if url.scheme == "https" else 80)
        seconds = request.extensions.get("timeout", {}).get("connect")
        try:
            async with asyncio.timeout(seconds):
                return Lane(*await asyncio.open_connection(url.host, port, ssl=self._tls, happy_eyeballs_delay=0.25))
        except TimeoutError as raw:
            raise httpx.ConnectTimeout(f"no connection in {seconds} s") from raw
        except (OSError, UnicodeError) as raw:
            raise httpx.ConnectError(str(raw)) from raw

    def give_back(self, lane: Lane) -> None:
        """Take back a lane whose response was read or given up."""
        if lane not in self._busy:
            return
        if len(self._idle) < _IDLE_MOST and lane.renew():
            self._busy.discard(lane)
            lane.idle_since = asyncio.get_running_loop().time()
            self._idle.append(lane)
        else:
            self._drop(lane)

    def _drop(self, lane: Lane) -> None:
        self._busy.discard(lane)
        lane.close()

    async def aclose(self) -> None:
        """Close every connection, also those that are being read."""
        for lane in (*self._idle, *self._busy):
            lane.close()
        self._idle.clear()
        self._busy.clear()
        await asyncio.sleep(0)  # the loop closes the sockets in its next round, and may have no other
