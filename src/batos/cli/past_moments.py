"""The option --as-of: a past moment as people say it, in the time of this machine."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click

from batos.cli.shared_options import given_name
from batos.cli.verb_options import VerbCall
from batos.terminal.short_names import moment_text

_DAYS: Final = {"today": 0, "yesterday": 1}
_CLOCK = re.compile(r"(?:(today|yesterday)(?:\s+|$))?(?:([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?)?", re.IGNORECASE)
_AGO = re.compile(
    r"([0-9]{1,6}|an?)\s*(s|m|h|d|w|y|seconds?|mins?|minutes?|hours?|days?|weeks?|months?|years?)\s+ago", re.IGNORECASE
)
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_MONTHS: Final = {"month": 1, "months": 1, "y": 12, "year": 12, "years": 12}
_FORMS: Final = "it is no moment: give 9:00, yesterday 9:00, 2h ago, 2026-11-26T09:00, a mission, or tid:0x..."


def past_moment(value: str, now: datetime | None = None) -> str:
    """Return a moment as the protocol takes it: a mission or a commit as it stands, a time in UTC.

    A time without a day is one of today. A day without a time is its beginning; yesterday alone is 24 hours ago.

    >>> now = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
    >>> past_moment("2h ago", now), past_moment("tid:0x2a", now)
    ('2026-01-02T10:00:00.000+00:00', 'tid:0x2a')

    Raises: click.BadParameter: it is none.
    """
    text = given_name(value).strip()
    if re.match(r"(?:m-|tid:|last(?:-[0-9]+)?$)", text, re.IGNORECASE):
        return text
    here = (now or datetime.now(UTC)).astimezone()
    try:
        found = _parse_spoken(text, here) or datetime.fromisoformat(text)
        return found.astimezone(UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(_FORMS) from error


def _parse_spoken(text: str, here: datetime) -> datetime | None:
    """Return a moment that is said from now; None: it is not said so. Raises: ValueError: no such time of day."""
    ago = _AGO.fullmatch(text)
    if ago:
        count, unit = int(ago[1]) if ago[1].isdecimal() else 1, ago[2].lower()
        if unit in _MONTHS:
            return _months_before(here, count * _MONTHS[unit])
        return here - timedelta(**{_UNITS[unit[0]]: count})
    clock = _CLOCK.fullmatch(text)
    if not clock or not text:
        return None
    day = here - timedelta(days=_DAYS[(clock[1] or "today").lower()])
    if clock[2] is None:
        return day
    at = day.replace(hour=int(clock[2]), minute=int(clock[3]), second=int(clock[4] or 0), microsecond=0)
    # The offset from UTC may be another at that time of day: the clock on the wall counts.
    return at.replace(tzinfo=None).astimezone()


def _months_before(here: datetime, months: int) -> datetime:
    """Return the same time of the same day, so many months before; the last day of a month that is too short for it."""
    year, month = divmod(here.year * 12 + here.month - 1 - months, 12)
    last = monthrange(year, month + 1)[1]
    at = here.replace(year=year, month=month + 1, day=min(here.day, last))
    return at.replace(tzinfo=None).astimezone()


def as_of_option(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the option of asking about the past, as its argument `as_of`."""
    return click.option(
        "--as-of",
        metavar="WHEN",
        type=past_moment,
        help="As it was then: a time (9:00, yesterday 9:00, 2h ago), right after a MISSION, or a tid:0x...",
    )(verb)


def with_moment(args: Mapping[str, object], as_of: str | None) -> dict[str, object]:
    """Return a verb's arguments with the moment that is asked about, if it is not now."""
    return {**args} if as_of is None else {**args, "as_of": as_of}


def tell_moment(called: VerbCall, found: Mapping[str, Any]) -> None:
    """Say of which moment the result is, where it is not of now."""
    said = found.get("as_of")
    if said and not called.console.as_json:
        called.note(f"As of {moment_text(said['at'])} ({said.get('mission') or said['tid']}).")
