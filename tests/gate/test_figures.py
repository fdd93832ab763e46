"""Numbers: every way to read one, and what makes the same number of another."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.gate import figures


def is_known(answer: str, evidence: str) -> bool:
    """Whether every number of the answer is among those of the evidence."""
    there = figures.read_numbers(evidence)
    return all(figures.is_known(figure, there) for figure in figures.find(answer))


@pytest.mark.parametrize(
    ("answer", "evidence"),
    [
        ("1,200 cans", "1200 cans"),
        ("1.200 Dosen", "1200 Dosen"),
        ("1 200 bidons", "1200 bidons"),
        ("1\u202f200 bidons", "1,200 cans"),
        ("1'200 Dosen", "1.200 Dosen"),
        ("12,50,000 rupees", "1250000"),
        ("12 %", "12%"),
        ("12%", "twelve"),
        ("20 steps", "zwanzig Stufen"),
        ("86 steps", "eighty-six steps"),
        ("86 级", "八十六级"),
        ("50 %", "half of them"),
        ("0.5", "½ a litre"),
        ("1,5 Liter", "1.5 litres"),
        ("1.50", "1,5"),
        ("1,234.56", "1.234,56"),
        ("version 192.168.1.1", "192.168.1.1"),
        ("7 of them", "none"),
        ("１２ 個", "12 個"),
        ("१२ दिन", "12 दिन"),
        ("B12 and v2.5", "nothing"),
        ("the 20th", "20 years"),
        ("1.25 million", "1,250,000"),
        ("1,25 Mio.", "1250000"),
        ("1.25m kr", "1,250,000 kr"),
        ("125万", "1,250,000"),
        ("1 250 000", "1.25 million"),
        ("12.5 billion", "Revenue (billion): 12.5"),
        ("the '90s", "in the 1990s"),
        ("2021/22", "from 2021 to 2022"),
        ("0.5 kg", "500 g"),
        ("1500 metres", "1.5 km"),
        ("about 1.3 million", "1,250,001"),
        ("rund 90 m", "86,4 m"),
        ("nearly 60", "57"),
        ("约 1300", "1,278"),
        ("40² m", "40"),
    ],
)
def test_the_same_number_written_otherwise_is_known(answer: str, evidence: str) -> None:
    """Groups, decimal marks, scripts, scales, units, words and what is said to be rounded; counts are free."""
    assert is_known(answer, evidence)


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
        ("version 2.5.7", "version 2.5.1"),
        ("1,201", "1,200"),
        ("1.26 million", "1,250,000"),
        ("12.5 billion", "12.5 % of it"),
        ("7 million", "7 of them"),
        ("7 %", "nothing"),
        ("$5", "nothing"),
        ("5 km", "nothing"),
        ("1.3 million", "1,250,001"),
        ("about 1.4 million", "1,250,001"),
        ("0.6 kg", "500 g"),
        ("87 steps", "eighty-six steps"),
    ],
)
def test_another_number_is_not(answer: str, evidence: str) -> None:
    """A digit more, less or shifted is another number; so is another scale, and a measure is no count."""
    assert not is_known(answer, evidence)


@given(
    text=st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
    | st.text("0123456789.,'= +-x*/万kmg% ", max_size=200)
)
def test_any_text_is_read_without_error(text: str) -> None:
    """Whatever is written, its numbers are found, at their places, and known to itself."""
    there = figures.read_numbers(text)
    for figure in figures.find(text):
        assert figures.is_known(figure, there)
        assert figures.plain(text)[figure.start : figure.end] == figure.text


@given(number=st.integers(0, 10**12))
def test_groups_change_nothing(number: int) -> None:
    """A whole number with or without groups is the same number."""
    for written in (f"{number}", f"{number:,}", f"{number:,}".replace(",", "."), f"{number:_}".replace("_", "\u202f")):
        assert Decimal(number) in figures.readings(written)
