"""The pure functions that turn what is thrown at us into one tree."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.inference.ollama.client import ResponseError
from batos.inference.ollama.failures import DaemonPeer, refusal, translate, unfold
from batos.protocol.errors import (
    ContextOverflow,
    OllamaError,
    OllamaTimeout,
    OllamaUnreachable,
    RequestRejected,
    Runaway,
    StreamCut,
    WireError,
)

PEER = DaemonPeer("http://gpu.lan:11434", 5.0)


@pytest.mark.parametrize(
    ("error", "text", "code"),
    [
        ("plain", "plain", None),
        ('{"error":{"code":400,"message":"too long"}}', "too long", 400),
        ({"code": 7, "message": "m"}, "m", 7),
        ('{"error":"inner"}', "inner", None),
        ('{"error":"{\\"error\\":{\\"code\\":5,\\"message\\":\\"deep\\"}}"}', "deep", 5),
        ("{not json", "{not json", None),
        (404, "404", None),
        (None, "null", None),
        ("", "", None),
    ],
)
def test_unfold(error: Any, text: str, code: int | None) -> None:
    """Text and details from every shape that `error` was seen in."""
    said, detail = unfold(error)
    assert (said, detail.get("code")) == (text, code)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["error", "message", "type", "n_ctx", "n_prompt_tokens", "x"]), inner)
    ),
    max_leaves=10,
)


@given(error=ANYTHING | ANYTHING.map(json.dumps), status=st.none() | st.integers(-1, 600))
def test_any_refusal_has_a_place_in_the_tree(error: Any, status: int | None) -> None:
    """Whatever `error` is, with whatever status, one error of ours comes of it, with a message and a remedy."""
    failed = refusal(error, status, "m")
    assert isinstance(failed, OllamaError)
    assert failed.message
    assert failed.remedy


def test_long_texts_are_clipped() -> None:
    """A page of HTML or a log of eight kilobytes does not become the message."""
    assert len(refusal("x" * 9000, 500).message) < 700


@pytest.mark.parametrize(
    ("raw", "began", "kind"),
    [
        (httpx.ConnectTimeout("slow"), False, OllamaTimeout),
        (httpx.ConnectError("no"), False, OllamaUnreachable),
        (ConnectionError("Failed to connect to Ollama."), False, OllamaUnreachable),
        (ConnectionResetError("reset"), False, OllamaUnreachable),
        (httpx.ReadError(""), False, OllamaUnreachable),
        (httpx.ReadError(""), True, StreamCut),
        (httpx.RemoteProtocolError("Server disconnected without sending a response."), False, OllamaUnreachable),
        (httpx.RemoteProtocolError("peer closed connection without sending complete message body"), True, StreamCut),
        (httpx.RemoteProtocolError("illegal status line"), False, WireError),
        (httpx.DecodingError("gzip"), True, WireError),
        (ResponseError("odd", -1), True, RequestRejected),
        (AttributeError("'int' object has no attribute 'get'"), True, WireError),
        (json.JSONDecodeError("bad", "x", 0), True, WireError),
        (RecursionError("deep"), False, WireError),
        (Runaway("blanks", 3), True, Runaway),
    ],
)
def test_translate(raw: Exception, began: bool, kind: type[OllamaError]) -> None:
    """The client's and the transport's exceptions, before and after the first line; ours pass as they are."""
    assert type(translate(raw, PEER, began=began)) is kind


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (httpx.ConnectError("All connection attempts failed"), "nothing listens at http://gpu.lan:11434"),
        (
            httpx.ConnectError("[Errno -2] Name or service not known"),
            "the host of http://gpu.lan:11434 cannot be resolved",
        ),
        (httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED]"), "no trusted connection to http://gpu.lan:11434"),
        (httpx.ReadError("reset"), "the connection to http://gpu.lan:11434 was lost"),
    ],
)
def test_who_cannot_be_reached_and_why(raw: Exception, said: str) -> None:
    """The address is named, and whether nothing listens, its name is unknown or its certificate is not trusted."""
    assert said in str(translate(raw, PEER))
    hidden = ConnectionError("Failed to connect to Ollama. Please check")
    hidden.__context__ = raw
    if isinstance(raw, httpx.ConnectError):
        assert said in str(translate(hidden, PEER))


@pytest.mark.parametrize(
    ("said", "remedy"),
    [("[SSL: WRONG_VERSION_NUMBER] wrong version number", "http://"), ("[SSL: CERTIFICATE_VERIFY_FAILED]", "SSL_CERT")],
)
def test_who_is_not_trusted_is_not_told_to_start(said: str, remedy: str) -> None:
    """The remedy is of the connection: plain HTTP where nothing speaks TLS, else who is to be trusted."""
    failed = translate(httpx.ConnectError(said), PEER)
    assert remedy in failed.remedy
    assert "ollama serve" not in failed.remedy


def test_overflow_without_counts() -> None:
    """Where the daemon names no counts, None stands for each and its own words are kept."""
    failed = refusal("the input length exceeds the context length", 400)
    assert isinstance(failed, ContextOverflow)
    assert (failed.prompt_tokens, failed.window) == (None, None)
    assert "input length" in failed.message
