"""Units: spans that hold all of a text but blanks, and that no cut goes through."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.growing import MOST, growth
from tests.memory.textual import texts

from batos.memory.chunking.units import CHARACTERS, LONGEST, Unit, chunks_of, tokens_of, units_of

#: The most growth where the rest of a text might be copied, which is fast: it would be 34 then.
MOST_COPYING = 20.0
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


@pytest.mark.parametrize(
    ("before", "repeated", "behind", "times"),
    [("", "`", "", 60_000), ("# ", " ", "x", 60_000), ("= ", " ", "x", 60_000), ("", "```\n", "", 12_000),
     ("", "# a\n", "", 2_500)],
)  # fmt: skip
def test_a_hostile_text_takes_no_time(before: str, repeated: str, behind: str, times: int) -> None:
    """Nothing is looked at again and again: time grows with the number of the marks, up to half a million."""
    assert growth(lambda size: units_of(before + repeated * size + behind), times) < MOST


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


def cut_by_hand(text: str) -> Iterator[str]:
    """The pieces of a text without an end of a sentence, each cut from the beginning of what is left."""
    rest = text.strip()
    while len(rest) > LONGEST * CHARACTERS or tokens_of(rest) > LONGEST:
        window = rest[: int(LONGEST * CHARACTERS)]
        window = window[:LONGEST] if tokens_of(window) > LONGEST else window
        heads = (window[: window.rfind(mark)] for mark in "\n " if mark in window)
        head = next((each for each in heads if each.strip()), window)
        yield head.strip()
        rest = rest[len(head) :].strip()
    if rest:
        yield rest


@given(
    st.lists(
        st.sampled_from(["lamp", "oil", "x" * 999, "灯" * 90, " ", "\noil", "\t \u3000", "\x1c", "a b " * 300])
    ).map("".join)
)
def test_each_piece_begins_where_the_blanks_behind_the_one_before_end(text: str) -> None:
    """Whatever the blanks are, and also where a cut falls among them."""
    assert [text[start:end] for start, end, _ in units_of(text)] == list(cut_by_hand(text))


def test_a_long_line_is_cut_in_time_that_grows_with_its_length() -> None:
    """The rest of it is not copied for each cut."""
    face = "\N{SLIGHTLY SMILING FACE}"
    assert growth(lambda size: units_of(face + "lamp oil " * size), 250_000) < MOST_COPYING
    assert len(units_of(face + "lamp oil " * 2_000_000)) > 4_000


def test_a_text_of_blanks_has_no_unit() -> None:
    """Nothing is in it."""
    assert units_of(" \n\n ") == []
    assert units_of("a") == [Unit(0, 1, 0)]
