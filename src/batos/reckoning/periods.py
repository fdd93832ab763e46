"""Finds the days that a question limits a table to: a date, a month, a year, or from one to another."""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal

from batos.reckoning.columns import Column, Date
from batos.reckoning.known_phrases import signs
from batos.reckoning.phrases import COMPARISONS, Condition, NotComputed, Phrase, Unclear, choose_only
from batos.reckoning.question_words import root

_YEARS = frozenset(map(root, signs("years")))
#: The year that days without one are compared in.
_ANY_YEAR = 2000


@dataclass(frozen=True, slots=True)
class Range:
    """Days from the first to the last; None is open."""

    first: date | None
    last: date | None

    def __str__(self) -> str:
        """Return the days as text."""
        first, last = (f"{each}".removeprefix(f"{_ANY_YEAR}-") if each else "..." for each in (self.first, self.last))
        return f"= {first}" if self.first and self.first == self.last else f"{first} to {last}"


def date_conditions(
    said: Sequence[Phrase], columns: Sequence[Column], about: frozenset[str], today: date
) -> list[Condition]:
    """Return the condition on the column of dates, if the question names a date.

    Raises: NotComputed: there is no such column, or the date lies outside of it.
    """
    named = [place for place, each in enumerate(said) if _is_date(said, place)]
    if not named:
        return []
    dated = [each for each in columns if each.days]
    mentioned = {place for each in said for place in each.columns}
    dated = [each for each in dated if each.place in mentioned] or dated
    if not dated:
        return _without_dates(said, named, columns, about)
    column = choose_only(dated)
    meant = _range(said, named, column, today)
    holds = tuple(_is_within(each, meant) for each in column.days)
    if not any(holds):
        raise NotComputed
    return [Condition(f"{column.name} {meant}", column.place, holds)]


def _is_date(said: Sequence[Phrase], place: int) -> bool:
    mention = said[place]
    relative = mention.kind in ("this", "last") and place + 1 < len(said) and said[place + 1].kind in ("month", "year")
    return (mention.kind in ("date", "quarter") and bool(mention.readings) and not is_plain_year(said, place)) or (
        mention.kind in ("today", "yesterday") or relative
    )


def _without_dates(
    said: Sequence[Phrase], named: Sequence[int], columns: Sequence[Column], about: frozenset[str]
) -> list[Condition]:
    """Return the condition on a column of years, or none if the heading names the date.

    Raises: NotComputed: the table does not tell.
    """
    if len(named) != 1:
        raise NotComputed
    mention = said[named[0]]
    year = mention.text.strip("年")
    for column in columns:
        if column.roots & _YEARS and column.numbers and year.isdigit() and Decimal(year) in column.numbers:
            holds = tuple(each if each is None else each == Decimal(year) for each in column.numbers)
            return [Condition(f"{column.name} = {year}", column.place, holds)]
    if root(mention.text.casefold()) not in about:
        raise NotComputed
    return []


def _is_within(day: Date | None, meant: Range) -> bool | None:
    """Test if a date lies in a range; None if it is not known or not exact enough."""
    if day is None:
        return None
    year, month, number = day
    if not month:
        return None
    year = year or _ANY_YEAR
    try:
        first = date(year, month, number or 1)
        last = first if number else date(year, month, calendar.monthrange(year, month)[1])
    except ValueError:
        return None
    inside = (meant.first is None or first >= meant.first) and (meant.last is None or last <= meant.last)
    outside = (meant.first is not None and last < meant.first) or (meant.last is not None and first > meant.last)
    return True if inside else False if outside else None


def _range(said: Sequence[Phrase], named: Sequence[int], column: Column, today: date) -> Range:
    """Return the days that the dates of a question mean together.

    Raises: NotComputed: their words do not fit.
    """
    ranges = [_days_of(said, place, column, today) for place in named]
    before = said[named[0] - 1].kind if named[0] else ""
    behind = said[named[-1] + 1].kind if named[-1] + 1 < len(said) else ""
    if len(ranges) == 2 and (before in ("between", "from", "since") or behind == "between"):
        return Range(ranges[0].first, ranges[1].last)
    if len(ranges) == 2 and {each.kind for each in said[named[0] : named[1]]} <= {"date", "quarter"}:
        return _month_of_year(ranges)
    if len(ranges) != 1 or before in ("from", "to", "between"):
        raise NotComputed
    east = behind in ("before", "after", "since", "until") and not said[named[-1] + 1].text.isascii()
    first, last = ranges[0].first, ranges[0].last
    match behind if east else before:
        case "before" | "for":
            return Range(None, first - timedelta(1) if first else None)
        case "after":
            return Range(last + timedelta(1) if last else None, None)
        case "since":
            return Range(first, None)
        case "until":
            return Range(None, last)
    return ranges[0]


def _month_of_year(ranges: Sequence[Range]) -> Range:
    """Return the month of two dates that are a month and its year.

    Raises: NotComputed: they are something else.
    """
    one, other = sorted(ranges, key=lambda each: (each.last or date.max) - (each.first or date.min))
    if one.first is None or one.last is None or other.first is None or (other.first.month, other.first.day) != (1, 1):
        raise NotComputed
    year = other.first.year
    return Range(
        date(year, one.first.month, 1), date(year, one.last.month, calendar.monthrange(year, one.last.month)[1])
    )


def _days_of(said: Sequence[Phrase], place: int, column: Column, today: date) -> Range:
    mention = said[place]
    if mention.kind in ("today", "yesterday"):
        day = today - timedelta(mention.kind == "yesterday")
        return Range(day, day)
    if mention.kind in ("this", "last"):
        return _relative(mention.kind, said[place + 1].kind, today)
    if len(mention.readings) != 1:
        raise NotComputed
    year, month, number = next(iter(mention.readings))
    year = year or _year_of(column, said, place, month, number)
    try:
        if number:
            return Range(date(year, month, number), date(year, month, number))
        first, last = (month, month + 2 * (mention.kind == "quarter")) if month else (1, 12)
        return Range(date(year, first, 1), date(year, last, calendar.monthrange(year, last)[1]))
    except ValueError as error:
        raise NotComputed from error


def _relative(which: str, unit: str, today: date) -> Range:
    """Return this or the last month or year."""
    if unit == "year":
        year = today.year - (which == "last")
        return Range(date(year, 1, 1), date(year, 12, 31))
    last = today.replace(day=1) - timedelta(1)
    end = last if which == "last" else today.replace(day=calendar.monthrange(today.year, today.month)[1])
    return Range(end.replace(day=1), end)


def _year_of(column: Column, said: Sequence[Phrase], place: int, month: int, day: int) -> int:
    """Return the year of a date that says none: of another date of the question, else the only one of the column.

    Raises: Unclear: the column has the month in several years.
    """
    asked = {reading[0] for each in said if each.kind == "date" for reading in each.readings if reading[0]}
    years = asked or {each[0] for each in column.days if each is not None}
    if len(years) > 1:
        years = {each[0] for each in column.days if each is not None and each[1] == month}
    if len(years) > 1:
        raise Unclear(f"{column.name} {year}-{month:02}" + (f"-{day:02}" if day else "") for year in sorted(years))
    if not years:
        raise NotComputed
    return next(iter(years)) or _ANY_YEAR


def is_plain_year(said: Sequence[Phrase], place: int) -> bool:
    """Test if what looks like a year is compared as a number."""
    return (
        said[place].token is not None
        and said[place].kind == "date"
        and place > 0
        and said[place - 1].kind in COMPARISONS
    )
