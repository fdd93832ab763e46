"""Bytes to the daemon and back without a client between: refusals, encodings, lines, and a list that changes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import httpx
import pytest
from tests.inference.conftest import MakeBridge
from tests.inference.raw_server import reply, serving

from batos.inference.canonical import EncodedMessages, EncodedSchema
from batos.inference.ollama.client import ResponseError
from batos.inference.ollama.transport import RawExchange, encode
from batos.protocol.errors import UsageError, WireError


class Pieces(httpx.AsyncByteStream):
    """A body that comes in these pieces."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


class Answers(httpx.AsyncBaseTransport):
    """Answers each request with the same, and keeps the requests."""

    def __init__(self, status: int, body: bytes, **headers: str) -> None:
        self.asked: list[httpx.Request] = []
        #: The body in several pieces, in place of one.
        self.pieces: list[bytes] = []
        self._status, self._body, self._headers = status, body, headers

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Keep the request and answer."""
        self.asked.append(request)
        return httpx.Response(self._status, headers=self._headers, stream=Pieces(self.pieces or [self._body]))


def exchange(transport: httpx.AsyncBaseTransport) -> RawExchange:
    """An exchange whose daemon lies below a path."""
    return RawExchange("http://daemon:1/below/", transport, 5.0)


async def test_what_is_posted_and_how_its_lines_come() -> None:
    """The path stays below the daemon's, the length is named, and a last line needs no end."""
    transport = Answers(200, b'{"a":"\xe2\x80\xa8"}\n{"b":2}\n{"c":3}')
    async with aclosing(exchange(transport).lines("/api/chat", {"model": "m"})) as lines:
        assert [line async for line in lines] == [b'{"a":"\\u2028"}', b'{"b":2}', b'{"c":3}']
    assert str(transport.asked[0].url) == "http://daemon:1/below/api/chat"
    stream = transport.asked[0].stream
    assert isinstance(stream, httpx.AsyncByteStream)
    assert [chunk async for chunk in stream] == [b'{"model":"m"}']
    assert transport.asked[0].headers["Content-Length"] == "13"
    assert transport.asked[0].headers["Host"] == "daemon:1"
    assert transport.asked[0].extensions["timeout"] == {"connect": 5.0}


@pytest.mark.parametrize("status", [302, 400, 500])
async def test_every_status_but_success_is_a_refusal(status: int) -> None:
    """A redirect is not followed: what it says, and its number, are the error's."""
    with pytest.raises(ResponseError) as refused:
        await exchange(Answers(status, b"no \xff")).whole("GET", "/api/tags")
    assert (refused.value.status_code, refused.value.error) == (status, "no \ufffd")


async def test_a_reply_that_is_encoded_is_refused() -> None:
    """Nobody asked for it, and what it unpacks to has no bound."""
    with pytest.raises(WireError, match="gzip"):
        await exchange(Answers(200, b"x", **{"Content-Encoding": "gzip"})).whole("GET", "/api/tags")


@pytest.mark.parametrize("named", ["identity", "Identity", ""])
async def test_a_plain_reply_may_be_called_so(named: str) -> None:
    """A line that comes in two pieces is one line, and its separators are escaped, also where the head says that the
    body is not encoded."""
    transport = Answers(200, b"", **{"Content-Encoding": named})
    transport.pieces = [b'{"a":"\xe2', b'\x80\xa8"}\n{"b"', b":2}\n"]
    async with aclosing(exchange(transport).lines("/api/chat", {})) as lines:
        assert [line async for line in lines] == [b'{"a":"\\u2028"}', b'{"b":2}']


async def test_an_encoded_refusal_is_told_by_its_status() -> None:
    """Its body is not read: it would be letters of no language, and as long as a proxy likes."""
    with pytest.raises(ResponseError) as refused:
        await exchange(Answers(502, b"\x1f\x8b", **{"Content-Encoding": "gzip"})).whole("GET", "/api/tags")
    assert (refused.value.status_code, refused.value.error) == (502, "")


@pytest.mark.parametrize("value", [float("nan"), {1}, "\ud800"])
def test_what_json_or_its_bytes_cannot_hold_is_not_sent(value: Any) -> None:
    """A number that is none, a set, half a surrogate pair: the caller's error."""
    with pytest.raises(UsageError):
        encode({"options": value})


def test_parts_that_are_encoded_already_are_sent_as_they_are() -> None:
    """Messages and schema stand in the body as in the journal; half a surrogate pair in them is refused too."""
    told, schema = EncodedMessages(({"role": "user", "content": "Où?"},)), EncodedSchema(type="object")
    sent = {"model": "m", "format": schema, "messages": told}
    assert json.loads(encode(sent)) == {**sent, "messages": list(told)}
    assert told.form in encode(sent)
    assert encode({"messages": told}) == b'{"messages":%b}' % told.form
    with pytest.raises(UsageError):
        encode({"model": "m", "messages": EncodedMessages(({"role": "user", "content": "\ud800"},))})


async def test_a_list_that_changed_by_one_byte_is_read_again(bridge_to: MakeBridge) -> None:
    """A model of the same name with another digest is seen at the next look; an error between changes nothing."""
    first, other = ({"models": [{"name": "m", "model": "m", "digest": d * 64, "size": 1}]} for d in "ab")
    async with serving(reply(first), reply(first), reply(other), reply(b"{"), reply(first)) as server:
        bridge = bridge_to(server.url)
        assert [(await bridge.list())[0].digest[0] for _ in range(3)] == ["a", "a", "b"]
        with pytest.raises(WireError):
            await bridge.list()
        assert (await bridge.list())[0].digest[0] == "a"
