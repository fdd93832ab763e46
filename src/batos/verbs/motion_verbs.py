"""The verbs by which a person says what an answer was worth, and sees what the mind measures of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from pydantic import Field, model_validator

from batos.protocol.motion_documents import (
    AlarmDocument,
    EntropyDay,
    EntropyFinding,
    EntropyPage,
    EntropyReasons,
    HeartbeatDocument,
    RatedPage,
    value_of,
)
from batos.protocol.wire_messages import Asker, Name, StrictModel
from batos.terminal.console import count_text, local_time
from batos.terminal.layout import Column, card, listing
from batos.verbs.wire_verb import Noun, WireVerb

CEM_NOUN: Final = Noun(
    "cem",
    """Show the Composite Entropy Metric day by day: relevance, diversity, novelty, structure, and outcomes.

    Without a verb: `show`. The metric may point at something; it decides nothing.""",
    default="show",
)

#: The verdicts that a person may give.
_VERDICTS: Final = ("good", "bad")
#: The signs of a line of values from 0 to 1.
_BARS: Final = "▁▂▃▄▅▆▇█"
#: The days that a line shows at most.
_SHOWN: Final = 40
_LABELS: Final[Mapping[str, str]] = {
    "Hrel": "Hrel relevance", "Hcog": "Hcog diversity", "Hsol": "Hsol novelty", "Hstruc": "Hstruc structure",
    "cem": "CEM", "outcome": "outcome",
}  # fmt: skip


class RateArgs(StrictModel):
    """Rate an answer as good or bad; of a person's verdicts on one answer the newest counts.

    MISSION is your `last` if none is named. Verdicts tell the mind what to look at, and are erased with their mission.
    """

    mission: Name = Field(default="last", description="The mission's id or its beginning; `last`, `last-1`.")
    verdict: Literal["good", "bad"] | None = Field(default=None, description="`good` or `bad`; one is to be said.")
    why: str | None = Field(default=None, min_length=1, max_length=500, description="The reason, in a sentence.")
    user: Asker = Field(default=None, description="The owner of the mission; absent: any owner.")

    @model_validator(mode="before")
    @classmethod
    def _take_one_word_as_verdict(cls, given: Any) -> Any:
        """Take the only word of a command line, which stands where the mission may, for the verdict."""
        if isinstance(given, Mapping) and "verdict" not in given and given.get("mission") in _VERDICTS:
            return {**{name: value for name, value in given.items() if name != "mission"}, "verdict": given["mission"]}
        return given


def rated_text(told: RatedPage) -> str:
    """Write what people did with an answer so far."""
    columns: Mapping[str, Column] = {
        "outcome": lambda each: each["act"].replace("_", " "), "value": lambda each: f"{each['value']:+.1f}",
        "by": "by", "why": lambda each: each.get("why", ""),
    }  # fmt: skip
    return listing(told["outcomes"], columns)


class CemArgs(StrictModel):
    """Show the metric of the last days: a line for each part, for their sum, and for what people did with answers.

    A part is the median of a day's missions, from 0 to 1. A day with fewer than five has the value of the day before.
    """

    days: int = Field(default=30, ge=1, le=10_000, description="Most days that are shown.")
    user: Name | None = Field(default=None, description="Only of this user's missions; absent: of all.")


def cem_text(told: EntropyPage) -> str:
    """Write a line of bars for each part, and what is to be looked at."""
    days = told["days"]
    if not days:
        return "Nothing is measured yet: each answer is, when it is remembered."
    rows = [{"part": label, **_line(days[-_SHOWN:], name)} for name, label in _LABELS.items()]
    columns: Mapping[str, Column] = {"part": "part", "days": "bars", "now": "now"}
    first, last = days[-_SHOWN:][0]["day"], days[-1]["day"]
    missions, undone = (sum(each[key] for each in days) for key in ("missions", "undone"))
    counted = f"{count_text(missions, 'mission')}{f', {undone} of them undone' if undone else ''}"
    lines = [f"{first} to {last}, {counted}", listing(rows, columns)]
    if days[-1]["carried"]:
        lines.append(f"{last} has too few missions for a value of its own; five are enough.")
    since = f"since {told['weights_since'][:10]}" if told["weights_since"] else "from the beginning"
    lines.append(f"weights {', '.join(f'{part} {each:.2f}' for part, each in told['weights'].items())}, {since}")
    marks = (f"{each['day']} {each['text']}" for each in told["marks"])
    return "\n".join([*lines, *marks, *map(_finding_text, told["findings"]), f"batos cem why {last}"])


def _line(days: Sequence[EntropyDay], name: str) -> dict[str, str]:
    values = [value_of(day, name) for day in days]
    known = [each for each in values if each is not None]
    bars = "".join(" " if each is None else _bar(each, name) for each in values)
    return {"bars": bars, "now": f"{known[-1]:.2f}" if known else "not defined"}


def _bar(value: float, name: str) -> str:
    share = (value + 1) / 2 if name == "outcome" else value
    return _BARS[min(len(_BARS) - 1, int(share * len(_BARS)))]


def _finding_text(told: EntropyFinding) -> str:
    moved = f"from {told['before']:.2f} to {told['now']:.2f}"
    what = f"has fallen {moved}" if told["kind"] == "dip" else f"stands still at {told['now']:.2f}"
    return f"{_LABELS[told['line']]} {what} since {told['since']}."


class CemWhyArgs(StrictModel):
    """Show the missions that a day's values come of, the lowest first; without a day: of the newest."""

    day: str | None = Field(
        default=None, pattern=r"^\d{4}-\d{2}-\d{2}$", description="The day, in UTC, as 2026-11-30; absent: the newest."
    )
    user: Name | None = Field(default=None, description="Only this user's missions; absent: all.")


def cem_why_text(told: EntropyReasons) -> str:
    """Write the missions of a day, a line each."""

    def part(name: str) -> Column:
        return lambda each: f"{each['parts'][name]:.2f}" if name in each["parts"] else ""

    columns: Mapping[str, Column] = {
        "mission": "mission", "Hrel": part("Hrel"), "Hcog": part("Hcog"), "Hsol": part("Hsol"),
        "uses": lambda each: f"{each['uses']:.1f}",
        "outcome": lambda each: "" if each["outcome"] is None else f"{each['outcome']:+.1f}", "question": "text",
    }  # fmt: skip
    return listing(told["missions"], columns, whole=(0,))


HEARTBEAT_NOUN: Final = Noun(
    "heartbeat",
    """Let the mind wake by itself when something changed and nobody asks; pause that, or let it work now.

    Without a verb: `show`. It is off until you resume it the first time.""",
    default="show",
)


class HeartbeatArgs(StrictModel):
    """Show whether the mind wakes by itself, when it last did, what it did and spent today, and figures that rose."""

    user: Name | None = Field(default=None, description="A guest's own name: no figures of the whole mind are shown.")


class HeartbeatTurnArgs(StrictModel):
    """Let the mind wake by itself from now on.

    The heartbeat works ten minutes after the last question, on mains power, at most `heartbeat_seconds` a day, and
    stops when you ask something.
    """

    user: Asker = Field(default=None, description="The user who says so; absent: the server's own user.")


def heartbeat_text(told: HeartbeatDocument) -> str:
    """Write the state of the heartbeat."""
    seconds = f"{told['spent']:.1f} s of {told['budget']:,.0f} s today"
    calls = f"{told['calls']:,} of {told['most_calls']:,} calls"
    spent = f"{seconds}, {calls}, {told['tokens']:,} of {told['most_tokens']:,} tokens"
    begin = "on" if told["on"] else "off; `batos heartbeat resume` lets the mind wake by itself"
    rows = [("state", begin), ("last", local_time(told["ran"]) if told["ran"] else "never"), ("spent", spent)]
    rows += [("did", each.replace("; ", "\n")) for each in told["did"]]
    return card([*rows, *(("alarm", alarm_text(each)) for each in told["alarms"])])


def alarm_text(told: AlarmDocument) -> str:
    """Write an alarm that stands: what rose, the lever against it, and what came of its mission."""
    answer = f"`batos show {told['mission']}`" if told["answered"] else "ALFRED has not answered yet"
    lever = f" Its lever is {told['lever']}." if told["lever"] else ""
    return f"{told['figure']}: {told['facts'][0]}{lever} {answer}"


HEARTBEAT: Final = WireVerb("heartbeat", HeartbeatArgs, "heartbeat show", heartbeat_text)
HEARTBEAT_RESUME: Final = WireVerb(
    "heartbeat_resume", HeartbeatTurnArgs, "heartbeat resume", heartbeat_text, governs=True
)
HEARTBEAT_PAUSE: Final = WireVerb(
    "heartbeat_pause", HeartbeatTurnArgs, "heartbeat pause", heartbeat_text, governs=True,
    about="Let the mind no more wake by itself; what it is doing ends at its next step.",
)  # fmt: skip
HEARTBEAT_NOW: Final = WireVerb(
    "heartbeat_now", StrictModel, "heartbeat now", heartbeat_text, governs=True,
    about="Let the mind do its duties now, whatever changed and was spent; it stops when you ask something.",
)  # fmt: skip
RATE: Final = WireVerb(
    "rate", RateArgs, "rate [MISSION] [VERDICT]", rated_text,
    examples=("batos rate good", 'batos rate last-1 bad --why "It names the wrong year."'),
)  # fmt: skip
CEM: Final = WireVerb("cem", CemArgs, "cem show", cem_text, reads=True)
CEM_WHY: Final = WireVerb("cem_why", CemWhyArgs, "cem why [DAY]", cem_why_text, reads=True)
