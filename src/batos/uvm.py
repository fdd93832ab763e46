"""The Universal Virtual Machine: builds every part in order, owns the open image, and is what every door speaks to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from batos.agency import effect_questions
from batos.agency.granting import open_sink, refuse_places
from batos.agency.look_ups.page_fetching import Fetcher
from batos.agency.releaser import LAST, Hold, Releaser, ReleaserParts, go_on
from batos.agency.schedules import ScheduleParts, Schedules
from batos.agency.sinks import SinkFactory
from batos.approvals.desk import Approvals, Consequences
from batos.autotelic import entropy_days, heartbeat, rates
from batos.autotelic.answer_measures import AnswerMeter
from batos.autotelic.curator import Curator, ModelSummaries
from batos.autotelic.heartbeat import Expense, Heartbeat, HeartbeatParts
from batos.care.packing import Packer, PackerParts
from batos.care.upgrading import home_upgrading
from batos.concurrency.jobs import Job, task_group
from batos.concurrency.threads import finish_despite_cancel
from batos.config import Settings
from batos.events import Events
from batos.genesis import daemon_listing, integrity
from batos.genesis.auditing import Auditing
from batos.genesis.past_reconciler import PastMind, PastReconciler
from batos.genesis.reconcile import Reconciler
from batos.history.copies import MindCopy
from batos.image import node_lines
from batos.image.evolving import Upgrading
from batos.image.ids import utc_now
from batos.image.image import LivingImage, Opening
from batos.image.past import Overlay, PastImage
from batos.image.writer import Publisher
from batos.inference.embedder import EmbedderFinder
from batos.inference.journal import Journal
from batos.inference.ollama.opening import bridge
from batos.inference.vram.call_scheduler import SharedCard
from batos.memory.backfill import BackfillState, VectorBackfill
from batos.memory.document_store import DocumentStore
from batos.memory.fold_store import FoldStore
from batos.memory.search.recollection import Recollection
from batos.methods.generation.described_methods import MadeTools
from batos.methods.lifecycle.lifecycle import MethodLifecycle, Rules
from batos.methods.runtime import CopySource, OpenedRuntime, RuntimeParts, open_method_runtime
from batos.minds.context import MakesToolbox
from batos.minds.stopping import StopRequest
from batos.missions.commits import VOTERS
from batos.missions.counters import Counters
from batos.missions.followups import APPLIERS, FollowUps, MissionMemory
from batos.missions.late_methods import LateMethods, LearningParts
from batos.missions.mission_events import RunningMissions
from batos.missions.missions import Missions
from batos.missions.readiness import Ollama, Readiness, ReadinessParts
from batos.missions.readings import Doing, Readings
from batos.missions.recovery import Recovery
from batos.missions.sharing import Sharing
from batos.missions.worker_runs import PAUSES, QUIET, WorkerDeps
from batos.missions.workers import Workers
from batos.protocol.event_payloads import MEMORY_VECTORS, MemoryVectors
from batos.protocol.motion_documents import RatesDocument
from batos.protocol.server_documents import MindStatus, StandingStatus


@dataclass(frozen=True, slots=True)
class EffectSeams:
    """Holds what does effects on the world, and what waits at the points of their lives."""

    #: None: the real ones, which refuse the places of this home.
    sinks: SinkFactory | None = None
    hold: Hold = go_on
    last: float = LAST


@dataclass(frozen=True, slots=True)
class Seams:
    """The parts that a test or another program may put in the place of the real ones."""

    bridge: Ollama | None = None
    opening: Callable[[Opening], Opening] | None = None
    clock: Callable[[], datetime] = utc_now
    #: Seconds between two looks whether the daemon is back; the last is repeated.
    pauses: Sequence[float] = PAUSES
    quiet: float = QUIET
    effects: EffectSeams = field(default_factory=EffectSeams)
    #: Fetches pages of the world.
    fetcher: Fetcher | None = None
    #: Functions that give missions tools beside their look-ups.
    tools: Sequence[MakesToolbox] = ()


@dataclass(frozen=True, slots=True)
class OpenedImage:
    """The open image, the bridge, and what else every part is built from."""

    settings: Settings
    image: LivingImage
    journal: Journal
    bridge: Ollama
    #: The card behind the bridge, which copies of the mind share: calls of all sessions have their turns there.
    card: SharedCard
    events: Events
    clock: Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class UVM(OpenedImage):
    """An open image and what it needs to think, part by part. Made by `open_uvm`."""

    reconciler: Reconciler
    lifecycle: MethodLifecycle
    publisher: Publisher
    readings: Readings
    workers: Workers
    missions: Missions
    sharing: Sharing
    approvals: Approvals
    method_runtime: OpenedRuntime
    readiness: Readiness
    follow_ups: FollowUps
    learning: LateMethods
    running_missions: RunningMissions
    counters: Counters
    document_store: DocumentStore
    embedder_finder: EmbedderFinder
    backfill: VectorBackfill
    mission_memory: MissionMemory
    curator: Curator
    heartbeat: Heartbeat
    releaser: Releaser
    schedules: Schedules
    packer: Packer

    @property
    def jobs(self) -> tuple[Job, ...]:
        """Return all background work of this process."""
        return (
            self.learning.job, self.mission_memory.job, self.backfill.job, self.follow_ups.job,
            self.releaser.job, self.releaser.watch, self.sharing.job, *self.packer.jobs, self.counters.job,
            self.heartbeat.job, self.schedules.job,
        )  # fmt: skip

    def status(self, user: str | None = None) -> MindStatus:
        """Show one screen's worth, asking nobody; where a user is named, with no other's missions."""
        lease, now = self.image.lease, self.clock()
        with self.image.snapshot() as root:
            doing = Doing(
                self.counters.snapshot(root), self.running_missions.snapshot(), self.learning.snapshot(root),
                [job.line(now) for job in self.jobs],
                node_lines.list_nodes(root, lease.seconds, now, lease.fence) if lease else (),
            )  # fmt: skip
            return self.readings.status(root, doing, user)

    def rates(self, user: str | None = None) -> RatesDocument:
        """Return the rates of the mind's own work; where a user is named, those of this user's missions."""
        with self.image.snapshot() as root:
            return rates.describe(root, (self.journal, self.counters.snapshot(root)), self.clock(), user)

    async def standing(self, found: MindStatus) -> StandingStatus:
        """Add what the daemon says now, and whether a question would be answered: `ready`, `reasons`."""
        refusing = self.image.refusing
        return await daemon_listing.add_standing(found, self.bridge, [] if refusing is None else [refusing.as_dict()])


@asynccontextmanager
async def open_uvm(settings: Settings, events: Events | None = None, seams: Seams | None = None) -> AsyncIterator[UVM]:
    """Open the image (in a file it is this process's alone until the end) and the bridge; closes both.

    Every part is built once all that it needs is there, and closed in the reverse order.
    """
    seams, events = seams or Seams(), events or Events()
    async with AsyncExitStack() as stack:
        opened = await _open_image(stack, settings, events, seams)
        yield await _build(stack, opened, seams)


@asynccontextmanager
async def open_past(today: UVM, tid: bytes, events: Events, mind: PastMind | None = None) -> AsyncIterator[UVM]:
    """Open the mind as it was right after a commit, as a copy in memory that is thrown away.

    The copy thinks with the models of today and writes to the journal of today; nothing else is written. No work begins
    there by itself. `mind` may name another model, or another codex.

    Raises: PackedAway: the image does not go back so far. Refused: there was no mind yet.
    """
    image, settings = today.image, today.settings
    past = PastImage(image, tid)
    await asyncio.to_thread(past.check_kept)
    past.check_made()
    async with AsyncExitStack() as stack:
        opening = Opening(
            image.uri, settings.journal, clock=today.clock, events=events, journal_db=image.journal_db, voters=VOTERS,
            image_factory=lambda: Overlay(image.db.storage, tid), upgrading=Upgrading(tell=lambda what: None),
        )  # fmt: skip
        copy = await asyncio.to_thread(LivingImage, opening)
        stack.push_async_callback(asyncio.to_thread, copy.close)
        await copy.prepare()
        opened = OpenedImage(settings, copy, today.journal.as_of(tid), today.bridge, today.card, events, today.clock)
        quota = today.method_runtime.generator.generations.limit
        yield await _build(stack, opened, Seams(), CopySource(mind or PastMind(today.reconciler), quota))


@asynccontextmanager
async def open_copy(today: UVM, tid: bytes, events: Events, mind: PastMind | None) -> AsyncIterator[MindCopy]:
    """Open the same, for whoever asks there."""
    async with open_past(today, tid, events, mind) as copy:
        generations = copy.method_runtime.generator.generations
        yield MindCopy(copy.image, copy.journal, copy.events, copy.missions, copy.readings, generations)


async def _open_image(stack: AsyncExitStack, settings: Settings, events: Events, seams: Seams) -> OpenedImage:
    """Open the image and the bridge; at the end the journal has written all, and both are closed."""
    opening = Opening(
        settings.image_uri, settings.journal, settings.missions, clock=seams.clock, events=events,
        lease=settings.lease, upgrading=home_upgrading(settings), voters=VOTERS,
    )  # fmt: skip
    if seams.opening is not None:
        opening = seams.opening(opening)
    # Opening reads and may scan a file: not on the loop.
    image = await asyncio.to_thread(LivingImage, opening)
    stack.push_async_callback(asyncio.to_thread, image.close)
    daemon = seams.bridge or bridge(settings)
    if seams.bridge is None:
        stack.push_async_callback(daemon.aclose)
    await image.prepare()
    journal = Journal(image.journal_db, image.journal_writer)

    async def drain() -> None:
        if image.refusing is None:
            await journal.drain()

    stack.push_async_callback(drain)
    return OpenedImage(
        settings, image, journal, daemon, SharedCard(daemon, events, settings.parallel), events, seams.clock
    )


def _count(stack: AsyncExitStack, opened: OpenedImage) -> tuple[RunningMissions, Counters]:
    """Count what happens from here on; the counts are written at the end."""
    running_missions, counters = RunningMissions(opened.clock), Counters(opened.image.writer.apply, opened.clock)
    _keep(stack, counters.job)
    for subscriber in (running_missions.on_event, counters.on_event):
        stack.callback(opened.events.subscribe(subscriber))
    return running_missions, counters


async def _build(stack: AsyncExitStack, opened: OpenedImage, seams: Seams, copied: CopySource | None = None) -> UVM:
    """Build the parts that work on the image; at the end they have stopped."""
    running_missions, counters = _count(stack, opened)
    group = await stack.enter_async_context(task_group())
    settings, image, events, clock = opened.settings, opened.image, opened.events, opened.clock
    digests, thinking = dict[str, str](), dict[object, frozenset[str]]()
    reconciler = _reconciler(opened, thinking, copied)
    lifecycle = MethodLifecycle(image, events, clock, _rules(settings))
    publisher = Publisher(image.shared, {**APPLIERS, "method": lifecycle.fold}, clock)
    readings = Readings(settings, image, opened.journal, lifecycle, clock)

    # The one circle: a mission may ask a person, whose answer wakes missions. No worker works before all is built.
    async def perform(mission: str, stop_request: StopRequest) -> None:
        await built.mission_memory.catch_up_for(mission)
        await readiness.perform(mission, stop_request)

    async def answers() -> bool:
        return await readiness.answers()

    def prepare(mission: str) -> Callable[[], None]:
        return readiness.prepare(mission)

    deps = WorkerDeps(perform, answers, settings.missions, events, seams.pauses, prepare, seams.quiet)
    workers = Workers(image, group, deps, clock)
    missions = Missions(image, workers, Recovery(image, opened.journal, publisher, events), readings)
    sharing, store = Sharing(image, workers, missions.recovery, events), DocumentStore(image, clock)
    then = Consequences(missions.wake, lifecycle.settle, store.forget_in, store.exclusively, effect_questions.settle)
    approvals = Approvals(image, events, clock, settings.approval_days, group, then)
    effect_questions.register(publisher, approvals, clock)
    making = _runtime_parts(opened, lifecycle, approvals, digests)
    method_runtime = await stack.enter_async_context(open_method_runtime(making, copied.quota if copied else None))
    running = ReadinessParts(
        settings, image, opened.journal, publisher, opened.card, events, clock, method_runtime.methods, digests,
        thinking, readings.recollection, rates=rates.for_missions(opened.journal, counters, clock),
        routes_anew=copied is not None and copied.mind.codex is not None, reaches_out=copied is None,
        fetcher=seams.fetcher, toolboxes=(MadeTools, *seams.tools), ask=approvals.ask_named,
    )  # fmt: skip
    readiness = Readiness(running, opened.bridge, reconciler)
    late = LearningParts(settings, image, method_runtime.generator, missions, workers, clock, readiness.ready)
    finder = EmbedderFinder(image, opened.bridge, readiness.ready)
    built = UVM(
        settings, image, opened.journal, opened.bridge, opened.card, events, clock,
        reconciler, lifecycle, publisher, readings, workers, missions, sharing, approvals, method_runtime, readiness,
        FollowUps(image, missions), LateMethods(late, seams.pauses[-1]), running_missions, counters, store, finder,
        _backfill(opened, store, finder, workers), _memory(opened, store, readings.recollection),
        *_curating(opened, readings, (missions, readiness), workers, store), _releaser(opened, readiness, seams),
        Schedules(ScheduleParts(image, events, clock, missions.submit, missions.begin, workers.is_idle)),
        Packer(PackerParts(image, events, clock, workers.is_idle, settings.history_days, settings.journal_days)),
    )  # fmt: skip
    await _start(stack, built, lasts=copied is None)
    return built


def _runtime_parts(
    opened: OpenedImage, lifecycle: MethodLifecycle, approvals: Approvals, digests: Mapping[str, str]
) -> RuntimeParts:
    return RuntimeParts(
        opened.settings, opened.image, opened.journal, opened.bridge, opened.card, opened.events, opened.clock,
        lifecycle, approvals, digests,
    )  # fmt: skip


def _memory(opened: OpenedImage, store: DocumentStore, recollection: Recollection) -> MissionMemory:
    """Make what remembers answered missions, and measures each answer beside those before it."""
    return MissionMemory(opened.image, store, opened.clock, AnswerMeter(recollection).change)


def _backfill(opened: OpenedImage, store: DocumentStore, finder: EmbedderFinder, workers: Workers) -> VectorBackfill:
    def tell(found: BackfillState) -> None:
        opened.events.emit(MEMORY_VECTORS, MemoryVectors(model=found.model, missing=found.missing))

    return VectorBackfill(opened.image, store, finder.find, workers.is_idle, tell)


def _curating(
    opened: OpenedImage, readings: Readings, asked: tuple[Missions, Readiness], workers: Workers, store: DocumentStore
) -> tuple[Curator, Heartbeat]:
    """Make the curator, and the heartbeat by which it works when nobody asks."""
    writer = ModelSummaries(asked[0].ask, asked[1].answers, asked[1].check)
    settings, folds = opened.settings, FoldStore(opened.image, store, readings.recollection.search, opened.clock)
    curator = Curator(opened.image, folds, opened.clock, opened.events, writer)
    duties = [
        heartbeat.curating(curator, settings.cold_days, opened.clock), entropy_days.tuning(opened.image, opened.clock),
    ]  # fmt: skip
    budget = Expense(settings.heartbeat_seconds, settings.heartbeat_calls, settings.heartbeat_tokens)
    parts = HeartbeatParts(
        opened.image, opened.clock, workers.is_idle, duties, budget, settings.audit_every, heartbeat.has_power
    )
    return curator, Heartbeat(parts)


def _releaser(opened: OpenedImage, readiness: Readiness, given: Seams) -> Releaser:
    """Make what releases effects to the world, but not to the places of this home."""
    seams = given.effects
    sinks = seams.sinks or partial(open_sink, guard=partial(refuse_places, opened.settings), servers=readiness.servers)
    return Releaser(ReleaserParts(opened.image, opened.events, opened.clock, sinks, seams.hold, last=seams.last))


async def _start(stack: AsyncExitStack, built: UVM, *, lasts: bool) -> None:
    """Start the jobs; at the end they stop in the reverse order, the missions among them.

    In a copy of the mind, which does not last, no effect is released and nothing is remembered.
    """
    if lasts:
        _keep(stack, built.mission_memory.job)
        built.mission_memory.job.wake()
    built.sharing.keep()
    stack.push_async_callback(built.sharing.aclose)
    stack.push_async_callback(_finish, built.workers.stop)
    stack.push_async_callback(_finish, built.learning.aclose)
    _keep(stack, built.backfill.job)
    stack.callback(built.approvals.close)
    await built.approvals.open()
    stack.push_async_callback(_finish, built.curator.write_recalls)
    if lasts:
        stack.push_async_callback(_finish, built.releaser.aclose)
        built.releaser.keep()
    stack.push_async_callback(_finish, built.packer.aclose)
    stack.push_async_callback(_finish, built.heartbeat.job.stop)
    stack.push_async_callback(_finish, built.schedules.job.stop)
    stack.push_async_callback(_finish, built.follow_ups.job.stop)
    for job in built.jobs:
        job.obey(built.image.signals)


def _keep(stack: AsyncExitStack, job: Job) -> None:
    """Start a job; at the end it has stopped."""
    job.start()
    stack.push_async_callback(_finish, job.stop)


def _rules(settings: Settings) -> Rules:
    return Rules(settings.method_control, settings.method_active, settings.method_uses)


def _reconciler(
    opened: OpenedImage, thinking: Mapping[object, frozenset[str]], copied: CopySource | None
) -> Reconciler:
    """Make what brings models and image to the codex; models that runs think with, or paid answers name, are kept."""
    auditing = Auditing(integrity.audit, opened.settings, opened.image, opened.bridge, opened.clock)
    parts = (opened.settings, opened.image, opened.bridge, opened.events, opened.clock, auditing)
    if copied is not None:
        return PastReconciler(*parts, mind=copied.mind)
    return Reconciler(*parts, lambda: opened.journal.models(opened.image.unfolded_missions()).union(*thinking.values()))


async def _finish(close: Callable[[], Awaitable[None]]) -> None:
    """Close a part to its end, also when the process is told to leave meanwhile."""
    await finish_despite_cancel(asyncio.ensure_future(close()))
