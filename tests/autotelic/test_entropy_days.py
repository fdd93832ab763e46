"""The metric by day: medians of the day's missions, and what is named of a line of days."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from tests.autotelic.test_answer_measures import ASKED, ask, winding
from tests.history.test_as_of_past_questions import Door

from batos.autotelic import entropy_days
from batos.protocol.errors import NotFound
from batos.protocol.motion_documents import EntropyDay, EntropyParts
from batos.testing import scripted_uvm
from batos.uvm import Seams


class Days:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


async def test_a_day_has_the_medians_of_its_missions(tmp_path: Path) -> None:
    """A day with too few of them has the value of the day before; a day without any is not there."""
    clock = Days()
    async with scripted_uvm(tmp_path, winding(), seams=Seams(clock=clock)) as uvm:
        for number in range(entropy_days.LEAST):
            await ask(uvm, f"{ASKED} {number}")
        clock.now += timedelta(days=2)
        await ask(uvm, "Who cries over the harbour?")
        door = Door(uvm)
        page = await door("cem")
        assert [(each["day"], each["missions"], each["carried"]) for each in page["days"]] == [
            ("2026-11-01", entropy_days.LEAST, False), ("2026-11-03", 1, True),
        ]  # fmt: skip
        assert page["days"][0]["parts"] == page["days"][1]["parts"]
        assert page["days"][0]["cem"] is not None
        why = await door("cem_why", day="2026-11-03", user="tester")
        assert [each["text"] for each in why["missions"]] == ["Who cries over the harbour?"]
        assert await door("cem_why", user="tester") == why
        assert (await door("cem", user="bob"))["days"] == []
        with pytest.raises(NotFound):
            await door("cem_why", day="2026-11-03", user="bob")
        with pytest.raises(NotFound):
            await door("cem_why", day="2026-11-02")


def day(number: int, *, hcog: float = 0.6, outcome: float | None = 0.8, carried: bool = False) -> EntropyDay:
    """A day of November and after."""
    name = (date(2026, 11, 1) + timedelta(days=number)).isoformat()
    parts = EntropyParts(Hrel=0.9, Hcog=hcog)
    return EntropyDay(day=name, missions=9, carried=carried, parts=parts, cem=0.8, outcome=outcome, undone=0)


def test_what_falls_is_named_with_its_first_day() -> None:
    """A cognitive rut: voices that say the same lower diversity, and no other line is named."""
    days = [day(number, hcog=0.6 + 0.02 * (number % 2)) for number in range(30)]
    days += [day(number, hcog=0.3) for number in range(30, 34)]
    (found,) = entropy_days.find_decay(days)
    assert (found["line"], found["kind"], found["since"]) == ("Hcog", "dip", "2026-12-01")
    assert (found["before"], found["now"]) == (0.61, 0.3)


def test_a_standstill_is_named_where_there_is_room() -> None:
    """Low and flat is named, high and flat is not; days without a value of their own count for nothing."""
    low = [day(number, hcog=0.1 + 0.02 * (number % 2)) for number in range(60)]
    assert [(each["line"], each["kind"]) for each in entropy_days.find_decay(low)] == [("Hcog", "stagnation")]
    assert list(entropy_days.find_decay([day(number) for number in range(60)])) == []
    assert list(entropy_days.find_decay([day(number, hcog=0.1, carried=True) for number in range(60)])) == []
