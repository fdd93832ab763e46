"""Text in pieces: what is streamed, and the counts that prompts and answers are charged with.

A piece of an answer is up to eight letters with a blank before them, or one other sign or blank. A prompt is charged
one token for every four bytes of its UTF-8, plus four for each message: near to what real vocabularies give for
English, and easy to foresee.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MESSAGE_TOKENS = 4
BYTES_A_TOKEN = 4
_PIECE = re.compile(r"[ \t]?[^\W_]{1,8}|[ \t]?[^\w\s]|\s|_")


def pieces(text: str) -> list[str]:
    """The text cut into pieces; joined they are the text."""
    return _PIECE.findall(text)


def count(text: str) -> int:
    """The tokens of a prompt's text, by its bytes."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_A_TOKEN)


def prompt_count(messages: Iterable[Mapping[str, Any]]) -> int:
    """The tokens of a list of messages, with what the template puts around each."""
    return 1 + sum(MESSAGE_TOKENS + count(str(message.get("content") or "")) for message in messages)


def fit(messages: Sequence[Mapping[str, Any]], window: int) -> list[Mapping[str, Any]]:
    """The messages without the oldest that are not from the system, until they fit or only the last is left."""
    kept = list(messages)
    while prompt_count(kept) > window:
        oldest = next((at for at, message in enumerate(kept[:-1]) if message.get("role") != "system"), None)
        if oldest is None:
            break
        del kept[oldest]
    return kept
