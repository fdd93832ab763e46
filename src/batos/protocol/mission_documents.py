"""The document of a mission, key by key: the same plain data in the image, on the wire and in front of a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict, final

from batos.protocol.evidence_documents import (
    CitationDocument,
    ComputedDocument,
    FocusDocument,
    PromptDocument,
    Recalled,
    SentenceDocument,
    SlotDocument,
    ToolProvenance,
    WrittenSlot,
)
from batos.protocol.motion_documents import OutcomeDocument


class ErrorDocument(TypedDict):
    """The error object of CONTRACT, as `BatosError.as_dict` makes it: some errors have keys of their own."""

    code: str
    message: str
    remedy: str
    retry: bool
    field: NotRequired[str]
    also: NotRequired[list[str]]
    largest_num_ctx: NotRequired[int | None]
    budget: NotRequired[Mapping[str, object]]
    approval: NotRequired[str]
    approvals: NotRequired[list[str]]
    faults: NotRequired[list[dict[str, object]]]


class LearningDocument(TypedDict):
    """The cost of methods that were made for a mission, beside its own."""

    calls: int
    tokens: int


class CostDocument(TypedDict):
    """The cost of a mission: counts, tokens, and seconds in `seconds` and `waited`."""

    calls: int
    embeds: int
    prompt_tokens: int
    answer_tokens: int
    seconds: float
    waited: float
    loads: int
    from_journal: int
    wasted: int
    learning: NotRequired[LearningDocument]


class FaultDocument(TypedDict):
    """A fault that the gate found, told to a model (`what`) and to a person; its code and words are in `values`."""

    check: str
    what: str
    told: NotRequired[str]
    values: NotRequired[dict[str, str]]


class VerdictDocument(TypedDict):
    """The gate's verdict on one answer: passed, faulty or unchecked, and the checks that were really made."""

    ok: bool
    state: NotRequired[str]
    checked: list[str]
    faults: list[FaultDocument]


class ForgedDocument(TypedDict):
    """A tool that a protocol made of an answer, or wished for."""

    object: str
    selector: str
    signature: str
    purpose: str
    outcome: str


class ProtocolDocument(TypedDict):
    """A protocol that was tried on the answer; `given` is what it was shown, `tool` what it forged."""

    slot: str
    metric: NotRequired[str]
    share: NotRequired[float]
    applied: bool
    given: NotRequired[str]
    failure: NotRequired[ErrorDocument]
    faults: NotRequired[list[FaultDocument]]
    tool: NotRequired[ForgedDocument | None]


class GateDocument(VerdictDocument):
    """The verdict on the answer that stands, and the way to it: a revision, a key protocol."""

    revised: bool
    mended: NotRequired[list[FaultDocument]]
    discarded: NotRequired[list[FaultDocument]]
    protocol: NotRequired[ProtocolDocument]


class WithdrawnDocument(TypedDict):
    """A text that was streamed under a call's path, and the reason for which it no longer stands."""

    path: str
    reason: str
    text: str


class LoadedModel(TypedDict):
    """A model in memory, and its place there; sizes in bytes."""

    model: str
    where: str
    size: int
    size_vram: int
    context_length: int | None


class PlacementDocument(LoadedModel):
    """A model in memory, with the runner that has it."""

    runner: str


class OmittedDocument(TypedDict):
    """Counts of passages, turns and parts that did not fit into a prompt."""

    passages: int
    turns: int
    parts: NotRequired[int]


class WinnerDocument(TypedDict):
    """The part whose answer stands."""

    number: int
    slot: str
    name: str


class CombinedDocument(TypedDict, total=False):
    """The way in which the parts became one answer; what was voted or selected stands there only if it was."""

    mode: str
    decomposed: bool
    undivided: str
    winner: WinnerDocument
    votes: list[list[int]]
    asked: int
    of: int
    majority: bool
    candidates: int
    shown: list[int]
    named: list[int | None]
    decided: str
    ruled: str


class ChangeDocument(TypedDict):
    """The change that one call brought about."""

    path: str
    did: str
    changed: bool
    what: str


RanDocument = TypedDict(
    "RanDocument",
    {
        "selector": str, "holder": str, "oid": str, "revision": NotRequired[str], "digest": NotRequired[str],
        "as": NotRequired[str], "path": NotRequired[str],
    },
)  # fmt: skip


class WishDocument(TypedDict):
    """A method that is to be made when the answer is out; `mission` is known once the wish is in the image."""

    holder: str
    selector: str
    intent: str
    arguments: list[str]
    mission: NotRequired[str]
    forged: NotRequired[bool]
    asks: NotRequired[bool]


class LearntDocument(LearningDocument):
    """The outcome of a generation for one mission, with what that began and paid; `mission` made it later and paid."""

    receiver: str
    selector: str
    outcome: str
    generation: NotRequired[str]
    approval: NotRequired[str]
    failure: NotRequired[ErrorDocument]
    wish: NotRequired[WishDocument]
    began: NotRequired[bool]
    after: NotRequired[bool]
    mission: NotRequired[str]


class ProvenanceDocument(ToolProvenance, total=False):
    """The origin of an answer; an attempt without an answer has `placements`, `methods` and `generated` at most."""

    personas: list[str]
    journal: list[str]
    models: dict[str, str]
    forms: dict[str, str]
    placements: list[PlacementDocument]
    methods: list[RanDocument]
    generated: list[LearntDocument]
    written: list[WrittenSlot]
    read: list[SlotDocument]
    recalled: list[Recalled]
    omitted: OmittedDocument
    focus: list[FocusDocument]
    computed: list[ComputedDocument]
    steps: dict[str, list[tuple[str, dict[str, int | str]]]]
    citations: list[CitationDocument]
    sentences: list[SentenceDocument]
    unanswered: list[int]
    cut: bool
    withdrawn: list[WithdrawnDocument]
    #: The line before the answer, where what is remembered was not near enough; "": the answer has none.
    without_memory: str
    combined: CombinedDocument
    changes: list[ChangeDocument]
    gate: GateDocument
    earlier: list[Mapping[str, Any]]
    read_at: str
    message: dict[str, Any]


class RouteDocument(TypedDict):
    """The personas that think, the leader first, with the effort and the reason; `protocols` are those meant."""

    personas: list[str]
    effort: str | None
    confidence: float
    reason: str
    scores: NotRequired[dict[str, float]]
    protocols: NotRequired[dict[str, dict[str, float]]]


class VoiceDocument(TypedDict):
    """A part of an answer; a persona's has the voices of its facets in it."""

    persona: str
    name: str
    query: str
    answer: str
    known: bool
    citations: list[CitationDocument]
    facet: NotRequired[str]
    gist: NotRequired[str]
    faults: NotRequired[list[FaultDocument]]
    voices: NotRequired[list[VoiceDocument]]
    failure: NotRequired[ErrorDocument]


class StateDocument(TypedDict):
    """A state that a mind entered; `path` names a mind within another."""

    state: str
    at: str
    path: NotRequired[str]


class TrustDocument(TypedDict):
    """The trust classes of a mission's question, of its answer, and of all that the answer was made from."""

    brief: str
    answer: NotRequired[str]
    lineage: NotRequired[str]


class AttemptDocument(TypedDict, total=False):
    """The parts of a mission's document that a failed attempt leaves in its status."""

    states: list[StateDocument]
    route: RouteDocument
    cost: CostDocument
    provenance: ProvenanceDocument | None


class AsOfDocument(TypedDict):
    """A past moment of the image: right after commit `tid`; `mission` if it was named by one."""

    at: str
    tid: str
    mission: NotRequired[str]


class ReplayDocument(TypedDict):
    """The differences of a replay: calls by their steps, then pairs (before, after), then lines with a minus or a plus.

    `same` calls were served from the journal, `made` ones asked of a model, `gone` not needed; `erased` have no words.
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


@final
class MissionDocument(TypedDict, total=False):
    """A mission whole, as CONTRACT shows it: `id` to `states` always, the rest as far as there is any.

    `as_of` is the moment of a question to the past, `dream` marks a dream, `replay` has what came out otherwise.
    """

    id: str
    status: str
    brief: dict[str, Any]
    accepted_at: str
    trust: TrustDocument
    states: list[StateDocument]
    reason: ErrorDocument
    answer: Any
    voices: list[VoiceDocument]
    route: RouteDocument
    cost: CostDocument
    provenance: ProvenanceDocument
    tid: str
    outcomes: list[OutcomeDocument]
    prompts: list[PromptDocument]
    as_of: AsOfDocument
    dream: bool
    replay: ReplayDocument


class MissionLineDocument(TypedDict):
    """A mission in a list."""

    id: str
    status: str
    at: str
    accepted_at: str
    user: str
    text: str


class MissionList(TypedDict):
    """The newest missions."""

    missions: list[MissionLineDocument]


@final
class SubmittedMission(TypedDict):
    """A mission that was accepted, for an asker who does not follow it."""

    mission: str
    status: str
