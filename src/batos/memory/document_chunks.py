"""Cut a document into the chunks that are remembered, each with the headings and the head of the table above it."""

from __future__ import annotations

from batos.memory.chunking.structural import structural_chunks
from batos.memory.chunking.units import ABOVE
from batos.memory.records.memory_records import ChunkText
from batos.memory.table_heads import TableHeads, add_head


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
