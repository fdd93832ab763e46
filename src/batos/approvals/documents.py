"""Approvals as doors show them, and the errors that an approval ends a run with."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import chain, islice

from batos.image import ids, ownership, roots
from batos.image.records import Approval
from batos.image.roots import Root
from batos.objects.method import Intent
from batos.objects.prototype import UvmObject, own_slots, reference
from batos.protocol.errors import ApprovalNeeded, GenerationFailed, NotFound, Refused
from batos.protocol.method_documents import (
    ApprovalDocument,
    ApprovalLine,
    ApprovalList,
    CandidateDocument,
    FormerRevision,
    IntentDocument,
)
from batos.protocol.trial_documents import TrialDocument
from batos.records import approvals, call_questions, methods
from batos.records.approvals import ApprovalState


def approval_error(names: Sequence[str], what: str) -> ApprovalNeeded:
    """Return the error of a mission that waits until a person approves the first of these, and the others too."""
    first, *others = dict.fromkeys(names)
    answer = f"`batos approve {first}` or `batos reject {first} --why ...`"
    every = "; for several at once `batos approve --all --matching PATTERN`" if others else ""
    return ApprovalNeeded(
        f"{what} waits for your approval: {', '.join((first, *others))}",
        first,
        others=tuple(others),
        remedy=f"`batos approvals {first}` shows it; then {answer}{every}.",
    )


def combine_reasons(reasons: Sequence[ApprovalNeeded]) -> ApprovalNeeded:
    """Combine several ApprovalNeeded errors into one, so that the mission waits once for all approvals."""
    names = [name for each in reasons for name in (each.approval, *each.others)]
    return reasons[0] if len(set(names)) == 1 else approval_error(names, f"the code of {len(set(names))} parts")


def disapproval(answer: ApprovalState) -> GenerationFailed:
    """Return the error with which a part fails whose method may not run."""
    what = f"the method that was made for {answer.object}.{answer.selector}"
    if answer.word == "rejected":
        return GenerationFailed(
            f"{what} was rejected by {answer.by}: {answer.why} ({answer.name})",
            remedy="Declare the intent otherwise, or `batos method redefine` it.",
        )
    return GenerationFailed(
        f"{what} was not approved: {answer.why or 'nobody answered in time'} ({answer.name})",
        remedy="Ask again: a new approval is then requested.",
    )


def refusal(answer: ApprovalState) -> Refused:
    """Return the error for an answer that came too late."""
    said = {
        "approved": f"was approved by {answer.by} and is installed as revision {answer.revision}",
        "rejected": f"was rejected by {answer.by}: {answer.why}",
        "expired": f"has expired: nobody answered until {answer.until}",
        "outdated": f"is outdated: {answer.why}",
        "asked": "still waits for an answer",
    }[answer.word]
    is_call = answer.selector in (call_questions.PLAN, call_questions.CALL)
    if answer.effects or is_call:
        said = said.replace(f" and is installed as revision {answer.revision}", "")
        shows = f"`batos show {answer.object}`" if is_call else "`batos effects`"
        remedy = f"{shows} shows what came of it; ask again for another one."
        return Refused(f"{answer.name} ({answer.object}.{answer.selector}) {said}", field="approval", remedy=remedy)
    remedy = (
        "`batos method list` shows what is installed; `batos method rollback METHOD --revision 0` takes a method out."
        if answer.word == "approved"
        else "The next message to that intent asks again; `batos approvals` shows what waits."
    )
    return Refused(f"{answer.name} ({answer.object}.{answer.selector}) {said}", field="approval", remedy=remedy)


def no_such(name: str) -> NotFound:
    """Return the error for an id under which nothing is asked."""
    return NotFound(f"there is no approval {name!r}", field="approval", remedy="`batos approvals` lists them.")


def list_approvals(
    root: Root,
    at: str,
    limit: int,
    status: str | None = None,
    user: str | None = None,
    trials: Sequence[TrialDocument] = (),
) -> ApprovalList:
    """Return {approvals, trials, waiting}: those that wait, oldest first, then the newest; and how many wait in all.

    Where a user is named, only those that are of that user's missions alone are listed. `trials` wait for a person.
    """
    every = (
        each
        for each in chain(approvals.open_approvals(root), approvals.closed_approvals(root))
        if _open_to(root, each, user)
    )
    lines = (line(each, at) for each in every if status in (None, each.word_at(at)))
    waiting = sum(1 for each in approvals.open_approvals(root) if each.word_at(at) == "asked")
    return {"approvals": list(islice(lines, limit)), "trials": list(trials), "waiting": waiting + len(trials)}


def resolve_ids(root: Root, names: Iterable[str], user: str | None) -> list[str]:
    """Return the ids that are meant: any beginning that is one approval's alone, `last` for the newest, `last-1`, ...

    NotFound: another user's mission waits for it, and what it says of it is that user's; or there are not so many.
    BriefError: it is the beginning of several.
    """
    return [_resolve_id(root, name, user) for name in names]


def _resolve_id(root: Root, name: str, user: str | None) -> str:
    kept = root[roots.APPROVALS]
    before = ids.back(name)
    if before is not None:
        own = (each for each in ids.newest_first(kept) if _open_to(root, kept[each], user))
        newest = next(islice(own, before, None), None)
        if newest is None:
            raise no_such(name)
        return newest
    found = ids.complete_id(kept, name, None if user is None else lambda each: _open_to(root, kept[each], user))
    approval = approvals.find_approval(root, found)
    if approval is not None and not _open_to(root, approval, user):
        raise no_such(name)
    return found


def _open_to(root: Root, approval: Approval, user: str | None) -> bool:
    """Test if every mission that waits for it, and the one that wished for it, is this user's."""
    if user is None:
        return True
    wished = (approval.candidate["wish"] or {}).get("mission")
    candidate = approval.candidate
    of_mission = candidate.get("forgets") or candidate.get("effects") or candidate.get("frame")
    asking = candidate["provenance"].get("missions", ()) if of_mission else ()
    concerned = {*approval.missions, *asking, *([] if wished is None else [wished])}
    return bool(concerned) and ownership.is_asked_by(root, concerned, user)


def line(approval: Approval, at: str) -> ApprovalLine:
    """Return an approval for a list, without values that are not known yet."""
    shown = ApprovalLine(
        id=approval.name,
        status=approval.word_at(at),
        object=approval.object,
        selector=approval.candidate["selector"],
        digest=approval.candidate["digest"],
        former=approval.former,
        asked_at=approval.asked_at,
        until=approval.until,
        missions=list(approval.missions),
    )
    if approval.answered_at is not None:
        shown["answered_at"] = approval.answered_at
    if approval.by is not None:
        shown["by"] = approval.by
    if approval.why is not None:
        shown["why"] = approval.why
    if approval.revision is not None:
        shown["revision"] = approval.revision
    return shown


def whole(root: Root, name: str, at: str) -> ApprovalDocument:
    """Return an approval with source, verdict, checks, mutants, provenance, intent, and the diff to the former method.

    Raises: NotFound: there is no such approval.
    """
    approval = approvals.find_approval(root, name)
    if approval is None:
        raise no_such(name)
    candidate = approval.candidate
    former = candidate["former"]
    return {
        **line(approval, at),
        "intent": _intent(root, candidate),
        "wish": candidate["wish"],
        "source": candidate["source"],
        "verdict": dict(candidate["verdict"]),
        "checks": [dict(each) for each in candidate["checks"]],
        "mutants": candidate["mutants"].copy(),
        "provenance": candidate["provenance"].copy(),
        "diff": None if former is None else list(diff(former, candidate["source"])),
        "forgets": list(candidate.get("forgets", ())),
        "effects": list(candidate.get("effects", ())),
        "pins": len(candidate.get("pins", ())),
    }


def diff(former: FormerRevision, source: str) -> Iterator[str]:
    """Yield the lines of a unified diff from a former revision, {revision, source}, to a source."""
    names = f"revision {former['revision']}", "asked"
    return difflib.unified_diff(former["source"].split("\n"), source.split("\n"), *names, lineterm="")


def find_matching(root: Root, pattern: str, at: str, user: str | None = None) -> list[str]:
    """List the open questions whose object and selector match a pattern (`*`, `?`, `[abc]`; any case).

    With a user, only questions of that user's missions alone. An object matches by its root name, its own name, or its
    reference: `brick*.*_facet_`, `oid:0x2a.say_`.
    """
    wanted = pattern.casefold()
    waiting = (
        each for each in approvals.open_approvals(root) if each.word_at(at) == "asked" and _open_to(root, each, user)
    )
    return [each.name for each in waiting if any(fnmatchcase(form, wanted) for form in _forms(root, each))]


def _forms(root: Root, approval: Approval) -> Iterator[str]:
    selector = approval.candidate["selector"]
    holder = _holder(root, approval.candidate)
    named = () if holder is None else (own_slots(holder).get("name"), reference(holder))
    return (f"{each}.{selector}".casefold() for each in (approval.object, *named) if isinstance(each, str))


def _holder(root: Root, candidate: CandidateDocument) -> UvmObject | None:
    try:
        return methods.find_holder(root, candidate["holder"])
    except NotFound:  # it is gone since
        return None


def _intent(root: Root, candidate: CandidateDocument) -> IntentDocument | None:
    """Return the intent of the method as declared; None if the declaration is gone or changed."""
    holder = _holder(root, candidate)
    if holder is None:
        return None
    lineage = methods.lineage_of(root, holder, candidate["selector"])
    value = own_slots(holder).get(candidate["selector"])
    intent = value if isinstance(value, Intent) else None if lineage is None else lineage.intent
    if intent is None or methods.digest_of(intent) != candidate["intent"]:
        return None
    return {"name": intent.name, "text": intent.text, "signature": intent.signature}
