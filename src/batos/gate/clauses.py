"""Split a sentence into its clauses, each of which states something: evidence may carry one and not another."""

from __future__ import annotations

import re

from batos.gate.stems import stems

#: Words that say something, of the shortest clause; a shorter one belongs to the clause before it.
LEAST = 3
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

    >>> text = "Anna Hale kept the lamp, who was born on the island in 1904."
    >>> [text[start:end] for start, end in clause_spans(text, "English")]
    ['Anna Hale kept the lamp, ', 'who was born on the island in 1904.']
    """
    bounds = [found.end() for found in _BOUND.finditer(sentence)]
    spans: list[tuple[int, int]] = []
    for start, end in zip([0, *bounds], [*bounds, len(sentence)], strict=True):
        if spans and (_is_short(sentence[slice(*spans[-1])], language) or len(spans) == MOST):
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    if len(spans) > 1 and _is_short(sentence[slice(*spans[-1])], language):
        _, end = spans.pop()
        spans[-1] = (spans[-1][0], end)
    return spans


def _is_short(clause: str, language: str | None) -> bool:
    return len(stems(clause, language)) < LEAST
