"""Dates, times of day and spans of time that a text names, in a form in which two texts can be compared."""

from __future__ import annotations

import re
import tomllib
from calendar import monthrange
from collections.abc import Iterator, Set
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from importlib.resources import files
from itertools import combinations

from batos.gate import figures, numerals
from batos.memory.words_by_language import CAPITALISED, MONTH, NAME

#: Far Eastern months and days are in figures or in characters.
_FAR = r"\d{1,2}|[一二三四五六七八九十]{1,3}"
_DAY = r"(?P<d>\d{1,2})(?:st|nd|rd|th|er|º|ª|\.)?"
_FORMS = [
    re.compile(form, re.IGNORECASE)
    for form in (
        r"(?<![\d.-])(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})(?![\d-])",
        r"(?<![\d./])(?P<a>\d{1,2})(?P<sign>[./])\s?(?P<b>\d{1,2})(?P=sign)\s?(?P<y>\d{4}|\d\d)(?![\d./]*\d)",
        r"(?<=[^\n.]\s)(?P<a>\d{1,2})(?P<sign>\.)\s?(?P<b>0?[1-9]|1[0-2])\.(?!\s?\d)",
        rf"(?<!\d)(?:(?P<y>\d{{4}})\s?年\s?)?(?P<m>{_FAR})\s?月\s?(?P<d>{_FAR})\s?[日号號]",
        r"(?<!\d)(?P<y>\d{4})\s?年\s?(?P<m>\d{1,2})\s?月",
        rf"(?<![\w.]){_DAY}\s(?:of\s|de\s|d')?(?P<name>{NAME})\b\.?(?:,?\s(?:de\s|del\s)?(?P<y>\d{{4}})\b)?",
        rf"(?<!\w)(?P<name>{NAME})\b\.?\s(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s(?P<y>\d{{4}})\b)?(?![:.,]\d)",
        rf"(?<!\w)(?P<name>{NAME})\b\.?,?\s(?:de\s|del\s)?(?P<y>\d{{4}})\b",
    )
]
_TIME = re.compile(
    r"(?<![\d.,:])(?P<h>[01]?\d|2[0-4])(?:[:.h]|\sh\s)(?P<m>[0-5]\d)(?![\d.,:]*\d)(?:\s?(?P<half>[ap])\.?m\b)?",
    re.IGNORECASE,
)
#: A full hour, with the words that tell the half of the day.
_HOUR = re.compile(
    rf"(?P<late>下午|晚上|傍晚|中午|午後|夕方|夜)?(?<!\d)(?P<h>{_FAR})(?:[点點](?:钟|鐘)?|時(?!間))(?P<thirty>半)?"
    r"(?![一二三四五\d])"
    r"|(?<![\d.,:])(?P<h2>[01]?\d|2[0-4])\s?(?:(?P<half>[ap])\.?m\b|Uhr\b|o['’]clock|heures?\b|uur\b|h\b(?!\w))",
    re.IGNORECASE,
)
_UNTIL = (
    r"\s?(?:[-–—~〜至到]|から)\s?|\s(?:(?:to|until|till|and|through|bis|und|au|à|et|al|hasta|y|a|e|ed|até|tot|en|met|по"
    r"|до|и)\s)(?:the\s|zum\s|el\s|le\s|il\s|o\s)?"
)
#: The first day of a range that shares its month with the last: `11 to 25 July`, `6.-8. Juni`.
_FIRST = re.compile(
    rf"(?<![\d.,:])(?P<d>\d{{1,2}})(?:st|nd|rd|th|er|º|ª|\.)?(?P<until>{_UNTIL})(?:the\s)?\Z", re.IGNORECASE
)
_LAST = re.compile(rf"日?(?P<until>{_UNTIL})(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:]|[.,]\d|\s?[年月%])", re.IGNORECASE)
#: Words between two days that name both and none between.
_BOTH = frozenset("and und et y e ed en и".split())


@dataclass(frozen=True, slots=True)
class Day:
    """A date where it stands in a text, in the ways that it can be read: (year, month, day), 0 for what is not said."""

    text: str
    start: int
    end: int
    readings: frozenset[tuple[int, int, int]]


def find(text: str) -> list[Day]:
    """List the dates of a text, none within another."""
    found: list[Day] = []
    taken: set[int] = set()
    for form in _FORMS:
        for each in form.finditer(text):
            readings = frozenset(_read(each))
            if readings and not taken.intersection(range(each.start(), each.end())):
                taken.update(range(each.start(), each.end()))
                found.append(Day(each[0], each.start(), each.end(), readings))
    return sorted(found, key=lambda day: day.start)


def read_dates(text: str) -> frozenset[tuple[int, int, int]]:
    """Return every date of a text in every reading, with all days of a range that shares its month.

    >>> sorted(read_dates("open from 11 to 13 July"))
    [(0, 7, 11), (0, 7, 12), (0, 7, 13)]
    """
    return frozenset(reading for day in find(text) for reading in (*day.readings, *_range(text, day)))


def _range(text: str, day: Day) -> Iterator[tuple[int, int, int]]:
    """Yield the other days of the range that a date ends or begins."""
    before = _FIRST.search(text, max(0, day.start - 24), day.start)
    for found in (before, _LAST.match(text, day.end)):
        if found is None:
            continue
        other = int(found["d"])
        both = found["until"].strip().casefold().partition(" ")[0] in _BOTH
        for year, month, own in day.readings:
            low, high = (other, own) if found is before else (own, other)
            if own and 1 <= other <= 31 and (both or low < high):  # `30 June - 3 months` is no range
                yield from ((year, month, each) for each in ((other,) if both else range(low, high + 1)))


def whole_days(readings: frozenset[tuple[int, int, int]], years: frozenset[int]) -> frozenset[date]:
    """Return the days of readings; one without a year is one of each of these years."""
    found: set[date] = set()
    for year, month, day in readings:
        for each in (year,) if year else years:
            try:
                found.add(date(each, month, day))
            except ValueError:
                continue  # a month alone, or no day of that year
    return frozenset(found)


def is_known(day: Day, there: frozenset[tuple[int, int, int]], years: frozenset[int]) -> bool:
    """Test if a date occurs, or its parts do: day and month in some date, and the year among the years of the text."""
    return any(_is_there(reading, there, years) for reading in day.readings)


def _is_there(reading: tuple[int, int, int], there: frozenset[tuple[int, int, int]], years: frozenset[int]) -> bool:
    year, month, day = reading
    for other in there:
        same_month = month == other[1] and (not day or day == other[2])
        if same_month and (not year or year == other[0] or (not other[0] and year in years)):
            return True
    return False


def _read(found: re.Match[str]) -> Iterator[tuple[int, int, int]]:
    parts = found.groupdict()
    if parts.get("name") in CAPITALISED:
        return
    year = int(parts.get("y") or 0)
    if parts.get("a"):
        pairs = {(int(parts["b"]), int(parts["a"]))}
        if parts["sign"] == "/":
            pairs.add((int(parts["a"]), int(parts["b"])))
    else:
        month = MONTH[parts["name"].casefold()] if parts.get("name") else _value(parts["m"])
        pairs = {(month, _value(parts.get("d") or "0"))}
    years = (year,) if len(parts.get("y") or "") != 2 else (1900 + year, 2000 + year)
    yield from ((each, *pair) for each in years for pair in pairs if 1 <= pair[0] <= 12 and pair[1] <= 31)


def _value(written: str) -> int:
    return int(written) if written.isdigit() else numerals.chinese(written) or 0


def times(text: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """List the times of day of a text as (hour of 24, minute), with their places: 14:30, 14h30, 2:30 pm, 九点."""
    found = [_hour(each) for each in _HOUR.finditer(text)]
    for each in _TIME.finditer(text):
        hour = int(each["h"])
        if each["half"]:
            hour = hour % 12 + (12 if each["half"].casefold() == "p" else 0)
        found.append(((hour, int(each["m"])), each.span()))
    return sorted(found, key=lambda time: time[1])


def _hour(found: re.Match[str]) -> tuple[tuple[int, int], tuple[int, int]]:
    hour = _value(found["h"] or found["h2"])
    later = (found["half"] or "").casefold() == "p" or found["late"]
    half = 30 if found["thirty"] else 0
    return ((hour % 12 + 12 if later and hour <= 12 else hour, half), found.span())


_READ = tomllib.loads(files(__package__).joinpath("dates.toml").read_text(encoding="utf-8"))
_UNIT = {word: unit for unit, said in _READ["words"].items() for word in said.split()}
#: Minutes of the units that are so many, days of those that are so many, months of those.
_MINUTES, _DAYS, _MONTHS = {"minute": 1, "hour": 60}, {"day": 1, "week": 7}, {"month": 1, "year": 12}
_SPACED = "|".join(
    sorted((re.escape(word) for word in _UNIT if word.isascii() or word[0] < "\u2e80"), key=len, reverse=True)
)
_UNSPACED = "|".join(sorted((word for word in _UNIT if word[0] >= "\u2e80"), key=len, reverse=True))
_SPAN = re.compile(
    rf"(?<![\w.,])(?:(?P<n>\d{{1,4}}(?:[.,]\d{{1,3}})?)[ \u00a0-]?(?:(?:{_SPACED})\b|(?:{_UNSPACED}))"
    rf"|(?P<word>[^\W\d_]{{2,20}})[ -](?:{_SPACED})\b)|(?P<far>[一二两三四五六七八九十]{{1,3}})(?:{_UNSPACED})",
    re.IGNORECASE,
)
_UNIT_AT_END = re.compile(rf"(?:{_SPACED})\Z|(?:{_UNSPACED})\Z", re.IGNORECASE)
#: Hours with minutes behind them, however they are joined; the same as a clock shows it.
_JOINED = re.compile(r",?\s(?:and|und|et|y|e|ed|en|и)?\s?|\s?|と|又|零", re.IGNORECASE)
_CLOCK = re.compile(r"(?<![\d.,:])(\d{1,2}):([0-5]\d)(?![\d:])")
#: Days and spans of a text that are joined at most: what follows from more of them would be anything.
_MOST_DAYS, _MOST_SPANS, _MOST_TIMES = 24, 24, 12


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A span of time where it stands in a text; `number` of its `unit`, or of minutes where it has hours with them."""

    start: int
    end: int
    number: Decimal
    unit: str


def find_spans(text: str) -> list[TimeSpan]:
    """List the spans of time of a text; hours with minutes are one.

    >>> [(str(each.number), each.unit) for each in find("2 hours and 45 minutes, three weeks, 9 Tage")]
    [('165', 'minute'), ('3', 'week'), ('9', 'day')]
    """
    found: list[TimeSpan] = []
    for each in _SPAN.finditer(figures.plain(text)):
        unit = _UNIT_AT_END.search(each[0])
        number = _number(each)
        if unit is None or number is None:
            continue
        span = TimeSpan(each.start(), each.end(), number, _UNIT[unit[0].casefold()])
        before = found[-1] if found else None
        if (
            before
            and (before.unit, span.unit) == ("hour", "minute")
            and _JOINED.fullmatch(text[before.end : span.start])
        ):
            found[-1] = TimeSpan(before.start, span.end, before.number * 60 + span.number, "minute")
        else:
            found.append(span)
    return found


def _number(found: re.Match[str]) -> Decimal | None:
    if found["n"]:
        return Decimal(found["n"].replace(",", "."))
    if found["far"]:
        value = numerals.chinese(found["far"])
        return None if value is None else Decimal(value)
    return numerals.value_of_any(found["word"].casefold())


def minutes_between(times: Set[tuple[int, int]]) -> frozenset[int]:
    """Return the minutes between any two times of day, past midnight too."""
    clocks = [60 * hour + minute for hour, minute in sorted(times)[:_MOST_TIMES]]
    return frozenset(gap for one, other in combinations(clocks, 2) for gap in (other - one, one - other + 24 * 60))


def clock_spans(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield the places of what may be spans as a clock shows them, with their minutes: 2:45."""
    for found in _CLOCK.finditer(text):
        yield found.start(), found.end(), 60 * int(found[1]) + int(found[2])


def follows(span: TimeSpan, days: Set[date], minutes: Set[int]) -> bool:
    """Test if a span lies between two of these days, or is one of these numbers of minutes."""
    if span.unit in _MINUTES:
        return span.number * _MINUTES[span.unit] in minutes
    for one, other in combinations(sorted(days)[:_MOST_DAYS], 2):
        apart, months = (other - one).days, 12 * (other.year - one.year) + other.month - one.month
        if span.unit in _DAYS and apart <= span.number * _DAYS[span.unit] <= apart + 1:
            return True
        if span.unit in _MONTHS and months - 1 <= span.number * _MONTHS[span.unit] <= months:
            return True
    return False


def reach_days(days: Set[date], spans: list[TimeSpan]) -> frozenset[date]:
    """Return the days that lie a span, or two of one unit together, before or after one of these days."""
    lengths = _lengths(spans)
    found: set[date] = set()
    for day in sorted(days)[:_MOST_DAYS]:
        for months, count in lengths:
            for sign in (1, -1):
                found.update(_move(day, sign * months, sign * count))
    return frozenset(found)


def _lengths(spans: list[TimeSpan]) -> set[tuple[int, int]]:
    """Return spans of whole days and more as (months, days), with the sums of two of the same kind."""
    single: set[tuple[int, int]] = set()
    for each in spans:
        if each.number % 1 == 0 and each.number <= 1_000 and len(single) < _MOST_SPANS:
            if each.unit in _DAYS:
                single.add((0, int(each.number) * _DAYS[each.unit]))
            elif each.unit in _MONTHS:
                single.add((int(each.number) * _MONTHS[each.unit], 0))
    sums = {
        (one[0] + other[0], one[1] + other[1])
        for one, other in combinations(single, 2)
        if bool(one[0]) == bool(other[0])
    }
    return single | sums


def _move(day: date, months: int, days: int) -> Iterator[date]:
    """Yield the day so far from another; with months also the day before, and the last of the month for a last one."""
    total = 12 * day.year + day.month - 1 + months
    year, month = divmod(total, 12)
    if not 1 <= year <= 9_998:
        return
    last = monthrange(year, month + 1)[1]
    moved = date(year, month + 1, min(day.day, last)) + timedelta(days=days)
    yield moved
    if months:
        yield moved - timedelta(days=1)
        if day.day == monthrange(day.year, day.month)[1]:
            yield date(year, month + 1, last)
