"""What does not speak like a daemon, or never ends: each costs a bounded number of bytes and one error of our tree.

The loop watch looks on: no server here may hold the loop, however much lies ready to be read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import httpx
import pytest
from tests.inference.conftest import MakeBridge, chat
from tests.inference.raw_server import DONE, END, HEAD, chunk, line, reply, said, serving, streamed, token
from tests.waiting import a_moment, until

from batos.inference.ollama.bridge import Bridge, ChatRequest
from batos.inference.ollama.chat import stream_lines
from batos.inference.ollama.h11_transport import H11Transport
from batos.inference.ollama.transport import LINE_BYTES
from batos.protocol.errors import OllamaError, RequestRejected, Runaway, WireError

HTTP = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n"
SOCKETS = 8 << 20  # what the buffers of two sockets and two transports may hold beside
OPTIONS = {"num_ctx": 512, "num_predict": 16}


@dataclass(slots=True)
class Pouring:
    """A server that sends a head and then the same bytes for ever."""

    url: str = ""
    sent: int = 0


@asynccontextmanager
async def pouring(head: bytes, *turns: bytes) -> AsyncIterator[Pouring]:
    """A server whose reply has no end; `turns` come one after the other, again and again."""
    made = Pouring()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(head)
            for number in count():
                turn = turns[number % len(turns)]
                writer.write(turn)
                made.sent += len(turn)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        await asyncio.sleep(0)


def _tokens(number: int, **message: Any) -> bytes:
    """Lines of a stream that all differ, in one packet."""
    lines = [{"message": {"role": "assistant", "content": f"w{at}", **message}, "done": False} for at in range(number)]
    return b"".join(map(line, lines))


ENDLESS: dict[str, tuple[bytes, tuple[bytes, ...]]] = {
    "a line": (HEAD, (chunk(b"x" * 65536),)),
    "a string": (HEAD + chunk(b'{"message":{"content":"'), (chunk(b"x" * 65536),)),
    "blanks": (HEAD, (chunk(b" " * 65536),)),
    "a line in single bytes": (HEAD, (chunk(b"x") * 8192,)),
    "a body of a length": (HTTP + b"Content-Length: 99999999999999\r\n\r\n", (b"x" * 65536,)),
    "a body without a length": (HTTP + b"\r\n", (b"x" * 65536,)),
    "tokens of a megabyte": (HEAD, (token("a" * 900_000, done=False), token("b" * 900_000, done=False))),
    "an error": (HEAD.replace(b"200 OK", b"500 X"), (chunk(b"x" * 65536),)),
    "informational responses": (b"", (b"HTTP/1.1 100 Continue\r\n\r\n" * 500,)),
}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", ENDLESS)
async def test_a_reply_without_end_is_cut(bridge_to: MakeBridge, name: str, stream: bool) -> None:
    """However it goes on, it is WireError, and not many more bytes were taken than a line may have."""
    head, turns = ENDLESS[name]
    async with pouring(head, *turns) as server:
        with pytest.raises(WireError):
            await bridge_to(server.url).think(chat(options=OPTIONS), stream=stream)
    assert server.sent < 2 * LINE_BYTES + SOCKETS


@pytest.mark.parametrize("message", [{}, {"content": ""}, {"content": "", "thinking": "hm"}, {"content": "", "x": 1}])
async def test_tokens_without_end_are_a_runaway(bridge_to: MakeBridge, message: dict[str, Any]) -> None:
    """Other tokens each time, empty ones, thoughts: beyond four times num_predict and 64 it is stopped."""
    lines = _tokens(500, **message)
    if "thinking" in message:
        lines = lines.replace(b'"hm"', b'"h1"') + lines
    async with pouring(HEAD, lines) as server:
        with pytest.raises(Runaway) as runaway:
            await bridge_to(server.url).think(chat(options=OPTIONS))
    if "thinking" not in message:
        assert (runaway.value.kind, runaway.value.wasted) == ("length", stream_lines(16))
        assert "limit" in runaway.value.message


async def test_an_answer_at_the_limit_is_whole(bridge_to: MakeBridge) -> None:
    """As many lines as are permitted are an answer, though each token came in four of them."""
    pieces = [f"w{at} " for at in range(stream_lines(16) - 1)]
    async with serving(streamed(*pieces)) as server:
        answer = await bridge_to(server.url).think(chat(options=OPTIONS))
    assert answer.text == "".join(pieces)


#: Made before any loop runs.
THOUSANDS = streamed(*(f"w{at * 7919 % 3000} " for at in range(3000)))
LONG_LIST = reply({"models": [{"model": f"m{at}", "size": 1, "digest": "0" * 64} for at in range(8000)]})
BLANKS = (" " * 255 + "x") * 4000
BLANKS_SAID = said(BLANKS)


async def test_lines_that_lie_ready_leave_others_their_turn(bridge_to: MakeBridge) -> None:
    """While thousands of lines are read that all came at once, another task runs in between."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with serving(THOUSANDS) as server:
        others = asyncio.create_task(other())
        answer = await bridge_to(server.url).think(chat(options={"num_ctx": 512, "num_predict": 1024}))
        others.cancel()
    assert len(answer.text.split()) == 3000
    assert turns > 3000 / 256


async def test_what_follows_done_without_end_costs_nothing(bridge_to: MakeBridge) -> None:
    """The answer is given, and the connection closed."""
    async with pouring(HEAD + token("yes", done=False) + token("", **DONE), _tokens(500)) as server:
        assert (await bridge_to(server.url).think(chat())).text == "yes"
    assert server.sent < LINE_BYTES + SOCKETS


async def test_progress_without_end_leaves_others_their_turn(bridge_to: MakeBridge) -> None:
    """A pull may have any number of lines; whoever reads them as they come holds no loop, and a line has its bound."""
    steps = line({"status": "pulling", "completed": 1, "total": 2}) * 500
    async with pouring(HEAD, steps) as server:
        pull = bridge_to(server.url).pull("m")
        for _ in range(4000):
            assert (await anext(pull)).total == 2
        await pull.aclose()
    async with pouring(HEAD, chunk(b"x" * 65536)) as server:
        with pytest.raises(WireError):
            await anext(bridge_to(server.url).pull("m"))


async def test_who_does_not_read_lets_the_server_wait() -> None:
    """Bytes that nobody reads are not taken from the socket without end."""
    lanes = H11Transport()
    async with pouring(HEAD, chunk(b"x" * 65536)) as server:
        response = await lanes.handle_async_request(httpx.Request("GET", server.url))
        await until(lambda: all(lane._held for lane in lanes._busy), "an end of reading")
        await a_moment()
        assert server.sent < 2 * SOCKETS
        await response.aclose()
    await lanes.aclose()


async def test_a_connection_that_had_to_wait_is_used_again(bridge_to: MakeBridge) -> None:
    """After a reply larger than what may lie unread, the same connection serves the next call."""
    async with serving(LONG_LIST, LONG_LIST, reply({"models": []})) as server, H11Transport() as lanes:
        for _ in range(2):
            response = await lanes.handle_async_request(httpx.Request("GET", server.url))
            assert len(await response.aread()) > 600_000
            await response.aclose()
        await a_moment()
        response = await lanes.handle_async_request(httpx.Request("GET", server.url))
        assert await response.aread() == b'{"models": []}'
        await response.aclose()
    assert server.connections == 1


BEYOND = [10**400, 2**53 + 1, -1]
COUNTS = ("eval_count", "prompt_eval_count", "total_duration", "load_duration")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("number", BEYOND)
@pytest.mark.parametrize("name", COUNTS)
async def test_counts_are_not_believed(bridge_to: MakeBridge, name: str, number: int, stream: bool) -> None:
    """A count or duration of a chat or embedding that is negative or beyond 2**53 is WireError."""
    wrong = {**DONE, name: number}
    good = HEAD + token("a", done=False) + token("", **wrong) + END if stream else said("a", **wrong)
    vectors = reply({"embeddings": [[1.0]], name: number})
    async with serving(good, vectors) as server:
        bridge = bridge_to(server.url)
        with pytest.raises(WireError):
            await bridge.think(chat(), stream=stream)
        if name != "eval_count":
            with pytest.raises(WireError):
                await bridge.embed("e", ["x"])


Calls = Callable[[Bridge], Awaitable[Any]]
SAID: dict[str, tuple[bytes, Calls]] = {
    **{
        f"{name} of {number if number < 2**60 else '10**400'} in {path}": (
            reply({"models": [{"model": "m", name: number}]}),
            call,
        )
        for number in BEYOND
        for path, name, call in (
            ("tags", "size", Bridge.list),
            ("ps", "size", Bridge.ps),
            ("ps", "size_vram", Bridge.ps),
            ("ps", "context_length", Bridge.ps),
        )
    },
    "a size without end": (reply(b'{"models":[{"size":1e999}]}'), Bridge.ps),
    "a window without end": (
        reply(b'{"model_info":{"a.context_length":1' + b"0" * 400 + b"}}"),
        lambda bridge: bridge.show("m"),
    ),
    "a number that is none": (reply(b'{"model_info":{"a":NaN}}'), lambda bridge: bridge.show("m")),
    "a version of many digits": (reply({"version": "1" * 100_000}), Bridge.version),
    "a version that is a number": (reply(b'{"version":' + b"1" * 100_000 + b"}"), Bridge.version),
    "a version that no terminal shows": (reply({"version": "0.30\ud800"}), Bridge.version),
    "a version that is none": (reply({"version": None}), Bridge.version),
    "a vector without end": (reply(b'{"embeddings":[[1e999]]}'), lambda bridge: bridge.embed("e", ["x"])),
    "progress without end": (
        reply(b'{"status":"x","total":1' + b"0" * 400 + b"}\n"),
        lambda bridge: anext(bridge.pull("m")),
    ),
}


@pytest.mark.parametrize("name", SAID)
async def test_numbers_of_other_calls_are_not_believed(bridge_to: MakeBridge, name: str) -> None:
    """What list, show, ps, version, embed and pull say that cannot be is WireError."""
    body, call = SAID[name]
    async with serving(body) as server:
        with pytest.raises(WireError):
            await call(bridge_to(server.url))


async def test_lone_surrogates_become_what_can_be_written(bridge_to: MakeBridge) -> None:
    """Names and answers with half a character carry U+FFFD in its place; whole characters stay."""
    row = {"model": "m\ud800", "name": "m\ud800", "digest": "\udc00", "details": {"family": "\ud800"}}
    message = {"role": "assistant", "content": "a\ud800b\u00e9\U0001f600", "thinking": "\udfff"}
    heard: list[str] = []
    async with serving(
        reply({"models": [row]}),
        reply({"models": [row]}),
        reply({"modelfile": "\ud800", "template": "\ud800", "model_info": {"\ud800": "\ud800"}}),
        HEAD + line({"message": message, "done": False}) + token("", **DONE) + END,
        reply({"message": message, **DONE}),
        reply({"error": "no \ud800 and \x1b[31mred\x07"}, 400),
    ) as server:
        bridge = bridge_to(server.url)
        names = [(await bridge.list())[0].name, (await bridge.ps())[0].name]
        card = await bridge.show("m")
        answers = [await bridge.think(chat(), heard.append, stream=stream) for stream in (True, False)]
        with pytest.raises(RequestRejected) as refused:
            await bridge.think(chat())
    assert names == ["m\ufffd", "m\ufffd"]
    assert (card.modelfile, card.template, dict(card.info)) == ("\ufffd", "\ufffd", {"\ufffd": "\ufffd"})
    assert {(answer.text, answer.thinking) for answer in answers} == {("a\ufffdb\u00e9\U0001f600", "\ufffd")}
    assert heard == ["a\ufffdb\u00e9\U0001f600"] * 2
    assert refused.value.message.endswith("no \ufffd and \ufffd[31mred\ufffd")


async def test_an_error_too_deep_to_be_said_is_still_one(bridge_to: MakeBridge) -> None:
    """An error of a thousand nested lists, or counts of an overflow that cannot be, end as errors of our tree."""
    deep = b'{"error":' + b'{"a":' * 900 + b"1" + b"}" * 900 + b"}"
    counts = json.dumps({"error": {"type": "exceed_context_size_error", "n_prompt_tokens": 10**400, "n_ctx": -1}})
    async with serving(reply(deep, 500), HEAD + line(deep) + END, reply({"error": counts}, 400)) as server:
        bridge = bridge_to(server.url)
        for _ in range(3):
            with pytest.raises(OllamaError):
                await bridge.think(chat())


async def test_a_prompt_of_blanks_is_judged_at_once(bridge_to: MakeBridge) -> None:
    """Runs of blanks, each a little shorter than what is a runaway, are looked through once and not for each blank."""
    request = ChatRequest("m", ({"role": "user", "content": "x"},), {"num_ctx": 512, "num_predict": 4096})
    async with serving(BLANKS_SAID) as server:
        assert (await bridge_to(server.url).think(request, stream=False)).text == BLANKS
