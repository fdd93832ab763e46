"""The generator: finds, makes or declines the method for an intent that was sent a message."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from batos.image import roots
from batos.image.image import LivingImage
from batos.image.past import newest_commit
from batos.methods.generation import generation_limits
from batos.methods.generation import method_spec as wants
from batos.methods.generation.attempt import GenerationDeps
from batos.methods.generation.generations import GenerationRequest, Generations
from batos.methods.generation.method_checks import Check
from batos.methods.generation.method_spec import MethodSpec
from batos.methods.generation.trial import clean
from batos.minds.context import MindContext
from batos.objects.method import Intent, Method
from batos.objects.prototype import FoundSlot, UvmObject, reference
from batos.protocol.errors import (
    ApprovalNeeded,
    BatosError,
    CovenantViolation,
    GenerationFailed,
    NotFound,
    Refused,
    UsageError,
)
from batos.protocol.method_documents import MethodProvenance
from batos.protocol.mission_documents import LearntDocument, WishDocument
from batos.records import methods, tool_declarations, tools
from batos.records.approval_subjects import Candidate


@dataclass(slots=True)
class MethodGenerator:
    """Finds or makes methods for missions and people; a method made for one mission serves the others."""

    image: LivingImage
    deps: GenerationDeps
    generations: Generations

    async def aclose(self) -> None:
        """End all running generations. Paid answers are in the journal."""
        await self.generations.single_flight.aclose()

    # -- for missions

    async def method_for(
        self, context: MindContext, receiver: UvmObject, found: FoundSlot, selector: str, args: tuple[Any, ...] = ()
    ) -> Method | None:
        """Return the method for an intent that was sent a message; None if the intent is to be interpreted.

        Only the types of `args` are used. A new method is added to the mission's `generated`, for its later messages,
        and its generation to `learned`, for its provenance.

        Raises: GenerationFailed, CovenantViolation, ApprovalNeeded, errors of Ollama: only if policy forbids
        interpretation.
        """
        if context.mind.policy.install == "never":
            _check_may_interpret(context, GenerationFailed(f"{selector!r} has no method, and policy lets none be made"))
            return None
        there = self._current_state(found, selector, args)
        if isinstance(there, Method):
            context.trace.generated[reference(found.holder), selector] = there
            return there
        if not isinstance(there, MethodSpec):
            _check_may_interpret(context, GenerationFailed(f"{selector!r} has no method, and none is made: {there}"))
            return None
        log = there.log(self.deps.dialect_digest)
        told = LearntDocument(receiver=there.name, selector=selector, outcome="", calls=0, tokens=0, generation=log)
        context.trace.learned.append(told)
        request = _request_of(context, there, told)
        if context.mind.policy.install == "auto" and not request.insists:
            await self._later(context, request)
            return None
        await generation_limits.record_wait(self.deps.journal, context.mission.id, log)
        try:
            method = await self.generations.obtain(request)
        except ApprovalNeeded:
            raise
        except BatosError as error:
            request.told["outcome"] = request.told["outcome"] or "failed"
            request.told["failure"] = error.as_dict()
            _check_may_interpret(context, error)
            return None
        finally:
            if request.told["outcome"]:
                generation_limits.record_learnt(self.deps.journal, context.mission.id, request.told)
            else:  # the mission that continues this one records the outcome
                request.told["outcome"] = "left"
                if request.told.get("began"):
                    spent = self.generations.count_spent(log)
                    request.told["calls"], request.told["tokens"] = spent["calls"], spent["tokens"]
        if method is not None:
            context.trace.generated[reference(found.holder), selector] = method
        return method

    async def _later(self, context: MindContext, request: GenerationRequest) -> None:
        """Record the wish for a method, to be made after the answer.

        No wish is recorded if the same failed lately or a person is already asked.
        """
        pending = None if request.installs else await self.generations.find_approval(request)
        failure = self.generations.failed_lately(request.log)
        if pending is not None:
            request.told["outcome"], request.told["approval"] = "asked", pending
        elif failure is not None:
            request.told["outcome"], request.told["failure"] = "declined", failure.as_dict()
        else:
            wanted = request.wanted
            request.told["outcome"] = tools.LATER
            request.told["wish"] = WishDocument(
                holder=wanted.holder,
                intent=wanted.intent,
                arguments=list(wanted.arguments),
                selector=wanted.selector,
            )
        generation_limits.record_learnt(self.deps.journal, context.mission.id, request.told)

    def recent_failure(self, holder: UvmObject, selector: str, intent: Intent) -> BatosError | None:
        """Return the error of a recent failure to make a method of this intent, if any.

        The slot need not hold the intent yet.
        """
        with self.image.snapshot() as root:
            there = methods.find_holder(root, reference(holder))
            wanted = wants.spec_of_intent(root, there, selector, intent, digests=self.deps.digests)
        return self.generations.failed_lately(wanted.log(self.deps.dialect_digest))

    async def specify(
        self, wish: WishDocument, mission: str, *, installs: bool
    ) -> tuple[LearntDocument, GenerationRequest | Method | None]:
        """Return the account of a wish, and the request by which a mission makes what another wished for.

        In its place stands the method if the same mission made it before its process ended, and None if nothing is to
        be made any more. Raises: Refused: another mission forged a tool of that name.
        """
        read_at = await asyncio.to_thread(newest_commit, self.image.db)
        with self.image.snapshot() as root:
            wanted = wants.spec_of_wish(root, wish, self.deps.digests)
            taken = bool(wish.get("forged")) and tool_declarations.is_taken(root, wish["selector"], wish["intent"])
            named = (each for each in roots.OBJECTS if each in root and reference(root[each]) == wish["holder"])
            receiver = next(named, wish["holder"])
        if taken:
            raise Refused(
                f"another mission forged a tool named {wish['selector']} first, for something else",
                remedy="Ask again: a tool of another name can be forged.",
            )
        told = LearntDocument(receiver=receiver, selector=wish["selector"], outcome="gone", calls=0, tokens=0)
        if isinstance(wanted, Method) and wanted.provenance.get("mission") == mission:
            told.update({"outcome": "installed", "generation": wanted.provenance["generation"], "began": True})
            return told, wanted
        if not isinstance(wanted, MethodSpec):
            return told, None
        log = wanted.log(self.deps.dialect_digest)
        told.update({"outcome": "", "generation": log})
        installs = installs and wanted.trust != "external"
        request = GenerationRequest(
            wanted, log, told, mission, installs, insists=False, read_at=read_at, sender=wish["mission"]
        )
        return told, request

    def _current_state(self, found: FoundSlot, selector: str, args: Sequence[object]) -> MethodSpec | Method | str:
        """Return what to make of the slot in the newest image.

        This is the specification to generate from, the method if one exists by now, or the reason to make none.
        """
        if not isinstance(found.value, Intent) or not found.value.may_learn:
            return "it may not learn"
        if found.holder._p_oid is None:
            return "its object is new"
        intent, arguments = methods.digest_of(found.value), tuple(map(wants.type_name, args))
        with self.image.snapshot() as root:
            try:
                holder = methods.find_holder(root, reference(found.holder))
            except NotFound:  # the mission itself created the object
                return "its object is new"
            return wants.spec_for(root, holder, selector, arguments, self.deps.digests, intent)

    # -- for a person

    async def redefine(
        self,
        name: str,
        selector: str,
        by: str,
        *,
        wish: str | None = None,
        source: str | None = None,
        checks: Sequence[Mapping[str, object]] | None = None,
    ) -> Candidate:
        """Return a candidate for a new intent (None: the current one), or of a person's own source.

        Nothing is installed.

        A person's source is audited and tried like a coder's, with the given checks or those of the newest revision.

        Raises: NotFound, Refused: there is no such object or intent. CovenantViolation, GenerationFailed: no acceptable
        method came of it.
        """
        read_at = await asyncio.to_thread(newest_commit, self.image.db)
        with self.image.snapshot() as root:
            holder = methods.find_holder(root, name)
            standing, kept = wants.current_intent(root, holder, selector)
            intent = standing if wish is None else Intent(**{**standing.as_dict(), "text": wish})
            wanted = wants.spec_of_intent(root, holder, selector, intent, digests=self.deps.digests)
            given = kept if checks is None else tuple(map(Check.from_dict, checks))
        if source is None:
            candidate = await self.generations.rewrite(wanted, by, read_at)
        else:
            candidate = await handwritten_candidate(self.deps, wanted, source, given, by)
        new = None if wish is None else {"text": wish}
        return replace(candidate, intent=methods.digest_of(standing), wish=new)

    async def close_redefinition(self, candidate: Candidate) -> None:
        """Close the round of a candidate of `redefine` that was installed or submitted for approval.

        The same intent then starts a new generation; before this call it would reuse the paid answers.
        """
        log = str(candidate.provenance["generation"])
        if log:
            await self.generations.close(generation_limits.current_round(self.deps.journal, log), "installed")


def _request_of(context: MindContext, wanted: MethodSpec, told: LearntDocument) -> GenerationRequest:
    """Return a mission's request for a method. A method with external trust always needs a person's approval."""
    return GenerationRequest(
        wanted,
        told["generation"],
        told,
        context.mission.id,
        installs=context.mind.policy.install != "ask" and wanted.trust != "external",
        insists=context.mind.policy.interpret == "never",
        learned=context.trace.learned,
        priority=context.io.session.priority,
        check_stop=context.io.session.check_stop,
    )


def _check_may_interpret(context: MindContext, error: BatosError) -> None:
    """Raise the error if policy forbids interpretation; otherwise return, and the intent is interpreted."""
    if context.mind.policy.interpret == "never":
        raise error


# -- a person's own source for an intent: audited and tried like a coder's, with checks that a person or a coder wrote


_REMEDY = (
    "Correct it, or bring checks of your own with --checks FILE: `batos method show NAME --checks` prints those that "
    "bind it now, to begin from."
)


async def handwritten_candidate(
    deps: GenerationDeps, wanted: MethodSpec, source: str, checks: Sequence[Check], by: str
) -> Candidate:
    """Return a candidate of this source.

    Raises: UsageError: there are no checks. CovenantViolation: the guardian refuses the source. GenerationFailed: the
    source fails its checks.
    """
    if not checks:
        raise UsageError(
            f"{wanted.selector!r} of {wanted.name} has no checks yet",
            field="checks",
            remedy="Give at least two with the source; `batos help generation` shows what one is.",
        )
    trial = deps.trial(wanted)
    judged = await trial.source(clean(source), checks)
    what = f"this source for {wanted.selector!r} of {wanted.name}"
    if judged.refused:
        raise CovenantViolation(f"the guardian refuses {what}: {'; '.join(judged.faults)}", faults=judged.refused)
    if judged.faults:
        raise GenerationFailed(f"{what} does not pass: {'; '.join(judged.faults)}", remedy=_REMEDY)
    made = MethodProvenance(generation="", model="", model_digest="", prompt_digest="", trust="user", by=by)
    return await deps.candidate(wanted, trial, judged, made)
