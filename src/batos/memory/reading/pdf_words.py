"""The words of a printed page, and how those of a line are joined: what is raised is no digit of a number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Final, NamedTuple

#: A smaller share of the height of its neighbour is what a raised or lowered word has, and by so much it is moved.
_SMALL: Final = 0.87
_MOVED: Final = 0.1
_RAISED: Final = re.compile(r"[+\u2212\u2013-]?\d+")
#: These have a power, also where a note has the same number.
_HAS_POWER: Final = re.compile(r"10|[cdkm]?m|\W*\w?")
#: The beginning of a note.
NOTE: Final = re.compile(r"[\[(]?(\d{1,3}|[*†‡§])")


class PageWord(NamedTuple):
    """A word and its box, y upward; `joined` where no blank stands before it."""

    x0: float
    y0: float
    x1: float
    y1: float
    text: str
    joined: bool = False


def note_marks(words: Sequence[PageWord]) -> frozenset[str]:
    """Return the marks of notes: numbers that begin a line in small letters on the lower half of a page."""
    usual = median(word.y1 - word.y0 for word in words)
    middle = (max(word.y1 for word in words) + min(word.y0 for word in words)) / 2
    return frozenset(
        word.text.strip("[].()")
        for before, word in pairwise([words[0], *words])
        if word.y1 < middle and word.y1 - word.y0 <= 0.92 * usual and word.x0 < before.x0 and NOTE.match(word.text)
    )


def is_raised(word: PageWord, base: PageWord) -> bool:
    """Test if a word stands above the line of one that is larger, or far above that of one that is not."""
    height, above = base.y1 - base.y0, (word.y0 + word.y1 - base.y0 - base.y1) / 2
    least = _MOVED if word.y1 - word.y0 <= _SMALL * height else 3 * _MOVED
    return least * height <= above < height and _RAISED.fullmatch(word.text) is not None


def join_words(words: Sequence[PageWord], marks: frozenset[str]) -> str:
    """Join the words of a line: what is raised is a power or the mark of a note, and no digit of a number."""
    out: list[str] = []
    base, noted = words[0] if words else PageWord(0, 0, 0, 0, ""), False
    for at, word in enumerate(words):
        if at == 0:
            base = words[1] if len(words) > 1 and is_raised(word, words[1]) else word
            noted = base is not word
            out.append(f"[{word.text}]" if noted else word.text)
        elif is_raised(word, base) and word.x0 - words[at - 1].x1 < 0.5 * (base.y1 - base.y0):
            noted = word.text in marks and not _HAS_POWER.fullmatch(base.text)
            out.append(f" [{word.text}]" if noted else f"^{word.text}")
        else:
            last = words[at - 1]
            height = max(last.y1 - last.y0, word.y1 - word.y0)
            moved = min(last.y1 - last.y0, word.y1 - word.y0) <= _SMALL * height
            close = word.joined or (moved and word.x0 - last.x1 < 0.12 * height)
            out.append(word.text if close and not (noted and word.text[:1].isalnum()) else f" {word.text}")
            base, noted = base if moved and word.y1 - word.y0 < height else word, False
    return "".join(out)
