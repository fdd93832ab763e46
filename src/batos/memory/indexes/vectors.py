"""Find entries by the meaning of a query: vectors in half precision in immutable segments, searched one by one."""

from __future__ import annotations

from collections.abc import Container, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import simsimd
from numpy.typing import NDArray

from batos.memory.indexes.postings import Among, Numbers, pack, unpack
from batos.memory.indexes.text import best_of
from batos.protocol.errors import IndexDamaged

KIND: Final = b"vect"
#: The most numbers that a vector has.
MOST_DIMENSIONS: Final = 65535
#: Where fewer than one of so many vectors may be found, those are copied out: faster than to compare all.
FEW: Final = 4

# These add up in half precision, which loses what tells near vectors apart; the others add up in single.
for capability in ("sapphire", "sve", "sve_f16"):
    simsimd.disable_capability(capability)

Matrix: TypeAlias = NDArray[np.float32]
Allowed: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class VectorPart:
    """A segment as it is read: ids in order, and the vector of each in half precision, of length 1."""

    ids: Numbers
    matrix: NDArray[np.float16]

    @property
    def dimensions(self) -> int:
        """Return how many numbers each vector has."""
        return int(self.matrix.shape[1])

    def cosines(self, vector: NDArray[np.float16], among: Among | None) -> tuple[Numbers, NDArray[np.float64]]:
        """Return the ids that may be found, and the product of a vector with that of each."""
        ids, matrix = self.ids, self.matrix
        allowed: Allowed = np.ones(len(ids), bool) if among is None else among(ids)
        if FEW * np.count_nonzero(allowed) < len(ids):
            ids, matrix = ids[allowed], matrix[allowed]
            allowed = np.ones(len(ids), bool)
        if not len(ids):
            return ids, np.empty(0)
        products = np.asarray(simsimd.cdist(vector[None], matrix, "dot"))[0]
        return (ids, products) if allowed.all() else (ids[allowed], products[allowed])


def build(ids: Numbers, matrix: NDArray[Any]) -> bytes:
    """Return a segment of vectors, a row for each id. Each is made of length 1; what is not finite is made zero."""
    order = np.argsort(ids, kind="stable")
    whole = np.nan_to_num(matrix[order].astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    lengths = np.linalg.norm(whole, axis=1, keepdims=True) if whole.size else np.ones((len(whole), 1), np.float32)
    lengths[lengths == 0] = 1
    return _write(ids[order], (whole / lengths).astype("<f2"))


def _write(ids: Numbers, matrix: NDArray[np.float16]) -> bytes:
    dimensions = matrix.shape[1] if len(ids) else 0
    sections = (dimensions.to_bytes(8, "little"), ids.astype("<i8").tobytes(), matrix.astype("<f2").tobytes())
    return pack(KIND, sections, level=0)


#: A segment of no vectors.
EMPTY: Final = _write(np.empty(0, np.int64), np.empty((0, 0), np.float16))


def read(segment: bytes) -> VectorPart:
    """Return what a segment holds; IndexDamaged if the parts do not fit each other."""
    head, ids_bytes, matrix_bytes = unpack(KIND, segment, 3)
    dimensions = int.from_bytes(head, "little")
    count = len(ids_bytes) // 8
    if len(head) != 8 or len(ids_bytes) % 8 or dimensions > MOST_DIMENSIONS:
        raise IndexDamaged("the parts of a segment of vectors do not fit each other")
    if len(matrix_bytes) != 2 * dimensions * count or bool(count) != bool(dimensions):
        raise IndexDamaged("a segment of vectors does not have as many as it tells")
    ids = np.frombuffer(ids_bytes, "<i8").astype(np.int64, copy=False)
    if np.any(ids[1:] <= ids[:-1]):
        raise IndexDamaged("numbers of a segment are out of order")
    matrix = np.frombuffer(matrix_bytes, "<f2").reshape(count, dimensions)
    if not np.isfinite(matrix).all():
        raise IndexDamaged("a vector of a segment is not finite")
    return VectorPart(ids, matrix)


def merge(segments: Sequence[bytes], gone: Container[int] = frozenset()) -> bytes:
    """Return one segment of all vectors of some segments but those of ids that are gone.

    Of an id in several segments the last one counts.
    """
    parts = [part for part in map(read, segments) if len(part.ids)]
    if not parts:
        return EMPTY
    if len({part.matrix.shape[1] for part in parts}) != 1:
        raise IndexDamaged("segments of vectors of different lengths cannot be one")
    ids = np.concatenate([part.ids for part in parts])
    matrix = np.concatenate([part.matrix for part in parts])
    _, last = np.unique(ids[::-1], return_index=True)
    rows = len(ids) - 1 - last
    kept = rows[[id_ not in gone for id_ in ids[rows].tolist()]]
    return _write(ids[kept], matrix[kept])


class VectorIndex:
    """The segments of vectors of one model by their keys, searched as one. An id stands in one segment."""

    def __init__(self) -> None:
        self._parts: dict[Hashable, VectorPart] = {}

    def add(self, key: Hashable, segment: bytes) -> None:
        """Add a segment under a key, in the place of what had that key. Damaged bytes raise IndexDamaged."""
        part = read(segment)
        others = [each for other, each in self._parts.items() if other != key]
        if others and len(part.ids) and part.dimensions != others[0].dimensions:
            raise IndexDamaged("the vectors of a segment have another length than those that are there")
        self._parts.pop(key, None)
        if len(part.ids):
            self._parts[key] = part

    def drop(self, key: Hashable) -> None:
        """Leave out the segment of a key; an unknown key is no fault."""
        self._parts.pop(key, None)

    def ids(self) -> set[int]:
        """Return the ids of all entries."""
        return {id_ for part in self._parts.values() for id_ in part.ids.tolist()}

    @property
    def dimensions(self) -> int:
        """Return how many numbers a vector has; 0 while there is none."""
        return next((part.dimensions for part in self._parts.values()), 0)

    def vectors_of(self, ids: Sequence[int] | Numbers) -> tuple[Numbers, Matrix]:
        """Return those of some ids that have a vector, each once, in order, and their vectors."""
        wanted = np.unique(np.asarray(ids, np.int64))
        matrix: Matrix = np.zeros((len(wanted), self.dimensions), np.float32)
        found: Allowed = np.zeros(len(wanted), bool)
        for part in self._parts.values():
            first = int(np.searchsorted(wanted, part.ids[0]))
            behind = int(np.searchsorted(wanted, part.ids[-1], "right"))
            rows: Numbers = np.searchsorted(part.ids, wanted[first:behind])
            here = np.flatnonzero(part.ids[rows] == wanted[first:behind])
            matrix[first + here], found[first + here] = part.matrix[rows[here]], True
        return wanted[found], matrix[found]

    def search(self, query: Sequence[float] | Matrix, most: int, among: Among | None = None) -> dict[int, float]:
        """Return the scores of the entries that are nearest to a query, at most `most`, the best first, ties by id.

        A score is the cosine of the angle. `among` takes an array of ids and tells of each if it may be found.
        """
        vector = np.nan_to_num(np.asarray(query, np.float32), nan=0.0, posinf=0.0, neginf=0.0)
        length = float(np.linalg.norm(vector))
        if most < 1 or length == 0.0 or vector.shape != (self.dimensions,):
            return {}
        half = (vector / length).astype(np.float16)
        found = [part.cosines(half, among) for part in self._parts.values()]
        ids, scores = (np.concatenate(each) for each in zip(*found, strict=True))
        return best_of(ids, scores, most)
