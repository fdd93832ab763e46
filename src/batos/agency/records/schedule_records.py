"""Schedules in the image: their rules and what they did, and the inbox of what they brought."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeAlias, TypedDict, cast

from BTrees.OOBTree import OOBTree
from persistent.mapping import PersistentMapping

from batos.agency.schedule_rules import CatchUp, Rule, RuleData
from batos.image import ids, roots
from batos.image.ids import iso
from batos.image.roots import Root
from batos.protocol.effect_documents import ScheduleState, ScheduleWork
from batos.protocol.errors import NotFound, Refused

#: A schedule as the image has it: a `ScheduleData`.
Schedule: TypeAlias = PersistentMapping[str, Any]

#: The door of missions that a schedule begins: nobody watches these.
DOOR: Final = "schedule"
#: The most schedules of an image: the oldest that has ended makes room.
MOST: Final = 200
#: The most entries of the inbox: the oldest that were read go first.
MOST_ENTRIES: Final = 500
_LIST: Final = "`batos schedule list` lists them."

#: The size and the time of change (in ns) of files, by their paths.
FileLook: TypeAlias = dict[str, tuple[int, int]]


class ScheduleBrief(TypedDict, total=False):
    """The fields of a schedule's missions beside text, user and origin."""

    effort: str
    persona: str
    grants: list[str]


class ScheduleData(TypedDict):
    """A schedule as plain data. `last` is the newest moment that is done with; it only grows, unless it is far ahead of
    the clock.

    `retry` is when a failed mission is run again, after `failures` failures; `settled` is one whose failure a person
    has seen. `next`, `retry` and `last` are ISO 8601 in UTC. `seen` are the files of a folder that no mission is to be
    asked about any more; None: nobody has looked yet.
    """

    id: str
    user: str
    rule: RuleData
    work: ScheduleWork
    text: str
    folder: str
    catch_up: CatchUp
    brief: ScheduleBrief
    state: ScheduleState
    reason: str
    made_at: str
    last: str
    next: str | None
    retry: str | None
    runs: int
    skipped: int
    failures: int
    mission: str | None
    settled: str | None
    seen: FileLook | None


class EntryData(TypedDict):
    """An entry of the inbox as plain data."""

    schedule: str
    user: str
    due: str
    came: str
    skipped: int
    is_read: bool
    mission: str | None
    text: str


class ScheduleOrder(NamedTuple):
    """An order of a person to do something at a time."""

    user: str
    rule: Rule
    work: ScheduleWork
    text: str
    folder: str
    catch_up: CatchUp
    brief: ScheduleBrief


class Firing(NamedTuple):
    """A moment of a schedule that has come: what it brought, and when the next one is due.

    `moment` is None for one that a person asks for. `text` is what a reminder or other work without a mission says.
    """

    name: str
    moment: datetime | None
    at: datetime
    next: datetime | None
    skipped: int = 0
    text: str = ""
    seen: FileLook | None = None


def add(root: Root, order: ScheduleOrder, at: datetime, following: datetime | None) -> str:
    """Keep a schedule, and return its id; a folder that is remembered has one already.

    Raises: Refused: there are too many.
    """
    kept = root[roots.SCHEDULES]
    for each in list_all(root, order.user) if order.work == "remember" else ():
        if (each["work"], each["folder"], each["state"]) == ("remember", order.folder, "active"):
            return str(each["id"])
    if len(kept) >= MOST and (ended := next((each["id"] for each in kept.values() if each["state"] == "ended"), None)):
        del kept[ended]
    if len(kept) >= MOST:
        raise Refused(f"there are {MOST} schedules, which is the most", remedy="Remove one: `batos schedule remove`.")
    name = ids.schedule_id(at, kept.maxKey() if kept else "")
    made = ScheduleData(
        id=name, user=order.user, rule=order.rule.as_data(), work=order.work, text=order.text, folder=order.folder,
        catch_up=order.catch_up, brief=order.brief, state="active", reason="", made_at=iso(at), last=iso(at),
        next=_text(following), retry=None, runs=0, skipped=0, failures=0, mission=None, settled=None, seen=None,
    )  # fmt: skip
    kept[name] = PersistentMapping(made)
    return name


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else iso(moment)


def list_all(root: Root, user: str | None = None) -> Iterator[Schedule]:
    """Yield the schedules (of a user's), the oldest first."""
    kept = root.get(roots.SCHEDULES)  # an older moment of the image has none
    for each in () if kept is None else kept.values():
        if user in (None, each["user"]):
            yield each


def find(root: Root, name: str, user: str | None = None) -> Schedule:
    """Return a schedule by its id, or the beginning of one.

    Raises: NotFound: there is none (of this user's). BriefError: several begin so.
    """
    kept = root.get(roots.SCHEDULES) or OOBTree()
    found = kept.get(ids.find_id(kept, name, lambda each: user in (None, kept[each]["user"])))
    if found is None or user not in (None, found["user"]):
        raise NotFound(f"there is no schedule {name[:40]!r}", field="schedule", remedy=_LIST)
    schedule: Schedule = found
    return schedule


def data_of(schedule: Schedule) -> ScheduleData:
    """Return a schedule as plain data, as it is now."""
    return cast("ScheduleData", dict(schedule))


def remove(root: Root, name: str, user: str | None) -> ScheduleData:
    """Take a schedule away, and return it as it was. Raises: as `find`."""
    found = find(root, name, user)
    del root[roots.SCHEDULES][found["id"]]
    return data_of(found)


def set_state(schedule: Schedule, state: ScheduleState, reason: str = "", following: datetime | None = None) -> None:
    """Let a schedule wait for `following`, or for nothing any more; what failed before is forgotten."""
    schedule.update(state=state, reason=reason, next=_text(following), retry=None, failures=0)


def note_firing(root: Root, mission: str | None, firing: Firing) -> None:
    """Write down what a moment of a schedule brought; what is written down already stays as it is.

    In the commit that accepts the mission, so that neither is there without the other.
    """
    schedule = root[roots.SCHEDULES].get(firing.name)
    if schedule is None:  # it was removed meanwhile: its mission is answered all the same
        return
    if firing.moment is not None:
        if schedule["last"] >= iso(firing.moment):
            return
        schedule["last"], schedule["next"] = iso(firing.moment), _text(firing.next)
    schedule.update(
        runs=schedule["runs"] + 1, skipped=schedule["skipped"] + firing.skipped, retry=None, failures=0,
        mission=mission,
    )  # fmt: skip
    if firing.seen is not None:
        schedule["seen"] = firing.seen
    if mission is not None or firing.text:
        inbox = root[roots.INBOX]
        inbox[ids.entry_id(firing.at, inbox.maxKey() if inbox else "")] = EntryData(
            schedule=firing.name, user=schedule["user"], due=iso(firing.moment or firing.at), came=iso(firing.at),
            skipped=firing.skipped, is_read=False, mission=mission, text=firing.text,
        )  # fmt: skip
        _drop_oldest(root)


def note_skipped(schedule: Schedule, newest: datetime, following: datetime | None, count: int) -> None:
    """Write down that moments passed without a run."""
    schedule.update(last=max(schedule["last"], iso(newest)), next=_text(following), skipped=schedule["skipped"] + count)


def note_retry(root: Root, mission: str | None, name: str, failures: int) -> None:
    """Write down that the newest moment is run again, by another mission, which takes the place of the failed one."""
    schedule = root[roots.SCHEDULES].get(name)
    if schedule is None:
        return
    inbox = root[roots.INBOX]
    for entry in [each for each, kept in inbox.items() if kept["mission"] == schedule["mission"]]:
        inbox[entry] = {**inbox[entry], "mission": mission}
    schedule.update(mission=mission, failures=failures, retry=None)


def _drop_oldest(root: Root) -> None:
    inbox = root[roots.INBOX]
    if len(inbox) > MOST_ENTRIES:
        del inbox[min(inbox, key=lambda entry: (not inbox[entry]["is_read"], entry))]


def list_inbox(root: Root, user: str | None) -> list[tuple[str, EntryData]]:
    """Return the entries of the inbox (of a user's), the newest first."""
    inbox = root.get(roots.INBOX)  # an older moment of the image has none
    found = () if inbox is None else reversed(inbox.items())
    return [(entry, cast("EntryData", kept)) for entry, kept in found if user in (None, kept["user"])]


def mark_read(root: Root, named: str | None, user: str | None) -> int:
    """Mark an entry as read, by its id or the beginning, or all; return how many were not.

    Raises: NotFound: there is none of this name. BriefError: several begin so.
    """
    mine = dict(list_inbox(root, user))
    if named is not None:
        entry = ids.find_id(root[roots.INBOX], named, mine.__contains__)
        if entry not in mine:
            remedy = "`batos inbox list --all` lists what is there."
            raise NotFound(f"the inbox has no {named[:40]!r}", field="entry", remedy=remedy)
        mine = {entry: mine[entry]}
    unread = [entry for entry, kept in mine.items() if not kept["is_read"]]
    for entry in unread:
        root[roots.INBOX][entry] = {**mine[entry], "is_read": True}
    return len(unread)
