"""The wire to Ollama as bytes: addresses, bodies, lines of replies, and files that are sent in pieces."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from batos import notation
from batos.inference.canonical import EncodedMessages, EncodedSchema, form_of
from batos.inference.ollama import failures
from batos.inference.ollama.client import ResponseError
from batos.inference.ollama.failures import DaemonPeer
from batos.protocol.errors import ConfigError, InternalError, UsageError, WireError


def daemon_url(host: str) -> str:
    """Return the daemon's base URL for the value of OLLAMA_HOST (`notation.daemon_url`).

    Raises: ConfigError: the value is no address. A value with a user or password is not repeated in the error.
    """
    shown = "one that holds a user or password (not shown)" if notation.has_userinfo(host) else repr(host[:200])
    try:
        url = notation.daemon_url(host)
        httpx.URL(url)
    except (ValueError, httpx.InvalidURL) as bad:
        said = bad if isinstance(bad, ValueError) else "an address that a client takes"
        raise ConfigError(f"ollama_host must be {said}, not {shown}", field="ollama_host") from bad
    return url


#: The field that keeps the daemon from cutting an overlong prompt in silence.
WHOLE_PROMPT = {"truncate": False, "shift": False}
# Go's decoder takes the last of two equal keys, so ours, spliced in at the end, always wins.
_ADDED = {
    "/api/chat": b',"truncate":false,"shift":false}',
    "/api/generate": b',"truncate":false,"shift":false}',
    "/api/embed": b',"truncate":false}',
}


def ask_for_overflow(request: httpx.Request) -> None:
    """Edit a request in place so that the daemon refuses an overlong prompt instead of cutting it silently.

    The body is edited as bytes: a prompt of megabytes is never parsed again.
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


def stream_of(message: httpx.Request | httpx.Response) -> httpx.AsyncByteStream:
    """Return the body of a request or of a reply, to be read piece by piece.

    Raises: InternalError: the message belongs to a client that is not asynchronous.
    """
    if not isinstance(message.stream, httpx.AsyncByteStream):
        raise InternalError(f"the body of a {type(message).__name__} is no asynchronous stream")
    return message.stream


@dataclass(frozen=True, slots=True)
class ReplyLimit:
    """The most bytes that a reply may have: in all, and from one newline to the next."""

    total: int
    line: int


LINE_BYTES = 1 << 20  # a line of a stream: a token's has 200 bytes, the longest known hold a whole tool call
WHOLE_BYTES = 16 << 20  # a reply in one piece: a list of 20,000 models
_TOKEN_LINE_BYTES = 1024  # the line around one token: names, times and the token, escaped
_TOKEN_BYTES = 256  # one token in JSON: the longest of a real vocabulary have 128 characters
_CHUNK_BYTES = 256  # what a chunk is counted beside its bytes: a million of one byte take ten seconds to read
_VECTOR_BYTES = 256 * 1024  # one vector in JSON: 8192 numbers of 25 characters fit

#: The most bytes of a verbose `show`: the words and merges of a vocabulary of 262,144 take 25 MB.
WHOLE_CARD = ReplyLimit(96 << 20, 96 << 20)
WHOLE = ReplyLimit(WHOLE_BYTES, WHOLE_BYTES)
#: No length of a stream of progress is too much, only that of a line.
PROGRESS = ReplyLimit(1 << 62, LINE_BYTES)

_bound: ContextVar[ReplyLimit] = ContextVar("bound", default=WHOLE)


def bound_of_stream(lines: int) -> ReplyLimit:
    """Return the limits for a stream of so many lines."""
    return ReplyLimit(LINE_BYTES + lines * _TOKEN_LINE_BYTES, LINE_BYTES)


def bound_of_answer(tokens: int) -> ReplyLimit:
    """Return the limits for an answer of so many tokens in one piece."""
    most = LINE_BYTES + tokens * _TOKEN_BYTES
    return ReplyLimit(most, most)


def bound_of_vectors(count: int) -> ReplyLimit:
    """Return the limits for so many embeddings."""
    most = LINE_BYTES + count * _VECTOR_BYTES
    return ReplyLimit(most, most)


@contextmanager
def limit_replies(bound: ReplyLimit) -> Iterator[None]:
    """Limit the replies to requests that this task sends inside the context.

    Raises: WireError: a reply has more bytes.
    """
    before = _bound.set(bound)
    try:
        yield
    finally:
        _bound.reset(before)


class LineGuard:
    """Escapes the three line separators of Unicode that are legal inside JSON and break the client's line splitting.

    The daemon sends U+0085 raw, the client splits lines there, and the answer would be lost. Works on chunks of bytes
    cut anywhere: what may be the beginning of a separator is held back until the next chunk.
    """

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held = b""

    def pass_on(self, chunk: bytes) -> bytes:
        """Return the chunk with its separators escaped, without the bytes that must be held back."""
        if chunk.isascii() and not self.held:
            return chunk
        chunk = self.held + chunk
        kept = len(chunk)
        if chunk.endswith((b"\xc2", b"\xe2")):
            kept -= 1
        elif chunk.endswith(b"\xe2\x80"):
            kept -= 2
        self.held = chunk[kept:]
        return _escape(chunk[:kept])

    def rest(self) -> bytes:
        """Return the bytes that were held back when the stream ended (an incomplete character)."""
        held, self.held = self.held, b""
        return held


def _escape(data: bytes) -> bytes:
    if b"\xc2\x85" in data:
        data = data.replace(b"\xc2\x85", b"\\u0085")
    if b"\xe2\x80" in data:
        data = data.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    return data


class _GuardedStream(httpx.AsyncByteStream):
    """A reply's body within its bound, in whole lines: what has no newline yet is held back here.

    The client would keep each piece of a line as an object of its own: fifty bytes for a piece of one.
    """

    def __init__(self, stream: httpx.AsyncByteStream, bound: ReplyLimit) -> None:
        self._stream = stream
        self._bound = bound

    async def __aiter__(self) -> AsyncIterator[bytes]:
        guard = LineGuard()
        begun = bytearray()
        left = self._bound.total
        async for chunk in self._stream:
            left -= len(chunk) + _CHUNK_BYTES
            if left < 0:
                raise WireError(f"Ollama's reply is too long: it may have {self._bound.total} bytes")
            if not begun and not guard.held and chunk.isascii() and chunk.endswith(b"\n"):
                yield chunk  # whole lines, as the daemon sends most of them
                continue
            passed = guard.pass_on(chunk)
            begun += passed
            if end := begun.rfind(b"\n", -len(passed) or len(begun)) + 1:
                yield bytes(begun[:end])
                del begun[:end]
            if len(begun) > self._bound.line:
                raise WireError(f"Ollama's reply has a line of more than {self._bound.line} bytes")
        begun += guard.rest()
        if begun:
            yield bytes(begun)

    async def aclose(self) -> None:
        await self._stream.aclose()


def content_encoding(response: httpx.Response) -> str:
    """Return the encoding of a reply's body, "" if it is plain: `identity` and an empty header say the same."""
    encoding: str = response.headers.get("Content-Encoding", "").strip()
    return "" if encoding.lower() == "identity" else encoding


def guard(response: httpx.Response) -> None:
    """Keep a reply's body within the bound that holds now, and in whole lines; one that is encoded is left as it is."""
    if isinstance(response.stream, httpx.AsyncByteStream) and not content_encoding(response):
        response.stream = _GuardedStream(response.stream, _bound.get())


class OllamaTransport(httpx.AsyncBaseTransport):
    """A transport around another that asks for overflow, guards the reply's lines and sends no key."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; the reply's body is guarded while it is read."""
        ask_for_overflow(request)
        request.headers.pop("Authorization", None)  # the client adds OLLAMA_API_KEY; local means local
        response = await self._inner.handle_async_request(request)
        guard(response)
        return response

    async def aclose(self) -> None:
        """Close the inner transport and its connections."""
        await self._inner.aclose()


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


_CHUNK = 1 << 20
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def checked_digest(digest: str) -> str:
    """Return the digest if it is `sha256:` and 64 hex digits: the daemon refuses uploads with a dash instead of the
    colon.

    Raises: UsageError: the digest has another form.
    """
    if not _DIGEST.fullmatch(digest):
        raise UsageError(f"{digest!r} is no digest of the form sha256:<64 hex digits>", field="digest")
    return digest


@dataclass(frozen=True, slots=True)
class MeasuredFile:
    """A file with its digest and its size in bytes."""

    path: Path
    digest: str
    size: int


def measure_file(path: Path, digest: str | None = None) -> MeasuredFile:
    """Return digest and size of a file. The file is read only if its digest is not given."""
    with path.open("rb") as file:
        if digest is not None:
            return MeasuredFile(path, checked_digest(digest), os.fstat(file.fileno()).st_size)
        hashed = hashlib.file_digest(file, "sha256")
        return MeasuredFile(path, f"sha256:{hashed.hexdigest()}", file.tell())


async def send_file(
    http: httpx.AsyncClient, peer: DaemonPeer, file: MeasuredFile, on_bytes: Callable[[int], None]
) -> None:
    """Upload a file that the daemon does not have; any other failure than of reading is an OllamaError."""
    content, length = chunks(file, on_bytes), {"Content-Length": str(file.size)}
    try:
        response = await http.post(f"/api/blobs/{file.digest}", content=content, headers=length)
    except (httpx.HTTPError, httpx.StreamError) as raw:
        raise failures.translate(raw, peer) from raw
    if response.status_code not in (200, 201):
        raise failures.refusal(response.text, response.status_code)


async def chunks(measured: MeasuredFile, on_bytes: Callable[[int], None]) -> AsyncIterator[bytes]:
    """Yield the file's bytes, a mebibyte at a time; `on_bytes` gets the number of bytes sent before each piece, and at
    the end.

    No more bytes are read than were measured: if the file grew, the daemon notices by the digest.

    Raises: UsageError: the file became shorter.
    """
    sent = 0
    file = await asyncio.to_thread(measured.path.open, "rb")
    try:
        while sent < measured.size:
            on_bytes(sent)
            chunk = await asyncio.to_thread(file.read, min(_CHUNK, measured.size - sent))
            if not chunk:
                remedy = "Let it be written to its end, then try again."
                raise UsageError(f"{measured.path} changed while it was sent to Ollama", remedy=remedy, field="digest")
            sent += len(chunk)
            yield chunk
        on_bytes(sent)
    finally:
        file.close()
