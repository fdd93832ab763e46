"""Generations under way: each begun once however many wait for it, within its budget, and settled at its end."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from batos.approvals import reasons
from batos.errors import BatosError, CovenantViolation, GenerationFailed, MethodFailed, Refused
from batos.image.candidates import Candidate
from batos.image.ids import iso
from batos.inference.call_order import CallOrder
from batos.methods.generation import generation_log
from batos.methods.generation.attempt import GenerationCost, GenerationDeps, cost_of
from batos.methods.generation.generation_log import Round
from batos.methods.generation.method_spec import MethodSpec
from batos.methods.generation.negative_cache import NegativeCache
from batos.methods.generation.parties import Approves, Installs
from batos.methods.generation.quota import GenerationQuota
from batos.methods.generation.single_flight import Flight, SingleFlight
from batos.objects.method import Method

#: Candidates that are remembered while they wait for a person, the newest ones.
_KEPT: Final = 64
#: What those say of a flight who may have its method installed.
_INSTALLS: Final = "installs"


@dataclass(frozen=True, slots=True)
class GenerationOutcome:
    """Tells how a generation ended: a method that is installed, a candidate that is not, or why there is none."""

    outcome: str
    spent: GenerationCost
    candidate: Candidate | None = None
    method: Method | None = None
    error: BatosError | None = None


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """Somebody who is to have a method: a mission that waits for it, or the kernel, for one that has its answer."""

    wanted: MethodSpec
    log: str
    told: dict[str, Any]
    mission: str
    #: Whether what passes its checks is installed; else a person is asked.
    installs: bool
    #: Whether only the method will do, so that a person's yes is waited for.
    insists: bool
    #: What the mission has been told of generations before; those that it began count.
    learned: Sequence[Mapping[str, Any]] = ()
    #: The order of the mission's calls, which these are among.
    turns: CallOrder = field(default_factory=CallOrder)
    #: Raises where nothing more may be begun.
    hold: Callable[[], None] = lambda: None

    @property
    def waits(self) -> str | None:
        """Return the mission that waits for a person's yes, if any."""
        return self.mission if self.insists else None


@dataclass(slots=True)
class Generations:
    """Serves all missions: what is made for one is there for the others, and what failed is not tried by each."""

    workshop: GenerationDeps
    lives: Installs
    approvals: Approves | None = None
    flights: SingleFlight[GenerationOutcome] = field(default_factory=SingleFlight)
    _purse: GenerationQuota = field(init=False)
    _declined: NegativeCache = field(init=False)
    #: What passed its checks and is not installed, by log.
    _waiting: OrderedDict[str, Candidate] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        allowance, clock = self.workshop.allowance, self.workshop.clock
        self._purse, self._declined = GenerationQuota(allowance, clock), NegativeCache(allowance.again, clock)

    async def leave(self, asks: GenerationRequest) -> None:
        """End what was begun for this one at once, unless somebody else waits for it."""
        await self.flights.leave(asks.wanted.key)

    async def learnt(self, asks: GenerationRequest) -> Method | None:
        """Wait for the generation, begun now if it is not under way; then install, or ask whoever must say yes."""
        log = asks.log
        if not asks.installs:
            pending = await self.asked(asks)
            if pending is not None:
                self._pending(asks, pending)
                return None
        failure = self.failed_lately(log)
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

    def failed_lately(self, log: str) -> BatosError | None:
        """Return why the same failed not long ago: as remembered, else as the journal has it."""
        return self._declined.failure(log) or self._declined.read(generation_log.current(self.workshop.journal, log))

    async def _made(self, asks: GenerationRequest) -> GenerationOutcome:
        """Return what the generation comes to, for all who wait for it; Refused: no more may begin."""
        wanted = asks.wanted
        asks.hold()  # one that is to stand still begins and awaits nothing more
        if not self.flights.flying(wanted.key):
            refusal = self._purse.refusal(sum(bool(each.get("began")) for each in asks.learned))
            if refusal:
                asks.told["outcome"] = "budget"
                raise Refused(refusal, field="generation", remedy="Wait, or raise the setting in batos.toml.")
            self._purse.take()
            asks.told["began"] = True
        self.workshop.events.emit(
            "method.generating",
            mission=asks.mission,
            receiver=wanted.name,
            selector=wanted.selector,
            generation=asks.log,
        )
        made: GenerationOutcome = await self.flights.run_once(
            wanted.key, lambda flight: self._fly(flight, asks), _INSTALLS if asks.installs else ""
        )
        return made if asks.told.get("began") else replace(made, spent=GenerationCost())

    async def _settled(self, asks: GenerationRequest, candidate: Candidate) -> Method | None:
        """Install a candidate that is not installed yet, or ask a person about it."""
        opened = generation_log.current(self.workshop.journal, asks.log)
        if asks.installs:
            method = await self._install(candidate, opened)
            asks.told["outcome"] = "installed"
            return method
        if self.approvals is None:
            raise GenerationFailed("nobody can be asked whether it may be installed")
        try:
            approval = await self.approvals.ask(candidate, asks.waits)
        except GenerationFailed as error:  # a person said no
            await self._fail(opened, error)
            raise
        self._pending(asks, approval)
        return None

    async def asked(self, asks: GenerationRequest) -> str | None:
        """Return the approval under which a person is already asked about it, if any."""
        if self.approvals is None:
            return None
        wanted = asks.wanted
        return await self.approvals.asked(wanted.holder, wanted.selector, wanted.intent, asks.waits)

    def _pending(self, asks: GenerationRequest, approval: str) -> None:
        """Note that a person has not answered yet; raise if the mission insists on a method."""
        asks.told.update(outcome="asked", approval=approval)
        if asks.insists:
            raise reasons.needed([approval], f"{asks.wanted.selector!r} of {asks.wanted.name}")

    # -- one generation

    async def _fly(self, flight: Flight[GenerationOutcome], asks: GenerationRequest) -> GenerationOutcome:
        opened = generation_log.current(self.workshop.journal, asks.log)
        session = self.workshop.session(asks.wanted, opened, flight.hold, asks.turns)
        try:
            candidate = await self.workshop.make(asks.wanted, opened, session, {"missions": [asks.mission]})
        except (CovenantViolation, GenerationFailed) as error:
            await self._fail(opened, error)
            return GenerationOutcome("failed", cost_of(session), error=error)
        except asyncio.CancelledError:  # left before anything was paid: it counts as not begun
            if not cost_of(session).tokens:
                self._purse.give_back()
            raise
        except BatosError as error:  # Ollama, a budget of its own, or no cell: nothing is said about the wish
            if not cost_of(session).tokens:
                self._purse.give_back()
            return GenerationOutcome("failed", cost_of(session), error=error)
        if _INSTALLS not in flight.wishes:
            self._remember(asks.log, candidate)
            return GenerationOutcome("made", cost_of(session), candidate)
        try:
            method = await self._install(candidate, opened)
        except BatosError as error:
            return GenerationOutcome("failed", cost_of(session), error=error)
        return GenerationOutcome("installed", cost_of(session), candidate, method)

    async def _install(self, candidate: Candidate, opened: Round) -> Method:
        try:
            if self.approvals is not None:
                self.approvals.heed(candidate)
        except GenerationFailed as error:
            await self._fail(opened, error)
            raise
        method = await self.lives.install(candidate)
        self._waiting.pop(opened.log, None)
        await self.close(opened, "installed")
        return method

    async def _fail(self, opened: Round, error: MethodFailed) -> None:
        self._waiting.pop(opened.log, None)
        self._declined.add(opened.log, error)
        failed = error.as_dict()
        if isinstance(error, CovenantViolation):
            failed["faults"] = [dict(fault) for fault in error.faults]
        await self.close(opened, "failed", failed)

    async def close(self, opened: Round, ended: str, failed: Mapping[str, Any] | None = None) -> None:
        """Write down how a round ended; the next message begins another."""
        await generation_log.close(self.workshop.journal, opened, ended, iso(self.workshop.clock()), failed)

    def _remember(self, log: str, candidate: Candidate) -> None:
        self._waiting[log] = candidate
        while len(self._waiting) > _KEPT:
            self._waiting.popitem(last=False)

    async def rewritten(self, wanted: MethodSpec, by: str) -> Candidate:
        """Make a candidate for a person's wish; install nothing. CovenantViolation, GenerationFailed: none was made."""
        log = wanted.log(f"{self.workshop.dialect_digest} redefine")

        async def work(flight: Flight[GenerationOutcome]) -> GenerationOutcome:
            opened = generation_log.current(self.workshop.journal, log)
            session = self.workshop.session(wanted, opened, flight.hold)
            try:
                candidate = await self.workshop.make(wanted, opened, session, {"by": by})
            except (CovenantViolation, GenerationFailed) as error:
                await self.close(opened, "failed", error.as_dict())
                raise
            return GenerationOutcome("made", cost_of(session), candidate)

        self._purse.take()
        made = await self.flights.run_once((*wanted.key, "redefine"), work)
        assert made.candidate is not None
        return made.candidate
