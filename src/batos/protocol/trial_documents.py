"""The documents of trials, and of slots that may be redefined while running."""

from __future__ import annotations

from typing import Literal, NotRequired, TypeAlias, TypedDict, final

from batos.protocol.mission_documents import ErrorDocument
from batos.protocol.server_documents import FindingDocument

#: The states of a trial. `screening` chooses among the values of its lever, `trying` compares the best with the acting
#: one, `waiting` is better and wants a person, `promoted` is kept on probation, `kept` has passed that.
TrialWord: TypeAlias = Literal[
    "screening", "trying", "waiting", "promoted", "kept", "dropped", "spent", "void", "undone"
]


class SlotValueDocument(TypedDict):
    """A value of a slot that may be redefined: its number in the lineage (0: the codex's), and its origin."""

    number: int
    value: object
    by: str
    at: str
    why: str
    trial: str


class SlotLineage(TypedDict):
    """A slot that may be redefined while running: its acting value, and the values that it had."""

    slot: str
    what: str
    value: object
    values: list[SlotValueDocument]


@final
class SlotPage(TypedDict):
    """The slots that may be redefined while running."""

    slots: list[SlotLineage]


class SlotChangeDocument(TypedDict):
    """A slot with its value before a trial and the value that is tried."""

    slot: str
    before: object
    value: object


class TrialExample(TypedDict):
    """A question of a trial whose answer changed: both answers, and the worth of each."""

    question: str
    before: str
    after: str
    worth: list[float]


@final
class TrialDocument(TypedDict):
    """A change that was tried on questions whose answers are known.

    `evidence` is the e-value for a gain, `needed` that at which the change is kept. `stood_on` names trials whose
    values acted when it began. `candidates` has the values among which one is chosen, each in the order of `changes`;
    as long as none is, `changes` has the acting ones.
    """

    id: str
    lever: str
    state: TrialWord
    risk: int
    changes: list[SlotChangeDocument]
    candidates: list[list[object]]
    why: str
    by: str
    begun: str
    ended: str | None
    reason: str
    screened: int
    asked: int
    wins: int
    losses: int
    evidence: float
    needed: float
    probed: int
    calls: int
    tokens: int
    stood_on: list[str]
    examples: NotRequired[list[TrialExample]]


class SealedFigure(TypedDict):
    """The share of right answers to the sealed questions in a round, the number of these, and the day of its end."""

    share: float
    questions: int
    day: str


@final
class TrialPage(TypedDict):
    """Trials, the newest first; how many were tried and kept in all, and the most false ones that are expected.

    `sealed` has the figures of the newest rounds, the newest first.
    """

    trials: list[TrialDocument]
    tried: int
    kept: int
    false: float
    sealed: list[SealedFigure]


class SelfAuditAnswer(TypedDict):
    """An audit of ALFRED's: its name, its mission, its answer, and the gate's word for that."""

    name: str
    mission: str
    answer: str
    verdict: str


@final
class SelfAuditDocument(TypedDict):
    """ALFRED's audits of the running system: what was computed, and what he said of it.

    `ok`: all `findings` hold. `figures` are sentences of the counters and the ledger. `error` says why an audit is
    missing among `audits`.
    """

    ok: bool
    findings: list[FindingDocument]
    figures: list[str]
    audits: list[SelfAuditAnswer]
    error: ErrorDocument | None
