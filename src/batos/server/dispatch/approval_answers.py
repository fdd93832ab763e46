"""Approvals through every door: methods approved one by one or by pattern, or rejected."""

from __future__ import annotations

import asyncio

from batos.approvals import documents
from batos.approvals.desk import ApprovalAnswers
from batos.approvals.reasons import refusal
from batos.image.ids import iso
from batos.protocol.errors import BriefError, NotFound, ProtocolError
from batos.protocol.method_documents import AnsweredDocument, ApprovedDocument, RejectedDocument
from batos.records.approvals import ApprovalState
from batos.uvm import UVM
from batos.verbs.approval_verbs import ApproveArgs, RejectArgs


async def approve(uvm: UVM, given: ApproveArgs) -> ApprovedDocument:
    """Say yes: {approved, refused, woken}. Refused where nothing could be approved, NotFound where nothing is meant."""
    if (given.approvals is None) == (given.matching is None):
        raise ProtocolError(
            "args: either approvals or matching is given", field="args.approvals", remedy="Name ids, or a pattern."
        )
    of = given.user if given.mine else None
    names = given.approvals
    if names is None:
        names = await asyncio.to_thread(_matching, uvm, given.matching or "", of)
    else:
        names = await asyncio.to_thread(_resolve_ids, uvm, names, of)
    answered = await uvm.approvals.approve(names, given.user or uvm.settings.asker)
    refused = [answer for answer in answered.answers if not _said(answer, "approved")]
    if len(refused) == len(answered.answers):
        raise refusal(refused[0])
    return {
        "approved": [_answer_document(answer) for answer in answered.answers if _said(answer, "approved")],
        "refused": [{"id": answer.name, "error": refusal(answer).as_dict()} for answer in refused],
        "woken": list(answered.woken),
    }


def _resolve_ids(uvm: UVM, names: list[str], user: str | None) -> list[str]:
    with uvm.image.snapshot() as root:
        return documents.resolve_ids(root, names, user)


def _matching(uvm: UVM, pattern: str, user: str | None) -> list[str]:
    with uvm.image.snapshot() as root:
        names = documents.find_matching(root, pattern, iso(uvm.clock()), user)
    if not names:
        raise NotFound(
            f"nothing that waits for approval matches {pattern!r}",
            field="matching",
            remedy="`batos approvals` lists what waits; a pattern is over OBJECT.SELECTOR, like 'brick*.*_facet_'.",
        )
    return names


async def reject(uvm: UVM, given: RejectArgs) -> RejectedDocument:
    """Say no: {rejected, woken}. Refused: it was answered before, or its time is over."""
    if not given.why.strip():
        raise BriefError("why: it has only blanks", field="why", remedy="Give a reason: the one who asked is told.")
    (name,) = await asyncio.to_thread(_resolve_ids, uvm, [given.approval], given.user if given.mine else None)
    answered: ApprovalAnswers = await uvm.approvals.reject(name, given.user or uvm.settings.asker, given.why.strip())
    answer = answered.answers[0]
    if not _said(answer, "rejected"):
        raise refusal(answer)
    return {"rejected": {**_answer_document(answer), "why": answer.why}, "woken": list(answered.woken)}


def _said(answer: ApprovalState, word: str) -> bool:
    """Test if an answer is the one that was just given."""
    return answer.changed and answer.word == word


def _answer_document(answer: ApprovalState) -> AnsweredDocument:
    told = AnsweredDocument(
        id=answer.name, object=answer.object, selector=answer.selector, digest=answer.digest, by=answer.by
    )
    if answer.revision is not None:
        told["revision"] = answer.revision
    return told
