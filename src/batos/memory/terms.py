"""Split a text of any script into words and into terms that a search looks for."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

# Letters whose marks are no `\w` (Indic, Hebrew, Arabic, combining accents), so that a word is not cut at them.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u0655\u0900-\u0963\u0966-\u0dff"
# Scripts that write no blanks between words.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"
_TERM = re.compile(f"[{_UNSPACED}]+|[^\\W{_UNSPACED}][\\w{_MARKS}]*")
_RUN = re.compile(f"[{_UNSPACED}]")


#: Letters of a word that are compared, so that `automated` and `automatic` are one. With five more words fall together
#: that have nothing to do with one another (`contin` and `contra`), with seven endings begin to count.
STEM = 6


def words(text: str) -> list[str]:
    """Return the words of a text, compatible forms unified and case folded.

    A run of a script without blanks is one word.

    >>> words("Ⅷ Straße")
    ['viii', 'strasse']
    """
    return _TERM.findall(unicodedata.normalize("NFKC", text).casefold())


def clip_line(text: str, most: int) -> str:
    """Return a text on one line, of at most so many characters.

    >>> clip_line("The lamp\\nburns.", 10)
    'The lamp …'
    """
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def line_of(text: str) -> str:
    """Return the words of a text in one line, a blank around each: a phrase is looked for as ` whole words `."""
    return f" {' '.join(words(text))} "


def terms(text: str) -> Iterator[str]:
    """Yield the terms of a text: its words, and pairs of characters where words have no blanks between them.

    >>> list(terms("灯塔的 lamp"))
    ['灯塔', '塔的', 'lamp']
    """
    for word in words(text):
        if len(word) < 3 or not _RUN.match(word):
            yield word
        else:
            yield from map("".join, pairwise(word))


def stems(text: str) -> Iterator[str]:
    """Yield the terms of a text without their endings; what has a digit stays whole.

    >>> list(stems("Lighthouses of 1848121 灯塔的"))
    ['lighth', 'of', '1848121', '灯塔', '塔的']
    """
    return (term[:STEM] if term.isalpha() else term for term in terms(text))


def placed_terms(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the terms of a text with the (start, end) of each in it.

    >>> list(placed_terms("灯塔的 Lamp"))
    [('灯塔', 0, 2), ('塔的', 1, 3), ('lamp', 4, 8)]
    """
    for found in _TERM.finditer(text):
        word = unicodedata.normalize("NFKC", found[0]).casefold()
        start, end = found.span()
        if len(word) < 3 or not _RUN.match(word):
            yield word, start, end
        elif len(word) == end - start:
            yield from ((word[at : at + 2], start + at, start + at + 2) for at in range(len(word) - 1))
        else:  # half-width letters, which become others in number
            yield from (("".join(pair), start, end) for pair in pairwise(word))
