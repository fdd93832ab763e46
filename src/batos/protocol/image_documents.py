"""The documents of the image as a whole, key by key: the screen of `batos status`, objects, conversations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict, final

from batos.protocol.mission_documents import AsOfDocument, ErrorDocument, LoadedModel, PlacementDocument

#: Counts by name, by day, or by a part of a name: numbers, or further counts.
CountsDocument: TypeAlias = Mapping[str, Any]
#: A slot's value as JSON: `objects.mirror.as_json` makes it of whatever stands in the slot.
SlotValue: TypeAlias = Any


class ProgressLine(TypedDict):
    """A mission that runs: its present state, and the calls that it began."""

    id: str
    state: str
    personas: list[str]
    effort: str
    since: str
    attempt: int
    calls: int


class RunningLine(ProgressLine):
    """A mission that runs, with the person who asked it and the question."""

    user: str
    text: str


class SampleDocument(PlacementDocument):
    """A sample of a model's place in memory, and its moment."""

    at: str


class FailureLine(TypedDict):
    """A mission that ended without an answer, and the error."""

    at: str
    mission: str
    status: str
    reason: ErrorDocument


class CountersDocument(TypedDict):
    """The counters: in total, by day, and the newest samples and failures."""

    total: CountsDocument
    days: Mapping[str, CountsDocument]
    vram: list[SampleDocument]
    failures: list[FailureLine]


class ErasureLine(TypedDict):
    """An erasure that is under way or was cut off, with the moment when it began, who asked, and how far it is."""

    at: str
    by: str
    stage: str


class ScreenDocument(TypedDict):
    """Status on one screen; `models` has the model of each persona, `forms` the form of its prompts.

    `erasure` is one that is under way or was cut off.
    """

    queue: dict[Literal["waiting", "limit"], int]
    approvals: dict[Literal["waiting"], int]
    running: list[RunningLine]
    missions: dict[str, int]
    counters: CountsDocument
    days: Mapping[str, CountsDocument]
    vram: list[SampleDocument]
    failures: list[FailureLine]
    models: dict[str, str]
    forms: dict[str, str]
    erasure: ErasureLine | None


class NodeLine(TypedDict):
    """A node of an image on a server; `fence` is the number of its lease, `renewed` the moment of its last renewal.

    `running` and `waiting` are the missions that it has claimed.
    """

    fence: int
    name: str
    here: bool
    state: Literal["live", "silent", "ended"]
    publishes: bool
    asks_to_publish: bool
    renewed: str
    running: int
    waiting: int


class StandingDocument(TypedDict):
    """The daemon's state just now; `error` is why nothing can be thought with it."""

    answers: bool
    version: str | None
    loaded: list[LoadedModel]
    missing: list[str]
    error: ErrorDocument | None


class BackgroundGenesisDocument(TypedDict):
    """A genesis that is not done: `completed` and `total` of its step in bytes."""

    state: str
    step: NotRequired[str]
    completed: NotRequired[int | None]
    total: NotRequired[int | None]
    reason: NotRequired[ErrorDocument]


class WhyNode(TypedDict):
    """A thing and the things that it came from; `ref` is the name to ask on with, `at` and `tid` tell its commit."""

    kind: str
    text: str
    ref: NotRequired[str]
    at: NotRequired[str]
    tid: NotRequired[str]
    because: list[WhyNode]
    as_of: NotRequired[AsOfDocument]


@final
class RootNames(TypedDict):
    """The root's objects and the declared ones by name, each with its reference, and the sizes of its record trees."""

    objects: dict[str, str]
    declared: dict[str, str | None]
    records: dict[str, int]
    as_of: NotRequired[AsOfDocument]


class MirroredObject(TypedDict):
    """An object seen from outside; `parents` and `lineage` are references or names."""

    oid: str
    parents: list[str]
    lineage: list[str]
    slots: dict[str, SlotValue]


class DeclaredMethod(TypedDict):
    """A method of an object that is declared and does not exist."""

    selector: str
    signature: str
    text: str


@final
class InspectedDocument(TypedDict):
    """An object by the name that was asked for, or one of its slots.

    An object has `oid` to `slots`. An object that is declared and does not exist has `state`, its `api` and the
    `methods` that it would have. A slot has its name, its value, and as `holder` the object that answers it.
    """

    object: str
    oid: NotRequired[str]
    parents: NotRequired[list[str]]
    lineage: NotRequired[list[str]]
    slots: NotRequired[dict[str, SlotValue]]
    state: NotRequired[str]
    api: NotRequired[str]
    methods: NotRequired[list[DeclaredMethod]]
    slot: NotRequired[str]
    holder: NotRequired[str]
    value: NotRequired[SlotValue]
    as_of: NotRequired[AsOfDocument]


class TurnDocument(TypedDict):
    """A turn of a conversation, word for word."""

    position: int
    mission: str
    at: str
    question: str
    answer: str
    personas: list[str]
    trust: str


class CompactionDocument(TypedDict):
    """A summary of older turns; `turns` are the first and the last of them."""

    turns: list[int]
    level: int
    by: str
    text: str
    trust: str
    mission: str
    at: str


class ConversationPage(TypedDict):
    """Turns by position; `next` is the position after the page, None at the end."""

    conversation: str
    user: str
    count: int
    turns: list[TurnDocument]
    files: Sequence[Mapping[str, Any]]
    next: int | None
    compactions: list[CompactionDocument]
    as_of: NotRequired[AsOfDocument]


def genesis_text(told: BackgroundGenesisDocument) -> str:
    """Return in words how far a genesis is.

    >>> genesis_text({"state": "running", "step": "pull llama3.1:8b", "completed": 34, "total": 100})
    'pull llama3.1:8b, 34 %'
    """
    if told["state"] != "running":
        word = "waits and tries again" if told["state"] == "waiting" else "failed"
        return f"{word}: {told['reason']['message']}"
    if "step" not in told:
        return "genesis begins"
    completed, total = told.get("completed"), told.get("total")
    part = f", {100 * completed // total} %" if completed and total else ""
    return f"{told['step']}{part}"
