"""Sums: written out with signs or words, or made of numbers beside their result; right ones show it, wrong ones not."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.gate import figures, sums


def shown(text: str, result: str) -> bool:
    """Whether the written sums of the text make the number that the text writes so."""
    found = figures.find(text)
    worked = sums.calculate_sums(text, found)
    return any(worked.shows(each) for each in found if each.text == result and each.start not in worked.operands)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("3 × 40 km = 120 km", "120"),
        ("10 + 5*2 = 20", "20"),
        ("100 - 20 - 30 = 50", "50"),
        ("1.200 x 3 = 3.600", "3.600"),
        ("10 / 3 ≈ 3.33", "3.33"),
        ("2 h × 60 = 120", "120"),
        ("€5 × 12 = €60", "60"),
        ("12 ÷ 0.5 = 24", "24"),
        ("(120 + 25) × 40 = 5,800 kr", "5,800"),
        ("2 × (40 + 25) = 130", "130"),
        ("4,800 kr (120 × 40 kr)", "4,800"),
        ("4,800 kr = 120 × 40 kr", "4,800"),
        ("120 × 40 kr → 4 800 kr", "4 800"),
        ("120 times 40 is 4,800", "4,800"),
        ("120 mal 40 ist 4800", "4800"),
        ("120 plus 25 font 145", "145"),
        ("120 multiplied by 40: that is 4800 kr", "4800"),
        ("$$120 \\times 40 = 4800$$", "4800"),
        ("25 % of 120 = 30", "30"),
        ("120 − 10 % = 108", "108"),
        ("25 / 120 = 20.8 %", "20.8"),
        ("40² = 1600", "1600"),
        ("2^10 = 1024", "1024"),
        ("90 km/h × 2 h = 180 km", "180"),
        ("1.5 million × 2 = 3,000,000", "3,000,000"),
    ],
)
def test_a_sum_that_is_right_shows_its_result(text: str, result: str) -> None:
    """What an answer works out before the reader's eyes needs no source."""
    assert shown(text, result)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("3 × 40 = 130", "130"),
        ("10 / 0 = 10", "10"),
        ("7 - 2 = 6", "6"),
        ("= 12", "12"),
        ("3 × = 12", "12"),
        ("1.2.3 + 1 = 13", "13"),
        ("(120 + 25) × 40 = 5,900", "5,900"),
        ("10-15 is 25", "25"),
        ("2^99999 = 10", "10"),
        ("9 ^ 9 ^ 9 ^ 9 = 12", "12"),
        ("120 of 25 = 3000", "3000"),
    ],
)
def test_a_sum_that_is_wrong_shows_nothing(text: str, result: str) -> None:
    """A wrong result, a division by zero, half a sum, a range or a monstrous power proves nothing."""
    assert not shown(text, result)


def implied(text: str, result: str) -> bool:
    """Whether the number that the text writes so is made of the others in it, which are all sure."""
    found = figures.find(text)
    place = max(place for place, each in enumerate(found) if each.text == result)
    return sums.follows_from_others(found, place, set(range(len(found))) - {place}, text)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("The sum of 120 and 25 is 145.", "145"),
        ("Each of the 120 members pays 40 kr, which makes 4,800 kr.", "4,800"),
        ("Of 120 members 25 are children: 20.8 %.", "20.8"),
        ("It rose from 40 to 50, by 25 %.", "25"),
        ("From 1994 to 2023 are 29 years.", "29"),
        ("120 adults, 25 children and 30 guests: 175 in all.", "175"),
        ("Oslo: 120\nBergen: 25\nVoss: 30\nTotal: 175", "175"),
        ("1,200 for 40 people is 30 each.", "30"),
    ],
)
def test_a_number_made_of_those_beside_it_needs_no_signs(text: str, result: str) -> None:
    """Totals of what stands before it, and a sum, product, share or change of two in its sentence."""
    assert implied(text, result)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("The sum of 120 and 25 is 146.", "146"),
        ("Of 120 members 25 are children: 30.8 %.", "30.8"),
        ("There are 120. They have 25. Together it is long ago. So it was 3000.", "3000"),
        ("Each of 120 pays 40 kr.\n\nIt is another matter. Then come the 4,800.", "4,800"),
    ],
)
def test_what_is_not_made_of_them_is_not_shown(text: str, result: str) -> None:
    """Another result, and products across sentences."""
    assert not implied(text, result)


def test_a_version_is_no_part_of_a_total() -> None:
    """What is not a number is passed over."""
    assert implied("Version 1.2.3.4 has 20 rows and 30 more: 50.", "50")


@given(one=st.integers(0, 10**6), other=st.integers(0, 10**6))
def test_every_sum_is_worked_out(one: int, other: int) -> None:
    """Whatever two numbers, their sum is shown by writing it out, and no other number is."""
    text = f"{one} + {other}"
    worked = sums.calculate_sums(text, figures.find(text))
    assert Decimal(one + other) in worked.results


@given(
    text=st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
    | st.text("0123456789.,'= +-x*/^()²% of", max_size=200)
)
def test_any_text_is_worked_out_without_error(text: str) -> None:
    """Whatever is written has sums or none, and each number is implied or not."""
    found = figures.find(text)
    sums.calculate_sums(text, found)
    for place in range(len(found)):
        sums.follows_from_others(found, place, range(len(found)), text)
