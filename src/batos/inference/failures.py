"""Pure functions from everything that the client, the transport or the daemon may throw at us into our error tree."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import pydantic

from batos.errors import (
    AnswerError,
    BatosError,
    ContextOverflow,
    ModelLoadFailed,
    ModelMissing,
    ModelUnsuitable,
    OllamaBusy,
    OllamaError,
    OllamaTimeout,
    OllamaUnfit,
    OllamaUnreachable,
    RequestRejected,
    RunnerDied,
    StreamCut,
    UsageError,
    WireError,
)
from batos.inference.client import ResponseError
from batos.inference.counts import MOST

_TEXT_LIMIT = 600

# What the daemon says, in lower case, and what it means. Order matters: the first that occurs decides.
_SAYINGS: tuple[tuple[str, type[OllamaError]], ...] = (
    ("exceeds the available context size", ContextOverflow),
    ("the input length exceeds the context length", ContextOverflow),
    ("the prompt is longer than the context length", ContextOverflow),
    ("server busy", OllamaBusy),
    ("binary not found", OllamaUnfit),
    ("requires mlx support", OllamaUnfit),
    ("newer version of ollama", OllamaUnfit),
    ("process has terminated", ModelLoadFailed),
    ("out-of-memory", ModelLoadFailed),
    ("out of memory", ModelLoadFailed),
    ("timed out waiting for llama-server", ModelLoadFailed),
    ("requires more system memory", ModelLoadFailed),
    ("error starting llama-server", ModelLoadFailed),
    ("request canceled", ModelLoadFailed),
    ("an error was encountered while running the model", RunnerDied),
    ("has unexpectedly stopped", RunnerDied),
    ("does not support", ModelUnsuitable),
    ("loras are not yet implemented", ModelUnsuitable),
    ("pull model manifest: file does not exist", ModelMissing),
)

_BY_STATUS: dict[int, type[OllamaError]] = {
    405: OllamaUnfit,
    499: ModelLoadFailed,
    501: ModelUnsuitable,
    502: OllamaUnreachable,
    503: OllamaBusy,
    504: OllamaUnreachable,
}

_REMEDIES: tuple[tuple[str, str], ...] = (
    ("dial tcp", "The daemon has no way to the registry: pull the model when there is a network."),
    ("max retries exceeded", "The registry does not answer: try again later, what was loaded so far is kept."),
    ("json_schema", "This is a defect of the decision's schema: please report it."),
    ("grammar", "This is a defect of the decision's schema: please report it."),
    ("must be of type", "Correct that option in the codex."),
    ("cloud", "Only local models are used: name another in the codex."),
    ("digest mismatch", "The file changed while it was uploaded: try again."),
)


@dataclass(frozen=True, slots=True)
class Peer:
    """Whom a call went to: the daemon's address, and the seconds a connection to it may take."""

    url: str
    connect: float


def translate(raw: Exception, peer: Peer, *, model: str = "", began: bool = False) -> BatosError:
    """The error of our tree for what came out of the client; `began` says whether a line of the answer had come.

    Whatever is not known is WireError: the daemon or something before it did not speak the protocol.
    """
    if isinstance(raw, BatosError):
        return raw
    if _of_request(raw):
        return UsageError(f"this cannot be sent to Ollama: {_fact(raw)}", remedy="Correct the request or its options.")
    if isinstance(raw, ResponseError):
        return refused(raw.error, raw.status_code, model)
    if isinstance(raw, httpx.TimeoutException):
        return OllamaTimeout("connect", peer.connect)
    if isinstance(raw, httpx.RemoteProtocolError):
        return _broken_protocol(str(raw))
    if isinstance(raw, (httpx.ConnectError, httpx.NetworkError, ConnectionError)):
        return _lost(raw, peer, began)
    return WireError(f"Ollama sent what is not its protocol: {_fact(raw)}")


def refused(error: Any, status: int | None, model: str = "") -> OllamaError:
    """The error for a refusal: `error` is text, or the dict the client made of it; inside a stream the status is -1."""
    text, detail = unfold(error)
    low = text.lower()
    inside = status is None or status < 0
    code = None if inside else status
    if detail.get("type") == "exceed_context_size_error" or "n_prompt_tokens" in detail:
        return ContextOverflow(_count(detail, "n_prompt_tokens"), _count(detail, "n_ctx"))
    for saying, kind in _SAYINGS:
        if saying in low:
            return _make(kind, text, model)
    if code == 404:
        return ModelMissing(model, text) if "model" in low and "not found" in low else _not_ollama(text)
    if code in _BY_STATUS:
        return _make(_BY_STATUS[code], text, model)
    if code is not None and code < 400:
        return WireError(f"Ollama answered with the status {code}, which it never does")
    return _rejected(text, code)


def unfold(error: Any) -> tuple[str, Mapping[str, Any]]:
    """Text and details of the daemon's `error` value: llama-server's own errors come as JSON text inside it.

    `'{"error":{"code":400,"message":"too long","n_ctx":256}}'` -> `("too long", {"code": 400, ...})`.
    """
    detail: Mapping[str, Any] = {}
    for _ in range(4):
        if isinstance(error, str) and error.lstrip().startswith("{"):
            try:
                error = json.loads(error)
            except (ValueError, RecursionError):
                break
        if not isinstance(error, Mapping):
            break
        inner = error.get("error")
        if inner is None:
            detail = error
            inner = error.get("message", "")
            error = inner if isinstance(inner, str) and inner else _dumped(dict(detail))
            break
        error = inner
    text = error if isinstance(error, str) else _dumped(error)
    return _clip(text.strip()), detail


def not_done(text: str = "") -> AnswerError:
    """A stream that ended without `done`, or a whole reply with `done: false`."""
    came = f" after {len(text)} characters" if text else ""
    return StreamCut(f"the answer ended{came} without the daemon saying that it was done")


def _make(kind: type[OllamaError], text: str, model: str) -> OllamaError:
    if kind is ContextOverflow:
        return ContextOverflow(None, None, text)
    if kind is ModelMissing:
        missing = ModelMissing(model, f"the registry has no model {model!r}")
        missing.remedy = "Correct the model's name in the codex."
        return missing
    return kind(text or kind.__doc__ or kind.code)


def _not_ollama(text: str) -> OllamaError:
    return OllamaUnfit(f"the address answers but lacks what is asked for: {text or 'not found'}")


def _rejected(text: str, code: int | None) -> OllamaError:
    if code == 403 and not text:
        rejected = RequestRejected("the daemon refuses this host name (403)", code)
        rejected.remedy = "Use the daemon's IP address in OLLAMA_HOST, or a name that it knows as its own."
        return rejected
    rejected = RequestRejected(f"Ollama refused: {text or 'it gave no reason'}", code)
    low = text.lower()
    rejected.remedy = next((remedy for sign, remedy in _REMEDIES if sign in low), rejected.remedy)
    return rejected


def _of_request(raw: Exception) -> bool:
    """Whether the client refused to send it: a value of the wrong type, or one that JSON cannot hold."""
    if isinstance(raw, pydantic.ValidationError):
        return raw.title.endswith(("Request", "Message", "Options"))
    return isinstance(raw, TypeError) and "not JSON serializable" in str(raw)


def _broken_protocol(said: str) -> OllamaError:
    if "without sending complete message body" in said:
        return StreamCut("the connection closed in the middle of the answer")
    if "disconnected without sending a response" in said:
        return OllamaUnreachable("Ollama closed the connection without an answer")
    return WireError(f"what answers does not speak HTTP: {_clip(said)}")


def _lost(raw: Exception, peer: Peer, began: bool) -> OllamaError:
    if began:
        return StreamCut("the connection was lost in the middle of the answer")
    # For whole calls the client hides httpx's error behind a builtin one of its own.
    inner = raw.__context__ if isinstance(raw.__context__, httpx.ConnectError) else raw
    if not isinstance(inner, httpx.ConnectError):
        return OllamaUnreachable(f"the connection to {peer.url} was lost before it answered")
    said = str(inner).lower()
    if "certificate" in said or "ssl" in said:
        return OllamaUnreachable(f"no trusted connection to {peer.url}: {_clip(str(inner))}")
    if "name or service" in said or "nodename" in said or "name resolution" in said:
        return OllamaUnreachable(f"nobody knows the host of {peer.url}")
    return OllamaUnreachable(f"nothing listens at {peer.url}")


def _fact(raw: Exception) -> str:
    if isinstance(raw, pydantic.ValidationError):
        first = raw.errors(include_url=False, include_context=False)[0]
        given = first.get("input")
        if isinstance(given, Mapping) and "error" in given:
            return "an error without a text"
        return _clip(f"{raw.title}: {first['msg']} at {'.'.join(map(str, first['loc']))}")
    return _clip(f"{type(raw).__name__}: {raw}")


def _count(detail: Mapping[str, Any], key: str) -> int | None:
    value = detail.get(key)
    return value if type(value) is int and 0 <= value <= MOST else None


def _clip(text: str) -> str:
    text = text if len(text) <= _TEXT_LIMIT else f"{text[:_TEXT_LIMIT]}..."
    if text.isprintable():
        return text
    # What steers a terminal, and what no file can hold, is no part of a message.
    return "".join(one if one.isprintable() or one in "\n\t" else "\ufffd" for one in text)


def _dumped(value: Any) -> str:
    try:
        return json.dumps(value, default=str)
    except (ValueError, RecursionError):
        return "an error without a text"
