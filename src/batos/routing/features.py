"""Features of a text for the router: its words, their pairs, runs of letters, and its shape."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise

from batos.memory.terms import terms, words

#: Characters at the head and the tail of a long text that are looked at: what is asked stands there.
HEAD, TAIL = 1_200, 400
#: A feature of the shape counts as much as so many words.
SHAPE_WEIGHT = 3
_RUN = 4
_CODE = re.compile(r"[{}();=<>`_\[\]\\/|]")
_NUMBER = re.compile(r"\d+")
_LABEL = re.compile(r"[A-Za-z_ -]{2,30}:")
_ASKS = re.compile(r"[?？]\s*\Z")
_QUOTES = re.compile('["«„“”《「]')
#: Words up to which a text is of each size.
_SIZES = (3, 7, 15, 29)


def looked_at(text: str) -> str:
    """Return the text, or both ends of a long one."""
    return f"{text[:HEAD]} {text[-TAIL:]}" if len(text) > HEAD + TAIL else text


@lru_cache(maxsize=8)
def features(text: str) -> Mapping[str, int]:
    """Count the features of a text; none contains a line break.

    Words and pairs of words are features themselves. A run of four letters, which also occurs in unknown forms of a
    word, begins with `~`; a feature of the shape begins with `#`. The last counts are cached: a question is read for
    its scores and again for their reasons.
    """
    found = words(text)
    line = f" {' '.join(found)} "
    runs = (f"~{line[at : at + _RUN]}" for at in range(len(line) - _RUN + 1))
    pieces = (term for term in terms(text) if not term.isascii())
    counts = Counter((*found, *(" ".join(pair) for pair in pairwise(found)), *runs, *pieces))
    for feature in _shape(text, found):
        counts[feature] += SHAPE_WEIGHT
    return counts


def is_word(feature: str) -> bool:
    """Test if a feature is one word, which can be shown to a person."""
    return feature[:1] not in {"~", "#"} and " " not in feature


def _shape(text: str, found: list[str]) -> Iterator[str]:
    """Yield features of a text's shape: its beginning and end, its length, questions, quotes, numbers, code."""
    if found:
        yield f"#first {found[0]}"
        yield f"#last {found[-1]}"
    if len(found) > 1:
        yield f"#first {found[0]} {found[1]}"
    marks, numbers = len(_CODE.findall(text)), len(_NUMBER.findall(text))
    told = {
        "#code": marks > 0,
        "#code+": marks > 3,
        "#number": numbers > 0,
        "#numbers": numbers > 2,
        "#asks": bool(_ASKS.search(text)),
        "#calls": "!" in text,
        "#quotes": bool(_QUOTES.search(text)),
        "#label": bool(_LABEL.match(text)),
    }
    yield from (name for name, holds in told.items() if holds)
    yield f"#size {sum(len(found) > size for size in _SIZES)}"
