"""Finds the one date that the evidence gives for something: the date in the sentence that has all its words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

from batos.gate.values import dates
from batos.memory.sentences import sentence_spans
from batos.reckoning.phrases import NotComputed, Unclear
from batos.reckoning.question_words import fold, tokens
from batos.reckoning.tables import Text, iterate_lines

#: Lines that may speak of it; where more do, no date is sure.
_MOST_LINES = 200
#: Characters of a text whose years are looked at for a date that says none.
_YEARS_IN = 200_000
_LONGEST_LINE = 4_000
_CLAUSE = re.compile(r"[,;:，；、]\s*|\s(?:and|und|et|y|en|e)\s")
#: Letters of a word by which a line is tried.
_TRIED = 3


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
    found = [event for text in texts for event in _in_text(words, text)]
    if not found:
        raise NotComputed
    if len({each.day for each in found}) > 1:
        raise Unclear(str(each.day) for each in sorted(found, key=lambda each: each.day))
    return found[0]


def _in_text(words: Sequence[str], text: Text) -> Iterator[DatedSentence]:
    tried = 0
    for line, start in iterate_lines(text):
        folded = fold(line) if len(line) <= _LONGEST_LINE else ""
        if not all(word[:_TRIED] in folded for word in words):
            continue
        tried += 1
        if tried > _MOST_LINES:
            raise NotComputed
        for first, last in sentence_spans(line):
            sentence = line[first:last]
            if _has(sentence, words) and (found := dates.find(sentence)):
                day = whole_day(_choose_date(sentence, words, found), found, text)
                yield DatedSentence(day, text, start + first, start + last)


def _has(text: str, words: Sequence[str]) -> bool:
    roots = {each.root for each in tokens(text)}
    return all(word in roots for word in words)


def _choose_date(sentence: str, words: Sequence[str], found: Sequence[dates.Day]) -> dates.Day:
    """Return the date of the clause that has the words, or the only date of the sentence.

    Raises: NotComputed: there are several.
    """
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
    """Return the one way in which a date can be read.

    Raises: Unclear: it is read in two ways.
    """
    if len(day.readings) != 1:
        raise Unclear("-".join(f"{part:02}" for part in each) for each in sorted(day.readings))
    return next(iter(day.readings))


def make_date(year: int, month: int, day: int) -> date:
    """Return a date.

    Raises: NotComputed: there is no such day.
    """
    try:
        return date(year, month, day)
    except ValueError as error:
        raise NotComputed from error
