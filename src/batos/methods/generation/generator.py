"""What a message to a declared intent is answered with: a method that is there, is made now, or none."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from batos.concurrency.commit_thread import finish_despite_cancel
from batos.errors import (
    ApprovalNeeded,
    BatosError,
    GenerationFailed,
    MethodFailed,
    NotFound,
    Refused,
)
from batos.image import methods, tools, wishes
from batos.image.candidates import Candidate
from batos.image.image import LivingImage
from batos.methods.generation import generation_log
from batos.methods.generation import method_spec as wants
from batos.methods.generation.attempt import GenerationDeps
from batos.methods.generation.generations import GenerationRequest, Generations
from batos.methods.generation.handwritten import handwritten
from batos.methods.generation.method_checks import Check
from batos.methods.generation.method_spec import MethodSpec
from batos.minds.context import MindContext
from batos.objects.method import Intent, Method
from batos.objects.prototype import Found, UvmObject, own_slots, reference


@dataclass(slots=True)
class Jit:
    """Finds or makes methods for missions and people; what is made for one mission is there for the others."""

    image: LivingImage
    workshop: GenerationDeps
    generations: Generations

    async def aclose(self) -> None:
        """End what is being made; what was paid for is in the journal."""
        await self.generations.flights.aclose()

    # -- for missions

    async def method_for(
        self, context: MindContext, receiver: UvmObject, found: Found, selector: str, args: tuple[Any, ...] = ()
    ) -> Method | None:
        """The method for an intent that was sent a message; None: it is interpreted.

        Of `args` nothing but their types is used. What was made is also noted in `trace.generated` (for the mission's
        later messages) and told in `trace.learned` (for its provenance). GenerationFailed, CovenantViolation,
        ApprovalNeeded, what Ollama raised: only where policy forbids interpretation.
        """
        if context.mind.policy.install == "never":
            _interpreted(context, GenerationFailed(f"{selector!r} has no method, and policy lets none be made"))
            return None
        there = self._there(found, selector, args)
        if not isinstance(there, MethodSpec):
            return self._as_it_is(context, found, selector, there)
        told = {"receiver": there.name, "selector": selector, "outcome": "", "calls": 0, "tokens": 0}
        log = there.log(self.workshop.dialect_digest)
        context.trace.learned.append(told | {"generation": log})
        asks = _asks(context, there, log)
        if context.mind.policy.install == "auto" and not asks.insists:
            await self._later(context, asks)
            return None
        await generation_log.record_wait(self.workshop.journal, context.mission.id, log)
        try:
            method = await self.generations.learnt(asks)
        except ApprovalNeeded:
            raise
        except BatosError as error:
            asks.told["outcome"] = asks.told["outcome"] or "failed"
            asks.told["failure"] = error.as_dict()
            _interpreted(context, error)
            return None
        finally:
            if asks.told["outcome"]:
                generation_log.record(self.workshop.journal, context.mission.id, asks.told)
            else:  # whoever takes it up tells what came of it
                asks.told["outcome"] = "left"
        if method is not None:
            context.trace.generated[reference(found.holder), selector] = method
        return method

    async def _later(self, context: MindContext, asks: GenerationRequest) -> None:
        """Interpret the intent now, and make its method after the answer unless that is known to be in vain."""
        pending = None if asks.installs else await self.generations.asked(asks)
        failure = self.generations.failed_lately(asks.log)
        if pending is not None:
            asks.told.update(outcome="asked", approval=pending)
        elif failure is not None:
            asks.told.update(outcome="declined", failure=failure.as_dict())
        else:
            wanted = asks.wanted
            wish = {"holder": wanted.holder, "intent": wanted.intent, "arguments": list(wanted.arguments)}
            asks.told.update(outcome=wishes.LATER, wish={**wish, "selector": wanted.selector})
        generation_log.record(self.workshop.journal, context.mission.id, asks.told)

    def in_vain(self, holder: UvmObject, selector: str, intent: Intent) -> BatosError | None:
        """Return why a method of this intent failed not long ago, if it did; the slot need not hold it yet."""
        with self.image.snapshot() as root:
            there = methods.holder_named(root, reference(holder))
            wanted = wants.spec_of_intent(root, there, selector, intent, digests=self.workshop.digests)
        return self.generations.failed_lately(wanted.log(self.workshop.dialect_digest))

    async def fulfil(self, wish: Mapping[str, Any], *, installs: bool) -> dict[str, Any]:
        """Make the method that a mission did without: {receiver, selector, outcome, calls, tokens, failure?}.

        `outcome` is as of those that a mission waits for, or `gone`: there is nothing to be made any more. Who is
        cancelled leaves it to whoever else waits for it, else it ends there. Raises what Ollama raises.
        """
        with self.image.snapshot() as root:
            wanted = wants.spec_of_wish(root, wish, self.workshop.digests)
        told = {"receiver": wish["holder"], "selector": wish["selector"], "outcome": "gone", "calls": 0, "tokens": 0}
        if wanted is None:
            return told
        log = wanted.log(self.workshop.dialect_digest)
        told.update(receiver=wanted.name, outcome="", generation=log)
        asks = GenerationRequest(
            wanted, log, told, wish["mission"], installs and wanted.trust != "external", insists=False
        )
        try:
            await self.generations.learnt(asks)
        except asyncio.CancelledError:
            await finish_despite_cancel(asyncio.ensure_future(self.generations.leave(asks)))
            raise
        except (MethodFailed, Refused) as error:
            told.update(outcome=told["outcome"] or "failed", failure=error.as_dict())
        if told["outcome"] != "budget":
            generation_log.record(self.workshop.journal, wish["mission"], {**told, "after": True})
            await self.workshop.journal.flush(wish["mission"])
        return told

    def _there(self, found: Found, selector: str, args: Sequence[object]) -> MethodSpec | Method | str:
        """What the newest image has: what is to be made, a method that is there by now, or why nothing is made."""
        if not isinstance(found.value, Intent) or not found.value.may_learn:
            return "it may not learn"
        if found.holder._p_oid is None:
            return "its object is new"
        intent = methods.digest_of(found.value)
        with self.image.snapshot() as root:
            try:
                holder = methods.holder_named(root, reference(found.holder))
            except NotFound:  # this very mission has made it
                return "its object is new"
            value = own_slots(holder).get(selector)
            if found.value.kind == "prototype" and tools.made(root, selector) is not None:
                return Method(selector, "")  # the object is there by now: whoever asked looks again
            if isinstance(value, Method) and value.provenance.get("intent") == intent:
                return Method(**value.as_dict())
            if not isinstance(value, Intent) or methods.digest_of(value) != intent:
                return "its intent is another by now"
            wanted = wants.spec_for(root, holder, selector, args, self.workshop.digests)
            assert wanted is not None
            return methods.barred(holder, selector, wanted.coder.digest) or wanted

    def _as_it_is(self, context: MindContext, found: Found, selector: str, there: Method | str) -> Method | None:
        if isinstance(there, Method):
            context.trace.generated[reference(found.holder), selector] = there
            return there
        _interpreted(context, GenerationFailed(f"{selector!r} has no method, and none is made: {there}"))
        return None

    # -- for a person

    async def redefine(
        self,
        name: str,
        selector: str,
        by: str,
        *,
        wish: str | None = None,
        source: str | None = None,
        checks: Sequence[Mapping[str, Any]] | None = None,
    ) -> Candidate:
        """A candidate from a new wish (None: the one that there is), or of a person's own source; not installed.

        A source has its own checks, else those of the newest revision; it is audited and tried as a coder's is.
        NotFound, Refused: no such object or intent. CovenantViolation, GenerationFailed: nothing acceptable came of it.
        """
        with self.image.snapshot() as root:
            holder = methods.holder_named(root, name)
            standing, kept = wants.current_intent(root, holder, selector)
            intent = standing if wish is None else Intent(**{**standing.as_dict(), "text": wish})
            wanted = wants.spec_of_intent(root, holder, selector, intent, digests=self.workshop.digests)
            given = kept if checks is None else tuple(map(Check.from_dict, checks))
        if source is None:
            candidate = await self.generations.rewritten(wanted, by)
        else:
            candidate = await handwritten(self.workshop, wanted, source, given, by)
        new = None if wish is None else {"text": wish}
        return replace(candidate, intent=methods.digest_of(standing), wish=new)

    async def redefined(self, candidate: Candidate) -> None:
        """A candidate of `redefine` is installed or asked about: who gives its wish again wants another one.

        Until this is said the next one is given what was paid for.
        """
        log = str(candidate.provenance["generation"])
        if log:
            await self.generations.close(generation_log.current(self.workshop.journal, log), "installed")


def _asks(context: MindContext, wanted: MethodSpec, log: str) -> GenerationRequest:
    """Describe how a mission asks for a method; one that comes from outside is always put to a person."""
    return GenerationRequest(
        wanted,
        log,
        context.trace.learned[-1],
        context.mission.id,
        installs=context.mind.policy.install != "ask" and wanted.trust != "external",
        insists=context.mind.policy.interpret == "never",
        learned=context.trace.learned,
        turns=context.io.session.turns,
        hold=context.io.session.hold,
    )


def _interpreted(context: MindContext, error: BatosError) -> None:
    """The intent is interpreted where policy lets it be; else the message ends in this."""
    if context.mind.policy.interpret == "never":
        raise error
