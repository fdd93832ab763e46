"""A computed result as a language writes it, and the answer that says it: a model's, led by it, or replaced by it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

from batos.gate import dates, figures, numerals
from batos.reckoning.question_words import fold, tokens, word_table
from batos.reckoning.tables import Text

#: Numbers of a list stand for nothing.
_NUMBERING = re.compile(r"^\s*\d{1,3}[.)]\s", re.MULTILINE)
#: The words and marks of results, by language.
_WRITTEN: Final[dict[str, dict[str, str]]] = word_table("written")
#: Digits before the decimal mark from which on thousands are set apart.
_GROUPED: Final = 5


@dataclass(frozen=True, slots=True)
class CitedRow:
    """A span of the evidence that a result was computed from."""

    name: str
    sha256: str
    start: int
    end: int
    text: str

    @classmethod
    def from_text(cls, source: Text, start: int, end: int) -> CitedRow:
        """Return a span of a text, by its places in the file."""
        return cls(source.name, source.sha256, start, end, source.text[start - source.start : end - source.start])


@dataclass(frozen=True, slots=True)
class Reckoning:
    """A result with its way: `line` is a sentence of plain data for a prompt, `rows` is what it was computed from.

    `lead` is a sentence for a person, in the question's language. If columns, values or operations fit equally they are
    in `ambiguous`, and there is no result. Rows in `left_out` have a cell that is missing or cannot be read. An answer
    has to have one of the `values`, the `day`, and the `labels`; nothing but the result if that `is_alone` asked for.
    """

    result: str
    line: str
    lead: str = ""
    rows: tuple[CitedRow, ...] = ()
    column: str = ""
    ambiguous: tuple[str, ...] = ()
    left_out: tuple[CitedRow, ...] = ()
    values: frozenset[Decimal] = frozenset()
    day: date | None = None
    labels: tuple[str, ...] = ()
    is_alone: bool = False
    is_truth: bool = False

    def lead_answer(self, question: str, answer: str) -> str:
        """Return an answer that says the result: as it is if it does, led by it if it says nothing else of the kind.

        An answer that gives another number or day in its place is left out: nobody can tell which of its words hold.
        """
        if not self.result:
            return answer
        said = _SaidValues(answer, f"{question}\n{self.line}\n" + "\n".join(each.text for each in self.rows))
        if self._is_said(said):
            return answer
        if self.is_alone:
            return self.result
        return self.lead if said.foreign is not None or self.is_truth else f"{self.lead}\n\n{answer}".strip()

    def _is_said(self, said: _SaidValues) -> bool:
        """Test if the result is said, before any number or day that the question and the rows do not have."""
        first = said.foreign
        if self.day is not None:
            readings = {(year, self.day.month, self.day.day) for year in (0, self.day.year)}
            return any(start <= (first or start) and not readings.isdisjoint(each) for start, each in said.days)
        named = {each.word for each in tokens(said.text)}
        if not all({each.word for each in tokens(label)} <= named for label in self.labels):
            return False
        if not self.values:
            return True
        found = [start for start, each in said.numbers if each & self.values]
        in_words = numerals.numbers_in_words(said.text) & self.values
        return first is None if in_words and not found else any(first is None or at <= first for at in found)


class _SaidValues:
    """The numbers and days of an answer, and the first of them that is not among those of what it may rest on."""

    def __init__(self, answer: str, known: str) -> None:
        bare = _NUMBERING.sub(lambda found: " " * len(found[0]), answer)
        self.text = fold(bare)
        found = dates.find(bare)
        self.days = [(each.start, each.readings) for each in found]
        inside = {at for each in found for at in range(each.start, each.end)}
        self.numbers = [(each.start, each.values) for each in figures.find(bare) if each.values]
        there, numbers = dates.read_dates(known), figures.read_numbers(known).values
        years = frozenset(int(each) for each in numbers if 1000 <= each < 3000)
        foreign = [each.start for each in found if not dates.is_known(each, there, years)]
        foreign += [at for at, values in self.numbers if at not in inside and not values & numbers]
        self.foreign = min(foreign, default=None)


def _words_of(language: str) -> dict[str, str]:
    return _WRITTEN.get(language) or _WRITTEN["English"]


def decimal_mark(language: str) -> str:
    """Return the decimal mark of a language, "" if the language is not known."""
    return _words_of(language)["marks"][1] if language in _WRITTEN else ""


def write_number(value: Decimal, language: str) -> str:
    """Return a number in the notation of a language.

    >>> write_number(Decimal("14421.50"), "German"), write_number(Decimal("7.10"), "English")
    ('14.421,50', '7.10')
    """
    marks = _words_of(language)["marks"]
    plain = f"{value:,f}" if abs(value) >= 10 ** (_GROUPED - 1) else f"{value:f}"
    return plain.replace(",", "\0").replace(".", marks[1]).replace("\0", marks[0])


def write_day(day: date, language: str) -> str:
    """Return a day in words.

    >>> write_day(date(2026, 5, 18), "German")
    '18. Mai 2026'
    """
    month = _words_of(language)["months"].split()[day.month - 1]
    return _words_of(language)["date"].format(day=day.day, month=month, number=day.month, year=day.year)


def write_weekday(day: date, language: str) -> str:
    """Return the day of the week."""
    return _words_of(language)["weekdays"].split()[day.weekday()]


def write_span(count: int, unit: str, language: str) -> str:
    """Return a number of units of time.

    >>> write_span(1, "day", "English"), write_span(3, "week", "German")
    ('1 day', '3 Wochen')
    """
    one, several = _words_of(language)[unit].split("|")
    return f"{count} {one if count == 1 else several}".replace(" ", "" if one > "\u3000" else " ")


def write_truth(holds: bool, language: str) -> str:
    """Return yes or no."""
    return _words_of(language)["truth"].split()[not holds]


def write_lead(name: str, how: str, language: str) -> str:
    """Return the sentence that leads an answer: what was computed, from which file."""
    return _words_of(language)["lead"].format(name=name, how=how)
