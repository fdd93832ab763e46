"""Make HTTP/1.1 requests to this machine only, with failures in the words of Go's network packages."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from urllib.parse import SplitResult, urljoin, urlsplit
from urllib.parse import quote as percented

import h11

from ollama_emulator.go.json import quote

_CHUNK = 1 << 16
_CONNECT_S = 30.0
_NO_TLS = "tls: first record does not look like a TLS handshake"
_UNKNOWN_AUTHORITY = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
_WRITTEN = "/%?&=:@!$'()*+,;~"  # characters that stay as they are in an address
_REDIRECTS = (301, 302, 303, 307, 308)


class Broken(Exception):
    """The error of a failed transfer, in the words of the daemon's Go code; `again` says that another try may help."""

    def __init__(self, text: str, *, again: bool = False) -> None:
        super().__init__(text)
        self.again = again


class Stalled(Exception):
    """Raised when no bytes arrive for `read_s` seconds."""


def near(host: str) -> bool:
    """Return whether a host, with or without a port, is this machine; no other host is ever asked."""
    name = host.partition(":")[0].lower()
    if name == "localhost":
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


@dataclass(slots=True)
class RegistryReply:
    """The head of a reply, with its body still to be read; each read waits at most `_read_s` seconds."""

    status: int
    headers: Mapping[str, str]
    url: str
    _wire: h11.Connection
    _reader: asyncio.StreamReader
    _read_s: float | None

    @property
    def location(self) -> str:
        """Return the address of a redirect, "" for any other reply. Raises: Broken: the address is malformed."""
        to = self.headers.get("location", "") if self.status in _REDIRECTS else ""
        if not to:
            return ""
        try:
            return parts_of(urljoin(self.url, to)).geturl()
        except ValueError:
            raise Broken(f"failed to parse Location header {quote(to)}") from None

    @property
    def length(self) -> int:
        """Return the Content-Length in bytes, 0 without one."""
        text = self.headers.get("content-length", "")
        return int(text) if text.isascii() and text.isdigit() else 0

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body's bytes as they arrive.

        Raises: Broken: the body ends early. Stalled: no bytes arrive in time.
        """
        while True:
            event = await _event(self._wire, self._reader, self._read_s)
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            else:
                return


@asynccontextmanager
async def fetch(
    method: str, url: str, headers: Mapping[str, str] | None = None, read_s: float | None = None
) -> AsyncIterator[RegistryReply]:
    """Send a request on a new connection and yield its reply; the connection is closed on leaving the context.

    Raises: Broken: there is no reply, or the address is malformed or on another machine.
    """
    try:
        parsed = parts_of(url)
    except ValueError as fault:
        raise Broken(f"parse {quote(url)}: {fault}") from None
    if not near(parsed.hostname or ""):
        lookup = f"dial tcp: lookup {parsed.hostname} on 127.0.0.53:53: no such host"
        raise Broken(f"{method.capitalize()} {quote(url)}: {lookup}")
    try:
        reader, writer = await _connect(parsed)
        try:
            wire = h11.Connection(h11.CLIENT)
            sent = {
                "Host": parsed.netloc,
                "User-Agent": "ollama/0.33.0",
                "Accept-Encoding": "identity",
                **(headers or {}),
            }
            target = percented((parsed.path or "/") + (f"?{parsed.query}" if parsed.query else ""), _WRITTEN)
            writer.write(wire.send(h11.Request(method=method, target=target, headers=[*sent.items()])) or b"")
            writer.write(wire.send(h11.EndOfMessage()) or b"")
            await writer.drain()
            yield await _read_head(wire, reader, url, read_s)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
    except (OSError, TimeoutError, h11.ProtocolError) as fault:
        raise Broken(f"{method.capitalize()} {quote(url)}: {_network_message(fault, parsed)}", again=True) from fault


def parts_of(url: str) -> SplitResult:
    """Split an address into its parts. Raises: ValueError: its host or port is invalid."""
    parsed = urlsplit(url)
    if parsed.port == 0 or not parsed.netloc.isascii():
        raise ValueError("invalid host or port")
    return parsed


async def _connect(parsed: SplitResult) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a connection to a URL's host, over TLS for https."""
    # in a thread: loading the certificates takes 50 ms
    trusted = await asyncio.to_thread(_trust_context) if parsed.scheme == "https" else None
    async with asyncio.timeout(_CONNECT_S):
        return await asyncio.open_connection(
            _address(parsed), _port(parsed), ssl=trusted, server_hostname=parsed.hostname if trusted else None
        )


@cache
def _trust_context() -> ssl.SSLContext:
    return ssl.create_default_context()


async def _read_head(
    wire: h11.Connection, reader: asyncio.StreamReader, url: str, read_s: float | None
) -> RegistryReply:
    """Return the reply once its head has arrived."""
    while True:
        event = await _event(wire, reader, read_s)
        if isinstance(event, h11.Response):
            headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in event.headers}
            return RegistryReply(event.status_code, headers, url, wire, reader, read_s)
        if not isinstance(event, h11.InformationalResponse):
            raise ConnectionAbortedError


async def _event(wire: h11.Connection, reader: asyncio.StreamReader, read_s: float | None) -> object:
    """Wait for the next HTTP event of the reply. Raises: Stalled: no bytes arrive in time."""
    while (event := wire.next_event()) is h11.NEED_DATA:
        try:
            # wait_for of Python 3.11 swallows a cancellation that comes together with bytes
            async with asyncio.timeout(read_s):
                data = await reader.read(_CHUNK)
        except TimeoutError:
            raise Stalled from None
        if not data and wire.their_state is h11.SEND_RESPONSE:
            raise ConnectionAbortedError
        try:
            wire.receive_data(data)
        except h11.RemoteProtocolError:
            raise Broken("unexpected EOF") from None
        if not data and wire.their_state is h11.SEND_BODY:
            return _body_end(wire)
    return event


def _body_end(wire: h11.Connection) -> object:
    """Return the end of a body that the closed connection ends. Raises: Broken: bytes are missing."""
    try:
        return wire.next_event()
    except h11.RemoteProtocolError:
        raise Broken("unexpected EOF") from None


def _address(parsed: SplitResult) -> str:
    return "127.0.0.1" if parsed.hostname == "localhost" else str(parsed.hostname)


def _port(parsed: SplitResult) -> int:
    return parsed.port or (443 if parsed.scheme == "https" else 80)


def _network_message(fault: BaseException, parsed: SplitResult) -> str:
    """Return the message of Go's network packages for a failure."""
    where = f"{_address(parsed)}:{_port(parsed)}"
    if isinstance(fault, ssl.SSLCertVerificationError):
        return _UNKNOWN_AUTHORITY
    if isinstance(fault, ssl.SSLError):
        return _NO_TLS
    if isinstance(fault, ConnectionResetError | BrokenPipeError):
        return f"read tcp {where}: read: connection reset by peer"
    if isinstance(fault, TimeoutError):
        return f"dial tcp {where}: i/o timeout"
    if isinstance(fault, ConnectionAbortedError):
        return "EOF"
    if isinstance(fault, h11.ProtocolError):
        return "net/http: HTTP/1.x transport connection broken: malformed HTTP response"
    return f"dial tcp {where}: connect: connection refused"
