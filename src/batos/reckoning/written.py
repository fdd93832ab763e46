"""Writes results as a language does: numbers, days, units of time, and the sentence that leads an answer."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Final

from batos.reckoning.known_phrases import read

_WRITTEN: Final = read("written")
#: Digits before the decimal mark from which on thousands are set apart.
_GROUPED: Final = 5


def _words_of(language: str) -> dict[str, str | dict[str, str]]:
    found: dict[str, str | dict[str, str]] = _WRITTEN.get(language) or _WRITTEN["English"]
    return found


def decimal_mark(language: str) -> str:
    """Return the decimal mark of a language, "" if the language is not known."""
    return str(_words_of(language)["marks"])[1] if language in _WRITTEN else ""


def write_number(value: Decimal, language: str) -> str:
    """Return a number in the notation of a language.

    >>> write_number(Decimal("14421.50"), "German"), write_number(Decimal("7.10"), "English")
    ('14.421,50', '7.10')
    """
    marks = str(_words_of(language)["marks"])
    plain = f"{value:,f}" if abs(value) >= 10 ** (_GROUPED - 1) else f"{value:f}"
    return plain.replace(",", "\0").replace(".", marks[1]).replace("\0", marks[0])


def write_day(day: date, language: str) -> str:
    """Return a day in words.

    >>> write_day(date(2026, 5, 18), "German")
    '18. Mai 2026'
    """
    month = str(_words_of(language)["months"]).split()[day.month - 1]
    return str(_words_of(language)["day"]).format(day=day.day, month=month, number=day.month, year=day.year)


def write_weekday(day: date, language: str) -> str:
    """Return the day of the week."""
    return str(_words_of(language)["weekdays"]).split()[day.weekday()]


def write_span(count: int, unit: str, language: str) -> str:
    """Return a number of units of time.

    >>> write_span(1, "day", "English"), write_span(3, "week", "German")
    ('1 day', '3 Wochen')
    """
    units = _words_of(language)["units"]
    one, several = units[unit].split("|") if isinstance(units, dict) else ("", "")
    return f"{count} {one if count == 1 else several}".replace(" ", "" if one > "\u3000" else " ")


def write_truth(holds: bool, language: str) -> str:
    """Return yes or no."""
    return str(_words_of(language)["truth"]).split()[not holds]


def write_lead(name: str, how: str, language: str) -> str:
    """Return the sentence that leads an answer: what was computed, from which file."""
    return str(_words_of(language)["lead"]).format(name=name, how=how)
