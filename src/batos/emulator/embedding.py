"""Embeddings by feature hashing: texts that share words and letters come out near to each other."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from hashlib import blake2b
from math import sqrt

_WORD = re.compile(r"[^\W_]+")


def embed(text: str, width: int, salt: str = "") -> list[float]:
    """A vector of length one, of `width` numbers, from the text's words and the three-letter runs within them."""
    features: Counter[str] = Counter()
    for word in _WORD.findall(text.lower()):
        features["w:" + word] += 2
        marked = f"^{word}$"
        for at in range(len(marked) - 2):
            features[marked[at : at + 3]] += 1
    if not features:
        features["nothing"] = 1
    vector = [0.0] * width
    for feature, weight in features.items():
        place, sign = _place(feature, salt)
        vector[place % width] += sign * (1 + 0.5 * (weight > 2)) * weight**0.5
    return normal(vector)


def normal(vector: list[float]) -> list[float]:
    """The vector at length one, in single precision as the wire carries it."""
    length = sqrt(sum(value * value for value in vector)) or 1.0
    return [float(f"{value / length:.8g}") for value in vector]


@lru_cache(maxsize=65536)
def _place(feature: str, salt: str) -> tuple[int, int]:
    number = int.from_bytes(blake2b(f"{salt}|{feature}".encode(), digest_size=8).digest(), "big")
    return number >> 1, 1 if number & 1 else -1
