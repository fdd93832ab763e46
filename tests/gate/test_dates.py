"""Dates and times: the same day in any form is the same, another day is not, and a verb is no month."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.gate import dates

EVIDENCE = (
    "Lit on 3 March 2021. Begun in May 1994, ended 12/11/1996. On 1 June it opened. Rev. 2.5.10 came on 2020-02-29."
    " Der Brand war am 7. August 1888. El 5 de mayo de 1901. Le 14 juillet 1789. 2023年5月6日。 In 1850 nothing."
)
YEARS = frozenset({1850, 1994, 2021, 1888})


def known(answer: str) -> bool:
    """Whether every date of the answer is in the evidence."""
    there = dates.read_dates(EVIDENCE)
    return all(dates.is_known(day, there, YEARS) for day in dates.find(answer))


@pytest.mark.parametrize(
    "answer",
    [
        "3 March 2021",
        "March 3rd, 2021",
        "2021-03-03",
        "3.3.2021 or 03/03/21",
        "3. März 2021",
        "3 mars 2021",
        "3 de marzo de 2021",
        "the 3rd of March 2021",
        "2021年3月3日",
        "in March 2021",
        "Mai 1994",
        "November 12, 1996, or December 11",
        "June 1st, 1994",
        "August 7, 1888",
        "July 14, 1789",
        "May 6, 2023",
        "2.5.10",
    ],
)
def test_the_same_day_is_known_in_every_form(answer: str) -> None:
    """ISO, dotted, slashed either way, in seven languages, whole or in part."""
    assert dates.find(answer)
    assert known(answer)


@pytest.mark.parametrize(
    "answer",
    ["4 March 2021", "March 3, 2022", "2021-04-03", "7 septembre 1888", "2 June", "14 juillet 1788", "13.11.1996"],
)
def test_another_day_is_not(answer: str) -> None:
    """One part changed."""
    assert not known(answer)


@pytest.mark.parametrize(
    "text",
    ["You may 12 times", "It was 12 may be more", "They march 10 miles", "12-13 people", "1/2 cup", "99.99.2020"],
)
def test_what_is_no_date_is_none(text: str) -> None:
    """Verbs, ranges, fractions, months that are not."""
    assert dates.find(text) == []


def test_a_range_goes_up() -> None:
    """What is taken away from a day is no last day, and two days that are named are both meant in any order."""
    assert dates.read_dates("30 June 2026 - 3 months") == {(2026, 6, 30)}
    assert dates.read_dates("28-30 June") == {(0, 6, 28), (0, 6, 29), (0, 6, 30)}
    assert dates.read_dates("30 June and 12") == {(0, 6, 12), (0, 6, 30)}


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("at 14:30", (14, 30)),
        ("um 14.30 Uhr", (14, 30)),
        ("à 14h30", (14, 30)),
        ("2:30 pm", (14, 30)),
        ("12:05 a.m.", (0, 5)),
    ],
)
def test_times_of_day_are_read_by_the_clock_of_24_hours(text: str, time: tuple[int, int]) -> None:
    """However they are written."""
    assert [found for found, _ in dates.times(text)] == [time]


@given(
    text=st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
    | st.text("0123456789./-: marchpm", max_size=120)
)
def test_any_text_has_its_own_dates(text: str) -> None:
    """What is found stands where it says, and is known to its own text."""
    there = dates.read_dates(text)
    for day in dates.find(text):
        assert text[day.start : day.end] == day.text
        assert dates.is_known(day, there, frozenset())
    dates.times(text)
