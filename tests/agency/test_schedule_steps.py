"""What is to be done about a schedule: a moment waits for nobody, but for its own mission."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from batos.agency import schedule_rules
from batos.agency.records.schedule_records import ScheduleData
from batos.agency.schedule_steps import decide
from batos.image.ids import iso

START = datetime(2026, 11, 30, 17, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_a_moment_is_left_out_while_the_one_before_is_under_way() -> None:
    """It is counted; when the one before has ended, the next moment begins."""
    rule = schedule_rules.parse("every hour", "UTC", START)
    kept = ScheduleData(
        id="s-1", user="tester", rule=rule.as_data(), work="ask", text="?", folder="", catch_up="one", brief={},
        state="active", reason="", made_at=iso(START), last=iso(START), next=None, retry=None, runs=1, skipped=0,
        failures=0, mission="m-1", settled=None, seen=None,
    )  # fmt: skip
    for word in ("queued", "running", "waiting", "paused", "parked"):
        step = decide(kept, word, START + HOUR, None)
        assert step is not None
        assert step.due is not None
        assert (step.moments, step.due.skipped, step.due.newest) == ((), 1, START + HOUR)
    for ended in ("done", "cancelled", "undone", None):
        step = decide(kept, ended, START + HOUR, None)
        assert step is not None
        assert step.moments == (START + HOUR,)
    assert decide(kept, "done", START, None) is None
