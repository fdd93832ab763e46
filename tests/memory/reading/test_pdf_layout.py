"""The order in which a page is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.memory.growing import MOST, growth

from batos.memory.reading.pdf_layout import arrange
from batos.memory.reading.pdf_painting import PageWord

LEFT = ["The committee met on the", "third of March. It found", "that the pump had been", "worn out by sand."]
RIGHT = ["The ferry was another", "matter. Its owner could", "show no licence. She was", "fined 340 crowns."]
COORDINATE = st.floats(-1_000, 1_000)
WORD = st.builds(
    lambda x, y, width, height, text: PageWord(x, y, x + width, y + height, text),
    COORDINATE, COORDINATE, st.floats(0, 300), st.floats(0.1, 40), st.text("aB1-|", min_size=1, max_size=4),
)  # fmt: skip


def line(x: float, y: float, text: str, size: float = 10) -> list[PageWord]:
    """The words of a line, each letter half as wide as it is high."""
    found = []
    for word in text.split():
        found.append(PageWord(x, y, x + size * len(word) / 2, y + size, word))
        x += size * (len(word) + 0.6) / 2
    return found


def lines(x: float, y: float, texts: Iterable[str], size: float = 10, pitch: float = 12) -> list[PageWord]:
    """Lines below each other."""
    return [word for at, text in enumerate(texts) for word in line(x, y - pitch * at, text, size)]


def by_row(rows: Iterable[tuple[str, ...]], places: tuple[float, ...]) -> list[PageWord]:
    """Rows of cells."""
    cells = ((x, 500 - 14 * at, cell) for at, row in enumerate(rows) for x, cell in zip(places, row, strict=True))
    return [word for x, y, cell in cells for word in line(x, y, cell)]


def test_baselines_of_columns_may_differ() -> None:
    """Lines of two columns that do not stand exactly beside each other are parted as well."""
    assert arrange(lines(50, 500, LEFT) + lines(250, 495, RIGHT, pitch=13)).lines == [*LEFT, *RIGHT]


def test_three_columns_are_three() -> None:
    """A part of a page that a gutter divides may have another one."""
    assert arrange(by_row(zip(LEFT, RIGHT, LEFT, strict=True), (50, 250, 450))).lines == [*LEFT, *RIGHT, *LEFT]


def test_a_line_across_divides_the_columns() -> None:
    """Columns above a figure's words are read before these, and those below after them."""
    across = "Figure 1: how the pump of the north field was mended in spring by the smith"
    rows = list(zip(LEFT, RIGHT, strict=True))
    page = by_row(rows, (50, 250)) + line(50, 430, across)
    page += [word._replace(y0=word.y0 - 100, y1=word.y1 - 100) for word in by_row(rows, (50, 250))]
    assert arrange(page).lines == [*LEFT, *RIGHT, across, *LEFT, *RIGHT]


def test_a_box_at_the_side_waits_for_the_end_of_the_paragraph() -> None:
    """Text that goes around a box is not torn by it."""
    full = [
        "The committee of the village met on the third of March and found this: the",
        "pump was old, as the keeper had told them twice in letters of this year and",
    ]
    beside = [
        "of the last one, but had not been heard by anybody who",
        "had crowns to give, since the ferry was dearer to the",
        "most of them than all of the pumps of the fields, and",
    ]
    box = ["Did you know?", "Nine sheep", "ride the ferry."]
    end = ["so they paid him his wages and went home, each by the boat of another one."]
    page = lines(50, 500, full) + by_row([], ())
    for at, (one, other) in enumerate(zip(beside, box, strict=True)):
        page += line(50, 476 - 12 * at, one) + line(360, 477 - 12 * at, other, 8)
    assert arrange(page + lines(50, 440, end)).lines == [*full, *beside, *end, *box]


def test_notes_come_after_the_columns() -> None:
    """A note at the foot of the left column does not stand between the halves of a sentence."""
    page = lines(50, 500, LEFT) + line(50, 440, "1 See the ledger.", 7) + lines(250, 500, RIGHT)
    assert arrange(page).lines == [*LEFT, *RIGHT, "1 See the ledger."]


ROWS = [("Village", "Wells", "District"), ("Elm", "12", "north"), ("Kelley", "5", "south"), ("Ash Hill", "30", "east")]
TABLE = [f"| {' | '.join(row)} |" for row in ROWS]


@pytest.mark.parametrize("by_column", [False, True])
def test_rows_of_a_table_are_put_together(by_column: bool) -> None:
    """Whether it was painted by rows or by columns."""
    words = by_row(ROWS, (50, 200, 300))
    assert arrange(sorted(words, key=lambda word: word.x0 > 190) if by_column else words).lines == TABLE


def test_a_cell_of_several_lines_is_one() -> None:
    """A line that goes on within a sentence belongs to the row above."""
    rows = [
        ("Pump", "worn out by sand, and", "90"),
        ("", "mended in March", ""),
        ("Ferry", "taken", "340"),
        ("Mill", "closed", "0"),
    ]
    expected = [
        "| Pump | worn out by sand, and mended in March | 90 |",
        "| Ferry | taken | 340 |",
        "| Mill | closed | 0 |",
    ]
    assert (
        arrange([word._replace(y0=word.y0 * 0.8, y1=word.y0 * 0.8 + 10) for word in by_row(rows, (50, 150, 300))]).lines
        == expected
    )


def test_rules_part_the_rows_of_a_table() -> None:
    """Cells of several lines are whole between lines that are drawn; rows that none parts are rows all the same."""
    rows = [("Item", "State"), ("Pump of", "It was old, as the"), ("the field", "keeper had told."), ("Mill", "Closed")]
    rules = [(493.0, 40.0, 120.0), (493.0, 120.0, 400.0), (465.0, 40.0, 400.0)]
    expected = ["| Item | State |", "| Pump of the field | It was old, as the keeper had told. |", "| Mill | Closed |"]
    assert arrange(by_row(rows, (50, 150)), rules=rules).lines == expected
    assert arrange(by_row(ROWS, (50, 200, 300)), rules=[(493.0, 40.0, 400.0), (465.0, 40.0, 400.0)]).lines == TABLE


def test_labels_stand_before_what_they_name() -> None:
    """Cells that end with a colon are no column of a table."""
    assert arrange(by_row([("Rent:", "340"), ("From:", "May"), ("To:", "June")], (50, 150))).lines == [
        "Rent: 340",
        "From: May",
        "To: June",
    ]


def test_the_points_of_a_list_are_no_column() -> None:
    """A number or a point before an item stays there."""
    items = ["Wind the lamp", "Trim the wick", "Fill the oil"]
    page = by_row([(f"{number}.", item) for number, item in enumerate(items, 1)], (50, 90))
    assert arrange(page).lines == [f"{number}. {item}" for number, item in enumerate(items, 1)]


def test_an_order_that_nobody_can_tell_is_told() -> None:
    """Long cells beside each other may be two lists or the rows of a table."""
    left = [
        "Ivo Trask, keeper of the north pump",
        "Dora Quill, owner of the ferry boat",
        "Anna Marsh, widow of the miller here",
    ]
    right = [
        "Brass lamp of the light on the pier",
        "Copper kettle of the inn at Marden",
        "Wooden wheel of the mill with rust",
    ]
    assert arrange(by_row(zip(left, right, strict=True), (50, 350))).is_uncertain
    assert not arrange(by_row(ROWS, (50, 200, 300))).is_uncertain


def test_a_broken_word_is_whole() -> None:
    """A hyphen at the end of a line goes, one before a name stays."""
    assert arrange(lines(50, 500, ["the keep-", "er of Ash-", "Hill"])).lines == ["the keeper of Ash-", "Hill"]


def test_what_is_in_order_is_left_as_it_is() -> None:
    """Lines below each other need no other order."""
    assert arrange(lines(50, 500, LEFT), as_given=True).lines == []


@given(words=st.lists(WORD, min_size=1, max_size=40))
def test_every_word_stands_somewhere(words: list[PageWord]) -> None:
    """No letter is lost and none comes twice, wherever words stand; the other signs may tell their order."""
    told = Counter("".join(arrange(words).lines))
    said = Counter("".join(word.text for word in words))
    assert [told[each] for each in "aB1"] == [said[each] for each in "aB1"]


def test_a_page_of_many_words_takes_time_by_their_number() -> None:
    """Columns, tables and lines of any number are looked at so often and no more."""
    rows = [(f"row {at}", f"is here {at}", f"{at}") for at in range(4_000)]
    assert growth(lambda size: arrange(by_row(rows[:size], (50, 200, 300))), 400) < MOST
