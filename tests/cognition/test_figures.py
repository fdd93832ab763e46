"""Numbers: every way to read one, and sums that are shown."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.cognition import figures


@pytest.mark.parametrize(
    ("answer", "evidence"),
    [
        ("1,200 cans", "1200 cans"),
        ("1.200 Dosen", "1200 Dosen"),
        ("1 200 bidons", "1200 bidons"),
        ("1\u202f200 bidons", "1,200 cans"),
        ("1'200 Dosen", "1.200 Dosen"),
        ("12 %", "12%"),
        ("12%", "twelve"),
        ("20 steps", "zwanzig Stufen"),
        ("1,5 Liter", "1.5 litres"),
        ("1.50", "1,5"),
        ("1,234.56", "1.234,56"),
        ("on 01.05.2024", "in May 2024"),
        ("in 2024-05-01", "01/05/2024"),
        ("version 192.168.1.1", "192.168.1.1"),
        ("7 of them", "none"),
        ("１２ 個", "12 個"),
        ("१२ दिन", "12 दिन"),
        ("B12 and v2.5", "nothing"),
        ("the 20th", "20 years"),
    ],
)
def test_the_same_number_written_otherwise_is_known(answer: str, evidence: str) -> None:
    """Groups, decimal marks, scripts, dates and spelled numbers are read as they can be meant; counts are free."""
    values = figures.known(evidence)
    assert all(figures.is_known(figure, values) for figure in figures.found(answer))


@pytest.mark.parametrize(
    ("answer", "evidence"),
    [
        ("13 cans", "12 cans"),
        ("1.5 litres", "15 litres"),
        ("15 litres", "1.5 litres"),
        ("12,000", "12"),
        ("0.5", "5"),
        ("in 1999", "in 2024"),
        ("10.0.0.1 and 10.0.0.99", "10.0.0.1"),
        ("1,201", "1,200"),
    ],
)
def test_another_number_is_not(answer: str, evidence: str) -> None:
    """A digit more, less or shifted is another number."""
    values = figures.known(evidence)
    assert not all(figures.is_known(figure, values) for figure in figures.found(answer))


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("3 × 40 km = 120 km", 120),
        ("10 + 5*2 = 20", 20),
        ("100 - 20 - 30 = 50", 50),
        ("1.200 x 3 = 3.600", 3600),
        ("10 / 3 ≈ 3.33", "3.33"),
        ("2 h × 60 = 120", 120),
        ("€5 × 12 = €60", 60),
        ("12 ÷ 0.5 = 24", 24),
    ],
)
def test_a_sum_that_is_shown_and_right_gives_its_result(text: str, result: int | str) -> None:
    """What an answer works out before the reader's eyes needs no source."""
    assert Decimal(result) in figures.computed(text)


@pytest.mark.parametrize("text", ["3 × 40 = 130", "10 / 0 = 10", "7 - 2 = 6", "= 12", "3 × = 12", "1.2.3 + 1 = 13"])
def test_a_sum_that_is_wrong_gives_nothing(text: str) -> None:
    """A wrong result, a division by zero or half a sum proves nothing."""
    assert figures.computed(text) == frozenset()


@given(
    text=st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
    | st.text("0123456789.,'= +-x*/ ", max_size=200)
)
def test_any_text_is_read_without_error(text: str) -> None:
    """Whatever is written, its numbers are found, known to itself, and its sums worked out or not."""
    values = figures.known(text)
    assert all(figures.is_known(figure, values) for figure in figures.found(text))
    figures.computed(text)


@given(number=st.integers(0, 10**12))
def test_groups_change_nothing(number: int) -> None:
    """A whole number with or without groups is the same number."""
    for written in (f"{number}", f"{number:,}", f"{number:,}".replace(",", "."), f"{number:_}".replace("_", "\u202f")):
        assert Decimal(number) in figures.readings(written)
