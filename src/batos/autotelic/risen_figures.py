"""Figures of the mind's own work that rose beside its own earlier days, computed of the counters of each day.

No figure has a limit that somebody set. The first days that the counters still have are what is usual; what later days
are beyond the usual spread is added up, and a sum that is too large is an alarm. Too few days say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from batos.autotelic import decay, entropy_days
from batos.protocol.image_documents import CountsDocument
from batos.records.own_briefs import Fact
from batos.terminal.console import count_text

#: The first days, which later ones are compared with; the sum that is an alarm, and the largest one, in spreads, so
#: that an alarm ends some days after its cause.
BASE, _ALARM, _MOST = 20, 8.0, 12.0
#: The least spread: of the roots of counts, which have it by chance alone, and of the logarithms of means; the least
#: mean that has a logarithm here.
_COUNTED, _MEASURED, _LEAST = 1.0, 0.1, 1e-3
#: Counters of missions that people asked, not of the whole mind; those with a part for each code, or for each check.
_ASKED: Final = frozenset({"failures", "gate", "revised", "loads", "tokens"})
_PARTED: Final = ("failures", "gate")


class FigureDay(NamedTuple):
    """A day of a figure: how often something happened, or how much there was in all, in so many cases."""

    day: str
    amount: float
    cases: int


class Rise(NamedTuple):
    """A rise that stands on the newest day: the amount that was usual in as many cases, and the sum in spreads."""

    newest: FigureDay
    usual: float
    total: float


class DayFigure(NamedTuple):
    """A figure by its headline, what is counted (a noun, and of what), and the line of the metric that it goes with.

    Without `of` it is a mean, which stands in the braces of its noun.
    """

    title: str
    noun: str = ""
    of: str = ""
    line: str = ""

    def describe(self, found: Rise) -> tuple[Fact, ...]:
        """Return what rose, from what, and why that is an alarm."""
        day, amount, cases = found.newest
        figure = _write(amount if self.of else amount / cases)
        now, usual = (self.noun.format(each) for each in (figure, _write(found.usual / cases)))
        if self.of:
            now = f"there were {count_text(round(amount), self.noun)} {self.of} in {count_text(cases, 'mission')}"
            usual = f"as many missions had {_write(found.usual)} {self.noun}s {self.of} at the mean"
        beyond = f"What is beyond the usual adds up to {_write(found.total)} spreads; above {_ALARM:g} is an alarm."
        said = (f"On {day} {now}.", figure), (f"Before, {usual}.", None), (beyond, None)
        return tuple(("counters", text, asked) for text, asked in said)


#: Figures by their counters; {}: a code, a check, or a mean.
_FIGURES: Final[Mapping[str, DayFigure]] = {
    "conflicts": DayFigure("protocol conflict: commits meet conflicts more often", "conflict", "of commits"),
    "spills": DayFigure("spill: models leave the graphics memory more often", "spill", "of models"),
    "loads": DayFigure("warning: models are reloaded more often", "load", "of models"),
    "retired": DayFigure("integrity: methods are retired more often", "retirement", "of methods"),
    "refused": DayFigure("guardian: verdicts are refused more often", "refusal", "by the guardian"),
    "revised": DayFigure("alert: drafts are rejected more often", "revision", "of answers", "Hrel"),
    "failures": DayFigure("error: missions fail with the code {} more often", "failure", "with the code {}"),
    "gate": DayFigure("gate verdict: faults in {} are found more often", "fault", "in {}", "Hrel"),
    "first_token": DayFigure(
        "high latency: the first token comes later", "the first token took {} seconds at the mean"
    ),
    "tokens": DayFigure("metrics: the tokens of an answer are up", "a mission took {} tokens at the mean"),
    "audit": DayFigure("integrity check: checks of the computed audit fail"),
}


def find_figure(name: str) -> DayFigure:
    """Return the figure of a name: a counter's, with a code or check behind a dot.

    >>> find_figure("gate.numbers").of
    'in numbers'
    """
    key, _, part = name.partition(".")
    found = _FIGURES[key]
    return found._replace(title=found.title.format(part), of=found.of.format(part))


def find_rise(days: Sequence[FigureDay], *, counted: bool) -> Rise | None:
    """Return the rise of a figure that stands on its newest day; None: it is as usual, or too few days are known.

    If it is `counted`, a day is compared with what so many cases had before, else its mean with earlier means.

    >>> usual = [FigureDay("", 1, 10)] * 25
    >>> find_rise([*usual, FigureDay("", 3, 10)], counted=True)
    >>> find_rise([*usual, FigureDay("", 60, 10)], counted=True).total
    12.0
    """
    if len(days) <= BASE:
        return None
    share = sum(each.amount for each in days[:BASE]) / sum(each.cases for each in days[:BASE])
    falls = [-_level(each, share if counted else None) for each in days]
    beginning = decay.read_beginning(falls, BASE, _COUNTED if counted else _MEASURED)
    total = [0.0, *(() if beginning is None else decay.cumulate(falls[BASE:], beginning, _MOST))][-1]
    return Rise(days[-1], share * days[-1].cases, total) if total > _ALARM else None


def _level(each: FigureDay, share: float | None) -> float:
    """Return what a day is beyond the usual share, in roots, whose spread by chance is 1; without one its logarithm."""
    if share is None:
        return math.log(max(_LEAST, each.amount / each.cases))
    return 2 * (math.sqrt(each.amount + 3 / 8) - math.sqrt(each.cases * share + 3 / 8))


def read_figures(days: Mapping[str, CountsDocument]) -> dict[str, list[FigureDay]]:
    """Return the days of each figure, from the counters of those on which people asked enough missions."""
    known = {day: counts for day, counts in sorted(days.items()) if _count(counts, "asked.ended") >= entropy_days.LEAST}
    names = {name for name, figure in _FIGURES.items() if figure.of and name not in _PARTED}
    names |= {f"{key}.{part}" for each in known.values() for key in _PARTED for part in each["asked"].get(key, {})}
    found = {
        name: [FigureDay(day, _count(each, name), int(_count(each, "asked.ended"))) for day, each in known.items()]
        for name in (*sorted(names), "tokens")
    }
    heard = {day: each["first_token"] for day, each in known.items() if "first_token" in each}
    found["first_token"] = [FigureDay(day, each["seconds"], sum(each["counts"])) for day, each in heard.items()]
    return found


def _count(counts: CountsDocument, name: str) -> float:
    key, _, part = name.partition(".")
    if key == "refused":
        key, part = "verdicts", key
    kept = (counts["asked"] if key in _ASKED else counts).get(key, 0)
    return float(kept.get(part, 0) if part and kept else kept)


def _write(value: float) -> str:
    """Write a number with two decimals at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
