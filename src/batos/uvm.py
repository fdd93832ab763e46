"""The Universal Virtual Machine: builds every part, owns the open image, and is what every door speaks to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from batos.approvals.approvals import Approvals, Consequences, still_waits
from batos.brief import File
from batos.codex.codex import Codex
from batos.concurrency.commit_thread import finish_despite_cancel
from batos.config import Settings
from batos.errors import OllamaError, OllamaTimeout, OllamaUnreachable
from batos.events import Events
from batos.genesis import integrity, standing
from batos.genesis.auditing import Auditing
from batos.genesis.daemon_listing import GenesisDaemon
from batos.genesis.plan import Plan
from batos.genesis.provision import OnProgress
from batos.genesis.reconcile import Baseline, GenesisReport, Reconciler
from batos.image.ids import utc_now
from batos.image.image import LivingImage, Opening
from batos.image.publisher import Publisher
from batos.inference.cost import SpendingLimits
from batos.inference.journal import Journal
from batos.inference.ollama.opening import bridge
from batos.methods.generation.generator import Jit
from batos.methods.lifecycle.control_group import Rules
from batos.methods.lifecycle.lifecycle import MethodLifecycle
from batos.methods.runtime import OpenedRuntime, open_method_runtime
from batos.minds.stopping import StopRequest
from batos.missions import reports
from batos.missions.contributions import APPLIERS
from batos.missions.counters import Counters
from batos.missions.followups import FollowUps
from batos.missions.late_methods import LateMethods
from batos.missions.missions import Missions
from batos.missions.progress import RunningMissions
from batos.missions.readings import Readings
from batos.missions.recovery import Recovery
from batos.missions.runner import Inference, MissionRunner
from batos.missions.workers import PAUSES, WorkerDeps, Workers
from batos.notation import masked
from batos.routing import router as routers
from batos.routing.lessons import Lesson
from batos.routing.router import Router
from batos.routing.vectors import Embedder, find_embedder


class Ollama(GenesisDaemon, Inference, Protocol):
    """What the UVM needs of the bridge."""

    async def aclose(self) -> None:
        """Close its connections."""
        ...


@dataclass(frozen=True, slots=True)
class Seams:
    """What a test or another program may put in the place of the real thing."""

    bridge: Ollama | None = None
    opening: Callable[[Opening], Opening] | None = None
    clock: Callable[[], datetime] = utc_now
    #: Seconds between two looks whether the daemon is back; the last is repeated.
    pauses: Sequence[float] = PAUSES


@dataclass(frozen=True, slots=True)
class Ready:
    """What missions begin with from now on; `number` is that of the check that found it so."""

    number: int
    footing: Baseline
    conductor: MissionRunner


@dataclass(slots=True)
class UVM(Readings):
    """An open image and what it needs to think. Made by `open_uvm`."""

    settings: Settings
    image: LivingImage
    journal: Journal
    bridge: Ollama
    events: Events
    clock: Callable[[], datetime]
    convergence: Reconciler
    lives: MethodLifecycle
    publisher: Publisher
    approvals: Approvals = field(init=False)
    crafts: OpenedRuntime = field(init=False)
    workers: Workers = field(init=False)
    control: Missions = field(init=False)
    counters: Counters = field(init=False)
    board: RunningMissions = field(init=False)
    afterwards: FollowUps = field(init=False)
    learning: LateMethods = field(init=False)
    #: How often it was looked at what missions begin with.
    _checks: int = 0
    _ready: Ready | None = None
    #: The digest of every model that was seen, by name. One mapping for all: a mission may begin on what another's look
    #: has just written into the image.
    digests: dict[str, str] = field(default_factory=dict)
    #: The models that each run of a mission may think with: it keeps what it began with.
    _thinking: dict[object, frozenset[str]] = field(default_factory=dict)

    @property
    def jit(self) -> Jit:
        """Who makes methods of intents."""
        return self.crafts.jit

    # -- genesis

    def codex(self) -> Codex:
        """The home's codex; the shipped one is copied there first, file by file, where one is missing."""
        return self.convergence.codex()

    async def plan(self, *, prune: bool = False) -> Plan:
        """What genesis would do; changes nothing but the missing files of the codex."""
        return await self.convergence.plan(prune=prune)

    async def genesis(self, on_progress: OnProgress | None = None, *, prune: bool = False) -> GenesisReport:
        """Bring models and image to what codex and adapters say, and verify; a second run changes nothing.

        Where nothing is wrong after it, the router has learnt the codex too, so that no question waits for that.
        """
        self._checks += 1
        begin = partial(self._begin_on, self._checks, self.convergence.telling(on_progress))
        return await self.convergence.run(on_progress, prune=prune, begin=begin)

    async def check(self) -> None:
        """The check at the start of every verb that thinks: the codex acts, models that only need making are made.

        Raises ModelMissing when something must be pulled first, CodexError when a file is wrong, and what Ollama
        answers when it cannot be asked.
        """
        async with self.convergence.turn:
            await self._check()

    async def _check(self) -> Ready:
        self._checks += 1
        number = self._checks
        try:
            footing = await self.convergence.check()
        except (OllamaUnreachable, OllamaTimeout):
            remembered = await asyncio.to_thread(self.convergence.remembered)
            if remembered is None:
                raise
            footing = remembered
        return await self._begin_on(number, self.convergence.telling(None), footing)

    async def _begin_on(self, number: int, tell: OnProgress, footing: Baseline) -> Ready:
        """Let missions begin on this footing from now on; `number` is that of the look that found it."""
        before = self._ready
        self.digests.update(footing.digests)
        alike = before is not None and before.footing.codex.digest == footing.codex.digest
        alike = alike and before is not None and before.conductor.bridge is self.bridge
        if before is not None and alike and before.conductor.router.serves(self._embedder(footing)):
            self._ready = replace(before, number=number, footing=footing)
        else:
            self._ready = Ready(number, footing, await self._make_conductor(footing, tell))
        return self._ready

    async def _make_conductor(self, footing: Baseline, tell: OnProgress) -> MissionRunner:
        limits = self.settings
        return MissionRunner(
            image=self.image,
            journal=self.journal,
            publisher=self.publisher,
            bridge=self.bridge,
            router=await self._router(footing, tell),
            limits=SpendingLimits(limits.mission_calls, limits.mission_tokens, limits.mission_seconds),
            events=self.events,
            clock=self.clock,
            digests=self.digests,
            parallel=self.settings.parallel,
            methods=self.crafts.methods,
        )

    async def _router(self, footing: Baseline, tell: OnProgress) -> Router:
        lessons = [Lesson(each.name, each.triggers, each.exemplars) for each in footing.codex.personas.values()]
        return await routers.made(self.image, lessons, self._embedder(footing), tell)

    def _embedder(self, footing: Baseline) -> Embedder | None:
        """The codex's embedder, if the daemon has it."""
        return find_embedder(self.bridge, footing.codex.profile(self.settings.profile).embedder, footing.digests)

    async def ready(self) -> Ready:
        """What a mission that comes now begins with; those that come together share a look.

        When Ollama is away, what the image knows serves answers that are paid for.
        """
        come = self._checks
        async with self.convergence.turn:
            if self._ready is not None and self._ready.number > come:
                return self._ready
            return await self._check()

    # -- missions

    async def submit(self, brief: Mapping[str, Any], files: Sequence[File] = ()) -> str:
        """Validate and accept a mission; it is durable when its id is returned, and not begun.

        A second brief of a user with the same idempotency key is the first one's mission. Busy: no more may wait.
        """
        chosen = self.settings.effort
        usual = {} if chosen == "auto" or "message" in brief else {"effort": chosen}
        return await self.control.submit({"user": self.settings.asker, **usual, **brief}, files)

    async def begin(self, mission: str) -> None:
        """Hand an accepted mission to the workers; one that they have, or that is done, is left as it is.

        Refused: it has ended another way, or stands still until it is resumed.
        """
        self.control.begin(mission)
        await asyncio.sleep(0)  # who begins ten thousand in a row lets others in between

    async def ended(self, mission: str) -> dict[str, Any]:
        """The mission when it has ended or stands still; never raises why. One that nobody begins is waited for."""
        await self.control.ended(mission)
        return self.mission(mission)

    async def run(self, mission: str) -> dict[str, Any]:
        """Run an accepted mission until it ends or stands still; raises why it failed. Whoever leaves cancels it.

        A mission that is done is not run again. Refused: it runs just now, or has ended.
        """
        await self.control.run(mission)
        return self.mission(mission)

    async def ask(self, brief: Mapping[str, Any], files: Sequence[File] = ()) -> dict[str, Any]:
        """Submit and run; raises why it failed."""
        return await self.run(await self.submit(brief, files))

    async def drop_files(self, conversation: str, names: Sequence[str], user: str | None = None) -> dict[str, Any]:
        """Leave files of a conversation out of its next questions, and its newest turn with those that are left.

        NotFound: there is no such conversation, or it has no such file; then nothing is left out.
        """
        await self.control.drop_files(conversation, names, user or self.settings.asker)
        return self.turns(conversation, -1, 1, user)

    async def cancel(self, mission: str) -> dict[str, Any]:
        """End a mission at once, and what it is then: cancelled, or done if its commit went through.

        Refused: it had ended before.
        """
        await self.control.cancel(mission)
        return self.mission(mission)

    async def pause(self, mission: str) -> dict[str, Any]:
        """Let a mission stand still when the calls under way are paid and journaled, and what it is then.

        Refused: it has ended.
        """
        await self.control.pause(mission)
        return self.mission(mission)

    async def resume(self, mission: str) -> dict[str, Any]:
        """Let a mission that stands still go on, and what it is then: what was paid for is not paid again.

        Refused: it has ended.
        """
        await self.control.resume(mission)
        return self.mission(mission)

    async def recover(self) -> list[str]:
        """Settle what an earlier process left behind: fold in what was committed, queue again what was not.

        Returns the ids of the missions that wait to be begun. One that cannot be settled is left as it is and logged;
        deadlines that have passed end their missions.
        """
        return await self.control.recover()

    async def stop(self) -> None:
        """Send what runs back to the queue and begin nothing more; returns when all has settled."""
        await self.workers.stop()

    async def _perform(self, mission: str, hold: StopRequest) -> None:
        """One mission at a worker."""
        ready = await self.ready()
        run = object()
        self._thinking[run] = ready.footing.models
        try:
            await ready.conductor.run(mission, hold)
        finally:
            del self._thinking[run]

    async def _answers(self) -> bool:
        """Whether Ollama does."""
        try:
            await self.bridge.version()
        except OllamaError:
            self.convergence.lost()
            return False
        return True

    # -- reading

    def status(self, user: str | None = None) -> dict[str, Any]:
        """Show one screen's worth, asking nobody; where a user is named, with no other's missions."""
        with self.image.snapshot() as root:
            screen = reports.screen(root, self.counters.snapshot(root), self.board.snapshot(), self.settings.queue)
            return {
                **(screen if user is None else reports.screen_of(root, screen, user)),
                "learning": self.learning.snapshot(root),
                "ollama": {"host": masked(self.settings.ollama_host)},
                "image": {"uri": masked(self.image.uri), **self.image.sizes()},
            }

    async def standing(self, found: Mapping[str, Any]) -> dict[str, Any]:
        """Add what the daemon says now, and whether a question would be answered: `ready`, `reasons`."""
        said = await standing.of(self.bridge, found["models"])
        reasons = standing.reasons(said, self.image.refusing)
        return {**found, "ollama": {**found["ollama"], **said}, "ready": not reasons, "reasons": reasons}


@asynccontextmanager
async def open_uvm(settings: Settings, events: Events | None = None, seams: Seams | None = None) -> AsyncIterator[UVM]:
    """Open the image (it is this process's alone until the end) and the bridge; closes both."""
    seams, events = seams or Seams(), events or Events()
    opening = Opening(settings.image_uri, settings.journal, settings.missions, clock=seams.clock, events=events)
    if seams.opening is not None:
        opening = seams.opening(opening)
    # Opening reads and may scan a file: not on the loop.
    image = await asyncio.to_thread(LivingImage, opening)
    daemon: Ollama | None = None
    try:
        daemon = seams.bridge or bridge(settings)
        await image.prepare()
        journal = Journal(image.journal_db, image.journal_writer)
        auditing = Auditing(integrity.audit, settings, image, daemon, seams.clock)
        thinking: dict[object, frozenset[str]] = {}
        convergence = Reconciler(
            settings, image, daemon, events, seams.clock, auditing,
            lambda: journal.models(image.unfolded()).union(*thinking.values()),
        )  # fmt: skip
        rules = Rules(settings.method_control, settings.method_active, settings.method_uses)
        lives = MethodLifecycle(image, events, seams.clock, rules)
        publisher = Publisher(image.writer, {**APPLIERS, "method": lives.fold}, seams.clock)
        uvm = UVM(
            settings, image, journal, daemon, events, seams.clock, convergence, lives, publisher, _thinking=thinking
        )
        try:
            async with _counting(uvm), _working(uvm, seams):
                yield uvm
        finally:
            if image.refusing is None:
                await journal.drain()
    finally:
        if daemon is not None and seams.bridge is None:
            await daemon.aclose()
        await asyncio.to_thread(image.close)


@asynccontextmanager
async def _counting(uvm: UVM) -> AsyncIterator[None]:
    """What happens is counted, and written at the end."""
    uvm.board, uvm.counters = RunningMissions(uvm.clock), Counters(uvm.image.writer.apply, uvm.clock)
    leaving = [uvm.events.subscribe(each) for each in (uvm.board.on_event, uvm.counters.on_event)]
    try:
        yield
    finally:
        for leave in leaving:
            leave()
        await finish_despite_cancel(asyncio.ensure_future(uvm.counters.close()))


@asynccontextmanager
async def _working(uvm: UVM, seams: Seams) -> AsyncIterator[None]:
    """The one task group, with the workers in it; at the end they have stopped."""
    failure: BaseException | None = None
    async with asyncio.TaskGroup() as group:
        events = uvm.events
        waits = partial(still_waits, uvm.image)
        trade = WorkerDeps(uvm._perform, uvm._answers, uvm.settings.missions, events, seams.pauses, waits)
        uvm.workers = Workers(uvm.image, group, trade, uvm.clock)
        recovery = Recovery(uvm.image, uvm.journal, uvm.publisher, uvm.events)
        uvm.control = Missions(uvm.image, uvm.workers, recovery, uvm.settings.queue, uvm.clock)
        then = Consequences(uvm.control.wake, uvm.lives.settle)
        uvm.approvals = Approvals(uvm.image, events, uvm.clock, uvm.settings.approval_days, group, then)
        async with open_method_runtime(uvm) as uvm.crafts:
            uvm.afterwards = FollowUps(uvm.image, uvm.control, group)
            uvm.learning = LateMethods(uvm, group, seams.pauses[-1])
            try:
                await uvm.approvals.open()
                yield
            except BaseException as error:  # raised below, as it is: the group would wrap it
                failure = error
            uvm.approvals.close()
            await finish_despite_cancel(asyncio.ensure_future(uvm.learning.aclose()))
            await finish_despite_cancel(asyncio.ensure_future(uvm.stop()))
    if failure is not None:
        raise failure
