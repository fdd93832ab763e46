"""Totals that an answer gives without a sum: numbers that stand together in a line or a column make them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.gate.sums import asks_for_total, run_sums

AMOUNTS = st.lists(st.integers(10, 999), min_size=2, max_size=12)


@given(AMOUNTS)
def test_numbers_of_a_line_are_added_up(amounts: list[int]) -> None:
    """The whole of a line is a sum, and so is any part of it of neighbours."""
    sums = run_sums("spent: " + ", ".join(f"thing {each}" for each in amounts))
    assert {Decimal(sum(amounts)), Decimal(sum(amounts[:2])), Decimal(sum(amounts[-2:]))} <= sums


@given(AMOUNTS)
def test_numbers_of_a_column_are_added_up(amounts: list[int]) -> None:
    """Rows may have other numbers before the one that is added up."""
    rows = [f"{place}  oil, tins  {place + 1} m  {each}.00" for place, each in enumerate(amounts)]
    assert Decimal(sum(amounts)) in run_sums("\n".join(rows))


def test_numbers_apart_make_no_sum() -> None:
    """A line without a number ends a column, and dates are no amounts."""
    assert Decimal(30) not in run_sums("10\nnothing\n20")
    assert run_sums("on 12 May 2026 it was 7") == frozenset()


def test_a_number_of_three_digits_behind_a_mark_is_read_both_ways() -> None:
    """English and German amounts are added up alike."""
    assert Decimal(1500) in run_sums("tent 1,250, band 250")
    assert Decimal(1500) in run_sums("Zelt 1.250 Euro, Band 250 Euro")


@pytest.mark.parametrize(
    "text", ["What was spent in all?", "Wie hoch ist die Summe?", "Combien en tout ?", "一共多少钱？"]
)
def test_a_total_is_asked_for_in_several_languages(text: str) -> None:
    """Words of a whole tell it."""
    assert asks_for_total(text)
    assert not asks_for_total("What does the tent cost?")
