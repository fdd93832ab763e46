"""The index of vectors: what every index does, and the nearest by the angle."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Container, Iterable, Mapping, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.memory.indexes.conformance import Among, Hit, Index, IndexConformance, each_of, hits_of

from batos.memory.indexes import vectors
from batos.memory.indexes.postings import Entry, Numbers, pack
from batos.memory.indexes.vectors import KIND, VectorIndex, merge
from batos.memory.segmentation import stems
from batos.protocol.errors import IndexDamaged

#: The numbers of the vectors that these tests make of texts.
DIMENSIONS = 32


def vector_of(text: str) -> list[float]:
    """A vector that is near to that of a text with the same words."""
    made = [0.0] * DIMENSIONS
    for stem in stems(text):
        made[zlib.crc32(stem.encode("utf-8", "surrogatepass")) % DIMENSIONS] += 1.0
    return made


def build(given: Mapping[int, Sequence[float]]) -> bytes:
    """Return a segment of the vectors of some ids."""
    ids = np.fromiter(given, np.int64, len(given))
    return vectors.build(ids, np.array([*given.values()], np.float32).reshape(len(ids), -1 if given else 0))


def multiples_of(step: int) -> Callable[[Numbers], NDArray[np.bool_]]:
    """Return what tells the multiples of a number."""
    return lambda ids: ids % step == 0


class TestVectorConformance(IndexConformance):
    """The laws that every index keeps."""

    def make(self) -> Index:
        return VectorIndex()

    def build(self, entries: Iterable[Entry]) -> bytes:
        return build({entry.id: vector_of(f"{entry.title} {entry.text}") for entry in entries})

    def merge(self, segments: Sequence[bytes], gone: Container[int]) -> bytes:
        return merge(segments, gone)

    def ask(self, index: Index, query: str, most: int = 10, among: Among = None) -> list[Hit]:
        assert isinstance(index, VectorIndex)
        return hits_of(index.search(vector_of(query), most, each_of(among)))


def test_the_nearest_are_those_of_an_exact_search() -> None:
    """By the cosine, of several segments as of one, and with some left out."""
    chance = np.random.default_rng(14)
    matrix = chance.standard_normal((500, 48)).astype(np.float32)
    index = VectorIndex()
    for first in range(0, 500, 130):
        numbers = np.arange(first, min(500, first + 130))
        index.add(first, vectors.build(numbers, matrix[numbers]))
    half = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype("<f2").astype(np.float32)
    for query in chance.standard_normal((9, 48)).astype(np.float32):
        cosines = half @ (query / np.linalg.norm(query))
        nearest = np.argsort(-cosines)
        found = index.search(query, 20)
        assert list(found) == nearest[:20].tolist()
        assert list(found.values()) == pytest.approx(cosines[nearest[:20]], abs=1e-4)  # a half has 11 bits
        for step in (2, 9):  # most and few may be found
            expected = [each for each in nearest.tolist() if each % step == 0][:5]
            assert list(index.search(query, 5, multiples_of(step))) == expected


def test_equal_vectors_are_found_by_their_ids() -> None:
    """More of them than are asked for: the first ids are those that are found."""
    index = VectorIndex()
    index.add(0, build({number: [1.0, 0.5] for number in range(40)}))
    assert list(index.search([1.0, 0.5], 7)) == list(range(7))


def test_vectors_are_told_by_their_numbers() -> None:
    """Those that there are, in order, each of length 1."""
    index = VectorIndex()
    index.add(0, build({1: [3.0, 4.0], 2: [0.0, 2.0]}))
    index.add(1, build({9: [-5.0, 0.0]}))
    numbers, matrix = index.vectors_of([9, 1, 5, 9])
    assert numbers.tolist() == [1, 9]
    assert matrix.ravel().tolist() == pytest.approx([0.6, 0.8, -1.0, 0.0], abs=1e-3)
    assert VectorIndex().vectors_of([1])[0].tolist() == []


def test_what_is_no_direction_finds_nothing() -> None:
    """A query of zeros, of another length, or with numbers that are none."""
    index = VectorIndex()
    index.add(0, build({1: [1.0, float("nan")], 2: [0.0, 0.0], 3: [1.0, 0.0]}))
    assert index.search([0.0, 0.0], 5) == {}
    assert index.search([1.0], 5) == {}
    assert list(index.search([1.0, float("inf")], 1)) == [1]


def test_vectors_of_another_length_are_refused() -> None:
    """In one index, and in one segment."""
    index = VectorIndex()
    index.add(0, build({1: [1.0, 0.0]}))
    with pytest.raises(IndexDamaged):
        index.add(1, build({2: [1.0, 0.0, 0.0]}))
    with pytest.raises(IndexDamaged):
        merge([build({1: [1.0, 0.0]}), build({2: [1.0]})])


@pytest.mark.parametrize(
    ("dimensions", "ids", "numbers"),
    [(2, [1, 2], [1.0] * 3), (0, [1], []), (2, [2, 1], [1.0] * 4), (1, [1], [float("nan")]), (2, [], [])],
)
def test_parts_that_do_not_fit_are_refused(dimensions: int, ids: list[int], numbers: list[float]) -> None:
    """A segment with a right checksum and parts that do not fit each other is refused."""
    sections = (dimensions.to_bytes(8, "little"), np.array(ids, "<i8").tobytes(), np.array(numbers, "<f2").tobytes())
    with pytest.raises(IndexDamaged):
        VectorIndex().add(0, pack(KIND, sections))
