"""The documents of dreams, key by key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from batos.protocol.evidence_documents import WrittenSlot
from batos.protocol.method_documents import CandidateDocument


class Dream(TypedDict):
    """A dream as the journal has it: `made` are methods that came of it, `asks` those that a person decides about."""

    mission: str
    user: str
    brief: dict[str, Any]
    accepted_at: str
    files: Mapping[str, bytes]
    thought: Mapping[str, Any]
    effects: Sequence[Mapping[str, Any]]
    writes: Sequence[WrittenSlot]
    reads: Sequence[WrittenSlot]
    made: Sequence[Mapping[str, Any]]
    asks: Sequence[CandidateDocument]
    read_at: str
    state: str


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


class DreamList(TypedDict):
    """The newest dreams."""

    dreams: list[DreamLine]
