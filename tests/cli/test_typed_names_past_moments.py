"""The option --as-of: moments as people say them, and the verbs that ask about the past, as a person types them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import click
import pytest
from tests.cli.processes import User

from batos.cli.typed_names import past_moment

NOW = datetime(2026, 11, 26, 12, 0, tzinfo=UTC)


def local(text: str) -> str:
    """A moment of this machine's own time, as the protocol takes it."""
    return datetime.fromisoformat(text).astimezone(UTC).isoformat(timespec="milliseconds")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("9:00", "2026-11-26T09:00:00"),
        ("today 9:05", "2026-11-26T09:05:00"),
        ("yesterday 23:59:30", "2026-11-25T23:59:30"),
        ("2026-11-25T09:00", "2026-11-25T09:00:00"),
        ("2026-11-25 09:00", "2026-11-25T09:00:00"),
        ("2026-11-25", "2026-11-25T00:00:00"),
    ],
)
def test_a_time_is_one_of_this_machine(said: str, meant: str) -> None:
    """Without a time zone."""
    assert past_moment(said, NOW) == local(meant)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("3 days ago", "2026-11-23T13:30:00"),
        ("yesterday", "2026-11-25T13:30:00"),
        ("a week ago", "2026-11-19T13:30:00"),
        ("2 years ago", "2024-11-26T13:30:00"),
        ("1y ago", "2025-11-26T13:30:00"),
        ("a year ago", "2025-11-26T13:30:00"),
        ("9 months ago", "2026-02-26T13:30:00"),
        ("11 MONTHS ago", "2025-12-26T13:30:00"),
    ],
)
def test_a_span_counts_back_by_the_calendar(said: str, meant: str) -> None:
    """Days, weeks, months and years, to the same time of the day on the wall."""
    noon = datetime.fromisoformat("2026-11-26T13:30:00").astimezone()
    assert past_moment(said, noon) == local(meant)


def test_a_month_that_is_too_short_ends_with_its_last_day() -> None:
    """Also that of a leap year."""
    assert past_moment("1 month ago", datetime.fromisoformat("2026-03-31T08:00:00").astimezone()) == local(
        "2026-02-28T08:00:00"
    )
    assert past_moment("1 year ago", datetime.fromisoformat("2028-02-29T08:00:00").astimezone()) == local(
        "2027-02-28T08:00:00"
    )


def test_a_time_ago_and_what_is_no_time() -> None:
    """Spans count back from now; a mission or a commit is left to the server."""
    assert past_moment("12 min ago", NOW) == past_moment("12m ago", NOW)  # as lists say it
    assert past_moment("90 minutes ago", NOW) == (NOW - timedelta(minutes=90)).isoformat(timespec="milliseconds")
    assert past_moment("yesterday", NOW) == (NOW - timedelta(days=1)).isoformat(timespec="milliseconds")
    assert past_moment("2026-11-25T09:00Z", NOW) == "2026-11-25T09:00:00.000+00:00"
    for name in ("last", "last-2", "m-01ABC", "tid:0x3d1"):
        assert past_moment(name, NOW) == name
    for said in ("", "soon", "25:00", "9:99", "tomorrow 9:00", "ago", "3000 years ago", "2 moons ago", "an ago"):
        with pytest.raises(click.BadParameter):
            past_moment(said, NOW)


def test_every_verb_that_reads_asks_about_the_past(user: User) -> None:
    """Without a server: what came later is not there, and the moment is said."""
    assert user.run("ask", "What holds a pier?", "--effort", "reflex").code == 0
    first = user.run("show", "last", "--json").document["data"]["id"]
    assert user.run("remember", "The pier of Orm has nine posts.").code == 0
    assert user.run("ask", "What else holds a pier?", "--effort", "reflex").code == 0
    shown = user.run("show", "last", "--as-of", first)
    assert (shown.code, first in shown.out, "As of 20" in shown.err) == (0, True, True)
    then = user.run("memories", "--as-of", first, "--json").document["data"]
    assert then["as_of"]["mission"] == first
    assert not any("Orm" in each["title"] for each in then["memories"])
    assert any("Orm" in each["title"] for each in user.run("memories", "--json").document["data"]["memories"])
    assert user.run("recall", "nine posts", "--as-of", first, "--json").document["data"]["recalled"] == []
    for arguments in (
        ("inspect",),
        ("inspect", "last"),
        ("method", "list"),
        ("method", "show", "brick_prototype_obj.x"),
    ):
        ran = user.run(*arguments, "--as-of", first, "--json")
        assert ran.code == (2 if arguments[-1].endswith(".x") else 0), ran.err
    asked = user.run("ask", "Who was asked?", "--effort", "reflex", "--as-of", first)
    assert (asked.code, "the image has not" in asked.err) == (0, True), asked.err
    assert "batos show m-" in asked.err, "`last` is another mission"
    told = user.run("ask", "Who was asked?", "--effort", "reflex", "--as-of", first, "--json").out.splitlines()[-1]
    mission = json.loads(told)["data"]["id"]
    assert user.run("show", mission, "--prompts").code == 0
    assert user.run("wait", mission, "--json").document["data"]["as_of"]["mission"] == first
    assert len(user.run("missions", "--json").document["data"]["missions"]) == 2
    found = {each["id"]: each["ok"] for each in user.run("doctor", "--json").document["data"]["findings"]}
    assert found["image.moment"], "the image lacks no mission of the journal's"
    wrong = user.run("show", "last", "--as-of", "2001-01-01", "--json")
    assert (wrong.code, wrong.document["error"]["code"]) == (2, "packed_away")
    assert user.run("show", "last", "--as-of", "tomorrow").code == 2
