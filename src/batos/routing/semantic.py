"""Scores personas by the meaning of a text: multinomial logistic regression over the exemplars' vectors."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from operator import mul
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Matrix: TypeAlias = NDArray[np.float64]

#: Rounds over all exemplars, the first step, and the pull towards zero: more rounds gain nothing
#: (docs/decisions/0012-router.md).
ROUNDS, STEP, PULL = 6, 2.0, 2e-4
#: An exemplar that is told apart as well as this moves nothing.
_ENOUGH = 0.02
_SEED = 7
#: The weights as the image stores them.
_STORED: Final = "<f4"


@dataclass(frozen=True, slots=True)
class Semantic:
    """A weight for each persona and number of a vector; `centre` is the mean of what it was learnt from."""

    personas: tuple[str, ...]
    centre: tuple[float, ...]
    weights: tuple[tuple[float, ...], ...]

    @property
    def width(self) -> int:
        """Return the number of components of a vector."""
        return len(self.centre)

    def logs(self, vector: Sequence[float]) -> list[float]:
        """Return the logarithm of each persona's probability, in their order.

        Raises: ValueError: the vector has another width.
        """
        if len(vector) != self.width:
            raise ValueError(f"a vector has {len(vector)} numbers, the router learnt from {self.width}")
        placed = [value - middle for value, middle in zip(_normal(vector), self.centre, strict=True)]
        return log_shares([sum(map(mul, row, placed)) for row in self.weights])

    def pack(self) -> dict[str, bytes]:
        """Return the model as plain bytes: the centre, then each persona's weights."""
        return {"meaning": np.array([self.centre, *self.weights], _STORED).tobytes()}

    @classmethod
    def unpack(cls, personas: Sequence[str], kept: Mapping[str, bytes]) -> Semantic:
        """Return the model that `pack` stored.

        Raises: ValueError: the bytes are no such model.
        """
        numbers = np.frombuffer(kept["meaning"], _STORED)
        if not len(numbers) or len(numbers) % (len(personas) + 1):
            raise ValueError("the router's weights are not of its personas")
        centre, *weights = map(tuple, numbers.reshape(len(personas) + 1, -1).tolist())
        return cls(tuple(personas), centre, tuple(weights))


def learn(personas: Sequence[str], labelled: Sequence[tuple[str, Sequence[float]]]) -> Semantic:
    """Learn from vectors with their persona; a tenth of a second of CPU for a thousand of 384 numbers: not on the loop.

    The same vectors give the same weights. ValueError for none, and for vectors of several widths.
    """
    width = len(labelled[0][1]) if labelled else 0
    if not width or any(len(vector) != width for _, vector in labelled):
        raise ValueError("the exemplars' vectors are not of one width")
    given = np.array([vector for _, vector in labelled], dtype=np.float64)
    lengths = np.linalg.norm(given, axis=1, keepdims=True)
    vectors = given / np.where(lengths == 0, 1.0, lengths)
    centre = vectors.mean(axis=0)
    vectors -= centre
    names = tuple(personas)
    asked = [names.index(persona) for persona, _ in labelled]
    learnt = _weights_of(blake2b(repr((len(names), asked)).encode() + vectors.tobytes()).digest())
    if not learnt:
        learnt.append(_train(vectors, asked, len(names)))
    return Semantic(names, tuple(centre.tolist()), tuple(map(tuple, learnt[0].tolist())))


@lru_cache(maxsize=16)  # five for a codex of four personas
def _weights_of(digest: bytes) -> list[Matrix]:
    """Return the list in which the weights for exemplars of this digest are kept once they are learnt."""
    return []


def _train(vectors: Matrix, asked: Sequence[int], personas: int) -> Matrix:
    """Train by stochastic gradient descent, with steps that shrink to nothing and an order that is always the same."""
    rows: Matrix = np.zeros((personas, vectors.shape[1]))
    order, shuffled = list(range(len(vectors))), random.Random(_SEED)
    steps, done = ROUNDS * len(vectors), 0
    for _ in range(ROUNDS):
        shuffled.shuffle(order)
        for at in order:
            done += 1
            pace, vector = STEP * (1 - done / (steps + 1)), vectors[at]
            for place, log in enumerate(log_shares((rows @ vector).tolist())):
                error = math.exp(log) - (place == asked[at])
                if abs(error) > _ENOUGH:
                    rows[place] -= pace * error * vector
        rows *= (1 - STEP * (1 - done / (steps + 1)) * PULL) ** len(vectors)
    return rows


def log_shares(values: Sequence[float]) -> list[float]:
    """Convert values to logarithms of shares that sum to one."""
    top = max(values)
    whole = top + math.log(sum(math.exp(value - top) for value in values))
    return [value - whole for value in values]


def _normal(vector: Iterable[float]) -> list[float]:
    """Scale a vector to length one; a zero vector stays zero."""
    numbers = list(vector)
    length = math.sqrt(sum(map(mul, numbers, numbers))) or 1.0
    return [number / length for number in numbers]
