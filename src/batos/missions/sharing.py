"""Work that several nodes share on one image: what this one takes up, what it is asked, and what others have ended."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import structlog

from batos.concurrency.jobs import Job
from batos.events import Events
from batos.image import roots
from batos.image.image import LivingImage
from batos.image.nodes import claims
from batos.image.records import UNDER_WAY, StatusWord
from batos.image.roots import Root
from batos.minds.stopping import cancelled_error, paused_error
from batos.missions.recovery import Recovery
from batos.missions.worker_runs import MissionOutcome, QueueEntry, entry_of
from batos.missions.workers import Workers
from batos.objects.prototype import own_slots
from batos.protocol.errors import BatosError
from batos.protocol.event_payloads import MISSION_STATUS, MissionStatus
from batos.protocol.mission_documents import ErrorDocument
from batos.protocol.wire_messages import error_of
from batos.records import tools

_log = structlog.get_logger("batos.nodes")

#: Seconds between two looks at the image.
PAUSE: Final = 0.1
#: The same after one that failed.
_AFTER_FAILURE: Final = 1.0
#: Out of so many for each free worker, at random, the next are taken: so two nodes seldom want the same one.
_SPREAD: Final = 4


@dataclass(slots=True)
class _Look:
    """The missions that concern this node, in one look at the image."""

    #: Others ask this node to stop these.
    requests: dict[str, StatusWord] = field(default_factory=dict)
    #: Nodes that have ended left these, by their fences.
    left: dict[int, list[str]] = field(default_factory=dict)
    #: Such a node had noted suspected missions.
    has_notes: bool = False
    #: Others have committed these, and this node is to publish them.
    answered: list[str] = field(default_factory=list)
    #: These wait for any node.
    queued: list[QueueEntry] = field(default_factory=list)
    #: These are waited for here, and may have been begun or ended elsewhere.
    elsewhere: list[str] = field(default_factory=list)


class Sharing:
    """The part of a node in the missions of an image that others work on too. Every method is called on the loop.

    A node takes up as many queued missions as it has free workers; the publisher publishes what others have answered,
    and settles what nodes have left whose leases have ended. Of a mission that runs elsewhere only the status is told
    here, when it changes.
    """

    def __init__(self, image: LivingImage, workers: Workers, recovery: Recovery, events: Events) -> None:
        self._image, self._workers, self._recovery, self._events = image, workers, recovery, events
        self._takes = False
        self._told: dict[str, str] = {}
        self._stopping: set[asyncio.Task[None]] = set()
        self._asked: set[str] = set()
        self.job = Job("nodes", self._work, retry=(_AFTER_FAILURE, _AFTER_FAILURE))
        self._published = False

    def keep(self) -> None:
        """Look at the image from now on, where other nodes may work on it."""
        if self._image.lease is not None:
            self.job.wake()
            self.job.start()

    def take_up(self) -> None:
        """Take up queued missions from now on; for a process that stays to work."""
        self._takes = True

    async def aclose(self) -> None:
        """Look no more."""
        await self.job.stop()
        if self._stopping:
            await asyncio.wait(self._stopping)

    async def _work(self) -> float | None:
        lease = self._image.lease
        if lease is None or lease.lost is not None:
            return None
        await self.look()
        return PAUSE

    async def look(self) -> None:
        """Look at the image once, and do what there is to do.

        A node that accepts no more missions (its disk is full) takes up and publishes none either. The requests of
        others are followed all the same, since only this node can stop the missions that it runs.
        """
        refuses = self._image.refusing is not None
        free = self._workers.free_workers() if self._takes and not refuses else 0
        seen = await asyncio.to_thread(self._read, free, self._workers.waited_missions())
        for mission, word in seen.requests.items():
            self._stop(mission, word)
        self._tell(seen.elsewhere)
        if refuses:
            return
        await self._publish(seen)
        if seen.queued:
            await self._take(seen.queued)

    def _read(self, free: int, awaited: tuple[str, ...]) -> _Look:
        fence, seen = self._image.fence, _Look()
        with self._image.snapshot() as root:
            seen.requests = claims.requests(root, fence)
            if self._image.publishing.is_here:
                seen.left = claims.left_by_the_dead(root)
                seen.has_notes = claims.has_notes_of_dead(root, fence)
                running = claims.running_elsewhere(root, fence)
                thoughts = {each: own_slots(roots.mission_record(root, each).thought) for each in running}
                seen.answered = [each for each in running if "answer" in thoughts[each]]
            if free:
                seen.queued = _choose(root, free)
            seen.elsewhere = [each for each in awaited if _is_elsewhere(root, each, fence)]
        return seen

    # -- what is asked of this node

    def _stop(self, mission: str, word: StatusWord) -> None:
        """Stop a mission that runs here, as somebody asked at another node."""
        if mission not in self._asked and self._workers.has(mission):
            self._asked.add(mission)
            task = asyncio.create_task(self._stop_one(mission, word))
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)

    async def _stop_one(self, mission: str, word: StatusWord) -> None:
        force = word == "cancelled"
        try:
            await self._workers.stop_as(mission, word, cancelled_error() if force else paused_error(), force=force)
        except BatosError as error:  # it has ended, or its status cannot be written
            _log.info("mission.not_stopped", mission=mission, reason=error.message)
        finally:
            self._asked.discard(mission)

    # -- what is published here

    async def _publish(self, seen: _Look) -> None:
        """Publish what others answered, and settle what ended nodes left; their claims are dropped then."""
        dead = {mission for missions in seen.left.values() for mission in missions}
        await asyncio.gather(*(self._recovery.fold(each) for each in seen.answered if each not in dead))
        if seen.has_notes:
            await self._recovery.acquit()
        for fence, missions in seen.left.items():
            for mission in missions:
                await self._take_over(mission, fence)
            await self._image.writer.apply(partial(claims.clear, fence=fence))
        is_new = self._image.publishing.is_here and not self._published
        self._published = self._image.publishing.is_here
        if seen.answered or is_new:
            self._image.signals.published.give()

    async def _take_over(self, mission: str, fence: int) -> None:
        """Queue a mission again, or publish it, that a node which has ended still has; not if it waits for a person."""
        try:
            seen = self._recovery.look(mission)
            # Another node's now, or this one's: it was settled here at the start, and has begun anew.
            if seen.awaits or seen.claim != fence:
                return
            if seen.word == "waiting":  # its node waited for a daemon
                await self._image.move(mission, "queued", None, {"waiting"})
            else:
                await self._recovery.one(mission)
            _log.info("mission.taken_over", mission=mission)
        except BatosError as error:  # no reason to leave the others
            _log.warning("mission.unsettled", mission=mission, reason=error.as_dict())

    # -- what is taken up

    async def _take(self, queued: list[QueueEntry]) -> None:
        """Take missions and begin them, as many as there are workers for."""
        reserved = list[str]()
        for place in queued:
            if place.runs_alone and self._workers.is_idle():
                self._workers.begin(place)
            elif not (place.runs_alone or self._workers.has(place.mission)) and self._workers.reserve(place):
                reserved.append(place.mission)
        taken: list[str] = []
        try:
            if reserved:
                taken = await self._image.claim(reserved)
        finally:
            for mission in reserved:
                if mission in taken:
                    self._workers.begin_reserved(mission)
                else:
                    self._workers.free(mission)

    # -- what others do

    def _tell(self, candidates: list[str]) -> None:
        """Tell who waits here what became of missions that other nodes have begun."""
        # Looked at again: on the loop nothing comes between the look and what is done.
        with self._image.snapshot() as root:
            for mission in candidates:
                if mission in self._workers.waited_missions() and _is_elsewhere(root, mission, self._image.fence):
                    status = roots.mission_record(root, mission).status
                    self._tell_one(mission, status.word, status.reason)
        self._told = {mission: word for mission, word in self._told.items() if mission in candidates}

    def _tell_one(self, mission: str, word: StatusWord, reason: ErrorDocument | None) -> None:
        ending = None if word in UNDER_WAY else MissionOutcome(word, None if reason is None else error_of(reason))
        if self._told.get(mission) != word:
            self._told[mission] = word
            self._events.emit(MISSION_STATUS, MissionStatus(mission=mission, status=word, reason=reason))
        self._workers.tell_elsewhere(mission, ending)


def _is_elsewhere(root: Root, mission: str, fence: int) -> bool:
    """Test if another node runs a mission, or it has left the queue without this one."""
    record = roots.find_record(root, mission)
    return record is not None and (
        claims.is_elsewhere(root, record.status, fence) or record.status.word not in UNDER_WAY
    )


def _choose(root: Root, free: int) -> list[QueueEntry]:
    """Return queued missions for free workers: out of the first in order, some at random; none that fulfils a wish."""
    queued = ((name, each) for name, each in roots.list_oldest_queued(root) if not tools.sender_in(each))
    places = [entry_of(name, record.brief, record.status) for name, record in queued]
    first = sorted(places, key=lambda each: (each.runs_alone, -each.priority, each.mission))[: _SPREAD * free]
    return random.sample(first, min(free, len(first)))
