"""Changes of methods and answers to what waits for a person, through every door."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from batos.agency.plans import read_plan
from batos.approvals import documents
from batos.approvals.desk import ApprovalAnswers
from batos.approvals.documents import approval_error, no_such, refusal
from batos.autotelic import slot_values, trial_verdicts, trials
from batos.client.pending import OnEvent
from batos.image.ids import is_trial, iso
from batos.image.roots import Root
from batos.missions import reports
from batos.protocol.errors import BriefError, GenerationFailed, NotFound, ProtocolError, Refused
from batos.protocol.method_documents import (
    AnsweredDocument,
    ApprovalFailure,
    ApprovedDocument,
    LateReport,
    MethodDocument,
    RejectedDocument,
)
from batos.protocol.trial_documents import SlotLineage
from batos.records import approvals, call_questions
from batos.records.approvals import ApprovalState
from batos.records.redefinitions import ChangeOrigin
from batos.server.dispatch.handling import Handler, Shield, bind
from batos.server.dispatch.trial_changes import Verdict, decide
from batos.uvm import UVM
from batos.verbs.approval_verbs import ApproveArgs, RejectArgs
from batos.verbs.method_verbs import (
    METHOD_MAKE,
    METHOD_REDEFINE,
    METHOD_REPARENT,
    METHOD_ROLLBACK,
    MethodMakeArgs,
    MethodRedefineArgs,
    MethodReparentArgs,
    MethodRollbackArgs,
)


def verbs(uvm: UVM, shielded: Shield) -> Mapping[str, Handler]:
    """Return the verbs that change methods, by name."""

    async def answer_make(_given: MethodMakeArgs, on_event: OnEvent, *_told: object) -> LateReport:
        def tell(event: str, keys: Mapping[str, object]) -> None:
            if event == "method.generating":
                on_event(event, keys)

        leave = uvm.events.subscribe(tell)
        try:
            return await uvm.learning.some()
        finally:
            leave()

    return dict(
        (
            bind(METHOD_ROLLBACK, lambda given, *_told: shielded(roll_back(uvm, given))),
            bind(METHOD_MAKE, answer_make),
            bind(METHOD_REDEFINE, lambda given, *_told: shielded(redefine(uvm, given))),
            bind(METHOD_REPARENT, lambda given, *_told: shielded(reparent(uvm, given))),
        )
    )


async def roll_back(uvm: UVM, given: MethodRollbackArgs) -> MethodDocument:
    """Let a former revision be active again; the method as `method_show` has it. Raises: see the lifecycle."""
    return await uvm.lifecycle.roll_back(given.method, given.revision, given.user or uvm.settings.asker)


async def reparent(uvm: UVM, given: MethodReparentArgs) -> SlotLineage:
    """Let an object delegate to others; return its parents as `slot_show` has them. Raises: as `slot_values`."""
    origin = ChangeOrigin(given.user or uvm.settings.asker, iso(uvm.clock()), given.why)

    def change(root: Root) -> SlotLineage:
        slot = f"{given.object}.parents"
        slot_values.redefine(root, slot, tuple(given.parents), origin)
        return slot_values.describe(root, slot)

    return await uvm.image.shared.apply(change)


async def redefine(uvm: UVM, given: MethodRedefineArgs) -> MethodDocument:
    """Make a new revision of a wish, a source or both; return the method as `method_show` has it.

    A person's own source is installed at once. A source that a model wrote for a wish is installed, asked about or
    refused as the setting `install` says; of an object that was made from documents it is always asked about. Raises:
    ApprovalNeeded: the revision waits for an answer. Refused: the setting forbids it. NotFound: there is no such slot.
    GenerationFailed, CovenantViolation: nothing acceptable came of it; the method is as it was.
    """
    written, policy = given.source is None, uvm.settings.install
    if written and (given.wish is None or given.checks is not None):
        what = "wish and source are both left out" if given.wish is None else "checks go with a source"
        raise ProtocolError(f"args: {what}", field="args.source", remedy="Give a wish, or a source.")
    if written and policy == "never":
        raise Refused(
            "no method is made of a wish: `install` is never",
            field="install",
            remedy="Give its source with --file, or set install to ask, now or auto.",
        )
    by = given.user or uvm.settings.asker
    holder, selector = uvm.lifecycle.slot(given.method)
    if written:  # a model thinks: the codex acts, and which models there are is known
        await uvm.readiness.check()
    candidate = await uvm.method_runtime.generator.redefine(
        holder, selector, by, wish=given.wish, source=given.source, checks=given.checks
    )
    asks = written and (policy == "ask" or candidate.provenance["trust"] == "external")
    approval = ""
    try:
        if asks:
            approval = await uvm.approvals.ask(candidate, None)
        else:
            await uvm.lifecycle.install(candidate)
    except (GenerationFailed, Refused):  # it was rejected before, or is for another wish by now: the next one is anew
        await uvm.method_runtime.generator.close_redefinition(candidate)
        raise
    await uvm.method_runtime.generator.close_redefinition(candidate)
    if approval:
        raise approval_error([approval], f"the new {given.method}")
    return uvm.lifecycle.describe(given.method)


async def approve(uvm: UVM, given: ApproveArgs) -> ApprovedDocument:
    """Say yes: {approved, refused, woken}. Refused where nothing could be approved, NotFound where nothing is meant."""
    if sum(each is not None for each in (given.approvals, given.matching, given.all_of)) != 1:
        remedy = "Name ids, a pattern, or a mission."
        raise ProtocolError("args: one of approvals, matching and all_of", field="args.approvals", remedy=remedy)
    of = given.user if given.mine else None
    if given.approvals is not None:
        names = await asyncio.to_thread(_resolve_ids, uvm, given.approvals, of)
    elif given.all_of is not None:
        names = await asyncio.to_thread(_list_asked, uvm, given.all_of, _decider(uvm, given), of)
    else:
        names = await asyncio.to_thread(_matching, uvm, given.matching or "", of)
    plan = None if given.plan is None else await asyncio.to_thread(_read_plan, uvm, names, given.plan)
    answered = await uvm.approvals.approve([each for each in names if not is_trial(each)], _decider(uvm, given), plan)
    approved = [_answer_document(answer) for answer in answered.answers if _said(answer, "approved")]
    refused = {answer.name: refusal(answer) for answer in answered.answers if not _said(answer, "approved")}
    for name in filter(is_trial, names):
        try:
            approved.append(await _decide_trial(uvm, trial_verdicts.keep, name, given))
        except Refused as error:
            refused[name] = error
    if not approved:
        raise next(iter(refused.values()))
    failures: list[ApprovalFailure] = [{"id": name, "error": error.as_dict()} for name, error in refused.items()]
    return {"approved": approved, "refused": failures, "woken": list(answered.woken)}


def _read_plan(uvm: UVM, names: list[str], text: str) -> str:
    """Return the lines of an edited plan as they are kept. Raises: BriefError: they are none, or of no one plan."""
    if len(names) != 1 or is_trial(names[0]):
        raise BriefError("plan: it is of one approval", field="plan", remedy="Name the one approval of the plan.")
    with uvm.image.snapshot() as root:
        return read_plan(text, call_questions.frame_of(root, names[0])).as_text()


def _decider(uvm: UVM, given: ApproveArgs | RejectArgs) -> str:
    return given.user or uvm.settings.asker


async def _decide_trial(
    uvm: UVM, verdict: Verdict, name: str, given: ApproveArgs | RejectArgs, why: str = ""
) -> AnsweredDocument:
    """Keep the change of a trial that waits, or end it, as `trials keep` and `trials undo` do."""
    told = await decide(uvm, verdict, name, given.user, why)
    holder, _, slot = told["lever"].partition(".")
    return {"id": told["id"], "object": holder, "selector": slot, "by": _decider(uvm, given)}


def _resolve_ids(uvm: UVM, names: list[str], user: str | None) -> list[str]:
    """Return the ids that are meant. Raises: NotFound: there is none; with a user, none of that user's missions."""
    tried = [each for each in names if is_trial(each)]
    if tried and user is not None:
        raise no_such(tried[0])
    with uvm.image.snapshot() as root:
        asked = documents.resolve_ids(root, [each for each in names if each not in tried], user)
        return [*asked, *(trials.complete_id(root, each) for each in tried)]


def _list_asked(uvm: UVM, mission: str, asker: str, user: str | None) -> list[str]:
    """Return the open questions of a mission. Raises: NotFound: there is no such mission, or it asks nothing."""
    with uvm.image.snapshot() as root:
        named = reports.resolve_mission(root, mission, asker, user)
        names = approvals.list_asked_by(root, named, iso(uvm.clock()))
    if not names:
        raise NotFound(f"{named} asks nothing", field="all_of", remedy="`batos approvals` lists what waits.")
    return names


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
    why = given.why.strip()
    if is_trial(name):
        told = await _decide_trial(uvm, trial_verdicts.refuse, name, given, why)
        return {"rejected": {**told, "why": why}, "woken": []}
    answered: ApprovalAnswers = await uvm.approvals.reject(name, _decider(uvm, given), why)
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
    if answer.effects:
        told["effects"] = list(answer.effects)
    return told
