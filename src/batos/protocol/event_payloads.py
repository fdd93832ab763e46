"""The events: the name of each, and the type of the payload that it carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Generic, NotRequired, TypedDict, TypeVar, get_origin, get_type_hints

from batos.protocol.evidence_documents import CitationDocument, RuleDocument, ToolCallDocument
from batos.protocol.mission_documents import CostDocument, ErrorDocument, GateDocument, PlacementDocument, RouteDocument

Payload = TypeVar("Payload", bound=Mapping[str, object])


@dataclass(frozen=True)
class Event(Generic[Payload]):
    """An event: its name, and the type of its payload, which `Events.emit` holds a caller to."""

    name: str
    payload: type[Payload]

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """Return the keys that every payload has, in the order of their type."""
        return tuple(key for key, hint in self._hints.items() if get_origin(hint) is not NotRequired)

    @cached_property
    def known_keys(self) -> frozenset[str]:
        """Return all keys that a payload may have."""
        return frozenset(self._hints)

    @property
    def _hints(self) -> dict[str, object]:
        # Not `__required_keys__`: that has every key where annotations are strings.
        return get_type_hints(self.payload, include_extras=True)


class MissionPayload(TypedDict):
    """The beginning of each payload that is about one mission."""

    mission: str


class MissionStatus(MissionPayload):
    """A mission's status; `reason` is an error object, `attempt` counts its runs."""

    status: str
    reason: ErrorDocument | None
    attempt: NotRequired[int]


class MissionAccepted(MissionPayload):
    """A mission on the disk; `waiting` counts the missions in the queue."""

    user: str
    waiting: int


class MissionRouted(MissionPayload, RouteDocument):
    """The route of a mission; a persona that was asked for has no scores beside it."""


class MissionState(MissionPayload):
    """A state that a mind entered; `path` names a mind within another."""

    state: str
    path: NotRequired[str]


class MissionRule(MissionPayload, RuleDocument):
    """A decision of a rule in place of the model at `path`: division, choice, weave, answer, reply or result."""


class MissionTool(MissionPayload, ToolCallDocument):
    """A call of a tool for a question of a mission."""


class MissionOutside(MissionPayload):
    """The end of a call to the world at `path`: `done`, `failed`, or `cut` where nobody knows what came of it."""

    path: str
    kind: str
    state: str
    from_journal: bool


class MissionToken(MissionPayload):
    """A piece of an answer as it is streamed; `path` names the call that writes it."""

    path: str
    text: str


class MissionCitation(MissionPayload, CitationDocument):
    """A citation of a sentence of the answer that the call at `path` writes, told when the sentence ends.

    Words alone decide it; the citations of the answer that stands are in its provenance.
    """

    path: str


class MissionPartial(MissionPayload):
    """A part of an answer out of `of`; `known` is false for a part without an answer, `facet` names a facet's slot."""

    path: str
    persona: str
    known: bool
    of: int
    facet: NotRequired[str]


class MissionSummary(TypedDict):
    """The summary of a mission's last attempt; absent if it has not begun. `own`: the mind asked it itself."""

    own: NotRequired[bool]
    conversation: NotRequired[str | None]
    personas: NotRequired[Sequence[str] | None]
    cost: NotRequired[CostDocument]
    gate: NotRequired[GateDocument | None]


class MissionDone(MissionPayload, MissionSummary):
    """An answered mission, by its commit."""

    tid: str | None


class MissionEnded(MissionPayload, MissionSummary):
    """A mission that ended without an answer; `reason` is an error object."""

    status: str
    reason: ErrorDocument


class MissionRetracted(MissionPayload):
    """Streamed text that no longer stands: of the call at `path` and why, or of the whole attempt."""

    path: NotRequired[str]
    reason: NotRequired[str]


class QueueBusy(TypedDict):
    """A request that found the queue full."""

    user: str


class InferenceStart(MissionPayload):
    """A call that begins."""

    path: str
    model: str


class InferenceFirstToken(MissionPayload):
    """The first token of a call, `seconds` after its beginning."""

    path: str
    seconds: float


class InferenceEnd(MissionPayload):
    """A call that was answered, or whose answer was in the journal."""

    path: str
    model: str
    prompt_tokens: int
    answer_tokens: int
    seconds: float
    from_journal: bool


class TransactionCommit(TypedDict):
    """A commit with its `seconds`: a batch names its database and counts its `changes`, a thought names its mission."""

    what: str
    seconds: float
    changes: NotRequired[int]
    tid: NotRequired[str]


class TransactionAbort(TypedDict):
    """A transaction that was left."""

    what: str
    reason: str


class TransactionConflict(TypedDict):
    """A transaction that conflicts with an earlier commit."""

    what: str


class GenesisStep(TypedDict):
    """A new status of a step; `completed` and `total` in bytes are told to the client that asked for the step."""

    step: str
    status: str
    completed: NotRequired[int | None]
    total: NotRequired[int | None]


class ErasureStep(TypedDict):
    """The progress of an erasure of a large mind: its phase, and the bytes of all phases that are done.

    The phases are `plan`, `search`, `journal`, `image`, `history` (logs too) and `check`.
    """

    phase: str
    completed: int
    total: int


class GuardianVerdict(TypedDict):
    """The guardian's verdict on a source; `faults` are names of rules."""

    selector: str
    accepted: bool
    faults: Sequence[str]
    policy: str
    digest: str


class CellKill(TypedDict):
    """A run of a method that was ended at a limit."""

    selector: str
    limit: str


class MethodGenerating(MissionPayload):
    """A method that is about to be written; `kind` is its intent's, `generation` the id of its log."""

    receiver: str
    selector: str
    kind: str
    generation: str


class MethodRepair(TypedDict):
    """A source that is written again, and the fault of the former one."""

    receiver: str
    selector: str
    attempt: int
    why: str


class MethodTried(TypedDict):
    """The outcome of a trial; `killed` of the `mutants` failed the checks."""

    receiver: str
    selector: str
    outcome: str
    mutants: int
    killed: int


class MethodInstalled(TypedDict):
    """A method that is active now."""

    receiver: str
    selector: str
    revision: int
    digest: str


class MethodRetired(TypedDict):
    """A method that is no longer active."""

    receiver: str
    selector: str
    revision: int
    reason: str


class ApprovalAsked(TypedDict):
    """A question to a person about a source; `digest` is the source's."""

    approval: str
    receiver: str
    selector: str
    digest: str


class ApprovalAnswered(TypedDict):
    """The answer to a question, and the person who gave it; nobody if it lapsed."""

    approval: str
    answer: str
    by: str | None


class MemoryVectors(TypedDict):
    """Parts of what is remembered have got vectors of a model; `missing` ones have none yet."""

    model: str
    missing: int


class MemoryFolded(TypedDict):
    """A summary stands for a region of memories from now on: so many documents, with parts before and after."""

    summary: str
    reason: str
    written_by: str
    documents: int
    chunks: int
    left: int


class ScheduleFired(TypedDict):
    """A moment of a schedule has come; `mission` is absent of a reminder, `skipped` counts what was missed before."""

    schedule: str
    due: str
    skipped: int
    text: str
    mission: NotRequired[str]


class EffectReleased(MissionPayload):
    """An effect on the world that a mission staged has happened; `outcome` is as `batos effects` shows it."""

    effect: str
    grant: str
    outcome: Mapping[str, object]


class EffectUnknown(MissionPayload):
    """An effect on the world may have happened, and nobody can know: a person is asked."""

    effect: str
    grant: str
    reason: str


class EffectFailed(MissionPayload):
    """An effect on the world did not happen and will not; `reason` is an error object."""

    effect: str
    grant: str
    reason: ErrorDocument


class ImagePacked(TypedDict):
    """States of image and journal before a moment are gone; so many bytes were freed."""

    until: str
    freed: int


MISSION_STATUS: Final = Event("mission.status", MissionStatus)
MISSION_ACCEPTED: Final = Event("mission.accepted", MissionAccepted)
MISSION_ROUTED: Final = Event("mission.routed", MissionRouted)
MISSION_STATE: Final = Event("mission.state", MissionState)
MISSION_RULE: Final = Event("mission.rule", MissionRule)
MISSION_TOOL: Final = Event("mission.tool", MissionTool)
MISSION_OUTSIDE: Final = Event("mission.outside", MissionOutside)
MISSION_TOKEN: Final = Event("mission.token", MissionToken)
MISSION_CITATION: Final = Event("mission.citation", MissionCitation)
MISSION_PARTIAL: Final = Event("mission.partial", MissionPartial)
MISSION_DONE: Final = Event("mission.done", MissionDone)
MISSION_FAILED: Final = Event("mission.failed", MissionEnded)
MISSION_RETRACTED: Final = Event("mission.retracted", MissionRetracted)
QUEUE_BUSY: Final = Event("queue.busy", QueueBusy)
INFERENCE_START: Final = Event("inference.start", InferenceStart)
INFERENCE_FIRST_TOKEN: Final = Event("inference.first_token", InferenceFirstToken)
INFERENCE_END: Final = Event("inference.end", InferenceEnd)
TXN_COMMIT: Final = Event("txn.commit", TransactionCommit)
TXN_ABORT: Final = Event("txn.abort", TransactionAbort)
TXN_CONFLICT: Final = Event("txn.conflict", TransactionConflict)
GENESIS_STEP: Final = Event("genesis.step", GenesisStep)
ERASURE_STEP: Final = Event("erasure.step", ErasureStep)
GUARDIAN_VERDICT: Final = Event("guardian.verdict", GuardianVerdict)
CELL_KILL: Final = Event("cell.kill", CellKill)
METHOD_GENERATING: Final = Event("method.generating", MethodGenerating)
METHOD_REPAIR: Final = Event("method.repair", MethodRepair)
METHOD_TRIED: Final = Event("method.tried", MethodTried)
METHOD_INSTALLED: Final = Event("method.installed", MethodInstalled)
METHOD_RETIRED: Final = Event("method.retired", MethodRetired)
VRAM_SAMPLE: Final = Event("vram.sample", PlacementDocument)
VRAM_SPILL: Final = Event("vram.spill", PlacementDocument)
APPROVAL_ASKED: Final = Event("approval.asked", ApprovalAsked)
APPROVAL_ANSWERED: Final = Event("approval.answered", ApprovalAnswered)
MEMORY_VECTORS: Final = Event("memory.vectors", MemoryVectors)
SCHEDULE_FIRED: Final = Event("schedule.fired", ScheduleFired)
MEMORY_FOLDED: Final = Event("memory.folded", MemoryFolded)
IMAGE_PACKED: Final = Event("image.packed", ImagePacked)
EFFECT_RELEASED: Final = Event("effect.released", EffectReleased)
EFFECT_UNKNOWN: Final = Event("effect.unknown", EffectUnknown)
EFFECT_FAILED: Final = Event("effect.failed", EffectFailed)

#: Every event by its name, in the order of the documentation.
EVENTS: Final[Mapping[str, Event[Any]]] = {
    event.name: event for event in tuple(globals().values()) if isinstance(event, Event)
}
