"""Find memories that say nearly the same, by sketches of the words that the index has of them."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from batos.memory.curation.regions import MOST_CHUNKS, MOST_DOCUMENTS, FoldCandidate, GroupKey, Region
from batos.memory.indexes.entries import Numbers
from batos.memory.indexes.postings import Postings

#: Numbers of a sketch, in bands: memories that agree in one band are compared.
BANDS, ROWS = 5, 4
#: The share of a sketch in which two memories agree that say nearly the same.
ALIKE: Final = 0.7
#: Rows that are compared with a first one together.
_AT_ONCE: Final = 1_024
#: Rows that agree in a band with others, and say nearly the same as none of these: after so many the others are left.
_MOST_LONE: Final = 1_024

Sketches: TypeAlias = NDArray[np.uint32]

_NONE: Final = np.uint32(0xFFFFFFFF)


def sketch(segments: Iterable[Postings], firsts: Numbers, lasts: Numbers) -> Sketches:
    """Return a sketch of the words of each memory, whose parts have the numbers from a first to a last one, in order.

    Two memories agree in about as many numbers of their sketches as the share of their words is that both have.
    """
    found: Sketches = np.full((len(firsts), BANDS * ROWS), _NONE, np.uint32)
    for segment in segments:
        rows: Numbers = np.searchsorted(firsts, segment.ids, side="right").astype(np.int64) - 1
        if not len(firsts):
            break
        held: NDArray[np.bool_] = np.asarray((rows >= 0) & (segment.ids <= lasts[np.maximum(rows, 0)]))
        if not np.any(held):
            continue
        memories = rows[segment.places]
        kept = np.flatnonzero(held[segment.places])
        order = kept[np.argsort(memories[kept], kind="stable")]
        whose = memories[order]
        begins = np.flatnonzero(np.diff(whose, prepend=-1))
        words = np.repeat(np.arange(segment.count), np.diff(segment.runs))[order]
        codes = np.fromiter((zlib.crc32(each) for each in segment.word_list()), np.uint32, segment.count)
        for column in range(BANDS * ROWS):
            least = np.minimum.reduceat(_mix(codes, column)[words], begins)
            at = whose[begins]
            found[at, column] = np.minimum(found[at, column], least)
    return found


def _mix(codes: NDArray[np.uint32], column: int) -> NDArray[np.uint32]:
    """Return other numbers of words, in another order for each column."""
    mixed = (codes ^ np.uint32((0x9E3779B9 * (column + 1)) & 0xFFFFFFFF)).astype(np.uint64)
    for factor in (0x85EBCA6B, 0xC2B2AE35):
        mixed = ((mixed ^ (mixed >> np.uint64(15))) * np.uint64(factor)) & np.uint64(0xFFFFFFFF)
    return (mixed ^ (mixed >> np.uint64(13))).astype(np.uint32)


def redundant_regions(candidates: Sequence[FoldCandidate], sketches: Sketches) -> Iterator[Region]:
    """Yield regions of memories of one group that say nearly the same as the first of them, each memory once."""
    taken: set[int] = set()
    for rows in _alike(candidates, sketches):
        left, lone = [row for row in rows if row not in taken], 0
        while len(left) > 1 and lone < _MOST_LONE:
            center, *others = left
            chosen, chunks = [center], candidates[center].chunks
            for row in _near(center, others, sketches):
                if len(chosen) == MOST_DOCUMENTS or chunks == MOST_CHUNKS:
                    break
                if chunks + candidates[row].chunks <= MOST_CHUNKS:
                    chosen.append(row)
                    chunks += candidates[row].chunks
            if len(chosen) > 1:
                taken.update(chosen)
                yield Region("redundant", tuple(candidates[row] for row in chosen))
            lone += len(chosen) == 1
            left = [row for row in others if row not in taken]


def _near(center: int, others: Sequence[int], sketches: Sketches) -> Iterator[int]:
    """Yield those of some rows that say nearly the same as a first one, some rows at a time."""
    for begin in range(0, len(others), _AT_ONCE):
        rows = np.array(others[begin : begin + _AT_ONCE])
        yield from rows[np.mean(sketches[rows] == sketches[center], axis=1) >= ALIKE].tolist()


def _alike(candidates: Sequence[FoldCandidate], sketches: Sketches) -> Iterator[list[int]]:
    """Yield the rows of memories of one group that agree in a band."""
    known = np.flatnonzero(np.any(sketches != _NONE, axis=1)).tolist()
    for band in range(BANDS):
        buckets: dict[tuple[GroupKey, bytes], list[int]] = {}
        for row in known:
            key = candidates[row].group(), sketches[row, band * ROWS : (band + 1) * ROWS].tobytes()
            buckets.setdefault(key, []).append(row)
        yield from (rows for rows in buckets.values() if len(rows) > 1)
