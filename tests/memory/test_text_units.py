"""Units: spans that hold all of a text but blanks, and that no cut goes through."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.growing import MOST, growth
from tests.memory.textual import texts

from batos.memory.text_units import CHARACTERS, LONGEST, SENTENCE, UNMARKED, Unit, chunks_of, tokens_of, units_of

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
    [("", "`", "", 60_000), ("# ", " ", "x", 60_000), ("= ", " ", "x", 60_000), ("", "```\n", "", 4_000),
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
        assert all(tokens_of(text[unit.start : unit.end]) <= UNMARKED for unit in found)
        assert sum(unit.end - unit.start for unit in found) >= len(text.strip()) - len(found)


def test_a_long_sentence_is_cut_at_weaker_marks() -> None:
    """A text in small letters has sentences all the same; a short one keeps its points, and so does code."""
    for one in ("the lamp of the light burns oil .", "the lamp of the light burns oil ;", "a line of a log"):
        text = "\n".join([one] * 200) if one.endswith("log") else f"{one} " * 200
        assert {text[start:end] for start, end, _ in units_of(text)} == {one}
    assert len(units_of("It burns approx. one litre; no more.")) == 1
    code = "```\n" + "burn(oil); light(lamp)\n" * 40 + "```"
    assert SENTENCE < tokens_of(code) < LONGEST
    assert [text for start, end, _ in units_of(code) if (text := code[start:end])] == [code]


def test_a_line_longer_than_any_that_was_wrapped_is_a_paragraph() -> None:
    """Whatever it ends with; the lines of a text that was wrapped end nothing."""
    line = "the lamp burns and burns " * 7
    assert len(units_of(f"{line}\nand burns\n{line}")) == 2
    assert len(units_of("the lamp burns\nand burns\nand burns")) == 1


def test_figures_cost_more_than_letters() -> None:
    """So a table has smaller parts than prose; prose costs what its length says, nearly."""
    prose = "The keeper of the light went down to the shore and looked out over the sea, which was calm. " * 9
    assert tokens_of(prose) == pytest.approx(len(prose) / CHARACTERS, rel=0.05)
    assert tokens_of("| 1,217.5 | (18.2) |" * 9) > 2 * len("| 1,217.5 | (18.2) |" * 9) / CHARACTERS


def cut_by_hand(text: str) -> Iterator[str]:
    """The pieces of a text without an end of a sentence, each cut from the beginning of what is left."""
    rest = text.strip()
    while len(rest) > UNMARKED * CHARACTERS or tokens_of(rest) > UNMARKED:
        window = rest[: int(UNMARKED * CHARACTERS)]
        window = window[:UNMARKED] if tokens_of(window) > UNMARKED else window
        head = window[: window.rfind(" ")] if " " in window.lstrip() else window
        yield head.strip()
        rest = rest[len(head) :].strip()
    if rest:
        yield rest


@given(
    st.lists(st.sampled_from(["lamp", "oil", "x" * 999, "灯" * 90, " ", "\t \u3000", "\x1c", "a b " * 300])).map(
        "".join
    )
)
def test_each_piece_begins_where_the_blanks_behind_the_one_before_end(text: str) -> None:
    """Whatever the blanks are, and also where a cut falls among them."""
    assert [text[start:end] for start, end, _ in units_of(text)] == list(cut_by_hand(text))


def test_a_long_line_is_cut_in_time_that_grows_with_its_length() -> None:
    """The rest of it is not copied for each cut."""
    face = "\N{SLIGHTLY SMILING FACE}"
    found = []

    def cut(size: int) -> None:
        found.append(len(units_of(face + "lamp oil " * size)))

    assert growth(cut, 100_000, most=MOST_COPYING) < MOST_COPYING
    assert max(found) > 1_600


def test_a_text_of_blanks_has_no_unit() -> None:
    """Nothing is in it."""
    assert units_of(" \n\n ") == []
    assert units_of("a") == [Unit(0, 1, 0)]
