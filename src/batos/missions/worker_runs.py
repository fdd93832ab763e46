"""Runs at the workers of this process: the queue of missions that wait for one, and the outcome of each run."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import structlog

from batos.events import Events
from batos.image.image import LivingImage
from batos.image.nodes import claims
from batos.image.nodes.claims import DEATHS
from batos.image.records import Brief, Status, StatusWord
from batos.image.roots import Root
from batos.minds.stopping import StopRequest, cancelled_error
from batos.objects.prototype import own_slots
from batos.protocol.errors import BatosError, OllamaBusy, OllamaError
from batos.protocol.event_payloads import MISSION_FAILED, MissionEnded
from batos.records import approvals, tools


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """The fields of a brief that decide when its mission starts, so that waiting briefs are not read again.

    `deadline` is ISO 8601 in UTC, to the millisecond; such texts sort by time.
    """

    mission: str
    priority: int = 0
    deadline: str | None = None
    #: Waits for the daemon instead of failing when it is away.
    waits_for_ollama: bool = False
    #: The counted deaths of processes that ran it.
    deaths: int = 0

    @property
    def runs_alone(self) -> bool:
        """Test if no other mission may run beside it."""
        return self.deaths >= DEATHS


def new_entry(mission: str, brief: Mapping[str, Any]) -> QueueEntry:
    """Return the queue entry of a mission that has not begun, from its brief as it is stored."""
    patient = bool((brief.get("policy") or {}).get("wait_ollama"))
    return QueueEntry(mission, brief.get("priority") or 0, brief.get("deadline"), patient)


def entry_of(mission: str, brief: Brief, status: Status) -> QueueEntry:
    """Return the queue entry of a mission that is stored."""
    return replace(new_entry(mission, brief.value), deaths=status.deaths)


@dataclass(frozen=True, slots=True)
class SeenMission:
    """The state of a mission in its records.

    `is_answered`: committed but not folded in. `awaits`: waits for a person's answer. `is_elsewhere`: another node runs
    it. `attempt` counts how often it began to run; `claim` is the fence of the node that ran it last. `is_wish`: it
    makes a method that another did without.
    """

    place: QueueEntry
    word: StatusWord
    attempt: int
    is_answered: bool
    awaits: bool = False
    is_elsewhere: bool = False
    claim: int = 0
    is_wish: bool = False


def see_in(root: Root, image: LivingImage, mission: str) -> SeenMission:
    """Return the state of a mission in this root of an image. Raises: NotFound."""
    found = brief, status, thought = image.find(root, mission)
    # Only a mission that began can have been committed.
    answered = status.word == "running" and "answer" in own_slots(thought)
    awaits = status.word == "waiting" and approvals.is_waiting(root, status.reason)
    elsewhere = claims.is_elsewhere(root, status, image.fence)
    place = entry_of(mission, brief, status)
    wish = bool(tools.sender_in(found))
    return SeenMission(place, status.word, status.attempts, answered, awaits, elsewhere, status.claim, wish)


def look(image: LivingImage, mission: str) -> SeenMission:
    """Return the state of a mission now. Raises: NotFound."""
    with image.snapshot() as root:
        return see_in(root, image, mission)


class Queue:
    """Entries by priority, the highest first, then by age: ids sort in the order in which missions were accepted.

    An entry that runs alone comes after all others, those with fewest deaths first, until a mission has ended in this
    process; until then, or until the process has lived for a while, it is held back. Only then is it known that the
    process lives without it: a killer who kills at random, soon after each start, would otherwise always meet the same
    mission.

    A dropped entry stays in the heap until it is next, or until dropped entries fill most of the heap.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, str]] = []
        self._places: dict[str, QueueEntry] = {}
        self._has_seen_end = False
        self._has_lived = False

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, mission: object) -> bool:
        return mission in self._places

    def count_ready(self) -> int:
        """Return the number of entries, or 0 if all of them are held back."""
        return 0 if self.holds_back() else len(self)

    def missions(self) -> tuple[str, ...]:
        """Return the missions that wait, in no order."""
        return tuple(self._places)

    def put(self, place: QueueEntry) -> None:
        """Add an entry; a mission that waits already keeps its place."""
        if place.mission not in self._places:
            self._places[place.mission] = place
            heapq.heappush(self._heap, self._key(place))

    def first(self) -> QueueEntry | None:
        """Return the next entry without removing it; None if nothing waits that may start."""
        place = self._next()
        return None if place is None or self._holds_back(place) else place

    def holds_back(self) -> bool:
        """Test if entries wait, and all of them are held back."""
        place = self._next()
        return place is not None and self._holds_back(place)

    def drop(self, mission: str) -> QueueEntry | None:
        """Remove and return the entry of a mission; None if the mission does not wait."""
        place = self._places.pop(mission, None)
        if len(self._heap) > 2 * len(self._places) + 64:
            self._sort()
        return place

    def see_end(self) -> None:
        """Take note that a mission has ended in this process."""
        if not self._has_seen_end:
            self._has_seen_end = True
            self._sort()

    def see_life(self) -> None:
        """Take note that the process has lived for a while."""
        self._has_lived = True

    def clear(self) -> tuple[QueueEntry, ...]:
        """Remove and return all entries."""
        waited = tuple(self._places.values())
        self._heap, self._places = [], {}
        return waited

    def _next(self) -> QueueEntry | None:
        while self._heap:
            place = self._places.get(self._heap[0][-1])
            if place is not None and self._key(place) == self._heap[0]:
                return place
            heapq.heappop(self._heap)
        return None

    def _holds_back(self, place: QueueEntry) -> bool:
        return place.runs_alone and not (self._has_seen_end or self._has_lived)

    def _sort(self) -> None:
        """Build the heap anew."""
        self._heap = [self._key(each) for each in self._places.values()]
        heapq.heapify(self._heap)

    def _key(self, place: QueueEntry) -> tuple[int, int, str]:
        """Return the sort key of an entry."""
        suspected = place.deaths if place.runs_alone and not self._has_seen_end else 0
        return suspected, -place.priority, place.mission


_log = structlog.get_logger("batos.workers")

#: Seconds between two questions to a daemon that is away.
PAUSES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
#: Seconds for which a process has nothing else to do before it begins a mission that runs alone.
QUIET: Final = 3.0


def nothing() -> None:
    """Do nothing: nothing was prepared."""


@dataclass(frozen=True, slots=True)
class MissionOutcome:
    """The status with which a mission left the workers, and its error if there was one."""

    word: StatusWord
    error: BaseException | None = None
    #: Another node was quicker to begin the mission.
    is_elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class WorkerDeps:
    """The dependencies of the workers.

    `perform` runs one mission to its end and raises its error. `answers` tests if Ollama answers. `prepare` begins what
    a mission needs that is just being accepted, and returns a function that gives that up. `quiet` is how many seconds
    the process has nothing else to do before it begins a mission that runs alone.
    """

    perform: Callable[[str, StopRequest], Awaitable[None]]
    answers: Callable[[], Awaitable[bool]]
    at_once: int
    events: Events
    pauses: Sequence[float] = PAUSES
    prepare: Callable[[str], Callable[[], None]] = lambda mission: nothing
    quiet: float = QUIET


@dataclass(slots=True, eq=False)
class Run:
    """A mission at a worker. `has_begun` is needed because a task that is cancelled before its start never runs."""

    place: QueueEntry
    stop_request: StopRequest
    left: asyncio.Future[None]
    #: Resolved when the acceptance of a mission with a reserved worker has ended.
    accepted: asyncio.Future[None]
    #: Gives up what was prepared for the mission, if the mission has not used it.
    give_up: Callable[[], None]
    task: asyncio.Task[None] | None = None
    has_begun: bool = False

    def start(self, group: asyncio.TaskGroup, work: Callable[[Run], Coroutine[Any, Any, None]]) -> None:
        """Do the work in a task of its own, which has the mission's name."""
        self.task = group.create_task(work(self), name=self.place.mission)

    def begin(self) -> str:
        """Note that the task has begun, and return the mission."""
        self.has_begun = True
        return self.place.mission

    def break_off(self) -> None:
        """Cancel the task, if it has begun."""
        if self.has_begun and self.task is not None:
            self.task.cancel()


class Outcomes:
    """Finds out how runs of missions ended, and writes down the status of those that ended without one."""

    def __init__(self, image: LivingImage, events: Events) -> None:
        self._image, self._events = image, events

    async def find(self, run: Run, error: BaseException | None) -> MissionOutcome:
        """Return the outcome of a run, after writing the status of a mission that failed without one."""
        if error is None:
            return MissionOutcome("done")
        mission = run.place.mission
        try:
            seen = look(self._image, mission)
            word = seen.word
            if seen.is_elsewhere:
                return MissionOutcome(word, error, is_elsewhere=True)
            # A committed mission has not failed, even if its answer could not be folded in.
            if word in ("queued", "running") and not seen.is_answered:
                word, reason = await run.stop_request.outcome(error)
                await self.move(mission, word, reason, ("queued", "running"))
                return MissionOutcome(word, reason if isinstance(error, asyncio.CancelledError) else error)
        except Exception as unwritten:  # an image that cannot be written must not end the workers
            _log.warning("mission.unsettled", mission=mission, reason=str(unwritten))
            return MissionOutcome("failed", error)
        if isinstance(error, asyncio.CancelledError):
            error = run.stop_request.reason or cancelled_error()
        return MissionOutcome(word, error)

    def awaits_person(self, mission: str) -> bool:
        """Test if a mission waits for a person who has not answered; one whose record cannot be read waits."""
        try:
            return look(self._image, mission).awaits
        except Exception as unread:  # an image that cannot be read must not end the workers
            _log.warning("mission.unsettled", mission=mission, reason=str(unread))
            return True

    async def move(
        self, mission: str, word: StatusWord, reason: BatosError | None, only: Collection[StatusWord]
    ) -> None:
        """Change the status of a mission, and emit its failure."""
        await self._image.move(mission, word, reason, only)
        if word in ("failed", "cancelled") and reason is not None:
            self._events.emit(MISSION_FAILED, MissionEnded(mission=mission, status=word, reason=reason.as_dict()))


class SuspicionNote:
    """The note of a process that suspected missions wait in it, by which its death speaks for them.

    The note is written to the image while the process works, and dropped when that ends as it should.
    """

    def __init__(self, image: LivingImage, group: asyncio.TaskGroup) -> None:
        self._image, self._group = image, group
        self._task: asyncio.Task[None] | None = None

    def see(self, place: QueueEntry) -> None:
        """Write the note once, when the first suspected mission has come."""
        if place.runs_alone and self._task is None:
            self._task = self._group.create_task(self._apply(claims.note_deaths))

    async def aclose(self) -> None:
        """Drop the note."""
        if self._task is not None:
            await asyncio.wait({self._task})
            await self._apply(claims.drop_notes)

    async def _apply(self, change: Callable[..., None]) -> None:
        try:
            await self._image.writer.apply(partial(change, fence=self._image.fence))
        except Exception as error:  # nothing hangs on it but what counts against missions: no server ends for it
            reason = error.as_dict() if isinstance(error, BatosError) else f"{type(error).__name__}: {error}"
            _log.warning("suspicion.not_noted", reason=reason)


def server_stop_reason() -> BatosError:
    """Return the reason of a mission that is queued again because the server stops."""
    return BatosError("the server stopped before it had an answer", remedy="It runs again when the server does.")


async def waits_its_turn(error: OllamaError) -> bool:
    """Test if a mission without `wait_ollama` waits after this error: only if the daemon's own queue was full."""
    return isinstance(error, OllamaBusy)
