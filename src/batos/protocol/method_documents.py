"""The documents of methods and approvals, key by key: plain data in the image, on the wire and in front of a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict, final

from batos.protocol.mission_documents import AsOfDocument, ErrorDocument, LearntDocument
from batos.protocol.trial_documents import TrialDocument

#: A check as data: its call, the slots before it, the answers to its messages and the outcome, or a person's own keys.
CheckDocument: TypeAlias = Mapping[str, Any]
#: A guardian's verdict as stored, of one method or under `methods` of each; that of an older policy may lack keys.
StoredVerdict: TypeAlias = Mapping[str, Any]


class SourceFaultDocument(TypedDict):
    """A fault that the guardian found in a source."""

    line: int
    column: int
    rule: str
    why: str
    remedy: str


class SlotUseDocument(TypedDict):
    """The slots of the receiver that a source uses, sorted."""

    reads: list[str]
    writes: list[str]
    mutates: list[str]
    deletes: list[str]


class GuardianReach(TypedDict, total=False):
    """The grants and made objects that a source reaches for, where it reaches for any."""

    capabilities: list[str]


class GuardianDocument(GuardianReach):
    """The guardian's verdict on one source."""

    accepted: bool
    faults: list[SourceFaultDocument]
    policy: str
    digest: str
    selector: str
    parameters: str
    is_async: bool
    slots: SlotUseDocument
    sends: list[str]


class MutantsDocument(TypedDict, total=False):
    """The broken variants of a method, and the number of them that its checks detect; empty if none were made."""

    made: int
    killed: int


class ApprovedBy(TypedDict, total=False):
    """The part of a provenance that a person's yes adds."""

    approval: str
    approved_by: str
    approved_at: str


class MethodProvenance(ApprovedBy, total=False):
    """The origin of a method; `image.methods.PROVENANCE` names the keys that every candidate has.

    `digest` and `intent` come with its installation, `approval` to `approved_at` with a person's yes. `by` is the
    person who redefined it, `mission` made it for `missions`. `written` has the changes by which its source was read.
    """

    generation: str
    round: int
    model: str
    model_digest: str
    prompt_digest: str
    dialect: str
    attempts: int
    written: list[str]
    trust: str
    missions: list[str]
    mission: str
    by: str
    at: str
    mutants: MutantsDocument
    digest: str
    intent: str


class FormerRevision(TypedDict):
    """The revision that a candidate takes the place of."""

    revision: int
    source: str


class CandidateDocument(TypedDict):
    """A method that passed its checks and is not installed yet; `methods` are those of a whole object."""

    holder: str
    selector: str
    intent: str
    source: str
    verdict: StoredVerdict
    checks: Sequence[CheckDocument]
    provenance: MethodProvenance
    mutants: MutantsDocument
    wish: Mapping[str, Any] | None
    former: FormerRevision | None
    methods: list[CandidateDocument]
    forgets: NotRequired[Sequence[str]]
    effects: NotRequired[Sequence[str]]
    frame: NotRequired[Mapping[str, Any] | None]
    pins: NotRequired[Sequence[str]]
    digest: str


class IntentDocument(TypedDict):
    """The intent that a method is made from, as it is declared."""

    name: str
    text: str
    signature: str


class ApprovalLine(TypedDict):
    """A question to a person about a method, in a list; the keys of an answer are there once it is given."""

    id: str
    status: str
    object: str
    selector: str
    digest: str
    former: int
    asked_at: str
    until: str
    missions: list[str]
    answered_at: NotRequired[str]
    by: NotRequired[str]
    why: NotRequired[str]
    revision: NotRequired[int]


@final
class ApprovalDocument(ApprovalLine):
    """A question with all that an answer needs; `diff` to the former source, None if there is none.

    `pins` is the number of tools of a server that it is about.
    """

    intent: IntentDocument | None
    wish: Mapping[str, Any] | None
    source: str
    verdict: StoredVerdict
    checks: list[CheckDocument]
    mutants: MutantsDocument
    provenance: MethodProvenance
    diff: list[str] | None
    forgets: list[str]
    effects: list[str]
    pins: int


@final
class ApprovalList(TypedDict):
    """Approvals, the trials that wait for a person, and the number of all that wait, beyond the list too."""

    approvals: list[ApprovalLine]
    trials: list[TrialDocument]
    waiting: int


class AnsweredDocument(TypedDict):
    """A method, or the lever of a trial, which has no source, that a person answered about."""

    id: str
    object: str
    selector: str
    digest: NotRequired[str]
    by: str | None
    revision: NotRequired[int]
    why: NotRequired[str | None]
    effects: NotRequired[list[str]]


class ApprovalFailure(TypedDict):
    """An approval that a yes could not install, with the error."""

    id: str
    error: ErrorDocument


class ApprovedDocument(TypedDict):
    """The outcome of a yes; `woken` are the missions that go on."""

    approved: list[AnsweredDocument]
    refused: list[ApprovalFailure]
    woken: list[str]


class RejectedDocument(TypedDict):
    """The outcome of a no; `woken` are the missions that go on."""

    rejected: AnsweredDocument
    woken: list[str]


class UseFigures(TypedDict):
    """A use of a slot: `revision` 0 is the intent, interpreted for want of a method."""

    revision: int
    outcome: str
    control: bool
    seconds: float
    tokens: int
    calls: int
    gate_faults: int


class UsePayload(UseFigures):
    """A use as a mission contributes it to the ledger of a slot."""

    holder: str
    selector: str


class UseDocument(UseFigures):
    """A use as the ledger has it."""

    mission: str


#: A count of `UseCounts`.
CountName: TypeAlias = Literal["calls", "faults", "gate_faults", "bad", "seconds", "tokens", "model_calls", "undone"]


class UseCounts(TypedDict):
    """Sums over uses; `bad` ones failed, or the gate found a fault in the answer. `undone` ones went with a mission."""

    calls: int
    faults: int
    gate_faults: int
    bad: int
    seconds: float
    tokens: int
    model_calls: int
    undone: int


class UseTotals(TypedDict):
    """The uses of a revision, and those of its control, the interpreted intent."""

    method: UseCounts
    control: UseCounts


class SavingsDocument(TypedDict):
    """The savings of a revision against its control; None without a control."""

    better: float | None
    seconds_saved: float | None
    tokens_saved: int | None


class AccountDocument(SavingsDocument):
    """The ledger of a revision: `calls` are those that chose it and those of its control."""

    calls: int
    chosen: int
    control: int
    checks: int
    faults: int
    gate_faults: int
    bad: int
    undone: int
    seconds: float
    tokens: int


class MethodHead(TypedDict):
    """A method's name and state; `active` is a revision or 0."""

    method: str
    object: str
    selector: str
    kind: str
    state: str
    active: int


class MethodLine(MethodHead, AccountDocument):
    """A slot that ever had a method, in a list, with the ledger of its active or last revision."""

    revisions: int
    reason: str | None


class RetirementDocument(TypedDict):
    """The moment and the reason of a retirement."""

    at: str
    reason: str


class MethodDocument(MethodHead):
    """All of one revision of a method; `barred` is the reason why none is made, if none may be."""

    revision: int
    revisions: int
    source: str
    intent: str
    verdict: StoredVerdict
    checks: list[CheckDocument]
    provenance: MethodProvenance
    ledger: AccountDocument
    retired: RetirementDocument | None
    barred: str | None


class DatedMethod(MethodDocument):
    """All of one revision of a method, as of a moment where one was named."""

    as_of: NotRequired[AsOfDocument]


class ChangeReason(RetirementDocument):
    """The moment of a change, who made it, and the reason."""

    by: str


class SlotChange(ChangeReason):
    """A change of a slot: installed, restored, retired or declared; `former` was the active revision before."""

    number: int
    event: str
    revision: int
    former: int
    new_intent: bool


class RevisionLine(AccountDocument):
    """A revision in a history, with the changes that made it active and inactive, and its ledger."""

    revision: int
    active: bool
    digest: str
    model: str
    came: ChangeReason
    went: ChangeReason | None


class MethodHistory(TypedDict):
    """Every revision of a method, and every change of its slot, oldest first."""

    method: str
    kind: str
    state: str
    active: int
    revisions: list[RevisionLine]
    changes: list[SlotChange]


class LateReport(TypedDict):
    """The methods made after answers, and the number of those still to be made; `new` of them are of one mission."""

    made: list[LearntDocument]
    left: int
    new: NotRequired[int]


def no_use() -> UseTotals:
    """Return the totals of no use at all."""
    return UseTotals(method=no_counts(), control=no_counts())


def no_counts() -> UseCounts:
    """Return the counts of no use at all."""
    return UseCounts(calls=0, faults=0, gate_faults=0, bad=0, seconds=0, tokens=0, model_calls=0, undone=0)


class MethodList(TypedDict):
    """Every slot that ever had a method, and the number of methods that are still to be made."""

    methods: list[MethodLine]
    waiting: int
    as_of: NotRequired[AsOfDocument]
