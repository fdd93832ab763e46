"""Finds rows without end at the end of a text: the same words again and again, of which only the numbers count on."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: Rows of words so many, of as many letters as a sentence has fewer, of nothing but numbers more. Rows of a table that
#: somebody asked for are fewer, or have something of their own.
COUNTED_WORDS, COUNTED_SENTENCES, COUNTED_NUMBERS = 128, 64, 512
#: Characters that are looked at first.
COUNTED_CHARS = 32_768

_SENTENCE_LETTERS = 40
_ROW_NUMBERS = 4  # the most numbers in a row
#: Three rows of the longest that are looked for stand in so many characters.
GLANCE = 3 * COUNTED_CHARS // COUNTED_SENTENCES
_NUMBER = re.compile(r"([0-9]{1,15})")


def find_likely(text: str) -> bool:
    """Look at the last rows only, which is quick: False if `counted_rows` finds none in a text with this end."""
    return bool(_likely(text))


def _likely(text: str) -> list[int]:
    """Return how many numbers a row may have, as two rows at the end of a text are alike by that."""
    texts = _NUMBER.split(text[-GLANCE:])[-3:0:-2]
    return [many for many in range(1, _ROW_NUMBERS + 1) if texts[:many] == texts[many : 2 * many] != []]


def counted_rows(text: str, chars: int = COUNTED_CHARS) -> tuple[int, int] | None:
    """Return where the second and the third row begin if a text ends in rows that only count on, else None."""
    likely = _likely(text)
    if not likely:
        return None
    begin = max(0, len(text) - chars)
    parts = _NUMBER.split(text[begin:])[:-2]  # the last number may be only the beginning of one
    texts, numbers = parts[-1::-2], [int(number) for number in parts[-2::-2]]
    for many in likely:
        rows = _rows(texts, numbers, many)
        if rows and begin:
            return counted_rows(text, len(text))  # they may begin before what was looked at
        if rows:
            begins = [len("".join(parts[: len(parts) - 2 * many * back])) for back in (rows - 1, rows - 2)]
            return begin + begins[0], begin + begins[1]
    return None


def _rows(texts: Sequence[str], numbers: Sequence[int], many: int) -> int:
    """Count the rows of so many numbers that count on, 0 if they are too few; the newest text and number come first."""
    letters = sum(map(str.isalpha, "".join(texts[:many])))
    least = COUNTED_NUMBERS if not letters else COUNTED_WORDS if letters < _SENTENCE_LETTERS else COUNTED_SENTENCES
    whole = least * many
    if len(numbers) < whole or texts[: whole - many] != texts[many:whole]:
        return 0
    steps = [one - before for one, before in zip(numbers, numbers[many:], strict=False)]
    if not any(steps[: whole - many]):
        return 0
    found = many
    while found < len(steps) and steps[found] == steps[found - many] and texts[found] == texts[found - many]:
        found += 1
    rows = found // many + 1
    return rows if rows >= least else 0
