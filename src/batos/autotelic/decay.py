"""Entropic decay: a line of day values that falls beside its own beginning, or stands still with room above."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import fmean, stdev
from typing import Final, NamedTuple

#: The first days of a line, which the later ones are compared with; fewer are no baseline.
BASE: Final = 30
#: The drop that is no drop, and the sum of larger ones that is an alarm, in standard deviations (Page 1954): once in
#: some 540 days where nothing falls, within 9 days at the median where the mean falls by one deviation.
_SLACK, _ALARM = 0.5, 5.0
#: The days without a change from which on a line stands still, and the slope that is none, in deviations a week.
STILL_DAYS, _STILL_SLOPE = 21, 0.1
#: The least deviation, of a line that never moved.
_LEAST: Final = 1e-9


class Beginning(NamedTuple):
    """The mean and the standard deviation of the first days of a line."""

    mean: float
    deviation: float


def read_beginning(values: Sequence[float], days: int = BASE, least: float = _LEAST) -> Beginning | None:
    """Return the baseline of a line of day values, its first days; None while it is too short.

    A deviation below the `least` one counts as that.
    """
    first = values[:days]
    return Beginning(fmean(first), max(stdev(first), least)) if len(first) == days else None


def cumulate(values: Sequence[float], beginning: Beginning, most: float = math.inf) -> Iterator[float]:
    """Yield after each value the cumulative sum of the falls below a beginning, from 0 to `most`, in deviations."""
    fallen = 0.0
    for value in values:
        fallen = min(most, max(0.0, fallen + (beginning.mean - value) / beginning.deviation - _SLACK))
        yield fallen


def find_dip(values: Sequence[float]) -> int | None:
    """Return the place of the first day of the fall that raises the alarm, by a one-sided cumulative sum; None: none.

    >>> find_dip([0.6, 0.64] * 15 + [0.62] * 10), find_dip([0.6, 0.64] * 15 + [0.5] * 10)
    (None, 30)
    """
    found = read_beginning(values)
    if found is None:
        return None
    began = BASE
    for place, fallen in enumerate(cumulate(values[BASE:], found), BASE):
        if fallen > _ALARM:
            return began
        if not fallen:
            began = place + 1
    return None


def stands_still(values: Sequence[float]) -> bool:
    """Test if the last days of a line have no slope; high and flat is good, so a caller looks for room above.

    >>> stands_still([0.6, 0.64] * 20), stands_still([0.6, 0.64] * 15 + [0.65 + 0.01 * day for day in range(21)])
    (True, False)
    """
    found = read_beginning(values)
    last = values[-STILL_DAYS:]
    if found is None or len(values) < BASE + STILL_DAYS // 2:
        return False
    middle, mean = (len(last) - 1) / 2, fmean(last)
    spread = sum((day - middle) ** 2 for day in range(len(last)))
    slope = sum((day - middle) * (value - mean) for day, value in enumerate(last)) / spread
    return abs(7 * slope) <= _STILL_SLOPE * found.deviation
