"""Approvals in the image: a generated method that waits for a person's yes, bound to one source and one slot.

The functions here change only objects of the given root. A refusal is returned and not raised, so that one refused
question does not abort the other changes of the same commit. docs/approvals.md describes the life of an approval.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from batos.guardian.audit import Context, audit
from batos.guardian.policy import SHIPPED
from batos.image import roots
from batos.image.records import Approval, ApprovalWord
from batos.image.roots import Root
from batos.objects.method import Method
from batos.objects.prototype import UvmObject, own_slots, reference
from batos.protocol.errors import NotFound, Refused
from batos.protocol.method_documents import CandidateDocument
from batos.protocol.mission_documents import ErrorDocument
from batos.protocol.motion_documents import OutcomeAct
from batos.records import approval_subjects, methods, outcomes, tool_declarations
from batos.records.approval_subjects import Candidate
from batos.records.outcomes import NotedAct

#: Forgets documents, by their ids.
Forget: TypeAlias = Callable[[Root, Sequence[str]], None]

#: The code of the reason for which a mission waits for a person.
NEEDED = "approval_needed"


@dataclass(frozen=True, slots=True)
class ApprovalQuestion:
    """A candidate that is asked about: under which id if nobody asked before, when, until when, for which mission."""

    name: str
    candidate: Candidate
    at: str
    until: str
    mission: str | None = None


@dataclass(frozen=True, slots=True)
class ApprovalState:
    """The state of a question; `changed` says that the call which returned this answer changed the state."""

    name: str
    word: ApprovalWord
    object: str
    selector: str
    digest: str
    until: str
    by: str | None = None
    why: str | None = None
    revision: int | None = None
    missions: tuple[str, ...] = ()
    changed: bool = False
    #: The effects on the world that it was about.
    effects: tuple[str, ...] = ()


def _answer(approval: Approval, at: str, *, changed: bool = False) -> ApprovalState:
    return ApprovalState(
        name=approval.name,
        word=approval.word_at(at),
        object=approval.object,
        selector=approval.candidate["selector"],
        digest=approval.candidate["digest"],
        until=approval.until,
        by=approval.by,
        why=approval.why,
        revision=approval.revision,
        missions=approval.missions,
        changed=changed,
        effects=tuple(approval.candidate.get("effects", ())),
    )


# -- asking


def ask(root: Root, question: ApprovalQuestion) -> ApprovalState:
    """Ask a person about a method, or add the mission to those that wait for the same question.

    Returns `approved` if exactly this method is active already. A mission that waited gets the answer that was given.
    An answer counts for no other mission, except a rejection, which holds for everybody until it lapses.

    Raises: NotFound: there is no such object.
    """
    candidate, at = question.candidate, question.at
    holder = methods.find_holder(root, candidate.holder)
    slot = slot_key(root, holder, candidate.selector, candidate.intent)
    key = f"{slot}{_digest(candidate)}"
    active = _active(root, holder, candidate.selector)
    if active is not None and _is_active_already(active, candidate):
        return _approval_of_active(root, active, candidate, at)
    newest = root[roots.ASKED].get(key)
    if newest is not None:
        found = _again(root[roots.APPROVALS][newest], question.mission, at)
        if found is not None:
            return found
    former = 0 if active is None else active.revision
    approval = Approval(
        question.name, candidate.as_dict(), _name(root, holder, candidate), former, (at, question.until)
    )
    _join(approval, question.mission)
    root[roots.APPROVALS][question.name] = approval
    root[roots.ASKED][key] = question.name
    root[roots.AWAITED].insert(question.name)
    return _answer(approval, at, changed=True)


def last_question(
    root: Root, holder: str, selector: str, intent: str, at: str, mission: str | None
) -> ApprovalState | None:
    """Return the state of the newest question about a slot, for any source; None if a new question may be asked.

    `intent` is the digest of the slot's Intent. A mission is added to those that wait; one that waited gets the answer.
    """
    start = slot_key(root, methods.find_holder(root, holder), selector, intent)
    # The character behind the blank: every key with this beginning sorts between the two.
    names = list(root[roots.ASKED].values(start, f"{start[:-1]}!", excludemax=True))
    return _again(root[roots.APPROVALS][max(names)], mission, at) if names else None


def _again(approval: Approval, mission: str | None, at: str) -> ApprovalState | None:
    """Return the state of an earlier question for a mission that asks it again; None if it must be asked anew."""
    word = approval.word_at(at)
    if word == "asked":
        _join(approval, mission)
    elif word == "approved":
        return None  # once: the slot has lost it since
    elif mission not in approval.missions and (word != "rejected" or approval.until <= at):
        return None
    return _answer(approval, at)


def _join(approval: Approval, mission: str | None) -> None:
    if mission is not None and mission not in approval.missions:
        approval.missions = (*approval.missions, mission)


def _is_active_already(active: Method, candidate: Candidate) -> bool:
    made = active.provenance
    return candidate.wish is None and (made["digest"], made["intent"]) == (candidate.digest, candidate.intent)


def _approval_of_active(root: Root, active: Method, candidate: Candidate, at: str) -> ApprovalState:
    """Return `approved` for a method that is active already, with the approval that allowed it if there was one."""
    approval = find_approval(root, str(active.provenance.get("approval", "")))
    if approval is not None:
        return replace(_answer(approval, at), word="approved")
    return ApprovalState(
        "", "approved", candidate.holder, candidate.selector, candidate.digest, at, revision=active.revision
    )


# -- answering


def approve(root: Root, name: str, by: str, at: str, forget: Forget | None = None) -> ApprovalState | None:
    """Say yes and install it, in one; None: there is no such question. Of memories: `forget` them.

    `approved` and `changed`: it is installed now. Whatever else: it is not, because it was answered before, its time is
    over, or (`outdated`) the slot is not what it was when it was asked.
    """
    approval = find_approval(root, name)
    if approval is None:
        return None
    if approval.word_at(at) != "asked":
        _expire_if_late(root, approval, at)
        return _answer(approval, at)
    candidate = audit_again(Candidate.from_dict(approval.candidate))
    why = _reason_not_installable(root, approval, candidate)
    if why is None:
        approved = candidate.with_approval({"approval": name, "approved_by": by, "approved_at": at})
        install = tool_declarations.install_object if approved.methods else _alone
        try:  # what it refuses, it refuses before it changes anything
            if approved.forgets and forget is not None:
                forget(root, approved.forgets)
            elif approved.installs:
                approval.revision = install(root, approved, at)[0].revision
        except (Refused, NotFound) as refused:
            why = refused.message
    if why is None:
        _close(root, approval, "approved", at, by, None)
    else:
        _close(root, approval, "outdated", at, None, why)
    return _answer(approval, at, changed=True)


def _alone(root: Root, candidate: Candidate, at: str) -> list[Method]:
    return [methods.install(root, candidate, at)]


def reject(root: Root, name: str, by: str, why: str, moments: tuple[str, str]) -> ApprovalState | None:
    """Say no, for a reason; `moments` are now, and until when the no stands. None: there is no such question."""
    at, until = moments
    approval = find_approval(root, name)
    if approval is None:
        return None
    if approval.word_at(at) != "asked":
        _expire_if_late(root, approval, at)
        return _answer(approval, at)
    approval.until = until
    _close(root, approval, "rejected", at, by, why)
    return _answer(approval, at, changed=True)


def expire(root: Root, name: str, at: str) -> ApprovalState | None:
    """Write down that the time of a question is over; None if it is not, or if it was answered."""
    approval = find_approval(root, name)
    return _answer(approval, at, changed=True) if approval is not None and _expire_if_late(root, approval, at) else None


def _expire_if_late(root: Root, approval: Approval, at: str) -> bool:
    if approval.word == "asked" and approval.word_at(at) == "expired":
        _close(root, approval, "expired", at, None, "nobody answered in time")
        return True
    return False


#: The acts that an answer is on the missions that asked.
_ACTS: Final[Mapping[ApprovalWord, OutcomeAct]] = {"approved": "approved", "rejected": "refused"}


def _close(root: Root, approval: Approval, word: ApprovalWord, at: str, by: str | None, why: str | None) -> None:
    approval.become(word, at, by, why)
    root[roots.AWAITED].remove(approval.name)
    act = _ACTS.get(word)
    if act is not None and by is not None:
        for mission in {*approval.candidate["provenance"].get("missions", ()), *approval.missions}:
            outcomes.note(root, mission, NotedAct(act, at, by))


# -- going with an undone mission, and coming back


def list_made_for(root: Root, mission: str, also: Collection[str]) -> list[str]:
    """List the open questions of a mission, by their ids, that it asked, or for which none but it and these did."""
    found: list[str] = []
    for approval in open_approvals(root):
        provenance = approval.candidate["provenance"]
        made_for = provenance.get("missions", ())
        is_alone = mission in made_for and all(each in (mission, *also) for each in (*made_for, *approval.missions))
        if is_alone or mission == provenance.get("mission"):
            found.append(approval.name)
    return found


def list_asked_by(root: Root, mission: str, at: str) -> list[str]:
    """List the questions that still wait which a mission asked or waits for, by their ids."""
    waiting = (each for each in open_approvals(root) if each.word_at(at) == "asked")
    return [
        each.name for each in waiting if mission in (*each.missions, *each.candidate["provenance"].get("missions", ()))
    ]


def withdraw(root: Root, names: Iterable[str], at: str, why: str) -> list[str]:
    """Close open questions as outdated for this reason, and return their ids."""
    closed = list(names)
    for name in closed:
        _close(root, root[roots.APPROVALS][name], "outdated", at, None, why)
    return closed


def ask_again(root: Root, names: Iterable[str], why: str) -> list[str]:
    """Open questions again that were withdrawn for this reason; return the ids of those that are open again."""
    found = [each for each in (find_approval(root, name) for name in names) if each is not None]
    back = [each for each in found if (each.word, each.why) == ("outdated", why)]
    for approval in back:
        approval.become("asked", None, None, None)
        root[roots.AWAITED].insert(approval.name)
    return [each.name for each in back]


def audit_again(candidate: Candidate) -> Candidate:
    """Return the candidate with today's verdict if its own is of an older policy, which no yes overrides."""
    if candidate.methods:
        return replace(candidate, methods=tuple(map(audit_again, candidate.methods)))
    if candidate.verdict.get("policy") == SHIPPED.version:
        return candidate
    return replace(candidate, verdict=audit(candidate.source, Context(candidate.selector)).as_dict())


def _reason_not_installable(root: Root, approval: Approval, candidate: Candidate) -> str | None:
    """Return the reason why an approved candidate cannot be installed any more, or None."""
    if _is_altered(candidate, approval.candidate):
        return "the source is not the one that was asked about"
    if candidate.forgets:
        return approval_subjects.reason_not_forgettable(root, candidate)
    if not candidate.installs:  # their own records say if one of them waits
        return None
    refused = [each for each in candidate.methods or (candidate,) if not each.verdict["accepted"]]
    if refused:
        faults = "; ".join(f"line {each['line']}: {each['why']}" for each in refused[0].verdict["faults"])
        return f"the guardian of today refuses {refused[0].selector!r}: {faults}"
    try:
        active = _active(root, methods.find_holder(root, candidate.holder), candidate.selector)
    except NotFound as gone:
        return gone.message
    now = 0 if active is None else active.revision
    if now != approval.former:
        return f"revision {now} is active, and revision {approval.former} was when it was asked"
    return None


def _is_altered(candidate: Candidate, kept: CandidateDocument) -> bool:
    parts = zip(candidate.methods, kept.get("methods", ()), strict=True)
    return candidate.digest != kept["digest"] or any(_is_altered(each, part) for each, part in parts)


# -- reading


def find_approval(root: Root, name: str) -> Approval | None:
    """Return the approval with that id, or None."""
    found: Approval | None = root[roots.APPROVALS].get(name)
    return found


def open_approvals(root: Root) -> Iterator[Approval]:
    """Yield the unanswered questions, oldest first. Some of them may be past their time."""
    return (root[roots.APPROVALS][name] for name in root[roots.AWAITED])


def closed_approvals(root: Root) -> Iterator[Approval]:
    """Yield the approvals that are no longer open, newest first."""
    names = reversed(list(root[roots.APPROVALS]))
    return (root[roots.APPROVALS][name] for name in names if name not in root[roots.AWAITED])


def count_waiting(root: Root) -> int:
    """Count what waits for a person: open questions, and trials whose change a person has to agree to."""
    tried = root.get(roots.TRIALS)  # an older moment of the image has none
    waiting = [] if tried is None else [name for name, each in tried.items() if each["state"] == "waiting"]
    return len(root[roots.AWAITED]) + len(waiting)


def last_answer(root: Root, holder: str, selector: str, digest: str, at: str) -> ApprovalState | None:
    """Return the state of the newest question about a source for a slot, whatever it held; None if none was asked."""
    start = f"{reference(methods.find_holder(root, holder))} {selector} "
    found = root[roots.ASKED].items(start, f"{start[:-1]}!", excludemax=True)
    names = [name for key, name in found if key.endswith(f" {digest}")]
    return _answer(root[roots.APPROVALS][max(names)], at) if names else None


def is_waiting(root: Root, reason: ErrorDocument | None) -> bool:
    """Test if a mission that stopped for that reason waits for a person, because a question it names is still open."""
    if reason is None or reason.get("code") != NEEDED:
        return False
    names = (reason.get("approval"), *reason.get("approvals", ()))
    return any(name in root[roots.AWAITED] for name in names if name)


# -- within


def _active(root: Root, holder: UvmObject, selector: str) -> Method | None:
    lineage = methods.lineage_of(root, holder, selector)
    return lineage.revisions[lineage.active] if lineage is not None and lineage.active else None


def _name(root: Root, holder: UvmObject, candidate: Candidate) -> str:
    """Return how people call the object of a question: a grant has its own name, and a plan is its mission's."""
    if candidate.frame is not None:
        return str(candidate.frame["mission"])
    if candidate.effects or candidate.pins:
        return str(own_slots(holder)["name"])
    return next((name for name in roots.OBJECTS if root.get(name) is holder), reference(holder))


def slot_key(root: Root, holder: UvmObject, selector: str, intent: str) -> str:
    """Return the prefix that the keys of all questions about a slot share while the slot stays as it is."""
    active = _active(root, holder, selector)
    return f"{reference(holder)} {selector} {0 if active is None else active.revision} {intent} "


def _digest(candidate: Candidate) -> str:
    """Return what tells questions about one slot apart: the source's digest, with a person's wish if any."""
    if candidate.wish is None:
        return candidate.digest
    wish = json.dumps(candidate.wish, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(f"{candidate.digest} {wish}".encode("utf-8", "surrogatepass")).hexdigest()
