"""The documents of dreams and of undone missions, key by key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

from batos.protocol.evidence_documents import WrittenSlot
from batos.protocol.method_documents import CandidateDocument
from batos.protocol.trial_documents import SlotLineage


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


class UndoLine(TypedDict):
    """A mission that an undo takes out, with its traces; `because` tells on which other one it depends, and how.

    `approvals` are open questions to a person, which nobody needs to answer any more. `effects` on the world
    happened, or may have, and stay. `turn` is its position in its conversation, 0 if it is none.
    """

    mission: str
    text: str
    because: str
    memories: list[str]
    methods: list[str]
    tools: list[str]
    slots: list[str]
    approvals: list[str]
    effects: list[str]
    turn: int


class UndonePage(TypedDict):
    """The missions that an undo took out, or would take out, the newest first.

    `kept` names what stays although it is theirs. `prompt` is the question of the mission that was named. Where a slot
    was named, `slot` has its values.
    """

    mission: str
    dry_run: bool
    undone: list[UndoLine]
    kept: list[str]
    prompt: str
    slot: NotRequired[SlotLineage]


class RedonePage(TypedDict):
    """The missions that came back, the oldest first; `left` tells what was changed meanwhile and stays as it is."""

    mission: str
    redone: list[str]
    left: list[str]
