"""Rank texts by how well they match a question, by the words that they share with it (BM25)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Protocol, TypeVar

from batos.memory.terms import terms


class HasText(Protocol):
    """Has a text to be ranked by."""

    @property
    def text(self) -> str:
        """Return the text."""
        ...


Text = TypeVar("Text", bound=HasText)


def scores(candidates: Sequence[HasText], query: str) -> list[float]:
    """Return how well each text matches a query's terms: BM25 with k1 1.2 and b 0.75, 0 where none occurs."""
    wanted = set(terms(query))
    counts: list[Counter[str]] = []
    lengths: list[int] = []
    for each in candidates:
        found = list(terms(each.text))
        lengths.append(len(found))
        counts.append(Counter(term for term in found if term in wanted))
    average = sum(lengths) / max(1, len(lengths)) or 1.0
    weights = {term: _weight(len(counts), sum(1 for count in counts if term in count)) for term in sorted(wanted)}
    return [
        sum(weights[term] * n * 2.2 / (n + 1.2 * (0.25 + 0.75 * length / average)) for term, n in sorted(count.items()))
        for count, length in zip(counts, lengths, strict=True)
    ]


def _weight(all_of_them: int, holding: int) -> float:
    return math.log(1 + (all_of_them - holding + 0.5) / (holding + 0.5))


def rank(candidates: Sequence[Text], query: str) -> list[Text]:
    """Return texts by how well they match a query, the best first; ties keep their order."""
    scored = zip(scores(candidates, query), candidates, strict=True)
    return [each for _, each in sorted(scored, key=lambda pair: -pair[0])]
