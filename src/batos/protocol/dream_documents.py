"""The documents of dreams, key by key."""

from __future__ import annotations

from typing import Any, TypedDict


class DreamLine(TypedDict):
    """A dream in a list: the id of its mission, and whether it is open, promoted or dropped."""

    dream: str
    state: str
    at: str
    user: str
    text: str
    writes: int


class SlotDifference(TypedDict):
    """A slot that a dream changed; `conflict` says why it cannot be promoted, "" if it can."""

    object: str
    slot: str
    before: Any
    after: Any
    conflict: str


class MadeMethod(TypedDict):
    """A method, or a whole object, that a dream made; `asks`: a person has to approve it when the dream is promoted."""

    method: str
    source: str
    asks: bool
    conflict: str


class BaseAnswer(TypedDict):
    """The newest answer of the mind itself to the question of a dream."""

    mission: str
    answer: Any


class DreamDiff(DreamLine):
    """All that a dream would change: slots of objects, methods that it `made`, tools, the kinds of its contributions.

    `methods` ran. `base` is what the mind itself answered to the same question, if it was asked.

    `effects` on the world are never released.
    """

    answer: Any
    base: BaseAnswer | None
    read_at: str
    slots: list[SlotDifference]
    made: list[MadeMethod]
    methods: list[str]
    tools: list[str]
    contributions: list[str]
    effects: list[str]
    conflicts: list[str]


class ReplayDocument(TypedDict):
    """The differences of a replay: calls by their steps, then pairs (before, after), then lines with a minus or a plus.

    `same` calls were served from the journal, `made` ones were asked of a model, `gone` ones were not needed. The words
    of so many calls of the mission are `erased`: these could not be served.
    """

    of: str
    mission: str
    same: list[str]
    made: list[str]
    gone: list[str]
    erased: int
    models: list[list[str]]
    personas: list[list[str]]
    carried: list[int]
    methods: list[str]
    recalled: list[str]
    written: list[str]
    answer: list[str]
