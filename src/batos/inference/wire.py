"""What goes over the wire to Ollama, seen as bytes: the daemon's address, the request's body, the reply's lines."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import httpx

from batos.errors import ConfigError

_HOST = re.compile(r"[A-Za-z0-9._:%-]+")


def daemon_url(host: str) -> str:
    """The daemon's base URL from what people write in OLLAMA_HOST: `host`, `host:port`, `:port` or a URL.

    Without a port it is 11434, as for the daemon; for a URL the port of its scheme. The address that a daemon is told
    to listen on everywhere (0.0.0.0, [::]) becomes the loopback, where it is reached. ConfigError when it is none.
    """
    scheme, mark, rest = host.strip().partition("://")
    if not mark:
        scheme, rest = "http", scheme
    scheme = scheme.lower()
    if scheme not in ("http", "https"):
        raise ConfigError(f"{host!r} is no Ollama address: its scheme is {scheme!r}", field="ollama.host")
    try:
        split = urlsplit(f"{scheme}://{rest}")
        port = split.port
    except ValueError as bad:
        raise ConfigError(f"{host!r} is no Ollama address: {bad}", field="ollama.host") from bad
    name = split.hostname or "127.0.0.1"
    plain = not name.isascii() or _HOST.fullmatch(name)
    if split.username or split.query or split.fragment or not plain:
        raise ConfigError(f"{host!r} is no Ollama address: give host and port only", field="ollama.host")
    if port is None:
        port = {"http": 80, "https": 443}[scheme] if mark else 11434
    url = f"{scheme}://{_reachable(name)}:{port}{split.path.rstrip('/')}"
    try:
        httpx.URL(url)
    except httpx.InvalidURL as bad:
        raise ConfigError(f"{host!r} is no Ollama address: {bad}", field="ollama.host") from bad
    return url


def _reachable(name: str) -> str:
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return name
    if address.is_unspecified:
        return "[::1]" if address.version == 6 else "127.0.0.1"
    return f"[{address}]" if address.version == 6 else str(address)


# Go's decoder takes the last of two equal keys, so ours, spliced in at the end, always wins.
_ADDED = {
    "/api/chat": b',"truncate":false,"shift":false}',
    "/api/generate": b',"truncate":false,"shift":false}',
    "/api/embed": b',"truncate":false}',
}


def ask_for_overflow(request: httpx.Request) -> None:
    """Edit a request in place so that the daemon refuses an overlong prompt instead of cutting it in silence.

    The body is spliced as bytes: a prompt of megabytes is never parsed again.
    """
    path = request.url.raw_path.decode("ascii", "replace")
    added = next((tail for end, tail in _ADDED.items() if path.endswith(end)), None)
    if added is None or request.method != "POST":
        return
    body = request.content
    if not body.endswith(b"}"):
        return
    spliced = body[:-1] + (added if len(body) > 2 else added[1:])
    request.stream = httpx.ByteStream(spliced)
    request.headers["Content-Length"] = str(len(spliced))


class LineGuard:
    """Escapes the three line separators of Unicode that are legal inside JSON and break the client's line splitting.

    The daemon sends U+0085 raw, the client splits lines there, and the answer would be lost. Works on chunks of bytes
    cut anywhere: what may be the beginning of a separator is held back until the next chunk.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = b""

    def pass_on(self, chunk: bytes) -> bytes:
        """The chunk with its separators escaped, less what must be held back."""
        if chunk.isascii() and not self._held:
            return chunk
        chunk = self._held + chunk
        kept = len(chunk)
        if chunk.endswith((b"\xc2", b"\xe2")):
            kept -= 1
        elif chunk.endswith(b"\xe2\x80"):
            kept -= 2
        self._held = chunk[kept:]
        return _escape(chunk[:kept])

    def rest(self) -> bytes:
        """What was held back when the stream ended (an incomplete character)."""
        held, self._held = self._held, b""
        return held


def _escape(data: bytes) -> bytes:
    if b"\xc2\x85" in data:
        data = data.replace(b"\xc2\x85", b"\\u0085")
    if b"\xe2\x80" in data:
        data = data.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    return data


class _GuardedStream(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        guard = LineGuard()
        async for chunk in self._stream:
            passed = guard.pass_on(chunk)
            if passed:
                yield passed
        if rest := guard.rest():
            yield rest

    async def aclose(self) -> None:
        await self._stream.aclose()


class OllamaTransport(httpx.AsyncBaseTransport):
    """A transport around another that asks for overflow, guards the reply's lines and sends no key."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; the reply's body is guarded while it is read."""
        ask_for_overflow(request)
        request.headers.pop("Authorization", None)  # the client adds OLLAMA_API_KEY; local means local
        response = await self._inner.handle_async_request(request)
        if isinstance(response.stream, httpx.AsyncByteStream) and "Content-Encoding" not in response.headers:
            response.stream = _GuardedStream(response.stream)
        return response

    async def aclose(self) -> None:
        """Close the inner transport and its connections."""
        await self._inner.aclose()
