"""Rules of time: moments only grow, clock changes are a zone's own, and what was missed is counted."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from batos.agency.schedule_rules import (
    MOST,
    Rule,
    changes_clock,
    find_due,
    list_next,
    list_upcoming,
    local_zone,
    next_after,
    parse,
)
from batos.protocol.errors import BriefError

NOW = datetime(2026, 11, 30, 17, tzinfo=UTC)  # a Monday, 18:00 in Berlin
BERLIN = "Europe/Berlin"
#: Zones with clock changes of an hour and of half an hour, on both sides of the equator, and one without.
ZONES = (BERLIN, "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Tokyo")


def cron(line: str, zone: str = BERLIN) -> Rule:
    """A rule of a line as cron has it."""
    return parse(line, zone, NOW)


@pytest.mark.parametrize(
    ("said", "kept", "following"),
    [
        ("0 7 * * 1-5", "0 7 * * 1-5", "2026-12-01T07:00:00+01:00"),
        ("every monday 9:00", "0 9 * * 1", "2026-12-07T09:00:00+01:00"),
        ("every sunday at 9pm", "0 21 * * 0", "2026-12-06T21:00:00+01:00"),
        ("every day at 9", "0 9 * * *", "2026-12-01T09:00:00+01:00"),
        ("daily 7:15", "15 7 * * *", "2026-12-01T07:15:00+01:00"),
        ("weekdays 8:30", "30 8 * * 1-5", "2026-12-01T08:30:00+01:00"),
        ("every  30 min", "every 30 minutes", "2026-11-30T18:30:00+01:00"),
        ("every hour", "every 1 hour", "2026-11-30T19:00:00+01:00"),
        ("once tomorrow 9:00", "once 2026-12-01 09:00", "2026-12-01T09:00:00+01:00"),
        ("tomorrow 9:00", "once 2026-12-01 09:00", "2026-12-01T09:00:00+01:00"),
        ("in 2 hours", "once 2026-11-30 20:00", "2026-11-30T20:00:00+01:00"),
        ("friday at 6pm", "once 2026-12-04 18:00", "2026-12-04T18:00:00+01:00"),
        ("once friday 6pm", "once 2026-12-04 18:00", "2026-12-04T18:00:00+01:00"),
        ("once monday 12am", "once 2026-12-07 00:00", "2026-12-07T00:00:00+01:00"),
        ("once 2026-12-01T09:00Z", "once 2026-12-01 10:00", "2026-12-01T10:00:00+01:00"),
        ("once in 2 hours", "once 2026-11-30 20:00", "2026-11-30T20:00:00+01:00"),
        ("once 17:59", "once 2026-12-01 17:59", "2026-12-01T17:59:00+01:00"),
        ("once 18:01", "once 2026-11-30 18:01", "2026-11-30T18:01:00+01:00"),
        ("once 2027-03-28 02:30", "once 2027-03-28 03:30", "2027-03-28T03:30:00+02:00"),  # there is no 2:30
    ],
)
def test_what_people_write(said: str, kept: str, following: str) -> None:
    """A rule is kept in one form, which means the same."""
    rule = parse(said, BERLIN, NOW)
    assert rule.text == kept
    assert [each.isoformat() for each in list_next(rule, NOW, 1)] == [following]
    assert parse(kept, BERLIN, NOW) == rule


@pytest.mark.parametrize(
    "said",
    [
        "", "noon", "every", "every moon 9:00", "every 10 s", "every 2 years", "on", "on fire", "once", "once 25:00",
        "once 9:75", "once 13pm", "once yesterday", "once today 3:00", "once 2026-02-30", "60 7 * * *", "* * * *",
        "* * * * * *", "on file notes", "on idle soon", "every 999999 weeks", "\0", "0 0 31 2 *",
        "once in 999999 weeks", "once 0001-01-01",
    ],
)  # fmt: skip
def test_what_says_no_time(said: str) -> None:
    """The error names the field and says what may be written."""
    with pytest.raises(BriefError) as refused:
        parse(said, BERLIN, NOW)
    assert refused.value.field == "when"
    assert refused.value.remedy


@pytest.mark.parametrize("said", ["yesterday 9:00", "once yesterday 9:00", "2026-11-30 17:59", "once today 3:00"])
def test_a_moment_that_has_passed(said: str) -> None:
    """It is no riddle what was wrong."""
    with pytest.raises(BriefError, match="has passed"):
        parse(said, BERLIN, NOW)


def test_no_such_zone() -> None:
    """A zone that this machine does not know is named."""
    for zone in ("Mars/Olympus", "", "../etc/passwd", "Europe"):
        with pytest.raises(BriefError) as refused:
            parse("0 7 * * *", zone, NOW)
        assert refused.value.field == "zone"


def test_the_machines_zone(tmp_path: Path) -> None:
    """It comes of TZ, else of the link that the system keeps, else it is UTC."""
    link = tmp_path / "localtime"
    link.symlink_to(tmp_path / "zoneinfo" / "Europe" / "Berlin")
    assert local_zone({"TZ": ":Asia/Tokyo"}, link) == "Asia/Tokyo"
    assert local_zone({"TZ": "nowhere"}, link) == BERLIN
    assert local_zone({}, link) == BERLIN
    assert local_zone({}, tmp_path / "none") == "UTC"


def test_events_have_no_moments() -> None:
    """When files change, or nobody asks, is not known before."""
    assert parse("on idle", BERLIN, NOW).seconds == 1_800
    for said in ("on idle 10 minutes", "on file /tmp"):
        rule = parse(said, BERLIN, NOW)
        assert next_after(rule, NOW) is None
        assert find_due(rule, NOW, NOW + timedelta(days=3)).run == ()


minutes = st.integers(0, 59).map(str)
hours = st.one_of(st.just("*"), st.integers(0, 23).map(str), st.sampled_from(["*/2", "1-3", "0,12"]))
lines = st.builds(
    lambda minute, hour, day, week: f"{minute} {hour} {day} * {week}",
    st.one_of(minutes, st.sampled_from(["*", "*/5", "*/30"])), hours,
    st.one_of(st.just("*"), st.integers(1, 28).map(str)), st.one_of(st.just("*"), st.integers(0, 6).map(str)),
)  # fmt: skip
moments = st.integers(0, 40 * 365 * 86_400).map(lambda second: datetime(2000, 1, 1, tzinfo=UTC) + timedelta(0, second))
rules = st.one_of(
    st.builds(cron, lines, st.sampled_from(ZONES)),
    st.integers(60, 10**6).map(lambda seconds: Rule("every", f"every {seconds} seconds", BERLIN, seconds=seconds)),
)


@given(rules, moments)
def test_moments_only_grow(rule: Rule, after: datetime) -> None:
    """The next moment is later than that after which it is the next, in every zone and around every clock change."""
    found = list_next(rule, after, 20)
    assert found
    assert all(earlier < later for earlier, later in zip([after, *found], found, strict=False))


@given(st.sampled_from(ZONES[:4]), st.integers(2001, 2039), st.integers(0, 365 * 24 * 60))
def test_a_time_of_day_comes_once_a_day(zone: str, year: int, shift: int) -> None:
    """Also on the day on which the clock leaves it out, and on that on which it comes twice."""
    at = datetime(year, 1, 1, tzinfo=UTC) + timedelta(minutes=shift)
    local = at.astimezone(ZoneInfo(zone))
    days = [each.date() for each in list_next(cron(f"{local.minute} {local.hour} * * *", zone), at, 40)]
    assert len(set(days)) == len(days)
    assert (days[-1] - days[0]).days == len(days) - 1


@given(rules, moments, st.floats(0, 10 * 86_400), st.sampled_from(["none", "one", "all"]))
@example(Rule("every", "every 1 minute", BERLIN, seconds=60), NOW, 686_401.0, "none")
@example(cron("* * * * *"), NOW, 686_401.0, "all")
def test_all_that_came_is_run_or_counted(rule: Rule, last: datetime, away: float, catch_up: str) -> None:
    """Between two looks every moment is run or left out, none twice, and what comes next is not past."""
    now = last + timedelta(seconds=away)
    due = find_due(rule, last, now, catch_up)  # type: ignore[arg-type]
    came = [each for each in list_next(rule, last, 15_000) if each <= now]
    assert len(due.run) + due.skipped == len(came)
    assert list(due.run) == sorted(set(due.run))
    assert set(due.run) <= set(came)
    assert due.next is None or due.next > now
    assert len(due.run) <= {"none": 1, "one": 1, "all": MOST}[catch_up]
    if came and catch_up != "none":
        assert due.run[-1] == came[-1] == due.newest
    again = find_due(rule, due.newest or last, now, catch_up)  # type: ignore[arg-type]
    assert (again.run, again.skipped, again.newest) == ((), 0, None)


@given(rules, moments, st.floats(0, 10 * 86_400))
def test_a_clock_that_is_set_back_makes_nothing_due(rule: Rule, last: datetime, back: float) -> None:
    """What was done is not done again."""
    due = find_due(rule, last, last - timedelta(seconds=back))
    assert (due.run, due.skipped, due.newest) == ((), 0, None)


def test_three_days_asleep() -> None:
    """Of 69 hours missed one is run and 68 are told; without making up only a fresh one is."""
    rule = parse("every hour", BERLIN, NOW)
    assert find_due(rule, NOW, NOW + timedelta(hours=69))[:2] == ((NOW + timedelta(hours=69),), 68)
    late = NOW + timedelta(hours=69, minutes=11)
    assert find_due(rule, NOW, late, "none")[:2] == ((), 69)
    assert find_due(rule, NOW, late, "all").skipped == 69 - MOST


def test_away_for_years_from_something_frequent() -> None:
    """The newest moment is run, without counting each of a million and a half; those of a pause are all known."""
    due = find_due(cron("* * * * *"), NOW - timedelta(days=1_100), NOW)
    assert due.run == (NOW,)
    assert due.skipped > 10_000
    minutely = parse("every minute", BERLIN, NOW)
    assert find_due(minutely, NOW - timedelta(days=1_100), NOW)[:2] == ((NOW,), 1_100 * 1_440 - 1)


def test_whose_clock_changes() -> None:
    """A zone without clock changes has none."""
    assert changes_clock(cron("0 7 * * *"), NOW)
    assert not changes_clock(cron("0 7 * * *", "Asia/Tokyo"), NOW)


def test_a_pause_is_counted_from_the_last_moment() -> None:
    """Who looks in between sees the same next moment."""
    rule = parse("every 30 minutes", "UTC", NOW)
    (first, *_) = list_upcoming(rule, NOW, NOW + timedelta(minutes=50))
    assert first == NOW + timedelta(minutes=60)
    assert list_upcoming(rule, NOW, NOW - timedelta(hours=5))[0] == NOW + timedelta(minutes=30)
    assert list_upcoming(replace(cron("0 7 * * *"), zone="Europe/Nowhere"), NOW, NOW) == []


def test_a_folder_with_several_blanks_in_its_name() -> None:
    """It is another one than that with one."""
    assert parse("On  file  /tmp/a  b", "UTC", NOW).folder == "/tmp/a  b"
