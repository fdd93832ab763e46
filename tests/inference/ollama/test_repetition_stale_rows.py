"""Rows that bring nothing new are counted, and rows that a text shows are not among them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.inference.ollama.honest_texts import pieces_of

from batos.inference.ollama.repetition import STALE_ROWS, StaleRows, numbers_in


def found_in(text: str, shown: str = "") -> tuple[int, int] | None:
    """Return what the first piece brings with which the rows are too many."""
    rows = StaleRows(numbers_in([shown]))
    return next((found for piece in pieces_of(text) if (found := rows.add(piece))), None)


#: What a small model wrote when it was asked for the time left in a game, without end.
WRITTEN = {
    "it counts": ("We calculate.\n\n", [f"Time left = {n}\n\n" for n in range(2, 99)]),
    "it computes": ("", [f"Time left = {n * 24} minutes * 24 = {n * 5761} minutes\n" for n in range(1, 40)]),
    "it begins again": (
        "",
        ["To find it, we divide.\n\nA pass of 2 yards was caught. So 12 is 12 x 12 = 144 minutes, as was said.\n\n"]
        * 20,
    ),
    "two forms by turns": (
        "",
        [f"It was {n + 30} of it. The time is {n}, and then it is {n * n}.\n" for n in range(11, 50)],
    ),
    "Chinese": ("", [f"剩余时间是{n}分钟。" for n in range(40)]),
}


@pytest.mark.parametrize(("before", "rows"), WRITTEN.values(), ids=WRITTEN)
def test_rows_without_anything_new_are_found(before: str, rows: list[str]) -> None:
    """The first stale row is told: it begins behind the row that it is a copy of."""
    found = found_in(before + "".join(rows), "24-10, 4:51")
    assert found is not None
    begin, end = found
    text = before + "".join(rows)
    assert text.startswith(rows[1].split(".")[0][:8], begin)
    assert len(before + rows[0]) == begin
    assert begin < end <= begin + len(rows[1])


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"Room {n} is free.\n" for n in range(1, STALE_ROWS + 1)),  # the first one is new
        "".join(f"Room {n} is free, and so is number {n * 37 % 91 * '|'}.\n" for n in range(1, 40)),
        "".join(f"| {n} | {n * n} |\n" for n in range(400)),
        "}\n" * 400,
    ],
)
def test_few_rows_new_words_and_bare_numbers_are_not_counted(text: str) -> None:
    """Nor are rows with hardly a letter: other rules look after those."""
    assert found_in(text) is None


def test_a_list_that_is_read_from_the_text_is_not_counted() -> None:
    """Its numbers are the text's; the same list from a text that does not have them is found."""
    listed = "".join(f"In {year} the fair had {year * 7 % 991} guests.\n" for year in range(1950, 1990))
    assert found_in(listed, listed.replace("\n", " ")) is None
    assert found_in(listed, "The fair began in 1950.") is not None


@given(st.text("ab1. \n。", max_size=300), st.lists(st.integers(1, 9), min_size=1), st.text("123 ."))
def test_pieces_do_not_matter(text: str, sizes: list[int], shown: str) -> None:
    """However a text is cut into tokens, the same row is told in the end."""
    text = (text + "\nabab 1.\n") * 9
    by_letter, by_piece = StaleRows(numbers_in([shown])), StaleRows(numbers_in([shown]))
    for letter in text:
        by_letter.add(letter)
    for size in itertools.cycle(sizes):
        by_piece.add(text[:size])
        text = text[size:]
        if not text:
            break
    assert by_piece.add("\n") == by_letter.add("\n")


def test_numbers_are_taken_as_they_are_written() -> None:
    """With their points, commas and colons; a mark behind them is not theirs."""
    assert numbers_in(["At 4:51, 1,200 came; 3.5 of them left in 24-10.", "None."]) == {
        "4:51",
        "1,200",
        "3.5",
        "24",
        "10",
    }
