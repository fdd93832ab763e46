"""The table of words is compared in one plain form."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from batos.minds.tools import words


def test_plain_words_have_no_accents() -> None:
    """Letters are small, `ß` is `ss`, and marks are blanks."""
    assert words.plain_line("Où est-ce, Straße?") == " ou est ce strasse "


@given(st.text(max_size=80))
def test_plain_is_plain_already(text: str) -> None:
    """The plain form of a plain line is itself."""
    line = words.plain_line(text)
    assert words.plain_line(line).split() == line.split()


def test_every_list_of_the_table_is_in_plain_form() -> None:
    """A word with an accent or a capital in the table would never be found."""
    for section in words.sections() - {each for each in words.sections() if each.startswith("said_")} - {"journey"}:
        for name in words.keys_of(section):
            text = words.read_list(section, name)
            assert text == words.plain(text), (section, name)
            words.phrases(section, name)


def test_the_longest_phrase_is_found() -> None:
    """A part of a phrase is not taken for all of it."""
    found = words.phrases("days", "2").search(" the day after tomorrow ")
    assert found is not None
    assert found[0] == "the day after tomorrow"
