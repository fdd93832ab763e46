"""Rows that only count on, and those that have something of their own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.inference.ollama.repetition import COUNTED_NUMBERS, COUNTED_SENTENCES, counted_rows, find_likely

#: What models write without end: a line for a number, in which nothing else changes.
ENDLESS = (
    "{0}. The lamp is lit at dusk and trimmed by its keeper.\n",
    "{0}. **Step**: Repeat.\n",
    "| {0} | lamp | {1} |\n",
    "{0}, ",
    "Line {0} of {1}: the same as line {2}, and so on for every line that comes after it.\n",
)


@pytest.mark.parametrize("row", ENDLESS)
def test_the_second_and_the_third_row_are_told(row: str) -> None:
    """From the first row on that counts on, however many there are; a row may begin with any of its numbers."""
    rows = [row.format(number, 2 * number + 7, number - 1) for number in range(10, 800)]
    before = "A list:\n" + rows[0][: row.index("{")]
    found = counted_rows("A list:\n" + "".join(rows))
    assert found is not None
    second, third = found
    assert 0 <= second - len(before + rows[0]) < len(rows[1])
    assert len(rows[1]) - 2 <= third - second <= len(rows[2]) + 2


@given(
    words=st.lists(st.text("abcdef ghij-.|", min_size=1, max_size=8), min_size=1, max_size=2),
    starts=st.lists(st.integers(0, 10**6), min_size=4, max_size=4),
    steps=st.lists(st.integers(0, 40), min_size=4, max_size=4).filter(lambda steps: any(steps[:1])),
    noise=st.integers(0, 600),
)
def test_one_new_thing_among_them_makes_rows_honest(
    words: list[str], starts: list[int], steps: list[int], noise: int
) -> None:
    """Rows of any form that count on are known; one that breaks the order among the last of them, and they are not."""
    rows = [
        "".join(f"{word}{start + step * row}" for word, start, step in zip(words, starts, steps, strict=False)) + "\n"
        for row in range(COUNTED_NUMBERS + 2)
    ]
    assert counted_rows("".join(rows))
    assert find_likely("".join(rows))
    near = COUNTED_NUMBERS + 1 - noise % (COUNTED_SENTENCES - 4)
    assert not counted_rows("".join([*rows[:near], "other\n", *rows[near:]]))
