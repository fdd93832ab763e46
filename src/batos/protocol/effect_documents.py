"""The documents of grants, of effects on the world, of schedules and of the inbox, key by key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict


class QueryDocument(TypedDict):
    """A question to the world by a look-up: `kind` is search, fetch or list, `to` the grant's target."""

    at: str
    grant: str
    kind: str
    what: str
    to: str
    user: str
    mission: str
    path: str


class ServerToolLine(TypedDict):
    """A tool of a server (MCP): our line for it, whether it only reads, and why it is not used, if it is not."""

    tool: str
    purpose: str
    reads: bool
    withdrawn: str


class GrantDocument(TypedDict):
    """A grant: its name, what it reaches, the class of its sink (`reads` of a look-up), whose it is, and its object.

    `host` is the machine on which its effects happen, of an image on a server. `unattended`: missions that nobody
    watches, those of schedules, may act by it too. A look-up has all its `selectors` and its `terms` (hosts, paths,
    ports, rate, budget, until, guests, book), and shown alone its calls of `today` and its newest `queries`. A server
    has its approved `tools`.
    """

    name: str
    kind: str
    target: str
    sink: str
    user: str
    granted_at: str
    oid: str
    selector: str
    host: str
    unattended: bool
    selectors: NotRequired[list[str]]
    calls: NotRequired[list[str]]
    terms: NotRequired[dict[str, Any]]
    tools: NotRequired[list[ServerToolLine]]
    today: NotRequired[int]
    queries: NotRequired[list[QueryDocument]]


class EffectDocument(TypedDict):
    """An effect on the world: what it does, under which key, in which state, and what came of it.

    `arguments` are those of its message, none once they were erased; `approval` is the id of the question to a person
    for which it waits, "" for none. `host` is the machine on which it happens while it waits, of an image on a server.
    """

    effect: str
    mission: str
    lineage: str
    grant: str
    operation: str
    what: str
    key: str
    fingerprint: str
    state: str
    attempts: int
    at: str
    outcome: Mapping[str, Any] | None
    arguments: Mapping[str, Any]
    approval: str
    host: str


class GrantList(TypedDict):
    """All grants, by name."""

    grants: list[GrantDocument]


class QueryList(TypedDict):
    """The questions to the world, the newest first."""

    queries: list[QueryDocument]


class AddedGrant(TypedDict):
    """A grant that was added; of a server with the question about its tools, and the text of that question."""

    grant: GrantDocument
    approval: NotRequired[str]
    question: NotRequired[str]


class RevokedGrant(TypedDict):
    """A grant that was taken back."""

    revoked: GrantDocument


class EffectList(TypedDict):
    """The newest effects."""

    effects: list[EffectDocument]


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
