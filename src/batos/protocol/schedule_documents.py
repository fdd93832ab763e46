"""The documents of schedules and of the inbox, key by key."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

#: The work of a schedule when it is due: it asks a question, reminds somebody, or remembers a folder.
ScheduleWork = Literal["ask", "remind", "remember"]
#: `parked` failed too often, or lacks what it needs; `ended` has no moment that is to come.
ScheduleState = Literal["active", "paused", "parked", "ended"]


class ScheduleDocument(TypedDict):
    """A schedule: when it is due, what it does then, and how it went.

    `upcoming` are the next moments with the zone's offset, `next` the first of them in UTC. `mission` is the newest of
    its missions. `skipped` counts moments that were missed, or came while a mission of it was under way.
    """

    id: str
    user: str
    when: str
    zone: str
    work: ScheduleWork
    text: str
    folder: str
    catch_up: str
    grants: list[str]
    state: ScheduleState
    reason: str
    made_at: str
    last: str | None
    next: str | None
    upcoming: list[str]
    runs: int
    skipped: int
    failures: int
    mission: str | None


class SchedulePage(TypedDict):
    """All schedules, those that come first before the others."""

    schedules: list[ScheduleDocument]


class AddedSchedule(TypedDict):
    """A schedule that was added or changed.

    `changes_clock`: the clock of its zone is changed within a year. `is_served`: a server runs, which begins what is
    due. `starts_by_itself`: something starts one again after a restart of the machine.
    """

    schedule: ScheduleDocument
    changes_clock: bool
    is_served: bool
    starts_by_itself: bool


class RemovedSchedule(TypedDict):
    """A schedule that was removed; what it brought stays in the inbox."""

    removed: ScheduleDocument


class RunSchedule(TypedDict):
    """A schedule that was run because a person asked for it: its mission, if it asks one, or what it did."""

    schedule: ScheduleDocument
    mission: str | None
    did: str


class InboxEntry(TypedDict):
    """An answer of a mission that a schedule began, or a reminder. `due` is when it should, `came` when it did.

    `skipped` counts the moments since the one before that were missed. `answer` is absent while there is none.
    """

    entry: str
    schedule: str
    due: str
    came: str
    skipped: int
    is_read: bool
    text: str
    mission: NotRequired[str]
    status: NotRequired[str]
    answer: NotRequired[str]


class InboxPage(TypedDict):
    """The entries of the inbox, the newest first, how many nobody has read, and how many effects wait for a yes."""

    entries: list[InboxEntry]
    unread: int
    waiting: int


class ReadInbox(TypedDict):
    """The number of entries of the inbox that were marked as read."""

    read: int
