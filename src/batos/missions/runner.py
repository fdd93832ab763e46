"""A mission's life from accept to answer: its transaction opened, its cycle run, committed or left without a trace."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final, Protocol

import structlog
from ZODB.POSException import ConflictError

from batos.agency.look_ups.granted import LookUps
from batos.concurrency.threads import finish_despite_cancel
from batos.conversations import conversations
from batos.events import Events
from batos.genesis import measuring
from batos.genesis.state_steps import steps_of
from batos.image.ids import iso, serial_of, tid_text
from batos.image.image import LivingImage
from batos.image.ownership import NOBODYS_DOORS
from batos.image.records import StatusWord
from batos.image.roots import Root
from batos.image.transactions import MissionTransaction
from batos.image.writer import Publisher
from batos.inference.cost import SpendingLimits, cost_of, seconds_of_runs
from batos.inference.embedder import Embeds
from batos.inference.journal import Journal, is_of_model
from batos.inference.outside_calls import OutsideCalls
from batos.inference.session import Session, Thinks
from batos.inference.vram.call_scheduler import SharedCard
from batos.memory.search.recollection import Recollection
from batos.methods.execution.resolution import Appeared
from batos.methods.generation import generation_limits, growth
from batos.minds import context_building, own_figures, provenance
from batos.minds.context import MakesToolbox, MethodRuntime, MindContext, MindPolicy, MissionFacts, MissionIO, Rates
from batos.minds.machine import begin
from batos.minds.parts import delegate
from batos.minds.stopping import StopRequest, ended_error
from batos.minds.trace import MissionChoices, Trace
from batos.missions import messages
from batos.missions.commits import CONFLICT, CommitPlace, CommitTurns, guard_missions, name_conflict
from batos.missions.interpreter import MissionInterpreter
from batos.objects.prototype import own_slots, send
from batos.protocol.errors import InternalError, MissionFailed, ModelMissing, Refused, message_of
from batos.protocol.event_payloads import (
    MISSION_DONE,
    MISSION_FAILED,
    MISSION_RETRACTED,
    MISSION_ROUTED,
    MISSION_STATE,
    MISSION_STATUS,
    TXN_ABORT,
    MissionDone,
    MissionEnded,
    MissionRetracted,
    MissionRouted,
    MissionState,
    MissionStatus,
    MissionSummary,
    TransactionAbort,
)
from batos.protocol.mission_documents import AttemptDocument, GateDocument, StateDocument
from batos.records import methods
from batos.routing import mission_routing
from batos.routing.mission_routing import MissionVectors
from batos.routing.question_vectors import JournaledVectors
from batos.routing.router import Router

_log = structlog.get_logger("batos.mission")

_ENDED = frozenset({"failed", "cancelled", "parked", "undone"})
_RUNNABLE: Final[frozenset[StatusWord]] = frozenset({"queued", "waiting", "paused"})

#: The most attempts of a mission whose commits conflict with those of other missions.
MOST_REPLAYS: Final = 20


@dataclass(slots=True)
class Attempt:
    """The run of a mission: its states, context, commit and stop request, for the events and reports at its end."""

    mission: str
    states: list[StateDocument] = field(default_factory=list)
    context: MindContext | None = None
    #: The transaction id of the commit; from then on the mission is done, whatever happens.
    tid: str | None = None
    #: The request to stop; called before each paid call and at each state of the outer cycle.
    stop_request: StopRequest = field(default_factory=StopRequest)
    #: The verdict on the answer that was committed.
    gate: GateDocument | None = None

    def summary(self) -> MissionSummary:
        """Return the fields of the final event: whose, conversation, personas, cost, and the verdict on the answer."""
        if self.context is None:
            return {}
        personas, cost = list(self.context.mission.route.personas), self.context.io.session.cost.as_dict()
        brief = self.context.mission.brief
        own, conversation = brief.origin.door in NOBODYS_DOORS, brief.conversation
        return {"own": own, "conversation": conversation, "personas": personas, "cost": cost, "gate": self.gate}

    def report(self) -> AttemptDocument:
        """Return the report for the status of a mission that failed, whose thought is not committed."""
        shown = AttemptDocument(states=self.states)
        if self.context is not None:
            shown["route"] = self.context.mission.route.as_dict()
            shown["cost"] = self.context.io.session.cost.as_dict()
            shown["provenance"] = provenance.attempt_record(self.context)
        return shown


class Inference(Thinks, Embeds, Protocol):
    """The parts of the bridge that missions use."""


@dataclass(slots=True)
class MissionRunner:
    """Runs accepted missions, each in a transaction of its own; uvm.py builds it."""

    image: LivingImage
    journal: Journal
    publisher: Publisher
    bridge: Inference
    router: Router
    limits: SpendingLimits
    events: Events
    clock: Callable[[], datetime]
    #: The digest of each of the daemon's models, by name, read once at the start.
    digests: Mapping[str, str]
    #: The card on which the calls of all missions have their turns.
    card: SharedCard
    #: The runtime of methods.
    methods: MethodRuntime = field(default_factory=MethodRuntime)
    #: Recalls from the documents of the image; None: nothing is remembered.
    recollection: Recollection | None = None
    #: The order of missions that commit changes of the same objects.
    turns: CommitTurns = field(default_factory=CommitTurns)
    #: True where the codex is another than that of the missions that are retried: their routes say nothing.
    routes_anew: bool = False
    #: The rates of the mind itself, for questions about it; None: it knows none.
    rates: Rates | None = None
    #: Looks up by grants. In a copy of the mind nothing outside is asked or told.
    look_ups: LookUps | None = None
    reaches_out: bool = True
    #: Make what a mission has of tools beside its look-ups.
    toolboxes: Sequence[MakesToolbox] = ()

    async def run(self, mission: str, stop_request: StopRequest | None = None) -> None:
        """Run a mission until it ends or `stop_request` stops it.

        An error is raised after the status and the journal record it.

        A mission whose answer is committed already is only folded in.

        Raises: Refused: the mission has ended without an answer, or another process runs it.
        """
        attempt = Attempt(mission, stop_request=stop_request or StopRequest())
        began = attempt.stop_request.is_running
        try:
            attempt.stop_request.check()
            if not began:
                alone = {"alone": True} if attempt.stop_request.runs_alone else {}
                await self.image.move(mission, "running", None, _RUNNABLE, **alone)
                began = True
            with self.turns.place() as place, self.card.attend(mission):
                await self._think_without_conflict(attempt, place)
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, Refused) and not began:
                if self._is_answered(mission):
                    await self.publisher.fold(mission)
                    return
                # Another process runs the mission, or ran it before a crash: this attempt may not mark it failed.
                raise
            if attempt.tid is None:
                await finish_despite_cancel(asyncio.ensure_future(self._record_failure(attempt, error)))
                raise
            # Cancelled during the commit, which went through: the mission is done.
            await finish_despite_cancel(asyncio.ensure_future(self._record_done(attempt)))
            raise
        await finish_despite_cancel(asyncio.ensure_future(self._record_done(attempt)))

    def _is_answered(self, mission: str) -> bool:
        """Test if the mission's answer is committed. Raises: Refused: the mission has ended without one."""
        with self.image.snapshot() as root:
            _, status, thought = self.image.find(root, mission)
            if status.word in _ENDED:
                raise ended_error(mission, status.word)
            return "answer" in own_slots(thought)

    async def _think_without_conflict(self, attempt: Attempt, place: CommitPlace) -> None:
        """Think, and repeat on a newer snapshot while other missions' commits change the same objects.

        Paid answers are read from the journal; only requests that differ now are paid for. The mission keeps its
        turn at the objects of a conflict (commits.py).

        Raises: MissionFailed: there was a conflict MOST_REPLAYS times.
        """
        for _ in range(MOST_REPLAYS):
            try:
                await self._think(attempt, place)
            except Appeared:
                attempt.stop_request.check()
            except ConflictError as error:
                attempt.stop_request.check()
                told = await asyncio.to_thread(name_conflict, self.image, error)
                self.journal.note(attempt.mission, {"conflict": told, "at": iso(self.clock())})
                if attempt.context is not None:  # what it read changes no more under it
                    await place.take([serial_of(oid) for oid, _ in attempt.context.trace.read])
                await self._start_attempt(attempt)
            else:
                return
        raise MissionFailed(
            f"other missions changed what this one changes, each of the {MOST_REPLAYS} times it ran",
            remedy="Ask again when fewer missions run; `batos show` shows its changes.",
        )

    async def _start_attempt(self, attempt: Attempt) -> None:
        """Start another attempt: retract streamed text, and count the attempt as after a crash."""
        attempt.states.clear()
        self.events.emit(MISSION_RETRACTED, MissionRetracted(mission=attempt.mission))
        await self.journal.flush(attempt.mission)
        await self.image.again(attempt.mission, CONFLICT)

    async def _think(self, attempt: Attempt, place: CommitPlace) -> None:
        """Run the cycle, or deliver the message, in a transaction, and commit the thought."""
        with self.image.transaction(attempt.mission) as transaction:
            context = attempt.context = await self._prepare(attempt, transaction)
            orchestrator = transaction.root["orchestrator_obj"]
            cycle = begin(orchestrator)
            interpreter = MissionInterpreter(context, cycle, self.image.writer.apply)
            message = context.mission.brief.message
            if message is None or growth.is_wish(context.mission.brief):
                await send(interpreter, orchestrator, "start_cognitive_cycle_for_", context.mission.brief.text)
            else:
                await messages.deliver(context, interpreter, message)
            context.mission.thought.states = list(attempt.states)
            attempt.gate = own_slots(context.mission.thought)["provenance"].get("gate")
            for method in context.trace.generated.values():
                guard_missions(transaction, method.provenance.get("missions", ()))
            await place.take(transaction.shared_changes(context.mission.thought))
            try:
                await transaction.commit(context.mission.thought)
            finally:
                attempt.tid = tid_text(transaction.serial) if transaction.committed else None

    async def _record_done(self, attempt: Attempt) -> None:
        """Fold in the mission's contributions, then emit the events of its end."""
        await self.publisher.fold(attempt.mission)
        self.journal.end(attempt.mission)
        self.events.emit(MISSION_DONE, MissionDone(mission=attempt.mission, tid=attempt.tid, **attempt.summary()))
        self.events.emit(MISSION_STATUS, MissionStatus(mission=attempt.mission, status="done", reason=None))
        self.image.signals.answered.give(attempt.mission, attempt.summary().get("conversation"))

    async def _record_failure(self, attempt: Attempt, error: BaseException) -> None:
        """Record the reason for the end in the journal and, in a transaction of its own, in the mission's status."""
        mission = attempt.mission
        word, reason = await attempt.stop_request.outcome(error)
        own_model = attempt.context.mission.brief.model if attempt.context is not None else None
        if own_model is not None and isinstance(reason, ModelMissing):
            reason.advise(f"`ollama pull {own_model}` brings it, or name another model.")
        if isinstance(reason, InternalError):
            # Format it now: a renderer that reads the frames' locals would load objects of a closed connection.
            trace = "".join(traceback.format_exception(error))
            _log.error("mission failed unexpectedly", mission=mission, trace=trace)
        ended = word in _ENDED
        if ended and (not attempt.states or attempt.states[-1]["state"] != "FAILED"):
            # A failure before the machine starts or at the commit enters FAILED here.
            self._note(attempt, "FAILED")
        self.journal.note(mission, {word: reason.as_dict(), "at": iso(self.clock())})
        report: dict[str, Any] = {"report": attempt.report()} if ended else {}
        try:
            await self.journal.flush(mission)
            await self.image.move(mission, word, reason, **report)
        except Exception as unwritten:  # emitted, because the first error is the one to raise
            # A full disk can prevent the record: the first error is still the one to raise.
            self.events.emit(TXN_ABORT, TransactionAbort(what=mission, reason=f"its end is not recorded: {unwritten}"))
        if ended:
            await self._count(attempt)
            self.events.emit(
                MISSION_FAILED, MissionEnded(mission=mission, status=word, reason=reason.as_dict(), **attempt.summary())
            )

    async def _count(self, attempt: Attempt) -> None:
        """Count the uses of methods by a failed mission, so that a method that fails missions is retired too."""
        context, lifecycle = attempt.context, self.methods.lifecycle
        if context is None or lifecycle is None or not context.trace.uses:
            return
        try:
            await lifecycle.count(attempt.mission, [use.payload(0) for use in context.trace.uses])
        except Exception as error:  # emitted, because the mission's own error is the one to raise
            self.events.emit(
                TXN_ABORT,
                TransactionAbort(what=attempt.mission, reason=f"its uses are not counted: {message_of(error)}"),
            )

    def _note(self, attempt: Attempt, state: str, path: str | None = None) -> None:
        """Record a state in the journal and as an event.

        Only the mission's own states are put into its report, not those of an inner mind.
        """
        entered = StateDocument(state=state, at=iso(self.clock()))
        told = MissionState(mission=attempt.mission, state=state)
        if path is None:
            attempt.states.append(entered)
            self.journal.note(attempt.mission, {**entered})
        else:
            told["path"] = path
            self.journal.note(attempt.mission, {**entered, "path": path})
        self.events.emit(MISSION_STATE, told)

    async def _prepare(self, attempt: Attempt, transaction: MissionTransaction) -> MindContext:
        """Build the context of an attempt: brief, route, evidence, session, mind and trace."""
        root, mission = transaction.root, attempt.mission
        record, status, thought = self.image.find(root, mission)
        asked = context_building.question_of(root, record)
        brief, route = messages.direct(root, asked.brief)
        again, before = status.attempts > 1, attempt.context
        decided = before.trace.decided if before else MissionChoices(self.journal, mission, asked.retried)
        vectors = JournaledVectors(self.journal, (mission, *asked.ancestors), self.clock)
        noted_before = decided.mine() if self.routes_anew else decided.notes()
        route = route or await mission_routing.decide(self.router, brief, root, noted_before, vectors)
        self.events.emit(MISSION_ROUTED, MissionRouted(mission=mission, **route.as_dict()))
        failures = context_building.failures_of(self.journal, (*([mission] if again else []), *asked.retried))
        session = self._session(root, asked, attempt, decided if again else None, context_building.warning(failures))
        ratios = context_building.ratios_of(root, decided.notes() if session.earlier else (), brief)
        reached = conversations.reach(root, brief, decided.notes())
        noted: dict[str, Any] = {context_building.RATIO_NOTE: ratios, mission_routing.ROUTE_NOTE: route.as_dict()}
        if reached is not None:
            noted[conversations.REACH_NOTE] = reached.as_note()
        decided.note(begun=iso(self.clock()), **noted)
        steps = steps_of(root["orchestrator_obj"])
        own = await own_figures.find(self.rates, root, mission, (brief, route), decided)
        facts = MissionFacts(
            id=mission,
            brief=brief,
            route=route,
            root=root,
            thought=thought,
            past=conversations.past(root, brief, reached),
            passages=own.beside(await context_building.passages_of(root, brief)),
            shared=context_building.shared_context_of(root, asked, brief.text, steps),
            order=asked.order,
            read_at=tid_text(transaction.read_at),
            steps=steps,
            failures=failures,
        )
        mind = delegate.mind_of(root, route, brief, MindPolicy.from_brief(brief, self.methods, steps.mode))
        meanings = MissionVectors(self.router, vectors, session.cost.begin_embed)
        outside = OutsideCalls(session, (*asked.ancestors, mission), reaches_out=self.reaches_out)
        io = MissionIO(
            session, self.events, partial(self._note, attempt), transaction.doom, self.image.signals.asked, outside,
            self.methods, meanings, self.recollection, self.rates, self.look_ups, self.toolboxes,
        )  # fmt: skip
        generated, learned = {}, generation_limits.read_learnt(decided.mine())
        if before is not None:
            known, learned = before.trace.generated.items(), before.trace.learned
            # Those of missions that are undone by now are left out.
            generated = {slot: each for slot, each in known if not methods.is_undone(root, each.provenance)}
        return MindContext(facts, io, mind, Trace(decided, ratios, generated, learned, computed=dict(own.computed)))

    def _session(
        self,
        root: Root,
        asked: context_building.MissionQuestion,
        attempt: Attempt,
        before: MissionChoices | None,
        warning: str,
    ) -> Session:
        """Open the session, with the paid answers of this mission and its ancestors."""
        own = self.journal.sound([attempt.mission])
        notes = () if before is None else before.mine()
        paid = (*(self.journal.sound(asked.ancestors) if asked.ancestors else ()), *own)
        session = Session(
            mission=attempt.mission,
            journal=self.journal,
            bridge=self.bridge,
            digests=self.digests,
            limits=context_building.limits_of(asked.brief, self.limits),
            events=self.events,
            earlier=[record for record in paid if is_of_model(record)],
            cost=cost_of(own),
            elapsed=seconds_of_runs(notes, own),
            clock=self.clock,
            marks=measuring.recorded_marks(root),
            card=self.card,
            priority=asked.brief.priority or 0,
            check_stop=attempt.stop_request.check,
            warning=warning,
        )
        if attempt.context is not None:
            session.follow(attempt.context.io.session)
        return session
