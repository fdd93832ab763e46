"""Chunks of a document: slices of its text with the headings above them, without the one that is its title."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.memory.test_text_units import PIECES

from batos.memory.passages import document_chunks


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_each_chunk_is_a_slice_of_the_text(text: str) -> None:
    """What stands between two chunks is nothing but blanks."""
    at = 0
    for chunk in document_chunks("", text):
        assert text[chunk.start : chunk.start + len(chunk.text)] == chunk.text
        assert not text[at : chunk.start].strip()
        at = chunk.start + len(chunk.text)
    assert not text[at:].strip()


def test_a_title_is_not_repeated_as_a_heading() -> None:
    """A document is found by its title already; headings below it, and others at the top, stay."""
    text = "# Lamp\n\nOil.\n\n## Wick\n\nCotton.\n\n# Bell\n\nBronze."
    assert [each.heading for each in document_chunks("Lamp", text)] == ["", "Wick", "Bell"]
    assert [each.heading for each in document_chunks("", text)] == ["Lamp", "Lamp > Wick", "Bell"]
