"""Decides what is to be done about a schedule, from its record, its newest mission and the time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from batos.agency import schedule_rules
from batos.agency.records.schedule_records import ScheduleData
from batos.agency.schedule_rules import Due, Rule
from batos.image.records import OPEN
from batos.protocol.errors import BriefError, message_of

#: A schedule that is done with moments so far ahead did them while the clock was wrong.
AHEAD: Final = timedelta(days=31)
#: Seconds before a mission that failed is run again; then its schedule is parked.
BACKOFF: Final = (60.0, 300.0, 1_800.0)


class ScheduleStep(NamedTuple):
    """The work that one schedule has now. `failures` above 0: its newest mission is run again.

    `clock` is the moment from which a schedule waits that was done with moments far ahead of it.
    """

    name: str
    moments: tuple[datetime, ...] = ()
    due: Due | None = None
    failures: int = 0
    retry: datetime | None = None
    parks: str = ""
    ends: bool = False
    clock: datetime | None = None


def decide(schedule: ScheduleData, word: str | None, now: datetime, quiet: float | None) -> ScheduleStep | None:
    """Return what is to be done about a schedule, whose newest mission has this status; None: nothing.

    `quiet` are the seconds in which nobody asked anything; None where that does not matter any more.
    """
    if schedule["state"] != "active":
        return None
    if max(datetime.fromisoformat(at) for at in (schedule["last"], schedule["retry"]) if at) - now > AHEAD:
        return ScheduleStep(schedule["id"], clock=now)
    if word == "failed" and schedule["mission"] != schedule["settled"]:
        return _after_failure(schedule, now)
    rule, name = Rule(*schedule["rule"]), schedule["id"]
    try:
        due = _due_by(rule, schedule, now, quiet)
    except BriefError as error:  # words of it were erased, or this machine does not know its zone
        return ScheduleStep(name, parks=message_of(error))
    if due is None or due.newest is None:
        is_over = rule.kind == "once" and due is not None and due.next is None and word not in OPEN
        return ScheduleStep(name, ends=True) if is_over else None
    if word in OPEN:  # the one before is under way
        return ScheduleStep(name, (), due._replace(run=(), skipped=due.skipped + len(due.run)))
    return ScheduleStep(name, due.run, due)


def _due_by(rule: Rule, schedule: ScheduleData, now: datetime, quiet: float | None) -> Due | None:
    if rule.kind == "idle":
        is_due = quiet is not None and quiet >= rule.seconds
        return Due((now,), 0, now, None) if is_due else None
    if rule.kind == "file":
        return None
    return schedule_rules.find_due(rule, datetime.fromisoformat(schedule["last"]), now, schedule["catch_up"])


def _after_failure(schedule: ScheduleData, now: datetime) -> ScheduleStep | None:
    """Return the step after the newest mission has failed: it is run again after a pause, and later no more."""
    name, failures, retry = schedule["id"], schedule["failures"], schedule["retry"]
    if failures >= len(BACKOFF) and retry is None:
        return ScheduleStep(name, parks=f"its mission failed {failures + 1} times: {schedule['mission']}")
    if retry is None:
        return ScheduleStep(name, failures=failures, retry=now + timedelta(seconds=BACKOFF[failures]))
    return ScheduleStep(name, failures=failures + 1) if datetime.fromisoformat(retry) <= now else None
