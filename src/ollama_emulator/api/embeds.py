"""Handle POST /api/embed and /api/embeddings."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

from ollama_emulator.daemon import EmulatedDaemon, json_reply, reply
from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.go import json as gojson
from ollama_emulator.http.incoming import Answer, HttpRequest
from ollama_emulator.library import model_tags
from ollama_emulator.library.model_tags import Name
from ollama_emulator.library.models import Model
from ollama_emulator.machine.runners import Ask, ModelRunner
from ollama_emulator.prompting import rendering, sampling
from ollama_emulator.requests import Fields
from ollama_emulator.speech import embedding
from ollama_emulator.tokenizers.vocabulary import BYTES_A_TOKEN, TokenEstimate, Vocabulary
from ollama_emulator.voices.voice import Voice

_NO_EMBEDDINGS = "This server does not support embeddings. Start it with `--embeddings`"
_NO_VECTORS = (
    "the emulator invents no vectors beside a real voice: `make real` brings all-minilm, or give an embedder's file by"
    " another --gguf"
)
_TOO_LONG = "the input length exceeds the context length"
_NOTHING_LEFT = "input after truncation exceeds maximum context length"
_NO_SHORTER = "input exceeds maximum context length and cannot be truncated further"
_BATCH = 2048  # default number of tokens in a batch
_MOST_NUMBERS = 1 << 21  # numbers in all vectors of one reply: 5,461 texts of 384 numbers each
_AT_ONCE = 2  # texts between two pauses for other tasks, in which a client may leave
_UNASKED = 512  # batch of the runner if it is started without a size


def _inputs(fields: Fields) -> list[str]:
    """Return the texts of a request. Raises: ApiError: 400, `input` is neither a text nor a list of texts."""
    given = fields.get("input")
    if given is None or given == "":
        return []
    texts = given if isinstance(given, list) else [given]
    if not all(isinstance(text, str) for text in texts):
        raise ApiError(400, "invalid input type")
    return texts


def _model(daemon: EmulatedDaemon, asked: str, name: Name) -> Model:
    """Return the model with a name; `asked` is the name as the request has it. Raises: ApiError: 404, there is none."""
    model = daemon.find(name)
    if model is None:
        raise ApiError(404, f"model {gojson.quote(asked)} not found, try pulling it first")
    return model


@dataclass(frozen=True, slots=True)
class _EmbeddingWindow:
    """Limits in tokens on a text: `window` for the daemon, `most` for one batch of the runner.

    `batch` is the size of a batch if the request gives one, else 0.
    """

    known: Vocabulary
    window: int
    most: int
    batch: int

    @classmethod
    def for_request(cls, ask: Ask, options: Mapping[str, Any]) -> _EmbeddingWindow:
        trained = ask.model.card.trained_window
        asked = options.get("num_ctx", ask.num_ctx)  # not raised to the least window of a runner
        batch = options.get("num_batch", 0)
        most = min(options.get("num_batch", _BATCH), ask.num_ctx)
        window = min(asked, trained) if asked > 0 else trained
        return cls(rendering.vocabulary_of(ask), window, min(most if most > 0 else _UNASKED, ask.window), batch)

    def fit(self, text: str, *, truncate: bool) -> str:
        """Return a text cut to the limits. Raises: ApiError: 400, it is too long and cannot or must not be cut."""
        ids = self.known.encode(text)
        left = self._remaining_ids(ids, self.window)
        if len(ids) > left:
            text = self._truncate(text, ids[:left], truncate=truncate)
            ids = self.known.encode(text)
        if self._has_room(ids):
            return text
        left = (
            self._remaining_ids(ids, min(self.window, self.batch) if self.batch > 0 else self.window) if truncate else 0
        )
        if truncate and len(ids) <= left:
            raise ApiError(400, _NO_SHORTER)
        return self._truncate(text, ids[:left], truncate=truncate)

    def hold(self, text: str) -> None:
        """Check that a text fits into one batch. Raises: ApiError: 400, it does not."""
        if not self._has_room(self.known.encode(text)):
            raise ApiError(400, _TOO_LONG)

    def _has_room(self, ids: Sequence[int]) -> bool:
        return len(ids) + self._marks(ids) <= self.most

    def _remaining_ids(self, ids: Sequence[int], limit: int) -> int:
        """Return how many ids of the text fit beside the marks. Raises: ApiError: 400, none does."""
        left = limit - self._marks(ids)
        if left <= 0:
            raise ApiError(400, _NOTHING_LEFT)
        return left

    def _truncate(self, text: str, ids: Sequence[int], *, truncate: bool) -> str:
        """Return the text of these first ids. Raises: ApiError: 400, `truncate` is not set."""
        if not truncate:
            raise ApiError(400, _TOO_LONG)
        if isinstance(self.known, TokenEstimate):
            return text.encode("utf-8", "replace")[: len(ids) * BYTES_A_TOKEN].decode("utf-8", "ignore")
        return self.known.decode(ids)

    def _marks(self, ids: Sequence[int]) -> int:
        """Return the number of tokens (bos and eos) that are added to a text."""
        if not ids:
            return 0
        front, back = self.known.marks
        return (ids[0] != front) + (ids[-1] != back)


def _check_embeds(daemon: EmulatedDaemon, ask: Ask) -> None:
    """Check that a model gives embeddings, and invents none beside a real voice. Raises: ApiError: 501, it does not."""
    if not ask.model.card.embeds:
        raise ApiError(501, _NO_EMBEDDINGS)
    own = daemon.options.embedder is not None or ask.model.base in {each.base for each in daemon.reals}
    if not own and daemon.real(embeds=False) is not None:
        raise ApiError(501, _NO_VECTORS)


def _check_number(ask: Ask, texts: Sequence[str]) -> None:
    """Check the number of texts. Raises: ApiError: 400, their vectors are too large for the emulator."""
    most = _MOST_NUMBERS // max(1, ask.model.card.width)
    if len(texts) > most:
        raise ApiError(400, f"the emulator embeds no more than {most} texts at once with this model")


@dataclass(frozen=True, slots=True)
class _Embedder:
    """A loaded embedder: its voice, its runner, and the limits on a text."""

    voice: Voice
    runner: ModelRunner
    room: _EmbeddingWindow


async def _vectors(by: _Embedder, texts: Sequence[str], *, truncate: bool, size: int) -> tuple[str, int]:
    """Return the vectors of texts as the text of a JSON array, and the number of tokens read.

    Each has `size` numbers, or all for 0. Each is encoded by itself, so that the event loop is not blocked for long.
    """
    kept = []
    for at, text in enumerate(texts):
        if at and not at % _AT_ONCE:
            await asyncio.sleep(0)
        kept.append(by.room.fit(text, truncate=truncate))
    done, tokens = [], 0
    for at, text in enumerate(kept):
        if at and not at % _AT_ONCE:
            await asyncio.sleep(0)
        vector = await by.voice.embed(by.runner, text)
        done.append(gojson.reals(embedding.normal(vector[:size]) if size else vector))
        tokens += len(by.room.known.encode(text, whole=True))
    return f"[{','.join(done)}]", tokens


async def embed(daemon: EmulatedDaemon, request: HttpRequest) -> Answer:
    """Handle POST /api/embed."""
    fields, _ = await daemon.open(request, "EmbedRequest")
    began = perf_counter_ns()
    alive = gojson.keep_alive(fields.get("keep_alive"))
    asked = str(fields.get("model", ""))
    if not asked:
        raise ApiError(404, "model '' not found")
    name = model_tags.select(asked)
    texts = _inputs(fields)
    model = _model(daemon, asked, name)
    options = sampling.merge(model.parameters, fields.get("options", {}))
    ask = daemon.scheduler.ask(model, options)
    async with daemon.scheduler.runner(ask, alive) as runner:
        loaded = perf_counter_ns()
        if not texts:
            return reply({"model": asked, "embeddings": []})
        _check_embeds(daemon, ask)
        _check_number(ask, texts)
        room = _EmbeddingWindow.for_request(ask, options)
        size = int(fields.get("dimensions", 0))
        size = size if 0 < size < ask.model.card.width else 0
        cut = fields.get("truncate") is not False
        async with runner.slots:
            embedder = _Embedder(daemon.voice(runner), runner, room)
            vectors, counted = await _vectors(embedder, texts, truncate=cut, size=size)
    metrics = {"total_duration": perf_counter_ns() - began, "load_duration": loaded - began}
    rest = gojson.encode(metrics | {"prompt_eval_count": counted})
    return json_reply(f'{{"model":{gojson.encode(asked)},"embeddings":{vectors},{rest[1:]}')


async def legacy(daemon: EmulatedDaemon, request: HttpRequest) -> Answer:
    """Handle POST /api/embeddings: one text, one vector, and a text is never cut."""
    fields, _ = await daemon.open(request, "EmbeddingRequest")
    alive = gojson.keep_alive(fields.get("keep_alive"))
    asked = str(fields.get("model", ""))
    if not asked:
        raise ApiError(400, "model is required")
    model = _model(daemon, asked, model_tags.select(asked))
    options = sampling.merge(model.parameters, fields.get("options", {}))
    ask = daemon.scheduler.ask(model, options)
    prompt = str(fields.get("prompt", ""))
    async with daemon.scheduler.runner(ask, alive) as runner:
        if not prompt:
            return reply({"embedding": []})
        try:
            _check_embeds(daemon, ask)
            async with runner.slots:
                _EmbeddingWindow.for_request(ask, options).hold(prompt)
                vector = await daemon.voice(runner).embed(runner, prompt)
        except ApiError as fault:
            raise ApiError(500, fault.text) from None
    return reply({"embedding": vector})
