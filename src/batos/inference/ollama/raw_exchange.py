"""Exchanges bytes with the daemon over the transport alone: what a mission does many times needs no client between."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from typing import Final

import httpx

from batos.inference.canonical import EncodedMessages, EncodedSchema, form_of
from batos.inference.ollama.client import ResponseError
from batos.inference.ollama.transport import content_encoding, guard, stream_of
from batos.protocol.errors import UsageError, WireError

_HEADERS: Final = (
    (b"Accept", b"application/json"),
    (b"Accept-Encoding", b"identity"),
    (b"Content-Type", b"application/json"),
    (b"User-Agent", b"batos"),
)


class RawExchange:
    """The address of a daemon and the transport to it; `connect` is the seconds that a connection may take.

    The replies are guarded here: the transport is the bare one, without what the client needs around it. Every method
    raises ResponseError where the daemon refuses, and what the transport raises.
    """

    def __init__(self, url: str, transport: httpx.AsyncBaseTransport, connect: float) -> None:
        self._base = url.rstrip("/")
        self._transport = transport
        self._head = ((b"Host", httpx.URL(url).netloc), *_HEADERS)
        self._extensions = {"timeout": {"connect": connect}}
        #: The addresses in use: to read one from its text costs more than to send a request.
        self._urls: dict[str, httpx.URL] = {}

    async def whole(self, method: str, path: str, sent: Mapping[str, object] | None = None) -> bytes:
        """Send a request and return the body of its reply."""
        response = await self._send(method, path, sent)
        try:
            return await _body(response)
        finally:
            await stream_of(response).aclose()

    async def lines(self, path: str, sent: Mapping[str, object]) -> AsyncGenerator[bytes, None]:
        """Post a request and yield each line of its reply; leave early only through `contextlib.aclosing`."""
        response = await self._send("POST", path, sent)
        stream = stream_of(response)
        try:
            async for chunk in stream:  # whole lines: they are guarded
                for line in chunk.removesuffix(b"\n").split(b"\n"):
                    yield line
        finally:
            await stream.aclose()

    async def _send(self, method: str, path: str, sent: Mapping[str, object] | None) -> httpx.Response:
        """Send a request and return a reply that is none of an error, its body unread."""
        url = self._urls.get(path)
        if url is None:
            url = self._urls[path] = httpx.URL(self._base + path)
        body = b"" if sent is None else encode(sent)
        size = () if sent is None else ((b"Content-Length", b"%d" % len(body)),)
        # Made of its parts: httpx would look at each header for one of its own.
        headers, stream = httpx.Headers([*self._head, *size]), httpx.ByteStream(body)
        request = httpx.Request(method, url, headers=headers, stream=stream, extensions=self._extensions)
        response = await self._transport.handle_async_request(request)
        guard(response)
        try:
            encoding = content_encoding(response)
            if not response.is_success:
                # An encoded error is a proxy's: its status says enough, and its body has no bound.
                text = "" if encoding else (await _body(response)).decode("utf-8", "replace")
                raise ResponseError(text, response.status_code)
            if encoding:
                raise WireError(f"Ollama's reply is encoded ({encoding[:40]!r}), which was not requested")
        except BaseException:
            await stream_of(response).aclose()
            raise
        return response


def encode(sent: Mapping[str, object]) -> bytes:
    """Return a request's body as JSON, with the forms that its parts have; UsageError for what JSON cannot hold."""
    plain = {name: value for name, value in sent.items() if not isinstance(value, EncodedMessages | EncodedSchema)}
    forms = [b'"%b":%b' % (name.encode(), form_of(sent[name])) for name in sent if name not in plain]
    try:
        begun = json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        body = b"{%b}" % b",".join(part for part in (begun[1:-1], *forms) if part)
        if not body.isascii():
            body.decode()  # a form may hold half a surrogate pair, which the wire does not
        return body
    except (TypeError, ValueError, RecursionError) as raw:
        said = f"this cannot be sent to Ollama: {str(raw)[:200]}"
        raise UsageError(said, remedy="Correct the request or its options.") from raw


async def _body(response: httpx.Response) -> bytes:
    return b"".join([chunk async for chunk in stream_of(response)])
