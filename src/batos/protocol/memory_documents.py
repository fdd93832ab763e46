"""The documents of what is remembered, dreamt and undone, key by key: `remember`, `recall`, `memories`, `forget`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict, final

from batos.protocol.evidence_documents import WrittenSlot
from batos.protocol.method_documents import CandidateDocument
from batos.protocol.mission_documents import AsOfDocument
from batos.protocol.trial_documents import SlotLineage


class _Memory(TypedDict):
    """The keys of a document and of a part of it."""

    document: str
    title: str
    source: str
    scope: str
    trust: str
    at: str
    sha256: str
    kind: str
    standing: str
    key: str
    superseded_by: str
    valid_to: str
    summarised_by: str


class MemoryLine(_Memory):
    """A document that is remembered: `trust` is the class of its text, `chunks` the number of its parts.

    `at` is when it was said or written, else when it was remembered. Texts that are unknown are "". A fact has a `key`,
    and once another took its place, that one's name is in `superseded_by`, and it held up to `valid_to`. A summary may
    stand for it: `summarised_by` is its name. `left_out` has a phrase for each part of its file that could not be read.
    """

    user: str
    media_type: str
    size: int
    chunks: int
    mission: str
    persona: str
    conversation: str
    speaker: str
    left_out: list[str]


class MarkDocument(TypedDict):
    """A statement that does not simply hold: its place in the document's text, its standing, and the reason.

    `by` is the memory that took its place, `since` the moment from which that one holds.
    """

    span: list[int]
    standing: str
    reason: str
    by: str
    since: str


class ChunkDocument(TypedDict):
    """A part of a document: its number in the image, and its place in the document's text."""

    chunk: int
    heading: str
    span: list[int]
    text: str
    marks: list[MarkDocument]


class WholeMemory(MemoryLine):
    """A document with all its parts; a summary also tells what it `stands_for`."""

    parts: list[ChunkDocument]
    stands_for: list[MemoryLine]


@final
class DatedMemory(WholeMemory):
    """A document with all its parts, as of a moment where one was named."""

    as_of: NotRequired[AsOfDocument]


@final
class MemoriesPage(TypedDict):
    """Documents, the newest first, and how many documents and chunks there are in all."""

    memories: list[MemoryLine]
    documents: int
    chunks: int
    as_of: NotRequired[AsOfDocument]


class RememberedLine(TypedDict):
    """The fate of a document: `known` was here already, `replaced` is in the place of an older one.

    The `standing` tells whether a known one is recalled; not if it was retracted, or edited by hand since.
    `superseded` are the facts that gave way to it, `flagged` other memories in which it marked something.
    """

    document: str
    title: str
    source: str
    chunks: int
    state: Literal["new", "known", "replaced"]
    standing: str
    superseded: list[str]
    flagged: list[str]
    left_out: list[str]


class UnreadLine(TypedDict):
    """A part of a file that could not be read: the file's source or name with the place of the part, and the reason."""

    source: str
    reason: str


class RememberedPage(TypedDict):
    """The fate of each document that was given, and the parts of files that were sent and could not be read.

    `not_found` has the key or id that a new fact was to supersede, if no current fact had it.
    """

    remembered: list[RememberedLine]
    unread: NotRequired[list[UnreadLine]]
    not_found: NotRequired[list[str]]


class EmbeddedPage(TypedDict):
    """The parts without a vector: `missing` of them have none of the `model` ("": none is there), for this `reason`."""

    model: str
    missing: int
    reason: str


class PathDocument(TypedDict):
    """The link that led to a part: another one mentions its name, in this sentence."""

    chunk: int
    title: str
    name: str
    sentence: str


class RecalledChunk(_Memory, ChunkDocument):
    """A part that was recalled: how well it matches, why it was found, and the link that led to it, if one did.

    Statements in its text that do not hold stand on lines of their own, behind a mark such as
    `[superseded since 2026-11-26]`.
    """

    score: float
    why: str
    path: PathDocument | None


class RecalledPage(TypedDict):
    """The parts that match a query best, and how many match at all."""

    recalled: list[RecalledChunk]
    of: int
    note: NotRequired[str]
    as_of: NotRequired[AsOfDocument]


class EditedPage(TypedDict):
    """The memory with its new text, and the id of the older one, which stays as history."""

    edited: MemoryLine
    before: str


class RetractedPage(TypedDict):
    """The memories that are no longer recalled, and counts of all else that went with them."""

    retracted: list[MemoryLine]
    pins: int
    answers: int
    methods: list[str]
    tools: list[str]


class RestoredPage(TypedDict):
    """The memories that are recalled again, and the methods and tools that came back with them."""

    restored: list[MemoryLine]
    methods: list[str]
    tools: list[str]


class PinnedPage(TypedDict):
    """Memories whose pin was set or taken away."""

    memories: list[MemoryLine]
    pinned: bool


class ForgottenPage(TypedDict):
    """The documents that are gone from the present image, and what still holds their words.

    `turns` are the missions whose turns no conversation recalls any more, `methods` those that were retired.
    """

    forgotten: list[MemoryLine]
    turns: list[str]
    methods: list[str]
    note: str


class FoldedRegionLine(TypedDict):
    """A region of memories that was folded, or would be: the `summary` that stands for it ("" before), and its text.

    `reason` is why it was chosen, `written_by` tells who wrote the summary. `chunks` are its parts, `left` those of the
    summary.
    """

    summary: str
    title: str
    text: str
    reason: Literal["cold", "redundant"]
    written_by: Literal["rule", "model"]
    documents: list[MemoryLine]
    chunks: int
    left: int


@final
class CuratedPage(TypedDict):
    """The regions that were folded, or would be; `more` tells that there are others."""

    regions: list[FoldedRegionLine]
    dry_run: bool
    more: bool


@final
class UnfoldedPage(TypedDict):
    """The summary that is gone, and the documents that are back as they were."""

    summary: str
    documents: list[MemoryLine]


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
