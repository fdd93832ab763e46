"""Cut files into passages: at blank lines, and between sentences where a paragraph is long."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from batos.memory.evidence import Passage
from batos.memory.sentences import SENTENCE_END, blanks_end

#: Passages are cut at blank lines, and between sentences where a paragraph is longer than this (characters).
PASSAGE = 1_200

_GAP = re.compile(r"\n\s*\n")


def passages(files: Iterable[tuple[str, str, str]]) -> tuple[Passage, ...]:
    """Return the passages of files given as (name, sha256, text), numbered from 1 across all of them.

    Each is a slice of its text without blanks at its ends; together they hold everything but blanks.
    """
    found: list[Passage] = []
    for name, sha256, text in files:
        for start, end in _join_pieces(text):
            found.append(Passage(len(found) + 1, name, sha256, start, text[start:end]))
    return tuple(found)


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
    """Return the place to cut a window that begins a long paragraph: after a sentence, else a line, else a word."""
    ends = [found.end() for found in SENTENCE_END.finditer(window) if found.end() <= PASSAGE]
    if ends:
        return ends[-1]
    head = window[:PASSAGE]
    for ended in (head.rpartition("\n")[0], head.rpartition(" ")[0]):
        if ended.strip():
            return len(ended.rstrip())
    return PASSAGE
