"""Cut a document where the topic of its sentences changes, by the vectors of these sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from batos.memory.passages import MOST
from batos.memory.text_units import Chunk, Unit, chunks_of, tokens_of

#: The price of a part, in nearness: a sentence alone is a part only where it is far from both of its neighbours.
PRICE: Final = 0.3
#: The price of a cut between a heading and what it stands above, which is paid only where both are too long for one.
BEHEADED: Final = 1_000.0


def topic_chunks(text: str, units: Sequence[Unit], vectors: NDArray[Any], most: float = MOST) -> list[Chunk]:
    """Return the parts of a text, whose units have these vectors (a row for each), none longer than `most` tokens.

    Of all ways to cut, by dynamic programming, the one whose sentences are nearest to those of the same part, above
    the mean nearness of the document; a sum over the pairs of a part, divided by the root of its length, so that
    neither few long parts nor many short ones win by their number. A heading begins a part, and ends none.
    """
    if not units:
        return []
    rows = np.asarray(vectors, np.float32)
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    sizes = [0.0]
    for before, unit in zip([None, *units], units, strict=False):
        sizes.append(sizes[-1] + tokens_of(text[before.end if before else unit.start : unit.end]))
    begins = _begin_of_each(units, sizes, most)
    return chunks_of(text, units, _best_cuts(rows, begins, [PRICE + BEHEADED * bool(unit.level) for unit in units]))


def _begin_of_each(units: Sequence[Unit], sizes: Sequence[float], most: float) -> list[int]:
    """Return, for each unit, the first one that a part which ends with it may begin with."""
    begins, begin = [], 0
    for at, unit in enumerate(units):
        if unit.level and at and not units[at - 1].level:
            begin = at
        while begin < at and sizes[at + 1] - sizes[begin] > most:
            begin += 1
        begins.append(begin)
    return begins


def _best_cuts(rows: NDArray[np.float32], begins: Sequence[int], prices: Sequence[float]) -> list[tuple[int, int]]:
    count, mean = len(rows), _mean_nearness(rows)
    best, back = np.zeros(count + 1), [0] * (count + 1)
    inner = np.zeros(0)  # of each part that ends here: the sum over its pairs, above the mean
    for at, begin in enumerate(begins):
        near = rows[begin:at] @ rows[at] - mean
        inner = np.append(inner[len(inner) - (at - begin) :] + np.cumsum(near[::-1])[::-1], 0.0)
        lengths = np.maximum(np.arange(at - begin, -1, -1), 1)
        worth = best[begin : at + 1] + inner / np.sqrt(lengths) - prices[at]
        chosen = int(worth.argmax())
        best[at + 1], back[at + 1] = worth[chosen], begin + chosen
    cuts, behind = [], count
    while behind:
        cuts.append((back[behind], behind))
        behind = back[behind]
    return cuts[::-1]


def _mean_nearness(rows: NDArray[np.float32]) -> float:
    """Return the mean cosine of two rows, without computing that of each pair."""
    count, total = len(rows), rows.sum(axis=0)
    return float((total @ total - count) / (count * (count - 1))) if count > 1 else 0.0
