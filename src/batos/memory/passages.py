"""Cut files into passages: at blank lines, and between sentences where a paragraph is long."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

from batos.memory.evidence import Passage
from batos.memory.sentences import SENTENCE_END, blanks_end
from batos.memory.table_heads import LONGEST_HEAD, TableHeads

#: Passages are cut at blank lines, and between sentences where a paragraph is longer than this (characters).
PASSAGE = 1_200

#: Lines of a passage from which on a long paragraph is cut between lines: rows of a table, code or verses.
MANY_LINES = 6

_GAP = re.compile(r"\n\s*\n")
_HEADING = re.compile(r"^#{1,6}[^\S\n].*$", re.MULTILINE)


def passages(files: Iterable[tuple[str, str, str]]) -> tuple[Passage, ...]:
    """Return the passages of files given as (name, sha256, text), numbered from 1 across all of them.

    Each is a slice of its text without blanks at its ends; together they hold everything but blanks, which are the
    leads of the passages behind them.
    """
    found: list[Passage] = []
    for name, sha256, text in files:
        heads, before = Heads(text), 0
        for start, end in _join_pieces(text):
            lead, head = text[before:start], heads.above(start)
            found.append(Passage(len(found) + 1, name, sha256, start, text[start:end], lead=lead, head=head))
            before = end
    return tuple(found)


class Heads:
    """The lines that stand above the places of a text: the head of a table for its rows, else the heading."""

    def __init__(self, text: str) -> None:
        self._headings = [(found.start(), found[0].strip()) for found in _HEADING.finditer(text)]
        self._tables = TableHeads(text)

    def above(self, start: int) -> str:
        """Return what stands above a place and says what is there, "" if there is nothing."""
        if head := self._tables.above(start):
            return head
        at = bisect_right(self._headings, (start, "")) - 1
        return self._headings[at][1][:LONGEST_HEAD] if at >= 0 else ""


def _join_pieces(text: str) -> list[tuple[int, int]]:
    """Join neighbouring pieces as long as they make no more than PASSAGE characters."""
    spans: list[tuple[int, int]] = []
    for start, end in _pieces(text):
        if spans and end - spans[-1][0] <= PASSAGE:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
    return spans


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Yield paragraphs without the blanks around them, cut if they are longer than PASSAGE."""
    start = 0
    for gap in (*(found.span() for found in _GAP.finditer(text)), (len(text), len(text))):
        yield from _cut(text, start, gap[0])
        start = gap[1]


def _cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while True:
        start = min(blanks_end(text, start), end)
        if end - start <= PASSAGE:
            break
        cut = start + _first_cut(text[start : start + PASSAGE + 8])
        yield start, cut
        start = cut
    end = start + len(text[start:end].rstrip())
    if start < end:
        yield start, end


def _first_cut(window: str) -> int:
    """Return the place to cut a window that begins a long paragraph: after a sentence, else a line, else a word.

    Where there are many lines, it is cut between lines.
    """
    if window[:PASSAGE].count("\n") >= MANY_LINES:
        return len(window[:PASSAGE].rpartition("\n")[0].rstrip())
    ends = [found.end() for found in SENTENCE_END.finditer(window) if found.end() <= PASSAGE]
    if ends:
        return ends[-1]
    head = window[:PASSAGE]
    for ended in (head.rpartition("\n")[0], head.rpartition(" ")[0]):
        if ended.strip():
            return len(ended.rstrip())
    return PASSAGE
