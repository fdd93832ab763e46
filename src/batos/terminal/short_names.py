"""Times and ids for people: local and relative times, and the shortest unambiguous ids."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePath
from typing import Final

#: Characters of an id that are shown at least: its kind and the millisecond of its beginning.
_LEAST: Final = 12


def local_time(at: str, now: datetime | None = None) -> str:
    """Write a moment as it is seen from `now`, in local time; a text that is no moment is returned as it stands.

    >>> now = datetime(2026, 1, 2, 12, tzinfo=UTC)
    >>> [local_time(f"2026-01-02T{time}Z", now) for time in ("11:55:00", "11:59:30", "12:05:00")]
    ['5 min ago', 'just now', 'in 5 min']
    """
    now = datetime.now(UTC) if now is None else now
    try:
        moment, here = datetime.fromisoformat(at).astimezone(), now.astimezone()
    except (ValueError, OverflowError):
        return at
    seconds = (here - moment).total_seconds()
    if abs(seconds) < 60:
        return "just now" if seconds >= 0 else "in a moment"
    if abs(seconds) < 3_600:
        minutes = f"{abs(seconds) // 60:.0f} min"
        return f"{minutes} ago" if seconds > 0 else f"in {minutes}"
    days = {timedelta(): "today", timedelta(1): "yesterday", timedelta(-1): "tomorrow"}
    day = days.get(here.date() - moment.date())
    if day is not None:
        return f"{day} {moment:%H:%M}"
    return f"{moment:%d %b %H:%M}" if moment.year == here.year else f"{moment:%Y-%m-%d}"


def moment_text(at: str, now: datetime | None = None) -> str:
    """Write a moment to the second, in local time; a near one also as it is seen from `now`."""
    try:
        told = f"{datetime.fromisoformat(at).astimezone():%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError):
        return at
    seen = local_time(at, now)
    return told if seen[-1].isdigit() else f"{told} ({seen})"


def short(names: Sequence[str]) -> dict[str, str]:
    """Return each id's shortest beginning that none of the others has; a verb takes that in its place."""
    ordered = sorted(set(names))
    found = {}
    for place, name in enumerate(ordered):
        beside = [*ordered[max(0, place - 1) : place], *ordered[place + 1 : place + 2]]
        length = max([_LEAST, *(_count_shared(name, other) + 1 for other in beside)])
        found[name] = name[:length]
    return found


def title_with_path(title: str, source: str) -> str:
    """Return a title with the path of its file behind it, as a person here would write that.

    >>> title_with_path("Heating", ""), title_with_path("Heating", "/srv/house/heating.md")
    ('Heating', 'Heating, /srv/house/heating.md')
    >>> title_with_path("lamp.md", "/srv/lamp.md")
    '/srv/lamp.md'
    """
    if not source.startswith("/"):
        return title
    path, (where, within) = PurePath(source), _here()
    if where is not None and path.is_relative_to(where):
        shown = path.relative_to(where)
    elif within is not None and path.is_relative_to(within):
        shown = "~" / path.relative_to(within)
    else:
        shown = path
    return str(shown) if title in (path.name, path.stem) else f"{title}, {shown}"


def _here() -> tuple[Path | None, Path | None]:
    """Return the working folder and the person's own one; None for one that is gone."""
    found: list[Path | None] = []
    for folder in (Path.cwd, Path.home):
        try:
            found.append(folder())
        except (OSError, RuntimeError):  # the folder was deleted, or the account has none: paths stay whole
            found.append(None)
    return found[0], found[1]


def _count_shared(one: str, other: str) -> int:
    """Count the characters that two ids have in common at their start."""
    return next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
