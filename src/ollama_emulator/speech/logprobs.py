"""Invent log probabilities for an answer's pieces, in the daemon's form, the same for the same piece."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

MOST = 20  # alternatives that may be asked for
_OTHERS = (
    *(" the", ",", ".", " and", " of", " to", " a", " in", " is", " that", "\n", " for", " it", " with", " as"),
    *(" on", " be", " at", " by", " this", " an", ":"),
)


def entries(pieces: Sequence[str], top: int) -> list[dict[str, Any]]:
    """Return an entry for each piece; with `top` > 0 each lists that many likely tokens, the piece itself first."""
    return [_entry(piece, top) for piece in pieces]


@lru_cache(maxsize=4096)
def _entry(piece: str, top: int) -> dict[str, Any]:
    """Return the entry of one piece, with `top` alternatives."""
    weight = blake2b(piece.encode("utf-8", "surrogatepass"), digest_size=2).digest()
    own = -(weight[0] + 1) / 512
    entry = _token(piece, own)
    if top:
        others = [other for other in _OTHERS if other != piece]
        start = weight[1] % len(others)
        turned = (others[start:] + others[:start])[: top - 1]
        entry["top_logprobs"] = [
            _token(piece, own),
            *(_token(other, own - 1.5 - at / 4) for at, other in enumerate(turned)),
        ]
    return entry


def _token(text: str, probability: float) -> dict[str, Any]:
    return {"token": text, "logprob": probability, "bytes": list(text.encode("utf-8", "replace"))}
