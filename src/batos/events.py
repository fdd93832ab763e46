"""Events: named values with keys, reported to subscribers and never used to decide anything."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NotRequired, TypeAlias, TypedDict

import structlog

from batos.errors import InternalError
from batos.mission_documents import CostDocument, GateDocument, PlacementDocument

Subscriber: TypeAlias = Callable[[str, Mapping[str, Any]], None]

#: Every event and the keys it always carries (others may follow).
NAMES: dict[str, tuple[str, ...]] = {
    "mission.status": ("mission", "status", "reason"),
    "mission.accepted": ("mission", "user", "waiting"),
    "mission.routed": ("mission", "personas", "effort", "confidence", "reason"),
    "mission.state": ("mission", "state"),
    "mission.token": ("mission", "path", "text"),
    "mission.partial": ("mission", "path", "persona", "known", "of"),
    "mission.done": ("mission", "tid"),
    "mission.failed": ("mission", "status", "reason"),
    "mission.retracted": ("mission",),
    "queue.busy": ("user",),
    "inference.start": ("mission", "path", "model"),
    "inference.first_token": ("mission", "path", "seconds"),
    "inference.end": ("mission", "path", "model", "prompt_tokens", "answer_tokens", "seconds", "from_journal"),
    "txn.commit": ("what",),
    "txn.abort": ("what", "reason"),
    "txn.conflict": ("what",),
    "genesis.step": ("step", "status"),
    "guardian.verdict": ("selector", "accepted", "faults", "policy", "digest"),
    "cell.kill": ("selector", "limit"),
    "method.generating": ("mission", "receiver", "selector", "generation"),
    "method.repair": ("receiver", "selector", "attempt", "why"),
    "method.tried": ("receiver", "selector", "outcome", "mutants", "killed"),
    "method.installed": ("receiver", "selector", "revision", "digest"),
    "method.retired": ("receiver", "selector", "revision", "reason"),
    "vram.sample": ("model", "runner", "where", "size", "size_vram"),
    "vram.spill": ("model", "runner", "where", "size", "size_vram"),
    "approval.asked": ("approval", "receiver", "selector", "digest"),
    "approval.answered": ("approval", "answer", "by"),
}


class MissionStatus(TypedDict):
    """A mission's status; `reason` is an error object, `attempt` counts its runs."""

    mission: str
    status: str
    reason: Mapping[str, Any] | None
    attempt: NotRequired[int]


class MissionAccepted(TypedDict):
    """A mission on the disk; `waiting` counts the missions in the queue."""

    mission: str
    user: str
    waiting: int


class MissionState(TypedDict):
    """A state that a mind entered; `path` names a mind within another."""

    mission: str
    state: str
    path: NotRequired[str]


class MissionSummary(TypedDict):
    """The summary of a mission's last attempt; absent if it has not begun."""

    conversation: NotRequired[str | None]
    personas: NotRequired[Sequence[str] | None]
    cost: NotRequired[CostDocument]
    gate: NotRequired[GateDocument | None]


class MissionDone(MissionSummary):
    """An answered mission, by its commit."""

    mission: str
    tid: str | None


class MissionEnded(MissionSummary):
    """A mission that ended without an answer; `reason` is an error object."""

    mission: str
    status: str
    reason: Mapping[str, Any]


class QueueBusy(TypedDict):
    """A request that found the queue full."""

    user: str


class InferenceStart(TypedDict):
    """A call that begins."""

    mission: str
    path: str
    model: str


class InferenceFirstToken(TypedDict):
    """The first token of a call, `seconds` after its beginning."""

    mission: str
    path: str
    seconds: float


class InferenceEnd(TypedDict):
    """A call that was answered, or whose answer was in the journal."""

    mission: str
    path: str
    model: str
    prompt_tokens: int
    answer_tokens: int
    seconds: float
    from_journal: bool


class TransactionCommit(TypedDict):
    """A commit: a batch names its database and counts its `changes`, a thought names its mission."""

    what: str
    changes: NotRequired[int]
    tid: NotRequired[str]


class TransactionAbort(TypedDict):
    """A transaction that was left."""

    what: str
    reason: str


class TransactionConflict(TypedDict):
    """A transaction that conflicts with an earlier commit."""

    what: str


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


#: The payload of each event whose keys are read by name, for a type checker and for the test of NAMES.
PAYLOADS: Final[Mapping[str, type]] = {
    "mission.status": MissionStatus,
    "mission.accepted": MissionAccepted,
    "mission.state": MissionState,
    "mission.done": MissionDone,
    "mission.failed": MissionEnded,
    "queue.busy": QueueBusy,
    "inference.start": InferenceStart,
    "inference.first_token": InferenceFirstToken,
    "inference.end": InferenceEnd,
    "txn.commit": TransactionCommit,
    "txn.abort": TransactionAbort,
    "txn.conflict": TransactionConflict,
    "guardian.verdict": GuardianVerdict,
    "cell.kill": CellKill,
    "method.repair": MethodRepair,
    "method.tried": MethodTried,
    "method.installed": MethodInstalled,
    "method.retired": MethodRetired,
    "vram.sample": PlacementDocument,
    "vram.spill": PlacementDocument,
}

_log = structlog.get_logger("batos")

#: Too many to log at the usual level.
_CHATTY = frozenset({"mission.token"})


class Events:
    """A list of subscribers; one that raises is dropped and logged, and never breaks a mission.

    With BATOS_DEBUG_EVENTS=1, as in every test, an event that is not in NAMES or lacks a key raises InternalError.
    """

    def __init__(self, *subscribers: Subscriber, log: bool = False) -> None:
        # By a key of their own: two subscribers may be equal, and one may leave while it is told.
        self._subscribers: dict[object, Subscriber] = {object(): each for each in subscribers}
        self._logs = log
        self._strict = os.environ.get("BATOS_DEBUG_EVENTS") == "1"

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Add a subscriber; returns the function that takes it away again."""
        key = object()
        self._subscribers[key] = subscriber

        def unsubscribe() -> None:
            self._subscribers.pop(key, None)

        return unsubscribe

    def emit(self, event: str, **keys: Any) -> None:
        """Tell everyone, and the log."""
        if self._strict:
            _check(event, keys)
        if self._logs and event not in _CHATTY:
            _log.info(event, **keys)
        for key, subscriber in tuple(self._subscribers.items()):
            try:
                subscriber(event, keys)
            except Exception:  # an observer must never break what it observes
                self._subscribers.pop(key, None)
                _log.exception("subscriber dropped", event_name=event)


def _check(event: str, keys: Mapping[str, Any]) -> None:
    missing = set(NAMES[event]) - keys.keys() if event in NAMES else {"a name"}
    if missing:
        raise InternalError(f"the event {event!r} lacks {', '.join(sorted(missing))}")
