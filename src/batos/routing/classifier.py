"""Scores labels for a text by its words and, if it has a vector, by its meaning: the sum of two classifiers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from batos.routing import lexical
from batos.routing.lexical import Lexical
from batos.routing.semantic import Semantic, log_shares

#: The weight of the meaning's logarithms beside those of the words.
MEANING = 1.5
#: Factors that make confidence honest (docs/decisions/0012-router.md), applied to logarithms before they are shares.
WORDS_SHARPNESS, BOTH_SHARPNESS = 1.0, 0.7


@dataclass(frozen=True, slots=True)
class Classifier:
    """Two classifiers of the same labels: words always, meaning where an embedder was there."""

    words: Lexical
    meaning: Semantic | None = None

    def shares(self, text: str, vector: Sequence[float] | None = None) -> dict[str, float]:
        """Score each label by a text's words, and its vector if there is one; the scores sum to 1."""
        logs, sharpness = log_shares(self.words.logs(text)), WORDS_SHARPNESS
        if vector is not None and self.meaning is not None:
            meant, sharpness = self.meaning.logs(vector), BOTH_SHARPNESS
            logs = [word + MEANING * log for word, log in zip(logs, meant, strict=True)]
        shares = log_shares([sharpness * log for log in logs])
        return {name: math.exp(share) for name, share in zip(self.words.labels, shares, strict=True)}

    def pack(self) -> dict[str, bytes]:
        """Return both classifiers as plain bytes."""
        return {**self.words.packed_model, **(self.meaning.pack() if self.meaning is not None else {})}

    @classmethod
    def unpack(cls, labels: Sequence[str], kept: Mapping[str, Any]) -> Classifier:
        """Return the classifiers that `pack` stored.

        Raises: ValueError, KeyError or zlib.error: the bytes are no such classifiers.
        """
        meaning = Semantic.unpack(labels, kept) if "meaning" in kept else None
        return cls(lexical.unpack(tuple(labels), kept["features"], kept["counts"]), meaning)
