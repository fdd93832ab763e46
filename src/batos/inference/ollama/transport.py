"""The wire to Ollama as bytes: the daemon's address, the body of a request, the lines of a reply."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import httpx

from batos import notation
from batos.protocol.errors import ConfigError, InternalError, WireError


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
