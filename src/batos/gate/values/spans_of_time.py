"""Works with spans of time that a text names: the days that they lead to, and those between two days or two times."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator, Set
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from itertools import combinations

from batos.gate.values import figures, numerals

#: The words for a unit of time by language, in its forms.
_WORDS = {
    "minute": "minute minutes min mins minuten minuto minutos minuti minuut минута минуты минут 分 分钟 分鐘 分間",
    "hour": "hour hours h hr hrs stunde stunden std heure heures hora horas ora ore uur uren час часа часов"
    " 小时 小時 時間",
    "day": "day days tag tage tagen jour jours día días dia dias giorno giorni dag dagen день дня дней 天 日間",
    "week": "week weeks woche wochen semaine semaines semana semanas settimana settimane weken неделя недели недель"
    " 周 週間",
    "month": "month months monat monate monaten mois mes meses mês mese mesi maand maanden месяц месяца"
    " месяцев 个月 か月 ヶ月",
    "year": "year years jahr jahre jahren an ans année années año años ano anos anno anni jaar jaren год года лет 年間",
}
_UNIT = {word: unit for unit, said in _WORDS.items() for word in said.split()}
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


def find(text: str) -> list[TimeSpan]:
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
