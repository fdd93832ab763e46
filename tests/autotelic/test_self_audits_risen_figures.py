"""Figures that rose: compared with their own earlier days alone, silent on chance, certain on a lasting step."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batos.autotelic import self_audits
from batos.autotelic.self_audits import BASE, FigureDay, find_figure, find_rise, read_figures
from batos.missions.counters import DAYS
from batos.protocol.image_documents import CountsDocument

#: Spreads of a lasting step, and the days within which it is always an alarm.
STEPS = [(1.5, 9), (2.0, 6), (3.0, 4), (6.0, 2)]
counts = st.lists(st.tuples(st.integers(0, 60), st.integers(5, 400)), min_size=BASE, max_size=BASE)
means = st.lists(st.floats(0.01, 500), min_size=BASE, max_size=BASE)


def measured(values: list[float]) -> list[FigureDay]:
    """Days with these means, each of ten cases."""
    return [FigureDay("", 10 * each, 10) for each in values]


@given(means, st.sampled_from(STEPS))
def test_a_lasting_step_of_a_mean_is_always_found(values: list[float], step: tuple[float, int]) -> None:
    """Whatever the first days were: the mean of their logarithms and so many spreads more, for so many days."""
    spreads, days = step
    logs = [math.log(each) for each in values]
    after = math.exp(fmean(logs) + (spreads + 1e-6) * max(stdev(logs), 0.1))
    assert find_rise(measured([*values, *[after] * days]), counted=False)


@given(counts, st.sampled_from(STEPS), st.integers(5, 400))
def test_a_lasting_step_of_a_count_is_always_found(
    first: list[tuple[int, int]], step: tuple[float, int], cases: int
) -> None:
    """Compared with what as many cases had before; the spread is at least that of chance."""
    spreads, days = step
    share = sum(many for many, _ in first) / sum(of for _, of in first)
    roots = [2 * (math.sqrt(many + 3 / 8) - math.sqrt(of * share + 3 / 8)) for many, of in first]
    level = fmean(roots) + spreads * max(stdev(roots), 1.0)
    amount = math.ceil((level / 2 + math.sqrt(cases * share + 3 / 8)) ** 2)
    known = [FigureDay("", many, of) for many, of in first]
    assert find_rise([*known, *[FigureDay("", amount, cases)] * days], counted=True)


@given(means, st.data())
def test_what_happened_before_is_no_alarm(values: list[float], data: st.DataObject) -> None:
    """Any ten of the first days once more, in any order; nor fewer days than are wanted, whatever they are."""
    again = data.draw(st.permutations(values))[: DAYS - BASE]
    assert find_rise(measured([*values, *again]), counted=False) is None
    assert find_rise(measured([*values[1:], 10.0**6]), counted=False) is None


def by_chance(dice: random.Random, share: float) -> FigureDay:
    """A day on which each of some missions has something with the same chance."""
    cases = dice.randint(5, 40)
    return FigureDay("", sum(dice.random() < share for _ in range(cases)), cases)


def scattered(dice: random.Random, spread: float) -> FigureDay:
    """A day with a mean that is scattered about the same value."""
    return FigureDay("", 10 * math.exp(dice.gauss(0.0, spread)), 10)


@pytest.mark.parametrize(
    ("counted", "make", "share"), [(True, by_chance, 0.02), (True, by_chance, 0.1), (False, scattered, 0.3)]
)
def test_chance_alone_is_hardly_ever_an_alarm(
    counted: bool, make: Callable[[random.Random, float], FigureDay], share: float
) -> None:
    """Looked at each day for forty days: of 600 histories of each kind at most 0.035 had one."""
    fired = 0
    for seed in range(100):
        dice = random.Random(seed)
        days = [make(dice, share) for _ in range(DAYS + 30)]
        windows = [days[max(0, end - DAYS) : end] for end in range(BASE + 1, len(days) + 1)]
        fired += any(find_rise(each, counted=counted) for each in windows)
    assert fired <= 5


def counted_day(missions: int, asked: CountsDocument | None = None, **more: object) -> CountsDocument:
    """The counters of a day on which people asked so many missions, and the mind some."""
    return {"missions": {"BRICK": {"done": missions + 90}}, "asked": {"ended": missions, **(asked or {})}, **more}


def test_figures_are_read_from_the_counters_of_days_with_enough_missions() -> None:
    """Each code and check is a figure of its own; days of an earlier version, which had no such counter, are none."""
    heard = {"counts": [1, 3], "seconds": 6.0}
    days = {
        "2026-11-26": {"missions": {"BRICK": {"done": 40}}, "conflicts": 3},
        "2026-11-27": counted_day(4, conflicts=9),
        "2026-11-28": counted_day(9, {"tokens": 90}, conflicts=2, loads=7),
        "2026-11-29": counted_day(8, {"gate": {"numbers": 3}}, verdicts={"refused": 2}, first_token=heard),
        "2026-11-30": counted_day(5, {"failures": {"timed_out": 4}, "revised": 1, "loads": 2}),
    }
    found = read_figures(days)
    assert [(each.day[-2:], each.cases) for each in found["conflicts"]] == [("28", 9), ("29", 8), ("30", 5)]
    assert found["first_token"] == [FigureDay("2026-11-29", 6.0, 4)]
    amounts = {
        "conflicts": [2, 0, 0], "tokens": [90, 0, 0], "refused": [0, 2, 0], "gate.numbers": [0, 3, 0],
        "failures.timed_out": [0, 0, 4], "revised": [0, 0, 1], "loads": [0, 0, 2],
    }  # fmt: skip
    assert {name: [each.amount for each in found[name]] for name in amounts} == amounts
    assert all(find_figure(name).title for name in found)
    assert not any(read_figures({}).values())


def test_a_rise_is_told_with_its_figures() -> None:
    """The newest day, what was usual in as many cases, and the sum; of a mean its value."""
    rise = self_audits.Rise(FigureDay("2026-11-30", 12, 14), 0.5, 9.25)
    (source, said, figure), usual, beyond = find_figure("failures.timed_out").describe(rise)
    assert (source, figure) == ("counters", "12")
    assert said == "On 2026-11-30 there were 12 failures with the code timed_out in 14 missions."
    assert usual[1:] == ("Before, as many missions had 0.5 failures with the code timed_out at the mean.", None)
    assert "9.25 spreads" in beyond[1]
    slow = self_audits.Rise(FigureDay("2026-11-30", 90.0, 20), 25.0, 12.0)
    told = [text for _, text, _ in find_figure("first_token").describe(slow)]
    assert told[:2] == [
        "On 2026-11-30 the first token took 4.5 seconds at the mean.",
        "Before, the first token took 1.25 seconds at the mean.",
    ]
