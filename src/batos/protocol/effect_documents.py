"""The documents of grants and of effects on the world, key by key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict


class GrantDocument(TypedDict):
    """A grant: its name, what it reaches, the class of its sink, whose it is, and its object.

    `host` is the machine on which its effects happen, of an image on a server. `unattended`: missions that nobody
    watches, those of schedules, may act by it too.
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


class EffectDocument(TypedDict):
    """An effect on the world: what it does, under which key, in which state, and what came of it.

    `host` is the machine on which it happens while it waits, of an image on a server.
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
    host: str


class GrantList(TypedDict):
    """All grants, by name."""

    grants: list[GrantDocument]


class AddedGrant(TypedDict):
    """A grant that was added; of an API `calls` are its operations, each with what it needs."""

    grant: GrantDocument
    calls: list[str]


class RevokedGrant(TypedDict):
    """A grant that was taken back."""

    revoked: GrantDocument


class EffectList(TypedDict):
    """The newest effects."""

    effects: list[EffectDocument]
