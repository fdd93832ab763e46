"""The verbs of motion: a verdict as one word or with its mission, and the metric drawn in lines."""

from __future__ import annotations

import pytest

from batos.protocol.errors import ProtocolError
from batos.protocol.motion_documents import (
    AlarmDocument,
    EntropyDay,
    EntropyFinding,
    EntropyMark,
    EntropyMission,
    EntropyPage,
    EntropyParts,
    EntropyReasons,
    HeartbeatDocument,
    OutcomeDocument,
    RatedPage,
)
from batos.verbs.all_verbs import read_args
from batos.verbs.motion_verbs import CEM, CEM_WHY, HEARTBEAT, RATE, RateArgs


def test_one_word_is_the_verdict_of_the_last_answer() -> None:
    """`rate good` and `rate last-1 good` are read alike; another word is refused."""
    assert read_args("rate", {"mission": "good"}) == RateArgs(verdict="good")
    assert read_args("rate", {"mission": "last-1", "verdict": "bad"}) == RateArgs(mission="last-1", verdict="bad")
    with pytest.raises(ProtocolError) as refused:
        read_args("rate", {"mission": "last", "verdict": "fine"})
    assert refused.value.field == "args.verdict"


def test_the_outcomes_of_an_answer_are_a_table() -> None:
    """Each act with its value, and the reason that a person gave."""
    act = OutcomeDocument(act="rated_bad", value=-1.0, weight=1.0, at="", by="ann", why="Wrong year.")
    told: RatedPage = {"mission": "m-1", "outcome": -1.0, "outcomes": [act]}
    assert RATE.in_words(told).splitlines()[1].split() == ["rated", "bad", "-1.0", "ann", "Wrong", "year."]


def day(name: str, parts: EntropyParts, outcome: float | None = None) -> EntropyDay:
    """A day."""
    return EntropyDay(day=name, missions=6, carried=False, parts=parts, cem=0.5, outcome=outcome, undone=1)


def test_the_metric_is_a_line_for_each_part() -> None:
    """Low and high bars, a gap where a part is not defined, the newest value, and what fell."""
    days = [day("2026-11-29", {"Hrel": 0.0}), day("2026-11-30", {"Hrel": 1.0, "Hcog": 0.5}, -1.0)]
    finding = EntropyFinding(line="Hrel", kind="dip", since="2026-11-29", before=0.9, now=0.4)
    mark: EntropyMark = {"day": "2026-11-30", "text": "kept: mind.temperature (t-1)"}
    page: EntropyPage = {
        "days": days, "marks": [mark], "weights": {"Hrel": 0.4}, "weights_since": None, "findings": [finding],
    }  # fmt: skip
    lines = CEM.in_words(page).splitlines()
    assert lines[0] == "2026-11-29 to 2026-11-30, 12 missions, 2 of them undone"
    assert lines[2].split() == ["Hrel", "relevance", "▁█", "1.00"]
    assert lines[3].split() == ["Hcog", "diversity", "▅", "0.50"]
    assert lines[4].endswith("not defined")
    assert "outcome" in lines[7]
    assert "▁" in lines[7]
    assert lines[8:] == [
        "weights Hrel 0.40, from the beginning",
        "2026-11-30 kept: mind.temperature (t-1)",
        "Hrel relevance has fallen from 0.90 to 0.40 since 2026-11-29.",
        "batos cem why 2026-11-30",
    ]
    page["weights_since"] = "2026-11-28T08:00:00.000Z"
    assert "weights Hrel 0.40, since 2026-11-28" in CEM.in_words(page)


def test_before_the_first_answer_nothing_is_drawn() -> None:
    """The text says so; the missions of a day are a table."""
    empty: EntropyPage = {"days": [], "marks": [], "weights": {}, "weights_since": None, "findings": []}
    assert CEM.in_words(empty).startswith("Nothing is measured yet")
    mission = EntropyMission(mission="m-1", text="Who?", parts={"Hrel": 0.5}, uses=1.0, outcome=None)
    told: EntropyReasons = {"day": day("2026-11-30", {}), "missions": [mission]}
    assert CEM_WHY.in_words(told).splitlines()[1].split() == ["m-1", "0.50", "1.0", "Who?"]


def test_alarms_stand_below_what_the_heartbeat_did() -> None:
    """A line each, with the mission to read, or that there is no answer yet."""
    alarm = AlarmDocument(
        figure="spills", day="2026-11-30", facts=["On 2026-11-30 there were 9 spills.", "Before, none."], lever="",
        mission="m-1", answered=True, standing=True,
    )  # fmt: skip
    told = HeartbeatDocument(
        on=True, by="ann", ran=None, did=["alarms: spills rose"], spent=1.0, budget=1_200.0, calls=1, most_calls=300,
        tokens=90, most_tokens=1_000, alarms=[alarm, {**alarm, "figure": "loads", "mission": None, "answered": False}],
    )  # fmt: skip
    assert [line.split(maxsplit=1) for line in HEARTBEAT.in_words(told).splitlines()[3:]] == [
        ["did", "alarms: spills rose"],
        ["alarm", "spills: On 2026-11-30 there were 9 spills. `batos show m-1`"],
        ["alarm", "loads: On 2026-11-30 there were 9 spills. ALFRED has not answered yet"],
    ]
