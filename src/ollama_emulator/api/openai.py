"""Handle the /v1 routes: translate OpenAI's requests for the daemon's own handlers, and their replies back."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

from ollama_emulator.api import answering, embeds, listing, openai_asking
from ollama_emulator.api.openai_saying import (
    EVENTS,
    ChatStream,
    Completion,
    Embeddings,
    event_stream,
    events_of_line,
    failure_reply,
    refusal_reply,
    second,
    whole,
)
from ollama_emulator.daemon import EmulatedDaemon
from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.http.incoming import Answer, HttpRequest
from ollama_emulator.library import model_tags, models
from ollama_emulator.replies import HttpReply, HttpStream
from ollama_emulator.requests import read

_MODELS = "/v1/models/"
_IDS = 999  # ids are below this; the daemon's are random, these depend on the request
Handler = Callable[[EmulatedDaemon, HttpRequest], Awaitable[Answer]]


async def list_models(daemon: EmulatedDaemon, request: HttpRequest) -> Answer:
    """Handle GET /v1/models."""
    await daemon.strike(request)
    rows = [_model(row["name"], row) for row in map(models.tag_row, daemon.all())]
    return whole({"object": "list", "data": rows or None})


async def retrieve_model(daemon: EmulatedDaemon, request: HttpRequest) -> Answer:
    """Handle GET /v1/models/:model."""
    model = unquote(request.path.removeprefix(_MODELS))
    try:
        shown = await _show_model(daemon, request, model)
    except ApiError as fault:
        return failure_reply(fault)
    return whole(_model(model, shown))


async def _show_model(daemon: EmulatedDaemon, request: HttpRequest, model: str) -> Mapping[str, Any]:
    """Return the daemon's description of a model, as `/api/show` replies it."""
    request.body = json.dumps({"name": model}).encode()
    answer = await listing.show(daemon, request)
    found: dict[str, Any] = json.loads(answer.body)
    return found


def _model(name: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a model as an entry of OpenAI's list of models."""
    parsed = model_tags.parse(name)
    owner = parsed.namespace if parsed is not None else ""
    return {"id": name, "object": "model", "created": second(str(row["modified_at"])), "owned_by": owner}


async def chat(daemon: EmulatedDaemon, request: HttpRequest) -> Answer:
    """Handle POST /v1/chat/completions."""
    return await _answer(daemon, request, _CHATS)


async def completions(daemon: EmulatedDaemon, request: HttpRequest) -> Answer:
    """Handle POST /v1/completions."""
    return await _answer(daemon, request, _COMPLETIONS)


async def embeddings(daemon: EmulatedDaemon, request: HttpRequest) -> Answer:
    """Handle POST /v1/embeddings."""
    return await _answer(daemon, request, _EMBEDDINGS)


Saying: TypeAlias = ChatStream | Completion | Embeddings


@dataclass(frozen=True, slots=True)
class _Route:
    """A route of OpenAI's: the form of its request, its translation, and the daemon's own handler.

    `reply` begins the reply from the request, its fields and the second of its creation.
    """

    struct: str
    translate: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    handle: Handler
    reply: Callable[[HttpRequest, Mapping[str, Any], int], Saying]


def _chat_reply(request: HttpRequest, given: Mapping[str, Any], created: int) -> ChatStream:
    return ChatStream(f"chatcmpl-{_number(request)}", created, _with_usage(given))


def _completion_reply(request: HttpRequest, given: Mapping[str, Any], created: int) -> Completion:
    return Completion(f"cmpl-{_number(request)}", created, _with_usage(given))


def _embeddings_reply(request: HttpRequest, given: Mapping[str, Any], created: int) -> Embeddings:
    packed = str(given.get("encoding_format", "")).lower() == "base64"
    return Embeddings(str(given.get("model", "")), packed)


_CHATS: Final = _Route("openai.ChatCompletionRequest", openai_asking.chat, answering.chat, _chat_reply)
_COMPLETIONS: Final = _Route(
    "openai.CompletionRequest", openai_asking.completion, answering.generate, _completion_reply
)
_EMBEDDINGS: Final = _Route("openai.EmbedRequest", openai_asking.embedding, embeds.embed, _embeddings_reply)


def _with_usage(given: Mapping[str, Any]) -> bool:
    return bool((given.get("stream_options") or {}).get("include_usage"))


def _number(request: HttpRequest) -> int:
    """Return the number in a reply's id, from 0, by hash of the request's body."""
    return int.from_bytes(blake2b(request.body, digest_size=6).digest(), "big") % _IDS


async def _answer(daemon: EmulatedDaemon, request: HttpRequest, route: _Route) -> Answer:
    """Translate a request, call the daemon's own handler, and translate its answer."""
    try:
        given = read(route.struct, request.body)
        _refuse_cloud_model(given)
        asked = route.translate(given)
    except ApiError as fault:
        text = "EOF" if fault.text == "missing request body" else fault.text
        if fault.status == 403:
            raise
        return refusal_reply(ApiError(fault.status, text))
    saying = route.reply(request, given, daemon.clock.now_ns() // 10**9)
    request.body = json.dumps(asked).encode()
    try:
        answer = await route.handle(daemon, request)
    except ApiError as fault:
        return failure_reply(fault)
    if isinstance(saying, Embeddings) or not given.get("stream"):
        return _whole_reply(answer, saying)
    if isinstance(answer, HttpStream):
        return event_stream(answer, saying)
    return HttpReply(answer.status, events_of_line(answer.body, saying), EVENTS)


def _refuse_cloud_model(given: Mapping[str, Any]) -> None:
    """Refuse a cloud model before other checks. Raises: ApiError: 403, in the daemon's own form."""
    try:
        model_tags.select(str(given.get("model", "")))
    except ApiError as fault:
        if fault.status == 403:
            raise


def _whole_reply(answer: Answer, saying: Saying) -> Answer:
    """Return a whole reply in OpenAI's form; a reply that a fault breaks off stays as it is."""
    if isinstance(answer, HttpStream):
        return answer
    return whole(saying.whole(json.loads(answer.body)), answer.status)
