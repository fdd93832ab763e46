"""Names that a person types for memories and past moments: ids, sources, paths of files, and the option --as-of."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import click

from batos.cli.command_line import given_name
from batos.cli.doors.door import Opened
from batos.cli.verb_options import VerbCall
from batos.client.pending import OnEvent
from batos.memory.reading.read_text import source_of
from batos.protocol.errors import NotFound
from batos.terminal.console import moment_text

#: The arguments of verbs that name memories.
_NAMING: Final = ("documents", "document", "source", "target")


def exists(path: str) -> bool:
    """Test if there is a file or folder of this name; a text is none."""
    try:
        return bool(path) and Path(path).exists()
    except (OSError, ValueError):  # a text that is too long for a path
        return False


def place_of(named: str) -> str:
    """Return the source of a file that is there as `remember` keeps it, else the name as given."""
    return source_of(Path(named)) if exists(named) else named


def deleted_place(named: str) -> str:
    """Return the source that a name has if it is the path of a file that is not there any more; "" if it is none."""
    try:
        place = "" if not named or exists(named) else source_of(Path(named))
    except (OSError, RuntimeError, ValueError):  # a text that is too long for a path, or links in a circle
        return ""
    return "" if place == named else place


async def ask_of_memories(
    opened: Opened, verb: str, args: Mapping[str, object], on_event: OnEvent | None = None
) -> dict[str, object]:
    """Ask a verb; a name that it does not find is looked for as the path of a file that was deleted.

    Raises: NotFound: it is not found so either.
    """
    left = {name: place for name in _names_in(args) if (place := deleted_place(name))}
    told: dict[str, NotFound] = {}
    async with opened as way:
        while True:
            try:
                found = await way.call(verb, args, on_event)
            except NotFound as error:
                missing = next((name for name in left if repr(name) in error.message), None)
                if missing is None:  # the error of a path is that of the name that was given
                    raise next((told[each] for each in told if repr(each) in error.message), error) from None
                told[left[missing]] = error
            else:
                missing = next(iter(left), None) if found.get("recalled") == [] else None
                if missing is None:
                    return found
            args = _with_place(args, missing, left.pop(missing))


async def erased_place(opened: Opened, args: Mapping[str, object]) -> str:
    """Return the target of an erasure: the path of a file that was deleted, where only this names a memory."""
    target = str(args["target"])
    place = "" if args["words"] else deleted_place(target)
    if not place or not ("/" in target or Path(target).suffix):  # each look plans an erasure
        return target
    async with opened as way:
        for each in (target, place):
            try:
                planned = await way.call("erase", {**args, "target": each, "dry_run": True})
            except NotFound:
                continue
            if planned["kind"] != "words":
                return each
    return target


def _names_in(args: Mapping[str, Any]) -> list[str]:
    given = (args[key] for key in _NAMING if key in args)
    return [name for each in given for name in ([each] if isinstance(each, str) else each)]


def _with_place(args: Mapping[str, Any], named: str, place: str) -> dict[str, object]:
    """Return arguments with the place of a file instead of a name."""
    return {key: _replace_name(value, named, place) if key in _NAMING else value for key, value in args.items()}


def _replace_name(value: str | Collection[str], named: str, place: str) -> str | list[str]:
    if isinstance(value, str):
        return place if value == named else value
    return [place if each == named else each for each in value]


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


def tell_moment(called: VerbCall, found: Mapping[str, Any]) -> None:
    """Say of which moment the result is, where it is not of now."""
    said = found.get("as_of")
    if said and not called.console.as_json:
        called.note(f"As of {moment_text(said['at'])} ({said.get('mission') or said['tid']}).")
