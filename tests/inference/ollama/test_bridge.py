"""What the bridge sends and what it makes of good answers, byte for byte."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.inference.conftest import PATIENT, MakeBridge, chat
from tests.inference.raw_server import recorded, reply, said, serving, streamed

from batos.inference.ollama.bridge import Bridge
from batos.memory.segmentation import whole_sentences
from batos.protocol.errors import InternalError, OllamaUnreachable, UsageError

SCHEMA = {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}


async def test_a_recorded_stream_is_one_answer(bridge_to: MakeBridge) -> None:
    """The daemon's own stream gives its text, its counts and its durations in seconds."""
    pieces: list[str] = []
    async with serving(recorded(233)) as server:
        answer = await bridge_to(server.url).think(chat(), pieces.append)
    assert answer.text == "".join(pieces)
    assert len(pieces) == 6
    assert (answer.done_reason, answer.prompt_tokens, answer.answer_tokens) == ("length", 57, 8)
    assert 0 < answer.load_seconds < answer.total_seconds < 1


async def test_a_recorded_whole_reply_is_the_same_answer(bridge_to: MakeBridge) -> None:
    """A reply in one piece gives what the stream gives, and the listener hears it once."""
    pieces: list[str] = []
    async with serving(recorded(233), recorded(234)) as server:
        bridge = bridge_to(server.url)
        streamed_answer = await bridge.think(chat())
        whole = await bridge.think(chat(), pieces.append, stream=False)
    assert (whole.done_reason, whole.prompt_tokens) == (streamed_answer.done_reason, streamed_answer.prompt_tokens)
    assert pieces == [whole.text]
    assert json.loads(server.asked[1].body)["stream"] is False


async def test_a_recorded_constrained_stream_is_valid_json(bridge_to: MakeBridge) -> None:
    """Under a schema the pieces join to JSON, and blanks between its parts are counted as wasted."""
    async with serving(recorded(240)) as server:
        answer = await bridge_to(server.url).think(chat(schema=SCHEMA))
    assert json.loads(answer.text) == {"verdict": "yes", "score": 5}
    assert answer.wasted > 0


@pytest.mark.parametrize("stream", [True, False])
async def test_overflow_is_asked_for_on_every_chat(bridge_to: MakeBridge, stream: bool) -> None:
    """truncate and shift are false in the bytes sent, behind whatever else the body says, and the length is right."""
    async with serving(streamed("x") if stream else said("x")) as server:
        await bridge_to(server.url).think(chat(), stream=stream)
    asked = server.asked[0]
    assert asked.body.endswith(b',"truncate":false,"shift":false}')
    assert (asked.json["truncate"], asked.json["shift"]) == (False, False)
    assert int(asked.headers["content-length"]) == len(asked.body)


async def test_overflow_is_asked_for_on_every_embed_and_load(bridge_to: MakeBridge) -> None:
    """An embed carries truncate:false; a load goes through chat and carries both."""
    vectors = {"model": "e", "embeddings": [[1.0]], "prompt_eval_count": 1}
    async with serving(reply(vectors), recorded(208)) as server:
        bridge = bridge_to(server.url)
        await bridge.embed("e", ["x"])
        await bridge.load("robin", {"num_ctx": 512})
    assert server.asked[0].body.endswith(b',"truncate":false}')
    assert "shift" not in server.asked[0].json
    assert server.asked[1].body.endswith(b',"truncate":false,"shift":false}')


async def test_options_travel_whole(bridge_to: MakeBridge) -> None:
    """min_p and keys that the client's own Options class does not know arrive; num_predict gets its default."""
    options = {"num_ctx": 512, "min_p": 0.1, "draft_num_predict": 3, "stop": ["END"]}
    async with serving(streamed("x")) as server:
        await bridge_to(server.url).think(chat(options=options, think=False, keep_alive="5m", schema=SCHEMA))
    body = server.asked[0].json
    assert body["options"] == {**options, "num_predict": 1024}
    assert (body["think"], body["keep_alive"], body["format"]) == (False, "5m", SCHEMA)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({}, "options.num_ctx"),
        ({"num_ctx": 300}, "options.num_ctx"),
        ({"num_ctx": 0}, "options.num_ctx"),
        ({"num_ctx": "512"}, "options.num_ctx"),
        ({"num_ctx": True}, "options.num_ctx"),
        ({"num_ctx": 512, "num_predict": 0}, "options.num_predict"),
        ({"num_ctx": 512, "num_predict": -1}, "options.num_predict"),
        ({"num_ctx": 512, "num_predict": None}, "options.num_predict"),
    ],
)
async def test_options_that_the_daemon_would_bend_are_refused(
    bridge_to: MakeBridge, options: dict[str, Any], field: str
) -> None:
    """A window that would be rounded and a num_predict without end are UsageErrors, and nothing is sent."""
    async with serving(streamed("x")) as server:
        with pytest.raises(UsageError) as refused:
            await bridge_to(server.url).think(chat(options=options))
    assert refused.value.field == field
    assert server.asked == []


@pytest.mark.parametrize("model", ["", " ", "x:cloud", "x:local", "library/big:70b-cloud"])
async def test_models_that_are_not_here_are_refused(bridge_to: MakeBridge, model: str) -> None:
    """No name and the tags that Ollama reserves for what is not local are refused before anything is sent."""
    bridge = bridge_to("127.0.0.1:1")
    for call in (bridge.think(chat(model=model)), bridge.embed(model, ["x"]), bridge.show(model), bridge.delete(model)):
        with pytest.raises(UsageError) as refused:
            await call
        assert refused.value.field == "model"


async def test_a_chat_without_messages_is_refused(bridge_to: MakeBridge) -> None:
    """To the daemon it would be a load, and with keep_alive 0 an unload."""
    with pytest.raises(UsageError):
        await bridge_to("127.0.0.1:1").think(chat(messages=()))


@pytest.mark.parametrize(
    ("given", "sent"), [({"num_gpu": 0}, 3), ({"num_gpu": 0, "num_thread": 7}, 7), ({}, None), ({"num_gpu": 9}, None)]
)
async def test_cpu_runners_leave_cores_free(bridge_to: MakeBridge, given: dict[str, int], sent: int | None) -> None:
    """num_gpu 0 gets the fixed num_thread, unless one is given; other runners get none."""
    async with serving(streamed("x")) as server:
        await bridge_to(server.url, cpu_threads=3).think(chat(options={"num_ctx": 512, **given}))
    assert server.asked[0].json["options"].get("num_thread") == sent


async def test_what_json_cannot_hold_is_the_callers_error(bridge_to: MakeBridge) -> None:
    """A set among the options, and a message without a role, are UsageErrors, not the daemon's fault."""
    bridge = bridge_to("127.0.0.1:1")
    for request in (chat(options={"num_ctx": 512, "stop": {"x"}}), chat(messages=({"content": "x"},))):
        for stream in (True, False):
            with pytest.raises(UsageError):
                await bridge.think(request, stream=stream)


async def test_proxies_and_keys_of_the_environment_are_ignored(
    bridge_to: MakeBridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a proxy and a key set, the call goes straight to the daemon and carries no key."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv("OLLAMA_API_KEY", "secret")
    async with serving(streamed("x")) as server:
        assert (await bridge_to(server.url).think(chat())).text == "x"
    assert "authorization" not in server.asked[0].headers
    assert b"secret" not in server.asked[0].body


async def test_separators_of_lines_survive_inside_an_answer(bridge_to: MakeBridge) -> None:
    """Raw U+0085, U+2028 and U+2029 in the daemon's bytes reach the answer, and the stream goes on."""
    text = "a\u0085b\u2028c\u2029d\u00e9"
    raw = streamed("first", "SLOT", "last").replace(b"SLOT", text.encode())
    async with serving(_resized(raw)) as server:
        answer = await bridge_to(server.url).think(chat())
    assert answer.text == f"first{text}last"


def _resized(raw: bytes) -> bytes:
    """The same reply without chunks, ended by closing: its lines were edited."""
    lines = [part for part in raw.partition(b"\r\n\r\n")[2].split(b"\r\n") if part.startswith(b"{")]
    data = b"".join(lines)
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n" % len(data) + data


async def test_thinking_is_kept_apart(bridge_to: MakeBridge) -> None:
    """What a model thinks is in `thinking`, and no listener hears it."""
    pieces: list[str] = []
    message = {"role": "assistant", "content": "4", "thinking": "2 and 2"}
    async with serving(reply({"message": message, "done": True}), streamed("4")) as server:
        bridge = bridge_to(server.url)
        answer = await bridge.think(chat(), pieces.append, stream=False)
    assert (answer.text, answer.thinking, pieces) == ("4", "2 and 2", ["4"])


async def test_connections_are_used_again(bridge_to: MakeBridge) -> None:
    """Answers read one after the other share a connection; answers at the same time do not."""
    async with serving(streamed("x")) as server:
        bridge = bridge_to(server.url)
        for _ in range(5):
            await bridge.think(chat())
        assert server.connections == 1
        await asyncio.gather(*(bridge.think(chat()) for _ in range(3)))
    assert server.connections == 3


async def test_the_listeners_own_error_comes_out_as_it_is(bridge_to: MakeBridge) -> None:
    """An exception of on_token is not mistaken for one of the wire."""

    def listener(piece: str) -> None:
        raise LookupError(piece)

    async with serving(streamed("x")) as server:
        for stream in (True, False):
            server.scripts[0] = streamed("x") if stream else said("x")
            with pytest.raises(LookupError):
                await bridge_to(server.url).think(chat(), listener, stream=stream)


async def test_a_closed_bridge_says_so() -> None:
    """After closing every call is refused, and closing again is nothing."""
    async with serving(streamed("x")) as server:
        async with Bridge(server.url, deadlines=PATIENT) as bridge:
            await bridge.think(chat())
        await bridge.aclose()
        for call in (bridge.think(chat()), bridge.ps(), bridge.version(), bridge.embed("e", ["x"])):
            with pytest.raises(InternalError):
                await call


def test_a_bridge_belongs_to_one_loop() -> None:
    """Used from a second event loop it is refused: its connections live in the first."""
    bridge = Bridge("127.0.0.1:1")

    async def use() -> None:
        with pytest.raises(OllamaUnreachable):
            await bridge.version()

    asyncio.run(use())
    with pytest.raises(InternalError, match="another event loop"):
        asyncio.run(bridge.version())


async def test_an_answer_that_repeats_itself_is_ended_and_its_sentences_stand(bridge_to: MakeBridge) -> None:
    """The connection is closed soon after the fourth round; what the request keeps is the answer."""
    rounds = [" And", " on", ","] * 20
    async with serving(streamed("It", " is", " lit", ".", *rounds)) as server:
        heard: list[str] = []
        answer = await bridge_to(server.url).think(chat(keep=whole_sentences), heard.append)
        assert (answer.text, answer.done_reason) == ("It is lit.", "repeated")
        assert len(heard) < answer.answer_tokens == 4 + 12 + 8
        assert answer.wasted == 20
