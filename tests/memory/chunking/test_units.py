"""Units: spans that hold all of a text but blanks, and that no cut goes through."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st
from tests.memory.textual import texts

from batos.memory.chunking.units import LONGEST, Unit, chunks_of, tokens_of, units_of

#: Pieces of Markdown in any order, also such as are not closed.
PIECES = (
    "# A b\n",
    "```\n",
    "~~~ x\n",
    "| a. | b. |\n",
    "= C =\n",
    "== D. e ==\n",
    "One. Two.",
    "\n\n",
    "- x\n",
    " 灯。",
)


@given(st.one_of(texts, st.lists(st.sampled_from(PIECES), max_size=30).map("".join)))
def test_units_hold_everything_but_blanks(text: str) -> None:
    """They stand in order, none is empty, and between them are nothing but blanks."""
    at = 0
    for start, end, level in units_of(text):
        assert at <= start < end
        assert text[at:start].strip() == ""
        assert text[start:end] == text[start:end].strip()
        assert 0 <= level <= 6
        at = end
    assert text[at:].strip() == ""


def test_blocks_of_code_and_rows_are_whole() -> None:
    """Marks of sentences in them end nothing."""
    code = "```python\n# No heading. No end.\n\nx = 1. \n```"
    text = f"Before. And\n{code}\n\n| One. | Two. Three. |\n| --- | --- |\n\nAfter."
    assert [text[start:end] for start, end, _ in units_of(text)] == [
        "Before.", "And", code, "| One. | Two. Three. |", "| --- | --- |", "After.",
    ]  # fmt: skip


def test_code_that_is_not_closed_goes_to_the_end() -> None:
    """No mark behind the fence ends anything."""
    assert [unit.start for unit in units_of("Text.\n```\na. b.\n\n# c")] == [0, 6]


def test_headings_have_levels() -> None:
    """Those of Markdown by their number of marks, and those of a wiki too."""
    text = "# A\nText.\n### B ###\n\n = = C = = \nText.\n= d\n#no"
    units = units_of(text)
    assert [unit.level for unit in units] == [1, 0, 3, 2, 0, 0]
    assert chunks_of(text, units, [(2, 3)])[0].heading == "B"


def test_a_hostile_text_takes_no_time() -> None:
    """Nothing is looked at again and again: half a million marks are read in less than seconds."""
    began = time.process_time()
    for text in (
        "`" * 500_000,
        "# " + " " * 500_000 + "x",
        "= " + " " * 500_000 + "x",
        "```\n" * 100_000,
        "# a\n" * 20_000,
    ):
        units_of(text)
    assert time.process_time() - began < 8


def test_headings_stand_above_what_follows() -> None:
    """A heading of the same level takes the place of the one before, with all below it."""
    text = "# A\n\nOne.\n\n## B\n\nTwo.\n\n# C\n\nThree."
    units = units_of(text)
    assert [each.heading for each in chunks_of(text, units, [(0, 2), (2, 4), (4, 6)])] == ["A", "A > B", "C"]
    assert [each.heading for each in chunks_of(text, units, [(0, 6)])] == ["A"]


def test_what_has_no_end_is_cut_at_last() -> None:
    """A unit is never longer than the limit: first lines are whole, then words, then nothing."""
    for text in ("word " * 5_000, "x" * 20_000, "灯" * 3_000, "a line of words\n" * 2_000):
        found = units_of(text)
        assert all(tokens_of(text[unit.start : unit.end]) <= LONGEST for unit in found)
        assert sum(unit.end - unit.start for unit in found) >= len(text.strip()) - len(found)


def test_a_text_of_blanks_has_no_unit() -> None:
    """Nothing is in it."""
    assert units_of(" \n\n ") == []
    assert units_of("a") == [Unit(0, 1, 0)]
