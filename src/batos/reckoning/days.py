"""Computes with dates and times of day: between two, until and since one, some days after one, weekdays and ages."""

from __future__ import annotations

import calendar
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

from batos.gate import dates, numerals
from batos.reckoning.dated_sentences import DatedSentence, find_event, make_date, only_reading
from batos.reckoning.phrases import NotComputed, date_at
from batos.reckoning.question_words import Word, lexicon, longest
from batos.reckoning.tables import Text

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_UNITS = ("day", "week", "month", "year", "hour", "minute", "workday")
_AND = frozenset("and und et y e en 和 与 と ・".split())
#: The most that is counted on from a date, so that no calendar ends.
_MOST = 5_000
_BORN = frozenset("born geboren ne nee nacido nacida nato nata nascido nascida birth geburtsdatum geb 出生 生".split())
_MINUTES = {"hour": 60, "minute": 1}


@dataclass(frozen=True, slots=True)
class DateResult:
    """A result of dates as text, how it came about, and the sentences of the evidence that gave a date."""

    result: str
    said: str
    events: tuple[DatedSentence, ...] = ()


@dataclass(slots=True)
class _DateQuestion:
    """A question of dates in pieces: its keys, its dates in order, its period, and the words of things with a date."""

    kinds: list[str] = field(default_factory=list)
    refs: list[tuple[int, int, int] | list[str]] = field(default_factory=list)
    period: tuple[int, str] | None = None
    unit: str = ""
    times: list[int] = field(default_factory=list)

    def has(self, *kinds: str) -> bool:
        return any(each in self.kinds for each in kinds)


def compute(question: str, said: Sequence[Word], language: str, texts: Sequence[Text], today: date) -> DateResult:
    """Compute what a question asks of dates, those of the evidence included.

    Raises: NotComputed: it does not clearly ask for it. Unclear: the evidence gives several dates.
    """
    asked = _read(question, said, language)
    form = _form(asked)
    if form is None:
        raise NotComputed
    return form(asked, texts, today)


def _read(question: str, said: Sequence[Word], language: str) -> _DateQuestion:
    """Return the pieces of a question: an unknown word belongs to the name of something that has a date."""
    asked, known = _DateQuestion(), lexicon(language)
    named = {each.start: each for each in dates.find(question)}
    clocks = {span[0]: (time, span[1]) for time, span in dates.times(question)}
    words: list[str] = []
    at = 0
    while at < len(said):
        token = said[at]
        length = longest(said, at, known)
        kind = known.get(tuple(each.word for each in said[at : at + length]), "") if length else ""
        if clock := clocks.get(token.start):
            asked.times.append(60 * clock[0][0] + clock[0][1])
            at += sum(token.start <= each.start < clock[1] for each in said[at : at + 4])
            continue
        if dated := date_at(said, at, named):
            words = _close(asked, words)
            asked.refs.append(only_reading(dates.Day("", 0, 0, dated[1].readings)))
            asked.kinds.append("ref")
            at += dated[0]
        elif (number := _number(token, language)) is not None:
            at += 1 + _read_period(asked, number, said, at + 1, known)
        elif kind and (kind != "row" or not words):
            if kind not in ("stop", "calendar", "per") or token.word in _AND:
                words = _close(asked, words)
            _note(asked, kind)
            at += length
        else:
            words.append(token.root)
            at += 1
    _close(asked, words)
    return asked


def _close(asked: _DateQuestion, words: list[str]) -> list[str]:
    """Keep the words of something, if there are any, and begin anew."""
    if words:
        asked.refs.append(words)
        asked.kinds.append("ref")
    return []


def _note(asked: _DateQuestion, kind: str) -> None:
    kind = {"much": "count", "for": "before"}.get(kind, kind)
    if kind.startswith("count:"):
        asked.unit = kind.partition(":")[2]
        kind = "count"
    if kind in _UNITS and not asked.unit and asked.has("count", "long"):
        asked.unit = kind
    elif kind in ("today", "tomorrow", "yesterday"):
        asked.refs.append([kind])
        asked.kinds.append("ref")
    elif kind not in ("stop", "calendar", "per"):
        asked.kinds.append(kind)


def _number(token: Word, language: str) -> int | None:
    if token.figure is not None:
        return int(token.raw) if token.raw.isdigit() and len(token.raw) < 5 else None
    return numerals.value_of(token.word, language)


def _read_period(
    asked: _DateQuestion, number: int, said: Sequence[Word], at: int, known: dict[tuple[str, ...], str]
) -> int:
    """Note a number with the unit behind it and return the tokens of the unit.

    Raises: NotComputed: it has no unit, or there is a second period.
    """
    length = longest(said, at, known) if at < len(said) else 0
    kind = known.get(tuple(each.word for each in said[at : at + length]), "")
    if kind not in _UNITS or asked.period is not None or number > _MOST:
        raise NotComputed
    asked.period = (number, kind)
    asked.kinds.append("period")
    return length


def _form(asked: _DateQuestion) -> Callable[[_DateQuestion, Sequence[Text], date], DateResult] | None:
    """Return what is asked for, None if the pieces do not fit any of it."""
    if any(each in asked.kinds for each in ("sum", "avg", "max", "min", "not", "except", "which", "distinct")):
        return None
    if asked.times:
        return _clock if not asked.refs else None
    if asked.has("old"):
        return _age
    if asked.period is not None:
        return _compute_shift if asked.has("date", "weekday", "latest") else None
    if asked.has("weekday"):
        return _weekday if len(asked.refs) == 1 else None
    if asked.has("count", "long") and (asked.unit or asked.has("long")) and 0 < len(asked.refs) < 3:
        return _between if len(asked.refs) == 2 else _from_today
    return None


def _resolve(
    ref: tuple[int, int, int] | list[str], texts: Sequence[Text], today: date, year: int = 0
) -> tuple[date, tuple[DatedSentence, ...]]:
    """Return the day that a part of a question names, with the sentence of the evidence that gives it."""
    if isinstance(ref, list):
        moved = {"today": 0, "tomorrow": 1, "yesterday": -1}
        if len(ref) == 1 and ref[0] in moved:
            return today + timedelta(moved[ref[0]]), ()
        event = find_event(ref, texts)
        return event.day, (event,)
    return make_date(ref[0] or year, ref[1], ref[2]), ()


def _years(asked: _DateQuestion) -> set[int]:
    return {each[0] for each in asked.refs if isinstance(each, tuple) and each[0]}


def _between(asked: _DateQuestion, texts: Sequence[Text], today: date) -> DateResult:
    if not asked.has("between", "from", "since", "until", "to", "after", "before"):
        raise NotComputed
    years = _years(asked)
    year = min(years) if years else today.year
    (one, first), (other, second) = (_resolve(each, texts, today, year) for each in asked.refs)
    if other < one and not years and all(isinstance(each, tuple) for each in asked.refs):
        other = make_date(year + 1, other.month, other.day)
    begin, end = sorted((one, other))
    result = _length(begin, end, asked.unit or "day")
    return DateResult(result, f"from {show_day(begin)} to {show_day(end)}: {result}", first + second)


def _from_today(asked: _DateQuestion, texts: Sequence[Text], today: date) -> DateResult:
    until, since = asked.has("until", "before", "to", "within"), asked.has("since", "ago", "after")
    ref = asked.refs[0]
    if until == since:
        raise NotComputed
    day, events = _resolve(ref, texts, today, today.year)
    if isinstance(ref, tuple) and not ref[0]:
        day = make_date(today.year + (until and day < today) - (since and day > today), ref[1], ref[2])
    if (until and day < today) or (since and day > today):
        raise NotComputed
    begin, end = sorted((day, today))
    result = _length(begin, end, asked.unit or "day")
    return DateResult(result, f"from {show_day(begin)} to {show_day(end)}: {result} (today is {today})", events)


def _weekday(asked: _DateQuestion, texts: Sequence[Text], today: date) -> DateResult:
    ref = asked.refs[0]
    if isinstance(ref, tuple) and not ref[0]:
        raise NotComputed
    day, events = _resolve(ref, texts, today)
    return DateResult(WEEKDAYS[day.weekday()], f"{day} is a {WEEKDAYS[day.weekday()]}", events)


def _compute_shift(asked: _DateQuestion, texts: Sequence[Text], today: date) -> DateResult:
    """Return the date some days, weeks, months or years before or after another."""
    count, unit = asked.period or (0, "")
    refs = asked.refs
    notice = asked.has("notice") and asked.has("latest")
    if notice:
        refs = [each for each in refs if isinstance(each, tuple)]
    if len(refs) > 1 or unit in _MINUTES or (asked.has("notice") and not notice):
        raise NotComputed
    back, on = asked.has("before", "ago") or notice, asked.has("after", "since", "within", "from", "to")
    if (back == on and not notice) or (notice and not refs):
        raise NotComputed
    if refs and isinstance(refs[0], tuple) and not refs[0][0]:
        raise NotComputed
    day, events = _resolve(refs[0], texts, today) if refs else (today, ())
    moved = _move(day, -count if back else count, unit)
    named = unit.replace("work", "working ") + "s" * (count != 1)
    said = f"{count} {named} {'before' if back else 'after'} {show_day(day)}"
    said += " (Monday to Friday, holidays not known)" if unit == "workday" else ""
    result = WEEKDAYS[moved.weekday()] if asked.has("weekday") else str(moved)
    return DateResult(result, f"{said} is {show_day(moved)}", events)


def _age(asked: _DateQuestion, texts: Sequence[Text], today: date) -> DateResult:
    """Return the full years from the date of birth of somebody to a day, today if none is named."""
    named = [
        each for each in asked.refs if isinstance(each, list) and each[0] not in ("today", "tomorrow", "yesterday")
    ]
    days = [each for each in asked.refs if each not in named]
    if len(named) != 1 or len(days) > 1 or asked.period:
        raise NotComputed
    events = [event for word in sorted(_BORN) for event in _find_births(named[0], word, texts)]
    if len({each.day for each in events}) != 1:
        raise NotComputed
    day = _resolve(days[0], texts, today)[0] if days else today
    years = _full_months(events[0].day, day) // 12
    if years < 0:
        raise NotComputed
    return DateResult(str(years), f"from {events[0].day} to {day}: {years} full years", (events[0],))


def _find_births(words: Sequence[str], born: str, texts: Sequence[Text]) -> list[DatedSentence]:
    try:
        return [find_event([*words, born], texts)]
    except NotComputed:
        return []


def _clock(asked: _DateQuestion, texts: Sequence[Text], today: date) -> DateResult:
    """Return the minutes between two times of day, or the time some minutes after one."""
    if len(asked.times) == 2 and asked.period is None and asked.has("long", "count") and asked.unit in ("", *_MINUTES):
        minutes = (asked.times[1] - asked.times[0]) % (24 * 60)
        hours = f"{minutes // 60}:{minutes % 60:02} h"
        result = str(minutes) if asked.unit == "minute" else hours
        night = ", over midnight" if asked.times[1] < asked.times[0] else ""
        return DateResult(
            result, f"from {_time(asked.times[0])} to {_time(asked.times[1])}{night}: {minutes} minutes = {hours}"
        )
    back, on = asked.has("before", "ago"), asked.has("after", "since", "from")
    if len(asked.times) != 1 or asked.period is None or asked.period[1] not in _MINUTES or back == on:
        raise NotComputed
    count, unit = asked.period
    moved = (asked.times[0] + (-1 if back else 1) * count * _MINUTES[unit]) % (24 * 60)
    direction = "before" if back else "after"
    return DateResult(_time(moved), f"{count} {unit}s {direction} {_time(asked.times[0])} is {_time(moved)}")


def _time(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def show_day(day: date) -> str:
    """Return a day with its weekday."""
    return f"{WEEKDAYS[day.weekday()]} {day}"


def _length(begin: date, end: date, unit: str) -> str:
    """Return the time between two days in a unit, with the days that are left.

    Raises: NotComputed: working days, of which nobody says if both ends count, and units of a clock.
    """
    days = (end - begin).days
    if unit == "day":
        return f"{days} days" if days != 1 else "1 day"
    if unit == "week":
        return _with_rest(days // 7, "week", days % 7)
    if unit not in ("month", "year"):
        raise NotComputed
    months = _full_months(begin, end)
    full = months if unit == "month" else months // 12
    return _with_rest(full, unit, (end - _move(begin, full, unit)).days)


def _with_rest(count: int, unit: str, days: int) -> str:
    rest = f" and {days} day{'s' * (days != 1)}" if days else ""
    return f"{count} {unit}{'s' * (count != 1)}{rest}"


def _full_months(begin: date, end: date) -> int:
    return 12 * (end.year - begin.year) + end.month - begin.month - (end.day < begin.day)


def _move(day: date, count: int, unit: str) -> date:
    """Return the day some units on; a month that is shorter ends it.

    Raises: NotComputed: no calendar goes that far.
    """
    if unit == "workday":
        step = timedelta(1 if count > 0 else -1)
        for _ in range(abs(count)):
            day += step
            while day.weekday() > 4:
                day += step
        return day
    if unit in ("day", "week"):
        return day + timedelta(count * (7 if unit == "week" else 1))
    months = 12 * day.year + day.month - 1 + count * (12 if unit == "year" else 1)
    year, month = divmod(months, 12)
    if not 1 <= year <= 9999:
        raise NotComputed
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))
