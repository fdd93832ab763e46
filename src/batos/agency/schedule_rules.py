"""The rules of schedules: when one is due, what of it was missed, and when it comes next, in its own time zone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from itertools import islice
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from batos.protocol.errors import BriefError

#: The kind of what makes a schedule due: a line as cron has it, a pause (counted from when it was added), one moment,
#: changed files, or quiet.
RuleKind: TypeAlias = Literal["cron", "every", "once", "file", "idle"]
#: The moments that are made up for of those that were missed: none but a fresh one, the newest, or each of some.
CatchUp: TypeAlias = Literal["none", "one", "all"]

#: Seconds for which a moment is still fresh, where what was missed is not made up for.
GRACE: Final = 600.0
#: The most missed moments that are made up for.
MOST: Final = 24
#: The shortest pause in seconds, and the longest.
SHORTEST, LONGEST = 60.0, 366 * 86_400.0
#: Seconds without a question after which the machine counts as idle, where a rule names none.
QUIET: Final = 1_800.0
#: Missed moments of a line that are counted one by one: a month of minutes, which takes 0.2 s.
_COUNTED: Final = 45_000
_LOCALTIME: Final = Path("/etc/localtime")

_REMEDY: Final = (
    'Write one of: "0 7 * * 1-5", "every 30 minutes", "every monday 9:00", "once tomorrow 9:00", '
    '"once 2026-12-01 09:00", "once in 2 hours", "on file /folder", "on idle 30 minutes".'
)
_SECONDS: Final[Mapping[str, float]] = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_SPAN: Final = re.compile(
    r"(\d{1,6})?\s*(s|sec|secs|seconds?|m|min|mins|minutes?|h|hours?|d|days?|w|weeks?)", re.IGNORECASE
)
_TIME: Final = re.compile(r"(?:at\s+)?(\d{1,2})(?::(\d{2}))?\s*(am|pm|h)?", re.IGNORECASE)
_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
#: The days of the week as a cron line has them, by the word for them.
_CRON_DAYS: Final[Mapping[str, str]] = {
    "day": "*", "weekday": "1-5", "weekend": "0,6", **{day: str((number + 1) % 7) for number, day in enumerate(_DAYS)},
}  # fmt: skip


#: A rule as an image keeps it: the fields of a `Rule` in their order.
RuleData: TypeAlias = tuple[RuleKind, str, str, str, float, str, str]


@dataclass(frozen=True, slots=True)
class Rule:
    """Holds when something is due. `text` is the rule in one form, from which it can be read again.

    `line` is that of a cron rule, `seconds` a pause, `moment` the one of `once`, and `folder` where files change.
    """

    kind: RuleKind
    text: str
    zone: str
    line: str = ""
    seconds: float = 0.0
    moment: str = ""
    folder: str = ""

    def as_data(self) -> RuleData:
        """Return the rule as an image keeps it."""
        return (self.kind, self.text, self.zone, self.line, self.seconds, self.moment, self.folder)


class Due(NamedTuple):
    """The moments that are due now and to be run, how many are left out, the newest of all, and the next."""

    run: tuple[datetime, ...]
    skipped: int
    newest: datetime | None
    next: datetime | None


# -- reading


def parse(text: str, zone: str, now: datetime) -> Rule:
    """Read a rule that a person wrote. Raises: BriefError: it is none, or its moment has passed, or no such zone."""
    clock = _zone(zone)
    words = " ".join(text.split())
    first, _, rest = words.partition(" ")
    if first.lower() == "on":
        return _event(text.strip().partition(" ")[2].strip(), zone)  # a folder's name may have several blanks
    if first.lower() in {"every", "daily", "weekdays"}:
        return _every(first.lower(), rest, zone)
    if len(words.split()) == 5 and first.lower() != "once":
        return _cron(words, zone)
    return _once(rest if first.lower() == "once" else words, now.astimezone(clock), zone)


def _zone(name: str) -> ZoneInfo:
    """Return a time zone by its name. Raises: BriefError: there is none of this name on this machine."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        remedy = "Name one as Europe/Berlin; if none is found, install the package tzdata."
        raise BriefError(f"there is no time zone {name[:60]!r}", field="zone", remedy=remedy) from error


def local_zone(environ: Mapping[str, str], link: Path = _LOCALTIME) -> str:
    """Return the name of this machine's time zone; UTC where it has none that can be known."""
    named = environ.get("TZ", "").lstrip(":")
    below = os.path.realpath(link).partition("zoneinfo/")[2]
    for each in (named, below):
        with suppress(BriefError):
            return _zone(each).key
    return "UTC"


def _wrong(text: str) -> BriefError:
    return BriefError(f"{text[:80]!r} says no time", field="when", remedy=_REMEDY)


def _once(text: str, now: datetime, zone: str) -> Rule:
    """Read one moment, as `tomorrow 9:00`. Raises: BriefError: it is none, or it has passed."""
    try:  # moments are kept to the millisecond
        moment = _moment(text, now).replace(microsecond=0)
    except OverflowError as error:
        raise _wrong(text) from error
    if moment <= now:
        raise BriefError(f"{text!r} has passed", field="when", remedy="Name a moment that is to come.")
    return Rule("once", f"once {moment:%Y-%m-%d %H:%M}", zone, moment=moment.astimezone(UTC).isoformat())


def _cron(line: str, zone: str) -> Rule:
    try:
        CronSim(line, datetime(2000, 1, 1, tzinfo=UTC))
    except (CronSimError, ValueError) as error:
        what = f"{line[:80]!r} is no line as cron has it: {error}"
        raise BriefError(what, field="when", remedy="Minute, hour, day of month, month, day of week.") from error
    return Rule("cron", line, zone, line=line)


def _every(first: str, rest: str, zone: str) -> Rule:
    """Read `every 30 minutes`, `every monday 9:00`, `daily 9:00` and `weekdays 8:30`."""
    span = _SPAN.fullmatch(rest) if first == "every" else None
    named, _, at = rest.partition(" ") if first == "every" else (first.replace("daily", "day"), " ", rest)
    days = _CRON_DAYS.get(named.lower().rstrip("s"))
    if days is not None and at:
        moment = _time(at)
        return Rule(
            "cron", f"{moment.minute} {moment.hour} * * {days}", zone, line=f"{moment.minute} {moment.hour} * * {days}"
        )
    if span is None:
        raise _wrong(f"{first} {rest}".strip())
    seconds = _span(span)
    if not SHORTEST <= seconds <= LONGEST:
        raise BriefError("a pause has a minute to a year", field="when", remedy='Write "every 30 minutes", say.')
    return Rule("every", f"every {_span_text(seconds)}", zone, seconds=seconds)


def _event(rest: str, zone: str) -> Rule:
    """Read `on idle [30 minutes]` and `on file FOLDER`."""
    kind, _, about = (each.strip() for each in rest.partition(" "))
    if kind.lower() == "idle":
        span = _SPAN.fullmatch(about) if about else None
        if about and span is None:
            raise _wrong(f"on {rest}")
        seconds = QUIET if span is None else min(max(_span(span), SHORTEST), LONGEST)
        return Rule("idle", f"on idle {_span_text(seconds)}", zone, seconds=seconds)
    if kind.lower() in {"file", "files"} and about:
        folder = Path(about).expanduser()
        if not folder.is_absolute():
            raise BriefError(f"{about[:80]!r} is no whole path", field="when", remedy="Give it from the root: /...")
        return Rule("file", f"on file {folder}", zone, folder=str(folder))
    raise _wrong(f"on {rest}".strip())


def _moment(text: str, now: datetime) -> datetime:
    """Read the moment of `once`, beside now in the rule's zone."""
    words = text.lower().split()
    if words[:1] == ["in"]:
        span = _SPAN.fullmatch(" ".join(words[1:]))
        if span is None:
            raise _wrong(text)
        return now + timedelta(seconds=max(_span(span), 1.0))
    try:
        return _in_zone(datetime.fromisoformat(text.strip().upper().replace(" ", "T", 1)), now)
    except ValueError:
        pass
    day = _day(words[0], now) if words else None
    at = _time(" ".join(words[1:] if day is not None else words))
    found = _in_zone(datetime.combine((day or now).date(), at), now)
    return found if day is not None or found > now else _in_zone(found.replace(tzinfo=None) + timedelta(days=1), now)


def _in_zone(moment: datetime, now: datetime) -> datetime:
    """Return a moment in the zone of `now`, unless it names one; one that a clock change leaves out is moved on."""
    known = moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)
    return known.astimezone(UTC).astimezone(now.tzinfo)


def _day(word: str, now: datetime) -> datetime | None:
    """Return the day that a word means; None: it means none."""
    near = ("yesterday", "today", "tomorrow")
    if word in near:
        return now + timedelta(days=near.index(word) - 1)
    if word in _DAYS:
        return now + timedelta(days=(_DAYS.index(word) - now.weekday() - 1) % 7 + 1)
    try:
        return datetime.fromisoformat(word)
    except ValueError:
        return None


def _time(text: str) -> time:
    """Read the time of a day. Raises: BriefError: it is none."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise _wrong(text)
    hour, half = int(found[1]), (found[3] or "").lower()
    if half in {"am", "pm"}:
        hour = hour % 12 + 12 * (half == "pm") if 1 <= hour <= 12 else 24
    minute = int(found[2] or 0)
    if hour > 23 or minute > 59:
        raise _wrong(text)
    return time(hour, minute)


def _span(found: re.Match[str]) -> float:
    return int(found[1] or 1) * _SECONDS[found[2][0].lower()]


def _span_text(seconds: float) -> str:
    for name, unit in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds % unit == 0:
            count = int(seconds // unit)
            return f"{count} {name}{'s' * (count != 1)}"
    return f"{int(seconds)} seconds"


# -- when it is due


def next_after(rule: Rule, moment: datetime) -> datetime | None:
    """Return the first moment of a rule after another, in UTC; None: there is none, or it is not known before."""
    return next(_moments(rule, moment), None)


def _moments(rule: Rule, after: datetime) -> Iterator[datetime]:
    """Yield the moments of a rule after another, in UTC; each is later than the one before."""
    match rule.kind:
        case "cron":
            for found in CronSim(rule.line, after.astimezone(_zone(rule.zone))):
                moment = found.astimezone(UTC)
                if moment > after:
                    after = moment
                    yield moment
        case "every":
            while True:
                after += timedelta(seconds=rule.seconds)
                yield after.astimezone(UTC)
        case "once":
            moment = datetime.fromisoformat(rule.moment)
            if moment > after:
                yield moment


def find_due(rule: Rule, last: datetime, now: datetime, catch_up: CatchUp = "one") -> Due:
    """Return what is due, where all up to `last` is done with.

    `last` only grows, so that a clock that is set back makes nothing due a second time.
    """
    missed, skipped, following = _list_missed(rule, last, now)
    fresh = [each for each in missed if (now - each).total_seconds() <= GRACE]
    run = {"none": fresh[-1:], "one": missed[-1:], "all": missed[-MOST:]}[catch_up]
    newest = missed[-1] if missed else None
    return Due(tuple(run), skipped + len(missed) - len(run), newest, following)


def _list_missed(rule: Rule, last: datetime, now: datetime) -> tuple[list[datetime], int, datetime | None]:
    """Return the newest moments that have come, how many came before these, and the first that is to come.

    Where a line had more than `_COUNTED` in a time that somebody was away, some that are older than a day are left out.
    """
    passed = 0
    if rule.kind == "every":
        pause = timedelta(seconds=rule.seconds)
        passed = max((now - last) // pause - MOST, 0)
        last += passed * pause
    while True:
        missed: list[datetime] = []
        for moment in islice(_moments(rule, last), _COUNTED):
            if moment > now:
                return missed, passed, moment
            missed.append(moment)
        if len(missed) < _COUNTED:
            return missed, passed, None
        passed += len(missed)
        last = max(missed[-1], now - timedelta(days=1))


def list_next(rule: Rule, after: datetime, most: int = 3) -> list[datetime]:
    """Return the next moments of a rule, in its zone."""
    return [each.astimezone(_zone(rule.zone)) for each in islice(_moments(rule, after), most)]


def list_upcoming(rule: Rule, last: datetime, now: datetime) -> list[datetime]:
    """Return the next moments of a rule as of now, in its zone, where all up to `last` is done with.

    There are none where this machine does not know the zone.
    """
    after = max(last, now).astimezone(UTC)
    if rule.kind == "every" and last < now:  # counted from the last one
        after -= (now - last) % timedelta(seconds=rule.seconds)
    with suppress(BriefError):
        return list_next(rule, after)
    return []


def changes_clock(rule: Rule, now: datetime) -> bool:
    """Test if the clock of the rule's zone is changed within a year."""
    days = [now + timedelta(days=days) for days in range(0, 366, 15)]
    with suppress(BriefError):
        return len({day.astimezone(_zone(rule.zone)).utcoffset() for day in days}) > 1
    return False
