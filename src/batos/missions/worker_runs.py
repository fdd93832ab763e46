"""The run of a mission at a worker, its outcome, and the dependencies of the workers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import structlog

from batos.events import Events
from batos.image.image import LivingImage
from batos.image.nodes import suspicion
from batos.image.records import StatusWord
from batos.minds.stopping import StopRequest, cancelled_error
from batos.missions.queue import QueueEntry, look
from batos.protocol.errors import BatosError, OllamaBusy, OllamaError
from batos.protocol.event_payloads import MISSION_FAILED, MissionEnded

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
            self._task = self._group.create_task(self._apply(suspicion.note))

    async def aclose(self) -> None:
        """Drop the note."""
        if self._task is not None:
            await asyncio.wait({self._task})
            await self._apply(suspicion.drop)

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
