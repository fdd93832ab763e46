"""Orders to be reminded: the line of the command that does it is offered, and a person runs it."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Final, NamedTuple

#: The hour of a day that is named alone, and that of a reminder of which nothing says when.
_MORNING: Final = "9:00"
_ENGLISH: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
#: Units in the order in which the tables have them.
_UNITS: Final = ("second", "minute", "hour", "day", "week")
#: Days that come again, in the order in which the tables have them; the rest are each day.
_AGAIN: Final[Mapping[str, str]] = {"weekday": "weekday", "weekend": "weekend", "werktag": "weekday"}
#: Words after an hour, or in a day, by which it is one of the second half of the day.
_LATE: Final = re.compile(r"abend|nachmittag|evening|afternoon|tonight|soir|après-midi|tarde|noche", re.IGNORECASE)
#: Signs that a shell takes for others between double quotes.
_SHELL: Final = re.compile(r'["\\$`!]')


class _ReminderPhrases(NamedTuple):
    remind: re.Pattern[str]
    every: re.Pattern[str]
    span: re.Pattern[str]
    at: re.Pattern[str]
    tomorrow: re.Pattern[str]
    today: re.Pattern[str]
    day: re.Pattern[str]
    links: re.Pattern[str]
    unread: re.Pattern[str]
    asks: re.Pattern[str]
    orders: re.Pattern[str]
    days: tuple[str, ...]
    hours: tuple[str, ...]
    units: tuple[str, ...]
    noon: str
    offer: str
    when: str


def offer(text: str) -> str:
    """Return the offer to remind a person who orders that; "" for any other text.

    >>> offer("Remind me tomorrow at nine to call the dentist.")
    'Nothing reminds you yet. This does: `batos schedule add "once tomorrow 9:00" "call the dentist" --remind`'
    """
    for phrases in _table():
        found = phrases.remind.fullmatch(" ".join(text.split()).rstrip(".!"))
        if found is not None and not phrases.asks.match(found["rest"]):
            when, what = _read(found["rest"], phrases)
            if not when and not phrases.orders.match(found["rest"]):
                continue
            when = "" if phrases.unread.search(what) else when
            command = f"`batos schedule add {_quote(when or f'once tomorrow {_MORNING}')} {_quote(what)} --remind`"
            return (phrases.offer if when else phrases.when).format(command=command)
    return ""


def _quote(text: str) -> str:
    return shlex.quote(text) if _SHELL.search(text) else f'"{text}"'


def _read(rest: str, phrases: _ReminderPhrases) -> tuple[str, str]:
    """Return when somebody wants to be reminded, as a schedule has it ("" if nothing says so), and of what."""
    parts = {name: getattr(phrases, name).search(rest) for name in ("every", "span", "at", "tomorrow", "today", "day")}
    if parts["every"]:  # the day of the week in it is no other one
        parts = {**parts, "day": None, "today": None, "tomorrow": None}
    spoken = [each for each in parts.values() if each is not None]
    matter = rest
    for each in sorted(spoken, key=lambda found: found.start(), reverse=True):
        matter = f"{matter[: each.start()]} {matter[each.end() :]}"
    matter = " ".join(matter.split()).strip(" ,;:")
    matter = phrases.links.sub("", matter, count=1).strip(" ,;:")
    return _find_time(parts, phrases), matter or rest


def _find_time(parts: Mapping[str, re.Match[str] | None], phrases: _ReminderPhrases) -> str:
    span, every, at = parts["span"], parts["every"], parts["at"]
    if span is not None:
        unit = _UNITS[_place(span["unit"], phrases.units)]
        is_half = re.search(r"half|halb|demi|media", span["n"], re.IGNORECASE)
        return "once in 30 minutes" if is_half and unit == "hour" else f"once in {_count(span['n'], phrases)} {unit}s"
    is_late = any(each is not None and _LATE.search(each[0]) for each in parts.values())
    hour = _hour(at, phrases, is_late=is_late) if at is not None else ""
    if every is not None:
        return f"every {_again(every, phrases)} {hour or _MORNING}"
    if parts["tomorrow"] is not None:
        return f"once tomorrow {hour or _MORNING}"
    if parts["day"] is not None:
        return f"once {_weekday(parts['day'][0], phrases)} {hour or _MORNING}"
    if hour:
        return f"once {'today ' if parts['today'] else ''}{hour}"
    return ""


def _hour(at: re.Match[str], phrases: _ReminderPhrases, *, is_late: bool) -> str:
    """Return the time of a day, such as 9:00; "" if there is none such."""
    if phrases.noon and at["h"].lower() == phrases.noon:
        return "12:00"
    hour, half = _count(at["h"], phrases), (at.groupdict().get("half") or "").lower().replace(".", "")
    if half in {"am", "pm"}:
        hour = hour % 12 + 12 * (half == "pm")
    elif is_late and hour < 12:
        hour += 12
    minute = at["minute"] or "00"
    return f"{hour}:{minute}" if hour < 24 and int(minute) < 60 else ""


def _count(word: str, phrases: _ReminderPhrases) -> int:
    """Return a number that is a figure or a word; an article is one."""
    if word.isdigit():
        return int(word)
    return next((place for place, each in enumerate(phrases.hours, 1) if re.fullmatch(each, word, re.IGNORECASE)), 1)


def _place(word: str, among: tuple[str, ...]) -> int:
    return next((place for place, each in enumerate(among) if word.lower().startswith(each)), 0)


def _weekday(said: str, phrases: _ReminderPhrases) -> str:
    return next(name for each, name in zip(phrases.days, _ENGLISH, strict=True) if each in said.lower())


def _again(every: re.Match[str], phrases: _ReminderPhrases) -> str:
    said = (every["every"] or "").lower()
    if any(each in said for each in phrases.days):
        return _weekday(said, phrases)
    return next((name for word, name in _AGAIN.items() if word in said), "day")


@lru_cache(maxsize=1)
def _table() -> tuple[_ReminderPhrases, ...]:
    """Return the phrases of each language."""
    told = tomllib.loads(files(__package__).joinpath("reminders.toml").read_text(encoding="utf-8"))
    return tuple(map(_phrases, told.values()))


def _phrases(told: Mapping[str, str]) -> _ReminderPhrases:
    number = rf"\d{{1,2}}|{told['hours']}"
    known = {"{h}": f"(?P<h>{number}|{told['noon']})", "{n}": number, "{day}": f"(?:{told['days']})"}

    def compile_part(name: str) -> re.Pattern[str]:
        pattern = told[name]
        for sign, meant in known.items():
            pattern = pattern.replace(sign, meant)
        return re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE)

    units = re.search(r"<unit>([^)]+)\)", told["span"])
    return _ReminderPhrases(
        remind=re.compile(rf"\W*(?:{told['remind']})", re.IGNORECASE), every=compile_part("every"),
        span=compile_part("span"), at=compile_part("at"), tomorrow=compile_part("tomorrow"),
        today=compile_part("today"), day=compile_part("day"), asks=compile_part("asks"),
        unread=compile_part("unread"),
        links=re.compile(rf"(?:{told['links']})(?!\w)\s*", re.IGNORECASE),
        orders=re.compile(told["orders"], re.IGNORECASE), days=tuple(told["days"].split("|")),
        hours=tuple(told["hours"].split("|")), units=tuple(units[1].split("|") if units else ()), noon=told["noon"],
        offer=told["offer"], when=told["when"],
    )  # fmt: skip
