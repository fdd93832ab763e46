"""The /v1 routes: requests taken over, replies in the other shape, refusals with their types."""

from __future__ import annotations

import json
import struct
from base64 import b64decode
from typing import Any

import pytest
from tests.ollama_emulator.clients import CHAT_MODEL, EMBEDDER, Client, Start

_ASKED = [{"role": "user", "content": "What is water?"}]
_CHAT = "/v1/chat/completions"


async def _events(client: Client, path: str, **fields: Any) -> list[dict[str, Any]]:
    reply = await client.post(path, stream=True, **fields)
    assert reply.headers["content-type"] == "text/event-stream"
    blocks = reply.text.split("\n\n")
    assert blocks[-2:] == ["data: [DONE]", ""]
    return [json.loads(block.removeprefix("data: ")) for block in blocks[:-2]]


async def test_a_stream_says_what_the_whole_reply_says(client: Client) -> None:
    """The role comes once, the last chunk is empty and gives the reason, usage comes behind when asked for."""
    whole = (await client.post(_CHAT, model=CHAT_MODEL, messages=_ASKED, max_tokens=6, seed=1)).json()
    chunks = await _events(
        client, _CHAT, model=CHAT_MODEL, messages=_ASKED, max_tokens=6, seed=1, stream_options={"include_usage": True}
    )
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks[:-1]]
    assert "".join(delta.get("content", "") for delta in deltas) == whole["choices"][0]["message"]["content"]
    assert [delta["role"] for delta in deltas if "role" in delta] == ["assistant"]
    assert deltas[-1] == {}
    assert chunks[-2]["choices"][0]["finish_reason"] == whole["choices"][0]["finish_reason"] == "length"
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == whole["usage"]
    assert len({chunk["id"] for chunk in chunks}) == 1


async def test_a_schema_and_a_list_of_stops_are_taken_over(client: Client) -> None:
    """A schema of OpenAI's shape is the daemon's format; strings in `stop` end the answer."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    wanted = {"type": "json_schema", "json_schema": {"schema": schema}}
    reply = (await client.post(_CHAT, model=CHAT_MODEL, messages=_ASKED, response_format=wanted)).json()
    assert set(json.loads(reply["choices"][0]["message"]["content"])) == {"a"}
    stopped = (await client.post(_CHAT, model=CHAT_MODEL, messages=_ASKED, stop=["a", 5])).json()
    assert "a" not in stopped["choices"][0]["message"]["content"]
    assert stopped["choices"][0]["finish_reason"] == "stop"


async def test_what_the_daemon_is_asked(client: Client) -> None:
    """Temperature and top_p are 1 unless said, parts become messages, a tool's result is named by its call."""
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Paris"}'}}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    ]
    reply = await client.post(_CHAT, model=CHAT_MODEL, messages=messages, max_tokens=3, reasoning_effort="none")
    assert reply.status_code == 200
    asked = client.emulator.requests[-1]["body"]
    assert asked["options"] == {"temperature": 1, "top_p": 1, "num_predict": 3}
    assert asked["think"] is False
    assert [message["content"] for message in asked["messages"]] == ["a", "b", "", "sunny"]
    assert asked["messages"][2]["tool_calls"][0]["function"] == {"name": "weather", "arguments": {"city": "Paris"}}
    assert asked["messages"][3]["tool_name"] == "weather"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"messages": []}, "[] is too short - 'messages'"),
        ({"messages": [{"role": "user", "content": 5}]}, "invalid message content type: float64"),
        ({"messages": [{"role": "user", "content": [5]}]}, "invalid message format"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}]}, "invalid image input"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"function": {"arguments": "x"}}]}]},
            "invalid tool call arguments",
        ),
        (
            {"messages": _ASKED, "max_tokens": "4"},
            "json: cannot unmarshal string into Go struct field ChatCompletionRequest.max_tokens of type int",
        ),
        (
            {"messages": _ASKED, "reasoning_effort": "x"},
            'invalid reasoning value: \'x\' (must be "high", "medium", "low", "max", or "none")',
        ),
    ],
)
async def test_a_request_that_cannot_be_taken_over(client: Client, fields: dict[str, Any], text: str) -> None:
    """400 in OpenAI's shape and without a newline, before the daemon's own handler is asked."""
    reply = await client.post(_CHAT, model=CHAT_MODEL, **fields)
    error = {"message": text, "type": "invalid_request_error", "param": None, "code": None}
    assert (reply.status_code, reply.json()) == (400, {"error": error})
    assert reply.text.endswith("}")


async def test_the_daemons_own_refusals_end_with_a_newline(client: Client) -> None:
    """And say of which type they are; a cloud model is refused in the daemon's shape."""
    for fields, status, kind in (({"model": "nope"}, 404, "not_found_error"), ({}, 400, "invalid_request_error")):
        reply = await client.post(_CHAT, messages=_ASKED, **fields)
        assert (reply.status_code, reply.json()["error"]["type"], reply.text[-1]) == (status, kind, "\n")
    reply = await client.post(_CHAT, messages=_ASKED, model="x:cloud")
    assert (reply.status_code, reply.json()["error"][:5]) == (403, "ollam")
    assert (await client.http.post(_CHAT, content=b"")).json()["error"]["message"] == "EOF"


async def test_completions(client: Client) -> None:
    """One text, whole or in chunks that all carry usage when it is asked for."""
    whole = (await client.post("/v1/completions", model=CHAT_MODEL, prompt="What is water?", max_tokens=4)).json()
    assert whole["object"] == "text_completion"
    assert whole["choices"][0]["finish_reason"] == "length"
    chunks = await _events(
        client,
        "/v1/completions",
        model=CHAT_MODEL,
        prompt="What is water?",
        max_tokens=4,
        stream_options={"include_usage": True},
    )
    assert "".join(choice["text"] for chunk in chunks for choice in chunk["choices"]) == whole["choices"][0]["text"]
    assert chunks[0]["usage"]["total_tokens"] == 0
    assert chunks[-1]["usage"] == whole["usage"]


async def test_vectors_are_numbers_or_packed(client: Client) -> None:
    """The same ones; of the length asked for."""
    asked = {"model": EMBEDDER, "input": ["the mind", "a stone"], "dimensions": 4}
    plain = (await client.post("/v1/embeddings", **asked)).json()["data"]
    packed = (await client.post("/v1/embeddings", **asked, encoding_format="base64")).json()["data"]
    for one, other in zip(plain, packed, strict=True):
        assert struct.unpack("<4f", b64decode(other["embedding"])) == pytest.approx(one["embedding"])
    refused = await client.post("/v1/embeddings", **asked, encoding_format="hex")
    assert refused.json()["error"]["message"].startswith("Invalid value for 'encoding_format' = hex.")


async def test_models_are_listed(client: Client, start: Start) -> None:
    """With their owner; no model is null and not an empty list."""
    listed = (await client.http.get("/v1/models")).json()
    assert {(row["id"], row["owned_by"]) for row in listed["data"]} == {(CHAT_MODEL, "library"), (EMBEDDER, "library")}
    one = (await client.http.get("/v1/models/all-minilm")).json()
    assert (one["id"], one["object"]) == ("all-minilm", "model")
    async with start(models=()) as empty:
        assert (await empty.http.get("/v1/models")).json() == {"object": "list", "data": None}


async def test_a_stream_that_fails_ends_without_done(client: Client) -> None:
    """An error in the middle is an empty chunk, as the daemon's middleware makes of it."""
    await client.http.post("/_emulator/fault", json={"match": {"path": _CHAT}, "do": "error_line"})
    reply = await client.post(_CHAT, model=CHAT_MODEL, messages=_ASKED, stream=True)
    assert reply.status_code == 200
    assert "[DONE]" not in reply.text
