"""POST /api/embed and /api/embeddings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

from batos.emulator import embedding, gojson, names, rendering, sampling
from batos.emulator.daemon import Daemon, reply
from batos.emulator.http import Answer, Request
from batos.emulator.models import Model
from batos.emulator.replies import ApiError
from batos.emulator.requests import Fields
from batos.emulator.runners import Ask
from batos.emulator.vocabulary import BYTES_A_TOKEN, Guessed, Vocabulary

_NO_EMBEDDINGS = "This server does not support embeddings. Start it with `--embeddings`"
_TOO_LONG = "the input length exceeds the context length"
_NOTHING_LEFT = "input after truncation exceeds maximum context length"
_BATCH = 2048  # tokens that are read at once, if nobody says otherwise


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


@dataclass(frozen=True, slots=True)
class _Room:
    """How much of a text is read: by the vocabulary, no more tokens than the window and one batch hold."""

    known: Vocabulary
    window: int
    batch: int

    @classmethod
    def of(cls, ask: Ask, options: Mapping[str, Any]) -> _Room:
        batch = options.get("num_batch") or min(_BATCH, ask.num_ctx)
        return cls(rendering.counted(ask), min(ask.num_ctx, ask.model.card.trained_window), int(batch))

    def fitted(self, text: str, *, truncate: bool) -> str:
        """The text as far as it is read. ApiError 400 for one that may not be cut."""
        ids = self.known.encode(text)
        marks = self._marks(ids)
        if self.window <= marks:
            raise ApiError(400, _NOTHING_LEFT)
        most = min(self.window, self.batch) - marks
        if len(ids) <= most:
            return text
        if not truncate:
            raise ApiError(400, _TOO_LONG)
        if isinstance(self.known, Guessed):
            return text.encode("utf-8", "replace")[: most * BYTES_A_TOKEN].decode("utf-8", "ignore")
        return self.known.decode(ids[:most])

    def _marks(self, ids: Sequence[int]) -> int:
        """The tokens that come to stand at the ends of a text and are not there yet."""
        if not ids:
            return 0
        front, back = self.known.marks
        return (ids[0] != front) + (ids[-1] != back)


def _embedding_only(ask: Ask) -> None:
    """ApiError 501 for a model that only talks."""
    if not ask.model.card.embeds:
        raise ApiError(501, _NO_EMBEDDINGS)


def _vector(ask: Ask, text: str) -> list[float]:
    return embedding.embed(text, ask.model.card.width, ask.model.base)


async def embed(daemon: Daemon, request: Request) -> Answer:
    """POST /api/embed."""
    fields, _ = await daemon.open(request, "EmbedRequest")
    return reply(await embedded(daemon, fields))


async def embedded(daemon: Daemon, fields: Fields) -> dict[str, Any]:
    """What /api/embed answers to its fields."""
    began = perf_counter_ns()
    alive = gojson.keep_alive(fields.get("keep_alive"))
    asked = str(fields.get("model", ""))
    texts = _inputs(fields)
    if not asked:
        raise ApiError(404, "model '' not found")
    model = _model(daemon, asked)
    options = sampling.merged(model.parameters, fields.get("options", {}))
    ask = daemon.scheduler.ask(model, options)
    async with daemon.scheduler.runner(ask, alive) as runner:
        loaded = perf_counter_ns()
        if not texts:
            return {"model": asked, "embeddings": []}
        _embedding_only(ask)
        room = _Room.of(ask, options)
        async with runner.slots:
            kept = [room.fitted(text, truncate=fields.get("truncate") is not False) for text in texts]
            vectors = [_vector(ask, text) for text in kept]
    counted = sum(len(room.known.encode(text, whole=True)) for text in kept)
    size = int(fields.get("dimensions", 0))
    if 0 < size < ask.model.card.width:
        vectors = [embedding.normal(vector[:size]) for vector in vectors]
    answer: dict[str, Any] = {"model": asked, "embeddings": vectors}
    answer |= {"total_duration": perf_counter_ns() - began, "load_duration": loaded - began}
    return answer | {"prompt_eval_count": counted}


async def legacy(daemon: Daemon, request: Request) -> Answer:
    """POST /api/embeddings, one text and one vector; a text is never cut."""
    fields, _ = await daemon.open(request, "EmbeddingRequest")
    alive = gojson.keep_alive(fields.get("keep_alive"))
    asked = str(fields.get("model", ""))
    if not asked:
        raise ApiError(400, "model is required")
    model = _model(daemon, asked)
    options = sampling.merged(model.parameters, fields.get("options", {}))
    ask = daemon.scheduler.ask(model, options)
    prompt = str(fields.get("prompt", ""))
    async with daemon.scheduler.runner(ask, alive) as runner:
        if not prompt:
            return reply({"embedding": []})
        try:
            _embedding_only(ask)
            async with runner.slots:
                _Room.of(ask, options).fitted(prompt, truncate=False)
                vector = _vector(ask, prompt)
        except ApiError as fault:
            raise ApiError(500, fault.text) from None
    return reply({"embedding": vector})
