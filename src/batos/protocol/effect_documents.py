"""The documents of grants and of effects on the world, key by key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict


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
