"""What a message to a declared intent is answered with: a method that is there, is made now, or none."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from batos.cognition.approving import reasons
from batos.cognition.generating import rounds
from batos.cognition.generating import wanted as wants
from batos.cognition.generating.budget import Purse
from batos.cognition.generating.candidate import Candidate
from batos.cognition.generating.checks import Check
from batos.cognition.generating.declined import Declined
from batos.cognition.generating.flights import Flight, Flights
from batos.cognition.generating.making import Spent, Workshop, spent
from batos.cognition.generating.rounds import Round
from batos.cognition.generating.trial import cleaned
from batos.cognition.generating.wanted import Wanted
from batos.cognition.running import Running
from batos.errors import (
    ApprovalNeeded,
    BatosError,
    CovenantViolation,
    GenerationFailed,
    MethodFailed,
    NotFound,
    Refused,
    UsageError,
)
from batos.image import methods, tools
from batos.image.ids import iso
from batos.image.image import LivingImage
from batos.objects.method import Intent, Method
from batos.objects.prototype import Found, UvmObject, own_slots, reference

#: Candidates that are remembered while they wait for a person, the newest ones.
_KEPT: Final = 64


class Approves(Protocol):
    """Where a candidate waits for a person (cognition/approving)."""

    async def ask(self, candidate: Candidate, mission: str | None) -> str:
        """The id of the approval that is asked for; the same candidate asks once. GenerationFailed: it was rejected."""
        ...

    async def asked(self, holder: str, selector: str, intent: str, mission: str | None) -> str | None:
        """The id under which a slot's intent is asked about already."""
        ...

    def heed(self, candidate: Candidate) -> None:
        """GenerationFailed: a person said no to exactly this source."""
        ...


class Installs(Protocol):
    """Where a candidate becomes a method (cognition/lives)."""

    async def install(self, candidate: Candidate) -> Method:
        """A copy of the method that belongs to no connection; Refused."""
        ...


@dataclass(frozen=True, slots=True)
class Made:
    """How a generation ended: a method that is installed, a candidate that is not, or why there is none."""

    outcome: str
    spent: Spent
    candidate: Candidate | None = None
    method: Method | None = None
    error: BatosError | None = None


@dataclass(frozen=True, slots=True)
class _Asks:
    """A message on its way to a method: which mission asks, and what for."""

    running: Running
    wanted: Wanted
    log: str
    told: dict[str, Any]

    @property
    def policy(self) -> str:
        """`auto` or `ask`: what comes from outside is asked about, whatever the mission's policy says."""
        return "ask" if self.wanted.trust == "external" else self.running.install


@dataclass(slots=True)
class Jit:
    """One for all missions: what is made for one is there for the others, and what failed is not tried by each."""

    image: LivingImage
    workshop: Workshop
    lives: Installs
    approvals: Approves | None = None
    flights: Flights[Made] = field(default_factory=Flights)
    _purse: Purse = field(init=False)
    _declined: Declined = field(init=False)
    #: What passed its checks and is not installed, by log.
    _waiting: OrderedDict[str, Candidate] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        allowance, clock = self.workshop.allowance, self.workshop.clock
        self._purse, self._declined = Purse(allowance, clock), Declined(allowance.again, clock)

    async def aclose(self) -> None:
        """End what is being made; what was paid for is in the journal."""
        await self.flights.aclose()

    # -- for missions

    async def method_for(
        self, running: Running, receiver: UvmObject, found: Found, selector: str, args: tuple[Any, ...] = ()
    ) -> Method | None:
        """The method for an intent that was sent a message; None: it is interpreted.

        Of `args` nothing but their types is used. What was made is also noted in `running.generated` (for the mission's
        later messages) and told in `running.learned` (for its provenance). GenerationFailed, CovenantViolation,
        ApprovalNeeded, what Ollama raised: only where policy forbids interpretation.
        """
        if running.install == "never":
            _interpreted(running, GenerationFailed(f"{selector!r} has no method, and policy lets none be made"))
            return None
        there = self._there(found, selector, args)
        if not isinstance(there, Wanted):
            return self._as_it_is(running, found, selector, there)
        told = {"receiver": there.name, "selector": selector, "outcome": "", "calls": 0, "tokens": 0}
        log = there.log(self.workshop.dialect_digest)
        running.learned.append(told | {"generation": log})
        asks = _Asks(running, there, log, running.learned[-1])
        try:
            method = await self._learnt(asks)
        except ApprovalNeeded:
            raise
        except BatosError as error:
            asks.told["outcome"] = asks.told["outcome"] or "failed"
            asks.told["failure"] = error.as_dict()
            _interpreted(running, error)
            return None
        finally:
            if asks.told["outcome"]:
                rounds.tell(self.workshop.journal, running.id, asks.told)
            else:  # whoever takes it up tells what came of it
                asks.told["outcome"] = "left"
        if method is not None:
            running.generated[reference(found.holder), selector] = method
        return method

    def _there(self, found: Found, selector: str, args: Sequence[object]) -> Wanted | Method | str:
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
            wanted = wants.wanted(root, holder, selector, args, self.workshop.digests)
            assert wanted is not None
            return methods.barred(holder, selector, wanted.coder.digest) or wanted

    def _as_it_is(self, running: Running, found: Found, selector: str, there: Method | str) -> Method | None:
        if isinstance(there, Method):
            running.generated[reference(found.holder), selector] = there
            return there
        _interpreted(running, GenerationFailed(f"{selector!r} has no method, and none is made: {there}"))
        return None

    async def _learnt(self, asks: _Asks) -> Method | None:
        """Wait for the generation, begun now if it is not under way; then install, or ask whoever must say yes."""
        log = asks.log
        if asks.policy == "ask":
            pending = await self._asked(asks)
            if pending is not None:
                self._pending(asks, pending)
                return None
        failure = self._failed_lately(log)
        if failure is not None:
            asks.told["outcome"] = "declined"
            raise failure
        candidate = self._waiting.get(log)
        if candidate is None:
            made = await self._made(asks)
            asks.told.update(calls=made.spent.calls, tokens=made.spent.tokens, outcome=made.outcome)
            if made.error is not None:
                raise made.error
            if made.method is not None:
                return made.method
            candidate = made.candidate
            assert candidate is not None
        return await self._settled(asks, candidate)

    def _failed_lately(self, log: str) -> BatosError | None:
        """Why the same failed not long ago: as remembered, else as the journal has it."""
        return self._declined.failure(log) or self._declined.read(rounds.opened(self.workshop.journal, log))

    async def _made(self, asks: _Asks) -> Made:
        """What the generation comes to, for all who wait for it; Refused: no more may begin."""
        wanted, running = asks.wanted, asks.running
        running.session.hold()  # one that is to stand still begins and awaits nothing more
        if not self.flights.flying(wanted.key):
            refusal = self._purse.refusal(sum(bool(each.get("began")) for each in running.learned))
            if refusal:
                asks.told["outcome"] = "budget"
                raise Refused(refusal, field="generation", remedy="Wait, or raise the setting in batos.toml.")
            self._purse.take()
            asks.told["began"] = True
        self.workshop.events.emit(
            "method.generating",
            mission=running.id,
            receiver=wanted.name,
            selector=wanted.selector,
            generation=asks.log,
        )
        made: Made = await self.flights.join(
            wanted.key, lambda flight: self._fly(flight, wanted, asks.log, running.id), asks.policy
        )
        return made if asks.told.get("began") else replace(made, spent=Spent())

    async def _settled(self, asks: _Asks, candidate: Candidate) -> Method | None:
        """A candidate that is not installed: install it, or ask."""
        opened = rounds.opened(self.workshop.journal, asks.log)
        if asks.policy == "auto":
            method = await self._install(candidate, opened)
            asks.told["outcome"] = "installed"
            return method
        if self.approvals is None:
            raise GenerationFailed("nobody can be asked whether it may be installed")
        waits = asks.running.id if asks.running.interpret == "never" else None
        try:
            approval = await self.approvals.ask(candidate, waits)
        except GenerationFailed as error:  # a person said no
            await self._fail(opened, error)
            raise
        self._pending(asks, approval)
        return None

    async def _asked(self, asks: _Asks) -> str | None:
        if self.approvals is None:
            return None
        waits = asks.running.id if asks.running.interpret == "never" else None
        wanted = asks.wanted
        return await self.approvals.asked(wanted.holder, wanted.selector, wanted.intent, waits)

    def _pending(self, asks: _Asks, approval: str) -> None:
        """A person has not answered: the mission is interpreted, or waits."""
        asks.told.update(outcome="asked", approval=approval)
        if asks.running.interpret == "never":
            raise reasons.needed([approval], f"{asks.wanted.selector!r} of {asks.wanted.name}")

    # -- one generation

    async def _fly(self, flight: Flight[Made], wanted: Wanted, log: str, mission: str) -> Made:
        opened = rounds.opened(self.workshop.journal, log)
        session = self.workshop.session(opened, flight.hold)
        try:
            candidate = await self.workshop.make(wanted, opened, session, {"missions": [mission]})
        except (CovenantViolation, GenerationFailed) as error:
            await self._fail(opened, error)
            return Made("failed", spent(session), error=error)
        except BatosError as error:  # Ollama, a budget of its own, or no cell: nothing is said about the wish
            if not spent(session).tokens:
                self._purse.give_back()
            return Made("failed", spent(session), error=error)
        if "auto" not in flight.wishes:
            self._remember(log, candidate)
            return Made("made", spent(session), candidate)
        try:
            method = await self._install(candidate, opened)
        except BatosError as error:
            return Made("failed", spent(session), error=error)
        return Made("installed", spent(session), candidate, method)

    async def _install(self, candidate: Candidate, opened: Round) -> Method:
        try:
            if self.approvals is not None:
                self.approvals.heed(candidate)
        except GenerationFailed as error:
            await self._fail(opened, error)
            raise
        method = await self.lives.install(candidate)
        self._waiting.pop(opened.log, None)
        await self._close(opened, "installed")
        return method

    async def _fail(self, opened: Round, error: MethodFailed) -> None:
        self._waiting.pop(opened.log, None)
        self._declined.add(opened.log, error)
        failed = error.as_dict()
        if isinstance(error, CovenantViolation):
            failed["faults"] = [dict(fault) for fault in error.faults]
        await self._close(opened, "failed", failed)

    async def _close(self, opened: Round, ended: str, failed: Mapping[str, Any] | None = None) -> None:
        await rounds.close(self.workshop.journal, opened, ended, iso(self.workshop.clock()), failed)

    def _remember(self, log: str, candidate: Candidate) -> None:
        self._waiting[log] = candidate
        while len(self._waiting) > _KEPT:
            self._waiting.popitem(last=False)

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
            standing, kept = wants.standing(root, holder, selector)
            intent = standing if wish is None else Intent(**{**standing.as_dict(), "text": wish})
            wanted = wants.of_intent(root, holder, selector, intent, digests=self.workshop.digests)
            given = kept if checks is None else tuple(map(Check.from_dict, checks))
        if source is None:
            candidate = await self._rewritten(wanted, by)
        else:
            candidate = await self._handwritten(wanted, source, given, by)
        new = None if wish is None else {"text": wish}
        return replace(candidate, intent=methods.digest_of(standing), wish=new)

    async def redefined(self, candidate: Candidate) -> None:
        """A candidate of `redefine` is installed or asked about: who gives its wish again wants another one.

        Until this is said the next one is given what was paid for.
        """
        log = str(candidate.provenance["generation"])
        if log:
            await self._close(rounds.opened(self.workshop.journal, log), "installed")

    async def _rewritten(self, wanted: Wanted, by: str) -> Candidate:
        log = wanted.log(f"{self.workshop.dialect_digest} redefine")

        async def work(flight: Flight[Made]) -> Made:
            opened = rounds.opened(self.workshop.journal, log)
            session = self.workshop.session(opened, flight.hold)
            try:
                candidate = await self.workshop.make(wanted, opened, session, {"by": by})
            except (CovenantViolation, GenerationFailed) as error:
                await self._close(opened, "failed", error.as_dict())
                raise
            return Made("made", spent(session), candidate)

        self._purse.take()
        made = await self.flights.join((*wanted.key, "redefine"), work)
        assert made.candidate is not None
        return made.candidate

    async def _handwritten(self, wanted: Wanted, source: str, checks: Sequence[Check], by: str) -> Candidate:
        if not checks:
            raise UsageError(
                f"{wanted.selector!r} of {wanted.name} has no checks yet",
                field="checks",
                remedy="Give at least two with the source; docs/generation.md shows what one is.",
            )
        trial = self.workshop.trial(wanted)
        judged = await trial.source(cleaned(source), checks)
        what = f"this source for {wanted.selector!r} of {wanted.name}"
        if judged.refused:
            raise CovenantViolation(f"the guardian refuses {what}: {'; '.join(judged.faults)}", faults=judged.refused)
        if judged.faults:
            raise GenerationFailed(f"{what} does not pass: {'; '.join(judged.faults)}", remedy="Correct it.")
        made = {"generation": "", "model": "", "model_digest": "", "prompt_digest": "", "trust": "user", "by": by}
        return await self.workshop.candidate(wanted, trial, judged, made)


def _interpreted(running: Running, error: BatosError) -> None:
    """The intent is interpreted where policy lets it be; else the message ends in this."""
    if running.interpret == "never":
        raise error
