"""The run of a mission at a worker, its outcome, and the dependencies of the workers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final

from batos.errors import BatosError, OllamaBusy, OllamaError
from batos.events import Events
from batos.image.records import StatusWord
from batos.minds.stopping import StopRequest
from batos.missions.queue import QueueEntry

#: Seconds between two questions to a daemon that is away.
PAUSES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)


def nothing() -> None:
    """Do nothing: nothing was prepared."""


@dataclass(frozen=True, slots=True)
class MissionOutcome:
    """The status with which a mission left the workers, and its error if there was one."""

    word: StatusWord
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class WorkerDeps:
    """The dependencies of the workers.

    `perform` runs one mission to its end and raises its error. `answers` tests if Ollama answers. `awaits` tests if a
    mission still waits for a person. `prepare` begins what a mission needs that is just being accepted, and returns a
    function that gives that up.
    """

    perform: Callable[[str, StopRequest], Awaitable[None]]
    answers: Callable[[], Awaitable[bool]]
    at_once: int
    events: Events
    pauses: Sequence[float] = PAUSES
    awaits: Callable[[str], bool] = lambda mission: True
    prepare: Callable[[str], Callable[[], None]] = lambda mission: nothing


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


def server_stop_reason() -> BatosError:
    """Return the reason of a mission that is queued again because the server stops."""
    return BatosError("the server stopped before it had an answer", remedy="It runs again when the server does.")


async def waits_its_turn(error: OllamaError) -> bool:
    """Test if a mission without `wait_ollama` waits after this error: only if the daemon's own queue was full."""
    return isinstance(error, OllamaBusy)
