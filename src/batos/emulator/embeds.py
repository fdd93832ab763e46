"""POST /api/embed and /api/embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns
from typing import Any

from batos.emulator import embedding, gojson, names, sampling, tokens
from batos.emulator.daemon import Daemon, reply
from batos.emulator.http import Answer, Request
from batos.emulator.models import Model
from batos.emulator.replies import ApiError
from batos.emulator.requests import Fields
from batos.emulator.scheduler import Ask

_NO_EMBEDDINGS = "This server does not support embeddings. Start it with `--embeddings`"
_TOO_LONG = "the input length exceeds the context length"
_MARKS = 2  # the tokens at the ends of every text


def _inputs(fields: Fields) -> list[str]:
    given = fields.get("input")
    if given is None or given == "":
        return []
    texts = given if isinstance(given, list) else [given]
    if not all(isinstance(text, str) for text in texts):
        raise ApiError(400, "invalid input type")
    return texts


def _model(daemon: Daemon, asked: str) -> Model:
    model = daemon.find(names.select(asked))
    if model is None:
        raise ApiError(404, f"model {gojson.quote(asked)} not found, try pulling it first")
    return model


def _ask(daemon: Daemon, model: Model, fields: Fields) -> Ask:
    return daemon.scheduler.ask(model, sampling.merged(model.parameters, fields.get("options", {})))


def _vectors(ask: Ask, texts: Sequence[str], truncate: bool) -> tuple[list[list[float]], int]:
    """A vector for each text, and the tokens of them all; ApiError for a chat model or a text that may not be cut."""
    if not ask.model.card.embeds:
        raise ApiError(501, _NO_EMBEDDINGS)
    room = min(ask.window, ask.model.card.trained_window) - _MARKS
    vectors, counted = [], 0
    for text in texts:
        size = tokens.count(text)
        if size > room:
            if not truncate:
                raise ApiError(400, _TOO_LONG)
            text = text.encode()[: room * tokens.BYTES_A_TOKEN].decode("utf-8", "ignore")
            size = room
        counted += size + _MARKS
        vectors.append(embedding.embed(text, ask.model.card.width, ask.model.base))
    return vectors, counted


async def embed(daemon: Daemon, request: Request) -> Answer:
    """POST /api/embed."""
    fields, _ = await daemon.open(request, "EmbedRequest")
    began = perf_counter_ns()
    alive = gojson.keep_alive(fields.get("keep_alive"))
    asked = str(fields.get("model", ""))
    texts = _inputs(fields)
    if not asked:
        raise ApiError(404, "model '' not found")
    ask = _ask(daemon, _model(daemon, asked), fields)
    async with daemon.scheduler.runner(ask, alive) as runner, runner.slots:
        if not texts:
            return reply({"model": asked, "embeddings": []})
        loaded = perf_counter_ns()
        vectors, counted = _vectors(ask, texts, fields.get("truncate") is not False)
    size = int(fields.get("dimensions", 0))
    if 0 < size < ask.model.card.width:
        vectors = [embedding.normal(vector[:size]) for vector in vectors]
    answer: dict[str, Any] = {"model": asked, "embeddings": vectors}
    answer |= {"total_duration": perf_counter_ns() - began, "load_duration": loaded - began}
    return reply(answer | {"prompt_eval_count": counted})


async def legacy(daemon: Daemon, request: Request) -> Answer:
    """POST /api/embeddings, one text and one vector."""
    fields, _ = await daemon.open(request, "EmbeddingRequest")
    alive = gojson.keep_alive(fields.get("keep_alive"))
    asked = str(fields.get("model", ""))
    if not asked:
        raise ApiError(400, "model is required")
    prompt = fields.get("prompt", "")
    ask = _ask(daemon, _model(daemon, asked), fields)
    async with daemon.scheduler.runner(ask, alive) as runner, runner.slots:
        if not prompt:
            return reply({"embedding": []})
        try:
            vectors, _ = _vectors(ask, [prompt], truncate=True)
        except ApiError as fault:
            raise ApiError(500, fault.text) from None
    return reply({"embedding": vectors[0]})
