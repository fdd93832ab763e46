"""Checks the models that the codex asks for before missions begin, and makes the runner and the router over them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Protocol

from batos.agency.granting import refuse_places
from batos.agency.look_ups.granted import open_look_ups
from batos.agency.look_ups.page_fetching import Fetcher
from batos.agency.mcp.servers import AsksIn, McpServers, ServerOpener, ask_nobody
from batos.agency.toolbox import Toolbox
from batos.agency.written_tools import ToolAsker, lend_tools, open_places
from batos.config import Settings
from batos.events import Events
from batos.genesis.daemon_listing import GenesisDaemon
from batos.genesis.provision import OnProgress
from batos.genesis.reconcile import Baseline, GenesisReport, Reconciler
from batos.image.image import LivingImage
from batos.image.writer import Publisher
from batos.inference.cost import SpendingLimits
from batos.inference.embedder import Embedder, find_embedder
from batos.inference.journal import Journal
from batos.inference.vram.call_scheduler import SharedCard
from batos.memory.search.recollection import Recollection
from batos.minds.context import MakesToolbox, MethodRuntime, MindContext, Rates
from batos.minds.permission import ask_person, list_earlier_questions
from batos.minds.stopping import StopRequest
from batos.missions import effect_messages
from batos.missions.commits import CommitTurns
from batos.missions.runner import Inference, MissionRunner
from batos.protocol.errors import OllamaError, OllamaTimeout, OllamaUnreachable
from batos.routing import router as routers
from batos.routing.lexical import lessons_of
from batos.routing.router import Router


class Ollama(GenesisDaemon, Inference, Protocol):
    """The bridge to Ollama, as genesis and missions use it."""

    async def aclose(self) -> None:
        """Close its connections."""
        ...


@dataclass(frozen=True, slots=True)
class Ready:
    """Holds what missions begin with from now on; `number` is the number of the check that found it."""

    number: int
    baseline: Baseline
    runner: MissionRunner


@dataclass(frozen=True, slots=True)
class ReadinessParts:
    """The parts of the UVM that a mission's runner is made of.

    `digests` has the digest of every model that was seen, by name. All missions share one mapping: a mission may begin
    on what another's check has just written into the image. `thinking` has the models that each run of a mission may
    think with, because a run keeps what it began with.
    """

    settings: Settings
    image: LivingImage
    journal: Journal
    publisher: Publisher
    card: SharedCard
    events: Events
    clock: Callable[[], datetime]
    methods: MethodRuntime
    digests: dict[str, str]
    thinking: dict[object, frozenset[str]]
    recollection: Recollection
    #: True where the codex is another than that of the missions that are asked again.
    routes_anew: bool = False
    #: The rates of the mind itself.
    rates: Rates | None = None
    #: Fetches pages of the world; None: as the kernel does. `reaches_out` is False in a copy of the mind.
    fetcher: Fetcher | None = None
    reaches_out: bool = True
    #: Functions that give missions tools.
    toolboxes: Sequence[MakesToolbox] = ()
    #: Asks a person about tools of servers.
    ask: AsksIn = ask_nobody


class Readiness:
    """Checks the models before missions begin, and runs each mission on what the newest check found."""

    def __init__(self, parts: ReadinessParts, bridge: Ollama, reconciler: Reconciler) -> None:
        self._parts = parts
        self._look_ups = open_look_ups(parts, partial(refuse_places, parts.settings), parts.fetcher)
        #: The way to the programs and files whose tools missions use.
        self.tool_places = open_places(parts.settings.home, parts.image, parts.events, parts.clock)
        #: The granted servers of tools.
        self.servers = McpServers(ServerOpener(parts.settings.home), parts.image, parts.clock, parts.ask)
        #: Asked by every runner that is made from now on.
        self.bridge = bridge
        self._reconciler = reconciler
        #: The number of checks so far.
        self._checks = 0
        self._ready: Ready | None = None
        #: The checks of missions that are being accepted, by mission.
        self._prepared: dict[str, asyncio.Future[Ready]] = {}
        #: Those of every runner's missions: an older runner's may commit beside the newest one's.
        self._turns = CommitTurns()

    async def genesis(self, on_progress: OnProgress | None = None, *, prune: bool = False) -> GenesisReport:
        """Bring models and image to what codex and adapters say, and verify; a second run changes nothing.

        Where nothing is wrong after it, the router has learnt the codex too, so that no question waits for that.
        """
        self._checks += 1
        begin = partial(self._begin_on, self._checks, self._reconciler.progress_relay(on_progress))
        return await self._reconciler.run(on_progress, prune=prune, begin=begin)

    async def check(self) -> None:
        """Check before every verb that thinks: the codex takes effect, models that only need making are made.

        Raises:
            ModelMissing: something must be pulled first.
            CodexError: a file of the codex is wrong.
            OllamaError: Ollama cannot be asked.
        """
        async with self._reconciler.turn:
            await self._check()

    async def ready(self) -> Ready:
        """Return what a mission that comes now begins with; missions that come together share a check.

        When Ollama is away, what the image knows serves answers that are paid for.
        """
        come = self._checks
        async with self._reconciler.turn:
            if self._ready is not None and self._ready.number > come:
                return self._ready
            return await self._check()

    async def perform(self, mission: str, stop_request: StopRequest) -> None:
        """Run one mission for a worker; raises why it ended otherwise than done."""
        prepared = self._prepared.pop(mission, None)
        ready = await (self.ready() if prepared is None else prepared)
        run = object()
        self._parts.thinking[run] = ready.baseline.models
        try:
            await ready.runner.run(mission, stop_request)
        finally:
            del self._parts.thinking[run]

    def prepare(self, mission: str) -> Callable[[], None]:
        """Begin the check of a mission that is being accepted, and return a function that gives the check up."""
        check = self._prepared[mission] = asyncio.ensure_future(self.ready())

        def give_up() -> None:
            self._prepared.pop(mission, None)
            check.cancel()

        # The mission is told the error. Where none comes, the error is nobody's.
        check.add_done_callback(lambda done: None if done.cancelled() else done.exception())
        return give_up

    async def answers(self) -> bool:
        """Return True if Ollama answers."""
        try:
            await self.bridge.version()
        except OllamaError:
            self._reconciler.forget_version()
            return False
        return True

    async def _check(self) -> Ready:
        self._checks += 1
        number = self._checks
        try:
            baseline = await self._reconciler.check()
        except (OllamaUnreachable, OllamaTimeout):
            remembered = await asyncio.to_thread(self._reconciler.baseline)
            if remembered is None:
                raise
            baseline = remembered
        return await self._begin_on(number, self._reconciler.progress_relay(None), baseline)

    async def _begin_on(self, number: int, tell: OnProgress, baseline: Baseline) -> Ready:
        """Let missions begin on this baseline from now on; `number` is that of the check that found it."""
        await self.tool_places.files.list_files()
        before = self._ready
        self._parts.digests.update(baseline.digests)
        alike = before is not None and before.baseline.codex.digest == baseline.codex.digest
        alike = alike and before is not None and before.runner.bridge is self.bridge
        if before is not None and alike and before.runner.router.serves(self._embedder(baseline)):
            self._ready = replace(before, number=number, baseline=baseline)
        else:
            self._ready = Ready(number, baseline, await self._make_runner(baseline, tell))
        return self._ready

    async def _make_runner(self, baseline: Baseline, tell: OnProgress) -> MissionRunner:
        parts = self._parts
        limits = parts.settings
        return MissionRunner(
            image=parts.image,
            journal=parts.journal,
            publisher=parts.publisher,
            bridge=self.bridge,
            router=await self._router(baseline, tell),
            limits=SpendingLimits(limits.mission_calls, limits.mission_tokens, limits.mission_seconds),
            events=parts.events,
            clock=parts.clock,
            digests=parts.digests,
            card=parts.card,
            methods=parts.methods,
            recollection=parts.recollection,
            turns=self._turns,
            routes_anew=parts.routes_anew,
            look_ups=self._look_ups,
            reaches_out=parts.reaches_out,
            rates=parts.rates,
            toolboxes=(self._lend_tools, self._serve_tools, *parts.toolboxes),
        )

    def _lend_tools(self, context: MindContext) -> Toolbox | None:
        asker = ToolAsker(context.mission.brief, list_earlier_questions(context), partial(ask_person, context))
        return lend_tools(self.tool_places, asker, context.io.outside)

    def _serve_tools(self, context: MindContext) -> Toolbox:
        return effect_messages.serve_tools(self.servers, self._parts.journal, context)

    async def _router(self, baseline: Baseline, tell: OnProgress) -> Router:
        lessons = lessons_of(baseline.codex.personas.values())
        margin = self._parts.settings.second_voice_margin
        return await routers.make_router(self._parts.image, lessons, self._embedder(baseline), tell, margin)

    def _embedder(self, baseline: Baseline) -> Embedder | None:
        """Return the codex's embedder, or None if the daemon does not have it."""
        return find_embedder(
            self.bridge, baseline.codex.profile(self._parts.settings.profile).embedder, baseline.digests
        )
