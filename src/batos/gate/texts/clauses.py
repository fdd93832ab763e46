"""Split a sentence into its clauses, each of which states something: evidence may carry one and not another."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from batos.gate import thresholds
from batos.gate.texts.stems import placed_stems

#: Clauses of a sentence that are looked at.
MOST = 8

# A mark between clauses, and the words that mostly begin one where no mark stands before it.
_BOUND = re.compile(
    r"[,;:()–—](?=\s)\s*|\s[-–—]\s|[、，；：،؛（）]|\s(?=(?:who|which|where|when|while|because|and|but|with|as|that|by"
    r"|und|aber|weil|während|mit|qui|que|où|et|mais|avec|parce|quien|donde|y|pero|con|porque|che|dove|e|ma|perché|onde"
    r"|mas|com|die|dat|waar|en|maar|met|omdat)\s)",
    re.IGNORECASE,
)


def clause_spans(sentence: str, language: str | None) -> list[tuple[int, int]]:
    """Return the (start, end) of each clause of a sentence, in order; together they are the whole of it.

    Its words are looked at once, however many bounds it has.

    >>> text = "Anna Hale kept the lamp, who was born on the island in 1904."
    >>> [text[start:end] for start, end in clause_spans(text, "English")]
    ['Anna Hale kept the lamp, ', 'who was born on the island in 1904.']
    """
    said = [(each.start, each.stem) for each in placed_stems(sentence, language)]
    starts = [start for start, _ in said]
    ends = list(_ends(sentence, said, starts))
    spans = list(zip([0, *ends], [*ends, len(sentence)], strict=True))
    if len(spans) > 1 and not _is_long(said[bisect_left(starts, spans[-1][0]) :]):
        _, end = spans.pop()
        spans[-1] = (spans[-1][0], end)
    return spans


def _ends(sentence: str, said: list[tuple[int, str]], starts: list[int]) -> Iterator[int]:
    """Yield the bounds behind which a clause begins: what stands before each is long enough."""
    made, at, words = 1, 0, set[str]()
    for found in _BOUND.finditer(sentence):
        if made == MOST:
            return
        until = bisect_left(starts, found.end())
        words |= {stem for _, stem in said[at:until]}
        at = until
        if len(words) >= thresholds.CLAUSE_WORDS:
            yield found.end()
            made, words = made + 1, set()


def _is_long(said: list[tuple[int, str]]) -> bool:
    return len({stem for _, stem in said}) >= thresholds.CLAUSE_WORDS
