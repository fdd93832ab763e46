"""Computes with dates and times of day: between two, until and since one, some days after one, weekdays and ages."""

from __future__ import annotations

import calendar
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal

from batos.gate import dates
from batos.reckoning import deadlines
from batos.reckoning.deadlines import DatedSentence, find_event, make_date, only_reading
from batos.reckoning.phrases import NotComputed, date_at
from batos.reckoning.question_words import Word, kinds_of, lexicon, phrase_at, signs
from batos.reckoning.reckonings import (
    CitedRow,
    Reckoning,
    write_day,
    write_lead,
    write_span,
    write_truth,
    write_weekday,
)
from batos.reckoning.tables import Text

_UNITS = ("day", "week", "month", "year", "hour", "minute", "workday")
#: Kinds of words that ask for a day, a time, or the time between two.
_WISHES = frozenset(("date", "weekday", "long", "old", "clock", "latest", "deadline", "first", "later"))
#: The most that is counted on from a date, so that no calendar ends.
_MOST = 5_000
_MINUTES = {"hour": 60, "minute": 1}
_MOVED = {"today": 0, "tomorrow": 1, "yesterday": -1}


@dataclass(frozen=True, slots=True)
class _Ref:
    """A part of a question that names a day: by a date, by a word such as `today`, or by the words of an event."""

    reading: tuple[int, int, int] | None = None
    words: tuple[Word, ...] = ()
    name: str = ""
    relative: str = ""

    @property
    def is_bare(self) -> bool:
        """Test if it is a date without a year."""
        return self.reading is not None and not self.reading[0]


@dataclass(slots=True)
class _DateQuestion:
    """A question of dates in pieces: its keys, its dates in order, its period, and the words of things with a date."""

    language: str
    kinds: list[str] = field(default_factory=list)
    refs: list[_Ref] = field(default_factory=list)
    period: tuple[int, str] | None = None
    unit: str = ""
    times: list[int] = field(default_factory=list)

    def has(self, *kinds: str) -> bool:
        return any(each in self.kinds for each in kinds)

    def add(self, ref: _Ref) -> None:
        self.refs.append(ref)
        self.kinds.append("ref")


def compute(
    question: str, said: Sequence[Word], language: str, texts: Sequence[Text], today: date, *, wants_yes: bool = False
) -> Reckoning:
    """Compute what a question asks of dates, those of the evidence included.

    Raises: NotComputed: it does not clearly ask for it. Unclear: the evidence gives several dates.
    """
    try:
        asked = _read(question, said, language)
        compares = asked.kinds in (["ref", "before", "ref"], ["ref", "after", "ref"])
        form = (_is_before if compares else None) if wants_yes else _form(asked)
        if form is not None:
            return form(asked, texts, today)
    except NotComputed:
        if not kinds_of(said, language) & {"date", "deadline", "latest"}:
            raise
    if wants_yes:
        raise NotComputed
    found = deadlines.find(question, said, language, texts)
    return _shift(found.day, found.count, found.unit, language, found.sentences)


def has_date_wish(said: Sequence[Word], language: str) -> bool:
    """Test if a question has a word that asks for a day, a time, the time between two, or which of two is first."""
    return bool(kinds_of(said, language) & {*_WISHES, "before", "after"})


def _read(question: str, said: Sequence[Word], language: str) -> _DateQuestion:
    """Return the pieces of a question: an unknown word belongs to the name of something that has a date."""
    asked, known = _DateQuestion(language), lexicon(language)
    named = {each.start: each for each in dates.find(question)}
    periods = _periods(question, said, language)
    clocks = {span[0]: (time, span[1]) for time, span in dates.times(question)}
    words: list[Word] = []
    at = 0
    while at < len(said):
        token = said[at]
        length, kind = phrase_at(said, at, known)
        if clock := clocks.get(token.start):
            asked.times.append(60 * clock[0][0] + clock[0][1])
            at += sum(token.start <= each.start < clock[1] for each in said[at : at + 4])
        elif dated := date_at(said, at, named):
            words = _close(asked, words, question)
            asked.add(_Ref(only_reading(dates.Day("", 0, 0, dated[1].readings))))
            at += dated[0]
        elif period := periods.get(token.start):
            if asked.period is not None or period[1] > _MOST:
                raise NotComputed
            asked.period = period[1:]
            asked.kinds.append("period")
            at += sum(token.start <= each.start < period[0] for each in said[at:])
        elif token.figure is not None:
            raise NotComputed
        elif kind and (kind != "row" or not words):
            if kind not in ("stop", "calendar", "per") or token.word in signs("joining"):
                words = _close(asked, words, question)
            _note(asked, kind)
            at += length
        else:
            words.append(token)
            at += 1
    _close(asked, words, question)
    return asked


def _close(asked: _DateQuestion, words: list[Word], question: str) -> list[Word]:
    """Keep the words of something, if there are any, and begin anew."""
    if words:
        asked.add(_Ref(words=tuple(words), name=question[words[0].start : words[-1].end]))
    return []


def _note(asked: _DateQuestion, kind: str) -> None:
    kind = {"much": "count", "for": "before"}.get(kind, kind)
    if kind.startswith("count:"):
        asked.unit = kind.partition(":")[2]
        kind = "count"
    if kind in _UNITS and not asked.unit and asked.has("count", "long"):
        asked.unit = kind
    elif kind in _MOVED:
        asked.add(_Ref(relative=kind))
    elif kind not in ("stop", "calendar", "per"):
        asked.kinds.append(kind)


def _periods(question: str, said: Sequence[Word], language: str) -> dict[int, tuple[int, int, str]]:
    """Return the periods of a question by their places: the end, the number and the unit; with working days."""
    spans = (each for each in dates.find_spans(question) if each.number % 1 == 0)
    found = {each.start: (each.end, int(each.number), each.unit) for each in spans}
    known = lexicon(language)
    for at, token in enumerate(said):
        length, kind = phrase_at(said, at + 1, known) if token.raw.isdigit() else (0, "")
        if kind == "workday":
            found[token.start] = (said[at + length].end, int(token.raw), "workday")
    return found


def _form(asked: _DateQuestion) -> Callable[[_DateQuestion, Sequence[Text], date], Reckoning] | None:
    """Return what is asked for, None if the pieces do not fit any of it."""
    if asked.has("first", "later"):
        return _first if len(asked.refs) == 2 and asked.has("which") and asked.period is None else None
    if any(each in asked.kinds for each in ("sum", "avg", "max", "min", "not", "except", "which", "distinct")):
        return None
    if asked.times:
        return _clock if not asked.refs else None
    if asked.has("old"):
        return _age
    if asked.period is not None:
        return _compute_shift if asked.has("date", "deadline", "weekday", "latest") else None
    if asked.has("weekday"):
        return _weekday if len(asked.refs) == 1 else None
    if asked.has("count", "long") and (asked.unit or asked.has("long")) and 0 < len(asked.refs) < 3:
        return _between if len(asked.refs) == 2 else _from_today
    return None


def _resolve(ref: _Ref, texts: Sequence[Text], today: date, year: int = 0) -> tuple[date, tuple[DatedSentence, ...]]:
    """Return the day that a part of a question names, with the sentence of the evidence that gives it."""
    if ref.reading is not None:
        return make_date(ref.reading[0] or year, ref.reading[1], ref.reading[2]), ()
    if ref.relative:
        return today + timedelta(_MOVED[ref.relative]), ()
    event = find_event([each.root for each in ref.words], texts)
    return event.day, (event,)


def _resolve_two(
    asked: _DateQuestion, texts: Sequence[Text], today: date
) -> tuple[list[date], tuple[DatedSentence, ...]]:
    """Return the two days that a question names; one without a year has that of the other, or this one."""
    year = min((each.reading[0] for each in asked.refs if each.reading and each.reading[0]), default=today.year)
    (one, first), (other, second) = (_resolve(each, texts, today, year) for each in asked.refs)
    if other < one and all(each.is_bare for each in asked.refs):
        other = make_date(year + 1, other.month, other.day)
    return [one, other], first + second


def _is_before(asked: _DateQuestion, texts: Sequence[Text], today: date) -> Reckoning:
    """Return whether the first day is before or after the second one, as asked."""
    (one, other), events = _resolve_two(asked, texts, today)
    if one == other or not events or any(each.is_bare for each in asked.refs):
        raise NotComputed
    result = write_truth((one < other) is asked.has("before"), asked.language)
    how = f"{write_day(one, asked.language)} {'<' if one < other else '>'} {write_day(other, asked.language)}: {result}"
    return replace(_tell(result, how, asked.language, events), labels=(result,), is_truth=True)


def _first(asked: _DateQuestion, texts: Sequence[Text], today: date) -> Reckoning:
    """Return which of two things has the earlier day, or the later one."""
    days, events = _resolve_two(asked, texts, today)
    if days[0] == days[1] or any(not each.words for each in asked.refs):
        raise NotComputed
    wanted = min(days) if asked.has("first") else max(days)
    name = asked.refs[days.index(wanted)].name
    low, high = (write_day(each, asked.language) for each in sorted(days))
    result = f"{name} ({write_day(wanted, asked.language)})"
    return replace(_tell(result, f"{low} < {high}: {name}", asked.language, events), labels=(name,))


def _between(asked: _DateQuestion, texts: Sequence[Text], today: date) -> Reckoning:
    if not asked.has("between", "from", "since", "until", "to", "after", "before"):
        raise NotComputed
    days, events = _resolve_two(asked, texts, today)
    return _length(asked, min(days), max(days), events)


def _from_today(asked: _DateQuestion, texts: Sequence[Text], today: date) -> Reckoning:
    until, since = asked.has("until", "before", "to", "within"), asked.has("since", "ago", "after")
    ref = asked.refs[0]
    if until == since:
        raise NotComputed
    day, events = _resolve(ref, texts, today, today.year)
    if ref.is_bare:
        day = make_date(today.year + (until and day < today) - (since and day > today), day.month, day.day)
    if (until and day < today) or (since and day > today):
        raise NotComputed
    return _length(asked, min(day, today), max(day, today), events)


def _weekday(asked: _DateQuestion, texts: Sequence[Text], today: date) -> Reckoning:
    if asked.refs[0].is_bare:
        raise NotComputed
    day, events = _resolve(asked.refs[0], texts, today)
    result = write_weekday(day, asked.language)
    how = f"{write_day(day, asked.language)}: {result}"
    return replace(_tell(result, how, asked.language, events), labels=(result,))


def _compute_shift(asked: _DateQuestion, texts: Sequence[Text], today: date) -> Reckoning:
    """Return the date some days, weeks, months or years before or after another."""
    count, unit = asked.period or (0, "")
    notice = asked.has("notice") and asked.has("latest")
    refs = [each for each in asked.refs if each.reading] if notice else asked.refs
    if len(refs) > 1 or unit in _MINUTES or (asked.has("notice") and not notice):
        raise NotComputed
    back, on = asked.has("before", "ago") or notice, asked.has("after", "since", "within", "from", "to")
    if (back == on and not notice) or (notice and not refs) or any(each.is_bare for each in refs):
        raise NotComputed
    day, events = _resolve(refs[0], texts, today) if refs else (today, ())
    return _shift(day, -count if back else count, unit, asked.language, events, weekday=asked.has("weekday"))


def _shift(
    day: date, count: int, unit: str, language: str, events: tuple[DatedSentence, ...], *, weekday: bool = False
) -> Reckoning:
    """Return the day some units after another, before it if they are less than none; or its day of the week."""
    moved = _move(day, count, unit)
    result, name = write_day(moved, language), write_weekday(moved, language)
    how = f"{write_day(day, language)} {'-' if count < 0 else '+'} {write_span(abs(count), unit, language)} = {result}"
    how += " (Monday to Friday, holidays not known)" if unit == "workday" else f" ({name})"
    if weekday:
        return replace(_tell(name, how, language, events), labels=(name,))
    return replace(_tell(result, how, language, events), day=moved)


def _age(asked: _DateQuestion, texts: Sequence[Text], today: date) -> Reckoning:
    """Return the full years from the date of birth of somebody to a day, today if none is named."""
    named = [each for each in asked.refs if each.words]
    days = [each for each in asked.refs if not each.words]
    if len(named) != 1 or len(days) > 1 or asked.period:
        raise NotComputed
    words = [each.root for each in named[0].words]
    events = []
    for born in sorted(signs("born")):
        with suppress(NotComputed):
            events.append(find_event([*words, born], texts))
    if len({each.day for each in events}) != 1:
        raise NotComputed
    day = _resolve(days[0], texts, today)[0] if days else today
    years = _full_months(events[0].day, day) // 12
    if years < 0:
        raise NotComputed
    how = f"{write_day(events[0].day, asked.language)} – {write_day(day, asked.language)}: {years}"
    return replace(_tell(str(years), how, asked.language, events[:1]), values=frozenset({Decimal(years)}))


def _clock(asked: _DateQuestion, texts: Sequence[Text], today: date) -> Reckoning:
    """Return the minutes between two times of day, or the time some minutes after one."""
    if len(asked.times) == 2 and asked.period is None and asked.has("long", "count") and asked.unit in ("", *_MINUTES):
        minutes = (asked.times[1] - asked.times[0]) % (24 * 60)
        result = str(minutes) if asked.unit == "minute" else f"{minutes // 60}:{minutes % 60:02} h"
        span = write_span(minutes, "minute", asked.language)
        how = f"{_time(asked.times[0])} – {_time(asked.times[1])}: {span} = {minutes // 60}:{minutes % 60:02} h"
        return _tell(result, how, asked.language)
    back, on = asked.has("before", "ago"), asked.has("after", "since", "from")
    if len(asked.times) != 1 or asked.period is None or asked.period[1] not in _MINUTES or back == on:
        raise NotComputed
    count, unit = asked.period
    moved = (asked.times[0] + (-1 if back else 1) * count * _MINUTES[unit]) % (24 * 60)
    span = write_span(count, unit, asked.language)
    how = f"{_time(asked.times[0])} {'-' if back else '+'} {span} = {_time(moved)}"
    return _tell(_time(moved), how, asked.language)


def _time(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _length(asked: _DateQuestion, begin: date, end: date, events: tuple[DatedSentence, ...]) -> Reckoning:
    """Return the time between two days in the unit that is asked for, with the days that are left."""
    unit, days, rest = asked.unit or "day", (end - begin).days, 0
    count = days
    if unit == "week":
        count, rest = divmod(days, 7)
    elif unit in ("month", "year"):
        count = _full_months(begin, end) // (12 if unit == "year" else 1)
        rest = (end - _move(begin, count, unit)).days
    elif unit != "day":
        raise NotComputed
    result = write_span(count, unit, asked.language)
    result += f" + {write_span(rest, 'day', asked.language)}" if rest else ""
    how = f"{write_day(begin, asked.language)} – {write_day(end, asked.language)}: {result}"
    return replace(_tell(result, how, asked.language, events), values=frozenset({Decimal(count)}))


def _tell(result: str, how: str, language: str, events: Sequence[DatedSentence] = ()) -> Reckoning:
    """Return a result with how it came about, and the sentences of the evidence that gave a date."""
    rows = tuple(CitedRow.from_text(each.source, each.start, each.end) for each in dict.fromkeys(events))
    names = " and ".join(dict.fromkeys(each.name for each in rows))
    line, lead = f"Computed from {names or 'the calendar'}: {how}.", write_lead(names, how, language) if names else how
    return Reckoning(result, line, lead, rows)


def _full_months(begin: date, end: date) -> int:
    return 12 * (end.year - begin.year) + end.month - begin.month - (end.day < begin.day)


def _move(day: date, count: int, unit: str) -> date:
    """Return the day some units on; a month that is shorter ends it."""
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
