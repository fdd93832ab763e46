"""Finds the one day that the evidence gives for something: by a date, or by a period such as three months before it.

A date stands in a sentence that has all words of the thing. A period stands in a sentence that has the question's
words, and is counted from a date of the question, of the same sentence, of another sentence about that thing, or from
the letter's own.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Final

from batos.gate import dates, languages
from batos.gate.dates import TimeSpan
from batos.memory.segmentation import sentence_spans
from batos.reckoning.phrases import NotComputed, Unclear
from batos.reckoning.question_words import DIRECTIONS, OWN_DAY, Word, fold, kinds_of, lexicon, phrase_at, signs, tokens
from batos.reckoning.tables import Text, iterate_lines

_PART: Final = re.compile(r"[,;:.?!，；。？]\s*|\s(?:and|und|et|y|en|e)\s")
_SAYING_NOTHING: Final = frozenset(("stop", "date", "deadline", "latest", "until", "from", "since", "not", "calendar"))
_MARK: Final = re.compile(r"[,;:]\s")
_UNITS: Final = ("day", "week", "month", "year")
#: Lines at the head of a letter among which its own day stands, and other words of that line at most.
_HEAD, _BESIDE = 25, 3
#: Words behind a period that name what it is counted from, at most, and characters of a line that is read.
_NAMED, _LONGEST = 3, 4_000
#: Lines that may speak of a thing that has a date; where more do, no date is sure.
_MOST_LINES = 200
#: Characters of a text whose years are looked at for a date that says none.
_YEARS_IN = 200_000
_CLAUSE = re.compile(r"[,;:，；、]\s*|\s(?:and|und|et|y|en|e)\s")
#: Letters of a word by which a line is tried.
_TRIED = 3
#: Sentences that may have all the words; where more do, none is sure.
_MOST: Final = 6


@dataclass(frozen=True, slots=True)
class DatedSentence:
    """A date of the evidence, with the text that it stands in and the (start, end) of its sentence in the file."""

    day: date
    source: Text
    start: int
    end: int


def find_event(words: Sequence[str], texts: Sequence[Text]) -> DatedSentence:
    """Return the date of what these roots of words name.

    Raises: NotComputed: no sentence or several dates in one have them. Unclear: sentences give several dates.
    """
    found = [event for text in texts for event in _events_in(words, text)]
    if not found:
        raise NotComputed
    if len({each.day for each in found}) > 1:
        raise Unclear(str(each.day) for each in sorted(found, key=lambda each: each.day))
    return found[0]


def _events_in(words: Sequence[str], text: Text) -> Iterator[DatedSentence]:
    for sentence, start in _sentences(words, text, _MOST_LINES):
        if _has(sentence, words) and (found := dates.find(sentence)):
            day = whole_day(_choose_date(sentence, words, found), found, text)
            yield DatedSentence(day, text, start, start + len(sentence))


def _sentences(words: Iterable[str], text: Text, most: int = sys.maxsize) -> Iterator[tuple[str, int]]:
    """Yield the sentences of the lines that have the first letters of all these words, each with its place."""
    begins, tried = {each[:_TRIED] for each in words}, 0
    for line, start in iterate_lines(text):
        folded = fold(line) if len(line) <= _LONGEST else ""
        if not all(each in folded for each in begins):
            continue
        tried += 1
        if tried > most:
            raise NotComputed
        yield from ((line[first:last], start + first) for first, last in sentence_spans(line))


def _has(text: str, words: Sequence[str]) -> bool:
    roots = {each.root for each in tokens(text)}
    return all(word in roots for word in words)


def _choose_date(sentence: str, words: Sequence[str], found: Sequence[dates.Day]) -> dates.Day:
    """Return the date of the clause that has the words, or the only date of the sentence."""
    if len(found) == 1:
        return found[0]
    inner = [
        cut for cut in _CLAUSE.finditer(sentence) if not any(each.start < cut.start() < each.end for each in found)
    ]
    bounds = [0, *(cut.end() for cut in inner), len(sentence)]
    for first, last in pairwise(bounds):
        inside = [each for each in found if first <= each.start < last]
        if len(inside) == 1 and _has(sentence[first:last], words):
            if any(_has(f"{sentence[:first]} {sentence[last:]}", [word]) for word in words):
                break  # another part of the sentence speaks of it too
            return inside[0]
    raise NotComputed


def whole_day(meant: dates.Day, beside: Sequence[dates.Day], text: Text) -> date:
    """Return a date that says its day, with the only year of its sentence or of its text if it says none."""
    reading = only_reading(meant)
    year = reading[0]
    for around in (beside, dates.find(text.text[:_YEARS_IN])) if not year else ():
        years = {each[0] for day in around for each in day.readings if each[0]}
        if len(years) == 1 and not year:
            year = years.pop()
        elif years and not year:
            raise NotComputed
    return make_date(year, reading[1], reading[2])


def only_reading(day: dates.Day) -> tuple[int, int, int]:
    """Return the one way in which a date can be read. Raises: Unclear: it is read in two ways."""
    if len(day.readings) != 1:
        raise Unclear("-".join(f"{part:02}" for part in each) for each in sorted(day.readings))
    return next(iter(day.readings))


def make_date(year: int, month: int, day: int) -> date:
    """Return a date. Raises: NotComputed: there is no such day."""
    try:
        return date(year, month, day)
    except ValueError as error:
        raise NotComputed from error


@dataclass(frozen=True, slots=True)
class Deadline:
    """A day to count from, the period on (or back, if it is less than none), and the sentences that say so."""

    day: date
    count: int
    unit: str
    sentences: tuple[DatedSentence, ...]


@dataclass(frozen=True, slots=True)
class _DayWish:
    """A question for a day: the words that the sentence must have, if a last day is wanted, and a day to count from.

    `own_day` is the name of the day of a letter or an invoice itself.
    """

    words: tuple[Word, ...]
    is_last: bool
    day: date | None
    own_day: str


def find(question: str, said: Sequence[Word], language: str, texts: Sequence[Text]) -> Deadline:
    """Return the period that answers a question for a day, with the day that it is counted from.

    Raises: NotComputed: no sentence has it, or several do.
    """
    wish = _read(question, said, language)
    found = [each for text in texts for each in _in_text(wish, text)]
    if len({(each.day, each.count, each.unit) for each in found}) != 1:
        raise NotComputed
    return found[0]


def _read(question: str, said: Sequence[Word], language: str) -> _DayWish:
    """Return the wish of a question; a part that names the day to count from says nothing else."""
    kinds = kinds_of(said, language)
    if not kinds & {"date", "deadline", "latest"} or kinds & {
        "count",
        "long",
        "weekday",
        "which",
        "sum",
        "old",
        "first",
    }:
        raise NotComputed
    words: list[Word] = []
    named: list[dates.Day] = []
    own_days: list[str] = []
    for part in _parts(question):
        days, own_day = dates.find(part), _own_day(part)
        named, own_days = named + days, own_days + [own_day] * bool(own_day)
        words += [] if days or own_day else _telling(part, language)
    if not words or len(named) + len(own_days) > 1:
        raise NotComputed
    day = make_date(*only_reading(named[0])) if named else None
    return _DayWish(tuple(words), bool(kinds & {"deadline", "latest"}), day, "".join(own_days))


def _parts(question: str) -> Iterator[str]:
    """Yield the parts of a question between marks and words that join, none cut within a date."""
    inside = {at for each in dates.find(question) for at in range(each.start, each.end)}
    start = 0
    for cut in _PART.finditer(question):
        if cut.start() not in inside:
            yield question[start : cut.start()]
            start = cut.end()
    yield question[start:]


def _own_day(text: str) -> str:
    """Return the name of a letter's own day that stands in a text, "" if none does."""
    said = f" {' '.join(each.word for each in tokens(text))} "
    return next((each for each in OWN_DAY if f" {each} " in said), "")


def _telling(part: str, language: str) -> Iterator[Word]:
    """Yield the words of a part that are neither phrases which ask for a day nor small words."""
    said, known = tokens(part), lexicon(language)
    small = languages.small_words(language) | signs("modal")
    at = 0
    while at < len(said):
        length, kind = phrase_at(said, at, known)
        if kind in _SAYING_NOTHING:
            at += length
            continue
        if not {said[at].word, said[at].raw.casefold()} & small:
            yield said[at]
        at += 1


def _in_text(wish: _DayWish, text: Text) -> Iterator[Deadline]:
    language = languages.guess(text.text)
    tried = 0
    for sentence, start in _sentences([each.word for each in wish.words], text):
        if _lacks(sentence, wish.words, language):
            continue
        tried += 1
        if tried > _MOST:
            raise NotComputed
        own = DatedSentence(date.min, text, start, start + len(sentence))
        yield from _in_sentence(wish, sentence, own, language)


def _lacks(text: str, words: Sequence[Word], language: str | None) -> bool:
    """Test if a text lacks one of these words in all of its forms."""
    roots, known = {each.root for each in tokens(text)}, set(languages.stems(text, language))
    return not all(each.root in roots or set(languages.stems(each.raw, language)) & known for each in words)


def _in_sentence(wish: _DayWish, sentence: str, own: DatedSentence, language: str | None) -> Iterator[Deadline]:
    """Yield the period of a sentence, if it has one alone that is counted from something."""
    spans = [each for each in dates.find_spans(sentence) if each.unit in _UNITS and each.number % 1 == 0]
    directed = [(each, *found) for each in spans if (found := _direction(sentence, each))]
    if len(directed) != 1:
        return
    span, kind, behind = directed[0]
    if kind in ("after", "term") and _is_term(sentence, span) is not wish.is_last:
        return
    start, end = _clause(sentence, span)
    if kind in ("back", "on"):
        told = [each for each in wish.words if _lacks(f"{sentence[:start]} {sentence[end:]}", [each], language)]
    else:
        before, whole = sentence[start : span.start], sentence[start:end]
        told = (
            [] if _lacks(whole, wish.words, language) else [e for e in wish.words if not _lacks(before, [e], language)]
        )
    if not told:
        return  # what is asked for is not what the period belongs to
    anchor = _anchor(wish, sentence, own, span, kind, sentence[behind:])
    if anchor is not None:
        count = int(span.number) * (-1 if kind in ("before", "back") else 1)
        yield Deadline(anchor[0], count, span.unit, (own, *anchor[1]))


def _direction(sentence: str, span: TimeSpan) -> tuple[str, int] | None:
    """Return how a period is counted, with the place behind the words that say so; None if nothing says it."""
    behind = [(each.word, span.end + each.end) for each in tokens(sentence[span.end :])[:4]]
    for length in range(min(3, len(behind)), 0, -1):
        words, end = " ".join(word for word, _ in behind[:length]), behind[length - 1][1]
        follows = behind[length][0] if length < len(behind) else ""
        for kind in ("before", "after", "back", "on"):
            is_alone = kind in ("back", "on")
            if words in DIRECTIONS[kind] and (follows not in DIRECTIONS["than"] if is_alone else bool(follows)):
                return kind, end
    return ("term", span.end) if _is_term(sentence, span) else None


def _is_term(sentence: str, span: TimeSpan) -> bool:
    said = " ".join(each.word for each in tokens(sentence[: span.start])[-4:])
    return any(said == each or said.endswith(f" {each}") for each in DIRECTIONS["term"])


def _clause(sentence: str, span: TimeSpan) -> tuple[int, int]:
    """Return the (start, end) of the part of a sentence between marks in which a period stands."""
    marks = list(_MARK.finditer(sentence))
    start = max((each.end() for each in marks if each.end() <= span.start), default=0)
    return start, min((each.start() for each in marks if each.start() >= span.end), default=len(sentence))


def _anchor(
    wish: _DayWish, sentence: str, own: DatedSentence, span: TimeSpan, kind: str, behind: str
) -> tuple[date, tuple[DatedSentence, ...]] | None:
    """Return the day that a period is counted from, with the other sentence that gives it."""
    there = dates.find(sentence)
    own_day = wish.own_day or _own_day(behind[:60])
    if own_day:
        return None if there else _day_of_letter(own.source, own_day)
    if kind in ("back", "on"):
        is_one = len(there) == 1 and there[0].end <= span.start and wish.day is None
        return (whole_day(there[0], there, own.source), ()) if is_one else None
    if there:
        return None  # a day of its own: what the period is counted from, or what comes of it
    if wish.day is not None:
        return wish.day, ()
    if kind == "term":
        return None
    said = [each.root for each in tokens(_PART.split(behind)[0]) if each.word not in languages.SMALL_WORDS]
    for length in range(min(_NAMED, len(said)), 0, -1):
        try:
            event = find_event(said[:length], [own.source])
        except NotComputed:
            continue
        return event.day, (event,)
    return None


def _day_of_letter(text: Text, name: str) -> tuple[date, tuple[DatedSentence, ...]] | None:
    """Return the only day that stands alone, or with a place, on a line at the head of a text.

    That of an invoice only if the text is one by its name or by a heading.
    """
    head = [line for _, line in zip(range(_HEAD), iterate_lines(text), strict=False)]
    short = " ".join(fold(line) for line, _ in head if len(tokens(line)) <= _BESIDE + 2)
    invoice = next((each for each in signs("invoices") if each in name), "")
    if invoice not in f"{short} {fold(text.name)}":
        return None
    found = []
    for line, start in head:
        days = dates.find(line)
        beside = len(tokens(line[: days[0].start] + line[days[0].end :])) if len(days) == 1 else _BESIDE + 1
        if beside <= _BESIDE and all(each[0] and each[2] for each in days[0].readings):
            found.append(DatedSentence(make_date(*only_reading(days[0])), text, start, start + len(line)))
    return (found[0].day, (found[0],)) if len({each.day for each in found}) == 1 else None
