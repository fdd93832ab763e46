"""Fetch a page safely: h11 over a connection to an address that was checked, within limits of time and bytes."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
import time
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

import h11

from batos.agency.look_ups.web_addresses import AddressGate, WebAddress
from batos.protocol.errors import LookUpFailed, Refused

#: The kinds of content that are read.
MEDIA: Final = frozenset(
    "text/html application/xhtml+xml text/plain text/markdown text/csv application/pdf application/json text/xml"
    " application/xml application/rss+xml application/atom+xml".split()
)
_REDIRECTIONS: Final = frozenset({301, 302, 303, 307, 308})
_PIECE: Final = 64 * 1024
#: The most hosts of which the fetcher knows when they were last asked.
_HOSTS: Final = 1_024


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """The most that a fetch takes: seconds to connect and in all, bytes on the wire and decoded, redirections."""

    connect: float = 10.0
    whole: float = 30.0
    wire: int = 5 * 2**20
    decoded: int = 20 * 2**20
    redirections: int = 5


class CheckedConnection(NamedTuple):
    """An open connection, with the IP address that it leads to."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    peer: str


#: Returns the IP addresses of a host.
Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
#: Connects to an IP address and port; with TLS for the named host unless that is "".
Connect: TypeAlias = Callable[[str, int, str], Awaitable[CheckedConnection]]


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return what the machine's resolver says of a host. Raises: OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=1)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


async def connect(ip: str, port: int, name: str) -> CheckedConnection:
    """Connect to an IP address, and to no other; a certificate must be of `name`. Raises: OSError, ssl.SSLError."""
    tls = await asyncio.to_thread(ssl.create_default_context) if name else None
    reader, writer = await asyncio.open_connection(ip, port, ssl=tls, server_hostname=name or None)
    return CheckedConnection(reader, writer, str(writer.get_extra_info("peername")[0]))


@dataclass(frozen=True, slots=True)
class SentBody:
    """The body of a request that is no GET. `ends` is given each piece of the answer; True ends the reading."""

    data: bytes
    method: str = "POST"
    ends: Callable[[bytes], bool] = lambda _: False


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """A page that was fetched: `address` is where the last redirection led. `body` is decoded, but still bytes."""

    address: WebAddress
    status: int
    media_type: str
    charset: str
    body: bytes
    headers: Mapping[str, str]


@dataclass(slots=True)
class Fetcher:
    """Fetches pages, one at a time of each host. `agent` is its name for servers, with a contact."""

    agent: str
    resolve: Resolve = resolve
    connect: Connect = connect
    limits: FetchLimits = FetchLimits()
    ticks: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    #: Seconds between two requests that a host asks for, by origin.
    delays: dict[str, float] = field(default_factory=dict)
    _turns: dict[str, asyncio.Lock] = field(default_factory=dict)
    _asked: dict[str, float] = field(default_factory=dict)

    async def fetch(
        self, address: WebAddress, gate: AddressGate, accept: Sequence[str] = (), more: Mapping[str, str] | None = None,
        body: SentBody | None = None,
    ) -> FetchedPage:  # fmt: skip
        """Return the page at an address, after at most so many redirections, each of which passes the gate anew.

        `accept` are kinds of content to be had rather than others; `more` are further headers for the first host. A
        `body` is for an address that leads nowhere else.

        Raises: Refused: an address goes beyond the gate. LookUpFailed: it is not reached, or not within the limits.
        """
        headers = dict(more or {})
        for _ in range(self.limits.redirections + 1):
            page = await self._fetch_one(address, gate, accept, headers, body)
            location = page.headers.get("location", "")
            if page.status not in _REDIRECTIONS or not location:
                return page
            onward = address.join(location)
            if onward.origin != address.origin:
                headers = {}
            address = onward
        raise LookUpFailed(f"{address.origin} leads from one address to the next, more than 5 times")

    async def _fetch_one(
        self, address: WebAddress, gate: AddressGate, accept: Sequence[str], more: Mapping[str, str],
        body: SentBody | None,
    ) -> FetchedPage:  # fmt: skip
        gate.check(address)
        async with self._turns.setdefault(address.origin, asyncio.Lock()):
            await self._wait_for_turn(address.origin)
            try:
                async with asyncio.timeout(self.limits.whole):
                    return await self._exchange(address, gate, accept, more, body)
            except TimeoutError as error:
                raise LookUpFailed(f"{address.origin} did not answer in time") from error
            except (OSError, h11.RemoteProtocolError, asyncio.IncompleteReadError) as error:
                raise LookUpFailed(f"{address.origin} is not reached: {_reason(error)}") from error
            finally:
                self._note_asked(address.origin)

    async def _wait_for_turn(self, origin: str) -> None:
        asked, delay = self._asked.get(origin), self.delays.get(origin, 0.0)
        if asked is not None and (left := asked + delay - self.ticks()) > 0:
            await self.sleep(left)

    def _note_asked(self, origin: str) -> None:
        self._asked.pop(origin, None)
        self._asked[origin] = self.ticks()
        while len(self._asked) > _HOSTS:
            oldest = next(iter(self._asked))
            del self._asked[oldest]
            if oldest in self._turns and not self._turns[oldest].locked():
                del self._turns[oldest]

    async def _exchange(
        self, address: WebAddress, gate: AddressGate, accept: Sequence[str], more: Mapping[str, str],
        body: SentBody | None,
    ) -> FetchedPage:  # fmt: skip
        connection = await self._connect_checked(address, gate)
        try:
            headers = {
                "Host": address.authority,
                "User-Agent": self.agent,
                "Accept": ", ".join([*accept, "*/*;q=0.1"]) if accept else "text/html, */*;q=0.5",
                "Accept-Encoding": "gzip, deflate",
                "Connection": "close",
                **({"Content-Length": str(len(body.data))} if body else {}),
                **more,
            }
            http, method = h11.Connection(h11.CLIENT), body.method if body else "GET"
            request = h11.Request(method=method, target=address.target, headers=list(headers.items()))
            sent: list[h11.Event] = [request, *([h11.Data(data=body.data)] if body else []), h11.EndOfMessage()]
            connection.writer.write(b"".join(http.send(each) or b"" for each in sent))
            await connection.writer.drain()
            return await self._read_page(address, connection.reader, http, body.ends if body else None)
        finally:
            await _close(connection)

    async def _connect_checked(self, address: WebAddress, gate: AddressGate) -> CheckedConnection:
        """Connect to an address that the host resolves to: resolved once, each checked, and the peer compared.

        Raises: Refused: one of them is not public. TimeoutError, OSError: none is reached.
        """
        async with asyncio.timeout(self.limits.connect):
            found = [address.host] if address.is_literal else await self.resolve(address.host, address.port)
            hidden = [ip for ip in found if not gate.admits(ip)]
            if hidden or not found:
                what = f"{address.host} leads to {hidden[0]}, which is not public" if hidden else "it has no address"
                remedy = "A service of your own has a grant of its own: kiwix, searxng."
                raise Refused(what, field="address", remedy=remedy)
            name = address.host if address.scheme == "https" else ""
            connection = await self._connect_first(found, address.port, name)
        if not _is_same(connection.peer, found):
            await _close(connection)
            what = f"{address.host} was reached at {connection.peer}, where it is not"
            raise Refused(what, field="address", remedy="See to the network's proxy.")
        return connection

    async def _connect_first(self, found: Sequence[str], port: int, name: str) -> CheckedConnection:
        for ip in found[:-1]:
            with suppress(OSError):
                return await self.connect(ip, port, name)
        return await self.connect(found[-1], port, name)

    async def _read_page(
        self, address: WebAddress, reader: asyncio.StreamReader, http: h11.Connection,
        ends: Callable[[bytes], bool] | None,
    ) -> FetchedPage:  # fmt: skip
        """Read head and body, until `ends`. Raises: LookUpFailed: more than the limits, or unknown content."""
        wire, head, decoder = 0, None, _Decoder("", 0)
        while True:
            event = http.next_event()
            if event is h11.NEED_DATA:
                data = await reader.read(_PIECE)
                wire += len(data)
                if wire > self.limits.wire:
                    raise LookUpFailed(f"{address} has more than {self.limits.wire:,} bytes")
                http.receive_data(data)
            elif isinstance(event, h11.Response):
                head = event
                fields = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
                decoder = _Decoder(fields.get("content-encoding", ""), self.limits.decoded)
                if event.status_code in _REDIRECTIONS:
                    return FetchedPage(address, event.status_code, "", "", b"", fields)
            elif isinstance(event, h11.Data):
                decoder.feed(bytes(event.data))
                if ends is not None and head is not None and ends(bytes(event.data)):
                    break
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                break
            elif event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
                raise LookUpFailed(f"{address} ended before its answer")
        media, charset = _media_of(fields.get("content-type", ""))
        return FetchedPage(address, head.status_code, media, charset, decoder.end(), fields)


class _Decoder:
    """Undoes the encoding of a body piece by piece, and counts what comes of it."""

    def __init__(self, encoding: str, most: int) -> None:
        name = encoding.strip().lower()
        if name not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise LookUpFailed(f"an answer comes in the unknown encoding {name[:40]!r}")
        self._name, self._most, self._size = name, most, 0
        self._inflater = None if name in ("", "identity") else zlib.decompressobj(47)
        self._begun = False
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> None:
        """Take a piece. Raises: LookUpFailed: it unpacks to too much, or is damaged."""
        for piece in self._inflate(data):
            self._size += len(piece)
            if self._size > self._most:
                raise LookUpFailed(f"an answer unpacks to more than {self._most:,} bytes")
            self._pieces.append(piece)

    def _inflate(self, data: bytes) -> Iterator[bytes]:
        while data and self._inflater is not None:
            try:
                piece = self._inflater.decompress(data, _PIECE)
            except zlib.error as error:
                if self._begun or self._name != "deflate":
                    raise LookUpFailed("an answer is damaged: it does not unpack") from error
                self._inflater = zlib.decompressobj(-15)  # some servers send it without its frame
                self._begun = True
                continue
            self._begun = True
            yield piece
            data = self._inflater.unconsumed_tail
            if self._inflater.eof and self._inflater.unused_data:
                data, self._inflater = self._inflater.unused_data, zlib.decompressobj(47)
            elif self._inflater.eof:
                return
        if data:
            yield data

    def end(self) -> bytes:
        """Return all of it. Raises: LookUpFailed: it is cut off."""
        if self._inflater is not None and self._begun and not self._inflater.eof:
            raise LookUpFailed("an answer is cut off: it does not unpack")
        return b"".join(self._pieces)


async def _close(connection: CheckedConnection) -> None:
    connection.writer.close()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(1):
            await connection.writer.wait_closed()


def _media_of(content_type: str) -> tuple[str, str]:
    """Return the kind and the charset of a Content-Type.

    >>> _media_of('Text/HTML; charset="UTF-8"')
    ('text/html', 'utf-8')
    """
    media, _, rest = content_type.partition(";")
    names = (each.strip().partition("=") for each in rest.split(";"))
    charset = next((value.strip("\"' ") for name, _, value in names if name.lower() == "charset"), "")
    return media.strip().lower(), charset.lower()


def _is_same(peer: str, found: Sequence[str]) -> bool:
    with suppress(ValueError):
        reached = ipaddress.ip_address(peer.partition("%")[0])
        return any(ipaddress.ip_address(each.partition("%")[0]) == reached for each in found)
    return False


def _reason(error: BaseException) -> str:
    return str(getattr(error, "strerror", None) or str(error) or type(error).__name__)
