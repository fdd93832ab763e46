"""Finds rows that bring nothing new at the end of an answer from a text: copies, or numbers that nobody showed."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: Rows in a row without anything new.
STALE_ROWS = 8

# A row with fewer letters is a cell, a mark or a blank line, and says nothing about its neighbours.
_LEAST_LETTERS = 4
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_ROW_END = re.compile(r"\n+|(?<=[.!?;])\s+|(?<=[。！？])")


def numbers_in(texts: Iterable[str]) -> frozenset[str]:
    """Return the numbers of some texts, as they are written there."""
    return frozenset(number for text in texts for number in _NUMBER.findall(text))


class StaleRows:
    """Hears an answer that follows from a text, and counts the rows at its end that bring nothing new.

    A row is a line or a sentence. A stale one stood in the answer before, or differs from one there only in its numbers
    and has a number that is not among those that were `shown`: a small model that cannot compute goes on like this. A
    row that differs only in numbers of the text counts against them, since it may be read from there.
    """

    __slots__ = ("_begin", "_first", "_forms", "_rest", "_rows", "_run", "_shown")

    def __init__(self, shown: frozenset[str]) -> None:
        self._shown = shown
        self._rows: set[str] = set()
        self._forms: set[str] = set()
        self._rest, self._begin = "", 0  # the row that has not ended, and where it begins
        self._run, self._first = 0, (0, 0)  # stale rows since the last new one, and the place of the first of them

    def add(self, piece: str) -> tuple[int, int] | None:
        """Add a piece; return where the first of the stale rows begins and ends as soon as they are too many."""
        self._rest += piece
        while end := _ROW_END.search(self._rest):
            self._note(self._rest[: end.start()].strip(), self._begin + end.start())
            self._begin += end.end()
            self._rest = self._rest[end.end() :]
        return self._first if self._run >= STALE_ROWS else None

    def _note(self, row: str, end: int) -> None:
        if sum(map(str.isalpha, row)) < _LEAST_LETTERS:
            return
        form = _NUMBER.sub("0", row)
        if form not in self._forms:
            self._run = 0
        elif row in self._rows or not self._shown.issuperset(_NUMBER.findall(row)):
            self._first = self._first if self._run else (self._begin, end)
            self._run += 1
        else:  # read from the text, or a number that counts past one of the text's
            self._run = max(0, self._run - 1)
        self._rows.add(row)
        self._forms.add(form)
