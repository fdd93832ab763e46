"""A request as the journal stores it: its fields, its keys, the size of its prompt."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from batos.inference.canonical import EncodedMessages, canonical, form_of_list
from batos.inference.journal import Record
from batos.inference.ollama.bridge import ChatRequest

#: The field of a journaled request that was asked with a warning: the key of the same without it.
PLAIN_KEY: Final = "plain_key"
#: The tokens of a byte of prompt where none of the model's was counted.
USUAL_RATIO: Final = 0.25

#: Options that decide how a runner is started, not what it answers: not part of a key.
RUNNER_OPTIONS = frozenset(
    {"num_ctx", "num_batch", "num_gpu", "main_gpu", "use_mmap", "num_thread", "draft_num_predict"}
)


def journal_key(digest: str, request: Mapping[str, Any], path: str) -> str:
    """Return an entry's key: a digest over model digest, messages, format, think, sampling options and sample path."""
    options = {k: _plain(v) for k, v in (request.get("options") or {}).items() if k not in RUNNER_OPTIONS}
    parts = [digest, request["messages"], request.get("format"), request.get("think"), options, path]
    return hashlib.sha256(form_of_list(parts)).hexdigest()


def embedding_key(digest: str, text: str, options: Mapping[str, object], path: str) -> str:
    """Return the key of a text's embedding: model digest, text, options and sample path."""
    sampling = {k: _plain(v) for k, v in options.items() if k not in RUNNER_OPTIONS}
    return hashlib.sha256(canonical([digest, {"input": text}, sampling, path])).hexdigest()


def _plain(value: object) -> Any:
    """Turn a whole float into an int, because a temperature of 1.0 equals 1 and must have the same form."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def journal_request(request: ChatRequest) -> dict[str, object]:
    """Return a request as the journal stores it, without transport fields."""
    return {
        "messages": request.messages,
        "format": request.schema,
        "think": request.think,
        "options": dict(request.options),
    }


def plain_key(record: Record) -> str:
    """Return the key under which later attempts look a record up, whatever warning it was asked with."""
    return str(record.request.get(PLAIN_KEY, record.key))


def with_warning(messages: Sequence[dict[str, str]], warning: str) -> EncodedMessages:
    """Return the messages with the warning at the end, behind all that calls have in common."""
    *before, last = messages
    return EncodedMessages((*before, {**last, "content": f"{last['content']}\n\n{warning}"}))


def prompt_bytes(shown: Mapping[str, Any]) -> int:
    """Return the bytes of the prompt of a journaled request, whose text may hold lone surrogates."""
    return sum(len(message["content"].encode("utf-8", "surrogatepass")) for message in shown["messages"])


def estimate_tokens(record: Record, measured: Mapping[str, tuple[int, int]]) -> int:
    """Estimate the tokens of a record's prompt, which the daemon tells at the end of an answer only.

    `measured` are the bytes and tokens of earlier prompts, by model.
    """
    size, tokens = measured.get(record.model, (0, 0))
    ratio = tokens / size if size and tokens else USUAL_RATIO
    guess = round(prompt_bytes(record.request) * ratio)
    window = record.request["options"].get("num_ctx")
    return guess if window is None else min(guess, int(window))
