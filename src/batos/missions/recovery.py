"""Recovery of missions that an earlier process left behind: folds them in, queues them again, or parks them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

import structlog

from batos.events import Events
from batos.image import roots
from batos.image.image import LivingImage
from batos.image.nodes import claims
from batos.image.ownership import NOBODYS_DOORS
from batos.image.records import StatusWord
from batos.image.writer import Publisher
from batos.inference.journal import Journal
from batos.methods.generation import generation_limits
from batos.missions.worker_runs import QueueEntry, SeenMission, entry_of, look, see_in
from batos.objects.prototype import own_slots
from batos.protocol.errors import BatosError, Refused
from batos.protocol.event_payloads import MISSION_DONE, MISSION_STATUS, MissionDone, MissionStatus, MissionSummary

T = TypeVar("T")

_log = structlog.get_logger("batos")

#: The counted deaths, alone and at one step, at which a mission is parked: a killer who kills at random meets an
#: innocent one alone once or twice.
ALONE: Final = 5

#: The fields of a status that a resume resets.
AFRESH: Final[Mapping[str, Any]] = {"deaths": 0, "mark": None, "alone": False}

#: The reason of a mission that is queued again.
_QUEUED_AGAIN: Final = BatosError("the process that ran it ended first", remedy="`batos resume` runs it again.")
_AT_ONCE = 500  # items, a few milliseconds

#: Statuses of missions that continue only on request.
_STANDING: Final = frozenset({"paused", "parked"})


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """Missions that an earlier process left behind.

    `waiting` wait for a worker; `standing` are paused, parked or wait for a person.
    """

    waiting: tuple[QueueEntry, ...]
    standing: tuple[QueueEntry, ...]


async def yielding_every(items: Iterable[T], at_once: int = _AT_ONCE) -> AsyncIterator[T]:
    """Yield each item, and yield to the event loop after every `at_once` items."""
    for number, item in enumerate(items, 1):
        if number % at_once == 0:
            await asyncio.sleep(0)
        yield item


class Recovery:
    """Settles missions whose process has ended."""

    def __init__(self, image: LivingImage, journal: Journal, publisher: Publisher, events: Events) -> None:
        self._image = image
        self._events = events
        self._journal = journal
        self._publisher = publisher

    async def all(self, here: Callable[[str], bool]) -> LeftBehind:
        """Settle every mission that is neither ended nor folded in.

        Missions for which `here` returns True are this process's own work and are left out, and so are those that
        another node runs. A mission that cannot be settled is logged and left as it is.
        """
        await self.acquit()
        # There may be ten thousand records: read them in a thread.
        waiting: list[QueueEntry] = []
        standing: list[QueueEntry] = []
        async for seen in yielding_every(await asyncio.to_thread(self._read)):
            if here(seen.place.mission) or seen.is_elsewhere:
                continue
            if seen.word in _STANDING or seen.awaits:
                standing.append(seen.place)
                continue
            try:
                place = await self._settle(seen)
            except BatosError as error:  # no reason to leave the others
                _log.warning("mission.unsettled", mission=seen.place.mission, reason=error.as_dict())
                continue
            if place is not None and not seen.is_wish:  # who makes methods begins it
                waiting.append(place)
        return LeftBehind(tuple(waiting), tuple(standing))

    async def acquit(self) -> None:
        """Forget what counts against suspected missions that did not run when their process died.

        To be done before deaths are counted.
        """
        with self._image.snapshot() as root:
            if not claims.has_notes_of_dead(root, self._image.fence):
                return
        for mission in await self._image.writer.apply(partial(claims.acquit, fence=self._image.fence)):
            _log.info("mission.acquitted", mission=mission)

    async def one(self, mission: str) -> QueueEntry | None:
        """Settle one mission that no process runs; return its queue entry, or None if it needs no worker now.

        A mission that another node runs is left to it.
        """
        seen = self.look(mission)
        return None if seen.is_elsewhere else await self._settle(seen)

    async def publish(self, mission: str) -> bool:
        """Fold in a mission that is committed but not folded in; return False if the mission is no such one."""
        if not self.look(mission).is_answered:
            return False
        if await self._publisher.fold(mission):
            self._tell_done(mission)
        return True

    async def fold(self, mission: str) -> None:
        """Fold in a mission that another node has committed, which tells its end."""
        await self._publisher.fold(mission)

    def look(self, mission: str) -> SeenMission:
        """Return the state of a mission. Raises: NotFound."""
        return look(self._image, mission)

    def _read(self) -> list[SeenMission]:
        """Return the states of all missions that are not folded in."""
        with self._image.snapshot() as root:
            return [see_in(root, self._image, mission) for mission in root[roots.UNFOLDED]]

    async def _settle(self, seen: SeenMission) -> QueueEntry | None:
        """Return the queue entry of the mission; None if it is done or parked now."""
        if seen.is_answered:
            await self.publish(seen.place.mission)
            return None
        return await self._count(seen.place.mission, seen.attempt) if seen.word == "running" else seen.place

    def _tell_done(self, mission: str) -> None:
        """Emit the events of a mission that is done, late: its process ended before it could emit them."""
        with self._image.snapshot() as root:
            brief, status, thought = self._image.find(root, mission)
            slots, tid = own_slots(thought), status.tid
            route, made = (dict(slots.get(name) or {}) for name in ("route", "provenance"))
            cost: Any = dict(slots.get("cost") or {})
            conversation, door = brief.value.get("conversation"), brief.value.get("origin", {}).get("door")
            own = door in NOBODYS_DOORS
        told = MissionSummary(
            own=own, personas=route.get("personas"), cost=cost, gate=made.get("gate"), conversation=conversation
        )
        self._events.emit(MISSION_DONE, MissionDone(mission=mission, tid=tid, **told))
        self._events.emit(MISSION_STATUS, MissionStatus(mission=mission, status="done", reason=None))
        self._image.signals.answered.give(mission, conversation)

    def _progress_of(self, mission: str) -> tuple[int, int, str]:
        """Measure a mission's progress in the journal, including the generations that it waited for."""
        entries, closed, path = self._journal.progress(mission)
        beside = [self._journal.progress(log) for log in generation_limits.awaited_logs(self._journal.notes(mission))]
        return entries + sum(each[0] for each in beside), closed + sum(each[1] for each in beside), path

    async def _count(self, mission: str, attempt: int) -> QueueEntry | None:
        """Queue the mission again, or park it and return None; None too if it runs, or was settled, again meanwhile.

        A death counts if there was no progress since the last one.
        """
        mark = self._progress_of(mission)
        with self._image.snapshot() as root:
            brief, status, _ = self._image.find(root, mission)
            deaths = status.deaths + 1 if status.mark == mark else 0
            alone = status.alone
            place = replace(entry_of(mission, brief, status), deaths=deaths)
        is_parked = alone and deaths >= claims.DEATHS + ALONE
        word: StatusWord = "parked" if is_parked else "queued"
        reason = _parked_reason(deaths) if is_parked else _QUEUED_AGAIN
        try:
            await self._image.move(mission, word, reason, {"running"}, attempt, deaths=deaths, mark=mark)
        except Refused:  # somebody has settled it meanwhile, here or at another node, or has cancelled it
            return None
        return None if is_parked else place


def _parked_reason(deaths: int) -> BatosError:
    """Return the reason of a mission that is parked."""
    return BatosError(
        f"{deaths + 1} processes ended at the same step of it, the last {ALONE} with nothing else running",
        remedy="See the log for the reason; `batos resume` tries again.",
    )
