"""The Universal Virtual Machine: builds every part, owns the open image, and is what every door speaks to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Any, Protocol

import structlog

from batos.cognition import brief as briefs
from batos.cognition import conversations, report
from batos.cognition.brief import File
from batos.cognition.contributions import APPLIERS
from batos.cognition.mission import Conductor, Inference
from batos.cognition.router import Lesson, taught
from batos.config import Settings
from batos.errors import BatosError, BriefError, NotFound, OllamaTimeout, OllamaUnreachable, Refused
from batos.events import Events
from batos.genesis.codex import Codex
from batos.genesis.convergence import Convergence, Footing, GenesisReport
from batos.genesis.daemon import Daemon
from batos.genesis.plan import Plan
from batos.genesis.provision import OnProgress
from batos.image import roots
from batos.image.ids import conversation_id, utc_now
from batos.image.image import LivingImage, Opening
from batos.image.publisher import Publisher
from batos.inference.bridge import Bridge, Deadlines
from batos.inference.journal import Journal
from batos.inference.session import Limits
from batos.objects.prototype import own_slots

_log = structlog.get_logger("batos")


class Ollama(Daemon, Inference, Protocol):
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


@dataclass(frozen=True, slots=True)
class Ready:
    """What missions begin with from now on; `number` is that of the check that found it so."""

    number: int
    footing: Footing
    conductor: Conductor


@dataclass(slots=True)
class UVM:
    """An open image and what it needs to think. Made by `open_uvm`."""

    settings: Settings
    image: LivingImage
    journal: Journal
    bridge: Ollama
    events: Events
    clock: Callable[[], datetime]
    convergence: Convergence
    _slots: asyncio.Semaphore
    #: How often it was looked at what missions begin with.
    _checks: int = 0
    _ready: Ready | None = None
    #: The digest of every model that was seen, by name. One mapping for all: a mission may begin on what another's look
    #: has just written into the image.
    _digests: dict[str, str] = field(default_factory=dict)
    #: The models that each run of a mission may think with: it keeps what it began with.
    _thinking: dict[object, frozenset[str]] = field(default_factory=dict)

    # -- genesis

    def codex(self) -> Codex:
        """The home's codex; the shipped one is copied there first, file by file, where one is missing."""
        return self.convergence.codex()

    async def plan(self, *, prune: bool = False) -> Plan:
        """What genesis would do; changes nothing but the missing files of the codex."""
        return await self.convergence.plan(prune=prune)

    async def genesis(self, on_progress: OnProgress | None = None, *, prune: bool = False) -> GenesisReport:
        """Bring models and image to what codex and adapters say, and verify; a second run changes nothing."""
        return await self.convergence.run(on_progress, prune=prune)

    def _in_use(self) -> frozenset[str]:
        """The models that missions think with now, and those that missions left undone have begun with."""
        begun = {record.model for mission in self.image.unfolded() for record in self.journal.read([mission])}
        return frozenset(begun).union(*self._thinking.values())

    async def check(self) -> None:
        """The check at the start of every verb that thinks: the codex acts, models that only need making are made.

        Raises ModelMissing when something must be pulled first, CodexError when a file is wrong, and what Ollama
        answers when it cannot be asked.
        """
        async with self.convergence.turn:
            await self._check()

    async def _check(self) -> Ready:
        self._checks += 1
        number, before = self._checks, self._ready
        try:
            footing = await self.convergence.check()
        except (OllamaUnreachable, OllamaTimeout):
            remembered = await asyncio.to_thread(self.convergence.remembered)
            if remembered is None:
                raise
            footing = remembered
        self._digests.update(footing.digests)
        if before is not None and before.footing.codex.digest == footing.codex.digest:
            self._ready = replace(before, number=number, footing=footing)
        else:
            self._ready = Ready(number, footing, await self._make_conductor(footing))
        return self._ready

    async def _make_conductor(self, footing: Footing) -> Conductor:
        lessons = tuple(Lesson(each.name, each.triggers, each.exemplars) for each in footing.codex.personas.values())
        limits = self.settings
        return Conductor(
            image=self.image,
            journal=self.journal,
            publisher=Publisher(self.image.writer, APPLIERS, self.clock),
            bridge=self.bridge,
            # Counting the words of every exemplar takes longer than the loop may be held.
            router=await asyncio.to_thread(taught, lessons),
            limits=Limits(limits.mission_calls, limits.mission_tokens, limits.mission_seconds),
            events=self.events,
            clock=self.clock,
            digests=self._digests,
            parallel=self.settings.parallel,
        )

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
        """Validate and accept a mission; it is durable when its id is returned."""
        refs = [file.ref.model_dump() for file in files]
        asked = {"user": self.settings.asker, **brief, "attachments": refs}
        with self.image.snapshot() as root:
            if asked.get("conversation") is not None:
                asked["conversation"] = self._conversation(root, asked["conversation"], asked["user"])
            checked = briefs.parse(asked)
            if checked.ancestor is not None:
                self._check_ancestor(root, checked.ancestor, checked.user)
        value = checked.model_dump(mode="json", exclude_none=True)
        return await self.image.accept(value, {file.ref.sha256: file.data for file in files})

    def _conversation(self, root: Any, name: str, user: str) -> str:
        """The conversation that a brief means: `new`, `last` (the user's newest) or one that is there."""
        conversations = root[roots.CONVERSATIONS]
        if name == "new":
            return conversation_id(self.clock())
        if name == "last":
            mine = [each for each, conversation in conversations.items() if conversation.user == user]
            if mine:
                return str(max(mine))
        elif name in conversations:
            if conversations[name].user != user:
                raise BriefError(
                    f"{name} is another user's conversation",
                    field="conversation",
                    remedy="Begin one of your own: what one user said is not recalled for another.",
                )
            return name
        raise NotFound(
            f"there is no conversation {name!r}",
            field="conversation",
            remedy="Begin one with `new`.",
        )

    def _check_ancestor(self, root: Any, name: str, user: str) -> None:
        """What was paid for is served from a mission that has ended, to the user who asked it."""
        brief, status, _ = self.image.find(root, name)
        if brief.value["user"] != user:
            raise BriefError(
                f"{name} is another user's mission", field="ancestor", remedy="Name a mission of your own."
            )
        if status.word in ("queued", "running", "waiting", "paused"):
            raise Refused(
                f"{name} has not ended: it is {status.word}",
                field="ancestor",
                remedy="Wait for its end (`batos resume` brings what was left behind to one): else both would pay.",
            )

    async def run(self, mission: str, ready: Ready | None = None) -> dict[str, Any]:
        """Run an accepted mission to its end, at most `missions` at a time; raises why it failed.

        A mission whose answer is committed already is not run again. Refused: it runs just now, or has ended.
        `ready` is for those who looked themselves just before: it is not looked again.
        """
        async with self._slots:
            ready = ready or await self._ready_for(mission)
            run = object()  # a mission that is told to run twice is refused the second time, and runs on
            self._thinking[run] = ready.footing.models
            try:
                await ready.conductor.run(mission)
            finally:
                del self._thinking[run]
        return self.mission(mission)

    async def _ready_for(self, mission: str) -> Ready:
        """What it begins with; a mission that cannot even begin is failed with the reason."""
        with self.image.snapshot() as root:
            word = self.image.find(root, mission)[1].word
        try:
            return await self.ready()
        except BatosError as error:
            if word == "queued":
                await self.image.move(mission, "failed", error)
            raise

    async def ask(self, brief: Mapping[str, Any], files: Sequence[File] = ()) -> dict[str, Any]:
        """Submit and run; raises why it failed."""
        return await self.run(await self.submit(brief, files))

    async def recover(self) -> list[str]:
        """Settle what an earlier process left behind: fold in what was committed, queue again what was not.

        Returns the ids of the missions that wait to be run. One that cannot be settled is left as it is and logged.
        """
        publisher = Publisher(self.image.writer, APPLIERS, self.clock)
        waiting: list[str] = []
        for mission in self.image.unfolded():
            try:
                if await self._settle(mission, publisher):
                    waiting.append(mission)
            except BatosError as error:  # no reason to leave the others
                _log.warning("mission.unsettled", mission=mission, reason=error.as_dict())
        return waiting

    async def _settle(self, mission: str, publisher: Publisher) -> bool:
        """Fold in a mission that was committed; else queue it again and say that it waits."""
        with self.image.snapshot() as root:
            _, status, thought = self.image.find(root, mission)
            answered, word = "answer" in own_slots(thought), status.word
        if answered:
            await publisher.fold(mission)
        elif word == "running":
            await self.image.move(mission, "queued", _left_behind())
        return not answered

    # -- reading

    def mission(self, mission: str) -> dict[str, Any]:
        """A mission as CONTRACT shows it; raises NotFound."""
        with self.image.snapshot() as root:
            found = report.mission_report(mission, *self.image.find(root, mission))
        if "cost" not in found:
            # It did not come to its end, and the journal knows what was paid all the same.
            found["cost"] = report.paid(self.journal.read([mission]))
        return found

    def missions(self, most: int = 20, *, status: str | None = None, user: str | None = None) -> list[dict[str, Any]]:
        """The newest missions, a line each; only those of a status or a user, where one is named."""
        with self.image.snapshot() as root:
            lines = (report.mission_line(name, *parts[:2]) for name, parts in report.newest(root))
            meant = (line for line in lines if status in (None, line["status"]) and user in (None, line["user"]))
            return list(islice(meant, most))

    def prompts(self, mission: str) -> list[dict[str, Any]]:
        """Every call of a mission with the exact prompt; raises NotFound."""
        with self.image.snapshot() as root:
            self.image.find(root, mission)
        return report.prompts_report(self.journal.read([mission]))

    def turns(self, conversation: str, start: int = 1, limit: int = 20, user: str | None = None) -> dict[str, Any]:
        """A conversation's turns by position, and what stands for its older ones; for `user` alone, if one is named."""
        with self.image.snapshot() as root:
            return conversations.page(root, conversation, start, limit, user)

    def root_names(self) -> dict[str, Any]:
        """The names of the image's root: its objects, and what its trees of records hold."""
        with self.image.snapshot() as root:
            return report.root_names(root)

    def inspect(self, reference: str) -> dict[str, Any]:
        """An object or a slot; raises NotFound."""
        with self.image.snapshot() as root:
            if reference in roots.OBJECTS and reference not in root:
                raise NotFound(f"the image has no {reference} yet", field="object", remedy="Run `batos genesis`.")
            return report.inspect_object(root, reference)


def _left_behind() -> BatosError:
    return BatosError("the process that ran it ended first", remedy="`batos resume` runs it again.")


@asynccontextmanager
async def open_uvm(settings: Settings, events: Events | None = None, seams: Seams | None = None) -> AsyncIterator[UVM]:
    """Open the image (it is this process's alone until the end) and the bridge; closes both."""
    seams, events = seams or Seams(), events or Events()
    opening = Opening(settings.image_uri, settings.journal, settings.missions, clock=seams.clock, events=events)
    if seams.opening is not None:
        opening = seams.opening(opening)
    # Opening reads and may scan a file: not on the loop.
    image = await asyncio.to_thread(LivingImage, opening)
    bridge: Ollama | None = None
    try:
        bridge = seams.bridge or Bridge(
            settings.ollama_host, deadlines=deadlines(settings), cpu_threads=settings.cpu_threads or None
        )
        await image.prepare()
        journal = Journal(image.journal_db, image.journal_writer)
        convergence = Convergence(settings, image, bridge, events, seams.clock)
        uvm = UVM(
            settings, image, journal, bridge, events, seams.clock, convergence, asyncio.Semaphore(settings.missions)
        )
        convergence.in_use = uvm._in_use
        try:
            yield uvm
        finally:
            if image.refusing is None:
                await journal.drain()
    finally:
        if bridge is not None and seams.bridge is None:
            await bridge.aclose()
        await asyncio.to_thread(image.close)


def deadlines(settings: Settings) -> Deadlines:
    """The bridge's deadlines as configured."""
    return Deadlines(
        connect=settings.connect_seconds,
        load=settings.load_seconds,
        first_token=settings.first_token_seconds,
        between_tokens=settings.between_tokens_seconds,
        progress=settings.progress_seconds,
    )
