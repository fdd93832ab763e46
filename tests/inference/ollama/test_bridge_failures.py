"""Every trap of the wire, from recorded bytes or written-down scripts: each ends in one error of our tree."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.inference.conftest import PATIENT, MakeBridge, chat
from tests.inference.raw_server import (
    CLOSE,
    DONE,
    END,
    HEAD,
    RESET,
    STAMP,
    Script,
    chunk,
    exchanges,
    line,
    recorded,
    reply,
    said,
    serving,
    streamed,
    token,
)

from batos.inference.ollama.bridge import Bridge
from batos.protocol.errors import (
    BatosError,
    ContextOverflow,
    ModelLoadFailed,
    ModelMissing,
    ModelUnsuitable,
    OllamaBusy,
    OllamaError,
    OllamaUnfit,
    OllamaUnreachable,
    RequestRejected,
    Runaway,
    RunnerDied,
    StreamCut,
    WireError,
)

OVERFLOW = {
    "error": {
        "code": 400,
        "message": "request (283 tokens) exceeds the available context size (256 tokens), try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": 283,
        "n_ctx": 256,
    }
}

Failing = tuple[Script, bool, type[BatosError]]

FAILURES: dict[str, Failing] = {
    "no done line": (HEAD + token("half", done=False) + END, True, StreamCut),
    "no line at all": (HEAD + END, True, StreamCut),
    "done false, whole": (said("half", done=False, done_reason=None), False, StreamCut),
    "closed in the middle": ([HEAD + token("half", done=False), CLOSE], True, StreamCut),
    "reset in the middle": ([HEAD + token("half", done=False), 0.01, RESET], True, StreamCut),
    "closed in the middle of a whole reply": ([said("x" * 50)[:-20], CLOSE], False, StreamCut),
    "error line": (HEAD + token("half", done=False) + line({"error": "something odd"}) + END, True, RequestRejected),
    "runner killed while answering": (recorded(440), True, RunnerDied),
    "runner killed while answering, whole": (recorded(444), False, RunnerDied),
    "runner killed while loading": (recorded(447), False, ModelLoadFailed),
    "runner killed while loading, asked to stream": (recorded(447), True, ModelLoadFailed),
    "dict-valued error in a stream": (HEAD + line({"error": json.dumps(OVERFLOW)}) + END, True, ContextOverflow),
    "an error that is a number": (HEAD + line({"error": "404"}) + END, True, WireError),
    "an error that is a JSON string": (reply(b'"just text"', 500), True, WireError),
    "an error that is an object": (HEAD + line({"error": {"message": "busy", "code": 7}}) + END, True, WireError),
    "empty error": (HEAD + line({"error": ""}) + END, True, WireError),
    "empty error, whole": (reply({"error": ""}), False, WireError),
    "empty line": (HEAD + token("a", done=False) + chunk(b"\n") + END, True, WireError),
    "no JSON": (HEAD + line(b"<html>") + END, True, WireError),
    "a list": (HEAD + line(b"[1]") + END, True, WireError),
    "an answer without message": (HEAD + line({"model": "m", "done": True}) + END, True, WireError),
    "numbers for text": (HEAD + line({"message": {"role": "assistant", "content": 5}}) + END, True, WireError),
    "deep nesting": (HEAD + line(b"[" * 100_000) + END, True, WireError),
    "no HTTP": ([b"SSH-2.0-OpenSSH_9.2\r\n\r\n", CLOSE], True, WireError),
    "nothing": (CLOSE, True, OllamaUnreachable),
    "nothing, whole": (CLOSE, False, OllamaUnreachable),
    "half a head": ([b"HTTP/1.1 200 OK\r\nConte", CLOSE], True, OllamaUnreachable),
    "reset at once": (RESET, True, OllamaUnreachable),
    "queue full": (recorded(8, "limits"), False, OllamaBusy),
    "queue full, asked to stream": (recorded(8, "limits"), True, OllamaBusy),
    "request canceled": (reply({"error": "request canceled"}, 499), True, ModelLoadFailed),
    "499 without a text": (reply(b"", 499), False, ModelLoadFailed),
    "no such model": (recorded(56), True, ModelMissing),
    "no chat": (reply({"error": '"embedder" does not support chat'}, 400), True, ModelUnsuitable),
    "no thinking": (reply({"error": '"robin" does not support thinking'}, 400), True, ModelUnsuitable),
    "overlong, rendered": (recorded(286), True, ContextOverflow),
    "overlong, whole": (recorded(283), False, ContextOverflow),
    "out of memory": (
        reply({"error": "llama-server reported out-of-memory during startup: cudaMalloc"}, 500),
        True,
        ModelLoadFailed,
    ),
    "load stalled": (reply({"error": "timed out waiting for llama-server to start - 0%"}, 500), True, ModelLoadFailed),
    "runner stopped": (
        HEAD + line({"error": "model runner has unexpectedly stopped, this may be due to resource limitations"}) + END,
        True,
        RunnerDied,
    ),
    "no server binary": (
        reply({"error": "error starting llama-server: llama-server binary not found (checked: x)"}, 500),
        True,
        OllamaUnfit,
    ),
    "wrong option": (recorded(250), False, RequestRejected),
    "unknown schema type": (recorded(247), False, RequestRejected),
    "unknown host name": (recorded(13), True, RequestRejected),
    "unknown path": (recorded(8), True, OllamaUnfit),
    "wrong method": (recorded(9), True, OllamaUnfit),
    "gateway": (reply(b"<html>502 Bad Gateway</html>", 502, "text/html"), True, OllamaUnreachable),
    "redirect": (b"HTTP/1.1 302 X\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n", True, WireError),
    "blanks without end, constrained": (streamed("{", *["\n\t"] * 60), True, Runaway),
    "one token without end": (streamed(*["spam"] * 40), True, Runaway),
    "stopped by the daemon after one token": (said("well" + " so" * 60, done=False), False, Runaway),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_failure(bridge_to: MakeBridge, name: str) -> None:
    """The named failure of the wire is the one error that says it."""
    script, stream, kind = FAILURES[name]
    schema = {"type": "object"} if "constrained" in name else None
    async with serving(script) as server:
        with pytest.raises(BatosError) as failed:
            await bridge_to(server.url).think(chat(schema=schema), stream=stream)
    assert type(failed.value) is kind
    assert failed.value.message
    assert failed.value.remedy


async def test_overflow_carries_the_exact_counts(bridge_to: MakeBridge) -> None:
    """From recorded 400s, and from the same error inside a stream: how many tokens came, how many would fit."""
    async with serving(recorded(283), HEAD + line({"error": json.dumps(OVERFLOW)}) + END) as server:
        bridge = bridge_to(server.url)
        counts = []
        for _ in range(2):
            with pytest.raises(ContextOverflow) as overflow:
                await bridge.think(chat())
            counts.append((overflow.value.prompt_tokens, overflow.value.window))
    assert counts == [(3759, 512), (283, 256)]


async def test_embed_failures(bridge_to: MakeBridge) -> None:
    """A chat model cannot embed (501), a text may be too long (400), a model may be missing (404)."""
    async with serving(recorded(365), recorded(363), recorded(71), reply({"embeddings": []}), said("x")) as server:
        bridge = bridge_to(server.url)
        for kind in (ModelUnsuitable, ContextOverflow, ModelMissing, WireError, WireError):
            with pytest.raises(OllamaError) as failed:
                await bridge.embed("embedder", ["x"])
            assert type(failed.value) is kind


@pytest.mark.parametrize("stream", [True, False])
async def test_a_refused_connection_is_one_error(bridge_to: MakeBridge, stream: bool) -> None:
    """The client raises ConnectionError for whole calls and httpx.ConnectError for streams; we say one thing."""
    with pytest.raises(OllamaUnreachable, match="nothing listens"):
        await bridge_to("127.0.0.1:1").think(chat(), stream=stream)


async def test_every_call_says_that_nothing_listens(bridge_to: MakeBridge) -> None:
    """The same for every other call."""
    bridge = bridge_to("127.0.0.1:1")
    calls: list[Any] = [
        bridge.version(),
        bridge.list(),
        bridge.ps(),
        bridge.show("m"),
        bridge.delete("m"),
        bridge.embed("m", ["x"]),
        bridge.has_blob("sha256:" + "0" * 64),
        bridge.load("m", {"num_ctx": 512}),
        bridge.unload("m"),
        anext(bridge.pull("m")),
        anext(bridge.create("m", from_="x")),
    ]
    for call in calls:
        with pytest.raises(OllamaUnreachable):
            await call


async def test_a_stream_that_breaks_behind_done_is_an_answer(bridge_to: MakeBridge) -> None:
    """What comes or does not come behind the line with `done` takes nothing from the answer."""
    good = HEAD + token("yes", done=False) + token("", **DONE)
    behinds: list[Script] = [[good, CLOSE], [good, RESET], good + chunk(b"rubbish\n") + END]
    for behind in behinds:
        async with serving(behind) as server:
            assert (await bridge_to(server.url).think(chat())).text == "yes"


async def test_runaway_counts_what_was_wasted(bridge_to: MakeBridge) -> None:
    """The count is of all tokens, since nothing of them is kept, and the kind says which they were."""
    async with serving(streamed("ok", *["spam"] * 40), streamed("ok", *[" "] * 300)) as server:
        bridge = bridge_to(server.url)
        with pytest.raises(Runaway) as one:
            await bridge.think(chat())
        with pytest.raises(Runaway) as blanks:
            await bridge.think(chat())
    assert (one.value.kind, one.value.wasted) == ("one token", 32)
    assert (blanks.value.kind, blanks.value.wasted) == ("blanks", 32)


async def test_every_recorded_refusal_is_of_our_tree(bridge_to: MakeBridge) -> None:
    """All refusals that a real daemon was made to give, put before a chat, are OllamaErrors with a remedy."""
    for file in ("exchanges", "limits"):
        numbers = [number for number, one in exchanges(file).items() if (one["response"].get("status") or 0) >= 400]
        assert numbers
        async with serving(*(recorded(number, file) for number in numbers)) as server:
            bridge = bridge_to(server.url)
            for _ in numbers:
                with pytest.raises(OllamaError) as failed:
                    await bridge.think(chat())
                assert failed.value.remedy


BODIES = st.one_of(
    st.binary(max_size=300),
    st.lists(
        st.one_of(
            st.binary(max_size=40),
            st.sampled_from([b"\n", b"\xc2\x85", b"\xe2\x80", b'{"error":', b'"done":true', b"{}\n", b"\xff"]),
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
                lambda inner: (
                    st.lists(inner, max_size=3)
                    | st.dictionaries(st.sampled_from(["error", "message", "content", "done", "eval_count"]), inner)
                ),
                max_leaves=8,
            ).map(lambda value: json.dumps(value).encode() + b"\n"),
        ),
        max_size=8,
    ).map(b"".join),
)


@given(body=BODIES, status=st.sampled_from([200, 200, 400, 404, 500, 503]), raw=st.booleans(), stream=st.booleans())
async def test_no_bytes_leak_a_raw_exception(body: bytes, status: int, raw: bool, stream: bool) -> None:
    """Whatever a server sends, as a body or in place of HTTP, is an answer or an error of our tree."""
    script: Script = [body, CLOSE] if raw else reply(body, status, "application/x-ndjson")
    async with serving(script) as server, Bridge(server.url, deadlines=PATIENT) as bridge:
        with suppress(OllamaError):
            await bridge.think(chat(), stream=stream)
        with suppress(OllamaError):
            await bridge.embed("e", ["x"])


@given(body=BODIES, status=st.sampled_from([200, 400, 500]))
async def test_no_bytes_leak_from_the_other_calls(body: bytes, status: int) -> None:
    """The same for the calls that run no model."""
    async with (
        serving(reply(body, status, "application/json")) as server,
        Bridge(server.url, deadlines=PATIENT) as bridge,
    ):
        for call in (bridge.version, bridge.list, bridge.ps, lambda: bridge.show("m"), lambda: anext(bridge.pull("m"))):
            with suppress(OllamaError):
                await call()


def test_the_stamp_is_as_recorded() -> None:
    """The scripts' time stamp has the nine digits that a real daemon sends."""
    assert len(STAMP) == len("2026-11-21T14:32:37.176305271Z")
