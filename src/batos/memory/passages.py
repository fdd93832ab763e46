"""Cut files into passages, and documents into the chunks that are remembered, each with its headings."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from batos.memory.evidence import Passage
from batos.memory.records.memory_records import ChunkText
from batos.memory.segmentation import SENTENCE_END, blanks_end, page_ends
from batos.memory.text_units import (
    ABOVE,
    LONGEST_HEAD,
    Chunk,
    TableHeads,
    Unit,
    add_head,
    chunks_of,
    long_line_ends,
    tokens_of,
    units_of,
)

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
        heads, before, pages = Heads(text), 0, page_ends(text)
        for start, end in _join_pieces(text):
            lead, head = text[before:start], heads.above(start)
            found.append(
                Passage(len(found) + 1, name, sha256, start, text[start:end], lead=lead, head=head, pages=pages)
            )
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


def document_chunks(title: str, text: str) -> tuple[ChunkText, ...]:
    """Return the chunks of a text; a heading that only repeats the document's title is left out.

    Rows of a table have its caption and the names of its columns below the headings, so that they are found by them.

    >>> [each.heading for each in document_chunks("The lamp", "# The lamp\\n\\nOil.\\n\\n## Wick\\n\\nCotton.")]
    ['', 'Wick']
    """
    tables = TableHeads(text)
    return tuple(
        ChunkText(
            each.start,
            add_head(_below(title, each.heading), tables.above(each.start)),
            text[each.start : each.end],
        )
        for each in structural_chunks(text)
    )


def _below(title: str, heading: str) -> str:
    first, _, rest = heading.partition(ABOVE)
    return rest if first == title else heading


# -- cuts by structure: below headings, between paragraphs, and between sentences of a long paragraph


#: Tokens that a part has at most, unless a single unit has more, and those of a text without a heading (decision 0061).
MOST, PLAIN = 150, 180

#: Headings of more characters, with nothing between them, are a part of their own: a list, in truth.
MOST_HEADINGS: Final = 2_000


def structural_chunks(text: str, most: float | None = None) -> list[Chunk]:
    """Return the parts of a text: whole paragraphs, as many as `most` tokens hold, none of them across a heading.

    Without `most` a text with headings has smaller parts, since what stands above a part tells what it is about.

    >>> text = "# Lamp\\n\\nIt burns.\\n\\n# Bell\\n\\nIt rings."
    >>> [(text[each.start : each.end], each.heading) for each in structural_chunks(text)]
    [('# Lamp\\n\\nIt burns.', 'Lamp'), ('# Bell\\n\\nIt rings.', 'Bell')]
    """
    units = units_of(text)
    most = most or (MOST if any(unit.level for unit in units) else PLAIN)
    return chunks_of(text, units, list(_pack(text, units, list(_paragraphs(text, units)), most)))


def _paragraphs(text: str, units: Sequence[Unit]) -> Iterator[tuple[int, int]]:
    """Yield the runs of units between which is a blank line or the end of a long one, or which a heading begins."""
    first = 0
    long = frozenset(long_line_ends(text))
    for at in range(1, len(units) + 1):
        apart = at == len(units) or units[at].level or units[at - 1].end in long
        if apart or _GAP.search(text, units[at - 1].end, units[at].start):
            yield first, at
            first = at


def _pack(
    text: str, units: Sequence[Unit], paragraphs: Sequence[tuple[int, int]], most: float
) -> Iterator[tuple[int, int]]:
    """Yield runs of units: paragraphs together as long as they fit, and long ones cut between their units."""
    first = said = 0  # the first unit of a part, and the first one from there on that is no heading
    for begin, behind in paragraphs:
        said = _behind_headings(units, max(first, said), behind)
        apart = begin > first and (_opens(units, begin) or not _fits(text, units, first, behind, most))
        if apart and _stands(units, first, begin, said):
            yield first, begin
            first = begin
            said = _behind_headings(units, first, behind)
        for at in range(max(first + 1, begin), behind):
            if not _fits(text, units, first, at + 1, most) and _stands(units, first, at, said):
                yield first, at
                first = at
                said = _behind_headings(units, first, behind)
    if first < len(units):
        yield first, len(units)


def _fits(text: str, units: Sequence[Unit], first: int, behind: int, most: float) -> bool:
    return tokens_of(text[units[first].start : units[behind - 1].end]) <= most


def _opens(units: Sequence[Unit], at: int) -> bool:
    """Test if a heading begins a part there, which one below another heading does not."""
    return bool(units[at].level) and not units[at - 1].level


def _behind_headings(units: Sequence[Unit], first: int, behind: int) -> int:
    """Return the first unit from `first` on that is no heading; `behind` if there is none."""
    return next((at for at in range(first, behind) if not units[at].level), behind)


def _stands(units: Sequence[Unit], first: int, behind: int, said: int) -> bool:
    """Test if units can be a part: headings stay with what they stand above, unless they are too many for one."""
    return said < behind or units[behind - 1].end - units[first].start > MOST_HEADINGS
