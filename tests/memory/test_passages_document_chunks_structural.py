"""Cutting by structure: whole units, whole paragraphs where they fit, and nothing across a heading."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.memory.growing import MOST, growth
from tests.memory.test_text_units import PIECES
from tests.memory.textual import texts

from batos.memory.passages import MOST as SMALL
from batos.memory.passages import MOST_HEADINGS, PLAIN, structural_chunks
from batos.memory.text_units import tokens_of, units_of


@given(st.one_of(texts, st.lists(st.sampled_from(PIECES), max_size=30).map("".join)), st.integers(1, 40))
def test_chunks_are_runs_of_units(text: str, most: int) -> None:
    """All units are in them, in order; one is too long only if it has one unit, or a heading with the next."""
    units = units_of(text)
    found = structural_chunks(text, most)
    within = [[unit for unit in units if chunk.start <= unit.start and unit.end <= chunk.end] for chunk in found]
    assert [unit for each in within for unit in each] == units
    for chunk, each in zip(found, within, strict=True):
        assert (chunk.start, chunk.end) == (each[0].start, each[-1].end)
        bodies = [unit for unit in each if not unit.level]
        assert tokens_of(text[chunk.start : chunk.end]) <= most or len(bodies) <= 1
    assert structural_chunks(text, most) == found


def test_paragraphs_stay_whole_where_they_fit() -> None:
    """The cut is between paragraphs, though a sentence of the next one would still fit."""
    text = "One two three. Four five six.\n\nSeven eight. Nine ten eleven."
    assert [text[each.start : each.end] for each in structural_chunks(text, 10)] == text.split("\n\n")


def test_a_heading_stays_with_its_text() -> None:
    """Also where both are longer than a part may be, and where headings follow each other."""
    text = "Before.\n\n# A long heading\n\n## And one below\n\nText that is long as well. More."
    found = [text[each.start : each.end] for each in structural_chunks(text, 8)]
    assert found[0] == "Before."
    assert found[1].startswith("# A long heading")
    assert found[1].endswith("Text that is long as well.")
    assert found[2] == "More."


def test_nothing_but_headings_is_cut_too() -> None:
    """Also where there are very many, in time that grows with them; one that something stands below stays with it."""
    text = "# A heading\n\n" * 5_000 + "Text."
    chunks = structural_chunks(text)
    assert growth(lambda size: structural_chunks("# A heading\n\n" * size + "Text."), 400) < MOST
    assert max(each.end - each.start for each in chunks) < 2 * MOST_HEADINGS
    assert text[chunks[-1].start : chunks[-1].end].endswith("# A heading\n\nText.")


def test_a_line_without_end_takes_no_time() -> None:
    """Where the line begins is not looked for at each sentence: a file of 16 MB took hours, which fails as a hang."""
    assert len(structural_chunks("x" * 8_000_000 + " It burns." * 40_000)) > 1


def test_a_heading_above_many_parts_is_short() -> None:
    """Each part below it is kept with it."""
    text = f"# {'word ' * 500}\n\n" + "It burns. " * 500
    assert max(len(each.heading) for each in structural_chunks(text)) == 200


def test_long_lines_are_paragraphs_and_a_text_without_headings_has_larger_parts() -> None:
    """The cut is between the lines, and a heading anywhere makes parts as small as below headings."""
    text = "\n".join(["the lamp burns oil , and the keeper trims its wick . " * 6] * 6)
    found = [text[each.start : each.end] for each in structural_chunks(text)]
    assert {each.count("\n") for each in found} == {1}
    assert [each.strip() for part in found for each in part.split("\n")] == [each.strip() for each in text.split("\n")]
    assert max(tokens_of(each) for each in found) <= PLAIN
    below = f"# Lamp\n\n{text}"
    assert max(tokens_of(below[each.start : each.end]) for each in structural_chunks(below)) <= SMALL
