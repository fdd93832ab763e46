"""Decay: a fall is found within days, no fall hardly ever, and what is high and flat is let be."""

from __future__ import annotations

import random

from batos.autotelic import entropy


def line(seed: int, days: int, drop: float = 0.0) -> list[float]:
    """Day values around 0.6 with a deviation of 0.05; after the first 30 the mean falls by so many deviations."""
    dice = random.Random(seed)
    return [dice.gauss(0.6 - (0.05 * drop if day >= entropy.BASE else 0.0), 0.05) for day in range(days)]


def test_a_fall_of_one_deviation_is_found() -> None:
    """In most lines within 30 days, and its beginning is named."""
    found = [entropy.find_dip(line(seed, entropy.BASE + 30, 1.0)) for seed in range(200)]
    assert sum(each is not None for each in found) >= 160
    assert all(each is None or each >= entropy.BASE for each in found)


def test_where_nothing_falls_an_alarm_is_rare() -> None:
    """Of 200 lines of 60 days without a change about one in ten has one."""
    assert sum(entropy.find_dip(line(seed, entropy.BASE + 30)) is not None for seed in range(200)) <= 40


def test_a_short_line_has_neither_a_fall_nor_a_standstill() -> None:
    """Fewer days than a baseline are compared with nothing."""
    values = [0.9] * 5 + [0.1] * 20
    assert entropy.read_beginning(values) is None
    assert entropy.find_dip(values) is None
    assert not entropy.stands_still(values)


def test_a_line_that_never_moved_falls_at_the_first_step() -> None:
    """Its deviation is not zero."""
    assert entropy.find_dip([0.5] * entropy.BASE + [0.4]) == entropy.BASE


def test_a_line_that_climbs_does_not_stand_still() -> None:
    """One that moves around the same value does."""
    flat = line(1, entropy.BASE) + [0.6, 0.61] * 15
    climbing = line(1, entropy.BASE) + [0.6 + 0.01 * day for day in range(30)]
    assert entropy.stands_still(flat)
    assert not entropy.stands_still(climbing)
