"""Adds up numbers that stand together in a text, in a line or one below the other: a total may be such a sum."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import accumulate, groupby

from batos.gate.values import dates, figures

_TOTAL = re.compile(
    r"\b(?:in all|in total|totals?|altogether|together|overall|sum|combined|insgesamt|zusammen|gesamt\w*|summe"
    r"|au total|en tout"
    r"|ensemble|somme|en total|juntos|juntas|suma|in totale|totale|insieme|somma|no total|soma|in totaal|totaal"
    r"|samen|som"
    r"|всего|итого|сумма)\b|一共|总共|总计|合计|总数|合計|全部で|総",
    re.IGNORECASE,
)
#: Numbers of the longest run, lines of a text that are looked at, and numbers of a line.
_LONGEST, _MOST_LINES, _MOST_NUMBERS = 12, 400, 24


def asks_for_total(text: str) -> bool:
    """Test if a text has a word for a total."""
    return _TOTAL.search(text) is not None


def run_sums(text: str) -> frozenset[Decimal]:
    """Return the sums of neighbours: numbers of a line, and those at the same place from the end of lines in a row.

    >>> sorted(map(str, run_sums("ink 3, paper 12 euros\\nglue 4, tape 20 euros")))
    ['15', '24', '32', '7']
    """
    lines = [_numbers(line) for line in text.splitlines()[:_MOST_LINES]]
    # 1,250 is one number or another in all of a text.
    read = [[[of(each.values) for each in line] for line in lines] for of in (max, min)]
    return frozenset(total for one in read for run in (*one, *_columns(one)) for total in _sums(run))


def _numbers(line: str) -> list[figures.Figure]:
    """Return the numbers of a line without those of dates."""
    days = dates.find(line)
    found = [each for each in figures.find(line) if not any(day.start <= each.start < day.end for day in days)]
    return [each for each in found if each.values][:_MOST_NUMBERS]


def _columns(lines: Sequence[Sequence[Decimal]]) -> Iterator[list[Decimal]]:
    """Yield the numbers that stand at the same place from the end in lines in a row."""
    for place in range(1, max(map(len, lines), default=0) + 1):
        for is_long, run in groupby(lines, key=lambda line: len(line) >= place):
            if is_long:
                yield [line[-place] for line in run]


def _sums(run: Sequence[Decimal]) -> Iterator[Decimal]:
    for at in range(len(run)):
        yield from list(accumulate(run[at : at + _LONGEST]))[1:]
