"""Months and days of a text: one notation for all in which a day of the calendar is written."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.memory.words_by_language import CAPITALISED, MONTH, months_in

NAMES = [name for name in MONTH if name not in CAPITALISED]


def found(text: str) -> set[str]:
    """The months and days of a text."""
    return {named for named, _ in months_in(text)}


@given(st.dates(date(1900, 1, 1), date(2100, 12, 31)), st.sampled_from(NAMES))
def test_a_day_is_one_in_every_notation(day: date, name: str) -> None:
    """ISO, with points, as a calendar writes it, and with the name of the month in any language, before or behind."""
    wanted = {f"~{day.month:02}", f"~{day.month:02}-{day.day}"}
    named = date(2001, MONTH[name], day.day if day.day < 29 else 28)
    assert found(f"On {day.isoformat()} it rained.") == wanted
    assert found(f"am {day.day}.{day.month}.{day.year} um acht") == wanted
    assert found(f"DTSTART:{day:%Y%m%d}T101500") == wanted
    for text in (f"{named.day} {name} 2001", f"{name} {named.day}", f"{named.day}. {name.capitalize()}"):
        assert found(text) == {f"~{named.month:02}", f"~{named.month:02}-{named.day}"}


@pytest.mark.parametrize(
    "text", ["You may go.", "We march on.", "version 1.2", "12:30", "1,234.56", "R-2026-1", "marching"]
)
def test_what_names_no_month_has_none(text: str) -> None:
    """Verbs, versions, times of day and numbers."""
    assert list(months_in(text)) == []


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    """Every month that is found is one of the year's."""
    assert all(1 <= int(each[1:3]) <= 12 for each in found(text))
