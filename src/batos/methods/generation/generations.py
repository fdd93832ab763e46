"""Running generations: each is started once for all who wait for it, within the quota, and installed at its end."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final
from weakref import WeakValueDictionary

from batos.approvals import documents
from batos.approvals.desk import Approvals
from batos.image.ids import iso
from batos.inference.journal import Journal
from batos.methods.generation import generation_limits
from batos.methods.generation.attempt import GenerationDeps, cost_of
from batos.methods.generation.generation_limits import Flight, GenerationQuota, Round, SingleFlight
from batos.methods.generation.method_spec import MethodSpec
from batos.methods.lifecycle.lifecycle import MethodLifecycle
from batos.objects.method import Method
from batos.protocol.errors import BatosError, CovenantViolation, GenerationFailed, InternalError, MethodFailed, Refused
from batos.protocol.event_payloads import METHOD_GENERATING, MethodGenerating
from batos.protocol.method_documents import MethodProvenance
from batos.protocol.mission_documents import LearningDocument, LearntDocument
from batos.records.approval_subjects import Candidate

#: The number of candidates that are kept while they wait for a person; the oldest are dropped.
_KEPT: Final = 64


@dataclass(frozen=True, slots=True)
class GenerationOutcome:
    """The end of a generation: an installed method, a candidate that is not installed, or the error."""

    outcome: str
    spent: LearningDocument
    result: Method | Candidate | BatosError


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """A request for a method, by a mission that waits for it or by one that is there to make it."""

    wanted: MethodSpec
    log: str
    told: LearntDocument
    mission: str
    #: True if a method that passes its checks is installed; otherwise a person is asked.
    installs: bool
    #: True if the intent may not be interpreted instead, so that the mission waits for a person's approval.
    insists: bool
    #: The mission's accounts of earlier generations; those that it began count against its limit.
    learned: Sequence[LearntDocument] = ()
    #: The priority of the mission's calls, and so of those of the generation.
    priority: int = 0
    #: A commit that was the newest before the image was read for this; None: an open mission keeps it from erasure.
    read_at: bytes | None = None
    #: Raises if the mission was asked to stop.
    check_stop: Callable[[], None] = lambda: None
    #: The mission that wished for the method, where another is only there to make it; "": its mission needs it.
    sender: str = ""

    @property
    def owner(self) -> str:
        """Return the owner of the method: the mission that it is made for."""
        return self.sender or self.mission

    @property
    def waits(self) -> str | None:
        """Return the mission that waits for a person's yes, if any."""
        return self.mission if self.insists else None


@dataclass(slots=True)
class Generations:
    """The generations of all missions.

    A method made for one mission serves the others, and a failure is not repeated by each.
    """

    deps: GenerationDeps
    lifecycle: MethodLifecycle
    approvals: Approvals | None = None
    single_flight: SingleFlight[GenerationOutcome] = field(default_factory=SingleFlight)
    #: The quota of the mind, where this is of a copy: its rounds stay open in the journal that both share.
    quota: GenerationQuota | None = None
    #: The candidates that were installed in a copy, oldest first.
    installed: list[Candidate] = field(default_factory=list)
    #: The quota, which copies of the mind share.
    limit: GenerationQuota = field(init=False)
    _failures: NegativeCache = field(init=False)
    #: The generations that one mission waits for go one after another.
    _turns: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    #: Candidates that passed their checks and are not installed, by log.
    _waiting: OrderedDict[str, Candidate] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        allowance, clock = self.deps.allowance, self.deps.clock
        self.limit = self.quota or GenerationQuota(allowance, clock)
        self._failures = NegativeCache(allowance.again, clock)

    def current(self, log: str) -> Round:
        """Return the round of a log that a request for a method continues or begins."""
        return generation_limits.current_round(self.deps.journal, log, reopens=self.quota is not None)

    def count_spent(self, log: str) -> LearningDocument:
        """Count what the calls of a generation that has not ended have cost."""
        paid = [each for each in self.deps.journal.read([self.current(log).log]) if each.tokens]
        return LearningDocument(calls=len(paid), tokens=sum(sum(each.tokens.values()) for each in paid))

    async def leave(self, request: GenerationRequest) -> None:
        """End the generation of this request at once, unless another request waits for it."""
        await self.single_flight.leave(request.wanted.key)

    async def obtain(self, request: GenerationRequest) -> Method | None:
        """Return the installed method after joining or starting its generation; None if a person has to approve it.

        Raises: as `draft` and `settle`.
        """
        found = await self.draft(request)
        return await self.settle(request, found) if isinstance(found, Candidate) else found

    async def draft(self, request: GenerationRequest) -> Candidate | Method | None:
        """Return what passed its checks after joining or starting its generation; None if a person was asked before.

        Where another that shares the generation had it installed, the method is returned.

        Raises: GenerationFailed, CovenantViolation: the generation failed, now or lately. Refused: the quota is used
        up. ApprovalNeeded: the request insists on a method, and a person has not answered.
        """
        log = request.log
        if not request.installs:
            pending = await self.find_approval(request)
            if pending is not None:
                self._pending(request, pending)
                return None
        failure = self.failed_lately(log)
        if failure is not None:
            request.told["outcome"] = "declined"
            raise failure
        candidate = self._waiting.get(log)
        if candidate is None:
            # Side by side they would wait for each other at the daemon, and none would be done in time.
            turn = self._turns.setdefault(request.mission, asyncio.Lock())
            async with turn:
                made = await self._run_generation(request)
            request.told["calls"], request.told["tokens"] = made.spent["calls"], made.spent["tokens"]
            request.told["outcome"] = made.outcome
            if isinstance(made.result, BatosError):
                raise made.result
            if isinstance(made.result, Method):
                return made.result
            candidate = made.result
        return candidate.with_missions({*candidate.provenance.get("missions", ()), request.owner})

    def failed_lately(self, log: str) -> BatosError | None:
        """Return the error of a recent failure of this log, from memory or the journal; None if there is none."""
        return self._failures.failure(log) or self._failures.read(self.current(log))

    async def _run_generation(self, request: GenerationRequest) -> GenerationOutcome:
        """Return the outcome of the generation, shared by all who wait for it.

        Raises: Refused: the quota is used up.
        """
        wanted = request.wanted
        request.check_stop()  # a mission that was asked to stop begins nothing more
        if not self.single_flight.flying(wanted.key):
            refusal = self.limit.refusal(sum(bool(each.get("began")) for each in request.learned))
            if refusal:
                request.told["outcome"] = "budget"
                raise Refused(refusal, field="generation", remedy="Wait, or raise the setting in batos.toml.")
            self.limit.take()
            request.told["began"] = True
        self.deps.events.emit(
            METHOD_GENERATING,
            MethodGenerating(
                mission=request.mission,
                receiver=wanted.name,
                selector=wanted.selector,
                kind=wanted.kind,
                generation=request.log,
            ),
        )
        installs = request.installs and not request.sender  # who only makes it installs it in a step of its own
        made: GenerationOutcome = await self.single_flight.run_once(
            wanted.key, lambda flight: self._fly(flight, request), (request.owner, installs)
        )
        return made if request.told.get("began") else replace(made, spent=LearningDocument(calls=0, tokens=0))

    async def settle(self, request: GenerationRequest, candidate: Candidate) -> Method | None:
        """Install a candidate, or ask a person about it and return None.

        Raises: GenerationFailed: a person refused this source. ApprovalNeeded: as `draft`.
        """
        opened = self.current(request.log)
        if request.installs:
            method = await self._install(candidate, opened)
            request.told["outcome"] = "installed"
            return method
        if self.approvals is None:
            raise GenerationFailed("there is no user to ask for approval")
        try:
            approval = await self.approvals.ask(candidate, request.waits)
        except GenerationFailed as error:  # a person said no
            await self._fail(opened, error)
            raise
        self._pending(request, approval)
        return None

    async def find_approval(self, request: GenerationRequest) -> str | None:
        """Return the id of the approval that a person was already asked for, if any."""
        if self.approvals is None:
            return None
        wanted = request.wanted
        return await self.approvals.find_asked(wanted.holder, wanted.selector, wanted.intent, request.waits)

    def _pending(self, request: GenerationRequest, approval: str) -> None:
        """Note that a person has not answered yet. Raises: ApprovalNeeded: the request insists on a method."""
        request.told["outcome"], request.told["approval"] = "asked", approval
        if request.insists:
            raise documents.approval_error([approval], f"{request.wanted.selector!r} of {request.wanted.name}")

    # -- one generation

    async def _fly(self, flight: Flight[GenerationOutcome], request: GenerationRequest) -> GenerationOutcome:
        """Run one generation in its own session, and install its candidate if a waiting request may install."""
        opened = self.current(request.log)
        session = self.deps.session(
            request.wanted, opened, flight.raise_if_abandoned, request.priority, request.read_at
        )
        about = MethodProvenance(missions=[request.owner])
        if request.sender:
            about["mission"] = request.mission
        try:
            candidate = await self.deps.make(request.wanted, opened, session, about)
            await asyncio.to_thread(session.journal.check_words)  # the source may quote what was erased
        except (CovenantViolation, GenerationFailed) as error:
            await self._fail(opened, error, session.journal)
            return GenerationOutcome("failed", cost_of(session), error)
        except asyncio.CancelledError:  # cancelled before anything was paid: not counted
            if not cost_of(session)["tokens"]:
                self.limit.give_back()
            raise
        except BatosError as error:  # Ollama, a limit or a missing cell: no fault of the intent
            if not cost_of(session)["tokens"]:
                self.limit.give_back()
            return GenerationOutcome("failed", cost_of(session), error)
        wishes = [each for each in flight.wishes if isinstance(each, tuple)]
        candidate = candidate.with_missions({mission for mission, _ in wishes})
        if not any(installs for _, installs in wishes):
            self._remember(request.log, candidate)
            return GenerationOutcome("made", cost_of(session), candidate)
        try:
            method = await self._install(candidate, opened)
        except BatosError as error:
            return GenerationOutcome("failed", cost_of(session), error)
        return GenerationOutcome("installed", cost_of(session), method)

    async def _install(self, candidate: Candidate, opened: Round) -> Method:
        """Install a candidate and close its round. Raises: GenerationFailed: a person refused exactly this source."""
        try:
            if self.approvals is not None:
                self.approvals.check_not_rejected(candidate)
        except GenerationFailed as error:
            await self._fail(opened, error)
            raise
        method = await self.lifecycle.install(candidate)
        self._waiting.pop(opened.log, None)
        if self.quota is not None:
            self.installed.append(candidate)
        await self.close(opened, "installed")
        return method

    async def _fail(self, opened: Round, error: MethodFailed, journal: Journal | None = None) -> None:
        """Record the failure of a round, in memory and in the journal (None: as it is for what is read now)."""
        self._waiting.pop(opened.log, None)
        self._failures.add(opened.log, error)
        failed = error.as_dict()
        if isinstance(error, CovenantViolation):
            failed["faults"] = [dict(fault) for fault in error.faults]
        await self.close(opened, "failed", failed, journal)

    async def close(
        self, opened: Round, ended: str, failed: Mapping[str, object] | None = None, journal: Journal | None = None
    ) -> None:
        """Record the end of a round; the next request starts another. A copy of the mind ends none."""
        if self.quota is None:
            await generation_limits.close_round(
                journal or self.deps.journal, opened, ended, iso(self.deps.clock()), failed
            )

    def _remember(self, log: str, candidate: Candidate) -> None:
        """Keep a candidate that is not installed, and forget the oldest beyond _KEPT."""
        self._waiting[log] = candidate
        while len(self._waiting) > _KEPT:
            self._waiting.popitem(last=False)

    async def rewrite(self, wanted: MethodSpec, by: str, read_at: bytes) -> Candidate:
        """Make a candidate for a person's new intent, without installing it; `read_at` as in a request.

        Raises: CovenantViolation, GenerationFailed: the generation failed. WordsErased: something was erased meanwhile.
        """
        log = wanted.log(f"{self.deps.dialect_digest} redefine")

        async def work(flight: Flight[GenerationOutcome]) -> GenerationOutcome:
            opened = self.current(log)
            session = self.deps.session(wanted, opened, flight.raise_if_abandoned, read_at=read_at)
            try:
                candidate = await self.deps.make(wanted, opened, session, {"by": by})
                await asyncio.to_thread(session.journal.check_words)  # the source may quote what was erased
            except (CovenantViolation, GenerationFailed) as error:
                await self.close(opened, "failed", error.as_dict(), session.journal)
                raise
            return GenerationOutcome("made", cost_of(session), candidate)

        self.limit.take()
        made = await self.single_flight.run_once((*wanted.key, "redefine"), work)
        if not isinstance(made.result, Candidate):
            raise InternalError(f"the generation for a new intent ended as {made.outcome!r}")
        return made.result


# -- the negative cache: a recent failure is not repeated until its time is over, or the intent or coder has changed


@dataclass(slots=True)
class NegativeCache:
    """Recent failures by the log of their generation; another intent, coder or dialect has another log.

    The journal records the end of each generation, so a failure survives a restart without a store of its own. Failures
    for want of Ollama or of a cell are not kept, because they say nothing about the intent.
    """

    seconds: float
    clock: Callable[[], datetime]
    _known: dict[str, tuple[datetime, BatosError]] = field(default_factory=dict)

    def failure(self, log: str) -> BatosError | None:
        """Return the error of a failure that is still recent; None if there is none in memory."""
        known = self._known.get(log)
        if known is None:
            return None
        until, error = known
        if self.clock() >= until:
            del self._known[log]
            return None
        return error

    def add(self, log: str, error: BatosError) -> None:
        """Add a failure of this moment."""
        self._known[log] = (self.clock() + timedelta(seconds=self.seconds), error)

    def read(self, opened: Round) -> BatosError | None:
        """Return the error of the round before, from the journal, if it is still recent; otherwise None."""
        before = opened.before
        if before is None or before["ended"] != "failed":
            return None
        until = datetime.fromisoformat(before["at"]) + timedelta(seconds=self.seconds)
        self._known[opened.log] = (until, _again(before["failed"]))
        return self.failure(opened.log)


def _again(failed: Mapping[str, Any]) -> BatosError:
    """Return the error that was recorded."""
    if failed["code"] == CovenantViolation.code:
        return CovenantViolation(failed["message"], faults=tuple(failed.get("faults", ())))
    return GenerationFailed(failed["message"], remedy=failed.get("remedy", ""))
