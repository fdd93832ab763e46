"""Cut a document into the chunks that are remembered, each with the headings and the head of the table above it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from batos.memory.records.memory_records import ChunkText
from batos.memory.table_heads import TableHeads, add_head
from batos.memory.text_units import ABOVE, Chunk, Unit, chunks_of, long_line_ends, tokens_of, units_of


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

_GAP = re.compile(r"\n\s*\n")


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
