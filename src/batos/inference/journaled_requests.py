"""A request as the journal stores it: its fields, its key without a warning, the size of its prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from batos.inference.canonical import EncodedMessages
from batos.inference.journal import Record
from batos.inference.ollama.bridge import ChatRequest

#: The field of a journaled request that was asked with a warning: the key of the same without it.
PLAIN_KEY: Final = "plain_key"


def journal_request(request: ChatRequest) -> dict[str, Any]:
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
