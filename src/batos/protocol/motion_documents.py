"""The documents of what the mind measures of itself: outcomes of missions, and the entropy metric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NotRequired, TypeAlias, TypedDict, final

#: The acts of people on an answer; records/outcomes.py has the worth of each.
OutcomeAct: TypeAlias = Literal[
    "rated_good", "rated_bad", "edited", "undone", "retracted", "approved", "refused", "asked_again", "corrected",
    "cited_later", "went_on", "cancelled",
]  # fmt: skip
#: The parts of the metric: relevance, cognitive diversity, novelty of solutions, structure in use.
EntropyPart: TypeAlias = Literal["Hrel", "Hcog", "Hsol", "Hstruc"]


class OutcomeDocument(TypedDict):
    """An act of a person on an answer: its value from -1 to 1, its weight, and the reason that was given, if any."""

    act: OutcomeAct
    value: float
    weight: float
    at: str
    by: str
    why: NotRequired[str]


@final
class RatedPage(TypedDict):
    """The outcomes of a mission after a verdict, and their weighted mean."""

    mission: str
    outcomes: list[OutcomeDocument]
    outcome: float | None


class EntropyParts(TypedDict, total=False):
    """The parts of the metric that are defined, each in [0, 1]."""

    Hrel: float
    Hcog: float
    Hsol: float
    Hstruc: float


class EntropyDay(TypedDict):
    """The metric of a day: medians over its missions, and the mean outcome.

    A day with too few missions has the value of the day before: it is `carried`. `undone` counts undone missions.
    """

    day: str
    missions: int
    carried: bool
    parts: EntropyParts
    cem: float | None
    outcome: float | None
    undone: int


def value_of(day: EntropyDay, line: str) -> float | None:
    """Return the value of a line of the metric on a day: of a part, `cem` or `outcome`; None: it has none."""
    parts: Mapping[str, object] = day["parts"]
    value = day["outcome"] if line == "outcome" else day["cem"] if line == "cem" else parts.get(line)
    return value if isinstance(value, float) else None


class EntropyFinding(TypedDict):
    """A fall or a standstill of one line: since which day, and what was measured then and at the end."""

    line: str
    kind: Literal["dip", "stagnation"]
    since: str
    before: float
    now: float


class EntropyMark(TypedDict):
    """A change of the mind on a day of the metric: a value that was kept or taken back, or new models."""

    day: str
    text: str


@final
class EntropyPage(TypedDict):
    """The metric of the last days, what is to be looked at, the changes of the mind meanwhile, and its weights.

    `weights_since` is when they were moved last; None: never.
    """

    days: list[EntropyDay]
    marks: list[EntropyMark]
    weights: dict[EntropyPart, float]
    weights_since: str | None
    findings: list[EntropyFinding]


class EntropyMission(TypedDict):
    """The metric of one mission, and what people did with its answer."""

    mission: str
    text: str
    parts: EntropyParts
    uses: float
    outcome: float | None


class TrainingReport(TypedDict):
    """The written lines by persona, the pairs, and the number of missions left out by the reason."""

    lines: dict[str, int]
    preferences: dict[str, int]
    left_out: dict[str, int]


class AlarmDocument(TypedDict):
    """A figure of the mind's own work that rose on a day beside the days before, in `facts`, and what came of it.

    `lever` is what a trial would vary first, "" if nothing that it could. `mission` is ALFRED's about it, None until it
    ended. The alarm is `standing` until the figure is as usual again.
    """

    figure: str
    day: str
    facts: list[str]
    lever: str
    mission: str | None
    answered: bool
    standing: bool


class HeartbeatDocument(TypedDict):
    """The heartbeat: whether it beats, who said so, when it last did and what, seconds `spent` of a day's `budget`.

    Of calls and tokens likewise: those of today, and the most a day. `alarms` are those that stand, the newest first; a
    guest is told of none.
    """

    on: bool
    by: str | None
    ran: str | None
    did: list[str]
    spent: float
    budget: float
    calls: int
    most_calls: int
    tokens: int
    most_tokens: int
    alarms: list[AlarmDocument]


@final
class EntropyReasons(TypedDict):
    """The missions that a day's value comes of, the lowest first."""

    day: EntropyDay
    missions: list[EntropyMission]


#: The windows of rates: today, the last seven days, and all there is; days are in UTC.
RateSpan: TypeAlias = Literal["day", "week", "all"]


class MissionMedians(TypedDict):
    """The medians of missions that were answered: calls, tokens of prompts and answers, seconds of Ollama."""

    calls: float
    tokens: float
    seconds: float


class CountedRates(TypedDict):
    """The counts of the whole mind in a window, from its counters; `first_token` is a mean in seconds.

    `loads` are those of models that a mission waited for, `made` to `retired` are methods.
    """

    calls: int
    tokens: int
    from_journal: int
    loads: int
    spills: int
    conflicts: int
    made: int
    refused: int
    retired: int
    first_token: float | None


class RateWindow(TypedDict):
    """The rates of a window; those from `looked_at` on are of the newest missions alone, where there are very many.

    `missions` counts those that ended, by status. `verdicts` counts answers by the gate's word for them, those of which
    a draft was `rejected`, `revised` or streamed and `withdrawn`. `sentences` counts those of answers by what carries
    them, `failures` failed attempts by their codes in the journal. `outcome` is the mean of `rated` missions.
    """

    since: str
    missions: dict[str, int]
    looked_at: int
    verdicts: dict[str, int]
    sentences: dict[str, int]
    median: MissionMedians | None
    retries: int
    failures: dict[str, int]
    rated: int
    outcome: float | None
    counted: NotRequired[CountedRates]


class AuditLine(TypedDict):
    """The last audit that found something else than the one before: when, and how many of its checks hold."""

    at: str
    held: int
    checks: int


class RatesDocument(TypedDict):
    """The rates of the mind, or of one user's missions; then nothing is told of what all users have together."""

    windows: dict[RateSpan, RateWindow]
    audit: NotRequired[AuditLine | None]
    cem: list[EntropyDay]
