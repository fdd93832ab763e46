"""The vectors of chunks: which chunks a model has not seen yet, and where what it said of others is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from batos.image.roots import Root
from batos.memory.indexes import vectors
from batos.memory.records import memory_segments
from batos.memory.records.memory_segments import VECTORS, NewSegment


def add_vectors(root: Root, digest: str, numbers: Sequence[int], matrix: NDArray[Any]) -> int:
    """Add the vectors of chunks, a row for each, as a model of this digest made them; return how many were added.

    Chunks that are gone meanwhile, or that have a vector of this model, are left out.
    """
    missing = [range(first, last + 1) for first, last in memory_segments.missing_vectors(root, digest)]
    kept = [row for row, number in enumerate(numbers) if any(number in each for each in missing)]
    if not kept:
        return 0
    chosen = [numbers[row] for row in kept]
    data = vectors.build_matrix(np.array(chosen, np.int64), np.asarray(matrix)[kept])
    memory_segments.add_segment(root, NewSegment(VECTORS, data, min(chosen), max(chosen), digest))
    memory_segments.note_embedded(root, digest, chosen)
    return len(kept)


def missing_vectors(root: Root, digest: str, most: int | None = None) -> list[int]:
    """Return the numbers of the first chunks that have no vector of a model, at most so many (None: all)."""
    return list(islice(_numbers(memory_segments.missing_vectors(root, digest)), most))


def missing_count(root: Root, digest: str) -> int:
    """Return the number of chunks that have no vector of a model."""
    return sum(last - first + 1 for first, last in memory_segments.missing_vectors(root, digest))


def drop_vectors(root: Root, digest: str) -> int:
    """Drop all vectors of a model; return how many segments went."""
    return memory_segments.drop_vectors(root, digest)


def _numbers(ranges: Iterator[tuple[int, int]]) -> Iterator[int]:
    for first, last in ranges:
        yield from range(first, last + 1)
