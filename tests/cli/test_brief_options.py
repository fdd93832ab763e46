"""What the options of ask, submit and chat make of a brief."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from batos.cli.brief_options import BriefOptions, bounds, brief_options, moment
from batos.config import Settings
from batos.protocol.brief import parse
from batos.protocol.errors import BriefError

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


def wished(*arguments: str) -> BriefOptions:
    """What a verb with the options of a brief was given."""
    found: list[BriefOptions] = []

    @click.command()
    @brief_options
    def verb(options: BriefOptions) -> None:
        found.append(options)

    ran = CliRunner().invoke(verb, arguments, catch_exceptions=False, standalone_mode=False)
    if ran.exception is not None:
        raise ran.exception
    return found[0]


def brief(*arguments: str) -> dict[str, Any]:
    """The brief that the options make of a question."""
    return wished(*arguments).brief("Why?", Settings(home=Path("nowhere"), user="ada"), "batos ask")


def test_a_question_alone() -> None:
    """Nothing is said that was not given: text, who asks, and through which door."""
    assert brief() == {"text": "Why?", "user": "ada", "origin": {"door": "cli", "client": "batos ask"}}


def test_every_option_is_a_field_of_the_brief() -> None:
    """Each stands in its place, and the whole is a valid brief."""
    mission = f"m-{'0' * 26}"
    made = brief(
        *("--effort", "council", "--persona", "brick", "--combine", "vote", "--priority", "-3", "--wait-ollama"),
        "--only-memory",
        *("--install", "ask", "--interpret", "never"),
        *("--budget", "calls=5,seconds=1.5", "--ancestor", mission, "--reply-to", mission),
        *("--conversation", f"c-{'0' * 26}", "--deadline", "2026-11-21T10:30+01:00"),
    )
    del made["origin"]
    assert made == {
        "text": "Why?",
        "user": "ada",
        "effort": "council",
        "persona": "BRICK",
        "policy": {
            "combine": "vote",
            "install": "ask",
            "interpret": "never",
            "wait_ollama": True,
            "only_memory": True,
        },
        "priority": -3,
        "budget": {"calls": 5, "seconds": 1.5},
        "ancestor": mission,
        "in_reply_to": mission,
        "conversation": f"c-{'0' * 26}",
        "deadline": "2026-11-21T09:30:00.000Z",
    }
    assert parse(made).model_dump(mode="json", exclude_none=True).items() >= made.items()


def test_how_it_is_shown_is_no_part_of_the_brief() -> None:
    """Files, voices and the stream stand beside it."""
    options = wished("--file", "a.txt", "--file", "-", "--voices", "--no-stream")
    assert (options.paths, options.voices, options.stream, dict(options.fields)) == (("a.txt", "-"), True, False, {})
    assert wished().stream is None


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("90s", timedelta(seconds=90)),
        ("5m", timedelta(minutes=5)),
        ("1.5h", timedelta(hours=1.5)),
        ("2d", timedelta(2)),
    ],
)
def test_a_deadline_is_a_span_from_now(text: str, span: timedelta) -> None:
    """Seconds, minutes, hours and days."""
    assert datetime.fromisoformat(moment(text, NOW)) == NOW + span


@given(st.integers(-(10**15), 10**15), st.integers(-720, 840))
def test_a_deadline_is_a_moment(microseconds: int, minutes: int) -> None:
    """In whatever zone it is said it is the same moment in UTC, to the millisecond."""
    said = (NOW + timedelta(microseconds=microseconds)).astimezone(timezone(timedelta(minutes=minutes)))
    found = datetime.fromisoformat(moment(said.isoformat(), NOW))
    assert timedelta(0) <= said - found < timedelta(milliseconds=1)
    assert found.tzinfo == UTC


@pytest.mark.parametrize("text", ["", "5", "soon", "-5m", "5w", "2026-11-21T09:30", "2026-13-01T00:00Z", "999999999d"])
def test_what_is_no_deadline(text: str) -> None:
    """It is refused with its name and what there is."""
    with pytest.raises(BriefError, match="deadline: ") as caught:
        moment(text, NOW)
    assert caught.value.field == "deadline"
    assert "--deadline 90s (or 5m, 2h, 1d)" in caught.value.remedy


@pytest.mark.parametrize(
    "text", ["", "5", "calls", "calls=many", "calls=1,calls=2", "calls=1.5", "euros=5", "seconds=x"]
)
def test_what_is_no_budget(text: str) -> None:
    """It is refused with the part that is wrong."""
    with pytest.raises(BriefError, match="budget: ") as caught:
        bounds(text)
    assert caught.value.field == "budget"


def test_an_address_is_not_fetched() -> None:
    """It is named whole, with the command that brings what stands there."""
    with pytest.raises(BriefError, match=r"https://example\.com/a\.txt is an address") as caught:
        wished("--file", "https://example.com/a.txt").files(Settings(home=Path("nowhere")), print)
    assert "curl -sL https://example.com/a.txt | batos ask" in caught.value.remedy
