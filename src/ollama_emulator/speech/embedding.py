"""Embed texts by hashing: texts that share words or runs of letters get vectors near to each other."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from functools import lru_cache
from hashlib import blake2b
from math import sqrt
from operator import mul

_WORD = re.compile(r"[^\W_]+")
_PLACES = 16  # numbers of the vector that one feature changes
_GROUND = 0.01  # size of a direction that all texts share, so that no slice of a vector is zero


def embed(text: str, width: int, salt: str = "") -> list[float]:
    """Return the embedding of a text, a vector of `width` numbers and length 1; another `salt` gives other vectors."""
    return _embed(text, width, salt).tolist()


@lru_cache(maxsize=2048)
def _embed(text: str, width: int, salt: str) -> array[float]:
    """Return the same as an array: each genesis asks for the vectors of the same thousand texts."""
    features: Counter[str] = Counter()
    for word in _WORD.findall(text.lower()):
        features[word] += 3
        marked = f"^{word}$"
        for at in range(len(marked) - 2):
            features[marked[at : at + 3]] += 1
    vector = list(_base_vector(width, salt))
    for feature, count in features.items():
        weight = sqrt(count)
        for place, sign in _places(feature, width, salt):
            vector[place] += sign * weight
    return array("d", normal(vector))


def normal(vector: list[float]) -> list[float]:
    """Return a vector scaled to length 1 and rounded to 8 digits, about the precision that the daemon sends."""
    length = sqrt(sum(map(mul, vector, vector))) or 1.0
    return [round(value / length, 8) for value in vector]


@lru_cache(maxsize=32768)
def _places(feature: str, width: int, salt: str) -> tuple[tuple[int, float], ...]:
    """Return the indexes that a feature changes in a vector, each with its sign."""
    digest = blake2b(f"{salt}|{feature}".encode("utf-8", "surrogatepass"), digest_size=4 * _PLACES).digest()
    numbers = [int.from_bytes(digest[at : at + 4], "big") for at in range(0, len(digest), 4)]
    return tuple(((number >> 1) % width, 1.0 if number & 1 else -1.0) for number in numbers)


@lru_cache(maxsize=16)
def _base_vector(width: int, salt: str) -> tuple[float, ...]:
    """Return the small vector that every embedding begins with."""
    seeds = [blake2b(f"{salt}#{at}".encode(), digest_size=1).digest()[0] for at in range(width)]
    return tuple(_GROUND * (seed - 127.5) / 127.5 for seed in seeds)
