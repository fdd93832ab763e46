"""Finds the conditions of a question: values, months and days, comparisons with a number, yes and no, exceptions."""

from __future__ import annotations

import calendar
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise

from batos.gate import figures
from batos.reckoning.columns import Column, Date
from batos.reckoning.phrases import COMPARISONS, Condition, NotComputed, Phrase, Unclear, choose_only
from batos.reckoning.question_words import root, signs

_COMPARE: dict[str, tuple[str, Callable[[Decimal, Decimal], bool]]] = {
    "gt": (">", Decimal.__gt__),
    "ge": (">=", Decimal.__ge__),
    "lt": ("<", Decimal.__lt__),
    "le": ("<=", Decimal.__le__),
}
#: Kinds of words for the rows of a table; before a number they name them: `positions 2 and 3`.
_ROWS = ("about", "row")
#: Kinds of small words that may stand between a `not` and what it denies.
_SMALL = ("from", "to", "within", "for", "this", "per")
_YEARS = frozenset(map(root, signs("years")))
#: The year that days without one are compared in.
_ANY_YEAR = 2000


@dataclass(frozen=True, slots=True)
class Range:
    """Days from the first to the last; the ends of the calendar are open."""

    first: date = date.min
    last: date = date.max

    def __str__(self) -> str:
        """Return the days as text."""
        first, last = (f"{each}".removeprefix(f"{_ANY_YEAR}-") for each in (self.first, self.last))
        if self.first == self.last:
            return f"= {first}"
        return f"{'...' if self.first == date.min else first} to {'...' if self.last == date.max else last}"


def conditions(
    said: Sequence[Phrase], columns: Sequence[Column], about: frozenset[str], today: date
) -> list[Condition]:
    """Return the conditions that the mentions of a question set.

    Raises: NotComputed: a number, a date or a word such as `not` belongs to nothing.
    """
    behind = [*(each.kind for each in said[1:]), ""]
    meant = [one for one, after in zip(said, behind, strict=True) if one.kind not in _ROWS or after == "number"]
    return [
        *_value_conditions(meant, columns),
        *_flag_conditions(meant, columns),
        *_number_conditions(meant, columns),
        *_date_conditions(meant, columns, about, today),
    ]


def _value_conditions(said: Sequence[Phrase], columns: Sequence[Column]) -> list[Condition]:
    """Return a condition for each column of which cells are named; cells of one column are alternatives."""
    chosen: dict[tuple[int, bool], set[str]] = defaultdict(set)
    excluding = False
    for at, mention in enumerate(said):
        if mention.kind in ("except", "not"):
            denied = _find_denied(said, at)
            excluding = denied.kind == "value"
            if not excluding and not (mention.kind == "not" and _is_flag(denied, columns)):
                raise NotComputed(mention.text)
        elif mention.kind == "value":
            place, cells = _one_value(mention, said, columns)
            chosen[place, excluding] |= cells
        elif mention.kind not in ("column", *_SMALL):
            excluding = False
    found = []
    for (place, out), cells in chosen.items():
        text = f"{columns[place].name or 'entry'} {'is not' if out else '='} {' or '.join(sorted(cells))}"
        holds = (None if not cell.strip() else (cell in cells) is not out for cell in columns[place].texts)
        found.append(Condition(text, place, tuple(holds)))
    return found


def _find_denied(said: Sequence[Phrase], at: int) -> Phrase:
    """Return what stands behind a `not` or `except`, small words left out."""
    following = [each for each in said[at + 1 :] if each.kind not in _SMALL]
    named = [each for each in following[:2] if each.kind == "value"]
    if not following:
        raise NotComputed(said[at].text)
    return named[0] if following[0].kind == "column" and named else following[0]


def _one_value(mention: Phrase, said: Sequence[Phrase], columns: Sequence[Column]) -> tuple[int, set[str]]:
    """Return the column and the cells that a mention names, by a column that is named if several have the value."""
    places = {place for place, _ in mention.values}
    if len(places) > 1:
        places &= {place for each in said if each.kind == "column" for place in each.columns}
        if len(places) != 1:
            raise Unclear(f"{columns[place].name or 'entry'} = {cell}" for place, cell in sorted(mention.values))
    place = next(iter(places))
    cells = {cell for at, cell in mention.values if at == place}
    if len({cell.casefold().strip() for cell in cells}) > 1:
        raise Unclear(f"{columns[place].name or 'entry'} = {cell}" for cell in sorted(cells))
    return place, cells


def _flag_conditions(said: Sequence[Phrase], columns: Sequence[Column]) -> list[Condition]:
    """Return a condition for each column of yes and no that is named."""
    found = []
    denied = False
    for mention in said:
        if mention.kind == "not":
            denied = True
        elif mention.kind == "column" and _is_flag(mention, columns):
            column = columns[next(iter(mention.columns))]
            holds = tuple(each if each is None else each is not denied for each in column.flags)
            found.append(Condition(f"{column.name} = {'no' if denied else 'yes'}", column.place, holds))
            denied = False
        elif mention.kind not in _SMALL:
            denied = False
    return found


def _is_flag(mention: Phrase, columns: Sequence[Column]) -> bool:
    return len(mention.columns) == 1 and bool(columns[next(iter(mention.columns))].flags)


def _number_conditions(said: Sequence[Phrase], columns: Sequence[Column]) -> list[Condition]:
    """Return a condition for each number: a comparison, a range, or the numbers behind the name of a column."""
    found: list[Condition] = []
    at = 0
    numbers = [place for place, each in enumerate(said) if each.kind == "number" or _is_plain_year(said, place)]
    while at < len(numbers):
        place = numbers[at]
        before = said[place - 1] if place else None
        after = next((each for each in said[place + 1 : place + 3] if each.kind in _COMPARE), None)
        if before is not None and before.kind == "between" and at + 1 < len(numbers):
            low, high = _value(said[place]), _value(said[numbers[at + 1]])
            column = _find_compared(said, numbers[at + 1], columns)
            holds = tuple(None if each is None else low <= each <= high for each in column.numbers)
            found.append(Condition(f"{column.name} from {low} to {high}", column.place, holds))
            at += 1
        elif before is not None and before.kind in _COMPARE:
            found.append(_comparison(before.kind, said, place, columns))
        elif after is not None and not said[place + 1].text.isascii():  # as in Chinese and Japanese
            found.append(_comparison(after.kind, said, place, columns))
        elif before is not None and before.kind in ("column", "number", *_ROWS):
            found = _equal(found, said, place, columns)
        else:
            raise NotComputed
        at += 1
    periods = sum(one.kind == "between" and other.kind in ("date", "quarter") for one, other in pairwise(said))
    if sum(each.kind in (*_COMPARE, "between") for each in said) > len(found) + periods:
        raise NotComputed
    return found


def _value(mention: Phrase) -> Decimal:
    """Return the value of a number of the question."""
    readings = figures.readings(mention.text)
    if len(readings) != 1:
        raise NotComputed
    return next(iter(readings))


def _comparison(kind: str, said: Sequence[Phrase], place: int, columns: Sequence[Column]) -> Condition:
    sign, compare = _COMPARE[kind]
    column, limit = _find_compared(said, place, columns), _value(said[place])
    holds = tuple(None if each is None else compare(each, limit) for each in column.numbers)
    return Condition(f"{column.name} {sign} {limit}", column.place, holds)


def _find_compared(said: Sequence[Phrase], place: int, columns: Sequence[Column]) -> Column:
    """Return the column of numbers that a comparison is about: named beside the number, else before it, else the only
    one.

    Raises: Unclear: several can be meant. NotComputed: its numbers have several units.
    """
    after = next((each for each in said[place + 1 :] if each.kind not in _SMALL), None)
    near = [after] if after else []
    near += [each for each in reversed(said[:place]) if each.columns]
    named = ([columns[at] for at in sorted(each.columns) if columns[at].is_measure] for each in near)
    column = choose_only(next(filter(None, named), [each for each in columns if each.is_measure]))
    if column.is_mixed:
        raise NotComputed(column.unit)
    return column


def _equal(found: list[Condition], said: Sequence[Phrase], place: int, columns: Sequence[Column]) -> list[Condition]:
    """Add the rows whose named column has a number: `positions 2, 3 and 4`."""
    named = next((each for each in reversed(said[:place]) if each.kind != "number"), None)
    places = sorted(named.columns) if named is not None and named.kind == "column" else []
    if named is not None and named.kind in _ROWS:
        places = [each.place for each in columns if each.place == 0 and each.is_key]
    places = [each for each in places if columns[each].numbers and not columns[each].is_money]
    if len(places) != 1:
        raise NotComputed
    column, value = columns[places[0]], _value(said[place])
    if value not in column.numbers:
        raise NotComputed
    same = [each for each in found if each.column == column.place and "=" in each.said]
    text = f"{same[0].said} or {value}" if same else f"{column.name} = {value}"
    known = same[0].holds if same else (False,) * len(column.numbers)
    holds = tuple(old or number == value for old, number in zip(known, column.numbers, strict=True))
    return [*(each for each in found if each not in same), Condition(text, column.place, holds)]


def _date_conditions(
    said: Sequence[Phrase], columns: Sequence[Column], about: frozenset[str], today: date
) -> list[Condition]:
    """Return the condition on the column of dates, if the question names a date."""
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
    return (mention.kind in ("date", "quarter") and bool(mention.readings) and not _is_plain_year(said, place)) or (
        mention.kind in ("today", "yesterday") or relative
    )


def _without_dates(
    said: Sequence[Phrase], named: Sequence[int], columns: Sequence[Column], about: frozenset[str]
) -> list[Condition]:
    """Return the condition on a column of years, or none if the heading names the date."""
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
    if day is None or not day[1]:
        return None
    try:
        own = _days(day[0] or _ANY_YEAR, *day[1:])
    except NotComputed:
        return None
    if meant.first <= own.first and own.last <= meant.last:
        return True
    return False if own.last < meant.first or meant.last < own.first else None


def _days(year: int, month: int = 0, day: int = 0, months: int = 1) -> Range:
    """Return the range of a day, of so many months from one on, or of a year."""
    begin, end = (month, month + months - 1) if month else (1, 12)
    try:
        return Range(date(year, begin, day or 1), date(year, end, day or calendar.monthrange(year, end)[1]))
    except ValueError as error:
        raise NotComputed from error


def _range(said: Sequence[Phrase], named: Sequence[int], column: Column, today: date) -> Range:
    """Return the days that the dates of a question mean together."""
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
    match behind if east else before:
        case "before" | "for":
            return Range(last=ranges[0].first - timedelta(1))
        case "after":
            return Range(first=ranges[0].last + timedelta(1))
        case "since":
            return Range(first=ranges[0].first)
        case "until":
            return Range(last=ranges[0].last)
    return ranges[0]


def _month_of_year(ranges: Sequence[Range]) -> Range:
    """Return the month of two dates that are a month and its year."""
    one, other = sorted(ranges, key=lambda each: each.last - each.first)
    if (other.first.month, other.first.day) != (1, 1):
        raise NotComputed
    return _days(other.first.year, one.first.month, months=one.last.month - one.first.month + 1)


def _days_of(said: Sequence[Phrase], place: int, column: Column, today: date) -> Range:
    mention = said[place]
    if mention.kind in ("today", "yesterday"):
        day = today - timedelta(mention.kind == "yesterday")
        return Range(day, day)
    if mention.kind in ("this", "last"):
        if said[place + 1].kind == "year":
            return _days(today.year - (mention.kind == "last"))
        day = today.replace(day=1) - timedelta(1) if mention.kind == "last" else today
        return _days(day.year, day.month)
    if len(mention.readings) != 1:
        raise NotComputed
    year, month, number = next(iter(mention.readings))
    year = year or _year_of(column, said, place, month, number)
    return _days(year, month, number, 3 if mention.kind == "quarter" else 1)


def _year_of(column: Column, said: Sequence[Phrase], place: int, month: int, day: int) -> int:
    """Return the year of a date that says none: of another date of the question, else the only one of the column."""
    asked = {reading[0] for each in said if each.kind == "date" for reading in each.readings if reading[0]}
    years = asked or {each[0] for each in column.days if each is not None}
    if len(years) > 1:
        years = {each[0] for each in column.days if each is not None and each[1] == month}
    if len(years) > 1:
        raise Unclear(f"{column.name} {year}-{month:02}" + (f"-{day:02}" if day else "") for year in sorted(years))
    if not years:
        raise NotComputed
    return next(iter(years)) or _ANY_YEAR


def _is_plain_year(said: Sequence[Phrase], place: int) -> bool:
    """Test if what looks like a year is compared as a number."""
    return (
        said[place].token is not None
        and said[place].kind == "date"
        and place > 0
        and said[place - 1].kind in COMPARISONS
    )
