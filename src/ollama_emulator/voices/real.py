"""The real voice: answers and vectors of a model that llama.cpp runs, by the prompt and the limits of the daemon."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from ollama_emulator.emulator_errors import ApiError
from ollama_emulator.machine.runners import ModelRunner
from ollama_emulator.prompting import prompts, rendering
from ollama_emulator.prompting.prompts import AnswerPlan, CheckedRequest
from ollama_emulator.requests import Fields
from ollama_emulator.tokenizers.vocabulary import Real, TokenEstimate
from ollama_emulator.voices.llama import LlamaEngine
from ollama_emulator.voices.voice import Saying, SpeechOrder

_BROKEN = "an error was encountered while running the model: unexpected EOF"
_NO_TOOLS = "the emulator's real voice calls no tools: ask without `tools`"
_NO_THINKING = "the emulator's real voice does not part thinking from its answer: ask without `think`"
# the daemon's defaults, under the names of llama.cpp
_DEFAULTS = {
    "temperature": 0.8,
    "top_k": 40,
    "top_p": 0.9,
    "min_p": 0.0,
    "typical_p": 1.0,
    "repeat_last_n": 64,
    "repeat_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}
# xllamacpp enforces schemas by llguidance, whose own form allows any number of blanks and refuses keywords that the
# daemon's grammar passes over
_GUIDANCE = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": ", "lenient": True}
_MAPS = ("properties", "$defs", "definitions")
_LISTS = ("anyOf", "oneOf", "prefixItems")
_KEEP = 4  # default number of tokens that stay in front when the window is shifted


def completion(checked: CheckedRequest, prompt: str | Sequence[int], fields: Fields) -> dict[str, Any]:
    """Return the request to llama.cpp: the prompt as rendered, without a template, and the options in its names."""
    options = checked.options
    asked: dict[str, Any] = {name: options.get(name, default) for name, default in _DEFAULTS.items()}
    asked |= {
        "prompt": prompt if isinstance(prompt, str) else list(prompt),
        "n_predict": -1 if checked.most is None else checked.most,
        "n_keep": options.get("num_keep", _KEEP),
        "stop": [stop for stop in options.get("stop", []) if stop],
        "stream": True,
        "cache_prompt": True,
    }
    if options.get("seed", -1) >= 0:
        asked["seed"] = options["seed"]
    if checked.form is not None:
        form = {"type": "object"} if checked.form == "json" else close_objects(checked.form)
        asked["json_schema"] = {**form, "x-guidance": _GUIDANCE}
    if fields.get("logprobs"):
        asked["logprobs"] = max(1, int(fields.get("top_logprobs", 0)))
    return asked


def close_objects(schema: Any) -> Any:
    """Return a schema whose objects have no properties but those named, as the daemon's grammar makes them."""
    if not isinstance(schema, Mapping):
        return schema
    found = dict(schema)
    for key in _MAPS:
        if isinstance(found.get(key), Mapping):
            found[key] = {name: close_objects(value) for name, value in found[key].items()}
    for key in _LISTS:
        if isinstance(found.get(key), list):
            found[key] = [close_objects(value) for value in found[key]]
    if "items" in found:
        found["items"] = close_objects(found["items"])
    if "properties" in found:
        found.setdefault("additionalProperties", False)
    return found


@dataclass(slots=True)
class _PartialAnswer:
    """An answer as far as it came."""

    prompt_tokens: int
    pieces: list[str] = field(default_factory=list)
    reason: str = ""
    tokens: int = 0
    read_ns: int = 0
    said_ns: int = 0

    @property
    def plan(self) -> AnswerPlan:
        unseen = max(0, self.tokens - len(self.pieces))
        return AnswerPlan((), self.pieces, self.reason or "stop", self.prompt_tokens, unseen=unseen)

    def add(self, chunk: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """Take a chunk in; return its text and its choice. Raises: ApiError: 500, llama.cpp failed."""
        if "choices" not in chunk:
            raise ApiError(500, str(chunk.get("message") or chunk.get("error") or chunk))
        usage, timings = chunk.get("usage") or {}, chunk.get("timings") or {}
        self.tokens = int(usage.get("completion_tokens", self.tokens))
        self.read_ns = int(float(timings.get("prompt_ms", 0)) * 1e6) or self.read_ns
        self.said_ns = int(float(timings.get("predicted_ms", 0)) * 1e6) or self.said_ns
        if not chunk["choices"]:
            return "", {}
        choice = chunk["choices"][0]
        self.reason = str(choice.get("finish_reason") or self.reason)
        return str(choice.get("text") or ""), choice


class RealVoice:
    """Answers by the weights that the runner has loaded."""

    async def say(self, turn: SpeechOrder) -> AsyncGenerator[Saying, None]:
        """Yield the answer token by token; the model stops when the generator is closed.

        Raises: ApiError: the prompt does not fit, an option or the format is refused, or this voice cannot do it.
        """
        if turn.fields.get("tools"):
            raise ApiError(400, _NO_TOOLS)
        if turn.fields.get("think"):
            raise ApiError(400, _NO_THINKING)
        checked = prompts.check(turn.ask, turn.fields, turn.prompt, turn.manner)
        guessed = isinstance(rendering.vocabulary_of(turn.ask), TokenEstimate)
        asked = completion(checked, checked.read.text if guessed else checked.read.ids, turn.fields)
        heard = _PartialAnswer(checked.read.tokens)
        wanted = bool(turn.fields.get("logprobs"))
        async with aclosing(_engine(turn.runner).complete(asked)) as chunks:
            async for chunk in chunks:
                text, choice = heard.add(chunk)
                if text:
                    heard.pieces.append(text)
                    entries = _entries(choice, turn.fields) if wanted else None
                    yield Saying(heard.plan, (text,), logprobs=entries)
        if not heard.reason:
            raise ApiError(500, _BROKEN)
        yield Saying(heard.plan, (), (), max(1, heard.read_ns), max(1, heard.said_ns), () if wanted else None)

    async def embed(self, runner: ModelRunner, text: str) -> list[float]:
        """Return the model's vector of a text."""
        known = rendering.vocabulary_of(runner.ask)
        asked = known.vector_ids(text, runner.ask.window) if isinstance(known, Real) else text
        return await _engine(runner).embed(asked)


def _engine(runner: ModelRunner) -> LlamaEngine:
    """Return the weights behind a runner. Raises: ApiError: 500, there are none."""
    if not isinstance(runner.engine, LlamaEngine):
        raise ApiError(500, _BROKEN)
    return runner.engine


def _entries(choice: Mapping[str, Any], fields: Fields) -> list[dict[str, Any]]:
    """Return the log probabilities of a chunk in the daemon's form."""
    top = int(fields.get("top_logprobs", 0))
    found = []
    for token in (choice.get("logprobs") or {}).get("content") or ():
        entry = _entry(token)
        if top:
            entry["top_logprobs"] = [_entry(other) for other in token.get("top_logprobs", [])[:top]]
        found.append(entry)
    return found


def _entry(token: Mapping[str, Any]) -> dict[str, Any]:
    return {"token": token["token"], "logprob": token["logprob"], "bytes": token.get("bytes")}
